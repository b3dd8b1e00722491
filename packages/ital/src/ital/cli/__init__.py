"""The command line: the commands of ital, then those of other packages, and :func:`main`.

Heavy modules are imported only when a command needs them, so that ``ital --help`` is quick.
"""

import functools
import re
import signal
import sys
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from ital._version import __version__
from ital.cli import _bench, _fit, _list, _plot, _run
from ital.cli.options import check_values
from ital.errors import Incomplete, InputError
from ital.tools import interrupts, plugins
from ital.tools.registry import describe

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

HEADING = "Commands of other packages"
# Options that Typer gives to a whole program, not to a command.
COMPLETION = ("install_completion", "show_completion")


class CommandGroup(TyperGroup):
    """The commands of ital, then those of other packages, which are imported only when called.

    Commands of this project's other packages are light: their own help lines are shown.
    """

    @functools.cached_property
    def declared(self) -> "dict[str, EntryPoint]":
        """Commands that other packages declare; ital's own names take precedence."""
        entries = plugins.entries("ital.commands")
        return {name: entry for name, entry in entries.items() if name not in self.commands}

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of ``ital --help``."""
        return [*self.commands, *self.declared]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command of this project, or a stand-in for another package's command."""
        if cmd_name in self.commands:
            return self.commands[cmd_name]
        if cmd_name in self.declared:
            entry = self.declared[cmd_name]
            if plugins.is_sibling(entry):
                return _load_command(entry)
            # Its help line is known without importing the package.
            return TyperCommand(cmd_name, help=_summary(entry), rich_help_panel=HEADING)
        reason = plugins.missing("ital.commands", cmd_name)
        if reason is not None:
            raise InputError(reason)
        return None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name of the command to run, the command and its arguments."""
        name, command, arguments = super().resolve_command(ctx, args)
        if name is None or name in self.commands or plugins.is_sibling(self.declared[name]):
            return name, command, arguments
        # get_command gave a stand-in: the command itself is needed now.
        return name, _load_command(self.declared[name]), arguments


def _summary(entry: "EntryPoint") -> str:
    """Return the help line of a package's command: the package's summary."""
    metadata = entry.dist.read_text("METADATA") if entry.dist else None
    summary = re.search(r"^Summary: *(\S.*)$", metadata or "", re.MULTILINE)
    return summary[1] if summary else f"Declared as {entry.value}."


def _load_command(entry: "EntryPoint") -> Any:
    """Return the command behind an entry point: a Typer app or a function."""
    try:
        plugin = entry.load()
        if isinstance(plugin, typer.Typer):
            plugin_app = plugin
        else:
            plugin_app = typer.Typer()
            plugin_app.command(entry.name)(plugin)
        command = typer.main.get_command(plugin_app)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise InputError(
            f"command {entry.name!r} from another package ({entry.value}) is broken: {reason}"
        ) from error
    command.name = entry.name
    command.params = [parameter for parameter in command.params if parameter.name not in COMPLETION]
    return command


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
