"""No mistake of a newcomer passes without a message."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jax.numpy as jnp
import pytest
from rich.console import Console

import ital
from ital import experiments, results
from ital.cli import main
from ital.errors import AwarenessWarning, DivergenceWarning, InputError
from ital.learners import Learner, Rule, Update
from ital.statistics import number
from ital.teachers import Teacher
from ital.tools import checks
from ital.tools import memory as _memory
from tests.newcomer import made_up, wrong_parts
from tests.newcomer.wrong_parts import SMALL, network, of_pool, pool, task
from tests.typed import check_unwritable


def one_line(error):
    """The message of an error, which is one line."""
    text = str(error.value)
    assert "\n" not in text
    return text


def constant(key, view, settings):
    return 4


def late(key, view, settings):
    """In the mini-batch until step 5, then beyond it."""
    return jnp.where(view.step < 5, 0, settings).astype(int)


@pytest.mark.parametrize("learner", ["imt", "ital"])
def test_a_constant_index_outside_of_the_mini_batch(learner):
    with pytest.raises(InputError) as error:
        ital.teach(task(), Teacher("constant", constant), learner, **SMALL)
    assert (
        one_line(error)
        == "a teacher (constant) chose index 4: the mini-batch has the indices 0 to 3"
    )


@pytest.mark.parametrize("index", [4, -1])
def test_an_index_that_leaves_the_mini_batch_while_the_program_runs(index):
    with pytest.raises(InputError) as error:
        ital.teach(
            task(), Teacher("late", late, settings=index), ["imt", "ital"], eval_every=2, **SMALL
        )
    assert one_line(error) == (
        "teacher 'late' chose an index outside the mini-batch in steps 4 to 5 (method 'imt'): "
        "it must choose from 0 to 3"
    )


@pytest.mark.parametrize("index", [None, 1.0, "first", True, (0,)])
def test_an_index_that_is_none(index):
    with pytest.raises(InputError) as error:
        ital.teach(task(), Teacher("odd", lambda key, view, settings: index), "imt", **SMALL)
    assert "must choose one index of the mini-batch, a whole number" in one_line(error)


def test_what_diverged_is_said_in_one_line():
    with pytest.warns(DivergenceWarning) as caught:
        ital.teach(task(), learner=["imt", "ital"], lr=1e30, **SMALL)
    (warning,) = caught
    for label in ("IMT", "ITAL"):
        said = f"{label} diverged: values are not finite from step 10 on (2 of 2 seeds)."
        assert said in str(warning.message)
    assert "Try a smaller lr or beta." in str(warning.message)
    assert "\n" not in str(warning.message)


def test_ital_run_says_in_one_line_what_diverged(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(ital.tasks.REGISTRY, "small", task)
    sizes = ["--seeds", "2", "--steps", "10", "--batch-size", "4"]
    with pytest.raises(SystemExit) as ended:
        main(["run", "small", "--methods", "imt", *sizes, "--lr", "1e30", "--out", str(tmp_path)])
    assert ended.value.code == 0
    said = "IMT diverged: values are not finite from step 10 on (2 of 2 seeds)."
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith(said)]
    assert line.endswith("Try a smaller --lr or --beta.")


def test_a_start_that_the_model_would_ignore_is_refused():
    own = of_pool(pool(learner_target=None), model=network())
    assert str(own.init) == "own"
    with pytest.raises(InputError) as error:
        ital.teach(own, learner="imt", init="normal:0.1", **SMALL)
    assert one_line(error) == "model 'own' draws its own start: leave out init (normal)"
    with pytest.raises(InputError, match="draws its own start"):
        ital.teach(
            of_pool(pool(learner_target=None), model=network(), init="uniform"),
            learner="imt",
            **SMALL,
        )
    assert ital.teach(own, learner="imt", **SMALL).curves.attrs["init"] == "own"


def test_a_model_written_by_hand_that_ignores_its_start_is_refused():
    stubborn = network()._replace(
        name="stubborn",
        start=lambda key, init, rows, outputs: jnp.ones((1, 3)),
        init=ital.models.Init("uniform", 1.0),
    )
    with pytest.raises(InputError) as error:
        ital.teach(of_pool(pool(learner_target=None), model=stubborn), learner="imt", **SMALL)
    assert one_line(error).startswith(
        "model 'stubborn' ignores where learning starts (uniform): let it draw"
    )
    honest = of_pool(pool(learner_target=None), model=stubborn._replace(init=ital.models.OWN))
    assert ital.teach(honest, learner="imt", **SMALL).curves.attrs["init"] == "own"


@pytest.mark.parametrize("checkout", [True, False])
def test_a_hint_for_an_extra_fits_how_ital_was_installed(checkout, tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "PACKAGES", tmp_path / "packages")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "packages" / "ital").mkdir(parents=True)
    if checkout:
        (tmp_path / "packages" / "ital" / "pyproject.toml").touch()
    expected = "pip install -e 'packages/ital[torch]'" if checkout else "pip install 'ital[torch]'"
    assert checks.install("ital[torch]") == expected


def teach_with(update, memory=()):
    rule = Rule(init=lambda params, settings: memory, update=update)
    ital.teach(task(), learner=Learner("mine", "Mine", rule), **SMALL)


WHOSE = r"a learner's update \(.*\)"
UPDATES = [
    (lambda x, s, p, m: (p, m), (), "must return ital.learners.Update.*, not a plain tuple"),
    (lambda x, s, p, m: None, (), "must return ital.learners.Update.*, not NoneType"),
    (
        lambda x, s, p, m: Update(p[0]),
        (),
        "must return parameters of the same shape as it was given",
    ),
    (
        lambda x, s, p, m: Update(p),
        0.0,
        r"memory of the same form as init: \(\), expected float32\[\]",
    ),
    (
        lambda x, s, p, m: Update(p, jnp.zeros(3)),
        jnp.zeros(2),
        r"float32\[3\], expected float32\[2\]",
    ),
    (lambda x, s, p, m: Update(p, 0), 0.0, r"int32\[\], expected float32\[\]"),
    (
        lambda x, s, p, m: Update(p, signals={"pace": jnp.zeros(3)}),
        (),
        r"signal 'pace' must be one number.*\(3,\)",
    ),
    (
        lambda x, s, p, m: Update(p, signals={"pace": "fast"}),
        (),
        "signal 'pace' must be one number, not 'fast'",
    ),
    (lambda x, s, p, m: Update(p, signals=[1.0]), (), "signals as a dictionary"),
]


@pytest.mark.parametrize(("update", "memory", "message"), UPDATES)
def test_updates_of_another_form(update, memory, message):
    with pytest.raises(InputError, match=message) as error:
        teach_with(update, memory)
    assert re.match(WHOSE, one_line(error))


@pytest.fixture(scope="module")
def said():
    """The messages for a user without a type checker; the tests' own would raise first."""
    command = [sys.executable, "-m", "tests.newcomer.wrong_parts"]
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}
    told = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=root, env=environment
    )
    return json.loads(told.stdout)


