// A participant in Firefox, driven over WebDriver BiDi: `node firefox.mjs JSON`, with modules,
// browser, address and answers. Prints what was seen as JSON. Pages are told apart by their parts,
// not by their words.

import { createRequire } from "node:module";
import path from "node:path";

const { modules, browser, address, answers } = JSON.parse(process.argv[2]);
const puppeteer = createRequire(path.join(modules, "anything"))("puppeteer-core");

/**
 * Runs in the page: which part of the study it shows, and a text that changes with every page and
 * step.
 */
function look() {
  const has = (selector) => document.querySelector(selector) !== null;
  const text = (selector) => document.querySelector(selector)?.textContent ?? "";
  const stages = {
    done: "code.code",
    interlude: ".interlude .primary",
    teach: "[role=option]",
    check: "form.check",
    comments: "main textarea",
    page: "main .buttons .primary",
  };
  const stage = Object.keys(stages).find((name) => has(stages[name])) ?? "nothing";
  return { stage, mark: [stage, text("h1"), text(".kicker"), text(".round-head")].join("|") };
}

// Pauses for the reader are cut to a tenth, as in the other tests.
function hurry() {
  const wait = window.setTimeout;
  window.setTimeout = (work, pause, ...rest) =>
    wait(work, pause <= 1500 ? pause / 10 : pause, ...rest);
}

/** The pages' content policy forbids what puppeteer's own waiting does inside the page. */
async function until(holds) {
  for (const end = Date.now() + 20_000; Date.now() < end; ) {
    if (await holds()) return;
    await new Promise((done) => setTimeout(done, 30));
  }
  throw new Error(`waited too long; so far: ${JSON.stringify(seen)}`);
}

const fox = await puppeteer.launch({ browser: "firefox", executablePath: browser, headless: true });
const seen = {
  browser: await fox.version(),
  stages: [],
  inputs: [],
  troubles: [],
  code: null,
  done_after_reload: null,
};
try {
  const page = await fox.newPage();
  page.setDefaultTimeout(20_000);
  await page.setViewport({ width: 1280, height: 720 });
  await page.evaluateOnNewDocument(hurry);
  page.on("pageerror", (error) => seen.troubles.push(`script: ${error.message}`));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(address) && !url.startsWith("data:")) seen.troubles.push(url);
  });

  const primary = () => page.click("main .buttons .primary");
  const byMouse = async (nth) => {
    await (await page.$$("[role=option]"))[nth].click();
    await page.click(".confirm");
  };
  const byKeyboard = async (nth) => {
    await until(() =>
      page.evaluate(() => document.activeElement.getAttribute("role") === "option"),
    );
    await page.keyboard.press("Home");
    for (let i = 0; i < nth; i += 1) await page.keyboard.press("ArrowDown");
    await page.keyboard.press(" ");
    await page.keyboard.press("Enter");
  };
  const actions = {
    page: primary,
    interlude: () => page.click(".interlude .primary"),
    check: async () => {
      for (const [question, answer] of answers.entries()) {
        await (await page.$$(`input[name=question-${question}]`))[answer].click();
      }
      await primary();
    },
    teach: async () => {
      const step = seen.inputs.length;
      if (step === 3) {
        const before = await page.$$eval(".pip.done", (all) => all.length);
        await page.reload();
        await page.waitForSelector("[role=option]");
        seen.done_after_reload = [before, await page.$$eval(".pip.done", (all) => all.length)];
      }
      seen.inputs.push(step % 2 ? "keyboard" : "mouse");
      await (step % 2 ? byKeyboard : byMouse)(step % 10);
    },
    comments: async () => {
      await page.type("main textarea", "Seen in Firefox.");
      await primary();
    },
  };

  await page.goto(`${address}/?PROLIFIC_PID=fox&STUDY_ID=s&SESSION_ID=t`);
  let { stage, mark } = { stage: "nothing", mark: "" };
  for (let turn = 0; turn < 80 && stage !== "done"; turn += 1) {
    const last = mark;
    await until(async () => {
      ({ stage, mark } = await page.evaluate(look));
      return stage !== "nothing" && mark !== last;
    });
    if (seen.stages.at(-1) !== stage) seen.stages.push(stage);
    await actions[stage]?.();
  }
  seen.code = await page.$eval("code.code", (node) => node.textContent);
} finally {
  await fox.close();
}
console.log(JSON.stringify(seen));
