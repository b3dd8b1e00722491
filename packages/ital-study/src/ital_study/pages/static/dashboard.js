// The researcher's dashboard: asks the server for an overview every few seconds and shows it.

import { bars, histogram, lineChart, lineKey } from "./charts.js";
import { lookUp } from "./lookup.js";
import { h, Refused, request, Unreachable } from "./page.js";
import { excludeButton, isExcluded, qualityBadges, usableText } from "./quality.js";

const EVERY = 4000;
const MODES = {
  live: "Live",
  pilot: "Pilot",
  preview: "Preview",
  trial: "Trial",
  simulated: "Simulated",
};
const MODE_NOTES = {
  pilot: "Pilot runs. They are kept apart from the study's data and never count.",
  preview: "Previews by researchers. They never count.",
  trial: "Participants of a server in trial mode. They never count.",
  simulated: "Simulated participants: programs, not people. They never count.",
};
const STAGES = {
  consent: "consent",
  instructions: "instructions",
  check: "check",
  questions: "questions",
  warm_up: "warm-up",
  teach: "teaching",
  waiting: "between parts",
  comments: "comments",
  finished: "finished",
  declined: "declined",
  failed_check: "failed the check",
  left: "left",
};
const LETTERS = { naive: "N", aware: "A", adaptive: "D", posterior: "P", "ital-posterior": "I" };

/** The first robots of all maps, in an order such as "naive-ital-posterior": names may hold hyphens. */
const firstRobots = (order) => order.split("@")[0].match(/ital-posterior|[^-]+/g) ?? [];
const FILES = [
  ["steps.csv", "Steps (CSV)"],
  ["participants.csv", "Participants (CSV)"],
  ["answers.csv", "Answers (CSV)"],
  ["steps.parquet", "Steps (Parquet)"],
  ["events.jsonl", "Event log (JSON lines)"],
  ["codebook.md", "Codebook"],
];
const at = (id) => document.getElementById(id);

let csrf = "";
// In a trial, those who take part are where one looks first.
let mode = document.querySelector('[data-word="trial.banner"]') ? "trial" : "live";
let shown = "";
let timer = 0;
let view = null;
let filter = "all";

// ---------------------------------------------------------------- requests

async function send(path, body) {
  try {
    return await request("POST", path, body, { csrf });
  } catch (error) {
    if (error instanceof Refused && error.status === 401) logIn("Your session has ended. Please log in again.");
    else notice(error instanceof Refused ? error.message : "No connection to the server. Nothing was changed.", true);
    return null;
  }
}

/** Fetch the overview and show it if it has changed; repeat after a while. */
async function refresh() {
  clearTimeout(timer);
  watchStorage();
  const asked = mode;
  try {
    const [overview, audit] = await Promise.all([
      request("GET", `api/admin/overview?mode=${asked}`),
      request("GET", "api/admin/audit"),
    ]);
    at("trouble").hidden = true;
    if (asked === mode) show(overview, audit.entries ?? []);
  } catch (error) {
    if (error instanceof Refused && error.status === 401) {
      logIn();
      return;
    }
    at("trouble").hidden = false;
    at("trouble").textContent =
      error instanceof Unreachable
        ? "No connection to the server. What you see may be out of date; trying again."
        : error.message;
  }
  timer = setTimeout(refresh, EVERY);
}

/** Say why nothing can be stored, as long as that is so. */
async function watchStorage() {
  const health = await fetch("health", { cache: "no-store" })
    .then((response) => response.json())
    .catch(() => null);
  if (health === null) return;
  const failing = health.state === "storage failing";
  const text = failing
    ? `Nothing can be stored: ${health.cause}, since ${new Date(health.since).toLocaleString()}. ` +
      "Participants see that they must wait, and their pages keep trying. The server's log has the details."
    : "";
  at("storage").hidden = !failing;
  if (at("storage").textContent !== text) at("storage").textContent = text;
}