@pytest.mark.parametrize("case", wrong_parts.CASES)
def test_wrong_parts_are_told_in_one_line(said, case):
    _, message = wrong_parts.CASES[case]
    assert said[case].startswith("InputError: ")
    assert re.search(message, said[case])
    assert "\n" not in said[case]


@pytest.mark.parametrize("name", ["method", "methods", "learners"])
def test_methods_are_given_to_teach_as_learner(name):
    with pytest.raises(TypeError, match=f"unknown setting '{name}': give methods as learner="):
        ital.teach(task(), **{name: "imt"})


def test_more_seeds_than_memory_are_refused_before_they_are_listed():
    with pytest.raises(InputError) as error:
        ital.teach(task(), learner="imt", steps=10, seeds=10**12)
    text = r"curves of 1000000000000 seeds, .* need at least [\d,.]+ GiB of memory, but .* free"
    assert re.match(text, one_line(error))


def test_more_of_a_mini_batch_than_memory_is_refused(tmp_path):
    for call in (
        lambda: ital.teach(task(), learner="imt", steps=10, seeds=2, batch_size=2**31 - 1),
        lambda: experiments.run(
            experiments.Settings(task="regression", batch_size=2**31 - 1), tmp_path
        ),
    ):
        with pytest.raises(InputError) as error:
            call()
        assert re.match(
            r"\d seeds? with mini-batches of 2147483647 examples need at least .* free: ",
            one_line(error),
        )
    assert not list(tmp_path.iterdir())


