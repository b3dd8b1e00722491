"""The learners ``posterior`` and ``ital-posterior``, and their settings as typed after the name."""

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ital.errors import InputError
from ital.learners._base import Learner, Situation
from ital.learners.posterior._types import BeliefNumbers, Structure
from ital.learners.posterior._update import belief_rule
from ital.tools import registry
from ital.tools.checks import is_finite, is_whole


class BeliefSettings(NamedTuple):
    """The settings of a belief, as a user gives them.

    Attributes:
        scale: s, "auto" to estimate it, or None for that of the task's own start.
        sigma: σ, or "auto" to estimate it.
        wrong: the share p of wrong labels.
        lapse: the share ε of choices made by chance.
        chance: the prior probability of b = 0.
        grid: the values of |b|.
        sharpest: the largest b of a choice, relative to the belief.
        window: number W of steps in the window.
        iterations: Gauss–Newton steps after each lesson.
        mean: the mean of the prior: "zero", or "start" for the start of the run.
        rho: the teacher's rationality ρ if it is known, such as a fitted one; None to weigh all b.
        unit: the difference of volumes that counts as 1 for ρ.
    """

    scale: float | str | None = None
    sigma: float | str = "auto"
    wrong: float = 0.0
    lapse: float = 0.01
    chance: float = 0.5
    grid: tuple[float, ...] = (1.0, 10.0, 100.0, 1000.0, 10000.0)
    sharpest: float = 3.0
    window: int = 50
    iterations: int = 2
    mean: str = "zero"
    rho: float | None = None
    unit: float = 1.0


DEFAULTS = BeliefSettings()
# Settings without a meaning for posterior.
OF_CHOICES = ("lapse", "chance", "grid", "sharpest", "rho", "unit")
OF_UNKNOWN = ("chance", "grid")  # settings without a meaning where ρ is known


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value > 0


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and 0 < value < 1


def _is_grid(value: Any) -> bool:
    if not isinstance(value, tuple) or not value or not all(map(_is_positive, value)):
        return False
    return list(value) == sorted(set(value))


# For each setting: whether a value is allowed, and what is, in words.
ALLOWED: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "scale": (
        lambda scale: scale in (None, "auto") or _is_positive(scale),
        "a positive number or auto",
    ),
    "sigma": (
        lambda sigma: sigma == "auto" or _is_positive(sigma),
        "a positive number or auto",
    ),
    "wrong": (
        lambda share: share == 0 or _is_share(share),
        "a share in [0, 1)",
    ),
    "lapse": (_is_share, "a share between 0 and 1"),
    "chance": (_is_share, "a probability between 0 and 1"),
    "grid": (_is_grid, "rising positive numbers, such as 1/10/100"),
    "sharpest": (_is_positive, "a positive number"),
    "window": (
        lambda steps: is_whole(steps) and steps >= 2,
        "a whole number of at least 2 steps",
    ),
    "iterations": (
        lambda steps: is_whole(steps) and steps >= 1,
        "a whole number of at least 1",
    ),
    "mean": (lambda mean: mean in ("zero", "start"), "zero or start"),
    "rho": (lambda rho: rho is None or is_finite(rho), "a finite number"),
    "unit": (_is_positive, "a positive number"),
}


def _read(name: str, text: str) -> Any:
    """Return the value of a setting from its text; a text that is no number stays text."""
    if name == "grid":
        return tuple(registry.number(part) for part in text.split("/"))
    value = registry.number(text)
    if math.isnan(value):
        return text
    if name in ("window", "iterations") and value.is_integer():
        return int(value)
    return value


def _read_options(method: str, options: str) -> dict[str, Any]:
    """Return the settings of a text such as ``window=20:scale=auto``."""
    given: dict[str, Any] = {}
    for part in options.split(":"):
        name, equals, text = part.partition("=")
        if name not in BeliefSettings._fields or not equals:
            raise InputError(
                f"method {method!r} is written {method}:NAME=VALUE:NAME=VALUE with the settings "
                f"{', '.join(BeliefSettings._fields)}, not with {part!r}"
            )
        given[name] = _read(name, text)
    return given


def _check_settings(method: str, settings: BeliefSettings, aware: bool) -> None:
    """Raise InputError for a value that is not allowed, or a setting without a meaning."""
    for name, value in settings._asdict().items():
        is_allowed, in_words = ALLOWED[name]
        if not is_allowed(value):
            raise InputError(f"method {method!r}: {name} must be {in_words}, not {value!r}")
        if name in OF_CHOICES and not aware and value != getattr(DEFAULTS, name):
            raise InputError(f"method {method!r} reads no choices, so it has no setting {name!r}")
    if settings.rho is None:
        if settings.unit != DEFAULTS.unit:
            raise InputError(f"method {method!r}: unit is that of rho, so give rho too")
        return
    for name in OF_UNKNOWN:
        if getattr(settings, name) != getattr(DEFAULTS, name):
            raise InputError(
                f"method {method!r}: rho says how the teacher chooses, so leave {name} out"
            )


def _written(value: Any) -> str:
    """Return the shortest text that reads back as the same value."""
    if isinstance(value, tuple):
        return "/".join(map(_written, value))
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    return str(value)


