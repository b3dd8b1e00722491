"""The command line. Nothing heavy is imported before a command needs it, so that ``ital --help`` is quick."""

import contextlib
import functools
import math
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from ital import _interrupts
from ital._platform import set_up_jax
from ital._version import __version__
from ital.errors import Incomplete, InputError
from ital.study import _cli_analysis, _cli_server

app = typer.Typer(
    name="ital",
    help="Machine teaching with learners that know they are being taught.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog="Example: ital run regression --methods imt,ital",
)

DEVICES = Annotated[str, typer.Option(help="How many local devices share the seeds: a number, or all.")]
WORKERS = Annotated[
    int | None, typer.Option(help="Number of local worker processes (extra: cluster); 0: none, compute in this one.")
]
LARGE_SWEEP = 2**21  # lane steps from which a sweep uses all cores of itself: a worker takes seconds to start
SCHEDULER = Annotated[
    str | None, typer.Option(help="Compute on the workers of this Dask scheduler, e.g. tcp://host:8786.")
]
RESOURCE = Annotated[
    str | None, typer.Option(help="Only on workers that declare this resource, e.g. GPU: one unit of it per cell.")
]
SEEDS_PER_CELL = Annotated[int | None, typer.Option(help="Seeds computed together (default: all; with workers one).")]
MLFLOW = Annotated[
    str | None, typer.Option(help="Also log every method to this MLflow store, e.g. ./mlruns (extra: mlflow).")
]
PLATFORM = Annotated[str | None, typer.Option(help="Where to compute: cpu or gpu (default: a GPU if there is one).")]


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        print(f"ital {__version__}")
        raise typer.Exit


@app.command("list", epilog="Example: ital list")
def list_parts() -> None:
    """Tasks, teachers and methods, one line each."""
    from ital import learners, tasks, teachers

    for title, registry in (("Tasks", tasks.REGISTRY), ("Teachers", teachers.REGISTRY), ("Methods", learners.REGISTRY)):
        print(title)
        for name, make in registry.items():
            print(f"  {name:<20} {describe(make)}")
        print()


def describe(make: Any) -> str:
    """The first line of a constructor's documentation, with the arguments a registry line has bound."""
    bound = getattr(make, "keywords", {})
    line = ((getattr(make, "func", make).__doc__ or "").strip().splitlines() or [""])[0]
    return line + (f" Here {', '.join(f'{key} = {value}' for key, value in bound.items())}." if bound else "")


@app.command(epilog="Example: ital run regression --teacher adversarial --methods imt,ital --seeds 10")
def run(
    task: Annotated[str, typer.Argument(help="The task, e.g. regression (ital list shows all).", show_default=False)],
    teacher: Annotated[str, typer.Option(help="Who chooses the examples.")] = "cooperative",
    methods: Annotated[
        str | None, typer.Option(help="Learners, separated by commas (default: the eight of the paper).")
    ] = None,
    seeds: Annotated[int, typer.Option(help="How many seeds.")] = 20,
    first_seed: Annotated[int, typer.Option(help="The first of them.")] = 0,
    steps: Annotated[int, typer.Option(help="Teaching steps.")] = 2000,
    beta: Annotated[
        str | None,
        typer.Option(help="How rational aware learners think the teacher: auto or a number (default: the task's)."),
    ] = None,
    lr: Annotated[float, typer.Option(help="The learner's step size.")] = 1e-3,
    batch_size: Annotated[int, typer.Option(help="Examples in a mini-batch.")] = 20,
    init: Annotated[
        str | None, typer.Option(help="Where learners start: uniform or normal:0.1 (default: the task's).")
    ] = None,
    label_noise: Annotated[float, typer.Option(help="Probability that a label of the pool is replaced.")] = 0.0,
    map: Annotated[
        Path | None, typer.Option(help="Rewards of the grid, for task irl: a text or CSV file with a line per row.")
    ] = None,
    eval_every: Annotated[
        int | None, typer.Option(help="Steps between measurements (default: the task's, mostly 10).")
    ] = None,
    step: Annotated[
        str, typer.Option(help="How far learners go: rate (the paper), length:L, length:L:decay, or safe.")
    ] = "rate",
    platform: PLATFORM = None,
    devices: DEVICES = "1",
    animate: Annotated[
        bool, typer.Option("--animate", help="Also draw what is learned as it changes, where a task can be drawn.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a result of other settings.")] = False,
    workers: WORKERS = None,
    scheduler: SCHEDULER = None,
    resource: RESOURCE = None,
    seeds_per_cell: SEEDS_PER_CELL = None,
    mlflow: MLFLOW = None,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("results"),
) -> None:
    """Teach on one task: curves, a summary table and figures in OUT/TASK/TEACHER/. Interrupted runs go on."""
    engine = engine_of(workers, scheduler, resource, platform)
    from ital import experiments
    from ital.experiments._table import print_outcome

    chosen: dict[str, Any] = {} if methods is None else {"methods": split(methods)}
    settings = experiments.Settings(
        task=task,
        teacher=teacher,
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
        form=step,
        devices=parse_devices(devices),
        **chosen,
    )
    options = {"overwrite": overwrite, "engine": engine, "mlflow": mlflow, "seeds_per_cell": seeds_per_cell}
    with shown(print_outcome) as say:
        print_outcome(experiments.run(settings, out, animate=animate, progress=True, say=say, **options))


