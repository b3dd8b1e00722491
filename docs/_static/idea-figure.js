// Draws the lesson that idea.js computes. The picture is a function of the seed, the number of steps and two sliders:
// moving a slider replays the same lesson.

"use strict";

(() => {
  const LR = 0.1;
  const STEPS = 40;
  const BATCH = 6;
  const PAUSE = 900; // milliseconds between two steps of Play
  const EDGE = 1.5; // the picture shows the plane from −EDGE to EDGE
  const SIZE = 400;
  const STAR = "M0-9 2.6-3 9-2.6 4.1 1.6 5.6 8 0 4.5-5.6 8-4.1 1.6-9-2.6-2.6-3Z";

  const at = (id) => document.getElementById(`idea-${id}`);
  const figure = at("figure");
  const svg = figure.querySelector("svg");
  const beta = at("beta");
  const view = at("view");

  let seed = 1;
  let steps = 0;
  let timer = null;
  let parts = null;

  const place = ([x, y]) => [(SIZE / 2) * (1 + x / EDGE), (SIZE / 2) * (1 - y / EDGE)];
  const inside = (w) => w.every((each) => Math.abs(each) <= EDGE);
  const written = (number, digits = 2) =>
    Number.isFinite(number) && Math.abs(number) < 1000
      ? number.toFixed(digits).replace(/^-(0\.?0*)$/, "$1").replace("-", "−")
      : "over 1000";

  function draw(parent, name, attributes = {}, text = "") {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = text;
    parent.append(made);
    return made;
  }

  /** Both learners after each step, and what happened in the latest step; before the first, what is about to. */
  function lesson() {
    const { target, start, batches } = idea.world(seed, STEPS, BATCH);
    const numbers = { lr: LR, beta: beta.valueAsNumber, view: view.valueAsNumber, target };
    const path = [{ naive: start, aware: start }];
    for (const batch of batches.slice(0, steps)) path.push(idea.step(numbers, path.at(-1), batch));
    const batch = batches[Math.max(steps - 1, 0)];
    return { target, path, batch, latest: steps ? path.at(-1) : idea.step(numbers, path[0], batch) };
  }

  /** What stays between two pictures, so that the learners can glide. */
  function scaffold() {
    const defs = draw(svg, "defs");
    draw(defs, "path", { id: "idea-star", d: STAR });
    draw(svg, "path", { class: "idea-axes", d: `M0 ${SIZE / 2}H${SIZE}M${SIZE / 2} 0V${SIZE}` });
    const examples = draw(svg, "g");
    const paths = draw(svg, "g");
    const target = draw(svg, "use", { href: "#idea-star", class: "idea-target idea-mark" });
    const naive = draw(svg, "circle", { r: 6, class: "idea-naive idea-mark idea-glide" });
    const aware = draw(svg, "rect", {
      x: -5.5, y: -5.5, width: 11, height: 11, class: "idea-aware idea-mark idea-glide",
    });
    return { examples, paths, target, naive, aware };
  }

  const put = (mark, w) => {
    const [x, y] = place(w.map((each) => Math.max(-EDGE, Math.min(EDGE, each))));
    mark.style.transform = `translate(${x}px, ${y}px)`;
    mark.classList.toggle("idea-outside", !inside(w));
  };
  const line = (points) => points.map((w) => place(w).map((each) => each.toFixed(2)).join(",")).join(" ");
  // Numbers that no browser can draw end the line.
  const drawable = (points) => points.filter((w) => w.every((each) => Math.abs(each) < 1e4));

  function drawExamples({ batch, latest }) {
    const { chosen } = latest;
    const seen = idea.inView(batch, chosen.aware, view.valueAsNumber);
    parts.examples.replaceChildren();
    batch.rows.forEach((x, i) => {
      const shown = chosen.naive === i || chosen.aware === i;
      const group = draw(parts.examples, "g", { class: `idea-example${shown ? " idea-shown" : ""}` });
      const [fromX, fromY] = place([0, 0]);
      const [toX, toY] = place(x);
      const dashes = seen[i] ? {} : { "stroke-dasharray": "3 4" };
      draw(group, "line", { x1: fromX, y1: fromY, x2: toX, y2: toY, ...dashes });
      const angle = (Math.atan2(toY - fromY, toX - fromX) * 180) / Math.PI;
      draw(group, "path", { d: "M-7-3.5L0 0L-7 3.5Z", transform: `translate(${toX} ${toY}) rotate(${angle})` });
      const length = Math.hypot(...x) || 1;
      const [cx, cy] = place(x.map((each) => each * (1 + 0.12 / length)));
      if (chosen.naive === i) draw(group, "circle", { cx, cy, r: 10, class: "idea-naive idea-ring" });
      if (chosen.aware === i) {
        draw(group, "rect", { x: cx - 13, y: cy - 13, width: 26, height: 26, rx: 3, class: "idea-aware idea-ring" });
      }
      draw(group, "text", { x: cx, y: cy }, i + 1);
    });
  }

  function drawPaths({ path, latest, target }) {
    parts.paths.replaceChildren();
    const [startX, startY] = place(path[0].naive);
    draw(parts.paths, "text", { x: startX, y: startY - 10, class: "idea-start" }, "start");
    for (const who of ["naive", "aware"]) {
      const points = drawable(path.map((each) => each[who]));
      draw(parts.paths, "polyline", { points: line(points), class: `idea-${who} idea-path` });
      for (const w of points) {
        const [cx, cy] = place(w);
        draw(parts.paths, "circle", { cx, cy, r: 2, class: `idea-${who} idea-dot` });
      }
    }
    if (steps) {
      const turn = drawable([path.at(-2).aware, latest.guess, latest.aware]);
      if (turn.length === 3) draw(parts.paths, "polyline", { points: line(turn), class: "idea-aware idea-turn" });
    }
    put(parts.target, target);
    put(parts.naive, path.at(-1).naive);
    put(parts.aware, path.at(-1).aware);
  }

  function fillTable({ batch, latest }) {
    const { scores, chosen, q } = latest;
    const seen = idea.inView(batch, chosen.aware, view.valueAsNumber);
    const rows = batch.rows.map((_, i) => {
      const row = document.createElement("tr");
      const cell = (text, className = "", name = "td") => {
        const made = document.createElement(name);
        made.textContent = text;
        made.className = className;
        row.append(made);
        return made;
      };
      cell(i + 1, "", "th").scope = "row";
      for (const who of ["naive", "aware"]) {
        const made = cell(written(scores[who][i], 3), chosen[who] === i ? `idea-${who} idea-chosen` : "");
        if (chosen[who] === i) {
          const mark = document.createElement("span");
          mark.className = "idea-spoken";
          mark.textContent = ", the teacher's choice";
          made.append(mark);
        }
      }
      cell(seen[i] ? written(q[i]) : "unseen", seen[i] ? "" : "idea-unseen");
      return row;
    });
    at("rows").replaceChildren(...rows);
  }

  const whereabouts = (name, w, target) =>
    inside(w)
      ? `The ${name} learner is at (${w.map((each) => written(each)).join(", ")}), ` +
        `${written(idea.distance(w, target))} from the target.`
      : `The ${name} learner has left the picture, ${written(idea.distance(w, target))} from the target.`;

  function sentence({ path, latest, target }) {
    const { naive, aware } = latest.chosen;
    const verb = steps ? "shows" : "will show";
    const choice =
      naive === aware
        ? `The teacher ${verb} both learners example ${naive + 1}.`
        : `The teacher ${verb} the naive learner example ${naive + 1} and the aware learner example ${aware + 1}.`;
    const now = path.at(-1);
    if (!steps) {
      const [x, y] = now.naive.map((each) => written(each));
      const far = written(idea.distance(now.naive, target));
      return `Start. Both learners are at (${x}, ${y}), ${far} from the target. ${choice}`;
    }
    const end = steps === STEPS ? " The lesson is over." : "";
    return `Step ${steps}. ${choice} ${whereabouts("naive", now.naive, target)} ` +
      `${whereabouts("aware", now.aware, target)}${end}`;
  }

  function render() {
    const now = lesson();
    drawExamples(now);
    drawPaths(now);
    fillTable(now);
    at("count").textContent = `${steps} of ${STEPS}, seed ${seed}`;
    for (const who of ["naive", "aware"]) {
      at(`${who}-distance`).textContent = written(idea.distance(now.path.at(-1)[who], now.target), 3);
    }
    at("beta-value").textContent = beta.value;
    at("view-value").textContent = `${view.value} of ${BATCH}`;
    view.setAttribute("aria-valuetext", `${view.value} of ${BATCH} examples`);
    at("step").setAttribute("aria-disabled", steps === STEPS);
    at("play").setAttribute("aria-disabled", steps === STEPS);
    at("play").textContent = timer === null ? "Play" : "Pause";
    at("status").textContent = sentence(now);
  }

  function pause() {
    clearInterval(timer);
    timer = null;
    at("status").setAttribute("aria-live", "polite");
  }

  function advance() {
    steps = Math.min(steps + 1, STEPS);
    if (steps === STEPS) pause();
    render();
  }

  at("step").addEventListener("click", () => {
    pause();
    advance();
  });
  at("play").addEventListener("click", () => {
    if (timer !== null) {
      pause();
    } else if (steps < STEPS) {
      at("status").setAttribute("aria-live", "off"); // a sentence per step is more than anybody can listen to
      timer = setInterval(advance, PAUSE);
    }
    render();
  });
  at("restart").addEventListener("click", () => {
    pause();
    seed += 1;
    steps = 0;
    render();
  });
  for (const slider of [beta, view]) slider.addEventListener("input", render);

  figure.hidden = false;
  parts = scaffold();
  render();
})();
