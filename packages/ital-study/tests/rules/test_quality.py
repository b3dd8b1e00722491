"""Flags of data quality, on small tables made by hand."""

import dataclasses
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

import ital_study as study
from ital.errors import InputError
from ital_study.config.quality import CORNERS, FLAGS, Quality
from ital_study.data import flags as _quality
from ital_study.data import table as _table
from ital_study.data.flags import PageEvent
from ital_study.robots import attention

SHORT = study.load_config("short")
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def table(config=SHORT, choose=None, pause=3.0, seed=0, **columns):
    """All steps of one participant whose choices are random, with times as a person's would be."""
    rng, rows, at, last = np.random.default_rng(seed), [], BEGIN, 0
    for on in config.maps:
        for robot, learner in enumerate(config.learners, start=1):
            for step in range(1, config.steps + 1):
                cells = rng.permutation(config.size**2)[: config.candidates]
                choice = (
                    int(rng.integers(config.candidates)) if choose is None else choose(cells, last)
                )
                last, seconds = cells[choice], 2 + 4 * rng.random()
                at += timedelta(seconds=seconds + pause)
                rows.append(
                    dict.fromkeys(_table.COLUMNS, 0)
                    | {
                        "participant": 7,
                        "mode": "live",
                        "teacher": "human",
                        "config": config.hash,
                        "map": on.name,
                    }
                    | {
                        "learner": learner,
                        "robot": robot,
                        "step": step,
                        "choice": choice,
                        "cell": cells[choice],
                    }
                    | {"candidates": json.dumps([[int(cell), 0] for cell in cells]), "usable": True}
                    | {
                        "machine_choice": int(rng.integers(config.candidates)),
                        "seconds_to_confirm": seconds,
                    }
                    | {
                        "stored_at": at.isoformat(timespec="milliseconds"),
                        "input": "mouse",
                        "code_version": "1",
                    }
                    | {"by_script": False, "too_fast": False, "order": "", "action": 0}
                )
    return _quality.flag_steps(_table.frame(rows).assign(**columns), config.quality)


def picked(steps, config=SHORT):
    """What the page reports of these steps."""
    names = [on.name for on in config.maps]
    rows = zip(steps["map"], steps["robot"], steps["step"], strict=True)
    return [
        PageEvent("chosen", {"round": f"{names.index(on) + 1}-{robot}", "step": t - 1})
        for on, robot, t in rows
    ]


def flags(steps, happened=None, config=SHORT):
    columns = _quality.person(steps, picked(steps) if happened is None else happened, config)
    return {name for name in FLAGS if columns[f"flag_{name}"]}


GOOD = table(machine_choice=3, choice=3)  # always the machine's pick


def test_nobody_is_flagged_without_reason():
    steps = table()
    steps = _quality.flag_steps(steps.assign(machine_choice=steps["choice"]), SHORT.quality)
    assert not steps["too_fast"].any()
    assert not steps["by_script"].any()
    assert flags(steps) == set()
    numbers = _quality.numbers_of(steps, picked(steps), SHORT)
    assert (numbers["machine_share"], numbers["unseen_share"], numbers["script_share"]) == (
        1.0,
        0.0,
        0.0,
    )
    assert numbers["inputs"] == "mouse"
    assert 0.2 < numbers["time_spread"] < 1
    assert numbers["longest_pause_minutes"] == pytest.approx(9 / 60, rel=0.3)


def test_a_clock_that_steps_back_makes_nobody_a_script():
    stored = GOOD["stored_at"].map(datetime.fromisoformat)
    back = [at - timedelta(seconds=10 * (i > 5)) for i, at in enumerate(stored)]
    steps = _quality.flag_steps(
        GOOD.assign(stored_at=[at.isoformat() for at in back]), SHORT.quality
    )
    assert steps["by_script"].equals(GOOD["by_script"])


def test_too_fast():
    few, many = (np.where(np.arange(32) < n, 0.9, 4.0) for n in (6, 7))
    assert "too_fast" not in flags(table(seconds_to_confirm=few))
    assert "too_fast" in flags(table(seconds_to_confirm=many))
    slower = dataclasses.replace(SHORT, quality=Quality(too_fast_seconds=0.5))
    assert table(slower, seconds_to_confirm=many)["too_fast"].sum() == 0
    assert table(seconds_to_confirm=np.nan)["too_fast"].sum() == 0


@pytest.mark.parametrize(
    "columns",
    [
        {"input": ""},
        {"seconds_to_confirm": np.nan},
        {"seconds_to_confirm": 0.1},
        {"seconds_to_confirm": 60.0},
    ],
)
def test_a_script_gives_itself_away(columns):
    """No device, no times, no time at all, or more time than passed on the server's clock."""
    steps = table(**columns)
    first = steps["step"] == 1  # nothing was stored before it in this round
    assert steps["by_script"][~first].all()
    assert steps["by_script"][first].all() == (columns != {"seconds_to_confirm": 60.0})
    assert "by_script" in flags(steps)


