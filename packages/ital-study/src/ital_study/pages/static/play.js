// Teach several robots: a naive one, a teacher-aware one, and one with the direction of the first and the step length of
// the second, or those that a study names. They stand side by side with the same arrows. The server keeps nothing: every request carries all choices so far.

import { lineChart, lineKey } from "./charts.js";
import { listKeys } from "./keys.js";
import { ActionMap, directionText, Palette, place, ValueMap } from "./maps.js";
import { h, insist, loadWords, number, Refused, request } from "./page.js";
import { legend } from "./teach.js";

const MEASURES = [
  ["distance", "Distance to the truth", "lower is better"],
  ["policy_tv", "Difference in behaviour", "lower is better"],
  ["reward", "Expected reward", "higher is better"],
];
const at = (id) => document.getElementById(id);

let game = null;
let choices = [];
let history = [];
let picked = null;
let busy = false;
let playing = false; // the machine plays to the end
let views = null;
let robots = {}; // names by kind

function trouble(on) {
  at("trouble").hidden = !on;
  at("trouble").textContent = on ? "No connection to the server. This page keeps trying." : "";
}

function announce(text) {
  const log = at("live");
  log.append(h("p", null, text));
  while (log.children.length > 4) log.firstChild.remove();
}

const post = (path, body) => insist(() => request("POST", path, body), trouble);

async function start(map) {
  playing = false;
  game = await post("api/play/new", { map });
  robots = Object.fromEntries(game.robots.map(({ kind, name }) => [kind, name]));
  introduce(game.robots);
  choices = [];
  history = [game];
  build();
  arm();
}

/** Say what the robots do; the page's own words are about the three of a study that names none. */
function introduce(listed) {
  if (listed.some(({ kind }) => kind === "matched")) return;
  const each = listed.flatMap(({ name, about }) => [" ", h("strong", null, name), `: ${about}.`]);
  at("about").replaceChildren(
    "Only you know the true map. An arrow says “if you were here, go this way”, and all robots see it.",
    ...each,
    " Nothing is stored.",
  );
  document.title = `Teach ${listed.length} robots`;
  at("title").textContent = document.title;
}

/** The robot for which the machine teacher picks: the aware one, else the last. */
const taught = () => (robots.aware ? "aware" : Object.keys(robots).at(-1));

async function show(choice, { mine = true } = {}) {
  if (busy || choice === null) return;
  busy = true;
  if (mine) compare(choice);
  controls();
  views.truth.lock(true);
  const { seed, map } = game;
  let next;
  try {
    next = await post("api/play/step", { map, seed, choices: [...choices, choice] });
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    views.status.textContent = error.message;
    busy = false;
    views.truth.lock(false);
    controls();
    return;
  }
  choices.push(choice);
  history.push(next);
  game = { ...game, ...next };
  charts();
  const changes = Object.keys(robots).map((robot) => {
    const view = views[robot];
    view.actions.mark(view.actions.show(next[robot].policy));
    return view.belief.animate(next[robot].belief, playing ? 250 : 800);
  });
  announce(
    Object.entries(robots)
      .map(([robot, name]) => `${name}: distance to the truth ${number(next[robot].measures.distance, 2)}`)
      .join(". "),
  );
  await Promise.all(changes);
  Object.keys(robots).forEach((robot) => views[robot].actions.mark([]));
  busy = false;
  arm();
}

/** Put the next arrows on the maps. */
function arm() {
  const { arrows, size, step, steps } = game;
  picked = null;
  const maps = arrowMaps();
  views.counter.textContent = arrows ? `Arrow ${step + 1} of ${steps}` : `All ${steps} arrows shown`;
  if (!arrows) {
    maps.forEach((map) => map.noArrows());
    const distance = (robot) => game[robot].measures.distance;
    const closest = Object.keys(robots).reduce((best, robot) => (distance(robot) < distance(best) ? robot : best));
    views.status.textContent = `Done. Closest to the truth: ${robots[closest].toLowerCase()}. Try another map, or the same one again.`;
    playing = false;
    controls();
    return;
  }
  const describe = (index) => {
    const { cell } = arrows[index];
    const believed = Object.entries(robots).map(([robot, name]) => `${name} ${number(game[robot].belief[cell])}`);
    return `${where(index)}; true value ${number(game.truth[cell], 0)}; believed here: ${believed.join(", ")}`;
  };
  maps.forEach((map, i) => {
    map.arrows(arrows, { main: i === 0, describe, label: "Arrows to pick from", onpick: (at) => playing || pick(at) });
    map.lock(false);
  });
  views.status.textContent = "Pick an arrow in a coloured map.";
  controls();
}

function pick(index) {
  if (busy) return;
  picked = index;
  arrowMaps().forEach((map) => map.select(index));
  views.status.textContent = `Your pick: ${where(index)}.`;
  controls();
}

/** The maps on which arrows can be picked. */
function arrowMaps() {
  return [views.truth, ...Object.keys(robots).map((robot) => views[robot].belief)];
}

/** Where an arrow is and points, in words. */
function where(index) {
  const { cell, action } = game.arrows[index];
  return `${place(cell, game.size)}, ${directionText(cell, action, game.size)}`;
}

