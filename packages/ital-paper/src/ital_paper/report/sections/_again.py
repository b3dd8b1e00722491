"""The commands behind every part."""

from ital import learners, report
from ital_paper.experiments import plan
from ital_paper.experiments.jobs import EVIDENCE
from ital_paper.experiments.plan import STARTS, TEACHERS
from ital_paper.report.sections._context import Context

BETA = 5000  # of regression


def again_section(context: Context) -> list[report.Block]:
    """List commands to type, each with its purpose."""
    scale = context.scale
    out = context.out
    quick = size = ""
    if scale.quick:
        quick = " --quick"
        size = f" --seeds {scale.seeds} --steps {scale.steps}"
    # Results from the second start have a folder of their own.
    second_out = f"{out}/{plan.as_file_name(STARTS[1])}"
    run = "ital run regression"
    controls = ",".join(learners.CONTROLS)
    with_each_teacher = [
        (f"One experiment, {teacher} teacher:", f"{run} --teacher {teacher}{size} --out {out}")
        for teacher in TEACHERS
    ]
    return [
        report.commands(
            [
                (
                    "Everything. Existing results are kept; the report is rewritten:",
                    f"ital reproduce{quick} --out {out}",
                ),
                (
                    "One task: all teachers, both starts, theory, tuning:",
                    f"ital reproduce regression{quick} --out {out}",
                ),
                *with_each_teacher,
                ("From the other start:", f"{run} --init {STARTS[1]}{size} --out {second_out}"),
                ("The controls:", f"{run} --methods ital,{controls}{size} --out {out}"),
                ("Every method tuned:", f"{_sweep_command(context)} --out {second_out}"),
                (
                    "Choices as evidence:",
                    f"{run} --methods {','.join(plan.BELIEFS)} --seeds {scale.seeds} "
                    f"--steps {scale.evidence_steps} --out {out}/{EVIDENCE}",
                ),
                ("β chosen by the learner:", f"{run} --beta auto{size} --out {out}/auto"),
                (
                    "The study with simulated teachers:",
                    f"ital study simulate --participants {scale.participants} --out sim "
                    "&& ital study analyze sim",
                ),
            ]
        )
    ]


def _sweep_command(context: Context) -> str:
    scale = context.scale
    methods = ",".join(plan.TUNED)
    step_sizes = ",".join(f"{lr:g}" for lr in plan.STEP_SIZES)
    betas = ",".join(f"{BETA * multiple:g}" for multiple in plan.RATIONALITIES)
    return (
        f"ital sweep regression --init {STARTS[1]} --methods {methods} --lr {step_sizes} "
        f"--beta {betas} --seeds {scale.sweep_seeds} --steps {scale.steps}"
    )
