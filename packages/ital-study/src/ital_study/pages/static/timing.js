// What is measured while a person teaches: when arrows were shown, picked and confirmed, and whether they looked away.

const MOST_EVENTS = 50;
const KEPT_EVENTS = 400;

/** The times of one step. */
export class StepClock {
  constructor() {
    this.shownAt = Date.now();
    this.begin = performance.now();
    this.choice = null;
    this.changes = 0;
    this.focusLosses = 0;
    this.input = null;
  }

  /** Record a pick; returns whether it is the first, another one, or the same again. */
  choose(index, input) {
    if (index === this.choice) return "same";
    const kind = this.choice === null ? "chosen" : "choice_changed";
    if (this.choice === null) this.firstChoiceAt = Date.now();
    else this.changes += 1;
    this.choice = index;
    this.chosenAt = Date.now();
    this.chosen = performance.now();
    this.input = input;
    return kind;
  }

  confirm() {
    const seconds = (end) => Math.round(end - this.begin) / 1000;
    return {
      shown_at: this.shownAt,
      first_choice_at: this.firstChoiceAt,
      chosen_at: this.chosenAt,
      confirmed_at: Date.now(),
      seconds_to_choice: seconds(this.chosen),
      seconds_to_confirm: seconds(performance.now()),
      choice_changes: this.changes,
      focus_losses: this.focusLosses,
      input: this.input,
    };
  }
}

/**
 * Collects events and sends them in batches. `send` says what became of a batch: "stored", "away" (it stays for the next
 * time) or "refused": the server does not take one of its events, so each is sent alone and the others are kept.
 */
export class Recorder {
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
export function watchFocus(lost, regained) {
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
export function screenFacts(smallAccepted) {
  const pointer = ["fine", "coarse"].find((kind) => window.matchMedia(`(pointer: ${kind})`).matches) ?? "none";
  const { innerWidth: width, innerHeight: height, devicePixelRatio: ratio } = window;
  return { width, height, ratio, pointer, small_accepted: smallAccepted };
}

/** Whether the screen is small, as a function; `changed` is called when it becomes small or large. */
export function watchScreen(smallest, changed) {
  const narrow = `(max-width: ${smallest - 1}px), (max-height: 430px) and (pointer: coarse)`;
  const small = window.matchMedia(smallest > 0 ? narrow : "not all");
  small.addEventListener("change", changed);
  return () => small.matches;
}
