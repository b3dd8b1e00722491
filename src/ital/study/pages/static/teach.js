// One round of teaching: three maps, the arrows to pick from, the legend, and the robot's update after each arrow.

import { h, number, prose, wait } from "./dom.js";
import { listKeys } from "./keys.js";
import { ActionMap, chip, directionText, place, sample, scale, ValueMap } from "./maps.js";
import { Palette } from "./palette.js";
import { StepClock } from "./timing.js";

const UPDATE = 900;
const LINGER = 450;

/** The legend that stays on the screen. */
export function legend(palette, numbers) {
  const item = (picture, text) => h("li", null, picture, h("span", null, text));
  return h(
    "section",
    { class: "legend", "aria-label": "Legend" },
    h("div", { class: "legend-scale" }, h("span", null, "bad"), scale(palette), h("span", null, "good")),
    h(
      "ul",
      null,
      item(sample(palette, palette.limit, "truth", numbers), "truly good"),
      item(sample(palette, -palette.limit / 5, "truth", numbers), "truly bad"),
      !numbers &&
        item(
          [sample(palette, palette.limit / 4, "belief"), sample(palette, -palette.limit / 4, "belief")],
          "robot thinks good, bad",
        ),
      item(chip(1, false), "arrow to pick"),
      item(chip(1, false, "chosen"), "your pick"),
      item(chip(1, true), "stay here"),
    ),
  );
}

/** The effect of the update, in words. */
function updateText(before, after, changedActions, size) {
  let most = 0;
  after.forEach((value, cell) => {
    if (Math.abs(value - before[cell]) > Math.abs(after[most] - before[most])) most = cell;
  });
  const change = Math.abs(after[most] - before[most]);
  const actions =
    changedActions.length === 0
      ? "Its actions stay the same."
      : `Its action changed in ${changedActions.length} ${changedActions.length === 1 ? "cell" : "cells"}.`;
  const belief =
    change < 0.005
      ? "The robot's belief hardly changed."
      : `The robot's belief changed most at ${place(most, size)}: from ${number(before[most], 2)} to ${number(after[most], 2)}.`;
  return `${belief} ${actions}`;
}

export class TeachView {
  /**
   * `submit({round, step, choice, timing})` sends a step; its outcome comes back through `show`.
   * `record(kind, data)` notes an event, `announce(text)` speaks to screen readers.
   */
  constructor({ submit, record, announce }) {
    Object.assign(this, { submit, record, announce });
    this.scene = null;
    this.turn = 0;
    this.sent = null;
    this.clock = null;
    this.busy = false;
    this.element = h("div", { class: "teach" });
  }

  /** Show a State of a warm-up or teaching stage; animate the update that led to it if this page sent it. */
  async show(state, { quick = false } = {}) {
    this.turn += 1; // a State that arrives while this one is being shown replaces it
    const { turn } = this;
    this.endInterlude?.();
    const previous = this.scene;
    const { scene, study } = state;
    if (previous && !quick) await this.playUpdate(state, scene);
    if (turn !== this.turn) return;
    this.practice = state.stage === "warm_up";
    this.scene = scene;
    const newRound = previous?.round !== scene.round;
    if (newRound) this.#build(scene, study);
    if (newRound && scene.first_of_round) await this.#interlude(scene, study);
    if (turn === this.turn) this.#step(scene);
  }

  /** Animate what the last arrow did. */
  async playUpdate(state, next) {
    const { scene } = this;
    if (!scene || this.sent === null) return;
    const { after } = state;
    const seen =
      after && after.round === scene.round && after.step === scene.step
        ? after
        : next && next.round === scene.round && next.step === scene.step + 1
          ? { belief: next.belief, policy: next.policy, hint: next.last?.hint }
          : null;
    const choice = this.sent;
    this.sent = null;
    if (!seen) return;
    const hint = Number.isInteger(seen.hint) ? seen.hint : null;
    if (hint !== null) {
      this.truth.flag(hint);
      this.belief.flag(hint);
    }
    const before = this.belief.values;
    const changed = this.actions.show(seen.policy);
    this.actions.mark(changed);
    this.status.textContent = "The robot has seen your arrow and updates what it believes …";
    this.announce(updateText(before, seen.belief, changed, scene.size));
    await this.belief.animate(seen.belief, UPDATE);
    if (hint !== null) {
      this.hint.hidden = false;
      const arrow = scene.arrows[hint];
      this.hint.textContent =
        hint === choice
          ? "The machine teacher would have picked the same arrow."
          : `The machine teacher would have picked ${place(arrow.cell, scene.size)}, ${directionText(arrow.cell, arrow.action, scene.size)}.`;
      this.announce(this.hint.textContent);
      await wait(1200);
    } else if (this.hint) this.hint.hidden = true;
    await wait(LINGER);
    this.actions.mark([]);
  }

