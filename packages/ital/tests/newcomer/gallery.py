"""Every figure of the package, small and large, from made-up numbers; and the texts that overlap
or are cut.
"""

import numpy as np

import ital
from ital import figures, learners, tasks
from ital.figures import charts
from tests.newcomer import made_up

LONG = (
    "A task of one's own with a title that is rather long for a figure of a single panel, "
    "and then some"
)
TEN = (*learners.PAPER, "imt-matched", "a-method-with-a-long-name-of-its-own")


def named(**changes):
    return made_up.TASK._replace(**changes)


def curves(methods=("imt", "ital"), task=made_up.TASK, **options):
    return lambda: figures.plot_curves(made_up.curves(methods, **options), task)


def sweep(methods=("imt", "ital"), task=made_up.TASK, **options):
    return lambda: figures.plot_sweep(made_up.grid(methods, **options), task)


def runs(*names, methods=("imt", "ital"), metrics=("distance", "loss")):
    each = (made_up.curves(methods, metrics=metrics), made_up.TASK)
    return lambda: figures.plot_runs(dict.fromkeys(names, each))


def pictures(size, *, methods=("imt", "ital"), title="Inverse reinforcement learning", scale=1.0):
    rewards = scale * np.random.default_rng(0).normal(size=(size, size))
    task = tasks.irl(rewards)._replace(title=title)
    task = task._replace(
        picture=task.picture._replace(
            grid=lambda params: (params.reshape(size, size), POLICY(size))
        )
    )
    steps = np.array([0, 500, 1000, 2000])
    params = {name: np.stack([rewards.ravel() * step / 2000 for step in steps]) for name in methods}
    labels = {name: name.upper() for name in methods}
    return lambda: ital.Watched(
        task, "cooperative", 0, steps, params, rewards.ravel(), labels
    ).plot()


def POLICY(size):
    return np.full((4, size, size), 0.25) + np.array([0.3, -0.1, -0.1, -0.1])[:, None, None]


def bars(names, words="***"):
    places = range(len(names))
    mark = charts.bars(
        "arm",
        "#08306b",
        places,
        [2.0] * len(names),
        [0.1] * len(names),
        width=0.6,
        marks=[words] * 9,
    )
    panel = charts.panel(
        "Bars", [mark, charts.rule("y", 2.6, "true policy")], x_ticks=(places, names)
    )
    return lambda: charts.chart(
        [panel], "Bars of a study", note="5 seeds and 400 steps only: a quick run"
    )


def scaling():
    bounds = {"memory": 0.01, "arithmetic": 0.02, "launch": 0.03}
    point = {"steps_per_second": 1e4, "bounds": bounds, "bound": "memory"}
    return figures.plot_scaling(
        {
            "device": "one NVIDIA H200 GPU of 139 GiB, 16 CPU cores, JAX 0.7.1, driver 550.54.15",
            "lanes": {
                name: [{**point, "lanes": n} for n in (8, 160, 2560)]
                for name in ("regression", "gaussian")
            },
            "rows": [{**point, "rows": n, "lanes": 160} for n in (1000, 100_000)],
            "workers": [{"workers": n, "steps_per_second": 1e4 * n} for n in (1, 2, 4, 8, 16)],
            "memory": [
                {"rows": n, "pool_bytes": 400 * n, "above_empty_bytes": 900 * n}
                for n in (1000, 100_000)
            ],
        }
    )


FIGURES = {
    "curves": curves(),
    "curves, one method and one metric": curves(("imt",), metrics=("distance",)),
    "curves, ten methods": curves(TEN),
    "curves, ten methods and one metric": curves(TEN, metrics=("distance",)),
    "curves, long title": curves(task=named(title=LONG), metrics=("distance",)),
    "curves, long metric": curves(
        metrics=("a_metric_with_a_name_that_is_longer_than_the_axis_is_high",)
    ),
    "curves, one long title on three panels": curves(
        TEN, named(title=LONG), metrics=("distance", "loss", "accuracy")
    ),
    "curves, a long teacher": curves(
        metrics=("distance",), teacher="a-teacher-with-a-name-of-its-own:0.12345"
    ),
    "curves, many steps": curves(steps=2_000_000),
    "curves, few steps": curves(steps=3, seeds=1),
    "sweep of the README": sweep(("batch", "sgd", "imt", "ital"), lrs=3, betas=3),
    "sweep of one method": sweep(("ital",), lrs=2, betas=2),
    "sweep of one naive method": sweep(("imt",), lrs=2, betas=1),
    "sweep, large": sweep(("imt", "ital"), lrs=12, betas=9),
    "sweep, larger": sweep(("ital",), lrs=40, betas=40),
    "sweep of ten methods": sweep(TEN),
    "sweep, long title": sweep(("ital",), named(title=LONG)),
    "runs": runs("cooperative teacher", "random teacher"),
    "runs, long names": runs(
        "results/a-folder-of-mine/regression/cooperative", "results/another/regression/random"
    ),
    "runs, many": runs(*"abcdef", methods=TEN, metrics=("distance",)),
    "pictures": pictures(5),
    "pictures, one learner": pictures(3, methods=("imt",), title=LONG),
    "pictures, large rewards": pictures(6, scale=1e4),
    "pictures, large": pictures(20),
    "pictures, larger": pictures(60),
    "pictures, ten learners": pictures(2, methods=TEN),
    "bars": bars(["IMT", "ITAL"]),
    "bars, long names": bars(
        ["a learner of one's own", "another learner of one's own", "and a third one of them"]
    ),
    "scaling": scaling,
}


def texts(figure):
    """(words, box) of every text that is seen, after drawing."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    ticks = {}
    for axis in figure.axes:
        for one in (axis.xaxis, axis.yaxis):
            low, high = sorted(one.get_view_interval())
            for tick in [*one.get_major_ticks(), *one.get_minor_ticks()]:
                inside = low - 1e-9 * abs(low) <= tick.get_loc() <= high + 1e-9 * abs(high)
                ticks |= {id(label): inside and axis.axison for label in (tick.label1, tick.label2)}
    hidden = {id(text) for axis in figure.axes if not axis.axison for text in axis.findobj(Text)}
    for text in figure.findobj(Text):
        words = text.get_text().strip()
        if words and text.get_visible() and id(text) not in hidden and ticks.get(id(text), True):
            yield words, text.get_window_extent(renderer)


def faults(figure, slack=1.0):
    """Texts that leave the figure or overlap by more than ``slack`` pixels."""
    shown = list(texts(figure))
    width, height = figure.get_size_inches() * figure.dpi
    cut = [
        words
        for words, box in shown
        if box.x0 < -slack or box.y0 < -slack or box.x1 > width + slack or box.y1 > height + slack
    ]
    edges = np.array([(box.x0, box.x1, box.y0, box.y1) for _, box in shown]).reshape(-1, 4)
    overlapping = []
    for i, (words, _) in enumerate(shown):
        rest = edges[i + 1 :]
        wide = np.minimum(rest[:, 1], edges[i, 1]) - np.maximum(rest[:, 0], edges[i, 0]) > slack
        high = np.minimum(rest[:, 3], edges[i, 3]) - np.maximum(rest[:, 2], edges[i, 2]) > slack
        overlapping += [(words, shown[i + 1 + j][0]) for j in np.flatnonzero(wide & high)]
    return cut, overlapping
