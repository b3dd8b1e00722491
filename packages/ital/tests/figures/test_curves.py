import matplotlib.image
import numpy as np
import pytest

import ital
from ital import figures, learners
from tests.worlds import small_classes


@pytest.fixture(scope="module")
def result():
    methods = [learners.make(name) for name in reversed(learners.PAPER)]
    return ital.teach(small_classes(), learner=methods, seeds=3, steps=40, lr=0.01)


def test_panels_legend_and_axes_are_the_papers(result):
    figure = result.plot()
    assert [axis.get_ylabel() for axis in figure.axes] == [
        "Distance to the target",
        "Accuracy",
        "Cross-entropy",
    ]
    assert {axis.get_xlabel() for axis in figure.axes} == {"Training iteration"}
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["Batch", "SGD", "IMT", "ITAL", "ITAL 2", "ITAL 5", "ITAL 10", "ITAL 15"]


def test_lines_are_means_and_bands_are_standard_errors(result):
    axis = result.plot(["distance"]).axes[0]
    lanes = result.curves["distance"].sel({"learner": "ital"}).values
    line = next(line for line in axis.lines if line.get_label() == "ITAL")
    np.testing.assert_allclose(line.get_ydata(), lanes.mean(axis=0), rtol=1e-6)
    band = axis.collections[3].get_paths()[0].vertices[:, 1]
    error = lanes.std(axis=0, ddof=1) / np.sqrt(3)
    assert band.max() == pytest.approx((lanes.mean(axis=0) + error).max(), rel=1e-5)


def test_the_floor_is_drawn_dashed(result):
    axis = result.plot(["distance"]).axes[0]
    floor = float(np.mean(result.curves["distance"].attrs["floor"]))
    assert any(
        line.get_linestyle() == "--" and line.get_ydata()[0] == pytest.approx(floor)
        for line in axis.lines
    )


def test_unknown_metrics_are_refused(result):
    with pytest.raises(ValueError, match="'reward' was not recorded"):
        result.plot(["reward"])


def test_saved_pictures_can_be_read(result, tmp_path):
    png, pdf = figures.save(result.plot(), tmp_path / "curves")
    assert matplotlib.image.imread(png).std() > 0.05
    assert pdf.read_bytes().startswith(b"%PDF")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["curves.pdf", "curves.png"]


def test_one_seed_and_divergence_can_be_drawn(tmp_path):
    with pytest.warns(ital.errors.DivergenceWarning):
        run = ital.teach(small_classes(), learner=[learners.imt()], seeds=1, steps=40, lr=1e30)
    figures.save(run.plot(), tmp_path / "curves")


def test_registered_methods_have_a_colour_of_their_own_in_every_figure():
    registered = figures.colours(list(learners.REGISTRY))
    assert len({registered[name] for name in learners.REGISTRY}) == len(learners.REGISTRY)
    for name in learners.REGISTRY:
        assert figures.colours([name, "mine"])[name] == registered[name]
    assert figures.colours(["mine"])["mine"] not in {registered[name] for name in learners.REGISTRY}
