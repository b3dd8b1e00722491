"""``ital features`` and ``ital data``."""

import contextlib
import functools
from pathlib import Path
from typing import Annotated

import typer

from ital.cli.options import PLATFORM
from ital.tools.platform import set_up_jax

FILES = ("mnist", "mnist-pixels", "cifar10", "tiny-imagenet", "tiny-imagenet-vgg")
SHIPPED = ("mnist", "mnist-pixels", "cifar10", "tiny-imagenet", "equation")
# Help texts are written here, because a docstring keeps its line breaks.
BUILD = (
    "Train the networks of a task and store the features they compute. Interrupted builds resume."
)
CHECK = (
    "Evaluate the last layers again on the rows of a feature file, and compare with its data card."
)

features = typer.Typer(
    help="Build and check the feature files of the image and equation tasks.", no_args_is_help=True
)
data = typer.Typer(no_args_is_help=True)


@features.command(
    "build",
    help=BUILD,
    epilog="Example: ital features build mnist --data ~/mnist --out mnist.npz",
)
def build_features(
    name: Annotated[
        str, typer.Argument(help=f"{', '.join(FILES)} or equation.", show_default=False)
    ],
    folder: Annotated[
        Path | None,
        typer.Option("--data", help="Folder with the data (default: where ital data get puts it)."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write (default: in the user's data folder, where tasks find it)."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the training.")] = 0,
    positives: Annotated[
        str | None,
        typer.Option(
            help="For equation: which later states count as better: "
            "consecutive (the default) or any."
        ),
    ] = None,
    device: PLATFORM = None,
) -> None:
    """Build one feature file."""
    set_up_jax(device)
    from ital.tools.progress import show_progress
    from ital_paper import features as feature_files
    from ital_paper.tasks import scaled_for

    with contextlib.ExitStack() as stack:
        # The display begins with the work: an error in the arguments has none.
        begin = functools.cache(
            lambda: stack.enter_context(show_progress(f"{name}: features", 1000))
        )
        file = feature_files.build(
            name,
            folder,
            out,
            seed=seed,
            positives=positives,
            show=lambda done, text: begin()(round(1000 * done), f"features of {text}"),
            scale=scaled_for,
        )
    for line in feature_files.check(file):
        print(line)


@features.command("check", help=CHECK, epilog="Example: ital features check mnist")
def check_features(
    name: Annotated[
        str | None,
        typer.Argument(help="A feature file, or its name (default: all shipped with ital)."),
    ] = None,
) -> None:
    """Check one feature file, or all."""
    from ital_paper import features as feature_files

    names = SHIPPED if name is None else (name,)
    for file in names:
        for line in feature_files.check(feature_files.find(file) or Path(file)):
            print(line)


@data.callback()
def _data() -> None:  # without it, a group of one command would become that command
    """Download data sets to build feature files from."""


@data.command(epilog="Example: ital data get mnist")
def get(
    name: Annotated[str, typer.Argument(help="mnist or cifar10.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="Folder (default: in the user's data folder).")
    ] = None,
) -> None:
    """Download a data set through scikit-learn, and write it in its usual file format."""
    from ital_paper import features as feature_files

    for file in feature_files.get_data(name, out):
        print(file)
