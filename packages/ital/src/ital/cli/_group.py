"""Commands from other packages: entry points of the group ``ital.commands``."""

import functools
import re
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ital.errors import InputError
from ital.tools import plugins

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
