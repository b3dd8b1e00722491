"""The report's sections, one file each. One function per section makes its blocks.

To add one, write a file with a function that takes the context and returns blocks (an empty list:
no section), and name it in ``SECTIONS``, where the report should have it. Another package declares
a :class:`Section` as an entry point.
"""

from collections.abc import Callable
from typing import NamedTuple

from ital.errors import InputError
from ital.report import Block, paragraph
from ital.tools import plugins
from ital_paper.report.sections._adversary import adversary_section
from ital_paper.report.sections._again import again_section
from ital_paper.report.sections._beyond import beyond_section
from ital_paper.report.sections._claims import claims_section
from ital_paper.report.sections._context import Context
from ital_paper.report.sections._controls import controls_section
from ital_paper.report.sections._evidence import evidence_section
from ital_paper.report.sections._main import main_section
from ital_paper.report.sections._matrix import matrix_section
from ital_paper.report.sections._others import others_section
from ital_paper.report.sections._random import random_section
from ital_paper.report.sections._settings import settings_section
from ital_paper.report.sections._study import study_section
from ital_paper.report.sections._tables import tables_section
from ital_paper.report.sections._tasks import tasks_section
from ital_paper.report.sections._theory import theory_section
from ital_paper.report.sections._tuned import tuned_section
from ital_paper.report.sections._words import words_section


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
    Section("The words of this report", "words", words_section),
    Section("The main figure", "main-figure", main_section),
    Section("What holds", "claims", claims_section),
    Section("Awareness, or the longer step?", "controls", controls_section),
    Section("Every method tuned", "tuned", tuned_section),
    Section("Choices as evidence", "evidence", evidence_section),
    Section("Task by task", "tasks", tasks_section),
    Section("Adversary", "adversary", adversary_section),
    Section("Random teacher", "random-teacher", random_section),
    Section("Human study, simulated", "study", study_section),
    Section("Beyond the paper", "beyond", beyond_section),
    Section("Who believes what", "matrix", matrix_section),
    Section("Other tasks", "others", others_section),
    Section("Theory and β", "theory", theory_section),
    Section("Tables", "tables", tables_section),
    Section("Settings and times", "settings", settings_section),
    Section("Run it again", "again", again_section),
)


def all_sections() -> list[Section]:
    """List the report's own sections, then those that other packages declare in ``ital.sections``.

    Returns:
        The sections, in their order on the page.
    """
    declared = plugins.parts("ital.sections", ())
    return [*SECTIONS, *(_declared_section(name, part) for name, part in declared.items())]


def _declared_section(name: str, part: plugins.Part) -> Section:
    """Load a section of another package.

    A broken one becomes a message, so that the long computation is not lost.
    """
    try:
        return part.load()
    except InputError as error:
        message = paragraph(str(error))
        return Section(name, name, lambda context: [message])


__all__ = ["SECTIONS", "Context", "Section", "all_sections"]
