// The maps: values as coloured cells with marks, actions as arrows, and the arrows a person can pick.

import { h, number, reducedMotion, s, signed, t } from "./page.js";

// ---------------------------------------------------------------- colours

// Two symmetric diverging palettes. Both sides have the same lightness at the same distance from zero, so that
// strength never depends on telling the hues apart; the sign is always drawn as a mark as well.
const STOPS = {
  safe: {
    low: ["#f7f7f7", "#ded1fd", "#c3acf9", "#a889f1", "#8e64e7"],
    high: ["#f7f7f7", "#f7d0af", "#f0aa72", "#e48231", "#c76414"],
    names: ["purple", "orange"],
  },
  paper: {
    low: ["#f7f7f7", "#c6dafd", "#98bcfc", "#6a9dfb", "#3f7cf3"],
    high: ["#f7f7f7", "#fdcbc4", "#faa095", "#ee756a", "#de463f"],
    names: ["blue", "red"],
  },
};

function rgb(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

/** The relative luminance of "#rrggbb" as WCAG defines it. */
export function luminance(hex) {
  const [r, g, b] = rgb(hex).map((part) => {
    const c = part / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** The contrast of two colours, 1 to 21. */
export function contrast(one, other) {
  const [a, b] = [luminance(one), luminance(other)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

/** The largest difference between two colours in red, green or blue, of 255. */
export function difference(one, other) {
  return Math.max(...rgb(one).map((part, i) => Math.abs(part - rgb(other)[i])));
}

/** Black or white, whichever reads better on a colour. */
export function inkOn(hex) {
  return contrast(hex, "#000000") >= contrast(hex, "#ffffff") ? "#000000" : "#ffffff";
}

export class Palette {
  /** `limit` is the size of value that gets the full colour. */
  constructor(name, limit) {
    this.name = name in STOPS ? name : "safe";
    this.limit = limit > 0 ? limit : 1;
  }

  get names() {
    return STOPS[this.name].names;
  }

  /** −1 … 1; a square root on each side, so that small beliefs show as well as the largest reward. */
  strength(value) {
    const part = Math.min(Math.abs(value) / this.limit, 1);
    return Math.sign(value) * Math.sqrt(part);
  }

  colour(value) {
    return this.colourOfStrength(this.strength(value));
  }

  colourOfStrength(strength) {
    const stops = STOPS[this.name][strength < 0 ? "low" : "high"];
    const place = Math.min(Math.abs(strength), 1) * (stops.length - 1);
    const at = Math.min(Math.floor(place), stops.length - 2);
    const [from, to] = [rgb(stops[at]), rgb(stops[at + 1])];
    const mixed = from.map((part, i) => Math.round(part + (to[i] - part) * (place - at)));
    return `#${mixed.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
  }
}

// ---------------------------------------------------------------- drawing

const DIRECTIONS = ["up", "right", "down", "left"];
const CELL = 100;
const ARROW = "M50 14 L82 50 H62 V84 H38 V50 H18 Z";
const WALL = "M16 -2 H84 V10 H16 Z";
const STAR = "M50 4 L62 37 L97 38 L69 59 L79 93 L50 73 L21 93 L31 59 L3 38 L38 37 Z";
let patterns = 0;

/** Where a cell is, in words: "row 2, column 3". */
export function place(cell, size) {
  return t("maps.place", { row: Math.floor(cell / size) + 1, column: (cell % size) + 1 });
}

/** Whether an action leads out of the grid: the robot then stays. */
export function intoWall(cell, action, size) {
  const [row, column] = [Math.floor(cell / size), cell % size];
  return [row === 0, column === size - 1, row === size - 1, column === 0][action];
}

/** "arrow pointing right", and what it means at the edge. */
export function directionText(cell, action, size) {
  return t(`arrow.${direction(cell, action, size)}`);
}

/** The part of a key that names a direction: "right", or "right_wall" at the edge. */
function direction(cell, action, size) {
  return DIRECTIONS[action] + (intoWall(cell, action, size) ? "_wall" : "");
}

/** An arrow in a 100 × 100 box; one that runs into the wall has a bar before its head. */
export function arrowShape(action, wall, attributes) {
  return s(
    "g",
    { transform: `rotate(${action * 90} 50 50)`, ...attributes },
    s("path", { d: ARROW, transform: wall ? "translate(0 6)" : null }),
    wall && s("path", { d: WALL }),
  );
}

/** The round arrow as the legend and the pictures show it. */
export function chip(action, wall, className = "") {
  return s(
    "svg",
    { class: `chip ${className}`, viewBox: "0 0 100 100", "aria-hidden": "true", focusable: "false" },
    s("circle", { cx: 50, cy: 50, r: 45, class: "chip-disc" }),
    s("g", { transform: "translate(19 19) scale(0.62)" }, arrowShape(action, wall, { class: "chip-arrow" })),
  );
}

export function star(attributes) {
  return s("path", { d: STAR, ...attributes });
}

/** The kind of device that made a click; assistive technology clicks without a pointer. */
function inputOf(event) {
  if (event.pointerType === "touch" || event.pointerType === "pen") return "touch";
  return event.pointerType === "mouse" || event.detail > 0 ? "mouse" : "keyboard";
}

function cellFrame(size) {
  const side = size * CELL;
  const lines = [];
  for (let i = 1; i < size; i += 1) {
    lines.push(`M${i * CELL} 0 V${side} M0 ${i * CELL} H${side}`);
  }
  return [
    s("path", { d: lines.join(" "), class: "map-lines" }),
    s("rect", { x: 1.5, y: 1.5, width: side - 3, height: side - 3, rx: 14, class: "map-frame" }),
  ];
}

function corner(cell, size) {
  return `translate(${(cell % size) * CELL} ${Math.floor(cell / size) * CELL})`;
}

function hiddenTable(caption, texts, size) {
  const rows = [];
  for (let row = 0; row < size; row += 1) {
    rows.push(
      h(
        "tr",
        null,
        h("th", { scope: "row" }, t("maps.row", { row: row + 1 })),
        texts.slice(row * size, (row + 1) * size).map((text) => h("td", null, text)),
      ),
    );
  }
  const columns = Array.from({ length: size }, (_, i) => h("th", { scope: "col" }, t("maps.column", { column: i + 1 })));
  return h(
    "table",
    null,
    h("caption", null, caption),
    h("thead", null, h("tr", null, h("td"), columns)),
    h("tbody", null, rows),
  );
}

/** The cells that changed visibly, and not much less than the one that changed most. */
export function mostChanged(from, to) {
  const change = to.map((value, cell) => Math.abs(value - from[cell]));
  const least = Math.max(0.05, 0.3 * Math.max(...change));
  return change.flatMap((size, cell) => (size >= least ? [cell] : []));
}

const SEEN = 8; // least difference of colours that is seen in a cell, of 255

/** Whether the change of some cell can be seen. */
export function canBeSeen(palette, from, to) {
  return to.some((value, cell) => difference(palette.colour(value), palette.colour(from[cell])) >= SEEN);
}

/** The cell that changed most. */
export function largestChange(from, to) {
  const change = (cell) => Math.abs(to[cell] - from[cell]);
  return to.reduce((most, _, cell) => (change(cell) > change(most) ? cell : most), 0);
}

/** A map of values. Signs are drawn as marks: a star and a hatched minus on the true map, + and − on a belief. */
export class ValueMap {
  constructor({ size, palette, caption, marks = "belief", numbers = false, framed = true }) {
    Object.assign(this, { size, palette, caption, marks, numbers });
    this.values = [];
    this.hatch = `hatch-${(patterns += 1)}`;
    const cells = size * size;
    this.cells = Array.from({ length: cells }, (_, cell) =>
      s("rect", { transform: corner(cell, size), width: CELL, height: CELL }),
    );
    this.marksLayer = Array.from({ length: cells }, (_, cell) => s("g", { transform: corner(cell, size) }));
    this.rings = s("g", { class: "map-rings" });
    const side = size * CELL;
    const clip = `${this.hatch}-clip`;
    this.svg = s(
      "svg",
      { class: "map-svg", viewBox: `0 0 ${side} ${side}`, "aria-hidden": "true", focusable: "false" },
      s(
        "defs",
        null,
        s(
          "pattern",
          { id: this.hatch, width: 14, height: 14, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
          s("line", { x1: 0, y1: 0, x2: 0, y2: 14, class: "hatch-line" }),
        ),
        s("clipPath", { id: clip }, s("rect", { width: side, height: side, rx: 14 })),
      ),
      s("g", { "clip-path": `url(#${clip})` }, this.cells, this.marksLayer),
      framed && cellFrame(size),
      this.rings,
    );
    this.overlay = h("div", { class: "map-overlay", hidden: true });
    this.table = h("div", { class: "sr-only" });
    this.element = h("div", { class: numbers ? "map with-numbers" : "map" }, this.svg, this.overlay, this.table);
  }

  /** Draw the values at once; `spoken` says whether to update the table for screen readers too. */
  show(values, spoken = true) {
    this.values = [...values];
    values.forEach((value, cell) => {
      const colour = this.palette.colour(value);
      this.cells[cell].setAttribute("fill", colour);
      this.marksLayer[cell].replaceChildren(...this.#mark(value, inkOn(colour)));
    });
    if (spoken) this.speak();
  }

  speak() {
    const texts = this.values.map((value) => number(value, this.marks === "truth" ? 0 : 1));
    this.table.replaceChildren(hiddenTable(this.caption, texts, this.size));
  }

  #mark(value, ink) {
    const parts = [];
    if (this.marks === "truth") {
      if (value < 0) {
        parts.push(s("rect", { width: CELL, height: CELL, fill: `url(#${this.hatch})` }));
        if (!this.numbers) parts.push(s("path", { d: "M7 15 H31 V23 H7 Z", fill: ink }));
      }
      if (value > 0)
        parts.push(
          star({ fill: ink, transform: this.numbers ? "translate(67 9) scale(0.26)" : "translate(4 4) scale(0.28)" }),
        );
    } else if (!this.numbers) {
      const arm = 14 * Math.abs(this.palette.strength(value)) ** 0.75;
      if (Math.abs(value) >= 0.05) {
        const thick = Math.max(1.8, arm * 0.3);
        const bar = (width, height) =>
          s("rect", { x: 19 - width, y: 19 - height, width: 2 * width, height: 2 * height, fill: ink });
        parts.push(bar(arm, thick));
        if (value > 0) parts.push(bar(thick, arm));
      }
    }
    if (this.numbers) {
      parts.push(
        s("text", { x: 10, y: 30, class: "map-number", fill: ink }, signed(value, this.marks === "truth" ? 0 : 1)),
      );
    }
    return parts;
  }

  /** Animate from the current values to new ones; with reduced motion they change at once. */
  async animate(to, duration) {
    const from = this.values;
    this.mark(mostChanged(from, to));
    if (reducedMotion()) {
      this.show(to);
      await new Promise((done) => setTimeout(done, duration));
    } else {
      const begin = performance.now();
      await new Promise((done) => {
        const frame = (now) => {
          const part = Math.min(Math.max((now - begin) / duration, 0), 1);
          const eased = part * part * (3 - 2 * part);
          this.show(
            to.map((value, i) => from[i] + (value - from[i]) * eased),
            false,
          );
          if (part < 1) requestAnimationFrame(frame);
          else done();
        };
        requestAnimationFrame(frame);
        setTimeout(done, duration + 400); // a hidden tab gets no frames
      });
      this.show(to);
    }
    this.mark([]);
  }

  /** Outline cells that have just changed. */
  mark(cells) {
    this.rings.replaceChildren(
      ...cells.map((cell) =>
        s("rect", {
          transform: corner(cell, this.size),
          x: 5,
          y: 5,
          width: 90,
          height: 90,
          rx: 10,
          class: "map-changed",
        }),
      ),
    );
  }

  /** Put arrows to pick on the map. `main` marks the map whose list serves keyboard and screen reader. */
  arrows(arrows, { label, describe, onpick, main }) {
    const { size } = this;
    this.overlay.hidden = false;
    this.options = arrows.map(({ cell, action }, index) => {
      const option = h(
        "div",
        { class: "choice", "data-index": index, ...(main ? { role: "option", tabindex: -1 } : {}) },
        chip(action, intoWall(cell, action, size)),
      );
      if (main) {
        option.setAttribute("aria-label", describe(index));
        option.setAttribute("aria-selected", "false");
      }
      option.style.left = `${((cell % size) * 100) / size}%`;
      option.style.top = `${(Math.floor(cell / size) * 100) / size}%`;
      option.style.width = option.style.height = `${100 / size}%`;
      option.addEventListener("click", (event) => onpick(index, inputOf(event)));
      option.addEventListener("pointerenter", () => this.onhover?.(index, true));
      option.addEventListener("pointerleave", () => this.onhover?.(index, false));
      return option;
    });
    const reading = arrows.map((_, i) => i).sort((a, b) => arrows[a].cell - arrows[b].cell);
    if (main) {
      this.overlay.setAttribute("role", "listbox");
      this.overlay.setAttribute("aria-label", label);
    } else {
      this.overlay.setAttribute("aria-hidden", "true");
    }
    this.overlay.replaceChildren(...reading.map((i) => this.options[i]));
    if (main && reading.length) this.options[reading[0]].tabIndex = 0;
  }

  noArrows() {
    this.overlay.hidden = true;
    this.overlay.replaceChildren();
    this.options = [];
  }

  select(index) {
    this.options.forEach((option, i) => {
      option.classList.toggle("chosen", i === index);
      if (option.hasAttribute("role")) option.setAttribute("aria-selected", String(i === index));
    });
    if (this.options[index].hasAttribute("role")) this.#tabStop(index);
  }

  /** Move the keyboard's focus to an arrow. */
  focus(index) {
    if (!this.options?.[index]) return;
    this.#tabStop(index);
    this.options[index].focus({ preventScroll: true });
  }

  /** The first arrow in reading order. */
  first() {
    return Number(this.overlay.firstElementChild?.dataset.index);
  }

  #tabStop(index) {
    this.options.forEach((option, i) => {
      option.tabIndex = i === index ? 0 : -1;
    });
  }

  hover(index, on) {
    this.options[index]?.classList.toggle("hovered", on);
  }

  lock(locked) {
    this.overlay.classList.toggle("locked", locked);
    if (this.overlay.getAttribute("role") === "listbox") this.overlay.setAttribute("aria-disabled", String(locked));
  }

  flag(index, on = true) {
    this.options[index]?.classList.toggle("hinted", on);
  }
}

/** The most probable action in every cell. */
export class ActionMap {
  constructor({ size, caption }) {
    Object.assign(this, { size, caption });
    this.arrowsLayer = Array.from({ length: size * size }, (_, cell) => s("g", { transform: corner(cell, size) }));
    this.rings = s("g", { class: "map-rings" });
    const side = size * CELL;
    this.svg = s(
      "svg",
      { class: "map-svg", viewBox: `0 0 ${side} ${side}`, "aria-hidden": "true", focusable: "false" },
      s("rect", { width: side, height: side, rx: 14, class: "map-plain" }),
      this.arrowsLayer,
      cellFrame(size),
      this.rings,
    );
    this.table = h("div", { class: "sr-only" });
    this.element = h("div", { class: "map" }, this.svg, this.table);
    this.policy = [];
  }

  show(policy) {
    const before = this.policy;
    this.policy = [...policy];
    policy.forEach((action, cell) => {
      const wall = intoWall(cell, action, this.size);
      this.arrowsLayer[cell].replaceChildren(
        s("g", { transform: "translate(23 23) scale(0.54)" }, arrowShape(action, wall, { class: "map-action" })),
      );
    });
    this.table.replaceChildren(
      hiddenTable(
        this.caption,
        policy.map((action, cell) => t(`action.${direction(cell, action, this.size)}`)),
        this.size,
      ),
    );
    return policy.flatMap((action, cell) => (before.length && before[cell] !== action ? [cell] : []));
  }

  mark(cells) {
    this.rings.replaceChildren(
      ...cells.map((cell) =>
        s("rect", {
          transform: corner(cell, this.size),
          x: 5,
          y: 5,
          width: 90,
          height: 90,
          rx: 10,
          class: "map-changed",
        }),
      ),
    );
  }
}

/** The scale of colours with its marks. */
export function scale(palette) {
  const steps = 40;
  const width = 220;
  const bars = Array.from({ length: steps }, (_, i) =>
    s("rect", {
      x: (i * width) / steps,
      y: 0,
      width: width / steps + 0.6,
      height: 14,
      fill: palette.colourOfStrength(((i + 0.5) / steps) * 2 - 1),
    }),
  );
  const { limit } = palette;
  const ticks = [-limit, -limit / 5, 0, limit / 5, limit];
  const labels = ticks.map((value) => {
    const x = ((palette.strength(value) + 1) / 2) * width;
    return [
      s("line", { x1: x, x2: x, y1: 14, y2: 18, class: "scale-tick" }),
      s("text", { x, y: 31, class: "scale-text" }, signed(value, Number.isInteger(value) ? 0 : 1)),
    ];
  });
  return s(
    "svg",
    {
      class: "scale",
      viewBox: `-16 0 ${width + 32} 35`,
      role: "img",
      "aria-label": t("legend.scale", {
        low: t(`colour.${palette.names[0]}`),
        least: number(-limit, 0),
        high: t(`colour.${palette.names[1]}`),
        most: number(limit, 0),
      }),
    },
    bars,
    s("rect", { x: 0, y: 0, width, height: 14, class: "scale-frame" }),
    labels,
  );
}

/** A small cell as the legend shows it. */
export function sample(palette, value, marks, numbers = false) {
  const map = new ValueMap({ size: 1, palette, caption: "", marks, numbers, framed: false });
  map.show([value], false);
  map.svg.setAttribute("class", "sample");
  map.svg.setAttribute("viewBox", "0 0 64 64");
  return map.svg;
}
