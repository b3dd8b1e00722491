"""The tidy table of a study, one row per step: its columns, its codebook, and its files."""

import importlib.util
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from ital.errors import InputError
from ital.tools.files import read_text
from ital_study.config.configuration import Config
from ital_study.config.lineup import KINDS, LEARNERS
from ital_study.config.load import load_config
from ital_study.data import flags
from ital_study.data.codebooks import ANSWERS, PARTICIPANTS, column_lines, question_lines

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FREEZE = "freeze.json"  # file of an export with the frozen plan
MODES = ("live", "pilot", "preview", "trial", "simulated")
MEASURES = {
    "distance": "‖w − w*‖: Euclidean distance of the robot's belief from the true rewards",
    "distance_centred": "the same with the mean of either subtracted: no arrow can change the mean",
    "policy_tv": "total variation between the robot's policy and the true one, mean over cells",
    "policy_gap": "largest difference of an action's probability, mean over cells",
    "reward": (
        "expected true reward until death when the robot acts on its belief, from a random cell, "
        "exact"
    ),
}
_AFTER = {name: ("number", f"After the step: {text}.") for name, text in MEASURES.items()}
_BEFORE = {
    f"{name}_before": ("number", f"Before the step: {text}.") for name, text in MEASURES.items()
}

# Name → kind (whole, number, text, yes-no) and what it means.
CODEBOOK: dict[str, tuple[str, str]] = {
    "participant": ("whole", "Number of the participant in this study. It identifies nobody."),
    "mode": (
        "text",
        "live: a participant of the study; pilot, preview, trial: a try-out; simulated: a "
        "program, no person.",
    ),
    "teacher": (
        "text",
        "Who chose: human, machine (largest teaching volume), boltzmann:RHO or random.",
    ),
    "config": ("text", "SHA-256 of the configuration that the participant saw."),
    "code_version": ("text", "Version of ital that ran the study."),
    "order": (
        "text",
        "The learner that came first (robot 1) on each map, in the order of the maps in the file. "
        "Behind a @: the row of the balanced order of maps.",
    ),
    "map": ("text", "Name of the map."),
    "learner": ("text", "Kind of robot: naive (IMT) or aware (ITAL). Participants were not told."),
    "robot": ("whole", "1: the first robot on this map, 2: the second."),
    "step": ("whole", "Number of the arrow, from 1. Measures without a suffix are after it."),
    "usable": (
        "yes-no",
        "Whether the participant finished every step and was not withdrawn: analyses use these.",
    ),
    "choice": ("whole", "Index of the chosen arrow among the candidates, from 0."),
    "cell": ("whole", "Cell of the chosen arrow, row by row from the top left, from 0."),
    "action": ("whole", "Direction of the chosen arrow: 0 up, 1 right, 2 down, 3 left."),
    "machine_choice": ("whole", "What the machine teacher would have chosen in this situation."),
    "candidates": ("text", "All arrows of the step as JSON, [[cell, action], …]."),
    **_AFTER,
    **_BEFORE,
    "shown_at": (
        "text",
        "When the arrows were shown, by the participant's clock (ISO 8601); empty if unknown.",
    ),
    "chosen_at": (
        "text",
        "When the final choice was made, by the participant's clock; empty if unknown.",
    ),
    "confirmed_at": (
        "text",
        "When it was confirmed, by the participant's clock; empty if unknown.",
    ),
    "stored_at": (
        "text",
        "When the server had stored the step, by its own clock; empty if there was no server.",
    ),
    "seconds_to_choice": ("number", "Seconds from shown to the final choice; empty if unknown."),
    "seconds_to_confirm": ("number", "Seconds from shown to confirmed; empty if unknown."),
    "choice_changes": ("whole", "How often the choice was changed before it was confirmed."),
    "focus_losses": ("whole", "How often the page lost the focus during the step."),
    "input": ("text", "Device of the final choice: mouse, touch or keyboard; empty if unknown."),
    "too_fast": (
        "yes-no",
        "Flag: confirmed in less than `too_fast_seconds` of the participant's configuration.",
    ),
    "by_script": (
        "yes-no",
        "Flag: no input device or times, less than `script_seconds`, or sooner than the page "
        "could have shown it.",
    ),
}
COLUMNS = tuple(CODEBOOK)

# Values of columns of steps whose input nobody recorded.
UNKNOWN: dict[str, Any] = {"input": "", "too_fast": False, "by_script": False}

# Columns that earlier versions did not write, with the values that their tables get.
LATER: dict[str, Any] = {**UNKNOWN, "unreadable_rows": 0}

# Columns that identify a step.
KEY = ("participant", "teacher", "map", "learner", "step")

_DTYPES: dict[str, Any] = {"whole": "int64", "number": "float64", "yes-no": "bool"}


