// The participant's page: shows whatever stage the server says the person is in.

import { proof } from "./endings.js";
import {
  h,
  insist,
  language,
  linkWishes,
  loadWords,
  refusal,
  Refused,
  request,
  smallestScreen,
  t,
  tryNow,
  Unreachable,
} from "./page.js";
import { STAGES } from "./stages.js";
import { pathOf, placeOf, TeachView } from "./teach.js";

const PENDING = "ital-pending-step";
const ROOMY = "ital-small-screen-accepted";
const MOST_EVENTS = 50;
const KEPT_EVENTS = 400;
const TEACHING = ["warm_up", "teach"];
const MAY_LEAVE = ["consent", "instructions", "check", "questions", "warm_up", "teach", "waiting", "comments"];
const MARKED_MODES = ["preview", "pilot", "simulated"];
const at = (id) => document.getElementById(id);

let state = null;
let teach = null;
let acting = false;
let page = 0;
let kept = null; // whether the person chose to keep their data on leaving
let wishes = linkWishes();
let remembered = null; // the instructions, to read again at the questions
let panel = { identity: [], required: false }; // what the study takes from its links

// ---------------------------------------------------------------- what is recorded

/**
 * Collects events and sends them in batches. `send` says what became of a batch: "stored", "away" (it stays for the next
 * time) or "refused": the server does not take one of its events, so each is sent alone and the others are kept.
 */
class Recorder {
  constructor(send) {
    this.send = send;
    this.queue = [];
    this.sending = false;
    setInterval(() => this.flush(), 5000);
    window.addEventListener("pagehide", () => this.flush(true));
  }

  add(kind, data = {}) {
    this.queue.push({ kind, at: Date.now(), data });
    if (this.queue.length > KEPT_EVENTS) this.queue.shift();
    if (this.queue.length >= MOST_EVENTS) this.flush();
  }

  async flush(keepalive = false) {
    if (this.sending || this.queue.length === 0) return;
    this.sending = true;
    const bundle = this.queue.splice(0, MOST_EVENTS);
    const outcome = await this.send(bundle, keepalive);
    if (outcome === "away") this.queue.unshift(...bundle);
    if (outcome === "refused" && bundle.length > 1) for (const event of bundle) await this.send([event], keepalive);
    this.sending = false;
  }
}

/** Calls `lost` when the person turns to another window or tab, `regained` when they come back. */
function watchFocus(lost, regained) {
  let away = false;
  const leave = () => {
    if (away) return;
    away = true;
    lost();
  };
  const back = () => {
    if (!away || document.hidden) return;
    away = false;
    regained();
  };
  window.addEventListener("blur", leave);
  window.addEventListener("focus", back);
  document.addEventListener("visibilitychange", () => (document.hidden ? leave() : document.hasFocus() && back()));
}

/** What is recorded of the screen. */
function screenFacts(smallAccepted) {
  const pointer = ["fine", "coarse"].find((kind) => window.matchMedia(`(pointer: ${kind})`).matches) ?? "none";
  const { innerWidth: width, innerHeight: height, devicePixelRatio: ratio } = window;
  return { width, height, ratio, pointer, small_accepted: smallAccepted };
}

/** Whether the screen is small, as a function; `changed` is called when it becomes small or large. */
function watchScreen(smallest, changed) {
  const narrow = `(max-width: ${smallest - 1}px), (max-height: 430px) and (pointer: coarse)`;
  const small = window.matchMedia(smallest > 0 ? narrow : "not all");
  small.addEventListener("change", changed);
  return () => small.matches;
}

// ---------------------------------------------------------------- talking to the server

function trouble(on, busy = false) {
  const box = at("trouble");
  if (on === !box.hidden) return;
  box.hidden = !on;
  if (on) {
    recorder.add("offline");
    box.replaceChildren(
      h("span", null, t(busy ? "connection.busy" : "connection.lost")),
      h("button", { type: "button", class: "quiet", onclick: tryNow }, t("connection.try_now")),
    );
  } else {
    recorder.add("online");
    box.replaceChildren();
    notice(t("connection.back"));
  }
}

/** Send one action at a time, and show the stage that follows. */
async function act(path, body) {
  if (acting) {
    notice(t("connection.still_sending"));
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
    if (error.state.stage !== "excluded") notice(t("connection.elsewhere"));
  } else if (error.status === 401) {
    teach?.unlock();
    await comeBack();
    if (state.stage !== "welcome") notice(t("connection.let_in_again"));
  } else if (error.status === 403) {
    await show(await insist(() => request("GET", "api/state"), trouble));
    notice(t("refused.other"));
  } else {
    teach?.unlock();
    notice(refusal(error), true);
  }
}