/** If wanted, show what the machine teacher would have picked in place of my choice. */
function compare(choice) {
  views.hint.textContent = "";
  if (!views.compare.checked || !game.best) return;
  const best = game.best[taught()];
  arrowMaps().forEach((map) => map.flag(best));
  views.hint.textContent =
    best === choice ? "The machine would have picked the same arrow." : `The machine would have picked ${where(best)}.`;
  announce(views.hint.textContent);
}

/** Show the machine teacher's pick. */
async function machineStep() {
  if (busy || !game.best) return;
  const best = game.best[taught()];
  views.hint.textContent = "";
  pick(best);
  views.status.textContent = `The machine teacher, for the ${robots[taught()].toLowerCase()}: ${where(best)}.`;
  await show(best, { mine: false });
}

/** Let the machine choose until all arrows are shown, or until it is stopped. */
async function playToTheEnd() {
  playing = !playing;
  controls();
  while (playing && game.best) await machineStep();
}

function controls() {
  views.confirm.disabled = busy || playing || picked === null;
  views.machine.disabled = busy || playing || !game.best;
  views.toTheEnd.disabled = !playing && (busy || !game.best);
  views.toTheEnd.textContent = playing ? "Stop" : "Play to the end";
}

function charts() {
  views.charts.replaceChildren(
    ...MEASURES.filter(([name]) => name in game[game.robots[0].kind].measures).map(([name, title, note]) =>
      lineChart({
        title,
        note,
        width: 290,
        height: 140,
        label: "arrows shown",
        last: game.steps,
        series: Object.keys(robots).map((kind) => ({
          kind,
          x: history.map((_, i) => i),
          y: history.map((one) => one[kind].measures[name]),
        })),
        reference:
          name === "reward" && Number.isFinite(history[0].best_reward)
            ? { value: history[0].best_reward, name: "best possible" }
            : null,
      }),
    ),
  );
}

function build() {
  const { size, truth, maps, map } = game;
  const palette = new Palette(game.palette, Math.max(...truth.map(Math.abs)));
  views = {
    truth: new ValueMap({ size, palette, marks: "truth", caption: "True map: value of each cell" }),
    status: h("p", { class: "status" }),
    hint: h("p", { class: "hint" }),
    compare: h("input", { type: "checkbox", id: "compare", checked: views?.compare.checked }),
    toTheEnd: h("button", { type: "button", onclick: playToTheEnd }),
    counter: h("p", { class: "counter" }),
    charts: h("div", { class: "play-charts" }),
    confirm: h("button", { type: "button", class: "primary confirm", onclick: () => show(picked) }, "Show this arrow"),
    machine: h("button", { type: "button", onclick: machineStep }, "Let the machine choose"),
  };
  for (const [robot, name] of Object.entries(robots)) {
    views[robot] = {
      belief: new ValueMap({ size, palette, caption: `${name}'s belief: value of each cell` }),
      actions: new ActionMap({ size, caption: `${name}'s plan: most probable action in each cell` }),
    };
    views[robot].belief.show(game[robot].belief);
    views[robot].actions.show(game[robot].policy);
  }
  views.truth.show(truth);
  listKeys(views.truth.overlay, {
    arrows: () => (busy || playing ? [] : (game.arrows ?? [])),
    size,
    focus: (index) => views.truth.focus(index),
    choose: pick,
    chosen: () => picked,
    confirm: () => show(picked).then(() => views.truth.focus(views.truth.first())),
  });
  const choice = h(
    "select",
    { id: "map", onchange: () => start(choice.value) },
    maps.map((name) => h("option", { value: name, selected: name === map }, `Map ${name}`)),
  );
  const robotPanel = (robot) =>
    h(
      "section",
      { class: `panel robot ${robot}` },
      h("h2", null, robots[robot]),
      h("div", null, h("h3", null, "Belief"), views[robot].belief.element),
      h("div", null, h("h3", null, "Plan"), views[robot].actions.element),
    );
  at("main").replaceChildren(
    h(
      "div",
      { class: "play-grid" },
      h(
        "section",
        { class: "panel truth" },
        h("div", { class: "truth-head" }, h("h2", null, "True map"), views.counter),
        views.truth.element,
        views.status,
        views.hint,
        h("div", { class: "buttons" }, views.confirm, views.machine, views.toTheEnd),
        h("label", { class: "compare", for: "compare" }, views.compare, "Show the machine's pick after mine"),
        h(
          "div",
          { class: "buttons" },
          h("label", { for: "map", class: "sr-only" }, "Map"),
          choice,
          h("button", { type: "button", onclick: () => start(choice.value) }, "Start again"),
        ),
      ),
      h("div", { class: "robots" }, Object.keys(robots).map(robotPanel)),
      h("section", { class: "panel measures", "aria-label": "Measures" }, lineKey(Object.keys(robots)), views.charts),
    ),
    legend(palette, truth),
  );
  charts();
}

insist(() => loadWords("en", "api/play/words"), trouble)
  .then(() => start(null))
  .catch((error) => {
    at("main").replaceChildren(h("p", { class: "field-problem", role: "alert" }, error.message));
  });
