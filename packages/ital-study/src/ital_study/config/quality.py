"""Data quality in the configuration: the thresholds of the flags, and the attention checks."""

import dataclasses
from dataclasses import dataclass

from ital.errors import InputError
from ital_study.config.toml import TomlTable

CORNERS = ("top-left", "top-right", "bottom-left", "bottom-right")

# What each flag says of a participant, with its thresholds as fields. The order is that of tables
# and badges.
FLAGS = {
    "attention": "failed attention checks, {attention_failures} or more",
    "by_script": (
        "looks like a program: {script_share:.0%} of steps or more came without an input device "
        "or times, within "
        "{script_seconds:g} s, or sooner than the page could show them; or the page reported no "
        "pick for "
        "{unseen_share:.0%} of steps or more; or the middle half of times lies within "
        "{time_spread:.0%} of the median"
    ),
    "too_fast": (
        "confirmed {too_fast_share:.0%} of steps or more in less than {too_fast_seconds:g} s"
    ),
    "same_place": (
        "chose the same number in the list, the same place in reading order or the arrow nearest "
        "to the last one in "
        "{same_place_share:.0%} of steps or more, or {same_place_run} times in a row"
    ),
    "at_chance": (
        "chose the machine's pick no more often than chance would: one-sided binomial test, p > "
        "{chance_level:g}"
    ),
    "looked_away": "the page lost the focus in {looked_away_share:.0%} of steps or more",
    "long_pause": "made a pause of more than {pause_minutes:g} minutes between two steps",
    "small_screen": (
        "used a window smaller than {screen_width} × {screen_height} pixels, or continued "
        "although the page "
        "advised against it"
    ),
}


@dataclass(frozen=True)
class Quality:
    """Thresholds of the flags, and the flags that exclude: section ``[quality]``.

    Never change a default: a study that leaves the section out has its defaults, and its hash does
    not contain them.

    Attributes:
        too_fast_seconds: A step confirmed in less time is too fast.
        too_fast_share: Share of too fast steps that makes the flag.
        looked_away_share: Share of steps during which the page lost the focus that makes the flag.
        same_place_share: Share of steps that follow one lazy rule that makes the flag.
        same_place_run: Number of successive steps that follow one lazy rule that makes the flag.
        chance_level: Level of the test against chance.
        pause_minutes: A longer pause between two steps makes the flag.
        screen_width: A narrower window makes the flag.
        screen_height: A lower window makes the flag.
        script_seconds: A step confirmed in less time was not taken by a person.
        script_share: Share of steps taken by a script that makes the flag.
        unseen_share: Share of steps without an event of the page that makes the flag.
        time_spread: Smaller interquartile ranges of the times, over their median, make the flag.
        attention_failures: Number of failed attention checks that makes the flag.
        least_steps: Flags about shares of steps need at least this many steps.
        exclude: Flags whose participants the filtered analysis leaves out.
    """

    too_fast_seconds: float = 1.0
    too_fast_share: float = 0.2
    looked_away_share: float = 0.2
    same_place_share: float = 0.6
    same_place_run: int = 25
    chance_level: float = 0.05
    pause_minutes: float = 30.0
    screen_width: int = 560
    screen_height: int = 400
    script_seconds: float = 0.15
    script_share: float = 0.1
    unseen_share: float = 0.5
    time_spread: float = 0.05
    attention_failures: int = 1
    least_steps: int = 20
    exclude: tuple[str, ...] = ("attention",)

    def texts(self) -> dict[str, str]:
        """Return what each flag says of a participant.

        Returns:
            A sentence without subject, with the thresholds filled in, by the name of the flag.
        """
        numbers = dataclasses.asdict(self)
        return {name: text.format(**numbers).replace("%", " %") for name, text in FLAGS.items()}


@dataclass(frozen=True)
class AttentionCheck:
    """A screen between two steps that asks for a certain arrow; no robot sees it.

    Attributes:
        map: Name of the map.
        robot: 1 for the first robot on the map, 2 for the second, …
        step: The check comes before this step, from 1.
        choose: The corner of the map whose arrow is right.
    """

    map: str
    robot: int
    step: int
    choose: str


def quality_of(table: TomlTable) -> Quality:
    """Read thresholds, and the flags that exclude."""
    return Quality(
        too_fast_seconds=_seconds(table, "too_fast_seconds"),
        too_fast_share=_share(table, "too_fast_share"),
        looked_away_share=_share(table, "looked_away_share"),
        same_place_share=_share(table, "same_place_share"),
        same_place_run=table.whole("same_place_run", 2, 10**6),
        chance_level=table.number("chance_level", least=0.0, most=1.0),
        pause_minutes=table.number("pause_minutes", least=0.0, most=1e5),
        screen_width=table.whole("screen_width", 0, 10**5),
        screen_height=table.whole("screen_height", 0, 10**5),
        script_seconds=_seconds(table, "script_seconds"),
        script_share=_share(table, "script_share"),
        unseen_share=_share(table, "unseen_share"),
        time_spread=table.number("time_spread", least=0.0, most=1.0),
        attention_failures=table.whole("attention_failures", 1, 10**6),
        least_steps=table.whole("least_steps", 1, 10**6),
        exclude=_flags(table, "exclude"),
    )


def _share(table: TomlTable, key: str) -> float:
    """Read a share of steps. It lies above 0: a share of 0 would flag everybody."""
    return table.number(key, above=0.0, most=1.0)


def _seconds(table: TomlTable, key: str) -> float:
    return table.number(key, least=0.0, most=1e5)


def _flags(table: TomlTable, key: str) -> tuple[str, ...]:
    """Read a list of different flags."""
    flags = table.get(key)
    allowed = list(FLAGS)  # a list, because entries of the file may not be hashable
    if not isinstance(flags, list | tuple) or not all(
        flag in allowed and flags.count(flag) == 1 for flag in flags
    ):
        raise InputError(
            f"{table.prefix}{key} must be a list of different flags, "
            f"each one of {', '.join(allowed)}"
        )
    return tuple(flags)


def attention_of(
    table: TomlTable, maps: tuple[str, ...], robots: int, steps: int
) -> tuple[AttentionCheck, ...]:
    """Read ``[[attention]]``: checks, each before a step of its own; none if there are none.

    Args:
        table: The whole configuration.
        maps: Names of the maps.
        robots: Number of robots on a map.
        steps: Number of steps of a robot.

    Returns:
        The checks.
    """
    if "attention" not in table.content:
        return ()
    checks = tuple(
        AttentionCheck(
            each.one_of("map", maps),
            each.whole("robot", 1, robots),
            each.whole("step", 1, steps),
            each.one_of("choose", CORNERS),
        )
        for each in table.sections("attention", AttentionCheck)
    )
    number_of_step: dict[tuple[str, int, int], int] = {}
    for number, check in enumerate(checks, start=1):
        step = (check.map, check.robot, check.step)
        if step in number_of_step:
            raise InputError(
                f"attention[{number}] comes at the same step as attention[{number_of_step[step]}]"
            )
        number_of_step[step] = number
    return checks
