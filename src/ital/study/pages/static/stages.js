// One function per stage makes the page's content from the State. `tools` sends answers and shows notes.

import { h, prose } from "./dom.js";
import { Palette } from "./palette.js";
import { drawPicture } from "./pictures.js";

function card(...content) {
  return h("section", { class: "card page" }, content);
}

/** A button that is disabled after a press until the answer arrives. */
function once(label, work, kind = "primary") {
  const button = h("button", { type: "button", class: kind }, label);
  button.addEventListener("click", async () => {
    if (button.disabled) return;
    button.disabled = true;
    const moved = await work();
    if (!moved) button.disabled = false;
  });
  return button;
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
    h("label", { for: "code" }, "Resume code"),
    h("div", { class: "field-row" }, input, h("button", { type: "submit" }, "Continue")),
    problem,
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const code = input.value.trim().toUpperCase();
    problem.textContent = code ? "" : "Please type your resume code.";
    if (!code) return;
    const answer = await tools.join({ resume: code });
    if (answer) problem.textContent = answer;
  });
  return h("details", { class: "resume-box", open }, h("summary", null, "I have a resume code"), form);
}

function welcome(state, tools) {
  const start = once("Start", async () => {
    const problem = await tools.join();
    if (problem) tools.notice(problem, true);
    return !problem;
  });
  start.classList.add("large");
  return card(
    h("h1", null, "Teach a robot"),
    state.message
      ? h("p", { class: "field-problem", role: "alert" }, state.message)
      : h(
          "p",
          { class: "lead" },
          "In this study you teach robots what is good and bad on a small map, by showing them arrows.",
        ),
    h("p", null, "First, read what the study is about and decide whether you want to take part."),
    h("div", { class: "buttons" }, start),
    resumeForm(tools),
  );
}

function consent(state, tools) {
  const { version, text } = state.consent;
  const answer = (accepted) => () => tools.act("api/consent", { accepted, version });
  return card(
    h("h1", null, "Do you want to take part?"),
    h("div", { class: "prose", tabindex: 0, role: "region", "aria-label": "Consent text" }, prose(text)),
    h(
      "div",
      { class: "buttons" },
      once("I agree to take part", answer(true)),
      once("I do not want to take part", answer(false), ""),
    ),
    h("p", { class: "fine" }, `Version ${version} of this text.`),
    resumeForm(tools),
  );
}

function pictureOf(page, state) {
  return drawPicture(page.picture, new Palette(state.study.palette, 10));
}

