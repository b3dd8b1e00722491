"""Breaks the sources in small ways, one at a time, and lists the errors that no test notices.

python -m tools.mutants [--number N] [--seed S] [--only PATH] [--workers N]

A seeded sample of the errors that can be made (``mutations.py``), in proportion to each package;
each is tried in a copy of the tree with the tests that run its line (``covering.py``). Everything
is kept in ``build/mutants``: the same command resumes, and tries again only what a change of
sources or tests may have changed.
"""

import argparse
import difflib
import json
import queue
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tools.mutants import lists, running, sampling, trees
from tools.mutants.covering import Map, digest, file_of
from tools.mutants.running import Mutant, Verdict

ROOT = Path(__file__).resolve().parents[2]


class Session:
    """Mutants of a tree, tried by several workers; what is known is kept in a file."""

    def __init__(self, root: Path, folder: Path, budget: float) -> None:
        self.root = root
        self.folder = folder
        self.budget = budget
        self.covered = Map(root, folder / "map")
        self.results = folder / "results.jsonl"
        self.state = _state(root)
        self.known = self._read()

    def _read(self) -> dict[str, Verdict]:
        """Verdicts that still hold."""
        if not self.results.exists():
            return {}
        rows = [json.loads(line) for line in self.results.read_text("utf-8").splitlines()]
        return {row["mutant"]: Verdict(*row["verdict"]) for row in rows if self._holds(row)}

    def _holds(self, row: dict) -> bool:
        """Whether a verdict needs no new try: what killed a mutant is unchanged, or everything."""
        verdict = Verdict(*row["verdict"])
        if verdict.outcome == running.SURVIVED:
            return row["state"] == self.state and row["budget"] == self.budget
        return row["guard"] == self.covered.now.get(file_of(verdict.by), "")

    def keep(self, mutant: Mutant, verdict: Verdict) -> None:
        """Store a verdict at once."""
        self.known[name_of(mutant)] = verdict
        guard = self.covered.now.get(file_of(verdict.by), "")
        row = {"mutant": name_of(mutant), "verdict": verdict, "guard": guard}
        row |= {"state": self.state, "budget": self.budget}
        with self.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def try_all(self, mutants: Sequence[Mutant], workers: int) -> None:
        """Try the mutants without a verdict, and say how it went."""
        left = [mutant for mutant in mutants if name_of(mutant) not in self.known]
        if len(left) < len(mutants):
            print(f"{len(mutants) - len(left)} of {len(mutants)} are known from earlier")
        free: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for worker in range(min(workers, len(left))):
            free.put(trees.copy_tree(self.root, self.folder / f"tree-{worker}"))

        def one(mutant: Mutant) -> tuple[Mutant, Verdict, float]:
            tree = free.get()
            began = time.perf_counter()
            tests = running.tests_for(
                self.covered, mutant.file, mutant.line, mutant.text, self.budget
            )
            try:
                verdict = running.try_out(mutant, tests, self.root, tree)
            finally:
                free.put(tree)
            return mutant, verdict, time.perf_counter() - began

        with ThreadPoolExecutor(workers) as pool:
            futures = [pool.submit(one, mutant) for mutant in left]
            try:
                for number, future in enumerate(as_completed(futures), 1):
                    mutant, verdict, seconds = future.result()
                    self.keep(mutant, verdict)
                    said = f"{number}/{len(left)}  {verdict.outcome:8} {seconds:4.0f} s"
                    print(f"{said}  {headline(mutant)}  {verdict.by[:100]}", flush=True)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                running.end_all()
                raise

    def doubt(self, mutants: Sequence[Mutant]) -> list[str]:
        """The tests that noticed a mutant but also fail without any."""
        verdicts = [self.known[name_of(mutant)] for mutant in mutants]
        noticed = {verdict.by for verdict in verdicts if verdict.outcome == running.KILLED}
        tests = sorted(noticed & {*self.covered.tests})
        if not tests:
            return []
        tree = trees.copy_tree(self.root, self.folder / "tree-0")
        seconds = sum(self.covered.tests[test].seconds for test in tests)
        status, output = running.run(tests, self.root, tree, running.patience(seconds))
        if status not in {0, 1}:
            raise SystemExit(f"the tests do not run on the tree as it is: {output[-1000:]}")
        return running.failed(tests, output)

    def forget(self, tests: Sequence[str]) -> None:
        """Drop tests that fail anyway, and what was said on their word."""
        for test in tests:
            self.covered.tests.pop(test, None)
        self.known = {name: said for name, said in self.known.items() if said.by not in tests}