  #build(scene, study) {
    const { practice } = this;
    const limit = Math.max(...scene.truth.map(Math.abs));
    const palette = new Palette(study.palette, limit);
    const { size } = scene;
    const numbers = Boolean(study.numbers);
    const robot = practice ? "Robot" : `Robot ${scene.robot}`;
    this.truth = new ValueMap({ size, palette, numbers, marks: "truth", caption: "True map: value of each cell" });
    this.belief = new ValueMap({ size, palette, numbers, caption: `${robot}'s belief: value of each cell` });
    this.actions = new ActionMap({ size, caption: `${robot}'s plan: most probable action in each cell` });
    this.truth.onhover = (index, on) => this.belief.hover(index, on);
    this.belief.onhover = (index, on) => this.truth.hover(index, on);
    this.heading = h("h1", { tabindex: -1 });
    this.counter = h("p", { class: "counter" });
    this.pips = h("div", { class: "pips", "aria-hidden": "true" });
    this.status = h("p", { class: "status", id: "status" });
    this.hint = h("p", { class: "hint", hidden: true });
    this.button = h("button", {
      type: "button",
      class: "primary confirm",
      disabled: true,
      onclick: () => this.#confirm(),
    });
    const panel = (title, note, map) =>
      h("section", { class: "panel" }, h("h2", null, title), h("p", { class: "panel-note" }, note), map.element);
    this.element.replaceChildren(
      h("div", { class: "round-head" }, this.heading, h("div", { class: "round-step" }, this.counter, this.pips)),
      h(
        "div",
        { class: "panels" },
        panel("True map", "What is good and bad. Only you see it.", this.truth),
        panel(`${robot}’s belief`, "What it thinks is good and bad now.", this.belief),
        panel(`${robot}’s plan`, "Its most probable action in every cell.", this.actions),
      ),
      h("div", { class: "action-bar" }, h("div", { class: "action-text" }, this.status, this.hint), this.button),
      legend(palette, numbers),
    );
    listKeys(this.truth.overlay, {
      arrows: () => (this.busy ? [] : this.scene.arrows),
      size,
      focus: (index) => this.truth.focus(index),
      choose: (index, input) => this.#pick(index, input),
      chosen: () => this.choice,
      confirm: () => this.#confirm(),
    });
    this.truth.show(scene.truth);
    this.belief.show(scene.belief);
    this.actions.show(scene.policy);
  }

  /** The note between robots and maps. */
  #interlude(scene, study) {
    const { practice } = this;
    const total = study.maps;
    let title;
    let text;
    if (practice) {
      title = "First, a practice round";
      text = `Try it out: ${scene.steps} arrows on a practice map. This round does not count.`;
    } else if (scene.robot > 1) {
      title = `Now robot ${scene.robot}, same map`;
      text = `The map is the one you have just taught. Robot ${scene.robot} is another robot: it has seen nothing of what you showed ${scene.robot > 2 ? "the others" : "the one before"}, and it begins with the same beliefs as robot ${scene.robot - 1} did.`;
    } else if (scene.map > 1) {
      title = `Map ${scene.map} of ${total}: a new map, a new robot`;
      text = "Look at the true map first. The robot knows nothing about the earlier maps.";
    } else {
      title = `The practice is over. Map 1 of ${total}, robot 1`;
      text = `From now on your arrows count. On each of the ${total} ${total === 1 ? "map" : "maps"} you teach ${study.robots === 3 ? "three" : "two"} robots, ${scene.steps} arrows each. You can take a break at any time: every arrow is stored as soon as you confirm it.`;
    }
    const palette = this.truth.palette;
    const preview = new ValueMap({
      size: scene.size,
      palette,
      numbers: this.truth.numbers,
      marks: "truth",
      caption: "True map",
    });
    preview.show(scene.truth);
    const heading = h("h1", { tabindex: -1 }, title);
    const hidden = [...this.element.children];
    return new Promise((resolve) => {
      const start = h("button", { type: "button", class: "primary large", onclick: () => finish() }, "Start");
      const card = h(
        "section",
        { class: "card interlude" },
        h(
          "div",
          { class: "interlude-text" },
          practice && h("p", { class: "badge practice" }, "Practice"),
          heading,
          prose(text),
          h(
            "p",
            null,
            "Teach the whole map: after the last arrow, the robot should know the right way from every cell.",
          ),
          start,
        ),
        h("div", { class: "interlude-map" }, h("p", { class: "picture-title" }, "True map"), preview.element),
      );
      const finish = () => {
        this.endInterlude = null;
        this.element.replaceChildren(...hidden);
        resolve();
      };
      this.endInterlude = finish;
      this.element.replaceChildren(card);
      heading.focus({ preventScroll: true });
    });
  }

  #step(scene) {
    const { size, arrows } = scene;
    const label = this.practice ? "Practice round" : `Map ${scene.map} of ${scene.maps} · Robot ${scene.robot}`;
    this.heading.replaceChildren(
      label,
      ...(this.practice ? [" ", h("span", { class: "badge practice" }, "Practice – not counted")] : []),
    );
    this.counter.textContent = `Step ${scene.step + 1} of ${scene.steps}`;
    this.pips.replaceChildren(
      ...Array.from({ length: scene.steps }, (_, i) =>
        h("span", { class: i < scene.step ? "pip done" : i === scene.step ? "pip now" : "pip" }),
      ),
    );
    this.truth.show(scene.truth);
    this.belief.show(scene.belief);
    this.actions.show(scene.policy);
    const describe = (index) => {
      const { cell, action } = arrows[index];
      return `${place(cell, size)}, ${directionText(cell, action, size)}; true value ${number(scene.truth[cell], 0)}; robot believes ${number(scene.belief[cell])} here`;
    };
    for (const [map, main] of [
      [this.truth, true],
      [this.belief, false],
    ]) {
      map.arrows(arrows, {
        main,
        describe,
        label: "Arrows to pick from",
        onpick: (index, input) => this.#pick(index, input),
      });
      map.lock(false);
    }
    this.choice = null;
    this.sent = null;
    this.busy = false;
    this.button.disabled = true;
    this.button.textContent = "Show this arrow";
    this.status.textContent = "Which arrow helps the robot most now? Pick one, in either map.";
    if (!scene.last || scene.last.hint === null || scene.last.hint === undefined) this.hint.hidden = true;
    this.clock = new StepClock();
    this.record("shown", { round: scene.round, step: scene.step });
    this.announce(`${label}. Step ${scene.step + 1} of ${scene.steps}. ${arrows.length} arrows to pick from.`);
    this.#focusNear(this.lastCell ?? 0);
  }

  #focusNear(cell) {
    const { arrows, size } = this.scene;
    const far = (other) =>
      Math.abs(Math.floor(other / size) - Math.floor(cell / size)) + Math.abs((other % size) - (cell % size));
    let best = 0;
    arrows.forEach((arrow, i) => {
      if (far(arrow.cell) < far(arrows[best].cell)) best = i;
    });
    this.truth.focus(best);
  }

  #pick(index, input) {
    if (this.busy || !this.clock) return;
    const { round, step, arrows, size } = this.scene;
    const kind = this.clock.choose(index, input);
    if (kind === "same") return;
    this.record(kind, { round, step, choice: index });
    this.choice = index;
    this.truth.select(index);
    this.belief.select(index);
    const { cell, action } = arrows[index];
    this.status.textContent = `Your pick: ${place(cell, size)}, ${directionText(cell, action, size)}.`;
    this.button.disabled = false;
  }

  /** Focus lost while arrows are on the screen. */
  focusLost() {
    if (this.clock && !this.busy) this.clock.focusLosses += 1;
  }

  #confirm() {
    if (this.busy || this.choice === null) return;
    this.busy = true;
    this.button.disabled = true;
    this.button.textContent = "Showing …";
    this.truth.lock(true);
    this.belief.lock(true);
    const { round, step, arrows } = this.scene;
    this.lastCell = arrows[this.choice].cell;
    this.sent = this.choice;
    this.submit({ round, step, choice: this.choice, timing: this.clock.confirm() });
  }

  /** Cancel whatever is still being shown. */
  close() {
    this.turn += 1;
  }

  /** Return to the same step after a request was refused. */
  unlock() {
    this.busy = false;
    this.sent = null; // nothing to animate: the next State does not come from this choice
    this.button.disabled = this.choice === null;
    this.button.textContent = "Show this arrow";
    this.truth.lock(false);
    this.belief.lock(false);
  }
}
