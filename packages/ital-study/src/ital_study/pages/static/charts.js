// Small charts as SVG: lines and bars. Dashes and a label identify a line, not only its colour.

import { h, number, s } from "./page.js";

export const LEARNERS = {
  naive: "naive",
  matched: "naive, longer steps",
  aware: "teacher-aware",
  adaptive: "adaptive",
  posterior: "belief from arrows",
  "ital-posterior": "belief from choices too",
};

/** The mark of a learner: a square, a diamond, a circle, a triangle, one upside down, or a plus. */
function dot(kind, x, y) {
  if (kind === "naive") return s("rect", { x: x - 4, y: y - 4, width: 8, height: 8, class: `dot ${kind}` });
  if (kind === "matched")
    return s("path", { d: `M${x - 5.5} ${y}L${x} ${y - 5.5}L${x + 5.5} ${y}L${x} ${y + 5.5}Z`, class: `dot ${kind}` });
  if (kind === "adaptive")
    return s("path", { d: `M${x - 5} ${y + 4}L${x} ${y - 5}L${x + 5} ${y + 4}Z`, class: `dot ${kind}` });
  if (kind === "posterior")
    return s("path", { d: `M${x - 5} ${y - 4}L${x} ${y + 5}L${x + 5} ${y - 4}Z`, class: `dot ${kind}` });
  if (kind === "ital-posterior")
    return s("path", { d: `M${x - 2} ${y - 6}h4v4h4v4h-4v4h-4v-4h-4v-4h4Z`, class: `dot ${kind}` });
  return s("circle", { cx: x, cy: y, r: 4.5, class: `dot ${kind}` });
}

function extent(values) {
  const finite = values.filter(Number.isFinite);
  if (finite.length === 0) return [0, 1];
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const room = (high - low) * 0.08 || Math.abs(high) * 0.05 || 1;
  return [low - room, high + room];
}

function nice(low, high, count) {
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((size) => size >= raw);
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-6; tick += step) ticks.push(tick);
  return { ticks, digits: Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)) };
}

/**
 * Lines over steps. `series`: [{kind, x, y, sem?}] with a kind of LEARNERS, `last` the right end of the axis,
 * `reference`: {value, name} for a dashed line.
 */
