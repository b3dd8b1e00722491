// What every page needs: elements, words in the visitor's language, and requests to the server.

// ---------------------------------------------------------------- elements

// Without inline styles, and without markup in strings.
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

// ---------------------------------------------------------------- requests

const TIMEOUT = 15_000;
const PAUSES = [1000, 2000, 4000, 8000];

/** The server refused the request. */
export class Refused extends Error {
  constructor(status, answer, retryAfter) {
    super(answer?.error ?? "The server could not answer this request.");
    this.status = status;
    this.code = answer?.code ?? "";
    this.state = answer?.state ?? null;
    this.retryAfter = retryAfter;
  }
}

/** The server could not be reached. */
export class Unreachable extends Error {}

/** One request; JSON in and out. */
export async function request(method, path, body, { csrf, keepalive = false } = {}) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (csrf) headers["X-CSRF-Token"] = csrf;
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), TIMEOUT);
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
      cache: "no-store",
      redirect: "error",
      signal: abort.signal,
      keepalive,
    });
    const answer = await response.json().catch(() => null);
    if (response.ok && answer !== null) return answer;
    if ([502, 503, 504].includes(response.status)) throw new Unreachable("the server is away");
    if (response.ok) throw new Unreachable("the answer was cut off");
    throw new Refused(response.status, answer, Number(response.headers.get("Retry-After")) || 0);
  } catch (error) {
    if (error instanceof Refused || error instanceof Unreachable) throw error;
    throw new Unreachable(error.message);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Repeat `attempt`, which is safe to repeat, until the server answers. Calls `trouble(true)` when it stops answering,
 * `trouble(false)` after.
 */
export async function insist(attempt, trouble) {
  for (let tries = 0; ; tries += 1) {
    try {
      const answer = await attempt();
      if (tries > 0) trouble(false);
      return answer;
    } catch (error) {
      const busy = error instanceof Refused && error.status === 429;
      if (!busy && !(error instanceof Unreachable)) {
        if (tries > 0) trouble(false);
        throw error;
      }
      trouble(true, busy);
      const pause = busy ? Math.min(Math.max(error.retryAfter * 1000, 1000), 60_000) : PAUSES[Math.min(tries, 3)];
      await Promise.race([wait(pause), again()]);
    }
  }
}

const waiting = new Set();

/** Resolves when the browser is online again or the person asks to try now. */
function again() {
  return new Promise((resolve) => waiting.add(resolve));
}

export function tryNow() {
  waiting.forEach((resolve) => resolve());
  waiting.clear();
}

window.addEventListener("online", tryNow);

// ---------------------------------------------------------------- words

// Pages call loadWords before they show anything.
let words = {};
export let language = "en";
export let languages = {}; // of the study: names by tag
export let smallestScreen = 0; // width below which the study asks for a larger one

/** Fetch the words of the study's language that fits best: that of the link, or the browser's. */
export async function loadWords(wishes = linkWishes(), path = "api/words") {
  const answer = await request("GET", `${path}?wishes=${encodeURIComponent(wishes)}`);
  ({ words, language, languages = {}, smallest_screen: smallestScreen = 0 } = answer);
  document.documentElement.lang = language;
  document.documentElement.dir = words.direction;
  for (const node of document.querySelectorAll("[data-word]")) node.textContent = t(node.dataset.word);
  for (const node of document.querySelectorAll("[data-word-label]")) node.setAttribute("aria-label", t(node.dataset.wordLabel));
}

/** The languages that the visitor would like, the dearest first. */
export function linkWishes() {
  const asked = new URLSearchParams(location.search).get("lang");
  const tags = [asked, ...navigator.languages].filter((tag) => /^[A-Za-z0-9-]{1,11}$/.test(tag ?? ""));
  return tags.slice(0, 8).join(",");
}

/** The word or sentence of a key, with its fields filled in: t("check.missing", { number: 2 }). */
export function t(key, values = {}) {
  const word = words[key] ?? key;
  return word.replace(/\{([a-z_]+)\}/g, (field, name) => (name in values ? String(values[name]) : field));
}

/** Why the server refused something, by the error's code. */
export function refusal({ code }) {
  return t(`refused.${code}` in words ? `refused.${code}` : "refused.other");
}