def test_a_script_that_does_not_wait_for_the_page():
    assert table(pause=0.2)["by_script"].sum() == 28
    assert table(pause=0.9)["by_script"].sum() == 0


def test_the_page_pauses_for_longer_than_a_script_is_allowed_to():
    source = (Path(study.__file__).parent / "pages" / "static" / "teach.js").read_text()
    pauses = [
        int(value)
        for value in re.findall(r"^const (?:UPDATE|LINGER) = (\d+);", source, re.MULTILINE)
    ]
    assert len(pauses) == 2
    assert sum(pauses) / 1000 > 2 * _quality.PAGE_PAUSE


def test_a_script_that_waits_but_picks_nothing_on_the_page_or_ticks_like_a_clock():
    assert "by_script" in flags(GOOD, happened=())
    assert "by_script" not in flags(GOOD, happened=picked(GOOD)[:20])
    assert "by_script" in flags(table(seconds_to_confirm=2.0 + 0.001 * np.arange(32)))


def test_steps_that_no_server_stored_are_not_flagged():
    steps = table(stored_at="", input="", seconds_to_confirm=np.nan)
    assert not steps["by_script"].any()
    assert not flags(steps, happened=()) & {"by_script", "too_fast", "long_pause"}


LAZY = {
    "index": lambda cells, last: 4,
    "reading order": lambda cells, last: int(np.argsort(cells)[2]),
    "nearest": lambda cells, last: int(
        np.argmin(abs(cells // 5 - last // 5) + abs(cells % 5 - last % 5))
    ),
}


@pytest.mark.parametrize("rule", LAZY)
def test_the_same_place_again_and_again(rule):
    steps = table(choose=LAZY[rule])
    assert _quality.lazy(steps, 5)[0] > 0.95
    assert _quality.lazy(steps, 5)[1] >= 31
    assert "same_place" in flags(steps)
    assert "same_place" not in flags(table())


def test_a_run_alone_is_enough():
    steps = table(choice=np.where(np.arange(32) < 12, 3, np.arange(32) % 10))
    longer = dataclasses.replace(SHORT, quality=Quality(same_place_run=12, same_place_share=1.0))
    assert "same_place" in flags(steps, config=longer)
    assert "same_place" not in flags(
        steps, config=dataclasses.replace(SHORT, quality=Quality(same_place_run=13))
    )


def test_no_better_than_chance():
    for right, flagged in ((3, True), (6, True), (7, False), (32, False)):
        steps = table(choice=np.where(np.arange(32) < right, 2, 3), machine_choice=2)
        # Of 32 steps with ten arrows, P(at least 6) is 0.094 and P(at least 7) is 0.037.
        assert ("at_chance" in flags(steps)) is flagged, right
        assert _quality.agreement(steps)[0] == right / 32


def test_focus_pauses_and_screens():
    assert "looked_away" in flags(table(focus_losses=np.arange(32) % 4 == 0))
    assert "looked_away" not in flags(table(focus_losses=np.arange(32) % 8 == 0))
    gone = table()
    gone.loc[20:, "stored_at"] = [
        (datetime.fromisoformat(at) + timedelta(minutes=31)).isoformat()
        for at in gone["stored_at"][20:]
    ]
    assert "long_pause" in flags(gone)
    screen = {"width": 1280, "height": 720, "ratio": 1, "pointer": "fine", "small_accepted": False}
    for change, flagged in (
        ({}, 0),
        ({"width": 390}, 1),
        ({"height": 390}, 1),
        ({"small_accepted": True}, 1),
    ):
        happened = [
            *picked(GOOD),
            PageEvent("screen", screen),
            PageEvent("screen", screen | change),
        ]
        assert ("small_screen" in flags(GOOD, happened)) == flagged
    assert "small_screen" not in flags(GOOD)


def test_what_a_browser_sends_breaks_nothing():
    for data in (
        {"width": "wide", "height": [1]},
        {"width": None, "small_accepted": "yes"},
        {"round": ["1"], "step": {}},
    ):
        happened = [*picked(GOOD), PageEvent("screen", data), PageEvent("chosen", data)]
        assert "small_screen" not in flags(GOOD, happened)


def test_attention():
    passed, failed = (
        PageEvent("attention", {"check": 0, "passed": passed}, "server") for passed in (True, False)
    )
    assert "attention" not in flags(GOOD, [*picked(GOOD), passed])
    assert "attention" in flags(GOOD, [*picked(GOOD), passed, failed])
    two = dataclasses.replace(SHORT, quality=Quality(attention_failures=2))
    assert "attention" not in flags(GOOD, [*picked(GOOD), passed, failed], two)
    sly = failed._replace(source="client")  # what a page says about itself does not count
    assert "attention" not in flags(GOOD, [*picked(GOOD), sly])
    columns = _quality.person(GOOD, [failed], SHORT)
    assert (columns["attention_checks"], columns["attention_failed"]) == (1, 1)
    assert columns["excluded_by_rule"] == "attention"
    assert columns.keys() == _quality.COLUMNS.keys()
    lenient = dataclasses.replace(SHORT, quality=Quality(exclude=()))
    assert _quality.person(GOOD, [failed], lenient)["excluded_by_rule"] == ""


def test_few_steps_say_little():
    assert flags(GOOD.head(10), happened=()) == set()
    assert flags(GOOD.head(0), happened=()) == set()


def test_the_codebook_states_every_threshold():
    text = "\n".join(
        _quality.codebook_lines([SHORT, dataclasses.replace(SHORT, quality=Quality(exclude=()))])
    )
    assert text.count("| `too_fast` | confirmed 20 % of steps or more in less than 1 s |") == 2
    assert "left out of the filtered analysis by: `attention`." in text
    assert "left out of the filtered analysis by: no flag." in text
    assert all(f"| `{name}` |" in text for name in FLAGS)
    thresholds = {field.name for field in dataclasses.fields(Quality)} - {"exclude", "least_steps"}
    assert thresholds == {name for text in FLAGS.values() for name in re.findall(r"\{(\w+)", text)}


def test_defaults_never_change():
    """Studies that leave the section out are hashed without it.

    Their thresholds must stay what they were.
    """
    assert dataclasses.asdict(Quality()) == {
        "too_fast_seconds": 1.0, "too_fast_share": 0.2,
        "looked_away_share": 0.2, "same_place_share": 0.6,
        "same_place_run": 25, "chance_level": 0.05, "pause_minutes": 30.0,
        "screen_width": 560, "screen_height": 400,
        "script_seconds": 0.15, "script_share": 0.1, "unseen_share": 0.5, "time_spread": 0.05,
        "attention_failures": 1, "least_steps": 20, "exclude": ("attention",),
    }  # fmt: skip


CHECKS = """
[quality]
too_fast_seconds = 0.5
exclude = ["attention", "by_script"]

[[attention]]
map = "A"
robot = 2
step = 5
choose = "bottom-right"
"""
BARE = SHORT.to_toml().partition("\n[quality]")[0]


def test_the_configuration():
    config = study.parse_config(BARE + CHECKS)
    assert config.quality == Quality(too_fast_seconds=0.5, exclude=("attention", "by_script"))
    assert config.attention[0].choose == "bottom-right"
    assert config.hash != SHORT.hash
    assert study.parse_config(config.to_toml()) == config
    assert (
        study.parse_config(BARE).hash == SHORT.hash == study.parse_config(BARE + "[quality]\n").hash
    )
    assert "too_fast_seconds = 1.0" in SHORT.to_toml()  # the export states the defaults too
    assert "attention" not in json.dumps(config.public())
    for old, new, said in (
        ("step = 5", "step = 9", r"attention\[1\].step must be a whole number from 1 to 8, not 9"),
        (
            "robot = 2",
            "robot = 3",
            r"attention\[1\].robot must be a whole number from 1 to 2, not 3",
        ),
        (
            'map = "A"\nrobot',
            'map = "Z"\nrobot',
            r"attention\[1\].map must be one of A, E, not 'Z'",
        ),
        ("bottom-right", "middle", r"attention\[1\].choose must be one of top-left, top-right"),
        (
            '"by_script"]',
            '"slow"]',
            "quality.exclude must be a list of different flags, each one of attention",
        ),
        ('"by_script"]', "{}]", "quality.exclude must be a list of different flags"),
        ("too_fast_seconds", "too_slow", "unknown key quality.too_slow"),
        (
            "[[attention]]",
            '[[attention]]\nmap="A"\nrobot=2\nstep=5\nchoose="top-left"\n[[attention]]',
            "same step",
        ),
    ):
        with pytest.raises(InputError, match=said):
            study.parse_config((BARE + CHECKS).replace(old, new, 1))


def test_the_arrows_of_a_check():
    corners = dict(zip(CORNERS, (0, 4, 20, 24), strict=True))
    assert {choose: attention.corner(choose, 5) for choose in CORNERS} == corners
    config = study.parse_config(BARE + CHECKS)
    rights = set()
    for number in range(1, 60):
        arrows = attention.arrows_of(config, number, 0)
        cells = [arrow.cell for arrow in arrows]
        assert len(set(cells)) == config.candidates
        assert all(0 <= arrow.action < 4 and 0 <= arrow.cell < 25 for arrow in arrows)
        right = attention.right_choice("bottom-right", cells, 5)
        assert cells[right] == 24
        assert [attention.answer(config, number, 0, i)["passed"] for i in range(10)].index(
            True
        ) == right
        rights.add(right)
    assert rights == set(range(10))  # the index tells nothing
    assert attention.check_at(config, "A", 2, 5) == 0
    assert attention.check_at(config, "A", 1, 5) is None
