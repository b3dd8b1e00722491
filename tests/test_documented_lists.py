"""Lists of parts, commands and options in the documentation are read from the registries and the
command line.
"""

import importlib
import inspect
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import ital
import ital_study
from ital import learners, tasks, teachers, tools
from tests import plugged

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def registries():
    pytest.importorskip("sphinx", reason="needs the extra docs")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS / "build_scripts"))
        import registries

        yield registries
    del sys.modules["registries"]


@pytest.mark.parametrize(
    ("kind", "module"), [("tasks", tasks), ("teachers", teachers), ("methods", learners)]
)
def test_every_registered_part_is_listed_and_documented(registries, monkeypatch, kind, module):
    def newcomer():
        """A part that nobody has written down."""

    monkeypatch.setitem(module.REGISTRY, "newcomer", newcomer)
    assert [name for name, _ in registries.parts(kind)] == list(module.REGISTRY)
    assert registries.parts(kind)[-1] == ("newcomer", "A part that nobody has written down.")
    functions = registries.constructors(kind)
    assert functions[-1] == f"{module.__name__}.newcomer"
    for function in functions[:-1]:
        place, _, name = function.rpartition(".")
        assert name in importlib.import_module(place).__all__
    assert len(set(functions)) == len(functions)


def test_commands_and_options_are_those_of_the_command_line(registries):
    listed = dict(registries.commands())
    assert listed["ital run [TASK]"].startswith("Teach on one task")
    assert "ital study serve [DIR]" in listed
    options = {name: (default, meaning) for name, default, meaning in registries.options("run")}
    assert options["[TASK]"][0] == "–"
    assert options["--seeds"] == ("20", "Number of seeds.")
    assert options["--methods"] == (
        "the task's own, or the eight of the paper",
        "Learners, comma-separated.",
    )
    assert options["--animate"][0] == "off"
    assert registries.options("reproduce")[0][0] == "[TASK…]"


def test_every_command_with_options_has_its_table(registries):
    shown = set(
        re.findall(
            r"^```\{options\} (.+)$",
            (DOCS / "reference" / "cli.md").read_text("utf-8"),
            re.MULTILINE,
        )
    )
    own = {name for name, command in registries.all_commands().items() if command.params}
    assert shown == own


def exported():
    """The public functions and classes of the three packages, by the name that Python imports."""
    of_ital = filter(inspect.ismodule, (getattr(ital, name) for name in ital.__all__))
    of_paper = ("tasks", "features", "equation", "reproduce", "report.sections")
    of_paper = (importlib.import_module(f"ital_paper.{name}") for name in of_paper)
    for module in (ital, *of_ital, ital_study, *of_paper):
        for name in getattr(module, "__all__", ()):
            part = getattr(module, name)
            if inspect.isclass(part) or inspect.isfunction(inspect.unwrap(part)):
                yield f"{module.__name__}.{name}", part


def test_the_reference_documents_every_public_function_and_class(registries):
    page = (DOCS / "reference" / "api.md").read_text("utf-8")
    written = re.findall(
        r"^\.\. auto(?:function|class|exception):: (ital\S*)\.(\w+)$", page, re.MULTILINE
    )
    made = (
        function.rpartition(".")[::2]
        for kind in registries.KINDS
        for function in registries.constructors(kind)
    )
    documented = {
        id(getattr(importlib.import_module(module), name)) for module, name in (*written, *made)
    }
    missing = [name for name, part in exported() if id(part) not in documented]
    assert not missing, f"docs/reference/api.md lacks {', '.join(missing)}"


def test_the_documentation_lists_parts_and_commands_of_other_packages(tmp_path):
    pytest.importorskip("sphinx", reason="needs the extra docs")
    shown = "r.parts('teachers'), r.constructors('tasks'), r.commands()"
    scripts = str(DOCS / "build_scripts")
    code = f"import sys; sys.path.append({scripts!r}); import registries as r; print({shown})"
    plugged.install(tmp_path)
    done = plugged.python(tmp_path, "-c", code)
    assert done.returncode == 0, done.stderr
    assert "('contrary', 'Chooses what helps least, and is called contrary.')" in done.stdout
    assert "'made_up.tiny'" in done.stdout
    assert "('ital greet', 'Made-up commands.')" in done.stdout


def test_the_reference_documents_every_tool():
    page = (DOCS / "reference" / "api.md").read_text("utf-8")
    documented = re.findall(r"^\.\. automodule:: ital\.tools\.(\w+)$", page, re.MULTILINE)
    assert documented == sorted(module.name for module in pkgutil.iter_modules(tools.__path__))


def test_the_walks_name_files_that_exist():
    page = (DOCS / "reference" / "architecture.md").read_text("utf-8")
    sources = [
        f"/{file.relative_to(DOCS.parent)}"
        for file in (DOCS.parent / "packages").glob("*/src/**/*.*")
    ]
    named = set(re.findall(r"`([\w/]+\.(?:py|js))`", page)) - {"docs/build_scripts/walks.py"}
    assert len(named) > 80
    assert not [name for name in named if not any(file.endswith(f"/{name}") for file in sources)]
