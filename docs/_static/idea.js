// The paper's rule for linear regression, as pure functions of plain arrays, in any dimension.
// A mini-batch is {rows, labels, order}: `order` is a random permutation that says who is seen first.
// A classic script, not a module: browsers refuse modules from file://.

"use strict";

const idea = (() => {
  const dot = (u, v) => u.reduce((sum, each, i) => sum + each * v[i], 0);

  /** u + scale · v. */
  const addScaled = (u, scale, v) => u.map((each, i) => each + scale * v[i]);

  /** The distance between two points. */
  const distance = (u, v) => Math.hypot(...addScaled(u, -1, v));

  /** The losses ½(w·x − y)² of a mini-batch at w, and their gradients. */
  function lossesAndGradients(w, { rows, labels }) {
    const misses = rows.map((x, i) => dot(w, x) - labels[i]);
    return {
      losses: misses.map((miss) => miss ** 2 / 2),
      gradients: rows.map((x, i) => x.map((each) => misses[i] * each)),
    };
  }

  /** The imitated teaching volume of each example, eq. (imit-teaching-volume): −η²‖g‖² + 2η(l(w) − l(target)). */
  function volumes(lr, w, target, batch) {
    const here = lossesAndGradients(w, batch);
    const there = lossesAndGradients(target, batch);
    return here.gradients.map((g, i) => -(lr ** 2) * dot(g, g) + 2 * lr * (here.losses[i] - there.losses[i]));
  }

  /** The teacher's choice: the example of the largest volume, the first of equals. */
  const choose = (scores) => scores.indexOf(Math.max(...scores));

  /** Whether the learner sees each example: the chosen one and the first `view` − 1 others in `order`. */
  function inView({ order }, chosen, view) {
    return order.map((place, i) => i === chosen || place + (place < order[chosen] ? 1 : 0) < view);
  }

  /** A gradient step on one example. */
  function naiveStep(lr, w, batch, chosen) {
    return addScaled(w, -lr, lossesAndGradients(w, batch).gradients[chosen]);
  }

  /** q, eq. (q-imit): a softmax of β · volume over the examples in view, 0 elsewhere. */
  function imaginedChoice(beta, scores, seen) {
    const largest = Math.max(...scores.filter((_, i) => seen[i]).map((score) => beta * score));
    const weights = scores.map((score, i) => (seen[i] ? Math.exp(beta * score - largest) : 0));
    const total = weights.reduce((sum, each) => sum + each, 0);
    return weights.map((each) => each / total);
  }

  /**
   * The naive step, then the awareness step, eq. (imit-update): w′ = ŵ − 2βη²(g_c − Σ qᵢgᵢ), gradients at ŵ.
   * Returns ŵ (`guess`), q and w′ (`w`).
   */
  function awareStep(lr, beta, view, w, batch, chosen) {
    const guess = naiveStep(lr, w, batch, chosen);
    const q = imaginedChoice(beta, volumes(lr, w, guess, batch), inView(batch, chosen, view));
    const { gradients } = lossesAndGradients(guess, batch);
    const scale = -2 * beta * lr ** 2;
    const after = gradients.reduce((at, g, i) => addScaled(at, scale * ((i === chosen ? 1 : 0) - q[i]), g), guess);
    return { guess, q, w: after };
  }

  /** One step of both learners on one mini-batch. The teacher chooses for each learner by that learner's answers. */
  function step({ lr, beta, view, target }, { naive, aware }, batch) {
    const scores = { naive: volumes(lr, naive, target, batch), aware: volumes(lr, aware, target, batch) };
    const chosen = { naive: choose(scores.naive), aware: choose(scores.aware) };
    const { guess, q, w } = awareStep(lr, beta, view, aware, batch, chosen.aware);
    return { scores, chosen, guess, q, naive: naiveStep(lr, naive, batch, chosen.naive), aware: w };
  }

  /** Random numbers in [0, 1) from a seed (mulberry32). */
  function random(seed) {
    let state = seed | 0;
    return () => {
      state = (state + 0x6d2b79f5) | 0;
      let mixed = Math.imul(state ^ (state >>> 15), state | 1);
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    };
  }

  /** A target and a start in the plane, well apart, and `steps` mini-batches of `size` examples. */
  function world(seed, steps, size) {
    const draw = random(seed);
    const point = () => [2 * draw() - 1, 2 * draw() - 1];
    const target = point();
    let start = point();
    while (distance(start, target) < 1.2) start = point();
    const batches = Array.from({ length: steps }, () => {
      const rows = Array.from({ length: size }, point);
      const tickets = rows.map(draw);
      const order = tickets.map((mine) => tickets.filter((other) => other < mine).length);
      return { rows, labels: rows.map((x) => dot(x, target)), order };
    });
    return { target, start, batches };
  }

  return { awareStep, choose, distance, imaginedChoice, inView, naiveStep, random, step, volumes, world };
})();
