"""How much stands on a line: counts per package, which may only fall (``limits.toml``)."""

import ast
import collections
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tools.house import docstrings
from tools.house.sources import Source
from tools.house.walls import private_in_tests

COMPREHENSIONS = (ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp)


def is_packed(node: ast.AST) -> bool:
    """Return whether a node is ``a, b = x, y``: two steps on one line."""
    if not isinstance(node, ast.Assign):
        return False
    return isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)


def is_nested_loop(node: ast.AST) -> bool:
    """Return whether a node is a comprehension of several loops, or one with another one in it."""
    if not isinstance(node, COMPREHENSIONS):
        return False
    inner = (each for each in ast.walk(node) if each is not node)
    return len(node.generators) > 1 or any(isinstance(each, COMPREHENSIONS) for each in inner)


def is_nested_condition(node: ast.AST) -> bool:
    """Return whether a node is a conditional expression in a conditional expression."""
    if not isinstance(node, ast.IfExp):
        return False
    inner = (each for each in ast.walk(node) if each is not node)
    return any(isinstance(each, ast.IfExp) for each in inner)


def is_condition(node: ast.AST) -> bool:
    """Return whether a node is a conditional expression."""
    return isinstance(node, ast.IfExp)


RULES: Mapping[str, Callable[[ast.AST], bool]] = {
    "packed": is_packed,
    "nested_comprehensions": is_nested_loop,
    "nested_conditions": is_nested_condition,
    "conditions": is_condition,
}


def counts(sources: Mapping[str, Source]) -> dict[str, dict[str, int]]:
    """Return how often each package breaks each rule, and how many files of tests import private
    modules.
    """
    found: dict[str, dict[str, int]] = collections.defaultdict(lambda: dict.fromkeys(RULES, 0))
    for source in sources.values():
        package = found[source.module.partition(".")[0]]
        for node in ast.walk(source.tree):
            for rule, breaks in RULES.items():
                package[rule] += breaks(node)
    for package, rules in found.items():
        own = {name: each for name, each in sources.items() if name.partition(".")[0] == package}
        rules["docstrings_without_verb"] = len(docstrings.without_verb(own))
    found["tests"] = {"private_imports": len(private_in_tests())}
    return dict(found)


def excess(found: Mapping[str, Any], limits: Mapping[str, Any]) -> Iterable[str]:
    """Yield the counts above their limits."""
    for package, rules in found.items():
        for rule, count in rules.items():
            limit = limits.get(package, {}).get(rule, 0)
            if count > limit:
                named = rule.replace("_", " ")
                yield f"{package}: {count} × {named}, at most {limit} (tools/house/limits.toml)"


def lowered(found: Mapping[str, Any], limits: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Return the limits at what is counted now; none rises."""
    return {
        package: {
            rule: min(count, limits.get(package, {}).get(rule, count))
            for rule, count in rules.items()
        }
        for package, rules in found.items()
    }


def written(limits: Mapping[str, Mapping[str, int]]) -> str:
    """Return limits as TOML."""
    lines = [
        "# What a package may have at most. ``python -m tools.house --lower`` writes lower counts."
    ]
    for package, rules in limits.items():
        lines += ["", f"[{package}]", *(f"{rule} = {count}" for rule, count in rules.items())]
    return "\n".join(lines) + "\n"


LIMITS = Path(__file__).with_name("limits.toml")
