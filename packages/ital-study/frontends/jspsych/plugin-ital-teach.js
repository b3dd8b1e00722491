// A jsPsych plugin: a person shows one arrow to a robot that `ital study learner` serves. Each
// trial is one step; trials
// of one session teach the same robot. The script defines `jsPsychItalTeach`, loaded by a script
// tag or by `import`.

{
  const TYPE = globalThis.jsPsychModule?.ParameterType ?? {
    BOOL: 0,
    STRING: 1,
    INT: 2,
    HTML_STRING: 8,
    OBJECT: 12,
  };

  // Every word that participants see or hear. Words in braces are filled in.
  const LABELS = {
    en: {
      truth: "True map",
      belief: "The robot’s belief",
      plan: "The robot’s plan",
      arrows: "Arrows to pick from",
      arrow: "row {row}, column {column}: arrow pointing {direction}; true value {truth}, the robot believes {belief}",
      directions: ["up", "right", "down", "left"],
      wall: "{direction} into the wall (stay here)",
      pick: "Which arrow helps the robot most now? Pick one.",
      picked: "Your pick: row {row}, column {column}, {direction}.",
      confirm: "Show this arrow",
      learning: "The robot has seen your arrow …",
      changed: "The robot’s belief changed most in row {row}, column {column}: from {before} to {after}.",
      unchanged: "The robot changed its mind by too little to see.",
      trouble: "The robot does not answer. Trying again …",
    },
    de: {
      truth: "Wahre Karte",
      belief: "Was der Roboter glaubt",
      plan: "Was der Roboter tun würde",
      arrows: "Pfeile zur Auswahl",
      arrow: "Zeile {row}, Spalte {column}: Pfeil nach {direction}; wahrer Wert {truth}, der Roboter glaubt {belief}",
      directions: ["oben", "rechts", "unten", "links"],
      wall: "{direction} gegen die Wand (hier bleiben)",
      pick: "Welcher Pfeil hilft dem Roboter jetzt am meisten? Wählen Sie einen aus.",
      picked: "Ihre Wahl: Zeile {row}, Spalte {column}, nach {direction}.",
      confirm: "Diesen Pfeil zeigen",
      learning: "Der Roboter hat Ihren Pfeil gesehen …",
      changed: "Am meisten geändert hat der Roboter Zeile {row}, Spalte {column}: von {before} auf {after}.",
      unchanged: "Der Roboter hat seine Meinung so wenig geändert, dass man es nicht sieht.",
      trouble: "Der Roboter antwortet nicht. Neuer Versuch …",
    },
  };
  const LOW = [142, 100, 231];
  const ZERO = [247, 247, 247];
  const HIGH = [199, 100, 20];
  const VISIBLE = 0.05; // changes of a belief below this cannot be seen

  const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
  const fill = (text, values) =>
    text.replace(/\{(\w+)\}/g, (braces, name) => values[name] ?? braces);

  function node(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === true) made.setAttribute(name, "");
      else if (value !== false && value !== null) made.setAttribute(name, value);
    }
    made.append(...children.filter((child) => child !== null));
    return made;
  }

  class Refusal extends Error {}

  /**
   * Ask the learner, and keep asking while it does not answer: it stores nothing, so that repeating
   * is harmless.
   */
  async function ask(address, body, trouble) {
    const posted = {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    };
    for (let pause = 500; ; pause = Math.min(2 * pause, 8000)) {
      try {
        const answer = await fetch(address, body === null ? {} : posted);
        if (answer.ok) return await answer.json();
        if (answer.status < 500 && answer.status !== 429) {
          throw new Refusal((await answer.json()).error);
        }
      } catch (error) {
        if (error instanceof Refusal) throw error;
        console.warn(
          `${address} does not answer. Was it started with --allow-origin ${location.origin}?`,
        );
      }
      trouble();
      await wait(pause);
    }
  }

  /** A robot between two trials. */
  class Robot {
    constructor({ server, map, robot, number }) {
      this.address = `${server.replace(/\/+$/, "")}/api/learner`;
      this.wanted = { map, robot, number };
    }

    async start(trouble) {
      if (this.scene) return;
      const told = await ask(this.address, null, trouble);
      this.scene = await ask(`${this.address}/start`, this.wanted, trouble);
      this.size = told.size;
      this.truth = told.maps.find((one) => one.name === this.wanted.map).rewards;
      this.limit = Math.max(...this.truth.map(Math.abs)) || 1;
    }

    async see(candidates, choice, trouble) {
      const { state } = this.scene;
      this.scene = await ask(`${this.address}/step`, { state, candidates, choice }, trouble);
    }

    place(cell) {
      return { row: Math.floor(cell / this.size) + 1, column: (cell % this.size) + 1 };
    }

    /** −1 to 1; the square root makes small beliefs visible beside the largest reward. */
    strength(value) {
      return Math.sign(value) * Math.sqrt(Math.min(Math.abs(value) / this.limit, 1));
    }
  }

  /** What a trial shows: three maps, the arrows, the button. */
  class View {
    constructor(display, trial) {
      this.trial = trial;
      this.labels = { ...LABELS[trial.language], ...trial.labels };
      this.status = node("p", { class: "ital-status", role: "status" });
      this.button = node("button", { class: "jspsych-btn", disabled: true }, this.labels.confirm);
      this.maps = node("div", { class: "ital-maps" });
      const look = trial.numbers ? "ital-teach ital-numbers" : "ital-teach";
      const shape = { class: look, lang: trial.language };
      this.form = node("form", shape, this.maps, this.status, this.button);
      if (trial.prompt !== null) {
        const prompt = node("div", { class: "ital-prompt" });
        prompt.innerHTML = trial.prompt;
        this.form.prepend(prompt);
      }
      display.replaceChildren(this.form);
    }

    say = (text) => {
      this.status.textContent = text;
    };

    decimal(value, digits) {
      const rounded = Number(value.toFixed(digits)) || 0; // no minus before zero
      const places = { minimumFractionDigits: digits, maximumFractionDigits: digits };
      return rounded.toLocaleString(this.trial.language, places).replace("-", "−");
    }

    trouble = () => this.say(this.labels.trouble);

    draw(robot, candidates) {
      this.robot = robot;
      this.candidates = candidates;
      this.radios = [];
      this.form.style.setProperty("--size", robot.size);
      const cells = () => robot.truth.map(() => node("td"));
      this.cells = { truth: cells(), belief: cells(), plan: cells() };
      const panels = Object.entries(this.cells).map(([kind, all]) => {
        const rows = Array.from({ length: robot.size }, (_, row) =>
          node("tr", {}, ...all.slice(row * robot.size, (row + 1) * robot.size)),
        );
        const caption = node("caption", {}, this.labels[kind]);
        return node("table", { class: `ital-map ital-${kind}` }, caption, ...rows);
      });
      const group = { role: "radiogroup", "aria-label": this.labels.arrows };
      const choices = node("div", group, panels[0]);
      this.maps.replaceChildren(choices, panels[1], panels[2]);
      robot.truth.forEach((value, cell) => {
        this.cells.truth[cell].classList.toggle("ital-bad", value < 0);
        this.#value("truth", cell, value, 0);
      });
      this.learned(robot.scene);
      const reading = candidates
        .map((_, i) => i)
        .sort((a, b) => candidates[a].cell - candidates[b].cell);
      reading.forEach((index) => this.#arrow(index));
      this.say(this.labels.pick);
      this.radios[reading[0]].focus({ preventScroll: true });
    }

    /** Show what the robot believes and would do. */
    learned({ belief, plan }) {
      belief.forEach((value, cell) => this.#value("belief", cell, value, 1));
      plan.forEach((action, cell) => {
        const words = node("span", { class: "ital-spoken" }, this.#direction({ cell, action }));
        this.cells.plan[cell].replaceChildren(this.#shape({ cell, action }), words);
      });
    }

    #value(kind, cell, value, digits) {
      const td = this.cells[kind][cell];
      const strength = this.robot.strength(value);
      const end = value < 0 ? LOW : HIGH;
      const mixed = ZERO.map((part, i) => Math.round(part + (end[i] - part) * Math.abs(strength)));
      td.style.backgroundColor = `rgb(${mixed.join(" ")})`;
      const sign = Math.abs(value) < VISIBLE ? "" : value < 0 ? "−" : kind === "truth" ? "★" : "+";
      const mark = node("span", { class: "ital-mark", "aria-hidden": "true" });
      mark.textContent = this.trial.numbers ? this.decimal(value, digits) : sign;
      if (!this.trial.numbers && kind === "belief") {
        mark.style.setProperty("--strength", Math.abs(strength));
      }
      td.querySelectorAll(".ital-mark, .ital-spoken").forEach((old) => old.remove());
      td.prepend(mark, node("span", { class: "ital-spoken" }, this.decimal(value, digits)));
    }

    #into({ cell, action }) {
      const { row, column } = this.robot.place(cell);
      return [row === 1, column === this.robot.size, row === this.robot.size, column === 1][action];
    }

    #direction(arrow) {
      const direction = this.labels.directions[arrow.action];
      return this.#into(arrow) ? fill(this.labels.wall, { direction }) : direction;
    }

    /** An arrow; one that runs into the wall has a bar before its head. */
    #shape(arrow) {
      const shape = node("span", { class: "ital-arrow", "aria-hidden": "true" });
      shape.innerHTML = `<svg viewBox="0 0 100 100"><g transform="rotate(${90 * arrow.action} 50 50)">
        <path d="M50 18 L80 52 H61 V84 H39 V52 H20 Z"/>${this.#into(arrow) ? '<path d="M18 2 H82 V13 H18 Z"/>' : ""}</g></svg>`;
      return shape;
    }

    /**
     * An arrow to pick: a radio button on the true map, and a second label for it on the belief.
     */
    #arrow(index) {
      const { robot, labels } = this;
      const arrow = this.candidates[index];
      const { cell } = arrow;
      const id = `ital-arrow-${index}`;
      const name = fill(labels.arrow, {
        ...robot.place(cell),
        direction: this.#direction(arrow),
        truth: this.decimal(robot.truth[cell], 0),
        belief: this.decimal(robot.scene.belief[cell], 1),
      });
      const radio = node("input", {
        type: "radio",
        name: "ital-arrow",
        id,
        value: index,
        "aria-label": name,
      });
      radio.addEventListener("change", () => this.#pick(index));
      this.radios[index] = radio;
      const label = () => node("label", { class: "ital-choice", for: id }, this.#shape(arrow));
      const [first, second] = [label(), label()];
      first.prepend(radio);
      second.setAttribute("aria-hidden", "true");
      this.cells.truth[cell].append(first);
      this.cells.belief[cell].append(second);
    }

    #pick(index) {
      const arrow = this.candidates[index];
      this.form.querySelectorAll(".ital-choice").forEach((label) => {
        label.classList.toggle("ital-chosen", label.htmlFor === `ital-arrow-${index}`);
      });
      const picked = { ...this.robot.place(arrow.cell), direction: this.#direction(arrow) };
      this.say(fill(this.labels.picked, picked));
      this.button.disabled = false;
      this.onpick();
    }

    /** What the person confirms, and how long it took them. */
    choice() {
      const shown = performance.now();
      const since = () => Math.round(performance.now() - shown);
      let first = null;
      let picks = 0;
      this.onpick = () => {
        first ??= since();
        picks += 1;
      };
      return new Promise((done) => {
        this.form.addEventListener("submit", (event) => {
          event.preventDefault();
          const choice = this.radios.findIndex((radio) => radio.checked);
          if (choice < 0 || this.button.disabled) return;
          this.button.disabled = true;
          this.form.classList.add("ital-locked");
          this.say(this.labels.learning);
          done({ choice, rt: since(), rt_first: first, changes: picks - 1 });
        });
      });
    }

    /** Show what the arrow did to the belief, in the map and in words. */
    async update(before, scene, duration) {
      const change = scene.belief.map((value, cell) => Math.abs(value - before[cell]));
      const most = change.indexOf(Math.max(...change));
      const seen = change[most] >= VISIBLE;
      change.forEach((size, cell) => {
        const marked = seen && size >= Math.max(VISIBLE, 0.3 * change[most]);
        this.cells.belief[cell].classList.toggle("ital-changed", marked);
      });
      this.learned(scene);
      const values = {
        ...this.robot.place(most),
        before: this.decimal(before[most], 2),
        after: this.decimal(scene.belief[most], 2),
      };
      this.say(fill(seen ? this.labels.changed : this.labels.unchanged, values));
      await wait(duration);
    }
  }

  const sessions = new WeakMap(); // the robots of each jsPsych, by session

  globalThis.jsPsychItalTeach = class {
    static info = {
      name: "ital-teach",
      version: "1.0.0",
      parameters: {
        /** Address of `ital study learner`. */
        server: { type: TYPE.STRING, default: undefined },
        /** Name of a map. */
        map: { type: TYPE.STRING, default: "A" },
        /** naive, aware or adaptive. */
        robot: { type: TYPE.STRING, default: "aware" },
        /** Start and candidates follow from it; null lets the learner draw one. */
        number: { type: TYPE.INT, default: null },
        /**
         * Trials of one session teach one robot; null makes one session of each server, map, robot
         * and number.
         */
        session: { type: TYPE.STRING, default: null },
        /** Arrows of this step, as [{cell, action}]; null takes those of the study. */
        candidates: { type: TYPE.OBJECT, default: null },
        /** HTML above the maps. */
        prompt: { type: TYPE.HTML_STRING, default: null },
        /** Write the values into the cells. */
        numbers: { type: TYPE.BOOL, default: false },
        /** Milliseconds for which the new belief is shown. */
        update_duration: { type: TYPE.INT, default: 1500 },
        /** Language of the words: en or de. Give labels for any other. */
        language: { type: TYPE.STRING, default: "en" },
        /** Words that replace those of the language. */
        labels: { type: TYPE.OBJECT, default: {} },
      },
      data: {
        map: { type: TYPE.STRING },
        robot: { type: TYPE.STRING },
        number: { type: TYPE.INT },
        step: { type: TYPE.INT },
        candidates: { type: TYPE.OBJECT },
        choice: { type: TYPE.INT },
        rt: { type: TYPE.INT },
        rt_first: { type: TYPE.INT },
        changes: { type: TYPE.INT },
        belief: { type: TYPE.OBJECT },
        plan: { type: TYPE.OBJECT },
        signals: { type: TYPE.OBJECT },
      },
    };

    constructor(jsPsych) {
      this.jsPsych = jsPsych;
    }

    trial(display, trial, on_load) {
      return this.#run(display, trial, on_load, trial.update_duration);
    }

    /** jsPsych's simulation: picks an arrow at random. */
    simulate(trial, mode, options, on_load) {
      const pause = mode === "visual" ? 400 : 0;
      const loaded = async (view) => {
        on_load();
        await wait(pause);
        view.radios[options.data?.choice ?? Math.floor(Math.random() * view.radios.length)].click();
        await wait(pause);
        view.form.requestSubmit();
      };
      return this.#run(this.jsPsych.getDisplayElement(), trial, loaded, pause);
    }

    async #run(display, trial, on_load, duration) {
      const view = new View(display, trial);
      const robot = this.#robot(trial);
      await robot.start(view.trouble);
      const { state, belief } = robot.scene;
      const candidates = trial.candidates ?? robot.scene.candidates;
      if (!candidates) {
        throw new Error(
          `ital-teach: the study has arrows for ${state.step} steps only; ` +
            "give candidates of your own",
        );
      }
      view.draw(robot, candidates);
      const answer = view.choice();
      on_load(view);
      const { choice, ...times } = await answer;
      await robot.see(candidates, choice, view.trouble);
      await view.update(belief, robot.scene, duration);
      const { map, robot: kind, number, step } = state;
      const { plan, signals } = robot.scene;
      return {
        map,
        robot: kind,
        number,
        step,
        candidates,
        choice,
        ...times,
        belief: robot.scene.belief,
        plan,
        signals,
      };
    }

    #robot(trial) {
      if (!sessions.has(this.jsPsych)) sessions.set(this.jsPsych, new Map());
      const robots = sessions.get(this.jsPsych);
      const robot = [trial.server, trial.map, trial.robot, trial.number];
      const name = trial.session ?? JSON.stringify(robot);
      if (!robots.has(name)) robots.set(name, new Robot(trial));
      return robots.get(name);
    }
  };
}