function notice(text, problem = false) {
  const box = at("notice");
  box.textContent = text;
  box.classList.toggle("problem", problem);
  box.hidden = false;
  setTimeout(() => (box.hidden = true), problem ? 12_000 : 5000);
}

// ---------------------------------------------------------------- logging in

function logIn(message = "") {
  clearTimeout(timer);
  csrf = "";
  shown = "";
  view = null;
  at("top").replaceChildren();
  const name = h("input", { id: "researcher", autocomplete: "username", spellcheck: "false", maxlength: 40 });
  const password = h("input", { id: "password", type: "password", autocomplete: "current-password", required: true });
  const problem = h("p", { class: "field-problem", role: "alert" }, message);
  const button = h("button", { type: "submit", class: "primary" }, "Log in");
  const form = h(
    "form",
    { class: "card log-in" },
    h("h1", null, "Researcher’s dashboard"),
    h("label", { for: "researcher" }, "Your name (empty: the owner of the study)"),
    name,
    h("label", { for: "password" }, "Password"),
    password,
    problem,
    button,
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    problem.textContent = "";
    button.disabled = true;
    try {
      csrf = (await request("POST", "api/admin/login", { name: name.value.trim(), password: password.value })).csrf ?? "";
      await refresh();
    } catch (error) {
      problem.textContent = error instanceof Refused ? error.message : "No connection to the server.";
      password.select();
    }
    button.disabled = false;
  });
  at("main").replaceChildren(form);
  password.focus();
}

async function logOut() {
  if (await send("api/admin/logout", {})) logIn("You are logged out.");
}

// ---------------------------------------------------------------- the overview

function section(title, ...content) {
  return h("section", { class: "card box" }, h("h2", null, title), content);
}

function frame() {
  view = {
    title: h("span"),
    version: h("span", { class: "fine" }),
    updated: h("span", { class: "fine updated" }),
    who: h("span", { class: "fine" }),
    pause: h("button", { type: "button", class: "for-run", onclick: () => togglePause() }),
    state: h("span", { class: "badge" }),
    modes: h("div", { class: "modes", role: "group", "aria-label": "Whose data" }),
    note: h("p", { class: "mode-note", hidden: true }),
    warnings: h("div"),
    tiles: h("div", { class: "tiles" }),
    balance: h("div"),
    key: h("div"),
    curves: h("div", { class: "curves" }),
    blind: h(
      "div",
      { hidden: true },
      h(
        "p",
        null,
        "Hidden until all places are taken, so that nobody stops or changes the study because of them.",
      ),
      h("button", { type: "button", class: "quiet for-own", onclick: () => unblind() }, "Show them now"),
    ),
    times: h("div"),
    dropouts: h("div"),
    table: h("div", { class: "table-scroll", tabindex: 0, role: "region", "aria-label": "Participants" }),
    downloads: h("div", { class: "downloads" }),
    audit: h("div", { class: "table-scroll audit", tabindex: 0, role: "region", "aria-label": "Audit" }),
  };
  at("top").replaceChildren(
    h(
      "header",
      { class: "dash-top" },
      h("div", null, h("h1", null, view.title), view.version),
      h(
        "div",
        { class: "dash-tools" },
        view.updated,
        view.who,
        view.state,
        view.pause,
        h("button", { type: "button", class: "quiet", onclick: logOut }, "Log out"),
      ),
    ),
  );
  const choose = h(
    "select",
    { id: "filter", onchange: () => ((filter = choose.value), (shown = ""), refresh()) },
    [
      ["all", "all"],
      ["open", "active"],
      ["finished", "finished"],
      ["gone", "ended early"],
      ["flagged", "flagged"],
      ["excluded", "excluded"],
    ].map(([value, text]) => h("option", { value, selected: value === filter }, text)),
  );
  const lookedUp = section("Look up a participant", lookUp({ send, stages: STAGES, when, remove }));
  lookedUp.classList.add("for-run");
  at("main").replaceChildren(
    h("div", { class: "dash-row" }, view.modes, view.note),
    view.warnings,
    view.tiles,
    h(
      "div",
      { class: "dash-grid" },
      h(
        "div",
        { class: "dash-side" },
        section(
          "Learning curves so far",
          h("p", { class: "fine" }, "Mean distance between what robots believe and the truth, ± standard error."),
          view.blind,
          view.key,
          view.curves,
        ),
        h(
          "div",
          { class: "dash-grid even" },
          section("Where people dropped out", view.dropouts),
          section("Time per step", view.times),
        ),
      ),
      h(
        "div",
        { class: "dash-side" },
        section("Balance of orders", view.balance),
        section("Downloads", view.downloads),
      ),
    ),
    lookedUp,
    section(
      "Participants",
      h("div", { class: "table-tools" }, h("label", { for: "filter" }, "Show"), choose),
      view.table,
    ),
    section("Audit", view.audit),
  );
}

