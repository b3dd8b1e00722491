"""The words of the report, before anything uses them."""

from ital import report
from ital_paper.claims.judging import LEVEL
from ital_paper.experiments.plan import STARTS
from ital_paper.report.sections._context import Context

TEACHER = (
    "knows the target and shows one example of each mini-batch. A cooperative teacher shows the "
    "example that brings the learner closest to the target, an adversarial one the example that "
    "helps least, a random one any."
)
BATCH = (
    "learns from the whole mini-batch: a step along its mean gradient. "
    "It ignores the teacher's choice."
)
SGD = "learns from one example that is drawn at random. It ignores the teacher's choice, too."
IMT = "is the naive learner: a gradient step on the example that the teacher shows."
ITAL = (
    "is the teacher-aware learner: the step of IMT, then a second one that makes the teacher's "
    "choice more likely."
)
ITAL_M = (
    "is an aware learner that sees only M examples of the mini-batch, so that it compares the "
    "choice with fewer others. ITAL sees all."
)
MATCHED = "are controls without awareness: their steps are as long as ITAL's would be."
POSTERIOR = (
    "are beliefs over the target, from labels alone and from labels and choices. They show their "
    "mean, and have neither a step size nor a β."
)
BETA = (
    "says how strictly an aware learner believes that the teacher chooses the best example. "
    "With β = 0, it believes that any choice is as likely as another."
)
ETA = (
    "is the step size. All methods share one, except where the report says that each method is "
    "tuned."
)
START = (
    f"means the parameters before the first step, drawn for each seed: {STARTS[0]}, as in the "
    f"paper's Algorithm 1, or {STARTS[1]} (deviation 0.1 around zero), as in the authors' later "
    "code."
)
DISTANCE = "is that from the learner's parameters to the target. Less is better."
HOLDS = (
    "means that a claim's rule is met. Where the rule compares two methods, it is met only if the "
    f"difference is significant as well (p < {LEVEL})."
)
WORDS = (
    ("Teacher", TEACHER),
    ("Batch", BATCH),
    ("SGD", SGD),
    ("IMT", IMT),
    ("ITAL", ITAL),
    ("ITAL M", ITAL_M),
    ("IMT matched, Batch matched", MATCHED),
    ("Posterior, ITAL posterior", POSTERIOR),
    ("β", BETA),
    ("η", ETA),
    ("Start", START),
    ("Distance", DISTANCE),
    ("Holds", HOLDS),
)


def words_section(context: Context) -> list[report.Block]:
    """Explain every word, if the report has results that use them."""
    has_results = context.data.experiments or context.data.evidence
    return [report.terms(WORDS)] if has_results else []
