"""The summary: one row per claim of the paper, with its checks inside."""

from ital import report
from ital_paper.claims.judging import LEVEL
from ital_paper.report.sections._context import Context

HOW = (
    "A claim holds if it holds everywhere it applies and from both starts: uniform, as in the "
    "paper's Algorithm 1, and normal:0.1 (deviation 0.1 around zero), as in the authors' later "
    "code. A claim that depends on the task or on the start holds in part. Where a rule compares "
    f"two methods, the difference must also be significant: p < {LEVEL} by a test that is paired "
    "over seeds, adjusted for all tests of the claim (Holm). "
    "Open a row to see its rule and every number behind it."
)


def claims_section(context: Context) -> list[report.Block]:
    """List claims, verdicts and numbers."""
    return [report.paragraph(HOW), report.claims(finding.row() for finding in context.findings)]