function show(overview, entries) {
  csrf = overview.csrf ?? csrf;
  if (!view) frame();
  view.updated.textContent = `updated ${new Date().toLocaleTimeString()}`;
  const { csrf: _token, ...content } = overview;
  const news = JSON.stringify([content, entries, filter]);
  if (news === shown) return;
  shown = news;
  const kept = document.activeElement?.dataset?.key;
  const { study, counts, paused, participants, researcher } = overview;
  // What a role may not do is hidden; the server refuses it as well.
  document.body.dataset.role = researcher?.role ?? "own";
  view.who.textContent = researcher?.name ?? "";
  view.title.textContent = study.title;
  document.title = `${study.title} – dashboard`;
  view.version.textContent = `Study “${study.name ?? ""}”, configuration ${String(study.version ?? "").slice(0, 10)}`;
  view.state.textContent = paused ? "Intake paused" : "Accepting participants";
  view.state.className = paused ? "badge paused" : "badge running";
  view.pause.textContent = paused ? "Resume intake" : "Pause intake";
  view.pause.dataset.paused = paused;
  modeButtons(overview.modes ?? {});
  view.note.hidden = mode === "live";
  view.note.textContent = MODE_NOTES[mode] ?? "";
  view.warnings.replaceChildren(...(overview.warnings ?? []).map((text) => h("p", { class: "warning" }, text)));
  tiles(overview, counts, participants);
  balance(overview);
  view.blind.hidden = !overview.blind;
  view.key.hidden = Boolean(overview.blind);
  view.key.replaceChildren(lineKey(kinds(overview.firsts)));
  view.curves.replaceChildren(
    ...Object.entries(overview.curves ?? {}).map(([map, learners]) => curve(map, learners, study.steps)),
  );
  const stops = overview.dropouts ?? [];
  view.dropouts.replaceChildren(
    stops.length
      ? bars(
          null,
          stops.map(({ stage, n }) => ({ name: STAGES[stage] ?? stage, value: n })),
        )
      : h("p", { class: "fine" }, "Nobody has dropped out so far."),
  );
  view.times.replaceChildren(
    histogram(
      "Participants by seconds per step",
      participants.map((one) => one.seconds_per_step ?? NaN),
      "seconds",
    ),
  );
  view.table.replaceChildren(table(participants, kinds(overview.firsts), overview.flags ?? {}));
  view.downloads.replaceChildren(downloads());
  view.audit.replaceChildren(audit(entries));
  if (kept) document.querySelector(`[data-key="${CSS.escape(kept)}"]`)?.focus({ preventScroll: true });
}

function modeButtons(numbers) {
  view.modes.replaceChildren(
    ...Object.entries(MODES).map(([name, text]) =>
      h(
        "button",
        {
          type: "button",
          "data-key": `mode-${name}`,
          "aria-pressed": String(name === mode),
          onclick: () => {
            mode = name;
            shown = "";
            refresh();
          },
        },
        `${text} (${numbers[name] ?? 0})`,
      ),
    ),
  );
}

