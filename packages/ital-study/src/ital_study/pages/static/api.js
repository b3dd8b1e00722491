// Requests to the server. A request that is safe to repeat is repeated until it succeeds.

import { wait } from "./dom.js";

const TIMEOUT = 15_000;
const PAUSES = [1000, 2000, 4000, 8000];

/** The server refused the request. */
export class Refused extends Error {
  constructor(status, answer, retryAfter) {
    super(answer?.error ?? "The server could not answer this request.");
    this.status = status;
    this.code = answer?.code ?? "";
    this.state = answer?.state ?? null;
    this.retryAfter = retryAfter;
  }
}

/** The server could not be reached. */
export class Unreachable extends Error {}

/** One request; JSON in and out. */
export async function request(method, path, body, { csrf, keepalive = false } = {}) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (csrf) headers["X-CSRF-Token"] = csrf;
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), TIMEOUT);
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
      cache: "no-store",
      redirect: "error",
      signal: abort.signal,
      keepalive,
    });
    const answer = await response.json().catch(() => null);
    if (response.ok && answer !== null) return answer;
    if ([502, 503, 504].includes(response.status)) throw new Unreachable("the server is away");
    if (response.ok) throw new Unreachable("the answer was cut off");
    throw new Refused(response.status, answer, Number(response.headers.get("Retry-After")) || 0);
  } catch (error) {
    if (error instanceof Refused || error instanceof Unreachable) throw error;
    throw new Unreachable(error.message);
  } finally {
    clearTimeout(timer);
  }
}

/** Repeat `attempt` until the server answers. Calls `trouble(true)` when it stops answering, `trouble(false)` after. */
export async function insist(attempt, trouble) {
  for (let tries = 0; ; tries += 1) {
    try {
      const answer = await attempt();
      if (tries > 0) trouble(false);
      return answer;
    } catch (error) {
      const busy = error instanceof Refused && error.status === 429;
      if (!busy && !(error instanceof Unreachable)) {
        if (tries > 0) trouble(false);
        throw error;
      }
      trouble(true, busy);
      const pause = busy ? Math.min(Math.max(error.retryAfter * 1000, 1000), 60_000) : PAUSES[Math.min(tries, 3)];
      await Promise.race([wait(pause), again()]);
    }
  }
}

const waiting = new Set();

/** Resolves when the browser is online again or the person asks to try now. */
function again() {
  return new Promise((resolve) => waiting.add(resolve));
}

export function tryNow() {
  waiting.forEach((resolve) => resolve());
  waiting.clear();
}

window.addEventListener("online", tryNow);
