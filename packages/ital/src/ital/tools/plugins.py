"""Parts and commands that other packages add to ital through entry points."""

import inspect
from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ital.errors import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


# The other packages of this project: what each brings, by the group of its entry point.
SIBLINGS: dict[str, dict[str, tuple[str, ...]]] = {
    "ital-study": {"ital.commands": ("study", "play"), "ital.choices": ("study",)},
    "ital-paper": {
        "ital.commands": ("reproduce", "simplify", "features", "data"),
        "ital.tasks": (
            "mnist-20",
            "mnist-30",
            "mnist-mlp",
            "cifar10-6",
            "cifar10-12",
            "tiny-imagenet-lite0",
            "tiny-imagenet-lite2",
            "tiny-imagenet-13",
            "tiny-imagenet-19",
            "equation-40",
            "equation-50",
        ),
    },
}


def entries(group: str) -> "dict[str, EntryPoint]":
    """Find the entry points of a group, e.g. of ``ital.commands``. Nothing is imported yet.

    If two packages declare the same name, the first on the path wins, as with modules.

    Args:
        group: the name of the group.

    Returns:
        Entry points by name: those of this project first, in its order, then the others by name.
    """
    # Takes 10 ms: imported only when needed.
    from importlib.metadata import entry_points

    # Of two entries with one name, the later in this dict wins: so the order is reversed.
    found = {entry.name: entry for entry in reversed(tuple(entry_points(group=group)))}
    for package in SIBLINGS:
        for entry in _entries_of_sources(package, group):
            found.setdefault(entry.name, entry)
    names: list[str] = []
    for groups in SIBLINGS.values():
        names += [name for name in groups.get(group, ()) if name in found]
    names += sorted(set(found).difference(names))
    return {name: found[name] for name in names}


def _entries_of_sources(package: str, group: str) -> "list[EntryPoint]":
    """Read what a package of this project declares if it is not installed but on the path."""
    import importlib.util
    import tomllib
    from importlib.metadata import EntryPoint

    spec = importlib.util.find_spec(package.replace("-", "_"))
    if spec is None or spec.origin is None:
        return []
    # The origin is PACKAGE/src/NAME/__init__.py.
    pyproject = Path(spec.origin).parents[2] / "pyproject.toml"
    if not pyproject.is_file():
        return []
    project = tomllib.loads(pyproject.read_text("utf-8")).get("project", {})
    if project.get("name") != package:
        return []
    declared = project.get("entry-points", {}).get(group, {})
    return [EntryPoint(name, value, group) for name, value in declared.items()]


def is_sibling(entry: "EntryPoint") -> bool:
    """Return whether an entry point belongs to this project."""
    return entry.module.partition(".")[0].replace("_", "-") in SIBLINGS


def missing(group: str, name: str) -> str | None:
    """Say what to install for a part of this project that is not here.

    Args:
        group: the group of its entry point, e.g. ``ital.tasks``.
        name: its name.

    Returns:
        One line, or None if no package of this project has such a part.
    """
    from ital.tools.checks import install

    for package, groups in SIBLINGS.items():
        if name in groups.get(group, ()):
            return f"{name!r} is part of {package}, which is not installed: {install(package)}"
    return None


class Part:
    """A constructor declared by another package.

    It is imported when it is called or its signature is read.
    """

    def __init__(self, entry: "EntryPoint") -> None:
        self.entry = entry

    def load(self) -> Any:
        """Load the object that the entry point names; raise InputError if it cannot be imported."""
        try:
            return self.entry.load()
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            source = f"{self.entry.name!r} from another package ({self.entry.value})"
            raise InputError(f"{source} is broken: {problem}") from None

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Call the object that the entry point names."""
        return self.load()(*arguments, **options)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.load())

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """The constructor's docstring, for ``ital list``."""
        try:
            return self.load().__doc__ or ""
        except InputError as error:
            return str(error)


def parts(group: str, taken: Container[str]) -> dict[str, Part]:
    """Return the parts that other packages declare for a registry.

    Args:
        group: the group of their entry points, e.g. ``ital.teachers``.
        taken: ital's own names, which take precedence.
    """
    return {name: Part(entry) for name, entry in entries(group).items() if name not in taken}
