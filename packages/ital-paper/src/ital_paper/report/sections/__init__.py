"""The report's sections, one file each. One function per section makes its blocks.

To add one, write a file with a function ``build(context)`` that returns blocks (an empty list: no section), and name
it in ``SECTIONS``, at its place in the report. Another package declares a :class:`Section` as an entry point.
"""

from collections.abc import Callable
from typing import NamedTuple

from ital.errors import InputError
from ital.report import Block, paragraph
from ital.tools import plugins
from ital_paper.report.sections import (
    _adversary,
    _again,
    _beyond,
    _claims,
    _controls,
    _main,
    _matrix,
    _others,
    _random,
    _settings,
    _study,
    _tables,
    _tasks,
    _theory,
    _tuned,
    _words,
)
from ital_paper.report.sections._context import Context


class Section(NamedTuple):
    """A part of the report.

    Attributes:
        title: its heading.
        id: the name that links use.
        build: makes its blocks.
    """

    title: str
    id: str
    build: Callable[[Context], list[Block]]


SECTIONS = (
    Section("The words of this report", "words", _words.build),
    Section("The main figure", "main-figure", _main.build),
    Section("What holds", "claims", _claims.build),
    Section("Awareness, or the longer step?", "controls", _controls.build),
    Section("Every method tuned", "tuned", _tuned.build),
    Section("Task by task", "tasks", _tasks.build),
    Section("Adversary", "adversary", _adversary.build),
    Section("Random teacher", "random-teacher", _random.build),
    Section("Human study, simulated", "study", _study.build),
    Section("Beyond the paper", "beyond", _beyond.build),
    Section("Who believes what", "matrix", _matrix.build),
    Section("Other tasks", "others", _others.build),
    Section("Theory and β", "theory", _theory.build),
    Section("Tables", "tables", _tables.build),
    Section("Settings and times", "settings", _settings.build),
    Section("Run it again", "again", _again.build),
)


def all_sections() -> list[Section]:
    """List the report's own sections, then those that other packages declare in ``ital.sections``.

    Returns:
        The sections, in their order on the page.
    """
    return [
        *SECTIONS,
        *(_declared(name, part) for name, part in plugins.parts("ital.sections", ()).items()),
    ]


def _declared(name: str, part: plugins.Part) -> Section:
    """Load a section of another package. A broken one becomes a message, so that the long computation is not lost."""
    try:
        return part.load()
    except InputError as error:
        message = paragraph(str(error))
        return Section(name, name, lambda context: [message])


__all__ = ["SECTIONS", "Context", "Section", "all_sections"]