function tiles(overview, counts, participants) {
  const sum = (...stages) => stages.reduce((total, stage) => total + (counts[stage] ?? 0), 0);
  const open = participants.filter(
    (one) => one.open ?? !["finished", "declined", "failed_check", "left"].includes(one.stage),
  ).length;
  const { intake } = overview;
  const everyone = Object.values(counts).reduce((total, n) => total + n, 0);
  const visitors = sum("consent", "declined"); // they did not agree to take part, or not yet
  const tile = (value, text, note) =>
    h(
      "div",
      { class: "tile" },
      h("p", { class: "tile-value" }, value),
      h("p", { class: "tile-text" }, text),
      note && h("p", { class: "fine" }, note),
    );
  view.tiles.replaceChildren(
    tile(everyone - visitors, "joined", intake?.max ? `of ${intake.max} wanted` : null),
    tile(open, "active"),
    tile(sum("finished"), "finished"),
    tile(participants.filter((one) => one.usable && !isExcluded(one)).length, "usable"),
    tile(sum("left", "declined"), "left or declined"),
    tile(sum("failed_check"), "failed the questions"),
  );
}

/** The kinds of robot in this study, as the server lists them. */
function kinds(firsts) {
  return Object.keys(Object.values(firsts ?? {})[0] ?? { naive: 0, aware: 0 });
}

function orderRow(order, usable, open) {
  return h(
    "tr",
    null,
    h("td", null, order),
    h("td", { class: "bar-number" }, usable),
    h("td", { class: "bar-number" }, open),
  );
}

/** How often each order was used and is open; `title` says what is in order. */
function ordersTable(title, rows) {
  return h(
    "table",
    { class: "orders" },
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        h("th", { scope: "col" }, title),
        h("th", { scope: "col" }, "usable"),
        h("th", { scope: "col" }, "open"),
      ),
    ),
    h("tbody", null, rows),
  );
}

function balance({ firsts, orders, map_orders: mapOrders = [] }) {
  const [leftmost, ...others] = kinds(firsts);
  const rows = Object.entries(firsts ?? {}).map(([map, times]) => {
    const total = Object.values(times).reduce((sum, n) => sum + n, 0);
    const shares = [leftmost, ...others].map((kind) => {
      const share = h("span", { class: `share ${kind}` });
      share.style.flexGrow = total ? times[kind] : 1;
      return share;
    });
    return h(
      "tr",
      null,
      h("th", { scope: "row" }, map),
      h("td", { class: "bar-number" }, times[leftmost]),
      h("td", { class: "share-cell" }, h("div", { class: total ? "shares" : "shares empty" }, shares)),
      others.map((kind) => h("td", { class: "bar-number" }, times[kind])),
    );
  });
  const list = (orders ?? []).map(({ order, usable, open }) =>
    orderRow(h("code", null, firstRobots(order).join(" ")), usable, open),
  );
  const maps = mapOrders.map(({ maps: names, usable, open }) =>
    orderRow(names.join(" "), usable, open),
  );
  view.balance.replaceChildren(
    h(
      "table",
      { class: "balance" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          h("th", { scope: "col" }, "Map"),
          h("th", { scope: "col" }, `${leftmost} first`),
          h("td"),
          others.map((kind) => h("th", { scope: "col" }, `${kind} first`)),
        ),
      ),
      h("tbody", null, rows),
    ),
    h(
      "details",
      { open: view.ordersOpen, ontoggle: (event) => (view.ordersOpen = event.target.open) },
      h("summary", null, `All orders (${list.length})`),
      ordersTable("Robot 1 on each map", list),
      maps.length > 0 && ordersTable("Order of maps", maps),
    ),
  );
}

function curve(map, learners, steps) {
  const counts = Object.values(learners).map(({ n }) => n ?? 0);
  return lineChart({
    title: `Map ${map} (n = ${[...new Set(counts)].join(", ")})`,
    last: steps,
    series: Object.entries(learners).map(([kind, { step, distance_mean: y, distance_sem: sem }]) => ({
      kind,
      x: step,
      y,
      sem,
    })),
  });
}