def _state(root: Path) -> str:
    """A digest of all sources and tests."""
    folders = [*trees.sources_of(root), *trees.tests_of(root)]
    files = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    return digest(b"".join(path.read_bytes() for path in files))


def name_of(mutant: Mutant) -> str:
    """What identifies a mutant: its file and the broken text."""
    return f"{mutant.file} {digest(mutant.broken.encode())}"


def difference(mutant: Mutant) -> list[str]:
    """The lines that differ, as a diff."""
    before = mutant.text.splitlines()
    after = mutant.broken.splitlines()
    lines = difflib.unified_diff(before, after, mutant.file, mutant.file, n=0, lineterm="")
    return [line for line in lines if not line.startswith(("---", "+++"))]


def headline(mutant: Mutant) -> str:
    """The mutant in one line."""
    return f"{mutant.file}:{mutant.line} ({mutant.kind})"


def table(rows: Sequence[tuple[Mutant, Verdict]]) -> list[str]:
    """Killed, survived and timed out, per package and group."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for mutant, verdict in rows:
        group = sampling.group_of(mutant.file)
        for place in (trees.package_of(mutant.file), ""):
            counts.setdefault((group, place), Counter())[verdict.outcome] += 1
    counts["all", ""] = Counter(verdict.outcome for _, verdict in rows)
    outcomes = (running.KILLED, running.HANGS, running.SURVIVED)
    lines = [f"{'':32}" + "".join(f"{outcome:>10}" for outcome in outcomes) + "   noticed"]
    for (group, place), found in sorted(counts.items(), key=_in_order):
        name = f"  {place}" if place else group
        numbers = "".join(f"{found[outcome]:10}" for outcome in outcomes)
        lines.append(f"{name:32}{numbers}{noticed(found):9.0f} %")
    return lines


def _in_order(item: tuple[tuple[str, str], Counter[str]]) -> tuple[bool, str, str]:
    group, place = item[0]
    return group == "all", group, place


def noticed(found: Counter[str]) -> float:
    """The share in percent that was noticed; a mutant that hangs is."""
    return 100 * (1 - found[running.SURVIVED] / max(found.total(), 1))


def report(rows: Sequence[tuple[Mutant, Verdict]]) -> list[str]:
    """All survivors with the tests that ran, and the table."""
    lines = []
    for mutant, verdict in rows:
        if verdict.outcome != running.SURVIVED:
            continue
        lines += ["", f"survived: {headline(mutant)}", *difference(mutant)]
        more = f", and {len(verdict.tests) - 5} more" if len(verdict.tests) > 5 else ""
        ran = ", ".join(verdict.tests[:5]) + more
        lines.append(f"{len(verdict.tests)} tests: {ran}" if verdict.tests else verdict.by)
    return [*lines, "", *table(rows)]


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        prog="mutants", description="Lists errors that no test notices."
    )
    parser.add_argument("--number", type=int, default=200, metavar="N", help="mutants to draw")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="another sample")
    parser.add_argument(
        "--only", metavar="PATH", default="", help="in files whose path contains this"
    )
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="copies of the tree")
    parser.add_argument(
        "--budget",
        type=float,
        default=running.BUDGET,
        metavar="SECONDS",
        help="of tests per mutant",
    )
    parser.add_argument(
        "--fail-under", type=float, default=0, metavar="PERCENT", help="exit status 1 if fewer die"
    )
    parser.add_argument("--list", action="store_true", help="show the mutants and run nothing")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try a sample of mutants and report."""
    options = parsed(arguments)
    root = options.root.resolve()
    folder = root / "build" / "mutants"
    wrong = lists.stale(root, lists.read(root, lists.EQUIVALENT))
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 2
    mutants = sampling.sample(
        root, folder / "mutations", options.number, options.seed, options.only
    )
    if options.list:
        for mutant in mutants:
            print("\n".join([headline(mutant), *difference(mutant)]))
        return 0

    session = Session(root, folder, options.budget)
    session.covered.record(options.workers, folder / "tree-0")
    session.try_all(mutants, options.workers)
    while doubtful := session.doubt(mutants):
        print(f"fail without any mutant: {', '.join(doubtful)}")
        session.forget(doubtful)
        session.try_all(mutants, options.workers)

    rows = [(mutant, session.known[name_of(mutant)]) for mutant in mutants]
    lines = report(rows)
    (folder / "report.txt").write_text("\n".join(lines) + "\n", "utf-8")
    print("\n".join(lines))
    return int(noticed(Counter(verdict.outcome for _, verdict in rows)) < options.fail_under)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted: the same command resumes")
