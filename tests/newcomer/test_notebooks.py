"""What a newcomer meets in a notebook: pictures, tables, short names, results that can be kept."""

import re
import sys
import types

import numpy as np
import pytest
import xarray as xr

import ital
from ital import experiments, figures, learners, models, steps, tasks, teachers
from ital.errors import InputError
from ital.teaching import described
from ital.tools.progress import show_progress, show_whole
from tests.newcomer import made_up
from tests.worlds import small_classes

PNG = b"\x89PNG"
ADDRESS = re.compile(r"0x[0-9a-f]{6}|<function|<lambda|array\(")


@pytest.fixture
def result():
    return ital.Result(made_up.curves(), made_up.TASK, {"ital": np.zeros((4, 1, 5))})


def test_a_plot_is_a_picture_without_magic(result):
    assert result.plot()._repr_png_().startswith(PNG)
    watched = ital.watch(tasks.irl(np.diag([1.0, -2.0])), steps=4, frames=2)
    assert watched.plot()._repr_png_().startswith(PNG)
    assert figures.plot_sweep(made_up.grid(), made_up.TASK)._repr_png_().startswith(PNG)


def test_metrics_methods_and_size_can_be_chosen(result):
    figure = result.plot(["loss"], methods=["ital"], figsize=(9.0, 3.0))
    assert tuple(figure.get_size_inches()) == (9, 3)
    (axis,) = figure.axes
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["ITAL"]
    assert axis.get_ylabel() == "Square loss"
    with pytest.raises(InputError, match=r"'bayes' was not taught: choose from imt, ital"):
        result.plot(methods=["bayes"])


def test_a_plot_goes_onto_axes_of_ones_own(result):
    from matplotlib.figure import Figure

    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert result.plot(["loss"], ax=right) is figure
    assert not left.lines
    assert right.get_legend() is not None
    result.plot(ax=left)
    assert left.get_ylabel() == "Distance to the target"
    result.plot(ax=[left, right])
    with pytest.raises(InputError, match="2 metrics need 2 axes, not 1"):
        result.plot(["loss", "distance"], ax=left)


def test_a_result_is_a_table_and_a_picture(result):
    shown = result._repr_html_()
    assert 'src="data:image/png;base64,' in shown
    last = result.curves["distance"].sel({"learner": "ital"}).values[:, -1]
    assert f"<td>{last.mean():.3f} ± " in shown
    assert "mean ± SE over 4 seeds" in shown


@pytest.mark.parametrize(
    "part",
    [
        *(
            teachers.make(name)
            for name in ("cooperative", "omniscient", "boltzmann:2", "switching", "mixture")
        ),
        *(learners.make(name) for name in (*learners.PAPER, "ital-adaptive", "ital-safe")),
        learners.imt().rule,
        made_up.TASK,
        made_up.TASK.rules,
        made_up.TASK.world(0),
        tasks.irl(np.diag([1.0, -2.0])),
        tasks.irl(np.diag([1.0, -2.0])).picture,
        ital.Run(steps=5),
        ital.Result(made_up.curves(), made_up.TASK, {"ital": np.zeros((4, 1, 5))}),
        ital.Watched(
            made_up.TASK,
            "random",
            0,
            np.arange(3),
            {"imt": np.zeros((3, 5))},
            np.zeros(5),
            {"imt": "IMT"},
        ),
        experiments.Outcome(made_up.curves(), made_up.TASK, [], 3),
        experiments.Sweep(made_up.grid(), made_up.TASK, [], 3),
        experiments.Settings(task="regression"),
        models.Init("uniform", 1.0),
        steps.make("length:0.1"),
    ],
    ids=lambda part: type(part).__name__,
)
def test_names_are_short(part):
    written = repr(part)
    assert written.startswith(type(part).__name__) or isinstance(part, models.Init)
    assert "\n" not in written
    assert not ADDRESS.search(written), written
    assert len(written) < 400


