// An attention check: a screen between two steps that asks for a certain arrow. No robot sees the choice.

import { h, s } from "./dom.js";
import { t } from "./words.js";

/** Where a choice is sent. */
export function pathOf(scene) {
  return scene.attention ? "api/attention" : "api/steps";
}

/** What tells one screen of teaching from another. */
export function placeOf(scene) {
  return `${scene?.round} ${scene?.step} ${scene?.attention ?? ""}`;
}

/** The map as a small picture, with the corner that is asked for. */
function picture(corner, size) {
  const row = corner.startsWith("top") ? 0 : size - 1;
  const column = corner.endsWith("left") ? 0 : size - 1;
  const cells = Array.from({ length: size * size }, (_, i) =>
    s("rect", {
      x: (i % size) * 10 + 1,
      y: Math.floor(i / size) * 10 + 1,
      width: 8,
      height: 8,
      class: i === row * size + column ? "asked-cell" : "other-cell",
    }),
  );
  const box = { viewBox: `0 0 ${size * 10} ${size * 10}`, "aria-hidden": "true", focusable: "false" };
  return s("svg", { class: "asked-picture", ...box }, cells);
}

/** The place for the request, above the maps. */
export function attentionBox() {
  return h("section", { class: "asked", id: "asked", hidden: true });
}

/** Ask for the arrow. The request stays on the screen while arrows are picked. */
export function askAttention(view, scene) {
  const asked = Boolean(scene.attention);
  view.element.classList.toggle("attention", asked);
  view.asked.hidden = !asked;
  view.truth.overlay.removeAttribute("aria-describedby");
  if (!asked) return;
  const request = t(`attention.${scene.attention}`);
  view.asked.replaceChildren(
    picture(scene.attention, scene.size),
    h(
      "div",
      null,
      h("h2", null, t("attention.title")),
      h("p", { class: "asked-text" }, request),
      h("p", { class: "asked-note" }, t("attention.note")),
    ),
  );
  view.truth.overlay.setAttribute("aria-describedby", view.asked.id);
  view.status.textContent = "";
  view.counter.textContent = t("attention.title");
  view.button.textContent = t("attention.confirm");
  view.announce(`${t("attention.title")}. ${request} ${t("attention.note")}`);
}
