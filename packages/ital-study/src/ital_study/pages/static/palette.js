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

export const PALETTES = Object.keys(STOPS);