function instructions(state, tools) {
  const pages = state.instructions;
  const at = Math.min(tools.page, pages.length - 1);
  const last = at === pages.length - 1;
  const picture = pictureOf(pages[at], state);
  const text = h("div", { class: "prose" }, prose(pages[at].text));
  const content = card(
    h("p", { class: "kicker" }, `Instructions, page ${at + 1} of ${pages.length}`),
    h("h1", null, pages[at].title),
    picture ? h("div", { class: "split-row" }, text, picture) : text,
    h(
      "div",
      { class: "buttons spread" },
      h("button", { type: "button", disabled: at === 0, onclick: () => tools.turn(at - 1) }, "Back"),
      h(
        "div",
        { class: "dots", "aria-hidden": "true" },
        pages.map((_, i) => h("span", { class: i === at ? "dot now" : "dot" })),
      ),
      last
        ? once("Continue to the questions", () => tools.act("api/instructions", {}))
        : h("button", { type: "button", class: "primary", onclick: () => tools.turn(at + 1) }, "Next"),
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
    h("h2", { id: "again-title" }, "The instructions"),
    h(
      "div",
      { class: "dialog-scroll", tabindex: 0, role: "region", "aria-label": "Instructions" },
      pages.map((page) => h("section", null, h("h3", null, page.title), prose(page.text), pictureOf(page, state))),
    ),
    h(
      "div",
      { class: "buttons" },
      h("button", { type: "button", class: "primary", onclick: close }, "Back to the questions"),
    ),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function check(state, tools) {
  const { questions, tries_left: left } = state.check;
  const problem = h("p", { class: "field-problem", role: "alert" });
  const form = h(
    "form",
    { class: "check", novalidate: true },
    questions.map(({ question, options }, q) =>
      h(
        "fieldset",
        null,
        h("legend", null, `${q + 1}. ${question}`),
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
  const send = h("button", { type: "submit", class: "primary" }, "Send my answers");
  form.append(
    h(
      "div",
      { class: "buttons" },
      send,
      pages && h("button", { type: "button", onclick: () => readAgain(pages, state) }, "Read the instructions again"),
    ),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const data = new FormData(form);
    const answers = questions.map((_, q) => data.get(`question-${q}`));
    const missing = answers.findIndex((answer) => answer === null);
    if (missing >= 0) {
      problem.textContent = `Please answer question ${missing + 1}.`;
      form.querySelector(`input[name="question-${missing}"]`).focus();
      return;
    }
    problem.textContent = "";
    send.disabled = true;
    const moved = await tools.act("api/check", { answers: answers.map(Number), tries_left: left });
    if (!moved) send.disabled = false;
  });
  return card(
    h("h1", null, "A few questions first"),
    left <= 1
      ? h(
          "p",
          { class: "warning", role: tools.retried ? "alert" : null },
          "Not all answers were right. Please read the instructions again and try once more; this is the last try.",
        )
      : h("p", { class: "lead" }, "They help us make sure that the instructions were clear. You have two tries."),
    form,
  );
}

function comments(state, tools) {
  const box = h("textarea", { id: "comments", rows: 6, maxlength: 4000, "aria-describedby": "comments-note" });
  return card(
    h("h1", null, "Thank you! Anything you want to tell us?"),
    h("p", null, "You have taught all robots, and every step is stored."),
    h("label", { for: "comments" }, "Comments (optional)"),
    box,
    h(
      "p",
      { class: "fine", id: "comments-note" },
      "For example, how you chose or what was unclear. Please do not write anything that reveals who you are.",
    ),
    h(
      "div",
      { class: "buttons" },
      once("Finish", () => tools.act("api/comments", { text: box.value })),
    ),
  );
}

/** The address to continue to, if it is a web address. */
function webAddress(text) {
  try {
    const url = new URL(text);
    return ["http:", "https:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

function finished(state, tools) {
  const { code, redirect, steps_stored: stored } = state.completion ?? {};
  const address = webAddress(redirect);
  const copied = h("span", { class: "fine", role: "status" });
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(code);
      copied.textContent = "Copied.";
    } catch {
      copied.textContent = "Please select the code and copy it.";
    }
  };
  return card(
    h("h1", null, "You have finished the study"),
    state.completion &&
      h("p", { class: "success" }, `All ${stored} steps are safely stored. Thank you for teaching the robots!`),
    code && [
      h("h2", null, "Your completion code"),
      h(
        "p",
        { class: "code-row" },
        h("code", { class: "code" }, code),
        h("button", { type: "button", onclick: copy }, "Copy"),
        copied,
      ),
    ],
    address &&
      h(
        "p",
        null,
        h("a", { class: "button primary", href: address, rel: "noreferrer" }, "Go back to where you came from"),
      ),
    h("h2", null, "What this study was about"),
    h("div", { class: "prose" }, prose(state.debriefing)),
    withdrawal(tools),
  );
}

function withdrawal(tools) {
  const ask = h("button", { type: "button", class: "quiet" }, "Delete my data after all");
  const row = h("p", { class: "fine withdrawal" }, ask);
  ask.addEventListener("click", () => {
    const sure = once("Yes, delete everything I did here", () => tools.leave(false), "danger");
    row.replaceChildren("This erases all your steps and cannot be undone. Please write down your completion code first. ", sure);
    sure.focus();
  });
  return row;
}

function ending(title, ...texts) {
  return () =>
    card(
      h("h1", null, title),
      texts.map((text) => h("p", null, text)),
    );
}

function left(_state, { kept }) {
  return card(
    h("h1", null, "You have left the study"),
    h(
      "p",
      null,
      kept === true
        ? "Everything you did up to here is kept, as you wished."
        : kept === false
          ? "Your data have been deleted, as you wished."
          : "We have done with your data as you wished.",
    ),
    h("p", null, "Thank you for your time. You can close this page."),
  );
}

export const STAGES = {
  welcome,
  consent,
  instructions,
  check,
  comments,
  finished,
  left,
  declined: ending(
    "Thank you for your answer",
    "You have decided not to take part. We have stored only that decision.",
    "You can close this page. If you came from a recruiting service, please return your place there.",
  ),
  failed_check: ending(
    "The study ends here for you",
    "Some answers did not match the instructions, so you cannot continue to the teaching. That happens, and it says nothing about you.",
    "Thank you for your time. You can close this page. If you came from a recruiting service, please return your place there.",
  ),
  closed: (_state, tools) =>
    card(
      h("h1", null, "The study is closed at the moment"),
      h("p", null, "The study is not accepting new participants right now. Thank you for your interest."),
      h("p", null, "If you have already begun, you can still continue: open your link again or use your resume code."),
      resumeForm(tools),
    ),
};
