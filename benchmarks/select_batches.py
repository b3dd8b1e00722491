"""Choosing 32 of 320 on MNIST at 14 × 14.

Every rule, every kind of noise, three qualities of the reference:

python benchmarks/select_batches.py --out select.jsonl --workers 2

resumes; then use --table, --figure FILE or --speed.

A small convolutional network, SGD with momentum, 600 steps. All rules but "all" train on 32
examples per step (with awareness: gradients of 16 chosen examples and of 16 others). The learning
rate of each is the best of three on a validation seed; seeds 0 to 2 are measured on the test rows.

A rule is written ``rho:middle/4``: how to score, which reference, how to score more cheaply. The
reference is trained on trusted rows, or, as "halves", two networks on half of the pool each, wrong
labels included, each judging the other half. A number after the slash scores one large batch for so
many steps (the best 32, then the next 32, …); "half" lets a network of half the width score, which
is trained on the same examples.
"""

import argparse
import csv
import functools
import itertools
import json
import multiprocessing
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from scipy import stats
from torch.nn.functional import cross_entropy

from ital import select
from ital_paper import features

STEPS = 600
EVERY = 25
LARGE = 320
SMALL = 32
RATES = (0.01, 0.03, 0.1)
TUNING = 99
SEEDS = (0, 1, 2)
CONDITIONS = ("clean", "noise-20", "noise-40", "noise-60", "imbalance")
# Clean rows that the reference was trained on.
TRUSTED = {"weak": 250, "middle": 1000, "good": 4000}
PLAIN = ("uniform", "all", "loss", "gradient")
KNOWING = ("rho", "volume", "aware")
THRIFTY = ("2", "4", "8", "half")
RULES = (
    *PLAIN,
    *(f"{rule}:{quality}" for rule in KNOWING for quality in TRUSTED),
    "rho:halves",
    "volume:halves",
    *(f"rho:middle/{thrift}" for thrift in THRIFTY),
)
MEANS = ("reference", "marked")
AWARENESS = (0.001, 0.01)  # weights of the choice loss, tuned with the learning rate


class Network(torch.nn.Module):
    """Two convolutions and two dense layers; ``share`` narrows all of them."""

    def __init__(self, share: float = 1.0) -> None:
        super().__init__()
        first, second, hidden = (round(share * width) for width in (16, 32, 64))
        conv = torch.nn.Conv2d
        pool = torch.nn.MaxPool2d(2)
        relu = torch.nn.ReLU()
        body = (
            conv(1, first, 3, padding=1),
            relu,
            pool,
            conv(first, second, 3, padding=1),
            relu,
            pool,
        )
        self.body = torch.nn.Sequential(
            *body, torch.nn.Flatten(), torch.nn.Linear(second * 9, hidden), relu
        )
        self.head = torch.nn.Linear(hidden, 10)

    def forward(self, x):
        """Outputs (N, 10)."""
        return self.head(self.body(x))


@functools.cache
def data():
    """Images and labels: a pool to choose from, trusted rows, validation and test."""
    file = features.load(features.find("mnist-pixels"))
    pixels = torch.tensor(np.asarray(file.views["pixels"], np.float32)).reshape(-1, 1, 14, 14)
    test = torch.tensor(np.asarray(file.test_views["pixels"], np.float32)).reshape(-1, 1, 14, 14)
    labels, test_labels = (
        torch.tensor(np.asarray(each, np.int64)) for each in (file.labels, file.test_labels)
    )
    scale = float(pixels.max())
    return pixels / scale, labels, test / scale, test_labels


def pool(condition, seed):
    """Rows to choose from, their labels as given, and whether each is wrong (or rare)."""
    _, labels, _, _ = data()
    rng = np.random.default_rng(1000 + seed)
    rows = np.arange(5000, len(labels))
    given = labels.numpy().copy()
    marked = np.zeros(len(labels), bool)
    if condition.startswith("noise"):
        marked = rng.random(len(labels)) < int(condition.split("-")[1]) / 100
        given[marked] = (given[marked] + rng.integers(1, 10, marked.sum())) % 10
    if condition == "imbalance":
        marked = given >= 5
        rows = rows[~marked[rows] | (rng.random(len(rows)) < 0.1)]
    return rows, torch.tensor(given), marked