class StudyData(NamedTuple):
    """A study folder.

    Attributes:
        config: The configuration as used.
        steps: The step table, one row per step; :data:`CODEBOOK` explains its columns.
        answers: The table of answers to questions; None if there is none.
        participants: The table of participants; None if there is none.
        freeze: The plan that was frozen, and what was changed afterwards; None if none was.
    """

    config: Config
    steps: "pd.DataFrame"
    answers: "pd.DataFrame | None" = None
    participants: "pd.DataFrame | None" = None
    freeze: "Mapping[str, Any] | None" = None


def with_rows(tables: "Iterable[pd.DataFrame]", empty: "pd.DataFrame") -> "Iterator[pd.DataFrame]":
    """Iterate over the tables that have rows; a stream without any has its columns still.

    Args:
        tables: Tables with the same columns.
        empty: The table without rows.

    Yields:
        The tables with rows; the empty one if there are none.
    """
    has_rows = False
    for table in tables:
        if len(table):
            has_rows = True
            yield table
    if not has_rows:
        yield empty


def frame(
    rows: "Iterable[dict[str, Any]] | pd.DataFrame",
    codebook: Mapping[str, tuple[str, str]] = CODEBOOK,
    name: str = "step table",
) -> "pd.DataFrame":
    """Convert rows to a table with all columns in order and of the right type.

    Args:
        rows: Dictionaries from column to value, or a table.
        codebook: Columns of the table.
        name: Name of the table in messages.

    Returns:
        The table.

    Raises:
        InputError: A column is missing, or a value is of the wrong kind.
    """
    import pandas as pd

    columns = list(codebook)
    if isinstance(rows, pd.DataFrame):
        table = rows
    else:
        table = pd.DataFrame(list(rows), columns=columns)
    later = {
        column: value
        for column, value in LATER.items()
        if column in codebook and column not in table
    }
    table = table.assign(**later)
    for column in columns:
        if column not in table:
            raise InputError(
                f"the {name} has no column {column!r}: check that it comes from a study"
            )
    table = table[columns]
    typed = {}
    try:
        for column, (kind, _) in codebook.items():
            typed[column] = _typed(table[column], kind)
    except (ValueError, TypeError) as error:
        raise InputError(f"the {name} holds a value of the wrong kind: {error}") from None
    return table.assign(**typed)


def _typed(values: "pd.Series", kind: str) -> "pd.Series":
    """Return a column with the type of its kind."""
    if kind == "text":
        return values.where(values.notna(), "").map(str).astype(object)
    if kind == "yes-no" and values.dtype == object:
        return values.map({"True": True, "False": False, True: True, False: False}).astype("bool")
    return values.astype(_DTYPES[kind])


# How a cell begins that a spreadsheet takes for a formula; apostrophes count, so that one more can
# be removed again.
_FORMULA = re.compile(r"'*[=+\-@\t]")


def csv_text(table: "pd.DataFrame", *, header: bool = True, raw: bool = False) -> str:
    """Return rows as CSV with every digit of every number.

    Lines within a text end with a line feed.

    Args:
        table: The rows.
        header: Whether to begin with the names of the columns; not to append to other rows.
        raw: Whether to leave texts as they are. If not, those that a spreadsheet would take for a
            formula get an apostrophe, which :func:`read_csv` removes.

    Returns:
        The text.
    """
    texts = table.select_dtypes(object)
    cells = {}
    for column in texts.columns:
        cells[str(column)] = texts[column].map(lambda text: _cell(text, raw))
    table = table.assign(**cells)
    return table.to_csv(index=False, header=header, lineterminator="\n")


def _cell(text: Any, raw: bool) -> Any:
    """Return a text as it stands in a file."""
    if not isinstance(text, str):
        return text
    # The writer does not quote a carriage return.
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if raw or not _FORMULA.match(text):
        return text
    return f"'{text}"


def _as_written(text: str) -> str:
    """Return a text of a file as somebody wrote it."""
    if text.startswith("'") and _FORMULA.match(text):
        return text[1:]
    return text


