"""Parts and commands that other packages add to ital through entry points."""

import inspect
from collections.abc import Container
from typing import TYPE_CHECKING, Any

from ital.errors import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def entries(group: str) -> "dict[str, EntryPoint]":
    """Entry points of a group by name, e.g. of ``ital.commands``. Nothing is imported yet.

    If two packages declare the same name, the first on the path wins, as with modules.
    """
    from importlib.metadata import entry_points  # takes 10 ms: imported only when needed

    last_first = reversed(tuple(entry_points(group=group)))
    return dict(sorted({entry.name: entry for entry in last_first}.items()))


class Part:
    """A constructor declared by another package. It is imported when it is called or its signature is read."""

    def __init__(self, entry: "EntryPoint") -> None:
        self.entry = entry

    def load(self) -> Any:
        """The object that the entry point names; raises InputError if it cannot be imported."""
        try:
            return self.entry.load()
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            source = f"{self.entry.name!r} from another package ({self.entry.value})"
            raise InputError(f"{source} is broken: {problem}") from None

    def __call__(self, *arguments: Any, **options: Any) -> Any:
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
    """Parts that other packages declare for a registry, e.g. ``ital.teachers``; ital's own names take precedence."""
    return {name: Part(entry) for name, entry in entries(group).items() if name not in taken}
