import httpx
import pandas as pd
import pytest
import typer

import ital_study as study
from ital.errors import InputError
from ital_study.cli import analysis
from ital_study.data import table
from ital_study.simulation import participants
from tests.rules.fake_server import FakeServer

pytestmark = pytest.mark.usefixtures("undrawn")


def run(*arguments):
    app = typer.Typer()
    analysis.register(app)
    return typer.main.get_command(app)([str(one) for one in arguments], standalone_mode=False)


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))


def test_simulate_then_analyze(tmp_path, capsys):
    run(
        "simulate",
        "--participants",
        3,
        "--config",
        "short",
        "--teacher",
        "machine,boltzmann:10",
        "--out",
        tmp_path / "data",
    )
    printed = capsys.readouterr().out
    assert str(tmp_path / "data" / "steps.csv") in printed
    read = table.read_study(tmp_path / "data")
    assert read.config == study.load_config("short")
    assert set(read.steps["teacher"]) == {"machine", "boltzmann:10"}
    assert set(read.steps["mode"]) == {"simulated"}
    assert len(read.steps) == 2 * 3 * 2 * 2 * 8
    with pytest.raises(InputError, match=r"cannot read the picture none\.png"):
        run("analyze", tmp_path / "data", "--out", tmp_path / "analysis", "--picture", "none.png")
    assert not (tmp_path / "analysis").exists()
    picture = tmp_path / "page.png"
    picture.write_bytes(b"PNG")
    run("analyze", tmp_path / "data", "--out", tmp_path / "analysis", "--picture", picture)
    assert "data:image/png;base64,UE5H" in (tmp_path / "analysis" / "report.html").read_text()
    printed = capsys.readouterr().out
    assert printed.startswith("SIMULATED DATA: no person took part")
    assert f"report: {tmp_path / 'analysis' / 'report.html'}" in printed
    assert "Decrease of the distance after 8 steps: ITAL against IMT\n" in printed
    heads = [line.split() for line in printed.splitlines() if line.lstrip().startswith("teacher")]
    assert (
        heads == [["teacher", "map", "n", "ITAL", "IMT", "difference", "p", "p", "(Holm)", "d"]] * 3
    )
    assert "mean over maps" in printed
    assert "Which teacher is each person?" in (tmp_path / "analysis" / "report.html").read_text()
    assert set(pd.read_csv(tmp_path / "analysis" / "fit_people.csv")["teacher"]) == {
        "machine",
        "boltzmann:10",
    }
    tests = pd.read_csv(tmp_path / "analysis" / "tests.csv")
    assert set(tests["teacher"]) == {"machine", "boltzmann:10", "random"}
    with pytest.raises(InputError, match="exists and is not an empty folder"):
        run("simulate", "--participants", 1, "--config", "short", "--out", tmp_path / "data")


def test_simulate_with_the_third_robot_then_analyze(tmp_path, capsys):
    out = tmp_path / "data"
    run("simulate", "--participants", 3, "--config", "short", "--adaptive", "--out", out)
    read = table.read_study(out)
    assert read.config.adaptive
    assert set(read.steps["learner"]) == {"naive", "aware", "adaptive"}
    assert set(read.steps["config"]) == {read.config.hash} != {study.load_config("short").hash}
    assert (
        "naive (IMT), aware (ITAL) or adaptive (ITAL adaptive)" in (out / "codebook.md").read_text()
    )
    capsys.readouterr()
    run("analyze", out)
    assert "finds out by itself whether its teacher helps" in capsys.readouterr().out
    tests = pd.read_csv(out / "analysis" / "tests.csv")
    assert set(tests["first"]) == {"aware", "adaptive"}
    assert (
        "Machine ITAL adaptive against Machine IMT"
        in (out / "analysis" / "report.html").read_text()
    )
    assert (out / "analysis" / "report.pdf").read_bytes().startswith(b"%PDF")


def test_simulate_over_http(monkeypatch, capsys):
    short = study.load_config("short")
    server = FakeServer(short)
    take_part = participants.take_part

    def through(*arguments, **options):
        return take_part(*arguments, **options, transport=httpx.MockTransport(server))

    monkeypatch.setattr(participants, "take_part", through)
    arguments = (
        "simulate",
        "--participants",
        2,
        "--config",
        "short",
        "--teacher",
        "random",
        "--url",
        "http://study.test",
    )
    monkeypatch.delenv(analysis.KEY, raising=False)
    with pytest.raises(InputError, match="set the environment variable ITAL_STUDY_SIMULATION_KEY"):
        run(*arguments)
    monkeypatch.setenv(analysis.KEY, "sesame")
    run(*arguments)
    printed = capsys.readouterr().out
    assert "2 of 2 finished (simulated, random teacher)" in printed
    assert "70 steps in" in printed
    assert len(server.stored) == 70


def test_power(capsys):
    run("power", "--effect", 0.5)
    assert (
        capsys.readouterr().out == "d = 0.5 needs 34 participants (power 0.8, α = 0.05 two-sided)\n"
    )
    run("power", "--participants", 20, "--tests", 5)
    assert capsys.readouterr().out.startswith("20 participants find d = 0.838 or more")
    run("power", "--participants", 34, "--effect", 0.5)
    assert "with probability 0.808" in capsys.readouterr().out
    run("power", "--config", "short", "--pool", 10, "--rationality", "10")
    printed = capsys.readouterr().out
    assert printed.startswith("SIMULATED teachers")
    assert [line.split()[0] for line in printed.splitlines()[3:]] == [
        "random",
        "boltzmann:10",
        "machine",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["simulate", "--participants", "1"], "give either --out DIR, .* or --url URL"),
        (
            ["simulate", "--participants", "1", "--out", "a", "--url", "http://b"],
            "give either --out DIR",
        ),
        (
            ["simulate", "--participants", "1", "--out", "a", "--teacher", "human"],
            "teacher must be machine, random",
        ),
        (
            ["simulate", "--participants", "1", "--out", "a", "--teacher", ""],
            "teacher must be machine",
        ),
        (
            ["simulate", "--participants", "1", "--out", "a", "--rationality", "3"],
            "--rationality needs --teacher boltzmann",
        ),
        (
            ["simulate", "--participants", "1", "--out", "a", "--config", "shrt"],
            "shrt: No such file .* paper, short or evidence$",
        ),
        (
            ["simulate", "--participants", "1", "--url", "http://b", "--teacher", "machine,random"],
            "--url takes one teacher only",
        ),
        (
            ["simulate", "--participants", "1", "--url", "http://b", "--adaptive"],
            "--adaptive needs --out",
        ),
        (["analyze", "nowhere"], "there is no folder or database nowhere"),
        (
            ["analyze", "nowhere", "--mode", "alive"],
            "mode must be one of live, pilot, preview, trial, simulated, not 'alive'",
        ),
        (["power", "--effect", "0.5", "--power", "2"], "power must lie between alpha and 1"),
    ],
)
def test_wrong_use_is_one_line(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        run(*arguments)
    assert not [path for path in tmp_path.iterdir() if path.name != "cache"]
