// Every word of the pages, in the visitor's language. Pages call loadWords before they show anything.

import { request } from "./api.js";

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
