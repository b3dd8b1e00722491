"""What other packages add to ital: the entry points that they declare."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def entries(group: str) -> "dict[str, EntryPoint]":
    """Entry points of a group by name, e.g. of ``ital.commands``; nothing of theirs is imported yet.

    Where two packages declare one name, the first on the path counts, as with modules.
    """
    from importlib.metadata import entry_points  # 10 ms that only those pay who look

    last_first = reversed(tuple(entry_points(group=group)))
    return dict(sorted({entry.name: entry for entry in last_first}.items()))