@app.command(epilog="Example: ital sweep regression --lr 0.001,0.01,0.1 --beta 0,500,5000 --methods imt,ital --seeds 5")
def sweep(
    task: Annotated[str, typer.Argument(help="The task, e.g. regression (ital list shows all).", show_default=False)],
    lr: Annotated[str, typer.Option(help="Step sizes, separated by commas.", show_default=False)],
    beta: Annotated[
        str,
        typer.Option(help="How rational aware learners think the teacher: numbers, as they stand.", show_default=False),
    ],
    teacher: Annotated[str, typer.Option(help="Who chooses the examples.")] = "cooperative",
    methods: Annotated[str, typer.Option(help="Learners, separated by commas.")] = "batch,sgd,imt,ital",
    seeds: Annotated[int, typer.Option(help="How many seeds.")] = 20,
    first_seed: Annotated[int, typer.Option(help="The first of them.")] = 0,
    steps: Annotated[int, typer.Option(help="Teaching steps.")] = 2000,
    batch_size: Annotated[int, typer.Option(help="Examples in a mini-batch.")] = 20,
    init: Annotated[
        str | None, typer.Option(help="Where learners start: uniform or normal:0.1 (default: the task's).")
    ] = None,
    label_noise: Annotated[float, typer.Option(help="Probability that a label of the pool is replaced.")] = 0.0,
    map: Annotated[
        Path | None, typer.Option(help="Rewards of the grid, for task irl: a text or CSV file with a line per row.")
    ] = None,
    eval_every: Annotated[
        int | None, typer.Option(help="Steps between measurements (default: the task's, mostly 10).")
    ] = None,
    step: Annotated[
        str, typer.Option(help="How far learners go: rate (the paper), length:L, length:L:decay, or safe.")
    ] = "rate",
    platform: PLATFORM = None,
    devices: DEVICES = "1",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a sweep of other settings.")] = False,
    workers: WORKERS = None,
    scheduler: SCHEDULER = None,
    resource: RESOURCE = None,
    seeds_per_cell: SEEDS_PER_CELL = None,
    points_per_cell: Annotated[
        int | None, typer.Option(help="Points (a method at an η and a β) computed together (default: all).")
    ] = None,
    mlflow: MLFLOW = None,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("results"),
) -> None:
    """Every method with every η and β: who is best when all are tuned? Maps and sweep.nc in OUT/TASK/TEACHER/.

    The whole grid is one compiled program. Methods without β are computed once per η. Interrupted sweeps go on.
    """
    lrs, betas = parse_numbers("lr", lr), parse_numbers("beta", beta)
    from ital import _processes

    large = len(split(methods)) * len(lrs) * len(betas) * seeds * steps >= LARGE_SWEEP
    beside = _processes.number_for(seeds) if large and workers is None and scheduler is None and devices == "1" else 0
    engine = engine_of(workers, scheduler, resource, platform, beside)
    from ital import experiments
    from ital.experiments._table import print_sweep

    settings = experiments.Settings(
        task=task,
        teacher=teacher,
        methods=split(methods),
        seeds=seeds,
        first_seed=first_seed,
        steps=steps,
        batch_size=batch_size,
        init=init,
        label_noise=label_noise,
        map=None if map is None else str(map),
        eval_every=eval_every,
        form=step,
        devices=parse_devices(devices),
    )
    sizes = {"seeds_per_cell": seeds_per_cell, "points_per_cell": points_per_cell}
    options: dict[str, Any] = {"overwrite": overwrite, "engine": engine, "mlflow": mlflow, **sizes}
    with shown(print_sweep) as say:
        print_sweep(experiments.sweep(settings, lrs, betas, out, progress=True, say=say, **options))