function when(iso) {
  if (!iso) return "";
  const date = new Date(iso);
  const seconds = (Date.now() - date.getTime()) / 1000;
  const text =
    seconds < 60
      ? "just now"
      : seconds < 3600
        ? `${Math.floor(seconds / 60)} min ago`
        : date.toLocaleString([], { dateStyle: "short", timeStyle: "short" });
  return h("time", { datetime: iso, title: date.toLocaleString() }, text);
}

function table(participants, robots, flags) {
  const open = (one) => one.open ?? false;
  const wanted = {
    all: () => true,
    open,
    finished: (one) => one.stage === "finished",
    gone: (one) => !open(one) && one.stage !== "finished",
    flagged: (one) => one.flags?.length > 0,
    excluded: isExcluded,
  }[filter];
  const heads = [
    "No.",
    "Mode",
    "Stage",
    "Steps",
    `Robot 1 (${robots.map((kind) => `${LETTERS[kind]} ${kind}`).join(", ")})`,
    "Started",
    "Last seen",
    "s / step",
    "Usable",
    "Data quality",
  ];
  const rows = participants
    .filter(wanted)
    .reverse()
    .map((one) => {
      const fill = h("span", { class: "mini-fill" });
      fill.style.width = `${one.total ? (100 * one.done) / one.total : 0}%`;
      const row = h(
        "tr",
        null,
        h("th", { scope: "row" }, one.number),
        h(
          "td",
          null,
          h("span", { class: `badge mode-${one.mode}` }, MODES[one.mode] ?? one.mode),
          one.teacher && one.teacher !== "human" && ` ${one.teacher}`,
        ),
        h(
          "td",
          null,
          STAGES[one.stage] ?? one.stage,
          one.released && h("span", { class: "badge" }, "released"),
          one.current_version === false && h("span", { class: "badge" }, "other version"),
        ),
        h("td", { class: "mini" }, h("span", { class: "mini-bar" }, fill), ` ${one.done} / ${one.total}`),
        h(
          "td",
          null,
          one.order
            ? h(
                "code",
                { title: one.order },
                firstRobots(one.order)
                  .map((learner) => LETTERS[learner] ?? "?")
                  .join(" "),
              )
            : "–",
        ),
        h("td", null, when(one.started)),
        h("td", null, when(one.last_seen)),
        h(
          "td",
          { class: "bar-number" },
          one.seconds_per_step === null || one.seconds_per_step === undefined ? "–" : one.seconds_per_step.toFixed(1),
        ),
        h("td", null, usableText(one)),
        h("td", { class: "flags" }, qualityBadges(one, flags)),
        h(
          "td",
          { class: "row-tools" },
          h(
            "button",
            { type: "button", class: "for-run", "data-key": `release-${one.number}`, disabled: !open(one), onclick: () => release(one) },
            "Release",
            h("span", { class: "sr-only" }, ` participant ${one.number}`),
          ),
          excludeButton(one, { ask, send, notice, refresh }),
          h(
            "button",
            { type: "button", class: "danger for-own", "data-key": `delete-${one.number}`, onclick: () => remove(one) },
            "Delete",
            h("span", { class: "sr-only" }, ` participant ${one.number}`),
          ),
        ),
      );
      // Shown where there is no room for a head.
      heads.forEach((text, i) => (row.children[i].dataset.label = text));
      return row;
    });
  if (rows.length === 0) return h("p", { class: "fine" }, "Nobody here yet.");
  return h(
    "table",
    { class: "people" },
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        heads.map((text) => h("th", { scope: "col" }, text)),
        h("td"),
      ),
    ),
    h("tbody", null, rows),
  );
}