def read_csv(
    source: Path | io.StringIO,
    codebook: Mapping[str, tuple[str, str]] = CODEBOOK,
    name: str = "step table",
) -> "pd.DataFrame":
    """Read what :func:`csv_text` wrote, with every number exact."""
    import pandas as pd

    kinds = {column: kind for column, (kind, _) in codebook.items()}
    as_text = [column for column, kind in kinds.items() if kind in ("text", "number")]
    try:
        table = pd.read_csv(source, dtype=dict.fromkeys(as_text, object), keep_default_na=False)
        for column in table.columns.intersection(as_text):
            if kinds[column] == "text":
                table[column] = table[column].map(_as_written)
            else:
                # Python parses the numbers: it restores every bit, whatever the version of pandas.
                table[column] = [float(text or "nan") for text in table[column]]
    except (ValueError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the {name}: {error}") from None
    return frame(table, codebook, name)


def codebook(
    config: Config | None = None, modes: Iterable[str] = (), used: Iterable[Config] | None = None
) -> str:
    """Return the meaning of every column, as Markdown.

    It begins with a warning if no person took part.

    Args:
        config: The study.
        modes: Modes of the participants.
        used: All configurations that participants saw, for the thresholds of their flags; None: the
            study's.

    Returns:
        The text.
    """
    lines = ["# Codebook", ""]
    if set(modes) == {"simulated"}:
        lines += ["**Simulated data: programs chose every arrow. No person took part.**", ""]
    columns = CODEBOOK
    if config is not None:
        columns = CODEBOOK | _columns_of_robots(config)
        lines += [f"Study `{config.name}`, configuration `{config.hash}`.", ""]
    lines += [
        "`steps.csv` (and `steps.parquet`, the same): one row per step of a participant with a "
        "robot on a map.",
        "`participants.csv`: one row per participant. `answers.csv`: one row per question and "
        "participant.",
        "`events.jsonl`: the log of events, one JSON object per line. `study.toml`: the "
        "configuration as used.",
        "",
        "## steps.csv",
        "",
        *column_lines(columns),
        "",
        "## participants.csv",
        "",
        *column_lines(PARTICIPANTS),
        "",
        "## answers.csv",
        "",
        *column_lines(ANSWERS),
    ]
    if config is not None:
        lines += question_lines(config)
        lines += flags.codebook_lines([config] if used is None else used)
    return "\n".join(lines) + "\n"


def _columns_of_robots(config: Config) -> dict[str, tuple[str, str]]:
    """Return the columns whose meaning depends on the robots of a study."""
    if config.learners == LEARNERS:
        return {}
    *others, last = [f"{name} ({KINDS[name].label})" for name in config.learners]
    kinds = f"{', '.join(others)} or {last}"
    ordinals = ("the first robot on this map", "the second", "the third", "the fourth", "the fifth")
    numbers = []
    for number, text in enumerate(ordinals[: len(config.learners)], start=1):
        numbers.append(f"{number}: {text}")
    listed = ", ".join(numbers)
    return {
        "learner": ("text", f"Kind of robot: {kinds}. Nobody was told."),
        "robot": ("whole", f"{listed}."),
    }


def write_study(folder: Path, config: Config, steps: "pd.DataFrame") -> list[Path]:
    """Write a study folder for steps without a server, each file completely or not at all.

    Args:
        folder: Folder to write to; created if it does not exist.
        config: The configuration.
        steps: The step table.

    Returns:
        The files; ``steps.parquet`` is among them where pyarrow is installed.
    """
    from ital.tools.files import write

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    steps = frame(steps)
    files = {
        "steps.csv": csv_text(steps).encode(),
        "participants.csv": csv_text(participants_of(steps, config)).encode(),
        "events.jsonl": b"",  # there was no server, so there are no events
        "codebook.md": codebook(config, steps["mode"].unique()).encode(),
        "study.toml": config.to_toml().encode(),
    }
    if has_parquet():
        files["steps.parquet"] = parquet_bytes(steps)
    for name, content in files.items():
        write(folder / name, content)
    return [folder / name for name in files]


def participants_of(steps: "pd.DataFrame", config: Config) -> "pd.DataFrame":
    """Return the table of participants, as far as the step table tells.

    For simulations without a server.

    Args:
        steps: The step table of participants who finished.
        config: The configuration.

    Returns:
        One row per participant and teacher.
    """
    copied = ["participant", "mode", "teacher", "config", "code_version", "usable", "order"]
    by_person = steps.groupby(["participant", "teacher"], sort=False)
    people = by_person.head(1)[copied]
    people = people.assign(
        stage="finished",
        done=by_person.size().to_numpy(),
    )
    # There was no page, so nothing was asked, tried, left or commented.
    for column in ("answered", "tries", "focus_losses", "comment_length", "unreadable_rows"):
        people[column] = 0
    # Empty: what only a server or a page could tell.
    own_columns = [name for name in PARTICIPANTS if name not in flags.COLUMNS]
    people = people.reindex(columns=own_columns)
    with_flags = people.merge(flags.people(steps, config), on=["participant", "teacher"])
    return frame(with_flags, PARTICIPANTS, "table of participants")


def unreadable(participants: "pd.DataFrame | None", mode: str) -> list[str]:
    """Return a note on stored rows that cannot be read, if there are any.

    Args:
        participants: The table of participants, if there is one.
        mode: Mode of the participants.

    Returns:
        One sentence, or none.
    """
    if participants is None or "unreadable_rows" not in participants:
        return []
    rows = participants[(participants["mode"] == mode) & (participants["unreadable_rows"] > 0)]
    return unreadable_note(dict(zip(rows["participant"], rows["unreadable_rows"], strict=True)))


def unreadable_note(counts: Mapping[int, int]) -> list[str]:
    """Return a note on stored rows that cannot be read, if there are any.

    Args:
        counts: Their number by participant.

    Returns:
        One sentence, or none.
    """
    found = {number: count for number, count in counts.items() if count}
    if not found:
        return []
    numbers = [str(number) for number in found]
    if len(numbers) > 10:
        numbers[10:] = ["…"]
    return [
        f"{sum(found.values())} stored rows are not what a page sends; "
        f"every table leaves them out (participants {', '.join(numbers)})."
    ]


def has_parquet() -> bool:
    """Say whether Parquet can be written here.

    It needs pyarrow, which comes with the extra ``server``.
    """
    return importlib.util.find_spec("pyarrow") is not None


def parquet_bytes(table: "pd.DataFrame") -> bytes:
    """Return rows as a Parquet file."""
    buffer = io.BytesIO()
    frame(table).to_parquet(buffer, index=False, engine="pyarrow")
    return buffer.getvalue()


def write_parquet(blocks: "Iterable[pd.DataFrame]", file: BinaryIO) -> None:
    """Write step tables to one Parquet file, one after the other.

    Args:
        blocks: The tables.
        file: An open file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    try:
        for block in blocks:
            table = pa.Table.from_pandas(block, preserve_index=False)
            if not len(block):
                # Without rows, text columns would have no type.
                table = table.cast(_parquet_schema())
            # The first table says what the columns are.
            writer = writer or pq.ParquetWriter(file, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


def _parquet_schema() -> "pa.Schema":
    """Return the types of the columns of steps."""
    import pyarrow as pa

    types = {
        "whole": pa.int64(),
        "number": pa.float64(),
        "yes-no": pa.bool_(),
        "text": pa.string(),
    }
    return pa.schema([(name, types[kind]) for name, (kind, _) in CODEBOOK.items()])


def read_study(folder: Path) -> StudyData:
    """Read a study folder.

    Args:
        folder: A folder that :func:`write_study` or ``ital study export`` wrote.

    Returns:
        The configuration and the step table.

    Raises:
        InputError: The table or the configuration is missing or wrong, or a step is in the table
            twice.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(
            f"there is no folder {folder}: make one with ital study simulate or ital study export"
        )
    for name in ("steps.csv", "study.toml"):
        if not (folder / name).is_file():
            raise InputError(f"{folder} is not a study folder: it has no {name}")
    steps = read_csv(folder / "steps.csv")
    check_unique(steps)
    # Folders of earlier versions do not have these.
    tables = {}
    for name, columns in (("answers", ANSWERS), ("participants", PARTICIPANTS)):
        file = folder / f"{name}.csv"
        if file.is_file():
            tables[name] = read_csv(file, columns, f"table of {name}")
    return StudyData(load_config(folder / "study.toml"), steps, **tables, freeze=_freeze_in(folder))


def _freeze_in(folder: Path) -> dict[str, Any] | None:
    """Read the frozen plan of an export; None if nothing was frozen."""
    file = folder / FREEZE
    if not file.is_file():
        return None
    try:
        frozen = json.loads(read_text(file, f"the frozen plan {file}"))
        freeze_notes(frozen)
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{file} was not written by ital study export") from None
    return dict(frozen)


def freeze_notes(frozen: Mapping[str, Any] | None) -> list[str]:
    """Return what a reader must know of a frozen plan: its date, and every later change.

    Args:
        frozen: The plan, as an export has it; None: nothing was frozen.

    Returns:
        Sentences; none if nothing was frozen.
    """
    if frozen is None:
        return []
    test = "; ".join(f"{name} {value}" for name, value in frozen["test"].items())
    notes = [
        f"The plan was frozen on {frozen['frozen_at'][:16]} UTC: {frozen['participants']} "
        f"participants; {test}. Signature {frozen['signature'][:12]}…."
    ]
    if not frozen["changes"]:
        return [*notes, "Nothing was changed after that."]
    return notes + [
        f"Changed after the plan was frozen, {change['at'][:16]} UTC: {change['what']}."
        for change in frozen["changes"]
    ]


def check_unique(steps: "pd.DataFrame") -> None:
    """Raise if a step is in the table twice."""
    twice = steps.duplicated(list(KEY))
    if twice.any():
        row = steps[twice].iloc[0]
        raise InputError(
            f"step {row['step']} of participant {row['participant']} on map {row['map']!r} "
            f"with the {row['learner']} robot is in the table twice"
        )
