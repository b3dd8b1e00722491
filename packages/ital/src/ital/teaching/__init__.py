"""The teaching loop: sample, feedback, choose, update, record.

:class:`Run` describes a run; :func:`open_sessions` makes sessions from parts and a run;
:func:`teach` and :func:`watch` run them to the end, :func:`session` one choice at a time. ``_step``
is Algorithm 1; ``_session`` compiles it for all lanes at once.
"""

from ital.figures import Watched
from ital.teaching._auto_beta import at_start
from ital.teaching._awareness import awareness, awareness_in_words
from ital.teaching._kept import DESCRIBED, described, task_from, task_of
from ital.teaching._lanes import (
    Recording,
    fill_in,
    open_sessions,
    situation,
    version_of,
    write_summary,
    write_table,
)
from ital.teaching._live import Live, load_session, session
from ital.teaching._program import Carry, Drawn, Lane, LaneNumbers, Moment, Program
from ital.teaching._run import Run, bytes_per_seed, check_footprint, check_parts, check_world, parts
from ital.teaching._session import BLOCK, Block, Numbers, Session, key_of
from ital.teaching._step import draw, first_lesson, teaching_step
from ital.teaching._teach import Result, load, teach
from ital.teaching._watch import seen, watch

__all__ = [
    "BLOCK",
    "DESCRIBED",
    "Block",
    "Carry",
    "Drawn",
    "Lane",
    "LaneNumbers",
    "Live",
    "Moment",
    "Numbers",
    "Program",
    "Recording",
    "Result",
    "Run",
    "Session",
    "Watched",
    "at_start",
    "awareness",
    "awareness_in_words",
    "bytes_per_seed",
    "check_footprint",
    "check_parts",
    "check_world",
    "described",
    "draw",
    "fill_in",
    "first_lesson",
    "key_of",
    "load",
    "load_session",
    "open_sessions",
    "parts",
    "seen",
    "session",
    "situation",
    "task_from",
    "task_of",
    "teach",
    "teaching_step",
    "version_of",
    "watch",
    "write_summary",
    "write_table",
]
