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

const PROSE = ["p", "ul", "ol", "li", "strong", "em"];

/** A study's text as elements: the server has read its Markdown. Headings stand below one of level `under`. */
export function prose(blocks, under = 1) {
  return blocks.map((block) => {
    if (typeof block === "string") return block;
    const { tag, href, level, children } = block;
    const content = prose(children, under);
    if (tag === "heading") return h(`h${Math.min(under + level, 6)}`, null, content);
    if (tag === "a" && /^(https:\/\/|mailto:)/.test(href)) {
      return h("a", { href, rel: "noreferrer", target: "_blank" }, content);
    }
    return PROSE.includes(tag) ? h(tag, null, content) : content;
  });
}

/** A number as the page's language writes it, with a true minus sign. */
export function number(value, digits = 1) {
  const { lang, dir } = document.documentElement;
  const rounded = Number(Number(value).toFixed(digits)) || 0; // no −0
  const text = formatter(lang, digits).format(rounded).replace("-", "−");
  return dir === "rtl" ? `\u200e${text}` : text; // keeps the sign before the number
}

const formatters = new Map();

function formatter(lang, digits) {
  const key = `${lang} ${digits}`;
  if (!formatters.has(key)) {
    const options = { minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping: false };
    formatters.set(key, new Intl.NumberFormat(lang || "en", options));
  }
  return formatters.get(key);
}

/** The same, with a plus sign for positive numbers. */
export function signed(value, digits = 1) {
  const text = number(value, digits);
  return Number(Number(value).toFixed(digits)) > 0 ? `+${text}` : text;
}

/** A button that is disabled after a press until the answer arrives. */
export function once(label, work, kind = "primary") {
  const button = h("button", { type: "button", class: kind }, label);
  button.addEventListener("click", async () => {
    if (button.disabled) return;
    button.disabled = true;
    const moved = await work();
    if (!moved) button.disabled = false;
  });
  return button;
}

/** Lead to a field that needs an answer, and bring the error that says so into view with it. */
export function pointOut(problem, field) {
  field.focus({ preventScroll: true });
  problem.scrollIntoView({ block: "center" });
}

/** Whether the person prefers reduced motion. */
export function reducedMotion() {
  return window.matchMedia("(prefers-reduced-motion: reduce)").matches;
}

export function wait(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
