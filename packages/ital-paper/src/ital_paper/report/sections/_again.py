"""The commands behind every part."""

from ital import learners, report
from ital_paper.experiments import plan
from ital_paper.experiments.plan import STARTS, TEACHERS
from ital_paper.report.sections._context import Context


def build(context: Context) -> list[report.Block]:
    """Commands to type, each with its purpose."""
    scale, out = context.scale, context.out
    flag = " --quick" if scale.quick else ""
    size = f" --seeds {scale.seeds} --steps {scale.steps}" if scale.quick else ""
    other = f"{out}/{STARTS[1].replace(':', '-')}"
    steps = ",".join(f"{lr:g}" for lr in plan.STEP_SIZES)
    betas = ",".join(f"{5000 * multiple:g}" for multiple in plan.RATIONALITIES)
    sweep = f" --seeds {scale.sweep_seeds} --steps {scale.steps}"
    return [
        report.commands([
            ("Everything. Existing results are kept; the report is rewritten:", f"ital reproduce{flag} --out {out}"),
            ("One task: all teachers, both starts, theory, tuning:", f"ital reproduce regression{flag} --out {out}"),
            *(
                (f"One experiment, {teacher} teacher:", f"ital run regression --teacher {teacher}{size} --out {out}")
                for teacher in TEACHERS
            ),
            ("From the other start:", f"ital run regression --init {STARTS[1]}{size} --out {other}"),
            (
                "The controls:",
                f"ital run regression --methods ital,{','.join(learners.CONTROLS)}{size} --out {out}",
            ),
            (
                "Every method tuned:",
                f"ital sweep regression --init {STARTS[1]} --methods {','.join(plan.TUNED)} --lr {steps} "
                f"--beta {betas}{sweep} --out {other}",
            ),
            ("β chosen by the learner:", f"ital run regression --beta auto{size} --out {out}/auto"),
            (
                "The study with simulated teachers:",
                f"ital study simulate --participants {scale.participants} --out sim && ital study analyze sim",
            ),
        ])
    ]  # fmt: skip