function downloads() {
  return h(
    "div",
    null,
    h(
      "p",
      { class: "fine" },
      mode === "live"
        ? "Data of live participants. The files contain no external IDs."
        : `Data of mode “${mode}”. ${MODE_NOTES[mode]}`,
    ),
    h(
      "div",
      { class: "buttons" },
      FILES.map(([file, text]) =>
        h("a", { class: "button", href: `api/admin/export/${file}?mode=${mode}`, download: true }, text),
      ),
      h("a", { class: "button for-run", href: `api/admin/payments.csv?mode=${mode}`, download: true }, "Payments (CSV)"),
    ),
    h(
      "p",
      { class: "for-run" },
      h("a", { href: "preview" }, "Preview the study"),
      " · ",
      h("a", { href: "./?mode=pilot" }, "Take part as a pilot"),
    ),
  );
}

function audit(entries) {
  if (entries.length === 0) return h("p", { class: "fine" }, "Nothing has been recorded yet.");
  return h(
    "table",
    null,
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        ["When", "Who", "What", "Participant", "Detail"].map((text) => h("th", { scope: "col" }, text)),
      ),
    ),
    h(
      "tbody",
      null,
      entries.map(({ at: time, who: researcher, action, number: who, detail }) =>
        h(
          "tr",
          null,
          h("td", null, when(time)),
          h("td", null, researcher || "–"),
          h("td", null, action),
          h("td", null, who ?? "–"),
          h("td", null, detail ?? ""),
        ),
      ),
    ),
  );
}

// ---------------------------------------------------------------- actions

async function togglePause() {
  const paused = view.pause.dataset.paused !== "true";
  view.pause.disabled = true;
  if (await send("api/admin/pause", { paused })) {
    notice(paused ? "Intake is paused. Participants who have begun can continue." : "The study accepts new participants again.");
    await refresh();
  }
  if (view) view.pause.disabled = false;
}

function ask(title, text, label, kind, check, work) {
  const dialog = h("dialog", { class: "card dialog", "aria-labelledby": "ask-title" });
  const close = () => dialog.close();
  const go = h("button", { type: "submit", class: kind, disabled: Boolean(check) }, label);
  const form = h(
    "form",
    null,
    h("h2", { id: "ask-title" }, title),
    h("p", null, text),
    check && h("label", { for: "confirm" }, check.label),
    check &&
      h("input", {
        id: "confirm",
        autocomplete: "off",
        inputmode: check.value ? "numeric" : "text",
        maxlength: 500,
        oninput: (event) => {
          check.typed = event.target.value.trim();
          go.disabled = check.value ? check.typed !== check.value : !check.typed;
        },
      }),
    h("div", { class: "buttons" }, go, h("button", { type: "button", onclick: close }, "Cancel")),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (go.disabled) return;
    go.disabled = true;
    await work();
    close();
  });
  dialog.append(form);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function unblind() {
  ask(
    "Show the curves before the intake is over?",
    "Whoever has seen them may decide differently about the study. The audit and the report say that they were shown. This cannot be undone.",
    "Show the curves",
    "danger",
    null,
    async () => {
      if (await send("api/admin/unblind", {})) notice("The curves are shown from now on.");
      await refresh();
    },
  );
}

function release({ number }) {
  ask(
    `Release the slot of participant ${number}?`,
    "Somebody else gets this order. If the person comes back, they can still continue.",
    "Release the slot",
    "primary",
    null,
    async () => {
      if (await send("api/admin/release", { number })) notice(`The slot of participant ${number} is free again.`);
      await refresh();
    },
  );
}

function remove({ number }) {
  ask(
    `Delete participant ${number}?`,
    "Everything this participant did is erased. This cannot be undone. A record without content stays in the audit.",
    "Delete for good",
    "danger",
    { label: `Type ${number} to confirm`, value: String(number) },
    async () => {
      if (await send("api/admin/delete", { number, confirm: number }))
        notice(`Participant ${number} has been deleted.`);
      await refresh();
    },
  );
}

refresh();