@app.command(epilog="Example: ital reproduce --quick")
def reproduce(
    tasks: Annotated[
        list[str] | None, typer.Argument(metavar="TASK", help="Tasks (default: all that come with ital).")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few seeds and steps: a few minutes on two cores, and every figure says so.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results (default: results; with --quick results/quick).")
    ] = None,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Compute nothing: make the report of what is there.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(help="Worker processes that share the tasks (default: one per core); 0: compute in this one."),
    ] = None,
    platform: PLATFORM = None,
) -> None:
    """Every figure and table of the paper, and a report on what holds of its claims. Interrupted work resumes.

    All tasks with cooperative and adversarial teachers, from both starts, 20 seeds; the report is OUT/index.html.
    It exists as soon as the first task is done, and fills up from then on.
    """
    if workers != 0:
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # a GPU is the workers'
    set_up_jax(platform)
    from ital import reproduce as paper

    report = paper.reproduce(
        tasks or (), quick=quick, out=out, report_only=report_only, workers=workers, platform=platform, progress=True,
        say=say_once(),
    )  # fmt: skip
    print(f"report: {report}")


@app.command(
    epilog='Example: ital simplify "-1/2x^2y + 1/3xy = -1/5y^3 + 1/3x^2y" --steps',
    context_settings={"ignore_unknown_options": True},  # an equation may begin with a minus
)
def simplify(
    equation: Annotated[
        str, typer.Argument(help="A polynomial equation in x, y and z, of degree 4 at most.", show_default=False)
    ],
    how: Annotated[
        str,
        typer.Option(
            "--with", help="rules: a fixed order of operations; learned: greedy search with the learned value."
        ),
    ] = "rules",
    steps: Annotated[bool, typer.Option("--steps", help="Show every step with its operation.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX.")] = False,
) -> None:
    """Simplify an equation exactly, one operation at a time, to the form that ends in = 0."""
    if how not in ("rules", "learned"):
        raise InputError(f"--with must be rules or learned, not {how!r}")
    from ital.tasks import equation as equations

    start = equations.parse(equation)
    write = equations.latex if latex else equations.as_typed
    if how == "learned":
        set_up_jax(None)
        from ital.tasks._simplification import learned_value

        taken = equations.greedy(*learned_value(), start)
    else:
        taken = equations.simplify(start)
    done = [equations.Step("", start), *taken]
    for step in done if steps else done[-1:]:
        print(f"{step.operation:<22} {write(step.equation)}" if steps else write(step.equation))
    goal = equations.simplified(start)
    if done[-1].equation != goal:
        print(f"the search ends here, but the rules with: {write(goal)}", file=sys.stderr)


features_app = typer.Typer(
    help="Feature files of the image and equation tasks: build them anew, check them.", no_args_is_help=True
)
data_app = typer.Typer(help="Data sets to build feature files from.", no_args_is_help=True)
app.add_typer(features_app, name="features")
app.add_typer(data_app, name="data")


