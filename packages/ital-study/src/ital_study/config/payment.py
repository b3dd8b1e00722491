"""What people are paid, by how their part ended: section ``[payment]``."""

from dataclasses import dataclass

from ital_study.config.toml import TomlTable

# How a part may end. The first four are those of the pages. The others never saw an end: they did
# not come to a later session in time, were excluded before, or their data were deleted.
ENDINGS = ("finished", "declined", "failed_check", "left", "late", "excluded", "deleted")
MOST = 1e6


@dataclass(frozen=True)
class Payment:
    """What people are paid, by how their part ended: section ``[payment]``.

    Attributes:
        currency: Currency of the amounts, such as ``EUR``.
        finished: Amount for those who taught all robots.
        declined: Amount for those who did not agree to take part.
        failed_check: Amount for those who failed the comprehension check.
        left: Amount for those who left early.
        late: Amount for those who did not come to a later part in time.
        excluded: Amount for those whom the researcher excluded before their part had ended.
        deleted: Amount for those whose data were deleted.
    """

    currency: str | None = None
    finished: float | None = None
    declined: float | None = None
    failed_check: float | None = None
    left: float | None = None
    late: float | None = None
    excluded: float | None = None
    deleted: float | None = None

    def amount(self, ending: str) -> float | None:
        """Return what somebody is paid.

        Args:
            ending: One of :data:`ENDINGS`.

        Returns:
            The amount; None if the study says nothing about it.
        """
        amount: float | None = getattr(self, ending)
        return amount


def payment_of(table: TomlTable) -> Payment:
    """Read what people are paid; every amount may be left out."""
    amounts = {
        ending: table.number(ending, least=0.0, most=MOST)
        for ending in ENDINGS
        if ending in table.content
    }
    currency = None
    if "currency" in table.content:
        currency = table.text("currency", most=10)
    return Payment(currency, **amounts)
