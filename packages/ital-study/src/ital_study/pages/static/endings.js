// The pages after which nothing follows: codes, the way back to where people came from, and who cannot take part.

import { h, once, prose, t } from "./page.js";

/** The address to return to, with its fields filled in from the page's own link; null if the link lacks one. */
function returnAddress({ redirect, code, pass_through: others }) {
  const link = new URLSearchParams(location.search);
  let complete = true;
  const filled = redirect.replace(/\{([A-Za-z][A-Za-z0-9_-]*)\}/g, (_field, name) => {
    const value = name === "code" ? code : link.get(name);
    if (!value) complete = false;
    return encodeURIComponent(value ?? "");
  });
  if (!complete) return null;
  try {
    const url = new URL(filled);
    for (const name of others) {
      if (link.has(name) && !redirect.includes(`{${name}}`)) url.searchParams.set(name, link.get(name));
    }
    return ["http:", "https:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

function codeRow(code, title) {
  const copied = h("span", { class: "fine", role: "status" });
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(code);
      copied.textContent = t("finished.copied");
    } catch {
      copied.textContent = t("finished.copy_yourself");
    }
  };
  return [
    h("h2", null, title),
    h(
      "p",
      { class: "code-row" },
      h("code", { class: "code" }, code),
      h("button", { type: "button", onclick: copy }, t("finished.copy")),
      copied,
    ),
  ];
}

/** The code and the button that leads back; null if the study has neither for this end. */
export function wayBack({ completion, study }, title = t("return.code")) {
  const { code, redirect } = completion ?? {};
  if (!code && !redirect) return null;
  const panel = study?.panel;
  const address = redirect && returnAddress(completion);
  const button = () =>
    h("a", { class: "button primary", href: address, rel: "noreferrer" }, panel ? t("return.to", { panel }) : t("finished.return"));
  const advice = () => t(panel ? "return.by_link_panel" : "return.by_link", { panel });
  return [code && codeRow(code, title), redirect && h("p", null, address ? button() : advice())];
}

/** A field for the resume code, where a browser must prove that the data are its person's; null where it need not. */
export function proof(state) {
  if (state.resume_code || state.stage === "consent") return null;
  const input = h("input", { id: "proof", autocomplete: "off", autocapitalize: "characters", spellcheck: "false", maxlength: 32 });
  const field = h("div", { class: "proof" }, h("p", null, t("leave.code_text")), h("label", { for: "proof" }, t("leave.code")), input);
  return { field, input, code: () => input.value.trim().toUpperCase() };
}

/** What the study was about, for everybody who took part, however it ended. */
export function about({ debriefing }) {
  if (!debriefing) return null;
  return [h("h2", null, t("finished.about")), h("div", { class: "prose" }, prose(debriefing, 2))];
}

/** What people can do after the end: return by their code, and have their data deleted. */
export function afterwards(state, tools) {
  const code = state.resume_code;
  return [
    code &&
      h(
        "div",
        { class: "resume-again" },
        h("p", null, `${t("page.resume_code")} `, h("strong", null, code)),
        h("p", { class: "fine" }, t("ended.resume")),
      ),
    withdrawal(state, tools),
  ];
}

function withdrawal(state, tools) {
  const ask = h("button", { type: "button", class: "quiet" }, t("finished.delete"));
  const row = h("div", { class: "fine withdrawal" }, ask);
  const warning = state.completion?.code ? "finished.delete_text" : "leave.sure_text";
  ask.addEventListener("click", () => {
    const proven = proof(state);
    const sure = once(t("finished.delete_yes"), () => tools.leave(false, proven?.code()), "danger");
    row.replaceChildren(t(warning), " ", ...(proven ? [proven.field] : []), sure);
    (proven?.input ?? sure).focus();
  });
  return row;
}

/** The link has no identity, or a template that nobody filled in. */
export function identity({ problem, parameter, study }) {
  const panel = study?.panel;
  return [
    h("h1", null, t("identity.title")),
    h("p", { class: "lead" }, t(`identity.${problem}`)),
    h("p", null, t(panel ? "identity.what_panel" : "identity.what", { panel, parameter })),
    h("p", null, t("identity.nothing")),
  ];
}

/** Only people with a link of their own may take part, and this one does not let anybody in. */
export function link({ problem, last_day: date }) {
  return [
    h("h1", null, t(`link.${problem}_title`)),
    h("p", { class: "lead" }, t(`link.${problem}`, { date })),
    h("p", null, t(problem === "used" ? "link.again" : "identity.nothing")),
  ];
}

/** A page with a title and a few sentences, then the way back. */
export function farewell(area, ...sentences) {
  return (state) => [
    h("h1", null, t(`${area}.title`)),
    sentences.map((key) => h("p", null, t(key.includes(".") ? key : `${area}.${key}`))),
    wayBack(state),
  ];
}
