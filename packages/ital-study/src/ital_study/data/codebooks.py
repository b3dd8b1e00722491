"""The columns of the tables of participants and answers, and the wording of every question."""

from collections.abc import Iterable, Iterator, Sequence

from ital_study.config.configuration import Config
from ital_study.config.questions import Item
from ital_study.data import flags
from ital_study.data.answers import KINDS

# Name → kind (whole, number, text, yes-no) and what it means, as in ``table.CODEBOOK``.
PARTICIPANTS: dict[str, tuple[str, str]] = {
    "participant": ("whole", "Number of the participant in this study, as in steps.csv."),
    "mode": ("text", "As in steps.csv."),
    "teacher": ("text", "As in steps.csv."),
    "config": ("text", "SHA-256 of the configuration that the participant saw."),
    "code_version": ("text", "Version of ital that ran the study."),
    "language": ("text", "Language of the pages."),
    "stage": (
        "text",
        "Where the participant is, or ended: finished, declined, failed_check or left.",
    ),
    "usable": ("yes-no", "Whether every step is stored."),
    "excluded": (
        "text",
        "Why the researcher excluded the participant, after the data came; empty: included.",
    ),
    "order": (
        "text",
        "The learner that came first (robot 1) on each map; behind a @ the row of the balanced "
        "order of maps; empty before it was assigned.",
    ),
    "done": ("whole", "Number of stored steps; with a server, those of the warm-up too."),
    "answered": ("whole", "Number of answered pages of questions."),
    "joined_at": (
        "text",
        "When the visitor came, by the server's clock (ISO 8601); empty without a server. Who "
        "agreed has consent_at.",
    ),
    "consent_at": ("text", "When the participant agreed to take part; empty: not yet."),
    "finished_at": ("text", "When the participant reached the end; empty: not yet."),
    "minutes": ("number", "Minutes from consent to the end; empty if one is missing."),
    "tries": ("whole", "Number of attempts at the comprehension check."),
    "focus_losses": ("whole", "How often the page lost the focus, over the whole study."),
    "comment_length": (
        "whole",
        "Characters of the comment at the end; the comment is in events.jsonl.",
    ),
    "screen_width": ("number", "Width of the window in pixels; empty if unknown."),
    "screen_height": ("number", "Height of the window in pixels; empty if unknown."),
    "pointer": ("text", "Input device, such as fine (mouse) or coarse (finger); empty if unknown."),
    "unreadable_rows": (
        "whole",
        "Number of stored events, and of steps' times, that are not what a page sends; every "
        "table leaves them out.",
    ),
    **flags.COLUMNS,
}
ANSWERS: dict[str, tuple[str, str]] = {
    "participant": ("whole", "Number of the participant in this study, as in steps.csv."),
    "mode": ("text", "As in steps.csv."),
    "teacher": ("text", "As in steps.csv."),
    "language": ("text", "Language in which the question was asked."),
    "page": ("text", "The page of questions, by its id."),
    "place": (
        "text",
        "start, end, the number of the map, or the numbers of map and robot, such as 1-2.",
    ),
    "map": ("text", "Name of the map that the page followed; empty at the start and the end."),
    "robot": ("text", "Number of the robot that the page followed; empty for other pages."),
    "learner": ("text", "Kind of that robot; empty for other pages."),
    "item": (
        "text",
        "The question, by its id; with a row of a scale or an option of a multiple choice after "
        "the dot.",
    ),
    "kind": ("text", "single, multiple, likert, number or text."),
    "wording": ("text", "The question as the participant read it."),
    "value": (
        "number",
        "Number of the option or of the point on the scale, from 1; 1 or 0 for an option of a "
        "multiple choice that "
        "was chosen or not; or the number given. Empty for texts and where there is no answer.",
    ),
    "label": (
        "text",
        "The option, the label of the point, or the text, as the participant wrote it. In CSV "
        "files, an apostrophe "
        "comes before a text that a spreadsheet would take for a formula, unless they were "
        "written with --raw.",
    ),
    "answered_at": ("text", "When the server had stored the page, by its clock (ISO 8601)."),
    "seconds": (
        "number",
        "Seconds that the page was shown, by the participant's clock; empty if unknown.",
    ),
}


def column_lines(columns: dict[str, tuple[str, str]]) -> list[str]:
    """Return the columns of a table and their meaning, as lines of Markdown."""
    rows = []
    for name, (kind, text) in columns.items():
        rows.append((f"`{name}`", kind, text))
    return _markdown(("column", "kind", "meaning"), rows)


def question_lines(config: Config) -> list[str]:
    """Return the wording of every question in every language, as lines of Markdown."""
    if not config.questionnaires:
        return []
    heads = ("item", "page", "when", "language", "wording", "values")
    return [
        "",
        "## Questions",
        "",
        *_markdown(heads, _wordings(config)),
    ]


def _wordings(config: Config) -> Iterator[tuple[str, ...]]:
    """Yield item, page, moment, language, wording and values of every question."""
    for language in config.languages:
        for page in config.texts(language).questionnaires:
            for item in page.items:
                values = _values_of(item)
                for cell in KINDS[item.kind].cells(item, None):
                    yield f"`{cell.item}`", page.id, page.when, language, cell.wording, values


def _values_of(item: Item) -> str:
    """Say what the values of a question mean; points of a scale may have no label."""
    kind = KINDS[item.kind]
    labels = enumerate(kind.labels(item), start=1)
    labelled = [f"{value} {label}" for value, label in labels if label]
    return "; ".join(labelled) or kind.asks(item)


def _markdown(heads: Sequence[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Return a table as lines of Markdown."""
    lines = [
        _row_line(heads),
        "|" + "---|" * len(heads),
    ]
    for row in rows:
        # A bar would end the cell, a line feed the row.
        cells = [cell.replace("|", "∣").replace("\n", " ") for cell in row]
        lines.append(_row_line(cells))
    return lines


def _row_line(cells: Sequence[str]) -> str:
    inside = " | ".join(cells)
    return f"| {inside} |"
