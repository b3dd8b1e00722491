// Data quality on the dashboard: flags, exclusions, and the dialog that asks for a reason.

import { h } from "./page.js";

const NAMES = {
  attention: "attention",
  by_script: "script",
  too_fast: "too fast",
  same_place: "same place",
  at_chance: "at chance",
  looked_away: "looked away",
  long_pause: "long pause",
  small_screen: "small screen",
};

export function isExcluded(one) {
  return typeof one.excluded === "string";
}

/** Whether a participant counts, in one word. */
export function usableText(one) {
  if (isExcluded(one)) return "excluded";
  return one.usable ? "yes" : "no";
}

/** The flags of a participant as short badges, whose titles explain them, and the reason of an exclusion. */
export function qualityBadges(one, texts) {
  const badges = (one.flags ?? []).map((flag) =>
    h("span", { class: `badge flag flag-${flag}`, title: `This person ${texts[flag] ?? flag}.` }, NAMES[flag] ?? flag),
  );
  if (isExcluded(one)) badges.push(h("p", { class: "fine reason" }, `Excluded: ${one.excluded}`));
  if (badges.length) return badges;
  return one.flags ? "no flags" : "–";
}

/** The button that excludes somebody for a reason, or includes them again. */
export function excludeButton(one, tools) {
  const out = isExcluded(one);
  return h(
    "button",
    { type: "button", class: "for-run", "data-key": `exclude-${one.number}`, onclick: () => (out ? include : exclude)(one, tools) },
    out ? "Include" : "Exclude",
    h("span", { class: "sr-only" }, ` participant ${one.number}`),
  );
}

function exclude({ number }, { ask, send, notice, refresh }) {
  const reason = { label: "Reason (for the audit and the report)", typed: "" };
  ask(
    `Exclude participant ${number}?`,
    "The data are kept. The participant no longer counts as a usable completion, and the filtered analysis leaves them out. You can include them again.",
    "Exclude",
    "primary",
    reason,
    async () => {
      if (await send("api/admin/exclude", { number, reason: reason.typed })) notice(`Participant ${number} is excluded.`);
      await refresh();
    },
  );
}

function include({ number, excluded }, { ask, send, notice, refresh }) {
  ask(
    `Include participant ${number} again?`,
    `Excluded because: ${excluded}`,
    "Include",
    "primary",
    null,
    async () => {
      if (await send("api/admin/exclude", { number, reason: null })) notice(`Participant ${number} is included again.`);
      await refresh();
    },
  );
}
