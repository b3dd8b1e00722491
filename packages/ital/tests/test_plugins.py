"""Commands and parts of other packages: a made-up package on the path declares entry points."""

import json
import re
import sys

import pytest

from ital.tools import plugins
from tests import plugged
from tests.typed import ital


@pytest.fixture(autouse=True)
def made_up(tmp_path, monkeypatch):
    described = plugged.install(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield described
    sys.modules.pop("made_up", None)


def test_entries_are_found_by_group_and_name(tmp_path, monkeypatch):
    others = [
        name
        for name, entry in plugins.entries("ital.commands").items()
        if not plugins.is_sibling(entry)
    ]
    assert others == ["add", "alone", "gone", "greet", "lost", "number", "run"]
    assert plugins.entries("ital.nothing") == {}
    first = tmp_path / "first" / "other-1.0.dist-info"
    first.mkdir(parents=True)
    (first / "entry_points.txt").write_text("[ital.commands]\nadd = other:add\n")
    monkeypatch.syspath_prepend(first.parent)
    assert plugins.entries("ital.commands")["add"].value == "other:add"


def test_help_lists_commands_of_other_packages_without_importing_them(capsys, made_up):
    status, out, err = ital(capsys, "--help")
    assert (status, err) == (0, "")
    own, _, others = out.partition("Commands of other packages")
    assert "sweep" in own
    assert "greet" not in own
    for name in ("greet", "add", "alone", "lost", "gone"):
        assert name in others
    assert "Made-up commands." in others
    assert "│ run" not in others
    assert "made_up" not in sys.modules
    (made_up / "METADATA").unlink()
    assert "Declared as made_up:app." in ital(capsys, "--help")[1]


def test_apps_and_functions_are_commands(capsys):
    assert ital(capsys, "greet", "hello", "you") == (0, "hello you\n", "")
    assert ital(capsys, "add", "2", "--b", "3") == (0, "5\n", "")
    assert ital(capsys, "alone", "--loud") == (0, "ALONE\n", "")
    status, out, _ = ital(capsys, "alone", "--help")
    assert status == 0
    assert "Usage: ital alone [OPTIONS]" in out
    assert "completion" not in out
    status, _, err = ital(capsys, "add", "two")
    assert status == 2
    assert "valid integer" in err


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("lost", "(made_up:nothing) is broken: AttributeError"),
        ("gone", "(made_up_elsewhere:app) is broken: ModuleNotFoundError"),
        ("number", "(made_up:number) is broken: TypeError"),
    ],
)
def test_a_broken_command_is_named_in_one_line_and_stops_no_other(capsys, name, reason):
    status, out, err = ital(capsys, name)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith(f"ital: command '{name}' from another package {reason}")
    assert ital(capsys, "add", "1")[:2] == (0, "2\n")


def test_own_commands_keep_their_names_and_look_for_no_others(capsys, monkeypatch):
    monkeypatch.setattr(
        plugins, "entries", lambda group: pytest.fail("own commands need no entry points")
    )
    status, out, _ = ital(capsys, "run", "--help")
    assert status == 0
    assert "--label-noise" in out


def test_an_unknown_command_is_refused(capsys):
    status, _, err = ital(capsys, "rum")
    assert status == 2
    assert "No such command 'rum'" in err


# Registries are filled when ital is first imported, so these tests use a separate process.
WITH_PARTS = """
import json, sys
from ital import learners, tasks, teachers, teach
from ital.cli import main

early = "made_up" in sys.modules
curves = teach("tiny", "contrary", ["imt", "timid"], steps=20, seeds=2).curves
print(json.dumps({
    "imported early": early,
    "own": teachers.make("cooperative").name,
    "argument": teachers.make("contrary:-5").name,
    "methods": curves["learner"].values.tolist(),
    "beta": float(curves["beta"].sel({"learner": "timid"})[0]),
}))
try:
    main(["list"])
except SystemExit:
    pass
main("run tiny --teacher lost --steps 10".split())
"""


def test_contract_tests_run_over_parts_of_other_packages(tmp_path, made_up):
    whole = plugged.ENTRIES.replace("lost = made_up:nothing\n", "")
    (made_up / "entry_points.txt").write_text(whole)
    options = [
        "-n",
        "0",
        "-q",
        "--collect-only",
        "-m",
        "slow or not slow",
        "-p",
        "no:cacheprovider",
    ]
    done = plugged.python(
        tmp_path, "-m", "pytest", *options, str(plugged.ROOT / "tests" / "test_contracts.py")
    )
    assert done.returncode == 0, done.stdout + done.stderr
    sampled = re.findall(r"test_parts_work_together\[(.+)\]", done.stdout)
    for name in ("tiny", "contrary", "timid"):
        assert any(name in combination for combination in sampled), name
    assert "test_all_parts_work_together[tiny-contrary-timid]" in done.stdout
    assert "test_worlds_are_of_float64[tiny]" in done.stdout
    assert "test_teachers_choose_an_index_under_jit_and_vmap[contrary]" in done.stdout


def test_parts_of_other_packages_are_parts(tmp_path):
    """A teacher, a learner and a task from one installed package, without a change in ital."""
    done = plugged.python(tmp_path, "-c", WITH_PARTS)
    assert done.returncode == 2, done.stderr
    found, _, listed = done.stdout.partition("\n")
    broken = "'lost' from another package (made_up:nothing) is broken: AttributeError: "
    assert json.loads(found) == {
        "imported early": False,
        "own": "cooperative",
        "argument": "contrary",
        "methods": ["imt", "timid"],
        "beta": 3.0,
    }
    assert "contrary             Chooses what helps least, and is called contrary.\n" in listed
    assert "tiny                 A small regression.\n" in listed
    assert f"lost                 {broken}" in listed
    assert done.stderr.splitlines()[-1].startswith(f"ital: {broken}")
    assert not (tmp_path / "results").exists()
