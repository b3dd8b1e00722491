// Look a participant up by identity, resume code, completion code or number. What is typed is sent, and kept nowhere.

import { h } from "./page.js";

const MATCHED = {
  identity: "by their identity",
  "resume code": "by their resume code",
  "completion code": "by a completion code of their own",
  number: "by their number",
};

/** The form and what it finds; `send` posts to the server, `remove` asks before it deletes a participant. */
export function lookUp({ send, stages, when, remove }) {
  const input = h("input", { id: "who", autocomplete: "off", spellcheck: "false", maxlength: 200, required: true });
  const results = h("div", { class: "look-up-results", role: "status" });
  const form = h(
    "form",
    { class: "look-up" },
    h("label", { for: "who" }, "Identity, resume code, completion code or number"),
    input,
    h("button", { type: "submit" }, "Look up"),
    h("button", { type: "button", class: "quiet", onclick: () => clear() }, "Clear"),
  );
  const clear = () => {
    input.value = "";
    results.replaceChildren();
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const who = input.value.trim();
    const answer = who && (await send("api/admin/find", { who }));
    if (!answer) return;
    results.replaceChildren(
      ...(answer.found.length
        ? answer.found.map((person) => found(person, { stages, when, remove: () => (clear(), remove(person)) }))
        : [h("p", null, answer.reason)]),
    );
  });
  return [form, results];
}

function found(person, { stages, when, remove }) {
  const deleted = person.stage === "deleted";
  const facts = deleted
    ? [["Deleted", [when(person.deleted), ` by the ${person.deleted_by}`]]]
    : [
        ["Mode", person.mode],
        ["Joined", when(person.joined)],
        ["Last seen", when(person.last_seen)],
        ["Ended", person.ended ? when(person.ended) : "not yet"],
        ["Duration", person.minutes === null ? "–" : `${person.minutes} minutes from consent to end`],
        ["Progress", `${person.done} of ${person.total} steps`],
        ["Language", person.language],
        ["Excluded", person.excluded ?? "no"],
      ];
  if (person.code_proves) facts.push(["This code proves", stages[person.code_proves] ?? person.code_proves]);
  facts.push(["What to pay", h("strong", null, person.pay)]);
  return h(
    "article",
    { class: "found-person" },
    h("h3", null, `Participant ${person.number}: ${deleted ? "deleted" : (stages[person.stage] ?? person.stage)}`),
    h("p", { class: "fine" }, `Found ${MATCHED[person.matched]}.`),
    h("dl", { class: "found" }, facts.map(([name, value]) => [h("dt", null, name), h("dd", null, value)])),
    !deleted && h("button", { type: "button", class: "danger for-own", onclick: remove }, "Delete on request"),
  );
}
