"""``ital run``, ``ital matrix`` and ``ital sweep``."""

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ital.cli import options
from ital.cli.options import parse_beta, parse_devices, parse_numbers, split
from ital.errors import Incomplete, InputError
from ital.tools.platform import set_up_jax


def register(app: typer.Typer) -> None:
    """Add the commands."""
    examples: dict[Callable[..., None], str] = {
        run: "ital run regression --teacher adversarial --methods imt,ital --seeds 10",
        matrix: "ital matrix gaussian --seeds 10",
        sweep: "ital sweep regression --lr 0.001,0.01,0.1 --beta 0,500,5000 --methods imt,ital "
        "--seeds 5",
    }
    for command, example in examples.items():
        app.command(cls=TeachingCommand, epilog=f"Example: {example}")(command)


class TeachingCommand(TyperCommand):
    """A command that teaches. It also reads ``--step``, the earlier name of ``--form``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words after the command."""
        # Scripts and notes of earlier versions say --step; the help names one option only.
        renamed = [re.sub(r"^--step(?==|$)", "--form", word) for word in args]
        return super().parse_args(ctx, renamed)


def run(
    task: options.TASK_OR_TABLE = None,
    data: options.DATA = None,
    label: options.LABEL = None,
    teacher_columns: options.TEACHER_COLUMNS = None,
    learner_columns: options.LEARNER_COLUMNS = None,
    kind: options.KIND = None,
    teacher: options.TEACHER = "cooperative",
    methods: Annotated[
        str | None,
        typer.Option(
            help="Learners, comma-separated (default: the task's own, or the eight of the paper)."
        ),
    ] = None,
    seeds: options.SEEDS = 20,
    first_seed: options.FIRST_SEED = 0,
    steps: options.STEPS = 2000,
    beta: options.BETA = None,
    beta_decay: Annotated[
        float | None,
        typer.Option(
            help="Share that β loses per step (default: the task's if β is the task's, else 0)."
        ),
    ] = None,
    lr: options.LR = 1e-3,
    batch_size: options.BATCH_SIZE = 20,
    choices: options.CHOICES = 1,
    labels: options.LABELS = "all",
    init: options.INIT = None,
    label_noise: options.LABEL_NOISE = "0",
    map: options.MAP = None,
    teacher_loss: options.TEACHER_LOSS = None,
    equations: options.EQUATIONS = None,
    eval_every: options.EVAL_EVERY = None,
    form: options.FORM = "rate",
    optimizer: options.OPTIMIZER = None,
    platform: options.PLATFORM = None,
    devices: options.DEVICES = "1",
    animate: Annotated[
        bool,
        typer.Option(
            "--animate",
            help="Also write an animation of what is learned, if the task can be drawn.",
        ),
    ] = False,
    awareness: Annotated[
        bool,
        typer.Option(
            "--awareness",
            help="Also print how sharp q and how long the awareness step is at the start.",
        ),
    ] = False,
    csv: options.CSV = False,
    overwrite: options.OVERWRITE = False,
    workers: options.WORKERS = None,
    scheduler: options.SCHEDULER = None,
    resource: options.RESOURCE = None,
    seeds_per_cell: options.SEEDS_PER_CELL = None,
    mlflow: options.MLFLOW = None,
    out: options.OUT = Path("results"),
) -> None:
    """Teach on one task; write curves, a summary table and figures to OUT/TASK/TEACHER/.

    Interrupted runs resume. Your own table (--data FILE --label COLUMN) becomes a task named after
    its file.
    """
    taught = options.task_settings(task, data, label, teacher_columns, learner_columns, kind)
    engine = engine_of(workers, scheduler, resource, platform)
    from ital.experiments import Settings, print_outcome
    from ital.experiments import run as run_experiment

    settings = Settings(
        **taught,
        teacher=teacher,
        methods=None if methods is None else split("methods", methods),
        seeds=seeds,
        first_seed=first_seed,
        steps=steps,
        beta=parse_beta(beta),
        beta_decay=beta_decay,
        lr=lr,
        batch_size=batch_size,
        choices=choices,
        labels=labels,
        init=init,
        label_noise=label_noise,
        map=None if map is None else str(map),
        teacher_loss=teacher_loss,
        equations=equations,
        eval_every=eval_every,
        form=form,
        optimizer=optimizer,
        devices=parse_devices(devices),
    )
    with partial_result(print_outcome) as say:
        outcome = run_experiment(
            settings,
            out,
            animate=animate,
            overwrite=overwrite,
            csv=csv,
            seeds_per_cell=seeds_per_cell,
            engine=engine,
            mlflow=mlflow,
            progress=True,
            say=say,
        )
        print_outcome(outcome)
    if awareness:
        _print_awareness(settings)


