"""Who is left out of the analysis, why, and whether that was stated before the data came."""

from typing import TYPE_CHECKING, Any, NamedTuple

from ital_study.config.configuration import Config
from ital_study.config.quality import FLAGS
from ital_study.data import flags as _flags

if TYPE_CHECKING:
    import pandas as pd

# When it was decided to leave somebody out: BEFORE the data came, in the configuration that the
# participant saw, or LATER, by the researcher.
BEFORE = "before"
LATER = "later"

# Columns that identify a person.
WHO = ["participant", "teacher"]


class LeftOut(NamedTuple):
    """The people who finished, and those of them whom the filtered analysis leaves out.

    Attributes:
        people: One row per participant and teacher, with the columns of data quality.
        reasons: One row per participant, teacher and reason: ``reason``, and ``decided``, before or
            later.
        numbers: Participants of whom nothing remains; the simulated arms leave them out too.
    """

    people: "pd.DataFrame"
    reasons: "pd.DataFrame"
    numbers: frozenset[int]

    @property
    def size(self) -> int:
        """Number of people who are left out."""
        return len(self.reasons.drop_duplicates(WHO))

    @property
    def everybody(self) -> bool:
        """True if all who finished are left out."""
        return self.size == len(self.people)

    def without(self, table: "pd.DataFrame") -> "pd.DataFrame":
        """Drop the rows of those who are left out.

        Args:
            table: A table with the columns ``participant`` and ``teacher``.

        Returns:
            The other rows.
        """
        import pandas as pd

        people_left_out = pd.MultiIndex.from_frame(self.reasons[WHO])
        is_left_out = pd.MultiIndex.from_frame(table[WHO]).isin(people_left_out)
        return table[~is_left_out & ~table["participant"].isin(self.numbers)]


def left_out(config: Config, steps: "pd.DataFrame", participants: "pd.DataFrame | None") -> LeftOut:
    """Find out who is left out of the filtered analysis.

    Everybody whom the researcher excluded, and everybody with a flag that the configuration
    excludes.

    Args:
        config: The study.
        steps: Rows of the people who finished.
        participants: The table of participants; None: flags come from the steps alone, and nobody
            was excluded.

    Returns:
        The people and the reasons.
    """
    import pandas as pd

    finished = steps[WHO].drop_duplicates()
    people = finished
    if participants is not None:
        people = finished.merge(participants, on=WHO, how="left")
    # Simulations, and tables of earlier versions, have no flags yet.
    if "excluded_by_rule" not in people:
        people = people.merge(_flags.people(steps, config), on=WHO)
    rows = []
    for person in people.to_dict("records"):
        rows += _reasons_of(person)
    reasons = pd.DataFrame(rows, columns=[*WHO, "reason", "decided"])
    remaining = LeftOut(people, reasons, frozenset()).without(finished)
    numbers = frozenset(finished["participant"]) - frozenset(remaining["participant"])
    return LeftOut(people, reasons, numbers)


def _reasons_of(person: dict[Any, Any]) -> list[dict[str, Any]]:
    """Return why somebody is left out: the configuration's flags, then the researcher's reason."""
    who = {name: person[name] for name in WHO}
    flags = str(person.get("excluded_by_rule") or "").split()
    reasons = []
    for flag in FLAGS:
        if flag in flags:
            reasons.append({**who, "reason": flag, "decided": BEFORE})
    if person.get("excluded"):
        reasons.append({**who, "reason": person["excluded"], "decided": LATER})
    return reasons


__all__ = ["BEFORE", "LATER", "LeftOut", "left_out"]