@features_app.command("build", epilog="Example: ital features build mnist --data ~/mnist --out mnist.npz")
def features_build(
    name: Annotated[
        str,
        typer.Argument(
            help="mnist, mnist-pixels, cifar10, tiny-imagenet, tiny-imagenet-vgg or equation.", show_default=False
        ),
    ],
    data: Annotated[Path | None, typer.Option(help="Folder of the data (default: where ital data get put it).")] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write (default: in the user's data folder, where tasks find it).")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the training.")] = 0,
    device: PLATFORM = None,
) -> None:
    """Train the networks of a task, and keep what they make of the data. Interrupted builds go on."""
    set_up_jax(device)
    from ital._progress import show_progress
    from ital.features import _build

    with contextlib.ExitStack() as stack:
        begin = functools.cache(lambda: stack.enter_context(show_progress(f"{name}: features", 1000)))
        file = _build.build(
            name, data, out, seed=seed, show=lambda done, text: begin()(round(1000 * done), f"features of {text}")
        )
    print_check(file)


@features_app.command("check", epilog="Example: ital features check mnist")
def features_check(
    name: Annotated[
        str | None, typer.Argument(help="A feature file, or its name (default: all that come with ital).")
    ] = None,
) -> None:
    """Evaluate the last layers again on the rows that a feature file holds, and compare with its data card."""
    from ital import features

    for one in ("mnist", "mnist-pixels", "cifar10", "tiny-imagenet", "equation") if name is None else (name,):
        file = features.find(one) or Path(one)
        print_check(file)


def print_check(file: Path) -> None:
    """The data card of a feature file, with accuracies computed anew."""
    from ital import features

    loaded = features.load(file)
    card = loaded.card
    print(f"{file}: {card['data']}")
    if card["name"] == "equation":
        from ital.features import _equations

        for line in _equations.check(file):
            print(f"  {line}")
        return
    for note in ("extractors", "caution", "layer"):
        if note in card:
            print(f"  {card[note]}")
    of_rows = card.get("of_rows", len(loaded.labels))
    print(f"  {len(loaded.labels)} of {of_rows} training rows, {len(loaded.test_labels)} test rows")
    for network, reached in card.get("accuracy", {}).items():
        role = "learner" if network == card["learner"] else "teacher"
        layer = loaded.last_layers[network]
        told = ", ".join(f"{what.removeprefix('test_')} {value:.2%}" for what, value in reached.items())
        print(f"  {role} {network}: {layer.shape[1] - 1} features; test accuracy when built: {told}")
        train = features.accuracy(loaded.views[network], layer, loaded.labels)
        print(f"    now, on the training rows here: {train:.2%}", end="")
        for what, value in reached.items() if network in loaded.test_views else ():
            now = features.accuracy(loaded.test_views[network], layer, loaded.test_labels, int(what[-1]))
            print(f"; on all test rows: {what.removeprefix('test_')} {now:.2%}", end="")
            if abs(now - value) > max(0.005, 3 / len(loaded.test_labels)):
                raise InputError(f"{file}: {network} reaches {now:.2%} ({what}), but its card says {value:.2%}")
        print()


@data_app.command("get", epilog="Example: ital data get mnist")
def data_get(
    name: Annotated[str, typer.Argument(help="mnist or cifar10.", show_default=False)],
    out: Annotated[Path | None, typer.Option(help="Folder (default: in the user's data folder).")] = None,
) -> None:
    """Download a data set through scikit-learn, into the files in which it is usually passed around."""
    from ital.features import _get

    for file in _get.get(name, out):
        print(file)


study_app = typer.Typer(help="The human study: people teach robots in the browser.", no_args_is_help=True)
app.add_typer(study_app, name="study")
_cli_server.register(study_app, app)
_cli_analysis.register(study_app)


@app.command(epilog="Example: ital bench --json > bench.json")
def bench(
    lanes: Annotated[int, typer.Option(help="Lanes (8 methods each seed) to run side by side.")] = 160,
    steps: Annotated[int, typer.Option(help="Teaching steps of each lane.")] = 2000,
    test_rows: Annotated[int, typer.Option(help="Test rows of the 200-class pool.")] = 10_000,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    scaling: Annotated[
        bool,
        typer.Option("--scaling", help="Instead: speed against lanes, rows and processes; memory; and what bounds it."),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="With --scaling: folder for scaling.json and its figure (default: none).")
    ] = None,
    platform: PLATFORM = None,
) -> None:
    """Speed of this machine: ital against a plain NumPy loop and against its own floor."""
    if out is not None and not scaling:
        raise InputError("--out is for --scaling: without it there are no files to write")
    set_up_jax(platform, cache=False)
    from ital import bench as benchmark

    if scaling:
        from ital.bench import _scaling

        _scaling.main(as_json=json, out=out)
        return
    benchmark.main(lanes=lanes, steps=steps, test_rows=test_rows, as_json=json)


