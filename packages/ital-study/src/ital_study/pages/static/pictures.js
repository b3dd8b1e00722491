// The pictures of the instructions: small worlds of the study's size and values, drawn with the study's own maps.

import { ActionMap, intoWall, ValueMap } from "./maps.js";
import { h, t } from "./page.js";

const [UP, RIGHT] = [0, 1];

/** The world of the pictures: what is true, what a robot believes, and where things are. */
class Example {
  constructor(size, [worst, best], palette) {
    Object.assign(this, { size, palette });
    const at = (row, column) => row * size + column;
    this.star = at(1, size - 1);
    this.truth = Array(size * size).fill(0);
    const bad = [at(1, size - 2), at(1, Math.max(size - 3, 1)), at(2, 1), at(size - 1, 0), at(size - 1, size - 1)];
    for (const cell of bad) this.truth[cell] = Math.min(worst, 0);
    this.truth[this.star] = best;
    // Random ideas, the same for everybody; the robot is wrong about the star.
    this.belief = this.truth.map((_, cell) => (((cell * cell * 17 + cell * 29 + 11) % 41) / 20 - 1) * 0.2 * best);
    this.belief[this.star] = -0.07 * best;
    this.below = { cell: at(2, size - 1), action: UP };
    this.arrows = [
      { cell: 1, action: RIGHT },
      this.below,
      { cell: at(2, 0), action: UP },
      { cell: at(size - 1, 1), action: UP },
    ];
  }

  values(values, marks, arrows, chosen) {
    const map = new ValueMap({ size: this.size, palette: this.palette, caption: "", marks });
    map.show(values, false);
    map.table.remove();
    if (arrows) {
      map.arrows(arrows, { onpick: () => {}, main: false });
      map.overlay.classList.add("still");
      if (chosen !== undefined) map.select(chosen);
    }
    return map;
  }

  /** The direction of the neighbour that the robot thinks best, in every cell. */
  plan() {
    const { size, belief } = this;
    const next = [-size, 1, size, -1];
    const value = (cell, action) => belief[intoWall(cell, action, size) ? cell : cell + next[action]];
    const map = new ActionMap({ size, caption: "" });
    map.show(belief.map((_, cell) => [0, 1, 2, 3].reduce((best, a) => (value(cell, a) > value(cell, best) ? a : best))));
    map.table.remove();
    return map;
  }

  /** The belief after a part of the way to the truth: `share(cell)` of it. */
  after(share) {
    return this.belief.map((value, cell) => value + share(cell) * (this.truth[cell] - value));
  }

  /** Steps from a cell to the star. */
  far(cell) {
    const { size, star } = this;
    return Math.abs(Math.floor(cell / size) - Math.floor(star / size)) + Math.abs((cell % size) - (star % size));
  }
}

function panel(title, map, caption) {
  return h(
    "div",
    { class: "picture-panel" },
    h("p", { class: "picture-title" }, title),
    map.element ?? map,
    caption && h("p", { class: "picture-caption" }, caption),
  );
}

function picture(label, ...parts) {
  const row = h("div", { class: parts.length > 3 ? "picture-row tight" : "picture-row" }, parts);
  return h("figure", { class: "picture", role: "img", "aria-label": label }, row);
}

function then() {
  const arrow = document.documentElement.dir === "rtl" ? "←" : "→";
  return h("span", { class: "picture-then", "aria-hidden": "true" }, arrow);
}

const PICTURES = {
  world: (world) => {
    const map = world.values(world.truth, "truth");
    return picture(t("picture.world_label"), panel(t("maps.truth"), map, t("picture.world_note")));
  },
  maps: (world) =>
    picture(
      t("picture.maps_label"),
      panel(t("maps.truth"), world.values(world.truth, "truth", world.arrows), t("picture.maps_truth")),
      panel(t("maps.belief_practice"), world.values(world.belief, "belief", world.arrows), t("picture.maps_belief")),
      panel(t("maps.plan_practice"), world.plan(), t("picture.maps_plan")),
    ),
  arrow: (world) => {
    const one = (cell) => world.values(world.truth, "truth", [{ cell, action: RIGHT }], 0);
    return picture(
      t("picture.arrow_label"),
      panel(t("picture.arrow_go"), one(world.star - 1), t("picture.arrow_go_note")),
      panel(t("picture.arrow_stay"), one(world.star), t("picture.arrow_stay_note")),
    );
  },
  belief: (world) => {
    const known = world.after((cell) => (cell === world.star ? 0.9 : 0));
    const one = (values) => world.values(values, "belief", [world.below], 0);
    return picture(
      t("picture.belief_label"),
      panel(t("picture.belief_new"), one(world.belief), t("picture.belief_new_note")),
      panel(t("picture.belief_known"), one(known), t("picture.belief_known_note")),
    );
  },
  "local-global": (world) => {
    const after = (share) => {
      const map = world.values(world.after(share), "belief");
      map.mark(world.belief.flatMap((_, cell) => (share(cell) > 0 ? [cell] : [])));
      return map;
    };
    const near = after((cell) => (world.far(cell) < 2 ? 0.4 : 0));
    const everywhere = after((cell) => (world.far(cell) < 2 || (cell * 7) % 3 ? 0.6 : 0));
    return picture(
      t("picture.effect_label"),
      panel(t("picture.effect_before"), world.values(world.belief, "belief", [world.below], 0)),
      then(),
      panel(t("picture.effect_near"), near, t("picture.effect_near_note")),
      panel(t("picture.effect_far"), everywhere, t("picture.effect_far_note")),
    );
  },
  "whole-map": (world) => {
    const near = world.after((cell) => (world.far(cell) < 2 ? 0.9 : 0));
    const well = world.after(() => 0.985);
    return picture(
      t("picture.whole_label"),
      panel(t("maps.truth"), world.values(world.truth, "truth")),
      panel(t("picture.whole_not_yet"), world.values(near, "belief"), t("picture.whole_not_yet_note")),
      panel(t("picture.whole_well"), world.values(well, "belief"), t("picture.whole_well_note")),
    );
  },
  controls: (world) => {
    const picked = (values, marks) => world.values(values, marks, world.arrows, 1);
    const key = (name, note) => h("p", null, h("kbd", null, name), ` ${note}`);
    return picture(
      t("picture.controls_label"),
      panel(t("picture.controls_pick"), picked(world.truth, "truth"), t("picture.controls_pick_note")),
      panel(t("picture.controls_both"), picked(world.belief, "belief"), t("picture.controls_both_note")),
      h(
        "div",
        { class: "picture-panel picture-keys" },
        h("p", { class: "picture-title" }, t("picture.controls_confirm")),
        h("span", { class: "button primary", "aria-hidden": "true" }, t("step.confirm")),
        h("p", { class: "picture-caption" }, t("picture.controls_keys")),
        h(
          "p",
          null,
          ["←", "→", "↑", "↓"].flatMap((name) => [h("kbd", null, name), " "]),
          t("picture.controls_move"),
        ),
        key(t("picture.controls_space"), t("picture.controls_space_note")),
        key(t("picture.controls_enter"), t("picture.controls_enter_note")),
      ),
    );
  },
};

/** The picture of that name, or nothing; `study` knows the size of maps and the values of cells. */
export function drawPicture(name, palette, study) {
  return Object.hasOwn(PICTURES, name ?? "") ? PICTURES[name](new Example(study.size, study.values, palette)) : null;
}
