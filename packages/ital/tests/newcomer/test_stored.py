"""Stored results drawn again and compared; tables for other programs."""

import io
import os

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import ital
from ital import cli, experiments, results
from ital.errors import InputError
from ital.tools.curve_files import save_curves
from tests.newcomer import made_up


@pytest.fixture
def runs(tmp_path):
    for teacher in ("cooperative", "random"):
        curves = made_up.curves(teacher=teacher, seeds=4 if teacher == "random" else 5)
        curves["distance"] = curves["distance"] + (teacher == "random")
        ital.Result(curves, made_up.TASK, {}).save(tmp_path / teacher)
    return [tmp_path / "cooperative", tmp_path / "random"]


def plot(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["plot", *map(str, arguments)])
    return stopped.value.code, capsys.readouterr()


def test_one_run_is_drawn_again(runs, capsys):
    figure = runs[0] / "curves.png"
    figure.unlink()
    code, printed = plot(capsys, runs[0])
    assert code == 0
    assert figure.stat().st_size > 1000
    assert str(figure) in printed.out.replace("\n", "")


def test_several_runs_are_rows_of_one_figure(runs, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, printed = plot(capsys, *runs, "--methods", "ital")
    assert code == 0
    assert (tmp_path / "comparison.pdf").exists()
    assert "random teacher minus cooperative teacher" in " ".join(printed.out.split())
    loaded = {folder.name: ital.load(folder) for folder in runs}
    figure = ital.figures.plot_runs({name: (run.curves, run.task) for name, run in loaded.items()})
    assert [axis.get_title() for axis in figure.axes] == ["cooperative"] * 2 + ["random"] * 2
    assert figure.axes[0].get_ylim() == figure.axes[2].get_ylim()


def test_differences_are_paired_over_the_seeds_that_both_have(runs):
    first, second = (ital.load(folder) for folder in runs)
    (difference,) = first.compare(metrics="distance").itertuples()
    ends = first.curves["distance"].values[..., -1]
    assert (difference.method, difference.against, difference.n) == ("ITAL", "IMT", 5)
    assert difference.p_holm == pytest.approx(stats.ttest_rel(ends[1], ends[0]).pvalue)
    across = results.compare_runs(second.curves, first.curves, "cooperative", ["distance"])
    assert list(zip(across["method"], across["n"], strict=True)) == [("IMT", 4), ("ITAL", 4)]
    expected = second.curves["distance"].values[1, :, -1] - ends[1, :4]
    assert across["difference"][1] == pytest.approx(expected.mean(), rel=1e-6)
    for arguments, message in (
        ({"against": "sgd"}, "'sgd' was not taught"),
        ({"metrics": ["reward"]}, "metric 'reward' was not recorded"),
        ({"step": -3}, "distance was not measured at step -3"),
    ):
        with pytest.raises(InputError, match=message):
            first.compare(**arguments)


def test_a_comparison_is_also_latex(runs):
    table = ital.load(runs[0]).compare(metrics=["distance"])
    table.loc[0, ["method", "difference", "p_holm", "low"]] = ["ITAL_5", -1.5e-7, 1e-9, np.nan]
    lines = results.latex(table).splitlines()
    row = lines[4].removesuffix(r" \\").split(" & ")
    assert row == [
        "distance",
        r"ITAL\_5",
        "IMT",
        r"$-1.50 \times 10^{-7}$",
        "--",
        "$< 0.001$",
        row[-1],
    ]
    assert len(row) == lines[0].split("{")[-1].count("l") + lines[0].split("{")[-1].count("r")
    with pytest.raises(InputError, match="latex writes what compare returned"):
        results.latex(ital.load(runs[0]).summary())


def test_a_comparison_at_another_step(runs):
    run = ital.load(runs[0])
    step = int(run.curves["step"][1])
    (difference,) = run.compare("ital", ["distance"], step=step).itertuples()
    curves = run.curves["distance"].sel(step=step)
    assert difference.step == step
    assert difference.difference == pytest.approx(
        float((curves.sel(learner="imt") - curves.sel(learner="ital")).mean()), rel=1e-6
    )


def test_a_sweep_is_drawn_again_and_what_is_neither_is_refused(tmp_path, capsys):
    save_curves(made_up.grid(), tmp_path / "sweep.nc")
    code, _ = plot(capsys, tmp_path)
    assert code == 0
    assert (tmp_path / "sweep.png").exists()
    code, printed = plot(capsys, tmp_path / "nowhere")
    assert code == 2
    assert "holds no run" in printed.err


def test_a_run_nearby_is_suggested_and_the_disk_is_not_searched(tmp_path, capsys, monkeypatch):
    listed = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda place: listed.append(place) or scandir(place))
    for i in range(1100):
        (tmp_path / f"folder-{i:04d}/below").mkdir(parents=True)
    near, far = tmp_path / "folder-0000", tmp_path / "folder-1099/below/run"
    far.mkdir()
    save_curves(made_up.curves(), far / "curves.nc")
    _, printed = plot(capsys, tmp_path)
    assert "holds no run: expected a folder with curves.nc" in printed.err
    assert len(listed) < 5  # 1000 folders are in the first
    save_curves(made_up.curves(), near / "curves.nc")
    _, printed = plot(capsys, tmp_path)
    assert f"holds no run: there is one in {near}" in printed.err
    (tmp_path / "folder-0001/curves.nc").mkdir()
    _, printed = plot(capsys, tmp_path / "folder-0001")
    assert "folder-0001/curves.nc is a folder, not a file" in printed.err