def test_worlds_of_many_seeds_are_estimated_before_they_are_drawn(monkeypatch):
    monkeypatch.setattr(_memory, "free_memory", lambda: 2**20)
    with pytest.raises(
        InputError, match="1000 seeds with mini-batches of 4 examples need at least"
    ):
        ital.teach(task(), learner="imt", steps=10, seeds=1000, batch_size=4)


WRITERS = [
    ["run", "regression", "--seeds", "1", "--steps", "10"],
    ["sweep", "regression", "--lr", "0.1", "--beta", "0"],
    ["bench", "--scaling"],
]


@pytest.mark.parametrize("words", WRITERS, ids=lambda words: words[0])
@pytest.mark.parametrize("place", ["file", "file/folder"])
def test_a_place_that_cannot_be_written_to_is_noticed_at_once(words, place, tmp_path, capsys):
    check_unwritable(capsys, tmp_path, words, place)


def test_an_automatic_beta_that_leaves_awareness_behind_is_named():
    # Each higher than the one before.
    curves = made_up.curves(("imt", "ital", "ital-5"), metrics=("loss",), seeds=5)
    imt, worst = (
        float(curves["loss"].sel(learner=name).isel(step=-1).mean()) for name in ("imt", "ital")
    )
    note = results.behind_note(curves)
    assert note.startswith("ITAL ends behind IMT with an automatic beta")
    assert f"(loss {number(worst)} against {number(imt)})" in note
    assert note.endswith("Try a smaller beta or lr, or sweep both.")
    assert results.behind_note(curves.rename(loss="accuracy"), ["accuracy"]) is None
    contrary = curves.assign(accuracy=curves["loss"])
    assert results.behind_note(contrary, ["accuracy"]) is None  # the measures disagree
    assert results.behind_note(curves.isel(seed=[0, 1])) is None
    assert results.behind_note(curves.sel(learner=["ital", "ital-5"])) is None


def test_the_line_comes_as_a_warning_and_on_the_terminal(monkeypatch):
    monkeypatch.setattr(results, "behind_note", lambda *arguments: "It is behind.")
    monkeypatch.setattr("ital.teaching._teach.behind_note", lambda *arguments: "It is behind.")
    monkeypatch.setattr("ital.experiments._table.behind_note", lambda *arguments: "It is behind.")
    task = ital.tasks.regression(dim=3, points=20)
    numbers = {"learner": ["imt", "ital"], "steps": 10, "seeds": 2, "batch_size": 4}
    with pytest.warns(AwarenessWarning, match=r"^It is behind\.$"):
        result = ital.teach(task, beta="auto", **numbers)
    ital.teach(task, **numbers)  # its β is the task's
    for beta, shown in (("auto", True), (5000.0, False)):
        console = Console(file=io.StringIO(), width=200)
        outcome = SimpleNamespace(
            curves=result.curves.assign_attrs(beta=beta), task=task, lanes_computed=1, files=[]
        )
        experiments.print_outcome(outcome, console)
        assert ("It is behind." in console.file.getvalue()) is shown
