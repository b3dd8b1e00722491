// A page of questions: choices, scales, numbers and texts. What is filled in survives a reload.

import { h, pointOut, prose, t } from "./page.js";

const DRAFT = "ital-draft-answers";
const FIELDS = "input[type=number], input[type=text], textarea";

/** The answers that were filled in before a reload, if they are to this page and of this person. */
function draftOf(state) {
  try {
    const { whose, page, place, answers, seconds } = JSON.parse(sessionStorage.getItem(DRAFT)) ?? {};
    const asked = state.questions;
    if (whose === state.resume_code && page === asked.page && place === asked.place) return { answers, seconds };
  } catch {
    // a draft of another version of this page
  }
  return { answers: {}, seconds: 0 };
}

function radio(name, value, checked, attributes = {}) {
  return h("input", { type: "radio", name, value, checked, ...attributes });
}

/** Inputs of radios or boxes that are checked, as numbers. */
function checkedIn(element, name) {
  return [...element.querySelectorAll(`input[name="${CSS.escape(name)}"]:checked`)].map((input) => Number(input.value));
}

function optionList(item, draft, type) {
  return item.options.map((option, i) => {
    const chosen = [draft].flat().includes(i + 1);
    const input = h("input", { type, name: item.id, value: i + 1, checked: chosen });
    return h("label", { class: "option" }, input, h("span", null, option));
  });
}

/** Rows of radios: a table with the labels above where there is room, else every row with its own labels. */
function scale(item, draft) {
  const points = item.scale.map((label, i) => ({ value: i + 1, label }));
  const numbered = item.scale.some((label) => !label);
  const named = ({ value, label }) => (numbered && label ? `${value} – ${label}` : label || String(value));
  const head = h(
    "div",
    { class: "likert-row likert-head", "aria-hidden": "true" },
    h("span"),
    points.map((point) => h("span", null, numbered && h("b", null, String(point.value)), " ", point.label)),
  );
  const rows = item.rows.map((row) => {
    const id = `text-${item.id}-${row.id}`;
    return h(
      "div",
      { class: "likert-row", role: "radiogroup", "aria-labelledby": `legend-${item.id} ${id}` },
      h("span", { class: "likert-text", id }, row.text),
      points.map((point) =>
        h(
          "label",
          { class: "option point" },
          radio(`${item.id}.${row.id}`, point.value, draft?.[row.id] === point.value),
          h("span", null, named(point)),
        ),
      ),
    );
  });
  return h("div", { class: `likert points-${points.length}` }, head, rows);
}

// What depends on the kind of a question: its elements, and the answer in them (null: none; undefined: not valid).
const KINDS = {
  single: {
    make: (item, draft) => optionList(item, draft, "radio"),
    read: (item, box) => checkedIn(box, item.id)[0] ?? null,
  },
  multiple: {
    make: (item, draft) => optionList(item, draft ?? [], "checkbox"),
    read: (item, box) => {
      const chosen = checkedIn(box, item.id);
      return chosen.length > 0 ? chosen : null;
    },
  },
  likert: {
    make: scale,
    read: (item, box) => {
      const given = item.rows
        .map((row) => [row.id, checkedIn(box, `${item.id}.${row.id}`)[0]])
        .filter(([, value]) => value !== undefined);
      if (given.length === 0) return null;
      return item.required && given.length < item.rows.length ? undefined : Object.fromEntries(given);
    },
    asks: () => t("questions.every_row"),
  },
  number: {
    make: (item, draft) =>
      h("input", {
        type: "number",
        id: `input-${item.id}`,
        min: item.least,
        max: item.most,
        step: item.whole ? 1 : "any",
        inputmode: item.whole ? "numeric" : "decimal",
        autocomplete: "off",
        value: draft,
      }),
    read: (item, box) => {
      const input = box.querySelector("input");
      if (input.value === "") return input.validity.badInput ? undefined : null;
      const value = input.valueAsNumber;
      const fits = value >= item.least && value <= item.most && (!item.whole || Number.isInteger(value));
      return fits ? value : undefined;
    },
    asks: (item) => t(item.whole ? "questions.whole" : "questions.number", { least: item.least, most: item.most }),
  },
  text: {
    make: (item, draft) => {
      const common = { id: `input-${item.id}`, maxlength: item.longest, autocomplete: "off" };
      return item.longest > 120
        ? h("textarea", { ...common, rows: 4 }, draft ?? "")
        : h("input", { ...common, type: "text", class: "wide", value: draft });
    },
    read: (item, box) => box.querySelector(FIELDS).value.trim() || null,
  },
};

