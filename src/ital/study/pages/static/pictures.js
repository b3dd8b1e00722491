// The pictures of the instructions, drawn with the same maps that the study shows.

import { h } from "./dom.js";
import { ActionMap, ValueMap } from "./maps.js";
import { t } from "./words.js";

const SIZE = 4;
const TRUTH = [0, 0, 0, 0, 0, -2, -2, 10, 0, -2, 0, 0, 0, 0, 0, -2];
const BELIEF = [0.8, -0.4, 1.2, -1, -1.5, 0.6, 0.3, -0.7, 1.7, 0.4, -0.2, 1.1, -0.9, 0.2, -1.3, 0.5];
const POLICY = [1, 1, 2, 3, 2, 0, 0, 3, 3, 3, 1, 1, 0, 0, 1, 0];
const BEST = [1, 1, 1, 2, 0, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 0];
const ARROWS = [
  { cell: 1, action: 1 },
  { cell: 8, action: 0 },
  { cell: 11, action: 0 },
  { cell: 14, action: 0 },
];

function valueMap(palette, values, marks, arrows, chosen) {
  const map = new ValueMap({ size: Math.sqrt(values.length), palette, caption: "", marks });
  map.show(values, false);
  map.table.remove();
  if (arrows) {
    map.arrows(arrows, { onpick: () => {}, main: false });
    map.overlay.classList.add("still");
    if (chosen !== undefined) map.select(chosen);
  }
  return map;
}

function actionMap(policy) {
  const map = new ActionMap({ size: Math.sqrt(policy.length), caption: "" });
  map.show(policy);
  map.table.remove();
  return map;
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
  return h("span", { class: "picture-then", "aria-hidden": "true" }, "→");
}

function moved(from, changes) {
  return from.map((value, cell) => value + (changes[cell] ?? 0));
}

const PICTURES = {
  maps: (palette) =>
    picture(
      t("picture.maps_label"),
      panel(t("maps.truth"), valueMap(palette, TRUTH, "truth", ARROWS), t("picture.maps_truth")),
      panel(t("maps.belief_practice"), valueMap(palette, BELIEF, "belief", ARROWS), t("picture.maps_belief")),
      panel(t("maps.plan_practice"), actionMap(POLICY), t("picture.maps_plan")),
    ),
  arrow: (palette) =>
    picture(
      t("picture.arrow_label"),
      panel(
        t("picture.arrow_go"),
        valueMap(palette, TRUTH, "truth", [{ cell: 6, action: 1 }], 0),
        t("picture.arrow_go_note"),
      ),
      panel(
        t("picture.arrow_stay"),
        valueMap(palette, TRUTH, "truth", [{ cell: 7, action: 1 }], 0),
        t("picture.arrow_stay_note"),
      ),
    ),
  belief: (palette) => {
    const right = moved(BELIEF, { 7: 8.5, 6: 1.4, 11: 1.2, 3: 1.8 });
    return picture(
      t("picture.belief_label"),
      panel(
        t("picture.belief_new"),
        valueMap(palette, BELIEF, "belief", [{ cell: 11, action: 0 }], 0),
        t("picture.belief_new_note"),
      ),
      panel(
        t("picture.belief_known"),
        valueMap(palette, right, "belief", [{ cell: 11, action: 0 }], 0),
        t("picture.belief_known_note"),
      ),
    );
  },
  "local-global": (palette) => {
    const near = moved(BELIEF, { 7: 3.4, 11: -0.6 });
    const wide = moved(BELIEF, {
      7: 5.2,
      3: 1.5,
      6: -1.1,
      2: 0.4,
      11: 0.9,
      10: 0.8,
      5: -1.8,
      9: -1.6,
      15: -1.5,
      0: -0.8,
      8: -1.2,
    });
    const after = (values, cells) => {
      const map = valueMap(palette, values, "belief");
      map.mark(cells);
      return map;
    };
    return picture(
      t("picture.effect_label"),
      panel(t("picture.effect_before"), valueMap(palette, BELIEF, "belief", [{ cell: 11, action: 0 }], 0)),
      then(),
      panel(t("picture.effect_near"), after(near, [7, 11]), t("picture.effect_near_note")),
      panel(t("picture.effect_far"), after(wide, [7, 3, 6, 2, 11, 10, 5, 9, 15, 0, 8]), t("picture.effect_far_note")),
    );
  },
  "whole-map": (palette) =>
    picture(
      t("picture.whole_label"),
      panel(t("maps.truth"), valueMap(palette, TRUTH, "truth")),
      panel(t("picture.whole_not_yet"), actionMap([1, 1, 1, 2, 3, 3, 1, 1, 3, 2, 2, 0, 3, 3, 2, 2]), t("picture.whole_not_yet_note")),
      panel(t("picture.whole_well"), actionMap(BEST), t("picture.whole_well_note")),
    ),
  controls: (palette) => {
    const arrows = ARROWS;
    return picture(
      t("picture.controls_label"),
      panel(t("picture.controls_pick"), valueMap(palette, TRUTH, "truth", arrows, 2), t("picture.controls_pick_note")),
      panel(
        t("picture.controls_both"),
        valueMap(palette, BELIEF, "belief", arrows, 2),
        t("picture.controls_both_note"),
      ),
      h(
        "div",
        { class: "picture-panel picture-keys" },
        h("p", { class: "picture-title" }, t("picture.controls_confirm")),
        h("span", { class: "button primary", "aria-hidden": "true" }, t("step.confirm")),
        h("p", { class: "picture-caption" }, t("picture.controls_keys")),
        h(
          "p",
          null,
          h("kbd", null, "←"),
          " ",
          h("kbd", null, "→"),
          " ",
          h("kbd", null, "↑"),
          " ",
          h("kbd", null, "↓"),
          ` ${t("picture.controls_move")}`,
        ),
        h("p", null, h("kbd", null, t("picture.controls_space")), ` ${t("picture.controls_space_note")}`),
        h("p", null, h("kbd", null, t("picture.controls_enter")), ` ${t("picture.controls_enter_note")}`),
      ),
    );
  },
};

/** The picture of that name, or nothing. */
export function drawPicture(name, palette) {
  return Object.hasOwn(PICTURES, name ?? "") ? PICTURES[name](palette) : null;
}
