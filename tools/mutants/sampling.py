"""A seeded sample of mutants from all packages, in proportion to the errors that can be made in
each.
"""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

from tools.mutants import lists, mutations, trees
from tools.mutants.covering import digest
from tools.mutants.mutations import Mutation
from tools.mutants.running import Mutant

# Where an error could change a published number, the study, what is beside the numbers; the rest is
# the library.
GROUPS = {
    "published": (
        "ital_paper/",
        *("ital/experiments", "ital/figures", "ital/report"),
        *("ital/results.py", "ital/statistics.py", "ital/tuning.py", "ital/theory.py"),
    ),
    "study": ("ital_study/",),
    "tools": ("ital/cli", "ital/bench"),
}
LEFT_OUT = ("/__main__.py", "/_version.py", "/migrations/")


def group_of(file: str) -> str:
    """The group of packages that a source file belongs to."""
    package = trees.package_of(file)
    return next(
        (group for group, members in GROUPS.items() if package.startswith(members)), "library"
    )


def all_mutations(root: Path, cache: Path, only: str = "") -> list[Mutation]:
    """Every mutation of the sources whose path contains ``only``; kept for files that stay the
    same.
    """
    cache.mkdir(parents=True, exist_ok=True)
    kept = digest(Path(mutations.__file__).read_bytes())
    found = []
    for path in [
        path for source in trees.sources_of(root) for path in sorted(source.rglob("*.py"))
    ]:
        file = path.relative_to(root).as_posix()
        if only not in file or any(part in f"/{file}" for part in LEFT_OUT):
            continue
        text = path.read_text("utf-8")
        stored = cache / f"{digest(f'{kept}{file}{text}'.encode())}.json"
        if not stored.exists():
            rows = [*mutations.mutations_of(file, text)]
            stored.write_text(json.dumps(rows), "utf-8")
        found += [Mutation(*row) for row in json.loads(stored.read_text("utf-8"))]
    return found


def shares(found: list[Mutation], n: int) -> dict[str, int]:
    """Divide n among the packages in proportion to their mutations, by largest remainders."""
    counts: dict[str, int] = {}
    for mutation in found:
        package = trees.package_of(mutation.file)
        counts[package] = counts.get(package, 0) + 1
    exact = {package: n * count / len(found) for package, count in counts.items()}
    whole = {package: int(share) for package, share in exact.items()}
    rest = sorted(exact, key=lambda package: whole[package] - exact[package])
    for package in rest[: n - sum(whole.values())]:
        whole[package] += 1
    return whole


def sample(root: Path, cache: Path, n: int, seed: int, only: str = "") -> list[Mutant]:
    """Draw mutants of every package, at most one per line.

    The draw of a mutation depends on its own code only, so edits elsewhere leave most of the sample
    as it was.
    """
    found = all_mutations(root, cache, only)
    ranked = sorted(found, key=lambda mutation: mutation.rank(seed))
    entries = lists.read(root, lists.EQUIVALENT)
    chosen = []
    for package, share in sorted(shares(found, n).items()):
        own = [mutation for mutation in ranked if trees.package_of(mutation.file) == package]
        chosen += itertools.islice(_mutants(root, own, entries), share)
    return chosen


def _mutants(root: Path, ranked: list[Mutation], entries: list[lists.Entry]) -> Iterator[Mutant]:
    lines = set()
    for mutation in ranked:
        if (mutation.file, mutation.line) in lines:
            continue
        text = (root / mutation.file).read_text("utf-8")
        broken = mutations.broken_text(mutation, text)
        equivalent = {entry.broken(text) for entry in entries if entry.file == mutation.file}
        if broken in equivalent or not mutations.changes_the_program(text, broken):
            continue
        lines.add((mutation.file, mutation.line))
        yield Mutant(mutation.file, mutation.line, mutation.kind, text, broken)