def _print_awareness(settings: Any) -> None:
    """Print what awareness amounts to at the start of a run, on its first seeds."""
    import dataclasses

    from ital import teaching

    few = dataclasses.replace(settings, seeds=min(3, settings.seeds))
    plan = few.plan()
    names = ("beta", "beta_decay", "lr", "batch_size", "choices", "init", "form", "optimizer")
    numbers = {name: getattr(few, name) for name in names}
    found = teaching.awareness(
        plan.task,
        plan.teacher,
        list(plan.learners),
        seeds=few.seed_list,
        **numbers,
    )
    for line in teaching.awareness_in_words(found):
        print(line)


def matrix(
    task: options.TASK_OR_TABLE = None,
    data: options.DATA = None,
    label: options.LABEL = None,
    teacher_columns: options.TEACHER_COLUMNS = None,
    learner_columns: options.LEARNER_COLUMNS = None,
    kind: options.KIND = None,
    teachers: Annotated[
        str | None,
        typer.Option(
            help="Real teachers, comma-separated "
            "(default: seven, those that make sense on the task)."
        ),
    ] = None,
    controls: Annotated[
        bool,
        typer.Option(
            "--controls", help="Add a naive learner whose steps are as long as the aware learner's."
        ),
    ] = False,
    seeds: options.SEEDS = 20,
    first_seed: options.FIRST_SEED = 0,
    steps: options.STEPS = 2000,
    beta: options.BETA = None,
    lr: options.LR = 1e-3,
    batch_size: options.BATCH_SIZE = 20,
    init: options.INIT = None,
    label_noise: options.LABEL_NOISE = "0",
    map: options.MAP = None,
    eval_every: options.EVAL_EVERY = None,
    form: options.FORM = "rate",
    platform: options.PLATFORM = None,
    overwrite: options.OVERWRITE = False,
    workers: options.WORKERS = None,
    scheduler: options.SCHEDULER = None,
    resource: options.RESOURCE = None,
    out: options.OUT = Path("results"),
) -> None:
    """Cross real teachers with what learners assume: nothing, a helper, an adversary, finding out.

    The question is that of Milli and Dragan (2019). The last line checks their order of the pairs.

    Writes a table and a figure of real against assumed teachers to OUT/TASK/matrix.*, and the runs
    to OUT/TASK/TEACHER/. Finished runs are skipped, interrupted ones resume.
    """
    taught = options.task_settings(task, data, label, teacher_columns, learner_columns, kind)
    engine = engine_of(workers, scheduler, resource, platform)
    from ital.experiments import Settings, print_matrix
    from ital.experiments import matrix as run_matrix

    settings = Settings(
        **taught,
        seeds=seeds,
        first_seed=first_seed,
        steps=steps,
        beta=parse_beta(beta),
        lr=lr,
        batch_size=batch_size,
        init=init,
        label_noise=label_noise,
        map=None if map is None else str(map),
        eval_every=eval_every,
        form=form,
    )
    result = run_matrix(
        settings,
        out,
        teachers=None if teachers is None else split("teachers", teachers),
        controls=controls,
        overwrite=overwrite,
        engine=engine,
        progress=True,
        say=options.say_once(),
    )
    print_matrix(result)


