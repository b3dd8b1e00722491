"""The paper's figures, panel for panel, and those of the theory."""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ital.figures import in_legend_order
from ital.figures._curves import _panel, plot_curves
from ital.reproduce._data import Data, Experiment
from ital.reproduce._plan import STARTS, TASKS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAIN = ("regression", "gaussian", "cifar10-6", "tiny-imagenet-lite0", "equation-40", "irl-dense")
PALETTE = {"aware": "#08306b", "naive": "#d55e00"}
PALE = {"aware": "#9fbcd8", "naive": "#f0bd94"}
GREY = "0.35"
START_COLOURS = {STARTS[0]: "#08306b", STARTS[1]: "#d55e00"}


def stamp(figure: "Figure", note: str) -> None:
    """Says on the figure itself, below its title, that it is of a quick run: it may travel alone."""
    if note:
        figure.suptitle(f"{figure.get_suptitle()}\n{note}", fontsize=11)


def smaller(content: bytes, width: int = 1400) -> bytes:
    """A PNG with a palette of its own instead of full colour, and no wider than a page needs."""
    from PIL import Image

    image = Image.open(io.BytesIO(content)).convert("RGB")
    if image.width > width:
        image = image.resize((width, round(image.height * width / image.width)), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    image.quantize(128).save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()


def task_figure(one: Experiment, note: str = "") -> "Figure":
    """All panels of one task with one teacher, from one start."""
    shown = _without_controls(one)
    figure = plot_curves(shown.curves, one.task)
    seeds = one.curves.sizes["seed"]
    figure.suptitle(f"{one.task.title}: {one.cell.teacher} teacher, {one.cell.start} start, {seeds} seeds", fontsize=11)
    stamp(figure, note)
    return figure


def _without_controls(one: Experiment) -> Experiment:
    from ital import learners

    kept = [str(name) for name in one.curves["method"].values if name not in learners.CONTROLS]
    return one._replace(curves=one.curves.sel({"method": kept}))


def main_figure(data: Data, note: str = "") -> "Figure | None":
    """The paper's main figure: distances of six tasks with the cooperative teacher, and the bars of the study."""
    from matplotlib.figure import Figure

    there = [one for name in MAIN if (one := data.get(STARTS[0], name, "cooperative"))]
    if not there:
        return None
    with_bars = data.study is not None
    figure = Figure(figsize=(13.0 if with_bars else 10.0, 8.6 if len(there) > 2 else 3.8), layout="constrained")
    parts: Any = figure.subfigures(1, 2 if with_bars else 1, width_ratios=(1.45, 1)[: 1 + with_bars], squeeze=False)[0]
    left = parts[0]
    columns = min(2, len(there))
    axes = left.subplots(-(-len(there) // columns), columns, squeeze=False)
    for axis, one in zip(axes.flat, there, strict=False):
        _panel(axis, _without_controls(one).curves, one.task, "distance")
        axis.set_title(one.task.title, fontsize=10)
    for axis in axes.flat[len(there) :]:
        axis.set_axis_off()
    handles, labels = axes.flat[0].get_legend_handles_labels()
    left.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, handlelength=2.4, fontsize=9)
    if with_bars:
        _study_bars(parts[1], data.study)
    figure.suptitle("Cooperative teacher: distance to the target, mean ± SE over seeds", fontsize=11)
    stamp(figure, note)
    return figure


def _study_bars(figure: Any, study: Any) -> None:
    axes = figure.subplots(2, 1)
    titles = {"distance_last": "Decrease of the distance", "reward": "Expected reward"}
    stars = {row["map"]: _stars(row["p"]) for row in study.tests}
    for axis, (outcome, title) in zip(axes, titles.items(), strict=True):
        rows = [row for row in study.means if row["outcome"] == outcome]
        maps = list(dict.fromkeys(row["map"] for row in rows))
        arms = [("machine", "aware"), ("machine", "naive"), ("random", "aware"), ("random", "naive")]
        for i, (teacher, learner) in enumerate(arms):
            own = {row["map"]: row for row in rows if (row["teacher"], row["learner"]) == (teacher, learner)}
            where = np.arange(len(maps)) + (i - 1.5) * 0.2
            colour = (PALETTE if teacher == "machine" else PALE)[learner]
            name = f"{teacher.capitalize()} {'ITAL' if learner == 'aware' else 'IMT'}"
            height, error = ([own[one][key] for one in maps] for key in ("mean", "sem"))
            axis.bar(where, height, 0.18, yerr=error, color=colour, label=name, error_kw={"elinewidth": 0.8})
            if outcome == "distance_last" and (teacher, learner) == ("machine", "aware"):
                for x, one, high, above in zip(where, maps, height, error, strict=True):
                    axis.annotate(
                        stars[one],
                        (x, high + above),
                        xytext=(0, 1),
                        textcoords="offset points",
                        ha="center",
                        fontsize=8,
                    )
        axis.axhline(0, color="0.3", lw=0.7)
        axis.set_xticks(range(len(maps)), maps)
        axis.set_title(title, fontsize=10)
        axis.margins(y=0.15)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", alpha=0.25, lw=0.6)
        axis.set_axisbelow(True)
    axes[-1].set_xlabel("Map")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    figure.suptitle("SIMULATED teachers: no person took part", fontsize=10, color="#a63a00")


def _stars(p: float) -> str:
    return next((mark for limit, mark in ((0.001, "***"), (0.01, "**"), (0.05, "*")) if p < limit), "")


def adversarial_figure(data: Data, start: str, note: str = "") -> "Figure | None":
    """The paper's adversarial figure: all panels of all tasks, a row per task."""
    from matplotlib.figure import Figure

    there = [one for name in TASKS if (one := data.get(start, name, "adversarial"))]
    if not there:
        return None
    columns = max(len(one.panels()) for one in there)
    figure = Figure(figsize=(3.7 * columns, 2.75 * len(there) + 0.8), layout="constrained")
    axes = figure.subplots(len(there), columns, squeeze=False)
    for row, one in zip(axes, there, strict=True):
        shown = _without_controls(one)
        for axis, metric in zip(row, one.panels(), strict=False):
            _panel(axis, shown.curves, one.task, metric)
        for axis in row[len(one.panels()) :]:
            axis.set_axis_off()
        row[0].set_title(one.task.title, fontsize=10, loc="left", fontweight="bold")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=8, frameon=False, fontsize=9)
    figure.suptitle(f"Adversarial teacher, {start} start", fontsize=11)
    stamp(figure, note)
    return figure


def controls_figure(data: Data, start: str, note: str = "") -> "Figure | None":
    """What is left of the distance at the end: Batch, IMT, ITAL, and the controls with steps as long as ITAL's."""
    from matplotlib.figure import Figure

    from ital.figures._curves import COLOURS, OTHERS

    methods = ("batch", "imt", "ital", "imt-matched", "batch-matched")
    there = [one for one in data.every("cooperative", *methods) if one.cell.start == start]
    if not there:
        return None
    figure = Figure(figsize=(9.4, 0.62 * len(there) + 1.5), layout="constrained")
    axis = figure.subplots()
    markers = {"batch": "s", "imt": "D", "ital": "o", "imt-matched": "d", "batch-matched": "v"}
    colours = {**dict(zip(methods[3:], OTHERS, strict=False)), **COLOURS}
    for i, one in enumerate(there):
        for j, method in enumerate(methods):
            left = one.left(method)
            mean = float(left.mean())
            if not np.isfinite(mean):
                axis.annotate("diverged", (1.0, i), fontsize=7, color=colours[method])
                continue
            error = float(left.std(ddof=1) / np.sqrt(len(left))) if len(left) > 1 else 0.0
            axis.errorbar(
                max(mean, 1e-5), i + 0.1 * (j - 2), xerr=min(error, 0.9 * mean), fmt=markers[method],
                color=colours[method], ms=6.5, lw=1, label=str(_label(one, method)) if i == 0 else None,
            )  # fmt: skip
        axis.axhline(i + 0.5, color="0.9", lw=0.8)
    axis.set_yticks(range(len(there)), [one.task.title for one in there], fontsize=9)
    axis.invert_yaxis()
    axis.set_xscale("log")
    axis.axvline(1, color=GREY, ls="--", lw=1)
    axis.set_xlabel("Share of the distance at the start that is left (log scale; smaller is better)")
    axis.grid(axis="x", alpha=0.25, lw=0.6)
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    figure.suptitle(f"Awareness, or the longer step? Cooperative teacher, {start} start", fontsize=11)
    stamp(figure, note)
    return figure


def _label(one: Experiment, method: str) -> str:
    from ital.figures import label

    return label(one.curves, method)


def random_figure(data: Data, note: str = "") -> "Figure | None":
    """A random teacher: what is left of the distance, a dot per seed."""
    from matplotlib.figure import Figure

    from ital.figures._curves import COLOURS

    there = list(data.every("random"))
    if not there:
        return None
    columns = min(3, len(there))
    rows = -(-len(there) // columns)
    figure = Figure(figsize=(3.6 * columns, 2.9 * rows + 0.6), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.flat[len(there) :]:
        axis.set_axis_off()
    for axis, one in zip(axes.flat, there, strict=False):
        methods = in_legend_order([str(name) for name in one.curves["method"].values])
        for i, method in enumerate(methods):
            left = one.left(method)
            jitter = np.linspace(-0.14, 0.14, len(left)) if len(left) > 1 else [0.0]
            axis.plot(i + np.asarray(jitter), left, "o", ms=3.5, alpha=0.6, color=COLOURS.get(method, "#7b3294"))
            axis.plot([i - 0.25, i + 0.25], [left.mean()] * 2, color="0.1", lw=1.6)
        axis.set_xticks(range(len(methods)), [_label(one, method) for method in methods], fontsize=9)
        axis.axhline(1, color=GREY, ls="--", lw=1)
        axis.set_title(f"{one.task.title}, {one.cell.start} start", fontsize=9)
        axis.margins(0.15)
        axis.spines[["top", "right"]].set_visible(False)
    figure.supylabel("Distance left, of the start", fontsize=9)
    figure.suptitle("Random teacher: a dot per seed, the bar is the mean", fontsize=11)
    stamp(figure, note)
    return figure


def theory_figure(data: Data, note: str = "") -> "Figure | None":
    """Per task and over β: steps on which the aware step beats the naive one, where Theorem 1 applies and elsewhere."""
    figure, panels = _theory_panels(data, "Share of sampled steps that the aware step improves")
    if figure is None:
        return None
    for axis, start, panel in panels:
        found, shown = panel["guarantee"], START_COLOURS[start]
        for name, style, text in (("where_held", "-", "conditions hold"), ("elsewhere", ":", "they do not")):
            if found[name]:
                axis.plot(found["beta"], found[name], color=shown, ls=style, lw=1.7, label=f"{text}, {start} start")
        axis.axvline(panel["sharpness"]["task_beta"], color=GREY, ls="--", lw=1)
        axis.annotate(
            "β of the task", (panel["sharpness"]["task_beta"], 0.02), xytext=(2, 0), textcoords="offset points",
            fontsize=7, color=GREY, rotation=90, va="bottom",
        )  # fmt: skip
        axis.set_ylim(-0.03, 1.05)
    _finish_theory(figure, "Theorem 1 at sampled steps: large β recovers the guarantee, moderate β overshoots", note)
    return figure


def sharpness_figure(data: Data, note: str = "") -> "Figure | None":
    """q's sharpness at the start over β, with the value that ``auto`` takes and the paper's own."""
    figure, panels = _theory_panels(data, "Probability of q's favourite at the start")
    if figure is None:
        return None
    for axis, start, panel in panels:
        found, shown = panel["sharpness"], START_COLOURS[start]
        axis.plot(found["beta"], found["sharpness"], color=shown, lw=1.7, label=f"{start} start")
        auto = float(np.median(found["auto"]))
        height = float(np.interp(np.log(auto), np.log(found["beta"]), found["sharpness"]))
        axis.plot([auto], [height], "o", ms=7, color=shown, label=f"auto, {start} start")
        axis.axvline(
            found["task_beta"], color=GREY, ls="--", lw=1, label="β of the task" if start == STARTS[0] else None
        )
        axis.axhline(0.8, color="0.75", lw=0.8, zorder=0)
        axis.set_ylim(0, 1.05)
    _finish_theory(figure, "How rational? q's sharpness at the start over β; auto aims at 0.8, capped at 50/η", note)
    return figure


def _theory_panels(data: Data, name: str) -> tuple[Any, list[tuple[Any, str, Any]]]:
    """A panel per task with theory, and (axis, start, what was found) for each start."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(task for _, task in data.theory))
    if not names:
        return None, []
    columns = min(4, len(names))
    rows = -(-len(names) // columns)
    figure = Figure(figsize=(3.3 * columns + 0.4, 2.7 * rows + 1.0), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharey=True)
    place = dict(zip(names, axes.flat, strict=False))
    for task, axis in place.items():
        axis.set_xscale("log")
        axis.set_title(task, fontsize=10)
        axis.grid(alpha=0.25, lw=0.6)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes.flat[len(names) :]:
        axis.set_axis_off()
    for axis in axes[-1]:
        axis.set_xlabel("β")
    figure.supylabel(name, fontsize=9)
    return figure, [(place[task], start, panel) for (start, task), panel in data.theory.items()]


def _finish_theory(figure: Any, title: str, note: str) -> None:
    handles: dict[str, Any] = {}
    for axis in figure.axes:
        handles |= {text: handle for handle, text in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=11)
    stamp(figure, note)


def starts_of(data: Data) -> Sequence[str]:
    """The starts that there are experiments from."""
    return [start for start in STARTS if any(cell.start == start for cell in data.experiments)]
