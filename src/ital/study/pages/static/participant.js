// The participant's page: shows whatever stage the server says the person is in.

import { insist, Refused, request, tryNow, Unreachable } from "./api.js";
import { h } from "./dom.js";
import { STAGES } from "./stages.js";
import { TeachView } from "./teach.js";
import { Recorder, watchFocus } from "./timing.js";

const PENDING = "ital-pending-step";
const ROOMY = "ital-small-screen-accepted";
const TEACHING = ["warm_up", "teach"];
const MAY_LEAVE = ["consent", "instructions", "check", "warm_up", "teach", "comments"];
const MODES = {
  preview: "Preview – nothing here counts",
  pilot: "Pilot run – kept apart from the study's data",
  simulated: "Simulated participant – not a person",
};
const at = (id) => document.getElementById(id);

let state = null;
let teach = null;
let acting = false;
let page = 0;
let kept = null; // whether the person chose to keep their data on leaving
let remembered = null; // the instructions, to read again at the questions

// ---------------------------------------------------------------- talking to the server

function trouble(on, busy = false) {
  const box = at("trouble");
  if (on === !box.hidden) return;
  box.hidden = !on;
  if (on) {
    recorder.add("offline");
    box.replaceChildren(
      h(
        "span",
        null,
        busy
          ? "The server is busy. This page keeps trying; nothing is lost."
          : "No connection to the server. Your work is kept and will be sent as soon as the connection is back; nothing is lost.",
      ),
      h("button", { type: "button", class: "quiet", onclick: tryNow }, "Try now"),
    );
  } else {
    recorder.add("online");
    box.replaceChildren();
    notice("The connection is back.");
  }
}

/** Send one action at a time, and show the stage that follows. */
async function act(path, body) {
  if (acting) {
    notice("One moment, please: your last answer is still being sent.");
    return false;
  }
  acting = true;
  try {
    await show(await insist(() => request("POST", path, body, { csrf: state?.csrf }), trouble));
    return true;
  } catch (error) {
    await refused(error);
    return false;
  } finally {
    acting = false;
  }
}

async function refused(error) {
  if (!(error instanceof Refused)) throw error;
  if (error.state) {
    teach?.unlock();
    await show(error.state);
    notice("You have continued in another tab or window. This is where you are now.");
  } else if (error.status === 401) {
    await show({ stage: "welcome", message: "" });
  } else if (error.status === 403) {
    await show(await insist(() => request("GET", "api/state"), trouble));
    notice("Please try that again.");
  } else {
    teach?.unlock();
    notice(error.message, true);
  }
}

async function submitStep(step) {
  sessionStorage.setItem(PENDING, JSON.stringify({ step, whose: state.resume_code }));
  recorder.flush();
  const moved = await act("api/steps", step);
  sessionStorage.removeItem(PENDING);
  if (!moved) teach?.unlock();
}

const recorder = new Recorder(async (events, keepalive) => {
  if (!state?.csrf || !MAY_LEAVE.includes(state.stage)) return true;
  try {
    await request("POST", "api/events", { events }, { csrf: state.csrf, keepalive });
    return true;
  } catch (error) {
    return !(error instanceof Unreachable);
  }
});

// ---------------------------------------------------------------- showing

let noticeTimer = 0;

function notice(text, problem = false) {
  const box = at("notice");
  box.textContent = text;
  box.classList.toggle("problem", problem);
  box.hidden = false;
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => (box.hidden = true), problem ? 15_000 : 6000);
}

function announce(text) {
  const log = at("live");
  log.append(h("p", null, text));
  while (log.children.length > 4) log.firstChild.remove();
}

