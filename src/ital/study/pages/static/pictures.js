// The pictures of the instructions, drawn with the same maps that the study shows.

import { h } from "./dom.js";
import { ActionMap, ValueMap } from "./maps.js";

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
      "Three maps side by side: the true map with a star on the good cell and hatched bad cells; the robot's belief in other colours; an arrow in every cell for what the robot would do.",
      panel("True map", valueMap(palette, TRUTH, "truth", ARROWS), "★ good, hatched − bad; only you see it"),
      panel("Robot's belief", valueMap(palette, BELIEF, "belief", ARROWS), "+ it thinks good, − it thinks bad"),
      panel("Robot's plan", actionMap(POLICY), "which way it would go from each cell"),
    ),
  arrow: (palette) =>
    picture(
      "Left: an arrow pointing right in a cell says, if you were here, go right. Right: an arrow with a bar at its head points into the wall and says, stay here.",
      panel(
        "Go this way",
        valueMap(palette, TRUTH, "truth", [{ cell: 6, action: 1 }], 0),
        "if you were here, you should go right",
      ),
      panel(
        "Stay here",
        valueMap(palette, TRUTH, "truth", [{ cell: 7, action: 1 }], 0),
        "an arrow against the edge: if you were here, you should stay",
      ),
    ),
  belief: (palette) => {
    const right = moved(BELIEF, { 7: 8.5, 6: 1.4, 11: 1.2, 3: 1.8 });
    return picture(
      "The same arrow shown to two robots. The first believes that the good cell is bad: the arrow tells it much. The second knows it already: the arrow tells it little.",
      panel(
        "This robot does not know it yet",
        valueMap(palette, BELIEF, "belief", [{ cell: 11, action: 0 }], 0),
        "the arrow tells it a lot",
      ),
      panel(
        "This robot knows it already",
        valueMap(palette, right, "belief", [{ cell: 11, action: 0 }], 0),
        "the same arrow tells it little",
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
      "A belief before an arrow, and two beliefs after it: in one only the cells near the arrow have changed, in the other cells all over the map have changed. Changed cells are outlined.",
      panel("Before", valueMap(palette, BELIEF, "belief", [{ cell: 11, action: 0 }], 0)),
      then(),
      panel("Local effect", after(near, [7, 11]), "cells near the arrow change"),
      panel("Global effect", after(wide, [7, 3, 6, 2, 11, 10, 5, 9, 15, 0, 8]), "cells all over the map change"),
    );
  },
  "whole-map": (palette) =>
    picture(
      "Two robots' plans. The first finds the good cell from one side only. The second goes the right way from every cell.",
      panel("True map", valueMap(palette, TRUTH, "truth")),
      panel("Not yet", actionMap([1, 1, 1, 2, 3, 3, 1, 1, 3, 2, 2, 0, 3, 3, 2, 2]), "right only near the star"),
      panel("Well taught", actionMap(BEST), "right from every cell"),
    ),
  controls: (palette) => {
    const arrows = ARROWS;
    return picture(
      "Pick an arrow: it turns dark in both maps. Then press confirm.",
      panel("1. Pick an arrow", valueMap(palette, TRUTH, "truth", arrows, 2), "click or tap it, in either map"),
      panel(
        "2. It is dark in both",
        valueMap(palette, BELIEF, "belief", arrows, 2),
        "pick another to change your mind",
      ),
      h(
        "div",
        { class: "picture-panel picture-keys" },
        h("p", { class: "picture-title" }, "3. Confirm"),
        h("span", { class: "button primary", "aria-hidden": "true" }, "Show this arrow"),
        h("p", { class: "picture-caption" }, "With the keyboard"),
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
          " move",
        ),
        h("p", null, h("kbd", null, "Space"), " pick"),
        h("p", null, h("kbd", null, "Enter"), " confirm"),
      ),
    );
  },
};

/** The picture of that name, or nothing. */
export function drawPicture(name, palette) {
  return Object.hasOwn(PICTURES, name ?? "") ? PICTURES[name](palette) : null;
}
