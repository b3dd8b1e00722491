// One round of teaching: three maps, the arrows to pick from, the legend, and the robot's update after each arrow.

import { listKeys } from "./keys.js";
import { ActionMap, canBeSeen, chip, directionText, largestChange, Palette, place, sample, scale, ValueMap } from "./maps.js";
import { h, number, s, signed, t, wait } from "./page.js";

const UPDATE = 900;
const LINGER = 450;

/** The legend that stays on the screen. */
export function legend(palette, truth, numbers = false) {
  const [worst, best] = [Math.min(...truth), Math.max(...truth)];
  const value = (number) => ({ value: signed(number, Number.isInteger(number) ? 0 : 1) });
  const item = (picture, text) => h("li", null, picture, h("span", null, text));
  return h(
    "section",
    { class: "legend", "aria-label": t("legend.label") },
    h("div", { class: "legend-scale" }, h("span", null, t("legend.bad")), scale(palette), h("span", null, t("legend.good"))),
    h(
      "ul",
      null,
      best > 0 && item(sample(palette, best, "truth", numbers), t("legend.truly_good", value(best))),
      worst < 0 && item(sample(palette, worst, "truth", numbers), t("legend.truly_bad", value(worst))),
      !numbers &&
        item(
          [sample(palette, palette.limit / 4, "belief"), sample(palette, -palette.limit / 4, "belief")],
          t("legend.robot_thinks"),
        ),
      item(chip(1, false), t("legend.arrow")),
      item(chip(1, false, "chosen"), t("legend.pick")),
      item(chip(1, true), t("legend.stay")),
    ),
  );
}

/** Where the belief changed most, with enough digits to see the difference. */
function changeText(before, after, size) {
  const most = largestChange(before, after);
  const change = Math.abs(after[most] - before[most]);
  const digits = Math.min(Math.max(Math.ceil(1 - Math.log10(change)), 2), 6);
  const [from, to] = [number(before[most], digits), number(after[most], digits)];
  return t("step.changed", { place: place(most, size), from, to });
}

/** The effect of the update, in words. */
function updateText(before, after, seen, changedActions, size) {
  const count = changedActions.length;
  const actions =
    count === 0 ? t("step.actions_same") : count === 1 ? t("step.actions_one") : t("step.actions", { count });
  return `${seen ? "" : `${t("step.too_little")} `}${changeText(before, after, size)} ${actions}`;
}

/** The times of one step. */
class StepClock {
  constructor() {
    this.shownAt = Date.now();
    this.begin = performance.now();
    this.choice = null;
    this.changes = 0;
    this.focusLosses = 0;
    this.input = null;
  }

  /** Record a pick; returns whether it is the first, another one, or the same again. */
  choose(index, input) {
    if (index === this.choice) return "same";
    const kind = this.choice === null ? "chosen" : "choice_changed";
    if (this.choice === null) this.firstChoiceAt = Date.now();
    else this.changes += 1;
    this.choice = index;
    this.chosenAt = Date.now();
    this.chosen = performance.now();
    this.input = input;
    return kind;
  }

  confirm() {
    const seconds = (end) => Math.round(end - this.begin) / 1000;
    return {
      shown_at: this.shownAt,
      first_choice_at: this.firstChoiceAt,
      chosen_at: this.chosenAt,
      confirmed_at: Date.now(),
      seconds_to_choice: seconds(this.chosen),
      seconds_to_confirm: seconds(performance.now()),
      choice_changes: this.changes,
      focus_losses: this.focusLosses,
      input: this.input,
    };
  }
}

// An attention check is a screen between two steps that asks for a certain arrow. No robot sees the choice.

/** Where a choice is sent. */
export function pathOf(scene) {
  return scene.attention ? "api/attention" : "api/steps";
}

/** What tells one screen of teaching from another. */
export function placeOf(scene) {
  return `${scene?.round} ${scene?.step} ${scene?.attention ?? ""}`;
}