function frame(next) {
  const { study, progress, stage } = next;
  const title = study?.title ?? document.title;
  at("title").textContent = title;
  document.title = title;
  document.body.dataset.stage = stage;
  at("leave").hidden = !MAY_LEAVE.includes(stage);
  const code = MAY_LEAVE.includes(stage) || stage === "finished" ? next.resume_code : null;
  at("resume").hidden = !code;
  at("resume-code").textContent = code ?? "";
  const shown = Boolean(progress && progress.total > 0 && MAY_LEAVE.includes(stage) && stage !== "consent");
  at("progress").hidden = !shown;
  if (shown) {
    const percent = Math.round((100 * progress.done) / progress.total);
    at("progress-text").textContent = `${percent} % of the study`;
    at("progress-bar").setAttribute("aria-valuenow", percent);
    at("progress-bar").setAttribute("aria-valuetext", `${progress.done} of ${progress.total} arrows`);
    at("progress-fill").style.width = `${percent}%`;
  }
  const label = MODES[next.mode];
  at("mode").hidden = !label;
  at("mode").textContent = label ?? "";
}

/** Show a State. */
async function show(next) {
  const same =
    state &&
    state.stage === next.stage &&
    TEACHING.includes(next.stage) &&
    state.scene.round === next.scene.round &&
    state.scene.step === next.scene.step;
  const before = state;
  state = next.csrf || !before ? next : { ...next, csrf: before.csrf };
  if (same && teach) {
    frame(next);
    if (teach.busy) teach.unlock();
    return;
  }
  if (TEACHING.includes(next.stage)) {
    if (!teach) {
      teach = new TeachView({ submit: submitStep, record: (kind, data) => recorder.add(kind, data), announce });
      at("main").replaceChildren(teach.element);
    }
    frame(next);
    teach.show(next);
    return;
  }
  if (teach) {
    await teach.playUpdate(next, null);
    teach.close();
    teach = null;
  }
  frame(next);
  if (before?.stage !== next.stage) page = 0;
  renderStage(before);
}

function renderStage(before) {
  const make = STAGES[state.stage] ?? STAGES.closed;
  const content = make(state, {
    act,
    leave,
    notice,
    join,
    page,
    turn: (to) => {
      history.pushState({ page: to }, "");
      page = to;
      renderStage(state);
    },
    retried: before?.stage === "check" && state.stage === "check",
    instructions: () => remembered,
    kept,
  });
  if (state.instructions) remembered = state.instructions;
  at("main").replaceChildren(content);
  window.scrollTo(0, 0);
  const heading = content.querySelector("h1");
  if (heading && before) {
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  }
}

// ---------------------------------------------------------------- leaving

function leave(keep) {
  kept = keep;
  return act("api/leave", { keep });
}

function leaveDialog() {
  const stored = state.progress?.done ?? 0;
  const dialog = h("dialog", { class: "card dialog", "aria-labelledby": "leave-title" });
  const close = () => {
    dialog.close();
    dialog.remove();
  };
  const send = (keep) => {
    close();
    leave(keep);
  };
  const first = () =>
    dialog.replaceChildren(
      h("h2", { id: "leave-title" }, "Do you want to leave the study?"),
      h(
        "p",
        null,
        "You may stop at any time, without giving a reason. ",
        state.resume_code &&
          "If you only want a break, just close this page. The same link or your resume code brings you back to this point.",
      ),
      h(
        "div",
        { class: "dialog-choices" },
        h("button", { type: "button", class: "primary", onclick: close }, "Stay in the study"),
        h(
          "button",
          { type: "button", onclick: () => send(true) },
          "Leave and keep my data",
          h("small", null, stored > 0 ? "The study may use what you did so far." : "You have not taught anything yet."),
        ),
        h(
          "button",
          { type: "button", class: "danger", onclick: second },
          "Leave and delete my data",
          h("small", null, "Everything you did here is erased."),
        ),
      ),
    );
  const second = () => {
    dialog.replaceChildren(
      h("h2", { id: "leave-title", tabindex: -1 }, "Delete your data?"),
      h("p", null, "Everything stored about your part in this study is erased now. This cannot be undone."),
      h(
        "div",
        { class: "dialog-choices" },
        h("button", { type: "button", class: "primary", onclick: first }, "Go back"),
        h("button", { type: "button", class: "danger", onclick: () => send(false) }, "Yes, delete my data and leave"),
      ),
    );
    dialog.querySelector("h2").focus();
  };
  first();
  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    close();
  });
  document.body.append(dialog);
  dialog.showModal();
}

// ---------------------------------------------------------------- the browser around the page

