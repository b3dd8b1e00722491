"""Choosing 32 of 320 on MNIST at 14 × 14: every rule, every kind of noise, three qualities of the reference.

python benchmarks/select_batches.py --out select.jsonl --workers 2    # resumes; then --table, --figure FILE, --speed

A small convolutional network, SGD with momentum, 600 steps. All rules but "all" train on 32 examples per step (with
awareness: gradients of 16 chosen examples and of 16 others). The learning rate of each is the best of three on a
validation seed; seeds 0 to 2 are measured on the test rows.
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

from ital import features, select

STEPS, EVERY, LARGE, SMALL = 600, 25, 320, 32
RATES = (0.01, 0.03, 0.1)
TUNING, SEEDS = 99, (0, 1, 2)
CONDITIONS = ("clean", "noise-20", "noise-40", "noise-60", "imbalance")
TRUSTED = {"weak": 250, "middle": 1000, "good": 4000}  # clean rows that the reference was trained on
PLAIN = ("uniform", "all", "loss", "gradient")
KNOWING = ("rho", "volume", "aware")
RULES = (*PLAIN, *(f"{rule}:{quality}" for rule in KNOWING for quality in TRUSTED))
MEANS = ("reference", "marked")
AWARENESS = (0.001, 0.01)  # weights of the choice loss, tuned with the learning rate


class Network(torch.nn.Module):
    """Two convolutions and two dense layers."""

    def __init__(self) -> None:
        super().__init__()
        conv, pool, relu = torch.nn.Conv2d, torch.nn.MaxPool2d(2), torch.nn.ReLU()
        body = (conv(1, 16, 3, padding=1), relu, pool, conv(16, 32, 3, padding=1), relu, pool, torch.nn.Flatten())
        self.body = torch.nn.Sequential(*body, torch.nn.Linear(32 * 9, 64), relu)
        self.head = torch.nn.Linear(64, 10)

    def forward(self, x):
        """Outputs (N, 10)."""
        return self.head(self.body(x))


@functools.cache
def data():
    """Images and labels: a pool to choose from, trusted rows, validation and test."""
    file = features.load(features.find("mnist-pixels"))
    pixels = torch.tensor(np.asarray(file.views["pixels"], np.float32)).reshape(-1, 1, 14, 14)
    test = torch.tensor(np.asarray(file.test_views["pixels"], np.float32)).reshape(-1, 1, 14, 14)
    labels, test_labels = (torch.tensor(np.asarray(each, np.int64)) for each in (file.labels, file.test_labels))
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
    """Losses of a reference trained on trusted rows, on every row with its label as given."""
    x, labels, _, _ = data()
    torch.manual_seed(seed)
    model, rows = Network(), torch.arange(1000, 1000 + TRUSTED[quality])
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    rng = np.random.default_rng(seed)
    for _ in range(400):
        batch = rows[rng.integers(len(rows), size=SMALL)]
        optimizer.zero_grad()
        cross_entropy(model(x[batch]), labels[batch]).backward()
        optimizer.step()
    given = pool(condition, seed)[1]
    with torch.no_grad():
        outputs = torch.cat([model(part) for part in x.split(2000)])
    return cross_entropy(outputs, given, reduction="none"), accuracy(model, *data()[2:])


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


def one(job):
    """One run; a row of results."""
    rule, condition, seed, lr, weight = job
    torch.set_num_threads(1)
    rule, _, quality = rule.partition(":")
    x, labels, test, test_labels = data()
    tuning = seed == TUNING
    held_out = (x[:1000], labels[:1000]) if tuning else (test, test_labels)
    rows, given, marked = pool(condition, seed)
    known, of_reference = reference_losses(quality, condition, seed) if quality else (None, None)
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    model = Network()
    optimizer = torch.optim.SGD(model.parameters(), lr, momentum=0.9)
    curve, wrong, seconds = [], 0.0, 0.0
    k = SMALL // 2 if rule == "aware" else SMALL
    for step in range(1, STEPS + 1):
        began = time.perf_counter()
        drawn = torch.tensor(rows[rng.integers(len(rows), size=SMALL if rule == "uniform" else LARGE)])
        then = None
        if rule not in ("uniform", "all"):
            reference = None if known is None else known[drawn]
            scores, then = scores_of(rule, model, x[drawn], given[drawn], reference, lr)
            places = select.choose(scores, k)
            others = torch.tensor(np.setdiff1d(rng.permutation(LARGE)[: 2 * k], places.numpy())[:k])
            seen = torch.cat([places, others]) if rule == "aware" else places
            then, drawn = then[seen], drawn[seen]
        losses = cross_entropy(model(x[drawn]), given[drawn], reduction="none")
        loss = losses[:k].mean() if rule == "aware" else losses.mean()
        if rule == "aware":
            loss = loss + weight * select.choice_loss(losses, then, torch.arange(k), 1.0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seconds += time.perf_counter() - began
        wrong += float(marked[drawn[:k].numpy()].mean())
        if step % EVERY == 0:
            curve.append(round(accuracy(model, *held_out), 4))
    return {
        "rule": job[0], "condition": condition, "seed": seed, "lr": lr, "weight": weight, "curve": curve,
        "marked": round(wrong / STEPS, 4), "ms": round(1000 * seconds / STEPS, 3), "reference": of_reference,
    }  # fmt: skip


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
        work([job for condition in CONDITIONS for job in jobs(condition, SEEDS, tuned(done.values()))])


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
        mean = {name: np.mean([np.nan if row[name] is None else row[name] for row in here]) for name in MEANS}
        lines.append({
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
        })  # fmt: skip
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
    panels, axes = plt.subplots(1, len(CONDITIONS), figsize=(15, 3.4), sharey=True, layout="constrained")
    for axis, condition in zip(axes, CONDITIONS, strict=True):
        for rule, label in shown.items():
            curves = [row["curve"] for row in rows if (row["rule"], row["condition"]) == (rule, condition)]
            axis.plot(np.arange(1, STEPS // EVERY + 1) * EVERY, np.mean(curves, axis=0), label=label)
        axis.set(
            title=condition.replace("noise-", "wrong labels, % ") if "-" in condition else condition, xlabel="step"
        )
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("test accuracy")
    panels.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(shown), frameon=False)
    panels.savefig(picture, metadata={"Date": None})


def speed():
    """Print milliseconds per step of each rule, in turn on one thread; run it on an idle machine."""
    for rule in ("uniform", "all", "loss", "rho:middle", "volume:middle", "aware:middle"):
        times = [one((rule, "noise-40", seed, 0.03, 0.001))["ms"] for seed in SEEDS]
        print(f"{rule}: {np.median(times):.2f} ms")


def main() -> None:
    """Run, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="file of finished runs; a second call resumes")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--figure", type=Path, help="draw the accuracies of finished runs into this file")
    parser.add_argument("--speed", action="store_true", help="only measure the time of a step")
    parser.add_argument("--table", action="store_true", help="print the table of finished runs as CSV")
    options = parser.parse_args()
    if options.speed:
        speed()
    elif options.figure:
        figure(options.out, options.figure)
    elif options.table:
        table(options.out)
    else:
        run(options.out, options.workers)


if __name__ == "__main__":
    main()
