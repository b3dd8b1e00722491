"""Directives that list what ital has, read from the registries and the command line when the pages
are built.

A part or a command that is added, here or by an installed package through its entry points, appears
by itself:

    ```{parts} teachers
    ```

lists tasks, teachers or methods as ``ital list`` does. ``{commands}`` lists all commands,
``{options} study serve`` the arguments and options of one. In reStructuredText, ``.. constructors::
tasks`` documents the function behind each name; ``.. constructors:: tasks ital_paper`` only those
of that package.
"""

import functools
import inspect
import re
from collections.abc import Iterator, Sequence
from typing import Any

import typer
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ital import learners, tasks, teachers
from ital.cli import app as ital
from ital.errors import InputError
from ital.tools.plugins import Part
from ital.tools.registry import describe

KINDS = {"tasks": tasks, "teachers": teachers, "methods": learners}
# Of an option whose own default is None, in its help.
DEFAULT = re.compile(r" \(default: ([^()]*)\)")
OPTION = re.compile(r"(--[a-z][a-z-]*)")

Row = Sequence[str]


def parts(kind: str) -> list[Row]:
    """Names and descriptions of all registered parts of a kind: tasks, teachers or methods."""
    return [(name, describe(make)) for name, make in KINDS[kind].REGISTRY.items()]


def constructors(kind: str) -> list[str]:
    """The functions that make the parts of a kind, as Python would import them, each once."""
    functions = []
    for make in KINDS[kind].REGISTRY.values():
        if isinstance(make, Part):
            functions.append(declared(make))
        else:
            functions.append(f"{KINDS[kind].__name__}.{getattr(make, 'func', make).__name__}")
    return list(dict.fromkeys(functions))


def declared(part: Part) -> str:
    """The function that an entry point names, or of which it names a variant with some arguments
    given.
    """
    module, _, name = part.entry.value.partition(":")
    try:
        made = part.load()
    except InputError:
        return f"{module}.{name}"
    return f"{module}.{made.func.__name__ if isinstance(made, functools.partial) else name}"


def all_commands() -> dict[str, Any]:
    """Every command, of ital and of other packages, by what is typed after ``ital``."""

    def under(group: Any, before: str) -> Iterator[tuple[str, Any]]:
        for name in group.list_commands(None):
            command = group.get_command(None, name)
            if hasattr(command, "list_commands"):
                yield from under(command, f"{before}{name} ")
            else:
                yield before + name, command

    return dict(under(typer.main.get_command(ital), ""))


def commands() -> list[Row]:
    """What is typed, arguments included, and the first paragraph of the help of every command."""
    rows = []
    for name, command in all_commands().items():
        arguments = [
            argument(each) for each in command.params if each.param_type_name == "argument"
        ]
        rows.append((" ".join(["ital", name, *arguments]), first_paragraph(command.help or "")))
    return rows


def options(name: str) -> list[Row]:
    """The arguments and options of a command: name, default, meaning."""
    rows = []
    for parameter in all_commands()[name].params:
        is_argument = parameter.param_type_name == "argument"
        typed = (
            argument(parameter)
            if is_argument
            else ", ".join([*parameter.opts, *parameter.secondary_opts])
        )
        default = DEFAULT.search(parameter.help or "")
        meaning = DEFAULT.sub("", parameter.help or "")
        rows.append((typed, default[1] if default else shown(parameter.default), meaning))
    return rows


def argument(parameter: Any) -> str:
    """An argument as help shows it: in brackets if it may be left out."""
    name = (parameter.metavar or parameter.name).upper()
    return name if parameter.required else f"[{name}{'…' if parameter.nargs == -1 else ''}]"


def shown(default: Any) -> str:
    """A default as a table shows it."""
    if isinstance(default, bool):
        return "on" if default else "off"
    return "–" if default is None or callable(default) else str(default)


def first_paragraph(text: str) -> str:
    """The text before the first blank line, as one line."""
    return " ".join(inspect.cleandoc(text).partition("\n\n")[0].split())


def table(head: Row, rows: Sequence[Row], code: int) -> nodes.table:
    """A table; the first ``code`` columns are set as code."""
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in head), cols=len(head))
    for part, lines in ((nodes.thead(), [head]), (nodes.tbody(), rows)):
        for line in lines:
            row = nodes.row()
            for i, text in enumerate(line):
                # Options in a sentence are code as well: smart quotes would make one dash of two.
                pieces = [text] if i < code else OPTION.split(text)
                is_code = i < code and isinstance(part, nodes.tbody)
                content = [
                    nodes.literal(text=piece)
                    if is_code or OPTION.fullmatch(piece)
                    else nodes.Text(piece)
                    for piece in pieces
                ]
                row += nodes.entry("", nodes.paragraph("", "", *content))
            part.append(row)
        group += part
    return nodes.table("", group, classes=["colwidths-auto"])


class Table(SphinxDirective):
    """A table whose rows are made by a function of the directive's argument."""

    final_argument_whitespace = True
    rows: Any
    head: Row

    def run(self) -> list[nodes.Node]:
        """The table; an unknown argument is an error that names the known ones."""
        self.env.note_reread()  # what is installed may change while the page does not
        try:
            return [table(self.head, type(self).rows(*self.arguments), code=1)]
        except KeyError as error:
            known = ", ".join(KINDS if self.name == "parts" else all_commands())
            raise self.error(f"unknown {error}: known are {known}") from None


class Parts(Table):
    """Tasks, teachers or methods."""

    required_arguments = 1
    head = ("name", "what it is")
    rows = staticmethod(parts)


class Commands(Table):
    """All commands."""

    head = ("command", "what it does")
    rows = staticmethod(commands)


class Options(Table):
    """The arguments and options of one command."""

    required_arguments = 1
    head = ("option", "default", "meaning")
    rows = staticmethod(options)


class Constructors(SphinxDirective):
    """The functions that make the parts of a kind, each with its documentation."""

    required_arguments = 1
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The functions, by autodoc."""
        self.env.note_reread()
        kind, package = (*self.arguments, "")[:2]
        lines = [
            f".. autofunction:: {function}"
            for function in constructors(kind)
            if not package or function.startswith(f"{package}.")
        ]
        node = nodes.Element()
        self.state.nested_parse(StringList(lines, "registries"), self.content_offset, node)
        return node.children


def setup(app: Sphinx) -> dict[str, Any]:
    """Adds the directives."""
    for directive in (Parts, Commands, Options, Constructors):
        app.add_directive(directive.__name__.lower(), directive)
    return {"parallel_read_safe": True}