/** The identifiers in the link, as the recruiting service gives them. */
function linkIds() {
  const query = new URLSearchParams(location.search);
  const ids = {};
  for (const name of ["PROLIFIC_PID", "STUDY_ID", "SESSION_ID", "id"]) {
    const value = query.get(name);
    if (value) ids[name] = value;
  }
  return ids;
}

function mode() {
  if (location.pathname.endsWith("/preview")) return "preview";
  return new URLSearchParams(location.search).get("mode") === "pilot" ? "pilot" : "live";
}

/** Join or resume; if that fails, say why. */
async function join({ ids = {}, resume = null } = {}) {
  if (acting) return null;
  acting = true;
  try {
    await show(await insist(() => request("POST", "api/join", { ids, resume, mode: mode() }), trouble));
    return null;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return error.message;
  } finally {
    acting = false;
  }
}

async function begin() {
  history.replaceState({ page: 0 }, "");
  const ids = linkIds();
  if (ids.PROLIFIC_PID || ids.id) {
    const problem = await join({ ids });
    if (problem) await show({ stage: "welcome", message: problem });
  } else {
    try {
      await show(await insist(() => request("GET", "api/state"), trouble));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      await show({ stage: "welcome", message: "" });
    }
  }
  await resend();
}

/** A step that was confirmed but had not reached the server when the page was reloaded. */
async function resend() {
  const kept = sessionStorage.getItem(PENDING);
  sessionStorage.removeItem(PENDING);
  if (performance.getEntriesByType("navigation")[0]?.type === "reload") recorder.add("reloaded");
  if (!kept || !TEACHING.includes(state?.stage)) return;
  const { step, whose } = JSON.parse(kept);
  if (whose !== state.resume_code) return;
  if (step.round === state.scene.round && step.step === state.scene.step) await submitStep(step);
}

/** Check whether the person has continued elsewhere. */
async function catchUp() {
  if (acting || !state?.csrf) return;
  try {
    const now = await request("GET", "api/state");
    const place = (some) => `${some.stage} ${some.scene?.round} ${some.scene?.step} ${some.check?.tries_left}`;
    if (!acting && place(now) !== place(state)) await show(now);
  } catch (error) {
    if (error instanceof Refused && error.status === 401 && MAY_LEAVE.includes(state.stage)) {
      await show({ stage: "welcome", message: "" });
    }
  }
}

function watchSize() {
  const small = window.matchMedia("(max-width: 559px), (max-height: 430px) and (pointer: coarse)");
  const box = at("small");
  const apply = () => {
    const on = small.matches && sessionStorage.getItem(ROOMY) !== "yes";
    box.hidden = !on;
    document.body.classList.toggle("too-small", on);
  };
  box.replaceChildren(
    h("h2", null, "This screen is a little small"),
    h(
      "p",
      null,
      "The study shows three maps side by side. Please open the link on a computer or a tablet, or turn your device.",
    ),
    h(
      "p",
      null,
      "If you have already begun, nothing is lost: the same link or your resume code brings you back to your place.",
    ),
    h(
      "button",
      {
        type: "button",
        onclick: () => {
          sessionStorage.setItem(ROOMY, "yes");
          apply();
        },
      },
      "Continue on this screen",
    ),
  );
  small.addEventListener("change", apply);
  apply();
}

window.addEventListener("popstate", (event) => {
  const to = event.state?.page ?? 0;
  if (state?.stage === "instructions") {
    page = Math.min(to, state.instructions.length - 1);
    renderStage(state);
  } else if (state && MAY_LEAVE.includes(state.stage)) {
    notice("Everything up to here is stored. To stop, press “Leave the study”.");
  }
});
window.addEventListener("pageshow", (event) => event.persisted && catchUp());
watchFocus(
  () => {
    recorder.add(
      "focus_lost",
      TEACHING.includes(state?.stage) ? { round: state.scene.round, step: state.scene.step } : {},
    );
    teach?.focusLost();
  },
  () => {
    recorder.add("focus_regained");
    catchUp();
  },
);
at("leave").addEventListener("click", leaveDialog);
watchSize();
begin().catch(() =>
  notice("Something went wrong on this page. Please reload it; everything you confirmed is stored.", true),
);