@functools.cache
def reference_losses(quality, condition, seed):
    """Losses of the reference on every row with its label as given, and its accuracy on the test
    rows.
    """
    x, labels, *test = data()
    rows, given, _ = pool(condition, seed)
    if quality != "halves":
        trusted = np.arange(1000, 1000 + TRUSTED[quality])
        model = trained(trusted, labels, seed)
        return cross_entropy(outputs_of(model, x), given, reduction="none"), accuracy(model, *test)
    order = np.random.default_rng(seed).permutation(rows)
    halves = (order[: len(order) // 2], order[len(order) // 2 :])
    losses = torch.full((len(labels),), torch.nan)
    right = []
    for learned, judged in (halves, halves[::-1]):
        model = trained(learned, given, seed)
        losses[judged] = cross_entropy(
            outputs_of(model, x[judged]), given[judged], reduction="none"
        )
        right.append(accuracy(model, *test))
    return losses, float(np.mean(right))


def trained(rows, labels, seed):
    """A reference, trained on these rows for 400 steps."""
    x = data()[0]
    torch.manual_seed(seed)
    model = Network()
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    rng = np.random.default_rng(seed)
    for _ in range(400):
        batch = rows[rng.integers(len(rows), size=SMALL)]
        optimizer.zero_grad()
        cross_entropy(model(x[batch]), labels[batch]).backward()
        optimizer.step()
    return model


def outputs_of(model, x):
    """Outputs of a network, some rows at a time."""
    with torch.no_grad():
        return torch.cat([model(part) for part in x.split(2000)])


def accuracy(model, x, y):
    """The share of right answers."""
    with torch.no_grad():
        return float((model(x).argmax(1) == y).float().mean())


def scores_of(rule, model, x, y, reference, lr):
    """Scores of a large batch, and its losses."""
    with torch.no_grad():
        hidden = model.body(x)
        outputs = model.head(hidden)
        losses = cross_entropy(outputs, y, reduction="none")
        if rule == "loss":
            return losses, losses
        norms = select.squared_norms_of(outputs, y, hidden)
        if rule == "gradient":
            return norms, losses
        return select.volumes(losses, reference, None if rule == "rho" else norms, lr), losses


def one(job, device="cpu", steps=STEPS):
    """One run; a row of results."""
    rule, condition, seed, lr, weight = job
    torch.set_num_threads(1)
    scoring, _, how = rule.partition(":")
    quality, _, thrift = how.partition("/")
    every = int(thrift) if thrift.isdigit() else 1  # steps per scored batch
    x, labels, test, test_labels = data()
    held_out = (x[:1000], labels[:1000]) if seed == TUNING else (test, test_labels)
    rows, given, marked = pool(condition, seed)
    known, of_reference = reference_losses(quality, condition, seed) if quality else (None, None)
    x, given, known = (None if part is None else part.to(device) for part in (x, given, known))
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    model = Network().to(device)
    scorer = Network(0.5).to(device) if thrift == "half" else model
    trained_here = [model] if scorer is model else [model, scorer]
    optimizers = [
        torch.optim.SGD(network.parameters(), lr, momentum=0.9) for network in trained_here
    ]
    curve = []
    wrong = 0.0
    seconds = 0.0
    k = SMALL // 2 if scoring == "aware" else SMALL
    waiting = []  # examples chosen from the last scored batch, for the next steps
    for step in range(1, steps + 1):
        began = time.perf_counter()
        then = None
        if waiting:
            drawn = waiting.pop(0)
        else:
            drawn = torch.tensor(
                rows[rng.integers(len(rows), size=SMALL if scoring == "uniform" else LARGE)]
            )
            if scoring not in ("uniform", "all"):
                reference = None if known is None else known[drawn]
                scores, then = scores_of(scoring, scorer, x[drawn], given[drawn], reference, lr)
                places = select.choose(scores, k * every)
                if scoring == "aware":
                    others = torch.tensor(
                        np.setdiff1d(rng.permutation(LARGE)[: 2 * k], places.numpy())[:k]
                    )
                    places = torch.cat([places, others])
                    then = then[places]
                drawn, *waiting = drawn[places.cpu()].split(k if every > 1 else len(places))
        for network, optimizer in zip(trained_here, optimizers, strict=True):
            losses = cross_entropy(network(x[drawn]), given[drawn], reduction="none")
            loss = losses[:k].mean() if scoring == "aware" else losses.mean()
            if scoring == "aware":
                loss = loss + weight * select.choice_loss(losses, then, torch.arange(k), 1.0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if device != "cpu":
            torch.cuda.synchronize()
        seconds += time.perf_counter() - began
        wrong += float(marked[drawn[:k].numpy()].mean())
        if step % EVERY == 0 and device == "cpu":
            curve.append(round(accuracy(model, *held_out), 4))
    return {
        "rule": job[0],
        "condition": condition,
        "seed": seed,
        "lr": lr,
        "weight": weight,
        "curve": curve,
        "marked": round(wrong / steps, 4),
        "ms": round(1000 * seconds / steps, 3),
        "reference": of_reference,
    }


def jobs(condition, seeds, best=None):
    """Runs of a condition: all settings on the tuning seed, or the best ones on the seeds."""
    for rule, seed in itertools.product(RULES, seeds):
        weights = AWARENESS if rule.startswith("aware") else (0.0,)
        settings = itertools.product(RATES, weights) if best is None else [best[rule, condition]]
        yield from ((rule, condition, seed, lr, weight) for lr, weight in settings)


def area(row):
    """Mean accuracy over the run: what tuning maximises."""
    return float(np.mean(row["curve"]))


def run(file, workers):
    """Run what is missing, first the tuning, then the seeds."""
    done = read(file)
    with multiprocessing.get_context("spawn").Pool(workers) as workers_pool, file.open("a") as out:

        def work(wanted):
            missing = [job for job in wanted if job not in done]
            for i, row in enumerate(workers_pool.imap_unordered(one, missing), start=1):
                done[key(row)] = row
                out.write(json.dumps(row) + "\n")
                out.flush()
                print(f"{i} of {len(missing)}: {row['rule']}, {row['condition']}", file=sys.stderr)

        work([job for condition in CONDITIONS for job in jobs(condition, (TUNING,))])
        work(
            [
                job
                for condition in CONDITIONS
                for job in jobs(condition, SEEDS, tuned(done.values()))
            ]
        )


def key(row):
    """The job of a row."""
    return row["rule"], row["condition"], row["seed"], row["lr"], row["weight"]


def read(file):
    """Finished runs by their job."""
    lines = file.read_text().splitlines() if file.exists() else []
    return {key(row): row for row in map(json.loads, lines)}


def tuned(rows):
    """The best settings of each rule and condition on the tuning seed."""
    best = {}
    for row in sorted((row for row in rows if row["seed"] == TUNING), key=area):
        best[row["rule"], row["condition"]] = row["lr"], row["weight"]
    return best


def table(file):
    """Print one row per rule and condition: means over seeds, with their 95 % intervals."""
    of: dict[tuple[str, str], list] = {}
    for row in read(file).values():
        if row["seed"] != TUNING:
            of.setdefault((row["condition"], row["rule"]), []).append(row)
    lines = []
    for condition, rule in itertools.product(CONDITIONS, RULES):
        here = of.get((condition, rule), [])
        if not here:
            continue
        curves = np.array([row["curve"] for row in here])
        goal = np.mean([row["curve"] for row in of[condition, "uniform"]], axis=0).max()
        reached = np.flatnonzero(curves.mean(axis=0) >= goal)
        mean = {
            name: np.mean([np.nan if row[name] is None else row[name] for row in here])
            for name in MEANS
        }
        lines.append(
            {
                "condition": condition,
                "rule": rule,
                "seeds": len(here),
                "lr": here[0]["lr"],
                "weight": here[0]["weight"],
                "reference": round(mean["reference"], 3),
                "accuracy_150": round(curves[:, 150 // EVERY - 1].mean(), 3),
                "accuracy_600": round(curves[:, -1].mean(), 3),
                "interval": round(stats.t.ppf(0.975, len(here) - 1) * stats.sem(curves[:, -1]), 3),
                "steps_to_uniform": int((reached[0] + 1) * EVERY) if len(reached) else "never",
                "marked": round(mean["marked"], 3),
            }
        )
    write = csv.DictWriter(sys.stdout, lines[0], lineterminator="\n")
    write.writeheader()
    write.writerows(lines)


def figure(file, picture):
    """Draw accuracy against steps for every condition, with the middle reference."""
    from matplotlib import pyplot as plt

    shown = {
        "uniform": "uniform 32",
        "all": "all 320",
        "loss": "largest loss",
        "gradient": "largest gradient",
        "rho:middle": "RHO (loss − reference)",
        "volume:middle": "volume (with norm)",
        "aware:middle": "volume, aware",
    }
    rows = [row for row in read(file).values() if row["seed"] != TUNING]
    panels, axes = plt.subplots(
        1, len(CONDITIONS), figsize=(15, 3.4), sharey=True, layout="constrained"
    )
    for axis, condition in zip(axes, CONDITIONS, strict=True):
        for rule, label in shown.items():
            curves = [
                row["curve"] for row in rows if (row["rule"], row["condition"]) == (rule, condition)
            ]
            axis.plot(
                np.arange(1, STEPS // EVERY + 1) * EVERY, np.mean(curves, axis=0), label=label
            )
        axis.set(
            title=condition.replace("noise-", "wrong labels, % ")
            if "-" in condition
            else condition,
            xlabel="step",
        )
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("test accuracy")
    panels.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=len(shown),
        frameon=False,
    )
    panels.savefig(picture, metadata={"Date": None})


def speed(device):
    """Print milliseconds per step of each rule, in turn on one thread: for an idle machine."""
    for rule in (
        "uniform",
        "all",
        "loss",
        "rho:middle",
        *(f"rho:middle/{thrift}" for thrift in THRIFTY),
        "volume:middle",
    ):
        one((rule, "noise-40", 0, 0.03, 0.0), device, steps=25)  # warms up
        times = [
            one((rule, "noise-40", seed, 0.03, 0.0), device, steps=300)["ms"] for seed in SEEDS
        ]
        print(f"{rule}: {np.median(times):.2f} ms")


def main() -> None:
    """Run, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, required=True, help="file of finished runs; a second call resumes"
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--figure", type=Path, help="draw the accuracies of finished runs into this file"
    )
    parser.add_argument("--speed", action="store_true", help="only measure the time of a step")
    parser.add_argument("--device", default="cpu", help="where --speed measures: cpu or cuda")
    parser.add_argument(
        "--table", action="store_true", help="print the table of finished runs as CSV"
    )
    options = parser.parse_args()
    if options.speed:
        speed(options.device)
    elif options.figure:
        figure(options.out, options.figure)
    elif options.table:
        table(options.out)
    else:
        run(options.out, options.workers)


if __name__ == "__main__":
    main()
