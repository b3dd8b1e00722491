// One function per stage makes the page's content from the State. `tools` sends answers and shows notes.

import { about, afterwards, farewell, identity, link, wayBack } from "./endings.js";
import { Palette } from "./maps.js";
import { h, language, languages, once, pointOut, prose, t } from "./page.js";
import { waiting } from "./parts.js";
import { drawPicture } from "./pictures.js";
import { questions } from "./questions.js";

function card(...content) {
  return h("section", { class: "card page" }, content);
}

function resumeForm(tools, open = false) {
  const input = h("input", {
    id: "code",
    name: "code",
    autocomplete: "off",
    autocapitalize: "characters",
    spellcheck: "false",
    maxlength: 32,
    placeholder: "ABCD-EFGH-JKLM",
    "aria-describedby": "code-problem",
  });
  const problem = h("p", { id: "code-problem", class: "field-problem", role: "alert" });
  const form = h(
    "form",
    { class: "resume-form" },
    h("label", { for: "code" }, t("resume.label")),
    h("div", { class: "field-row" }, input, h("button", { type: "submit" }, t("resume.send"))),
    problem,
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const code = input.value.trim().toUpperCase();
    problem.textContent = code ? "" : t("resume.missing");
    if (!code) return;
    const answer = await tools.join({ resume: code });
    if (answer) problem.textContent = answer;
  });
  return h("details", { class: "resume-box", open }, h("summary", null, t("resume.title")), form);
}

/** A title with a choice of languages beside it, where the study has several. */
function titleWithLanguages(title, tools) {
  const heading = h("h1", null, title);
  if (Object.keys(languages).length < 2) return heading;
  const choice = h(
    "select",
    { id: "language", onchange: () => tools.speak(choice.value) },
    Object.entries(languages).map(([tag, name]) =>
      h("option", { value: tag, lang: tag, selected: tag === language }, name),
    ),
  );
  return h(
    "div",
    { class: "title-row" },
    heading,
    h("div", { class: "language" }, h("label", { for: "language", class: "sr-only" }, t("page.language")), choice),
  );
}

function welcome(state, tools) {
  const start = once(t("welcome.start"), async () => {
    const problem = await tools.join();
    if (problem) tools.notice(problem, true);
    return !problem;
  });
  start.classList.add("large");
  return card(
    titleWithLanguages(t("welcome.title"), tools),
    state.message
      ? h("p", { class: "field-problem", role: "alert" }, state.message)
      : h("p", { class: "lead" }, t("welcome.lead")),
    h("p", null, t("welcome.text")),
    h("div", { class: "buttons" }, start),
    resumeForm(tools),
  );
}

function consent(state, tools) {
  const { version, text } = state.consent;
  const answer = (accepted) => () => tools.act("api/consent", { accepted, version });
  return card(
    titleWithLanguages(t("consent.title"), tools),
    h("div", { class: "prose", tabindex: 0, role: "region", "aria-label": t("consent.label") }, prose(text)),
    h(
      "div",
      { class: "buttons" },
      once(t("consent.yes"), answer(true)),
      once(t("consent.no"), answer(false), ""),
    ),
    h("p", { class: "fine" }, t("consent.version", { version })),
    resumeForm(tools),
  );
}

function pictureOf(page, state) {
  const { palette, values } = state.study;
  return drawPicture(page.picture, new Palette(palette, Math.max(...values.map(Math.abs))), state.study);
}

function instructions(state, tools) {
  const pages = state.instructions;
  const at = Math.min(tools.page, pages.length - 1);
  const last = at === pages.length - 1;
  const picture = pictureOf(pages[at], state);
  const text = h("div", { class: "prose" }, prose(pages[at].text));
  const content = card(
    h("p", { class: "kicker" }, t("instructions.page", { page: at + 1, pages: pages.length })),
    h("h1", null, pages[at].title),
    picture ? h("div", { class: "split-row" }, text, picture) : text,
    h(
      "div",
      { class: "buttons spread" },
      h("button", { type: "button", disabled: at === 0, onclick: () => tools.turn(at - 1) }, t("instructions.back")),
      h(
        "div",
        { class: "dots", "aria-hidden": "true" },
        pages.map((_, i) => h("span", { class: i === at ? "dot now" : "dot" })),
      ),
      last
        ? once(t("instructions.done"), () => tools.act("api/instructions", {}))
        : h("button", { type: "button", class: "primary", onclick: () => tools.turn(at + 1) }, t("instructions.next")),
    ),
  );
  if (picture) content.classList.add("split");
  return content;
}

