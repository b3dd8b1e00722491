"""The command line.

Heavy modules are imported only when a command needs them, so that ``ital --help`` is quick.
"""

import signal
import sys
from typing import Annotated, NoReturn

import typer

from ital._version import __version__
from ital.cli import _bench, _fit, _list, _plot, _run
from ital.cli._group import CommandGroup
from ital.cli.options import check_values
from ital.errors import Incomplete, InputError
from ital.tools import interrupts
from ital.tools.registry import describe

app = typer.Typer(
    name="ital",
    cls=CommandGroup,
    help="Machine teaching with learners that know they are being taught.",
    epilog="Example: ital run regression --methods imt,ital",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        print(f"ital {__version__}")
        raise typer.Exit


# In the order of ``ital --help``.
for family in (_list, _run, _plot, _fit, _bench):
    family.register(app)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: status 2 and one line for bad input, 1 for file errors.

    Ctrl-C and SIGTERM end it with one line and status 130 or 143.

    Args:
        arguments: The words after ``ital``; None: the arguments of the process.

    Raises:
        SystemExit: Always, with the status.
    """
    interrupts.raise_and_note()
    try:
        check_values(sys.argv[1:] if arguments is None else arguments)
        status = typer.main.get_command(app)(arguments, prog_name="ital", standalone_mode=False)
    except InputError as error:
        _fail(str(error), 2)
    except Incomplete as error:
        from ital.experiments import print_failures

        print_failures(error)
        _fail(str(error), 1)
    except KeyboardInterrupt:
        status = 130
    except OSError as error:
        _fail(f"{error.filename or 'file'}: {error.strerror or error}", 1)
    except Exception as error:
        status = _typer_status(error)
    # Everything is written: there is nothing left to interrupt.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Programs started from here would inherit that it is ignored.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if status == 130:
        kept = "finished work is kept, and the same command resumes it"
        if interrupts.terminated():
            _fail(f"terminated; {kept}", 143)
        _fail(f"interrupted; {kept}", 130)
    # A command that returns nothing has succeeded.
    sys.exit(status if isinstance(status, int) else 0)


def _typer_status(error: Exception) -> int:
    """Return the status for Ctrl-C; exit for an error of Typer; raise any other."""
    # The class of Typer's own errors differs between its versions, but all have a message.
    if type(error).__name__ == "Abort":
        # Some versions raise it after Ctrl-C; others return 130.
        return 130
    if hasattr(error, "format_message"):
        _fail(error.format_message(), 2)
    raise error


def _fail(message: str, status: int) -> NoReturn:
    """Print one line on standard error and exit; without a message, help was printed already."""
    if message:
        print(f"ital: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(status)


__all__ = ["app", "describe", "main"]
