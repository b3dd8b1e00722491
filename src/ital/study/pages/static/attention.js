// An attention check: a screen between two steps that asks for a certain arrow. No robot sees the choice.

import { t } from "./words.js";

/** Where a choice is sent. */
export function pathOf(scene) {
  return scene.attention ? "api/attention" : "api/steps";
}

/** What tells one screen of teaching from another. */
export function placeOf(scene) {
  return `${scene?.round} ${scene?.step} ${scene?.attention ?? ""}`;
}

/** Ask for the arrow. The request stays on the screen while arrows are picked. */
export function askAttention(view, scene) {
  const asked = Boolean(scene.attention);
  if (!asked && view.element.classList.contains("attention")) view.hint.hidden = true;
  view.element.classList.toggle("attention", asked);
  if (!asked) return;
  view.status.textContent = "";
  view.counter.textContent = t("attention.title");
  view.hint.textContent = t(`attention.${scene.attention}`);
  view.hint.hidden = false;
  view.button.textContent = t("attention.confirm");
  view.announce(`${t("attention.title")}. ${view.hint.textContent}`);
}