function readAgain(pages, state) {
  const dialog = h("dialog", { class: "card dialog wide", "aria-labelledby": "again-title" });
  const close = () => {
    dialog.close();
    dialog.remove();
  };
  dialog.append(
    h("h2", { id: "again-title" }, t("instructions.title")),
    h(
      "div",
      { class: "dialog-scroll", tabindex: 0, role: "region", "aria-label": t("instructions.label") },
      pages.map((page) => h("section", null, h("h3", null, page.title), prose(page.text, 3), pictureOf(page, state))),
    ),
    h(
      "div",
      { class: "buttons" },
      h("button", { type: "button", class: "primary", onclick: close }, t("check.return")),
    ),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function check(state, tools) {
  const { questions, tries_left: left } = state.check;
  const problem = h("p", { class: "field-problem", id: "check-problem", role: "alert" });
  const form = h(
    "form",
    { class: "check", novalidate: true },
    questions.map(({ question, options }, q) =>
      h(
        "fieldset",
        null,
        h("legend", null, t("check.question", { number: q + 1, question })),
        options.map((option, o) =>
          h(
            "label",
            { class: "option" },
            h("input", { type: "radio", name: `question-${q}`, value: o }),
            h("span", null, option),
          ),
        ),
      ),
    ),
    problem,
  );
  const pages = state.instructions ?? tools.instructions();
  const send = h("button", { type: "submit", class: "primary" }, t("check.send"));
  form.append(
    h(
      "div",
      { class: "buttons" },
      send,
      pages && h("button", { type: "button", onclick: () => readAgain(pages, state) }, t("check.read")),
    ),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const data = new FormData(form);
    const answers = questions.map((_, q) => data.get(`question-${q}`));
    const missing = answers.findIndex((answer) => answer === null);
    if (missing >= 0) {
      const fieldset = form.querySelectorAll("fieldset")[missing];
      fieldset.querySelector("legend").after(problem);
      fieldset.setAttribute("aria-describedby", problem.id);
      problem.textContent = t("check.missing", { number: missing + 1 });
      pointOut(problem, fieldset.querySelector("input"));
      return;
    }
    problem.textContent = "";
    send.disabled = true;
    const moved = await tools.act("api/check", { answers: answers.map(Number), tries_left: left });
    if (!moved) send.disabled = false;
  });
  return card(
    h("h1", null, t("check.title")),
    left <= 1
      ? h("p", { class: "warning", role: tools.retried ? "alert" : null }, t("check.again"))
      : h("p", { class: "lead" }, t("check.lead")),
    form,
  );
}

function comments(state, tools) {
  const box = h("textarea", { id: "comments", rows: 6, maxlength: 4000, "aria-describedby": "comments-note" });
  return card(
    h("h1", null, t("comments.title")),
    h("p", null, t("comments.lead")),
    h("label", { for: "comments" }, t("comments.label")),
    box,
    h("p", { class: "fine", id: "comments-note" }, t("comments.note")),
    h(
      "div",
      { class: "buttons" },
      once(t("comments.send"), () => tools.act("api/comments", { text: box.value })),
    ),
  );
}

function finished(state, tools) {
  const stored = state.completion?.steps_stored;
  return card(
    h("h1", null, t("finished.title")),
    state.completion && h("p", { class: "success" }, t("finished.stored", { steps: stored })),
    wayBack(state, t("finished.code")),
    about(state),
    afterwards(state, tools),
  );
}

function left(state, tools) {
  const { kept } = tools;
  return card(
    h("h1", null, t("left.title")),
    h("p", null, t(kept === true ? "left.kept" : kept === false ? "left.deleted" : "left.done")),
    h("p", null, t("left.thanks")),
    wayBack(state),
    about(state),
    !state.deleted && afterwards(state, tools),
  );
}

/** What those read whose part ends early; the advice only where the study has no way back for them. */
function early(area) {
  return (state) => farewell(area, "text", ...(wayBack(state) ? [] : ["end"]))(state);
}

export const STAGES = {
  welcome,
  consent,
  instructions,
  check,
  questions,
  waiting: (state, tools) => card(waiting(state, tools), about(state)),
  comments,
  finished,
  left,
  declined: (state) => card(early("declined")(state)),
  failed_check: (state, tools) =>
    card(early("failed_check")(state), about(state), afterwards(state, tools)),
  deleted: (state) =>
    card(farewell("deleted", "text", "kept", "ended.contact")(state), about(state)),
  excluded: (state, tools) =>
    card(
      farewell("excluded", "text", "ended.contact")(state),
      about(state),
      afterwards(state, tools),
    ),
  identity: (state, tools) => card(identity(state), resumeForm(tools)),
  link: (state, tools) => card(link(state), resumeForm(tools, state.problem === "used")),
  closed: (_state, tools) =>
    card(
      h("h1", null, t("closed.title")),
      h("p", null, t("closed.text")),
      h("p", null, t("closed.begun")),
      resumeForm(tools),
    ),
};
