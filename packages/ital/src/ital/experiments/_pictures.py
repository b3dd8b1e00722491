"""Pictures of what is learned, beside the curves of a run."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ital.experiments._settings import Plan
from ital.figures import Watched
from ital.teaching import seen, watch
from ital.tools.progress import show_progress

if TYPE_CHECKING:
    import xarray as xr


def write_pictures(
    plan: Plan,
    curves: "xr.Dataset",
    folder: Path,
    animate: bool,
    progress: bool,
) -> list[Path]:
    """Write what is learned on the first seed.

    A naive method is shown beside an aware one if the result has both. Existing files are current,
    because new curves remove them.

    Returns:
        ``pictures.png`` and ``.pdf``, and ``pictures.gif`` if ``animate`` is set.
    """
    from ital import figures

    stills = [folder / "pictures.png", folder / "pictures.pdf"]
    moving = folder / "pictures.gif"
    draw_stills = not all(file.exists() for file in stills)
    draw_moving = animate and not moving.exists()
    if draw_stills or draw_moving:
        with show_progress(f"{plan.task.name}: pictures", 100, progress) as show:
            # Teaching takes most of the time, unless frames are drawn.
            percent = 30 if draw_moving else 100

            def show_teaching(share: float) -> None:
                show(round(percent * share))

            def show_drawing(share: float) -> None:
                show(round(percent + (100 - percent) * share))

            watched = _watch_two(plan, curves, show_teaching)
            if draw_stills:
                figures.save(figures.plot_pictures(watched), folder / "pictures")
            if draw_moving:
                figures.animate(watched, moving, show=show_drawing)
    return [*stills, moving] if animate else stills


def _watch_two(plan: Plan, curves: "xr.Dataset", show: Callable[[float], None]) -> Watched:
    """Return what IMT and ITAL, or the first two methods, learned on the first seed."""
    from ital import learners

    methods = [str(name) for name in curves["learner"].values]
    pair = [name for name in methods if name in ("imt", "ital")] or methods[:2]
    recorded = seen(curves, plan.task, pair)
    if recorded is not None:
        return recorded
    # The result holds the path of another seed, or none: teach these two again.
    return watch(
        plan.task,
        plan.teacher,
        [learners.make(name) for name in pair],
        seed=int(curves["seed"].values[0]),
        show=show,
        run=plan.run,
    )
