"""The commands of ital-paper, and its tasks on the command line."""

import subprocess
import sys

import pytest

from ital_paper import equation
from tests.features import data
from tests.typed import check_endless, check_refused, check_unwritable, ital


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("command", [["features", "build"], ["features", "check"], ["data", "get"]])
def test_help_shows_an_example(capsys, command):
    status, out, _ = ital(capsys, *command, "--help")
    assert status == 0
    assert "Example: ital" in out


def test_shipped_features_are_checked(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("ITAL_FEATURES", str(tmp_path))
    checked = [
        ital(capsys, "features", "check", name)
        for name in ("mnist", "mnist-pixels", "cifar10", "tiny-imagenet")
    ]
    assert [status for status, _, _ in checked] == [0, 0, 0, 0], checked
    out = "".join(out for _, out, _ in checked)
    assert out.count("on all test rows") == 5  # one of each file, and the top-5 of Tiny ImageNet
    assert "Tiny ImageNet is drawn from ImageNet" in out


def test_features_are_built_from_the_command_line(capsys, tmp_path):
    folder = data.write_mnist(tmp_path / "data", train=130)
    status, out, err = ital(
        capsys, "features", "build", "mnist", "--data", str(folder), "--out", "own.npz"
    )
    assert status == 0, err
    assert "130 of 130 training rows, 60 test rows" in out
    assert (tmp_path / "own.npz").exists()


def test_equations_are_simplified(capsys):
    written = "-1/2x^2y + 1/3xy = -1/5y^3 + 1/3x^2y"
    assert ital(capsys, "simplify", written) == (0, "-25x^2y + 10xy + 6y^3 = 0\n", "")
    assert ital(capsys, "simplify", "x + x = 2") == (0, "x - 1 = 0\n", "")
    assert ital(capsys, "simplify", written, "--with", "learned") == (
        0,
        "-25x^2y + 10xy + 6y^3 = 0\n",
        "",
    )
    _, out, _ = ital(capsys, "simplify", written, "--steps", "--latex")
    assert [line.split("  ")[0] for line in out.splitlines()] == [
        "",
        "scale",
        "scale",
        "merge",
        "cancel denominators",
        "move",
    ]
    assert r"\frac{1}{3}xy" in out


@pytest.mark.parametrize(
    ("typed", "exact"),
    [
        ("0.5x + 1.25 = 2", "1/2x + 5/4 = 2"),
        (".5x = 0.0", "1/2x = 0"),
        ("0.1/0.2x = 3.", "1/2x = 3"),
        ("-0.125x^2y = 0", "-1/8x^2y = 0"),
        ("2/4x = 1", "2/4x = 1"),
    ],
)
def test_decimals_are_exact_fractions(typed, exact):
    assert equation.parse(typed) == equation.parse(exact)


@pytest.mark.parametrize(
    ("typed", "fault"),
    [
        ("x^-2 = 1", "negative powers are not supported"),
        ("x**{-1} = 1", "negative powers are not supported"),
        ("x^y = 1", "powers are whole numbers"),
        ("sin(x) = 1", "functions are not supported"),
        ("2sqrt(x) = 1", "functions are not supported"),
        ("√x = 1", "functions are not supported"),
        ("2(x + 1) = 3", "brackets are not supported: multiply them out"),
        ("1/x = 2", "only numbers can be divided"),
        ("1/0.0x = 2", "a denominator cannot be 0"),
        ("0.0x = 2", "a coefficient cannot be 0"),
        ("1.2.3x = 2", "expected + or -"),
    ],
)
def test_what_is_not_taken_is_said_in_a_line(capsys, typed, fault):
    code, _, err = ital(capsys, "simplify", typed)
    assert code == 2
    assert len(err.splitlines()) == 1
    assert fault in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "equation-40", "--teacher-loss", "some"], "'own' or 'zero'"),
        (["run", "equation-40", "--equations", "0"], "number of equations"),
        (["reproduce", "equation-40", "--equations", "0"], "number of equations"),
        (["features", "build", "equation", "--positives", "some"], "consecutive or any"),
        (["run", "tiny-imagenet-13"], "ital features build tiny-imagenet-vgg"),
        (["features", "build", "mnist", "--data", "nowhere"], "is not a folder"),
        (["features", "build", "mnist", "--data", "."], "has no train-images"),
        (["features", "build", "svhn", "--data", "."], "choose from mnist"),
        (["features", "check", "file"], "not a whole feature file"),
        (["features", "check", "nowhere"], "cannot read the feature file nowhere"),
        (["data", "get", "svhn"], "choose from mnist, cifar10"),
        (["simplify", "2a = 1"], "only x, y and z are known"),
        (["simplify", "x"], "one '='"),
        (["simplify", "x = 1", "--wat"], "--wat"),
        (["simplify", "x = 1", "--with", "luck"], "rules or learned"),
        (["reproduce", "regresion"], "did you mean 'regression'"),
        (["reproduce", "--out", ""], "--out has no value"),
        (["reproduce", "--workers=-1"], "workers must be 0"),
        (["features", "build", "mnist", "--out", "file/x.npz"], "not a folder"),
        (["data", "get", "mnist", "--out", "file/x"], "not a folder"),
    ],
)
def test_bad_input_gets_one_line_and_status_2(capsys, tmp_path, arguments, message):
    (tmp_path / "file").write_text("")
    check_refused(capsys, tmp_path, arguments, message)


@pytest.mark.parametrize("kind", ["device", "folder"])
def test_features_without_an_end_are_not_read(kind, tmp_path, capsys):
    check_endless(capsys, tmp_path, ["features", "check", "FILE"], kind)


@pytest.mark.parametrize("place", ["file", "file/folder"])
def test_a_place_that_cannot_be_written_to_is_noticed_at_once(place, tmp_path, capsys):
    check_unwritable(capsys, tmp_path, ["reproduce", "--quick"], place)


def test_the_rules_of_equations_load_neither_jax_nor_tasks():
    code = (
        "import sys; from ital_paper.cli.simplify import simplify; simplify('x + x = 1', "
        "steps=True);"
        "print([m for m in ('jax', 'ital.tasks', 'ital_paper.features') if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert out.splitlines()[-1] == "[]"
