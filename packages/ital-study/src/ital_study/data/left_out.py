"""Who is left out of the analysis, why, and whether that was stated before the data came."""

from typing import TYPE_CHECKING, NamedTuple

from ital_study.config.configuration import Config
from ital_study.config.quality import FLAGS
from ital_study.data import flags as _quality

if TYPE_CHECKING:
    import pandas as pd

BEFORE, LATER = (
    "before",
    "later",
)  # stated in the configuration that the participant saw, or decided by the researcher
WHO = ["participant", "teacher"]


class LeftOut(NamedTuple):
    """The people who finished, and those of them whom the filtered analysis leaves out.

    Attributes:
        people: One row per participant and teacher, with the columns of data quality.
        reasons: One row per participant, teacher and reason: ``reason``, and ``decided``, before or later.
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
        """Whether all who finished are left out."""
        return self.size == len(self.people)

    def without(self, table: "pd.DataFrame") -> "pd.DataFrame":
        """Drop the rows of those who are left out.

        Args:
            table: A table with the columns ``participant`` and ``teacher``.

        Returns:
            The other rows.
        """
        import pandas as pd

        gone = pd.MultiIndex.from_frame(table[WHO]).isin(
            pd.MultiIndex.from_frame(self.reasons[WHO])
        )
        return table[~gone & ~table["participant"].isin(self.numbers)]


def left_out(config: Config, steps: "pd.DataFrame", participants: "pd.DataFrame | None") -> LeftOut:
    """Find out who is left out of the filtered analysis.

    Everybody whom the researcher excluded, and everybody with a flag that the configuration
    excludes.

    Args:
        config: The study.
        steps: Rows of the people who finished.
        participants: The table of participants; None: flags come from the steps alone, and nobody was excluded.

    Returns:
        The people and the reasons.
    """
    import pandas as pd

    finished = steps[WHO].drop_duplicates()
    people = finished if participants is None else finished.merge(participants, on=WHO, how="left")
    if "excluded_by_rule" not in people:  # a table without flags
        people = people.merge(_quality.people(steps, config), on=WHO)
    rows = []
    for person in people.to_dict("records"):
        who = {name: person[name] for name in WHO}
        flags = str(person.get("excluded_by_rule") or "").split()
        rows += [who | {"reason": flag, "decided": BEFORE} for flag in FLAGS if flag in flags]
        if person.get("excluded"):
            rows.append(who | {"reason": person["excluded"], "decided": LATER})
    reasons = pd.DataFrame(rows, columns=[*WHO, "reason", "decided"])
    remaining = LeftOut(people, reasons, frozenset()).without(finished)
    return LeftOut(
        people, reasons, frozenset(finished["participant"]) - frozenset(remaining["participant"])
    )


__all__ = ["BEFORE", "LATER", "LeftOut", "left_out"]