def test_a_saved_result_is_read_again(result, tmp_path):
    files = result.save(tmp_path / "kept")
    assert sorted(file.name for file in files) == [
        "curves.nc",
        "curves.pdf",
        "curves.png",
        "summary.csv",
    ]
    again = ital.load(tmp_path / "kept")
    xr.testing.assert_allclose(again.curves, result.curves)
    assert again.curves.attrs == result.curves.attrs
    assert again.summary().equals(result.summary())
    assert described(again.task) == described(result.task)
    assert again.task.world(0).learner is not None  # registered: it can be taught
    with pytest.raises(InputError, match="exists already"):
        result.save(tmp_path / "kept")
    result.save(tmp_path / "kept", overwrite=True)


def test_a_task_of_ones_own_can_be_drawn_after_reading(tmp_path):
    task = small_classes(title="Mine")
    kept = ital.Result(made_up.curves(metrics=("distance", "accuracy")), task, {})
    kept.save(tmp_path)
    again = ital.load(tmp_path / "curves.nc")
    assert [axis.get_ylabel() for axis in again.plot().axes] == [
        axis.get_ylabel() for axis in kept.plot().axes
    ]
    with pytest.raises(InputError, match="was read from a file"):
        again.task.world(0)


def test_the_files_of_the_runner_are_read(tmp_path):
    settings = experiments.Settings(
        task="regression", methods=("imt",), steps=10, seeds=2, label_noise=0.25
    )
    outcome = experiments.run(settings, tmp_path, draw=False)
    again = ital.load(tmp_path / "regression" / "cooperative")
    xr.testing.assert_allclose(again.curves, outcome.curves)
    assert again.task.settings["label_noise"] == 0.25
    with pytest.raises(InputError, match=r"holds no run: there is one in .*cooperative"):
        ital.load(tmp_path)


def test_what_holds_no_run_is_refused_in_a_line(tmp_path):
    with pytest.raises(InputError, match=r"expected a folder with curves\.nc"):
        ital.load(tmp_path / "nowhere")
    (tmp_path / "curves.nc").write_bytes(b"CDF")
    with pytest.raises(InputError, match="run it again"):
        ital.load(tmp_path)
    (tmp_path / "curves.nc").unlink()
    (tmp_path / "sweep.nc").write_bytes(b"")
    with pytest.raises(InputError, match="it holds a sweep"):
        ital.load(tmp_path)


class Handle:
    """What ``IPython.display.display`` returns, keeping all that was shown."""

    def __init__(self, first):
        self.shown = [first]

    def update(self, picture):
        self.shown.append(picture)


@pytest.fixture
def kernel(monkeypatch):
    """IPython as it is inside a kernel; the list of bars that were opened."""
    bars = []

    def display(picture, display_id):
        assert display_id
        bars.append(Handle(picture))
        return bars[-1]

    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(
        sys.modules, "IPython.display", types.SimpleNamespace(display=display, HTML=str)
    )
    return bars


def test_progress_is_one_bar_below_the_cell(kernel, capsys):
    ital.teach(made_up.TASK, learner="imt", steps=10, seeds=2, progress=True)
    (bar,) = kernel
    assert "regression, cooperative teacher 0%" in bar.shown[0]
    assert '<progress value="1.0000"' in bar.shown[-1]
    assert capsys.readouterr().err == ""


def test_the_bar_is_not_drawn_at_every_step(kernel):
    with show_progress("<many>", 10_000) as show:
        for done in range(10_000):
            show(done)
    assert len(kernel[0].shown) < 100
    assert "&lt;many&gt;" in kernel[0].shown[-1]


def test_a_larger_work_has_one_bar_for_all_its_parts(kernel):
    with show_whole(2.0) as tell:
        for part in ("first", "second"):
            tell(part, 1.0, 0.0)
            with show_progress("inside", 10) as show:
                show(10)
    (bar,) = kernel
    assert "second 100%" in bar.shown[-1]


def test_elsewhere_progress_stays_as_it_was(monkeypatch, capsys):
    shell = types.SimpleNamespace()  # IPython in a terminal has no kernel
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    with show_progress("in a terminal", 10) as show:
        show(10)
    assert "in a terminal" in capsys.readouterr().err