async function submitStep(step) {
  const path = pathOf(state.scene);
  sessionStorage.setItem(PENDING, JSON.stringify({ step, path, whose: state.csrf }));
  recorder.flush();
  const moved = await act(path, step);
  sessionStorage.removeItem(PENDING);
  if (!moved) teach?.unlock();
}

const recorder = new Recorder(async (events, keepalive) => {
  if (!state?.csrf || !MAY_LEAVE.includes(state.stage)) return "stored";
  try {
    await request("POST", "api/events", { events }, { csrf: state.csrf, keepalive });
    return "stored";
  } catch (error) {
    if (error instanceof Unreachable) return "away";
    return error.status === 422 ? "refused" : "stored";
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
  const code = MAY_LEAVE.includes(stage) ? next.resume_code : null; // at the end, the page has it
  at("resume").hidden = !code;
  at("resume-code").textContent = code ?? "";
  showProgress(progress, stage);
  const marked = MARKED_MODES.includes(next.mode);
  at("mode").hidden = !marked;
  at("mode").textContent = marked ? t(`page.mode_${next.mode}`) : "";
}

/** The share of the study that lies behind the person: full only when nothing is left to do. */
function showProgress(progress, stage) {
  const shown = Boolean(progress && MAY_LEAVE.includes(stage) && stage !== "consent");
  at("progress").hidden = !shown;
  if (!shown) return;
  const passed = progress.passed + (stage === "instructions" ? page : 0);
  const percent = Math.floor((100 * passed) / progress.parts);
  const text = t("page.progress", { percent });
  at("progress-text").textContent = text;
  at("progress-bar").setAttribute("aria-valuenow", percent);
  const spoken = `${text}, ${t("page.progress_arrows", progress)}`;
  at("progress-bar").setAttribute("aria-valuetext", spoken);
  at("progress-fill").style.width = `${percent}%`;
}

/** Show a State, in its language. */
async function show(next) {
  if (next.language && next.language !== language) await insist(() => loadWords(next.language), trouble);
  const same =
    state &&
    state.stage === next.stage &&
    TEACHING.includes(next.stage) &&
    placeOf(state.scene) === placeOf(next.scene);
  const before = state;
  state = next.csrf || !before ? next : { ...next, csrf: before.csrf };
  noteScreen();
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
  if (before?.stage !== next.stage) page = 0;
  frame(next);
  renderStage(before);
}

function renderStage(before) {
  const make = STAGES[state.stage] ?? STAGES.closed;
  const content = make(state, {
    act,
    leave,
    notice,
    join,
    speak,
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
  showProgress(state.progress, state.stage);
  at("main").replaceChildren(content);
  window.scrollTo(0, 0);
  const heading = content.querySelector("h1");
  if (heading && before) {
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  }
}

/** Show the page in another language; the server keeps it once the person has joined. */
async function speak(tag) {
  if (state.stage === "consent") await act("api/language", { language: tag });
  else {
    wishes = tag;
    await insist(() => loadWords(tag), trouble);
    renderStage(null);
  }
  at("language")?.focus();
}

// ---------------------------------------------------------------- leaving

function leave(keep, code) {
  kept = keep;
  return act("api/leave", code ? { keep, code } : { keep });
}

function leaveDialog() {
  const stored = state.progress?.done ?? 0;
  const dialog = h("dialog", { class: "card dialog", "aria-labelledby": "leave-title" });
  const close = () => {
    dialog.close();
    dialog.remove();
  };
  const send = (keep, code) => {
    close();
    leave(keep, code);
  };
  const first = () =>
    dialog.replaceChildren(
      h("h2", { id: "leave-title" }, t("leave.title")),
      h(
        "p",
        null,
        t("leave.text"),
        state.resume_code && ` ${t("leave.break")}`,
      ),
      h(
        "div",
        { class: "dialog-choices" },
        h("button", { type: "button", class: "primary", onclick: close }, t("leave.stay")),
        h(
          "button",
          { type: "button", onclick: () => send(true) },
          t("leave.keep"),
          h("small", null, t(stored > 0 ? "leave.keep_note" : "leave.keep_nothing")),
        ),
        h(
          "button",
          { type: "button", class: "danger", onclick: second },
          t("leave.delete"),
          h("small", null, t("leave.delete_note")),
        ),
      ),
    );
  const second = () => {
    const proven = proof(state);
    dialog.replaceChildren(
      h("h2", { id: "leave-title", tabindex: -1 }, t("leave.sure")),
      h("p", null, t("leave.sure_text")),
      ...(proven ? [proven.field] : []),
      h(
        "div",
        { class: "dialog-choices" },
        h("button", { type: "button", class: "primary", onclick: first }, t("leave.back")),
        h("button", { type: "button", class: "danger", onclick: () => send(false, proven?.code()) }, t("leave.sure_yes")),
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

/** The parameters of the link that identify a person; the server is told of no others. */
function linkIds() {
  const link = new URLSearchParams(location.search);
  const given = panel.identity.filter((name) => link.has(name));
  return Object.fromEntries(given.map((name) => [name, link.get(name).slice(0, 200)]));
}

function mode() {
  if (location.pathname.endsWith("/preview")) return "preview";
  return new URLSearchParams(location.search).get("mode") === "pilot" ? "pilot" : "live";
}

/** Join as the person whom the link names, or resume by a code; if that fails, say why. */
async function enter(resume = null) {
  const body = { ids: linkIds(), resume, mode: mode(), language: wishes };
  try {
    await show(await insist(() => request("POST", "api/join", body), trouble));
    return null;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return refusal(error);
  }
}

/** The same at the press of a button. */
async function join({ resume = null } = {}) {
  if (acting) return null;
  acting = true;
  try {
    return await enter(resume);
  } finally {
    acting = false;
  }
}

const isNamed = () => Object.keys(linkIds()).length > 0;

/** The server does not know this browser: enter by the link, or show the welcome if it names nobody. */
async function comeBack() {
  const byLink = isNamed() || (panel.required && mode() === "live");
  const problem = byLink ? await enter() : "";
  if (problem !== null) await show({ stage: "welcome", message: problem });
}

async function begin() {
  await insist(loadWords, () => {});
  watchSize();
  history.replaceState({ page: 0 }, "");
  panel = await insist(() => request("GET", "api/panel"), trouble);
  if (isNamed()) await comeBack();
  else {
    try {
      await show(await insist(() => request("GET", "api/state"), trouble));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      await comeBack();
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
  const { step, path, whose } = JSON.parse(kept);
  if (whose !== state.csrf || path !== pathOf(state.scene)) return;
  if (step.round === state.scene.round && step.step === state.scene.step) await submitStep(step);
}

/** Check whether the person has continued elsewhere. */
async function catchUp() {
  if (acting || !state?.csrf) return;
  try {
    const now = await request("GET", "api/state");
    const place = ({ stage, scene, check, questions, part }) =>
      `${stage} ${part?.state} ${placeOf(scene)} ${check?.tries_left} ${questions?.page} ${questions?.place}`;
    if (!acting && place(now) !== place(state)) await show(now);
  } catch (error) {
    const unknown = error instanceof Refused && error.status === 401;
    if (!unknown || acting || !MAY_LEAVE.includes(state.stage)) return;
    acting = true;
    await comeBack().finally(() => (acting = false));
  }
}

let isSmall = () => false;
let screenPending = true;

/** Ask for a larger screen where the study's maps do not fit well; people may continue all the same. */
function watchSize() {
  const apply = () => {
    const asked = isSmall() && sessionStorage.getItem(ROOMY) !== "yes";
    at("small").hidden = !asked;
    document.body.classList.toggle("too-small", asked);
    screenPending = true;
    noteScreen();
  };
  isSmall = watchScreen(smallestScreen, apply);
  at("small-accept").addEventListener("click", () => {
    sessionStorage.setItem(ROOMY, "yes");
    apply();
  });
  apply();
}

/** Record the screen once people have consented, and again when it becomes small or large. */
function noteScreen() {
  if (!screenPending || !MAY_LEAVE.includes(state?.stage) || state.stage === "consent") return;
  screenPending = false;
  recorder.add("screen", screenFacts(isSmall() && sessionStorage.getItem(ROOMY) === "yes"));
}

window.addEventListener("popstate", (event) => {
  const to = event.state?.page ?? 0;
  if (state?.stage === "instructions") {
    page = Math.min(to, state.instructions.length - 1);
    renderStage(state);
  } else if (state && MAY_LEAVE.includes(state.stage)) {
    notice(t("page.stored_so_far"));
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
begin().catch(() => notice(t("page.broken"), true));
