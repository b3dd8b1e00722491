"""Pictures of what learners have learned: side by side at some steps, or animated."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from ital.errors import InputError
from ital.figures._fit import wrapped
from ital.figures._reward_map import draw_rewards
from ital.tasks import Picture, Task
from ital.tools.checks import path_of
from ital.tools.files import write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANEL = 2.9  # inches: the longer side of a panel
NARROWEST = 0.45  # of PANEL: the shorter side, with room for the line below


class Watched(NamedTuple):
    """The parameters of each learner over time on one seed, and the target.

    Attributes:
        task: the task.
        teacher: name of the teacher.
        seed: the seed.
        steps: the steps at which the parameters were kept.
        params: method → its parameters, with a leading axis of steps.
        target: the learner's target.
        labels: method → its name in a legend.
    """

    task: Task
    teacher: str
    seed: int
    steps: np.ndarray
    params: dict[str, Any]
    target: Any
    labels: dict[str, str]

    def __repr__(self) -> str:
        taught = f"{', '.join(self.params)}; seed {self.seed}, {int(self.steps[-1])} steps"
        return f"Watched({self.task.name!r}, {self.teacher!r} teacher: {taught})"

    def plot(self, steps: Sequence[int] | None = None) -> "Figure":
        """Draw a matplotlib figure: a row per learner, a column per step, and the target.

        Args:
            steps: the steps, or the nearest that were kept; None for the start, a quarter, a half
                and the end.

        Returns:
            The figure.
        """
        return plot_pictures(self, steps)

    def animate(self, file: Path | str, seconds: float = 8.0) -> Path:
        """Write a GIF of all learners side by side.

        Args:
            file: the file, which ends in .gif.
            seconds: how long the animation lasts.

        Returns:
            The file.

        Raises:
            InputError: if the file does not end in .gif, or the task cannot be drawn.
        """
        path = path_of(file, "file")
        if path.suffix.lower() != ".gif":
            raise InputError(
                f"an animation is a GIF: name the file {path.with_suffix('.gif')}, not {path}"
            )
        return animate(self, path, seconds=seconds)


def plot_pictures(watched: Watched, steps: Sequence[int] | None = None) -> "Figure":
    """Draw a row per learner and a column per step, the target last.

    Args:
        watched: the parameters over time.
        steps: the steps, or the nearest that were kept; None for the start, a quarter, a half and
            the end.

    Returns:
        The figure.

    Raises:
        InputError: if the task cannot be drawn.
    """
    from ital.figures._display import NotebookFigure

    picture = picture_of(watched.task)
    frames = _frames_nearest(watched, steps)
    rows = len(watched.params)
    columns = len(frames) + 1
    panel_width, panel_height = _panel_size(watched)
    width = panel_width * columns + 0.8
    height = (panel_height + 0.25) * rows + 0.8
    figure = NotebookFigure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    # Sets the panels' size, which determines their text size.
    figure.draw_without_rendering()
    limit = _colour_limit(watched)
    for row, name in enumerate(watched.params):
        *of_frames, of_target = axes[row]
        for axis, frame in zip(of_frames, frames, strict=True):
            show_learner(axis, watched, name, frame, limit)
            title = f"step {watched.steps[frame]}" if row == 0 else ""
            axis.set_title(title, fontsize=10)
        words = wrapped(watched.labels[name], panel_height, 12)
        of_frames[0].set_ylabel(words, fontsize=12)
        of_target.set_axis_off()
    target = axes[0, -1]
    show_target(target, watched, limit)
    _colour_bar(picture, target, ax=axes, shrink=0.6, aspect=30)
    return figure


def _panel_size(watched: Watched) -> tuple[float, float]:
    """Return the width and the height of a panel in inches, in the proportions of the map."""
    values, _ = picture_of(watched.task).grid(watched.target)
    rows, columns = np.shape(values)
    longer = max(rows, columns)
    across = columns / longer
    down = rows / longer
    width = PANEL * max(across, NARROWEST)
    height = PANEL * max(down, NARROWEST)
    return width, height


def _frames_nearest(watched: Watched, steps: Sequence[int] | None) -> list[int]:
    """Return the kept frames that are nearest to some steps; None for four of them."""
    last = watched.steps[-1]
    wanted = steps or (0, last // 4, last // 2, last)
    nearest = []
    for step in wanted:
        distances = np.abs(watched.steps - step)
        nearest.append(int(np.argmin(distances)))
    # Several steps may have the same nearest one.
    return list(dict.fromkeys(nearest))


def _colour_limit(watched: Watched) -> float:
    """Return the value with the strongest colour in all pictures of a figure."""
    picture = picture_of(watched.task)
    drawn = [watched.target, *watched.params.values()]
    return picture.limit or extent(drawn)


def animate(
    watched: Watched,
    file: Path,
    *,
    seconds: float = 8.0,
    show: Callable[[float], None] = lambda done: None,
) -> Path:
    """Write a GIF of all learners side by side, with the target beside them.

    Args:
        watched: the parameters over time.
        file: the file.
        seconds: how long the animation lasts.
        show: called with the share that is done, from 0 to 1.

    Returns:
        The file.

    Raises:
        InputError: if the task cannot be drawn.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from PIL import Image

    picture = picture_of(watched.task)
    panels = len(watched.params) + 1
    panel_width, panel_height = _panel_size(watched)
    width = 1.25 * panel_width * panels + 0.8
    height = 1.25 * panel_height + 1.0
    figure = Figure(figsize=(width, height), dpi=90, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    (axes,) = figure.subplots(1, panels, squeeze=False)
    # Sets the panels' size, which determines their text size.
    figure.draw_without_rendering()
    limit = _colour_limit(watched)
    show_target(axes[-1], watched, limit)
    _colour_bar(picture, axes[-1], ax=axes, shrink=0.8, aspect=25)
    images = []
    for frame, step in enumerate(watched.steps):
        for axis, name in zip(axes, watched.params, strict=False):
            axis.clear()
            show_learner(axis, watched, name, frame, limit)
            axis.set_title(f"{watched.labels[name]}, step {step}")
        canvas.draw()
        # The first frame fixes the layout.
        figure.set_layout_engine("none")
        pixels = np.asarray(canvas.buffer_rgba())
        drawn = Image.fromarray(pixels).convert("RGB")
        images.append(drawn.quantize(128))
        show((frame + 1) / len(watched.steps))
    content = _as_gif(images, seconds)
    write(file, content)
    return file


def _as_gif(images: list[Any], seconds: float) -> bytes:
    """Return images as the content of a GIF file that repeats."""
    each = 1000 * seconds / len(images)
    # The last frame stays longer before the restart.
    first, *others = images
    durations = [each] * len(others) + [max(2000.0, each)]
    moving = io.BytesIO()
    first.save(
        moving,
        "GIF",
        save_all=True,
        append_images=others,
        duration=durations,
        loop=0,
    )
    return moving.getvalue()


def draw_params(axis: Any, picture: Picture, params: Any, limit: float) -> None:
    """Draw parameters as the task does: a grid of rewards with its policy, or a grey picture."""
    values, policy = picture.grid(params)
    if picture.grey:
        axis.imshow(values, cmap="gray", vmin=0, vmax=limit)
        axis.set(xticks=[], yticks=[])
    else:
        draw_rewards(
            axis,
            values,
            policy,
            limit,
            picture.goals,
            picture.starts,
        )


def show_learner(axis: Any, watched: Watched, name: str, frame: int, limit: float) -> None:
    """Draw one learner at one frame, with the picture's note below."""
    over_time = watched.params[name]
    params = jax.tree.map(lambda leaf: leaf[frame], over_time)
    picture = picture_of(watched.task)
    draw_params(axis, picture, params, limit)
    note = picture.note(params, watched.target)
    axis.set_xlabel(note, fontsize=9)


def show_target(axis: Any, watched: Watched, limit: float) -> None:
    """Draw the target, and the title and caption of the figure."""
    picture = picture_of(watched.task)
    axis.set_axis_on()
    draw_params(axis, picture, watched.target, limit)
    axis.set_title("target", fontsize=10, fontweight="bold")
    figure = axis.figure
    title = f"{watched.task.title}: what is learned, {watched.teacher} teacher, seed {watched.seed}"
    width, _ = figure.get_size_inches()
    words = wrapped(f"{title}\n{picture.caption}", width, 11)
    figure.suptitle(words, fontsize=11)


def _colour_bar(picture: Picture, drawn: Any, **style: Any) -> None:
    """Say what the colours of a panel mean; values that begin at 0 get half of the colours."""
    bar = drawn.figure.colorbar(drawn.images[0], label=picture.colours, **style)
    if picture.limit is not None:
        bar.ax.set_ylim(0, picture.limit)


def picture_of(task: Task) -> Picture:
    """Return how a task is drawn.

    Args:
        task: the task.

    Returns:
        Its picture.

    Raises:
        InputError: if it has none.
    """
    if task.picture is None:
        raise InputError(
            f"task {task.name!r} has no picture of what is learned, "
            "so it cannot be drawn or animated"
        )
    return task.picture


def extent(params: Sequence[Any]) -> float:
    """Return the largest absolute finite value in these parameters.

    With it, all pictures share one colour scale.

    Args:
        params: parameters, any pytrees.

    Returns:
        The value, or 1 if there is none.
    """
    largest = 0.0
    for leaf in jax.tree.leaves(list(params)):
        values = np.asarray(leaf, float)
        finite = np.abs(values[np.isfinite(values)])
        largest = max(largest, finite.max(initial=0.0))
    return largest or 1.0