/** The map as a small picture, with the corner that is asked for. */
function askedPicture(corner, size) {
  const row = corner.startsWith("top") ? 0 : size - 1;
  const column = corner.endsWith("left") ? 0 : size - 1;
  const cells = Array.from({ length: size * size }, (_, i) =>
    s("rect", {
      x: (i % size) * 10 + 1,
      y: Math.floor(i / size) * 10 + 1,
      width: 8,
      height: 8,
      class: i === row * size + column ? "asked-cell" : "other-cell",
    }),
  );
  const box = { viewBox: `0 0 ${size * 10} ${size * 10}`, "aria-hidden": "true", focusable: "false" };
  return s("svg", { class: "asked-picture", ...box }, cells);
}

/** The place for the request, above the maps. */
function attentionBox() {
  return h("section", { class: "asked", id: "asked", hidden: true });
}

/** Ask for the arrow. The request stays on the screen while arrows are picked. */
function askAttention(view, scene) {
  const asked = Boolean(scene.attention);
  view.element.classList.toggle("attention", asked);
  view.asked.hidden = !asked;
  view.truth.overlay.removeAttribute("aria-describedby");
  if (!asked) return;
  const request = t(`attention.${scene.attention}`);
  view.asked.replaceChildren(
    askedPicture(scene.attention, scene.size),
    h(
      "div",
      null,
      h("h2", null, t("attention.title")),
      h("p", { class: "asked-text" }, request),
      h("p", { class: "asked-note" }, t("attention.note")),
    ),
  );
  view.truth.overlay.setAttribute("aria-describedby", view.asked.id);
  view.status.textContent = "";
  view.counter.textContent = t("attention.title");
  view.button.textContent = t("attention.confirm");
  view.announce(`${t("attention.title")}. ${request} ${t("attention.note")}`);
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
    this.status.textContent = t("step.updating");
    const visible = canBeSeen(this.belief.palette, before, seen.belief);
    this.announce(updateText(before, seen.belief, visible, changed, scene.size));
    await this.belief.animate(seen.belief, UPDATE);
    if (!visible) this.#offerChange(before, seen.belief, scene);
    if (hint !== null) {
      this.hint.hidden = false;
      const arrow = scene.arrows[hint];
      this.hint.textContent =
        hint === choice
          ? t("step.hint_same")
          : t("step.hint", {
              place: place(arrow.cell, scene.size),
              arrow: directionText(arrow.cell, arrow.action, scene.size),
            });
      this.announce(this.hint.textContent);
      await wait(1200);
    } else if (this.hint) this.hint.hidden = true;
    await wait(LINGER);
    this.actions.mark([]);
  }

  /** Say that the change is too small to be seen; show the largest one on request. It stays until the next arrow. */
  #offerChange(before, after, { round, step, size }) {
    const show = h("button", { type: "button", class: "quiet" }, t("step.largest"));
    show.addEventListener("click", () => {
      this.record("largest_change_shown", { round, step });
      this.belief.mark([largestChange(before, after)]);
      this.change.textContent = changeText(before, after, size);
      this.truth.focus(this.truth.first());
    });
    this.change.replaceChildren(t("step.too_little"), " ", show);
    this.change.hidden = false;
  }

  #build(scene, study) {
    const { practice } = this;
    const limit = Math.max(...scene.truth.map(Math.abs));
    const palette = new Palette(study.palette, limit);
    const { size } = scene;
    const numbers = Boolean(study.numbers);
    const { robot } = scene;
    const [belief, plan] = practice ? ["maps.belief_practice", "maps.plan_practice"] : ["maps.belief", "maps.plan"];
    this.truth = new ValueMap({ size, palette, numbers, marks: "truth", caption: t("maps.truth_caption") });
    this.belief = new ValueMap({ size, palette, numbers, caption: t(`${belief}_caption`, { robot }) });
    this.actions = new ActionMap({ size, caption: t(`${plan}_caption`, { robot }) });
    this.truth.onhover = (index, on) => this.belief.hover(index, on);
    this.belief.onhover = (index, on) => this.truth.hover(index, on);
    this.heading = h("h1", { tabindex: -1 });
    this.counter = h("p", { class: "counter" });
    this.pips = h("div", { class: "pips", "aria-hidden": "true" });
    this.status = h("p", { class: "status", id: "status" });
    this.hint = h("p", { class: "hint", hidden: true });
    this.asked = attentionBox();
    this.change = h("p", { class: "change", role: "status", hidden: true });
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
      this.asked,
      h(
        "div",
        { class: "panels" },
        panel(t("maps.truth"), t("maps.truth_note"), this.truth),
        panel(t(belief, { robot }), t("maps.belief_note"), this.belief),
        panel(t(plan, { robot }), t("maps.plan_note"), this.actions),
      ),
      h("div", { class: "action-bar" }, h("div", { class: "action-text" }, this.change, this.status, this.hint), this.button),
      legend(palette, scene.truth, numbers),
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
    const { map, robot, steps } = scene;
    const { maps, robots } = study;
    let title;
    let text;
    if (practice) {
      title = t("round.practice_title");
      text = t("round.practice_text", { steps });
    } else if (robot > 1) {
      title = t("round.robot_title", { robot });
      text = t(robot > 2 ? "round.robot_text_more" : "round.robot_text", { robot });
    } else if (map > 1) {
      title = t("round.map_title", { map, maps });
      text = t("round.map_text");
    } else {
      title = t("round.first_title", { maps });
      text = t(maps === 1 ? "round.first_text_one" : "round.first_text", { maps, robots, steps });
    }
    const palette = this.truth.palette;
    const preview = new ValueMap({
      size: scene.size,
      palette,
      numbers: this.truth.numbers,
      marks: "truth",
      caption: t("maps.truth"),
    });
    preview.show(scene.truth);
    const heading = h("h1", { tabindex: -1 }, title);
    const hidden = [...this.element.children];
    return new Promise((resolve) => {
      const start = h("button", { type: "button", class: "primary large", onclick: () => finish() }, t("round.start"));
      const card = h(
        "section",
        { class: "card interlude" },
        h(
          "div",
          { class: "interlude-text" },
          practice && h("p", { class: "badge practice" }, t("round.badge")),
          heading,
          h("p", null, text),
          h("p", null, t("round.goal")),
          start,
        ),
        h("div", { class: "interlude-map" }, h("p", { class: "picture-title" }, t("maps.truth")), preview.element),
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
    const { map, maps, robot, steps } = scene;
    const label = this.practice ? t("round.practice") : t("round.place", { map, maps, robot });
    this.heading.replaceChildren(
      label,
      ...(this.practice ? [" ", h("span", { class: "badge practice" }, t("round.badge_step"))] : []),
    );
    this.counter.textContent = t("round.step", { step: scene.step + 1, steps });
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
      return t("maps.choice", {
        place: place(cell, size),
        arrow: directionText(cell, action, size),
        truth: number(scene.truth[cell], 0),
        belief: number(scene.belief[cell]),
      });
    };
    for (const [map, main] of [
      [this.truth, true],
      [this.belief, false],
    ]) {
      map.arrows(arrows, {
        main,
        describe,
        label: t("maps.arrows"),
        onpick: (index, input) => this.#pick(index, input),
      });
      map.lock(false);
    }
    this.choice = null;
    this.sent = null;
    this.busy = false;
    this.button.disabled = true;
    this.button.textContent = t("step.confirm");
    this.status.textContent = t("step.ask");
    if (!scene.last || scene.last.hint === null || scene.last.hint === undefined) this.hint.hidden = true;
    this.clock = new StepClock();
    this.record("shown", { round: scene.round, step: scene.step });
    this.announce(`${label}. ${this.counter.textContent}. ${t("round.arrows", { count: arrows.length })}`);
    askAttention(this, scene);
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
    this.status.textContent = t("step.picked", { place: place(cell, size), arrow: directionText(cell, action, size) });
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
    this.button.textContent = t("step.sending");
    if (!this.scene.attention) {
      this.change.hidden = true; // after a check, what the last arrow did is still of interest
      this.belief.mark([]);
    }
    this.truth.lock(true);
    this.belief.lock(true);
    const { round, step, arrows } = this.scene;
    if (!this.scene.attention) this.lastCell = arrows[this.choice].cell;
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
    this.button.textContent = t("step.confirm");
    this.truth.lock(false);
    this.belief.lock(false);
    askAttention(this, this.scene);
  }
}