def sweep(
    lr: Annotated[str, typer.Option(help="Step sizes, comma-separated.", show_default=False)],
    beta: Annotated[
        str,
        typer.Option(
            help="Values of β, comma-separated: how rational aware learners think the teacher is.",
            show_default=False,
        ),
    ],
    task: options.TASK_OR_TABLE = None,
    data: options.DATA = None,
    label: options.LABEL = None,
    teacher_columns: options.TEACHER_COLUMNS = None,
    learner_columns: options.LEARNER_COLUMNS = None,
    kind: options.KIND = None,
    teacher: options.TEACHER = "cooperative",
    methods: Annotated[str, typer.Option(help="Learners, comma-separated.")] = "batch,sgd,imt,ital",
    metric: Annotated[
        str | None,
        typer.Option(
            help="What settings are judged by: distance, loss, accuracy, … "
            "(default: the distance to the target).",
            show_default=False,
        ),
    ] = None,
    seeds: options.SEEDS = 20,
    first_seed: options.FIRST_SEED = 0,
    steps: options.STEPS = 2000,
    batch_size: options.BATCH_SIZE = 20,
    choices: options.CHOICES = 1,
    init: options.INIT = None,
    label_noise: options.LABEL_NOISE = "0",
    map: options.MAP = None,
    teacher_loss: options.TEACHER_LOSS = None,
    eval_every: options.EVAL_EVERY = None,
    form: options.FORM = "rate",
    optimizer: options.OPTIMIZER = None,
    platform: options.PLATFORM = None,
    devices: options.DEVICES = "1",
    csv: options.CSV = False,
    overwrite: options.OVERWRITE = False,
    workers: options.WORKERS = None,
    scheduler: options.SCHEDULER = None,
    resource: options.RESOURCE = None,
    seeds_per_cell: options.SEEDS_PER_CELL = None,
    points_per_cell: Annotated[
        int | None,
        typer.Option(help="Points (a method at an η and a β) computed together (default: all)."),
    ] = None,
    mlflow: options.MLFLOW = None,
    out: options.OUT = Path("results"),
) -> None:
    """Run every method with every η and β: which is best when all are tuned?

    Writes maps and sweep.nc to OUT/TASK/TEACHER/. The whole grid is one compiled program.
    Methods without β are computed once per η. Interrupted sweeps resume. More values of η or β,
    methods and seeds are added to what is there.
    """
    taught = options.task_settings(task, data, label, teacher_columns, learner_columns, kind)
    names = split("methods", methods)
    # A third axis would be one more option, parsed and counted here.
    lrs = parse_numbers("lr", lr)
    betas = parse_numbers("beta", beta)
    # Several devices share the seeds already: no processes beside them.
    lane_steps = 0
    if devices == "1":
        lane_steps = len(names) * len(lrs) * len(betas) * seeds * steps
    engine = engine_of(workers, scheduler, resource, platform, seeds=seeds, lane_steps=lane_steps)
    from ital.experiments import Settings, print_sweep
    from ital.experiments import sweep as run_sweep

    settings = Settings(
        **taught,
        teacher=teacher,
        methods=names,
        seeds=seeds,
        first_seed=first_seed,
        steps=steps,
        batch_size=batch_size,
        choices=choices,
        init=init,
        label_noise=label_noise,
        map=None if map is None else str(map),
        teacher_loss=teacher_loss,
        eval_every=eval_every,
        form=form,
        optimizer=optimizer,
        devices=parse_devices(devices),
    )
    with partial_result(print_sweep) as say:
        swept = run_sweep(
            settings,
            lrs,
            betas,
            out,
            metric=metric,
            overwrite=overwrite,
            csv=csv,
            seeds_per_cell=seeds_per_cell,
            points_per_cell=points_per_cell,
            engine=engine,
            mlflow=mlflow,
            progress=True,
            say=say,
        )
        print_sweep(swept)


def engine_of(
    workers: int | None,
    scheduler: str | None,
    resource: str | None,
    platform: str | None,
    **size: int,
) -> Any:
    """Return the engine that the options ask for, after setting up JAX for it.

    Args:
        workers: number of worker processes to start.
        scheduler: address of a scheduler.
        resource: what a worker must declare.
        platform: "cpu" or "gpu".
        **size: the size of a sweep, as in :func:`ital.experiments.engine_for`.
    """
    if workers and scheduler is not None:
        raise InputError("--workers starts a cluster and --scheduler joins one: choose one of them")
    on_cluster = bool(workers) or scheduler is not None
    if resource is not None and not on_cluster:
        raise InputError("--resource needs workers: add --workers or --scheduler")
    # On a cluster, --platform is for the workers: this process leaves the GPU to them.
    set_up_jax("cpu" if on_cluster else platform)
    if not (on_cluster or size):
        # Only a sweep can be so large that it uses processes unasked.
        return None
    from ital.experiments import engine_for

    return engine_for(
        workers=workers,
        scheduler=scheduler,
        resource=resource,
        platform=platform,
        **size,
    )


@contextlib.contextmanager
def partial_result(show: Callable[[Any], None]) -> Iterator[Callable[[str], None]]:
    """Yield a function that prints lines; if cells fail, show the result without them."""
    try:
        yield options.say_once()
    except Incomplete as incomplete:
        if incomplete.result is not None:
            show(incomplete.result)
        raise