def engine_of(
    workers: int | None, scheduler: str | None, resource: str | None, platform: str | None, beside: int = 0
) -> Any:
    """Who computes: None for this process, which then is set up for it. ``beside`` is the number of processes that
    do where nothing was said.
    """
    if workers and scheduler is not None:
        raise InputError("--workers starts a cluster, --scheduler joins one: choose one of them")
    if not workers and scheduler is None:
        if resource is not None:
            raise InputError("--resource is for workers: say --workers or --scheduler too")
        set_up_jax(platform)
    else:
        set_up_jax("cpu")  # the platform is for the workers: a GPU is theirs
    from ital import experiments

    if not workers and scheduler is None:
        return experiments.processes(beside, platform) if beside else None
    return experiments.cluster(workers=workers, scheduler=scheduler, resource=resource, platform=platform)


@contextlib.contextmanager
def shown(show: Callable[[Any], None]) -> Iterator[Callable[[str], None]]:
    """Yields where lines go; if cells fail, shows what there is without them."""
    try:
        yield say_once()
    except Incomplete as incomplete:
        if incomplete.result is not None:
            show(incomplete.result)
        raise


def parse_beta(text: str | None) -> float | str | None:
    """β as typed: ``auto``, a finite number, or nothing for the task's."""
    if text is None or text == "auto":
        return text
    try:
        beta = float(text)
    except ValueError:
        beta = math.nan
    if not math.isfinite(beta):
        raise InputError(f"beta must be a finite number or 'auto', not {text!r}")
    return beta


def parse_devices(text: str) -> int | str:
    """How many devices, as typed: a whole number, or ``all``."""
    if text == "all":
        return text
    try:
        return int(text)
    except ValueError:
        raise InputError(f"devices must be a whole number from 1 on, or 'all', not {text!r}") from None


def say_once() -> Callable[[str], None]:
    """Prints lines on standard error, none of them twice: many computations of one command say the same."""
    return functools.cache(lambda line: print(line, file=sys.stderr))


def split(text: str) -> tuple[str, ...]:
    """What is written between commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def parse_numbers(name: str, text: str) -> list[float]:
    """Finite numbers, separated by commas."""
    try:
        numbers = [float(part) for part in split(text)]
    except ValueError:
        numbers = []
    if not numbers or not all(map(math.isfinite, numbers)):
        raise InputError(f"{name} must be finite numbers separated by commas, not {text!r}")
    return numbers


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line: status 2 and one line for bad input, 130 after Ctrl-C."""
    _interrupts.raise_and_note()
    try:
        status = typer.main.get_command(app)(arguments, prog_name="ital", standalone_mode=False)
    except InputError as error:
        fail(str(error), 2)
    except Incomplete as error:
        from ital.experiments._table import print_failures

        print_failures(error)
        fail(str(error), 1)
    except KeyboardInterrupt:
        status = 130
    except OSError as error:
        fail(f"{error.filename or 'file'}: {error.strerror or error}", 1)
    except Exception as error:
        # Typer's own errors differ in class between its versions, but all know their message and their status.
        if type(error).__name__ == "Abort":  # Ctrl-C in some versions of Typer; others return 130
            status = 130
        elif hasattr(error, "format_message"):
            fail(error.format_message(), 2)
        else:
            raise
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is written: nothing is left to interrupt
    if status == 130:
        fail("interrupted; what is finished is kept, and the same command goes on from there", 130)
    sys.exit(status if isinstance(status, int) else 0)


def fail(message: str, status: int) -> None:
    """One line on standard error, then out; without a message, help has been printed already."""
    if message:
        print(f"ital: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(status)
