// The page between two parts of a study: when the next one is open, and the button that begins it.

import { h, once, t } from "./page.js";

const two = (number) => String(number).padStart(2, "0");

/** A time in digits, on the person's own clock: the same in every language. */
function timeOf(iso) {
  const date = new Date(iso);
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join("-");
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

export function waiting({ part }, tools) {
  const fields = {
    part: part.next - 1,
    next: part.next,
    parts: part.parts,
    date: part.opens_at && timeOf(part.opens_at),
    until: part.closes_at && timeOf(part.closes_at),
  };
  return [
    h("h1", null, t(`part.${part.state}_title`, fields)),
    h("p", { class: "lead" }, t(`part.${part.state}`, fields)),
    part.state !== "late" && part.closes_at && h("p", null, t("part.until", fields)),
    part.state === "late" && h("p", null, t("ended.contact")),
    part.state === "open" &&
      h(
        "div",
        { class: "buttons" },
        once(t("part.begin", fields), () => tools.act("api/part", {})),
      ),
  ];
}