export function lineChart({ title, series, last, reference, note = "", width = 300, height = 170, label = "step" }) {
  const [left, right, top, bottom] = [40, 12, 10, 34];
  const shown = series.filter(({ y }) => y.some(Number.isFinite));
  const ends = ({ y, sem }) => y.flatMap((value, i) => [value - (sem?.[i] ?? 0), value + (sem?.[i] ?? 0)]);
  const [low, high] = extent([...shown.flatMap(ends), ...(reference ? [reference.value] : [])]);
  const end = Math.max(last ?? 1, 1);
  const px = (x) => left + ((width - left - right) * x) / end;
  const py = (y) => height - bottom - ((height - top - bottom) * (y - low)) / (high - low);
  const vertical = nice(low, high, 4);
  const across = nice(0, end, 5);
  const lines = shown.map(({ kind, x, y, sem }) => {
    const points = x.flatMap((at, i) => (Number.isFinite(y[i]) ? [[px(at), py(y[i])]] : []));
    const path = points.map(([a, b], i) => `${i ? "L" : "M"}${a.toFixed(1)} ${b.toFixed(1)}`).join("");
    const [endX, endY] = points[points.length - 1];
    const edge = (sign) => x.map((at, i) => `${px(at).toFixed(1)} ${py(y[i] + sign * (sem[i] ?? 0)).toFixed(1)}`);
    return [
      sem && s("path", { d: `M${edge(1).join("L")}L${edge(-1).reverse().join("L")}Z`, class: `band ${kind}` }),
      s("path", { d: path, class: `line ${kind}` }),
      dot(kind, endX, endY),
    ];
  });
  const spoken = shown
    .map(({ kind, y }) => {
      const known = y.filter(Number.isFinite);
      return `${LEARNERS[kind] ?? kind} from ${number(known[0], 2)} to ${number(known[known.length - 1], 2)}`;
    })
    .join("; ");
  return h(
    "figure",
    { class: "chart" },
    h("figcaption", null, title, note && h("span", { class: "chart-note" }, ` ${note}`)),
    s(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}: ${spoken || "nothing yet"}` },
      vertical.ticks.map((tick) => [
        s("line", { x1: left, x2: width - right, y1: py(tick), y2: py(tick), class: "grid-line" }),
        s("text", { x: left - 6, y: py(tick) + 4, class: "tick y" }, number(tick, vertical.digits)),
      ]),
      across.ticks
        .filter(Number.isInteger)
        .map((tick) => s("text", { x: px(tick), y: height - bottom + 15, class: "tick" }, String(tick))),
      s("text", { x: (left + width - right) / 2, y: height - 3, class: "axis" }, label),
      reference && [
        s("line", {
          x1: left,
          x2: width - right,
          y1: py(reference.value),
          y2: py(reference.value),
          class: "reference",
        }),
        s("text", { x: width - right, y: py(reference.value) - 4, class: "tick end" }, reference.name),
      ],
      lines,
      shown.length === 0 && s("text", { x: width / 2, y: height / 2, class: "axis" }, "nothing yet"),
    ),
  );
}

/** What the lines mean. */
export function lineKey(kinds = ["naive", "aware"]) {
  const item = (kind) =>
    h(
      "li",
      null,
      s(
        "svg",
        { viewBox: "0 0 44 14", class: "key", "aria-hidden": "true" },
        s("path", { d: "M2 7H42", class: `line ${kind}` }),
        dot(kind, 22, 7),
      ),
      LEARNERS[kind],
    );
  return h("ul", { class: "line-key" }, kinds.map(item));
}

/** Horizontal bars with their numbers: [{name, value, note}]. */
export function bars(title, rows) {
  const most = Math.max(1, ...rows.map(({ value }) => value));
  return h(
    "figure",
    { class: "chart bars" },
    title && h("figcaption", null, title),
    h(
      "table",
      null,
      h(
        "tbody",
        null,
        rows.map(({ name, value, note }) => {
          const bar = h("span", { class: "bar" });
          bar.style.width = `${(100 * value) / most}%`;
          return h(
            "tr",
            null,
            h("th", { scope: "row" }, name),
            h("td", { class: "bar-cell" }, bar),
            h("td", { class: "bar-number" }, note ?? String(value)),
          );
        }),
      ),
    ),
  );
}

/** How often values fall into intervals. */
export function histogram(title, values, unit) {
  const known = values.filter((value) => Number.isFinite(value) && value >= 0);
  const [width, height, bottom] = [300, 150, 34];
  const top = Math.max(1, ...known);
  const { ticks } = nice(0, top, 8);
  const step = ticks.length > 1 ? ticks[1] - ticks[0] : top;
  const bins = Math.max(1, Math.ceil((top + 1e-9) / step));
  const counts = Array(bins).fill(0);
  known.forEach((value) => (counts[Math.min(Math.floor(value / step), bins - 1)] += 1));
  const most = Math.max(1, ...counts);
  const w = (width - 40) / bins;
  const middle = [...known].sort((a, b) => a - b)[Math.floor(known.length / 2)];
  return h(
    "figure",
    { class: "chart" },
    h("figcaption", null, title),
    s(
      "svg",
      {
        viewBox: `0 0 ${width} ${height}`,
        role: "img",
        "aria-label": known.length
          ? `${title}: ${known.length} values, middle one ${number(middle)} ${unit}`
          : `${title}: nothing yet`,
      },
      counts.map((count, i) => {
        const tall = ((height - bottom - 22) * count) / most;
        return [
          s("rect", {
            x: 20 + i * w + 1,
            y: height - bottom - tall,
            width: Math.max(w - 2, 1),
            height: tall,
            class: "column",
          }),
          count > 0 &&
            s("text", { x: 20 + (i + 0.5) * w, y: height - bottom - tall - 4, class: "tick" }, String(count)),
        ];
      }),
      s("line", { x1: 20, x2: width - 20, y1: height - bottom, y2: height - bottom, class: "base-line" }),
      Array.from({ length: bins + 1 }, (_, i) =>
        s("text", { x: 20 + i * w, y: height - bottom + 15, class: "tick" }, number(i * step, step < 1 ? 1 : 0)),
      ),
      s("text", { x: width / 2, y: height - 3, class: "axis" }, unit),
      known.length === 0 && s("text", { x: width / 2, y: height / 2, class: "axis" }, "nothing yet"),
    ),
  );
}
