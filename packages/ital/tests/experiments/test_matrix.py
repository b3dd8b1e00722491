"""``ital matrix``: real teachers against assumed ones."""

import numpy as np
import pytest

from ital import experiments, figures, tasks, teach
from ital.errors import InputError
from ital.experiments import Settings
from ital.learners import teacher_aware
from tests.experiments.made_up import experiment
from tests.typed import ital
from tests.worlds import small_classes

RUN = {"steps": 20, "seeds": 2, "lr": 0.01}


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    monkeypatch.setitem(
        tasks.REGISTRY, "small", lambda **options: small_classes(**options)._replace(name="small")
    )
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("assumed", "fits", "sign"), [("helpful", "cooperative", 1), ("hostile", "adversarial", -1)]
)
@pytest.mark.parametrize("beta", [None, "auto"])
def test_assumptions_fix_the_sign_of_beta(assumed, fits, sign, beta):
    task, name = small_classes(), f"ital-{assumed}"
    both = teach(task, fits, [name, "ital"], beta=beta, **RUN).curves["distance"]
    assert (both.sel(learner=name).values == both.sel(learner="ital").values).all()
    other = teach(task, "random", [name, teacher_aware(sign * 300.0)], **RUN).curves
    assert (np.sign(other["beta"].sel(learner=name)) == sign).all()
    assert (
        other["distance"].sel(learner=name).values == other["distance"].sel(learner="ital").values
    ).all()


@pytest.mark.drawn
def test_the_command_writes_table_and_figure_and_resumes(capsys, tmp_path):
    words = (
        "matrix",
        "small",
        "--teachers",
        "cooperative,random",
        "--seeds",
        "2",
        "--steps",
        "20",
        "--lr",
        "0.01",
    )
    status, out, err = ital(capsys, *words)
    assert status == 0, err
    assert "finds out" in out
    assert "best responses" in out
    folder = tmp_path / "results/small"
    rows = (folder / "matrix.csv").read_text().splitlines()
    assert rows[0].startswith("teacher,learner,assumes,metric,mean")
    assert len(rows) == 1 + 2 * 4
    assert rows[1].split(",")[:4] == ["cooperative", "imt", "nothing", "distance_centred"]
    assert (folder / "matrix.png").stat().st_size > 10_000
    before = (folder / "cooperative/curves.nc").stat().st_mtime_ns
    assert ital(capsys, *words)[0] == 0
    assert (folder / "cooperative/curves.nc").stat().st_mtime_ns == before


def test_teachers_that_make_no_sense_are_left_out_in_a_line(tmp_path):
    said = []
    settings = Settings(task="irl-dense", seeds=1, steps=1, eval_every=1)
    with pytest.raises(InputError, match="none of these teachers makes sense"):
        experiments.matrix(
            settings, tmp_path, teachers=["exam", "synthesis"], draw=False, say=said.append
        )
    with pytest.raises(
        InputError, match="teacher 'exam:20:120' makes no sense on task 'irl-dense'"
    ):
        experiments.matrix(settings, tmp_path, teachers=["exam"], draw=False)
    with pytest.raises(InputError, match="unknown teacher 'nobody'"):
        experiments.matrix(settings, tmp_path, teachers=["cooperative", "nobody"], draw=False)
    assert not list(tmp_path.iterdir())


def made_up(naive_random):
    left = {"cooperative": (0.7, 0.1), "random": (naive_random, 0.9)}
    runs = {
        teacher: experiment({"imt": naive, "ital-helpful": aware}, teacher=teacher).curves.sel(
            learner=["imt", "ital-helpful"]
        )
        for teacher, (naive, aware) in left.items()
    }
    return experiments.Matrix(runs, tasks.make("regression"))


def test_the_order_of_best_responses_is_judged():
    assert (
        made_up(0.8)
        .best_responses()
        .startswith("The order that best responses predict holds (cooperative teacher")
    )
    assert "fails between places 3 and 4 (" in made_up(0.95).best_responses()
    assert "fails between places 2 and 3 (" in made_up(0.5).best_responses()


def test_cells_are_means_and_ratios_to_the_naive_learner():
    result = made_up(0.8)
    cell = result.cells["cooperative"]["ital-helpful"]
    ends = result.runs["cooperative"]["distance"].values[:, :, -1]
    assert cell.mean == pytest.approx(ends[1].mean())
    assert cell.error == pytest.approx(ends[1].std(ddof=1) / np.sqrt(20))
    assert cell.over_naive == pytest.approx(ends[1].mean() / ends[0].mean())


def test_a_diverged_learner_is_said_to_be_one():
    result = made_up(0.8)
    result.runs["random"]["distance"][0, 3, -1] = np.nan
    panel = figures.matrix_panel(result.runs, result.task)
    assert panel["marks"][0]["texts"][0][0] == "diverged"
    assert panel["y_ticks"][1] == ["random", "cooperative"]