def test_every_measured_value_is_a_row():
    curves = made_up.curves(seeds=3)
    curves["computed"][0, 2] = 0
    curves["loss"][..., 1::2] = np.nan  # measured less often
    table = results.long_form(curves)
    assert list(table.columns) == ["task", "teacher", "method", "seed", "step", "metric", "value"]
    steps = curves.sizes["step"]
    assert len(table) == 5 * steps + 5 * -(-steps // 2)
    row = table.query("method == 'ital' and seed == 1 and step == 100 and metric == 'distance'")
    assert (
        row["value"].item()
        == curves["distance"].sel({"learner": "ital", "seed": 1, "step": 100}).item()
    )


def test_a_sweep_names_its_settings_and_repeats_nothing():
    grid = made_up.grid(lrs=2, betas=3)
    table = pd.read_csv(io.StringIO(results.long_form(grid).to_csv(index=False)))
    assert list(table.columns) == [
        "task",
        "teacher",
        "method",
        "seed",
        "lr",
        "beta",
        "step",
        "metric",
        "value",
    ]
    counts = table.groupby("method").size()
    assert counts["ital"] == 3 * counts["imt"]
    assert table.query("method == 'imt'")["beta"].isna().all()


def test_the_command_line_writes_tables(tmp_path):
    settings = experiments.Settings(task="regression", methods=("imt",), steps=10, seeds=2)
    first = experiments.run(settings, tmp_path, csv=True, draw=False)
    assert "curves.csv" in [file.name for file in first.files]
    rows = len(pd.read_csv(tmp_path / "regression/cooperative/curves.csv"))
    wider = experiments.Settings(task="regression", methods=("imt",), steps=10, seeds=3)
    experiments.run(wider, tmp_path, draw=False)
    # Never out of date.
    assert len(pd.read_csv(tmp_path / "regression/cooperative/curves.csv")) == rows * 3 // 2
    with pytest.raises(SystemExit) as stopped:
        cli.main(
            [
                "sweep",
                "regression",
                "--lr",
                "0.001",
                "--beta",
                "0",
                "--methods",
                "imt",
                "--seeds",
                "2",
                "--steps",
                "10",
                "--csv",
                "--out",
                str(tmp_path),
            ]
        )
    assert stopped.value.code == 0
    assert (tmp_path / "regression/cooperative/sweep.csv").exists()