/** A question with its error beside it; numbered if it is not the only one. */
function question(item, draft, number) {
  const text = number ? t("check.question", { number, question: item.question }) : item.question;
  const { make } = KINDS[item.kind];
  const content = make(item, draft);
  const field = content instanceof HTMLElement && content.matches(FIELDS);
  const words = [h("span", null, text)];
  if (!item.required) words.push(" ", h("span", { class: "fine" }, t("questions.optional")));
  const problem = h("p", { id: `problem-${item.id}`, class: "field-problem", role: "alert" });
  const described = { "aria-describedby": `problem-${item.id}` };
  const box = field
    ? h("div", { class: "question" }, h("label", { for: `input-${item.id}` }, words), problem, content)
    : h("fieldset", { class: "question", ...described }, h("legend", { id: `legend-${item.id}` }, words), problem, content);
  if (field) content.setAttribute("aria-describedby", `problem-${item.id}`);
  box.dataset.kind = item.kind;
  return { item, box, problem };
}

/** The row of a scale that is still to be answered; none in other questions. */
function openRow(box) {
  const rows = [...box.querySelectorAll("[role=radiogroup]")];
  return rows.find((row) => !row.querySelector(":checked"));
}

/** Whether a question is answered as it asks for; if not, say so beside it. */
function check({ item, box, problem }) {
  const { read, asks } = KINDS[item.kind];
  const answer = read(item, box);
  const wrong = answer === undefined || (answer === null && item.required);
  if (wrong) openRow(box)?.before(problem);
  problem.textContent = wrong ? (asks?.(item) ?? t("questions.missing")) : "";
  box.querySelector(FIELDS)?.setAttribute("aria-invalid", String(wrong));
  return !wrong;
}

/** The first control of a question that still needs an answer. */
function toFill({ box }) {
  return (openRow(box) ?? box).querySelector("input,textarea");
}

/** The stage: a page of questions. */
export function questions(state, tools) {
  const { page, place, title, text, items } = state.questions;
  const { answers: draft, seconds } = draftOf(state);
  const began = performance.now() - 1000 * seconds;
  const spent = () => Math.round(performance.now() - began) / 1000;
  const asked = items.map((item, i) => question(item, draft[item.id] ?? null, items.length > 1 && i + 1));
  const given = () => {
    const answers = asked.map(({ item, box }) => [item.id, KINDS[item.kind].read(item, box)]);
    return Object.fromEntries(answers.filter(([, answer]) => answer !== null && answer !== undefined));
  };
  const send = h("button", { type: "submit", class: "primary" }, t("questions.send"));
  const form = h(
    "form",
    { class: "check questions", novalidate: true },
    asked.map(({ box }) => box),
    h("div", { class: "buttons" }, send),
  );
  form.addEventListener("input", (event) => {
    const kept = { whose: state.resume_code, page, place, answers: given(), seconds: spent() };
    sessionStorage.setItem(DRAFT, JSON.stringify(kept));
    const touched = asked.find(({ box }) => box.contains(event.target));
    if (touched?.problem.textContent) check(touched);
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const wrong = asked.filter((one) => !check(one));
    if (wrong.length > 0) {
      pointOut(wrong[0].problem, toFill(wrong[0]));
      return;
    }
    send.disabled = true;
    const moved = await tools.act("api/answers", { page, place, answers: given(), seconds: spent() });
    if (moved) sessionStorage.removeItem(DRAFT);
    else send.disabled = false;
  });
  return h(
    "section",
    { class: "card page" },
    h("h1", null, title),
    text.length > 0 && h("div", { class: "prose" }, prose(text)),
    form,
  );
}
