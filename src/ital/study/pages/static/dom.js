// Small helpers to build HTML and SVG without inline styles or markup in strings.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "text") node.textContent = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** An HTML element: h("p", {class: "note", onclick: f}, "text", child). */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Plain text with blank lines between paragraphs; lines that begin with "- " make a list. */
export function prose(text) {
  return (text ?? "")
    .split(/\n\s*\n/)
    .map((block) =>
      block
        .split("\n")
        .map((line) => line.trim())
        .filter(Boolean),
    )
    .filter((lines) => lines.length > 0)
    .flatMap((lines) => {
      const first = lines.findIndex((line) => line.startsWith("- "));
      if (first < 0) return [h("p", null, lines.join(" "))];
      const items = [];
      for (const line of lines.slice(first)) {
        if (line.startsWith("- ")) items.push(line.slice(2));
        else items[items.length - 1] += ` ${line}`;
      }
      const list = h(
        "ul",
        null,
        items.map((item) => h("li", null, item)),
      );
      return first > 0 ? [h("p", null, lines.slice(0, first).join(" ")), list] : [list];
    });
}

/** A number with a true minus sign. */
export function number(value, digits = 1) {
  const rounded = Number(value).toFixed(digits);
  const clean = Number(rounded) === 0 ? (0).toFixed(digits) : rounded;
  return clean.replace("-", "−");
}

/** The same, with a plus sign for positive numbers. */
export function signed(value, digits = 1) {
  const text = number(value, digits);
  return Number(Number(value).toFixed(digits)) > 0 ? `+${text}` : text;
}

/** Whether the person prefers reduced motion. */
export function reducedMotion() {
  return window.matchMedia("(prefers-reduced-motion: reduce)").matches;
}

export function wait(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