def _name(method: str, settings: BeliefSettings) -> str:
    """Return the name of a method: it holds every setting that is not the default."""
    defaults = DEFAULTS._asdict()
    parts = [method]
    for name, value in settings._asdict().items():
        if value != defaults[name]:
            parts.append(f"{name}={_written(value)}")
    return ":".join(parts)


def _number_or(value: Any, other: float) -> float:
    """Return the value if it is a number, else the other one."""
    if isinstance(value, int | float):
        return value
    return other


def _resolve_belief(
    learner: Learner,
    situation: Situation,
    *,
    settings: BeliefSettings,
    aware: bool,
) -> Learner:
    """Return the learner with the prior's scale, the teacher's volume and the labels that count."""
    grid = settings.grid
    if settings.rho is not None:
        # The only b, per 1 of teaching volume.
        grid = (settings.rho / settings.unit,)
    structure = Structure(
        aware=aware,
        window=settings.window,
        exact=aware and situation.volume == "exact",
        estimates_scale=settings.scale == "auto",
        estimates_sigma=settings.sigma == "auto",
        mixture=settings.wrong > 0,
        iterations=settings.iterations,
        sizes=len(grid),
        known=settings.rho is not None,
    )
    numbers = BeliefNumbers(
        scale=_number_or(settings.scale, situation.spread_of_start),
        sigma=_number_or(settings.sigma, 1.0),
        wrong=settings.wrong,
        lapse=settings.lapse,
        chance=settings.chance,
        grid=grid,
        sharpest=settings.sharpest,
        all_labels=float(situation.labels == "all"),
        from_start=float(settings.mean == "start"),
    )
    return learner._replace(rule=belief_rule(structure), settings=numbers)


def _unresolved(aware: bool, settings: BeliefSettings) -> Structure:
    """Return the structure of a learner that knows nothing of its experiment yet."""
    return Structure(
        aware=aware,
        window=settings.window,
        exact=False,
        estimates_scale=False,
        estimates_sigma=False,
        mixture=False,
        iterations=1,
        sizes=1,
    )


def _with_belief(
    method: str,
    label: str,
    aware: bool,
    options: str | None,
    given: Mapping[str, Any],
) -> Learner:
    """Return a learner with the settings of a text, or with those given by name."""
    read: dict[str, Any] = {}
    if options is not None:
        read = _read_options(method, options)
    settings = BeliefSettings(**{**read, **given})
    settings = settings._replace(grid=tuple(settings.grid))
    _check_settings(method, settings, aware)
    needs: tuple[str, ...] = ("likelihood",)
    if aware:
        needs = ("likelihood", "target losses")
    name = _name(method, settings)
    options_of_name = name.removeprefix(method)
    return Learner(
        name=name,
        label=label + options_of_name.replace(":", " "),
        rule=belief_rule(_unresolved(aware, settings)),
        resolve=functools.partial(_resolve_belief, settings=settings, aware=aware),
        needs=needs,
        labels=("all", "chosen"),
    )


def posterior(options: str | None = None, **settings: Any) -> Learner:
    """Keeps a belief over its target from labels alone: the strongest naive learner.

    What it shows is the mean of p(ν* | labels). It ignores the choice, and needs no step size.
    Settings follow the name: posterior:NAME=VALUE:NAME=VALUE.

    Args:
        options: settings as text, such as ``"window=20:scale=auto"``.
        **settings: the same by name: ``scale`` s of the prior (a number, ``"auto"``, or None for
            that of the task's own start), ``sigma`` σ of the labels' noise for the square loss (a
            number or ``"auto"``), ``wrong`` the share of wrong labels, ``window`` W,
            ``iterations``, and ``mean`` of the prior (``"zero"`` or ``"start"``).

    Returns:
        The learner.

    Raises:
        InputError: if there is no such setting, or its value is not allowed.

    Example:
        >>> ital.teach("irl-dense", learner=["posterior", "ital-posterior"], steps=200)
    """
    return _with_belief("posterior", "Posterior", False, options, settings)


def aware_posterior(options: str | None = None, **settings: Any) -> Learner:
    """Keeps a belief over its target from labels and choices: awareness as evidence.

    A choice is evidence about the target: log q_t(c | ν*) is added to the log-likelihood of the
    labels. Whether the teacher helps, harms or chooses by chance, and how rational it is, is
    weighed by the evidence.

    Args:
        options: settings as text, such as ``"window=20:lapse=0.1"``.
        **settings: the same by name: those of :func:`posterior`, and ``lapse`` ε, ``chance`` (the
            prior probability of b = 0), ``grid`` (the sizes of b in units of the inverse
            spread of the first volumes), and ``sharpest`` (the largest b of a choice, relative to
            the belief). If it is known how the teacher chooses, such as from a fit, ``rho`` ρ (per
            ``unit`` of teaching volume, 1) and ``lapse`` say so; then nothing is weighed.

    Returns:
        The learner.

    Raises:
        InputError: if there is no such setting, or its value is not allowed.

    Example:
        >>> ital.learners.aware_posterior(window=20)
    """
    return _with_belief("ital-posterior", "ITAL posterior", True, options, settings)
