"""Reading a study's configuration: every key is checked, and messages name it."""

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ital.errors import InputError
from ital.tools.files import read_text
from ital_study.config import languages, questions, texts
from ital_study.config.configuration import (
    ARROWS,
    LINKS,
    MAP_ORDERS,
    PALETTES,
    SHIPPED,
    VOLUMES,
    Config,
)
from ital_study.config.lineup import KINDS, study_kinds
from ital_study.config.panel import LINK, Panel, panel_of
from ital_study.config.parts import parts_of
from ital_study.config.payment import Payment, payment_of
from ital_study.config.quality import Quality, attention_of, quality_of
from ital_study.config.sections import (
    AssumedTeacher,
    Completion,
    ConsentForm,
    Instruction,
    Map,
    Physics,
    Question,
    assumed_teacher_of,
    completion_of,
    instruction_of,
    map_of,
    physics_of,
    question_of,
)
from ital_study.config.shipped import shipped_text
from ital_study.config.texts import Translation
from ital_study.config.toml import TomlTable


def load_config(path: str | Path | None = None) -> Config:
    """Read a study from a TOML file.

    Args:
        path: A file, or ``paper`` or ``short``, which come with ital; None: ``paper``.

    Returns:
        The configuration.

    Raises:
        InputError: The file cannot be read, or a key is wrong; the line names the file and the key.
    """
    shipped = "paper" if path is None else str(path)
    if shipped in SHIPPED:
        return parse_config(shipped_text(shipped), f"{shipped}.toml")
    try:
        text = read_text(shipped, f"the configuration {path}")
    except InputError as error:
        shipped_names = f"{', '.join(SHIPPED[:-1])} or {SHIPPED[-1]}"
        raise InputError(
            f"{error}; give a TOML file, or a configuration that comes with ital: {shipped_names}"
        ) from None
    return parse_config(text, str(path))


def parse_config(text: str, name: str = "study.toml") -> Config:
    """Read a study from the text of a TOML file.

    Args:
        text: The text.
        name: Name of the file in messages.

    Returns:
        The configuration.

    Raises:
        InputError: The text is not TOML, or a key is wrong; the line names the file and the key.
    """
    try:
        return config_of(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name} is not TOML: {error}") from None
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def config_of(content: Mapping[str, Any]) -> Config:
    """Check every key and build the configuration."""
    table = TomlTable("", content, Config)
    config = _without_translations(table)
    # Translations follow the first language: their texts are compared with its texts, and may use
    # its fields.
    translations = {
        language: texts.translation_of(each, config.texts(), config.given_fields())
        for language, each in table.tables("translations", Translation).items()
    }
    if config.language in translations:
        raise InputError(
            f"translations.{config.language} is the first language: "
            "its texts stand outside [translations]"
        )
    config = dataclasses.replace(config, translations=translations)
    for language in config.languages:
        config.texts(language)  # raises for a field that nothing fills in
    return config


def _without_translations(table: TomlTable) -> Config:
    """Read everything but the translations."""
    content = table.content
    maps = tuple(map_of(each) for each in table.sections("maps", Map))
    warm_up_map = map_of(table.section("warm_up_map", Map))
    _check_maps(maps, warm_up_map)
    size = len(warm_up_map.rewards)
    consent = table.section("consent", ConsentForm)
    adaptive = table.yes_or_no("adaptive")
    robots = _robots_named_in(table, adaptive=adaptive)
    kinds = study_kinds(robots, adaptive=adaptive)
    language = table.text("language", most=12)
    steps = table.whole("steps", 1, 1000)
    panel = panel_of(table.section("panel", Panel))
    config = Config(
        name=table.slug("name"),
        title=table.text("title"),
        seed=table.whole("seed", 0, 2**32 - 1),
        maps=maps,
        warm_up_map=warm_up_map,
        consent=ConsentForm(consent.text("version", most=40), consent.text("text")),
        instructions=tuple(map(instruction_of, table.sections("instructions", Instruction))),
        check=tuple(map(question_of, table.sections("check", Question))),
        debriefing=table.text("debriefing"),
        completion=completion_of(table.section("completion", Completion), panel),
        steps=steps,
        warm_up_steps=table.whole("warm_up_steps", 1, 1000),
        warm_up_learner=table.one_of("warm_up_learner", kinds),
        # No cell may occur in two successive steps, so the map must hold two steps.
        candidates=table.whole("candidates", 2, size * size // 2),
        lr=table.number("lr", above=0.0, most=1.0),
        beta=table.number("beta", least=0.0, most=1e9),
        start=table.number("start", above=0.0, most=1e3),
        arrows=table.one_of("arrows", ARROWS),
        palette=table.one_of("palette", PALETTES),
        numbers=table.yes_or_no("numbers"),
        hint=table.yes_or_no("hint"),
        release_after_minutes=table.number("release_after_minutes", above=0.0, most=1e6),
        intake=table.whole("intake", 1, 10**6) if "intake" in content else None,
        adaptive=adaptive,
        robots=robots,
        volume=table.one_of("volume", VOLUMES),
        assumed_teacher=assumed_teacher_of(table.section("assumed_teacher", AssumedTeacher)),
        world=physics_of(table.section("world", Physics)),
        language=language,
        words=languages.check_words(language, content.get("words", {}), "words"),
        questionnaires=questions.questionnaires_of(table),
        quality=quality_of(table.section("quality", Quality)),
        attention=attention_of(table, tuple(each.name for each in maps), len(kinds), steps),
        smallest_screen=table.whole("smallest_screen", 0, 10_000),
        panel=panel,
        links=_way_in(table, panel),
        parts=parts_of(table, [each.name for each in maps]),
        map_order=table.one_of("map_order", MAP_ORDERS),
        payment=payment_of(table.section("payment", Payment)),
    )
    # A study may not name a field that its pages or its other keys fill in.
    taken = {**config.numbers_in_texts(), "map": 1, "robot": 1}
    fields = texts.fields_of(content.get("fields", {}), taken)
    return dataclasses.replace(config, fields=fields)


def _robots_named_in(table: TomlTable, *, adaptive: bool) -> tuple[str, ...]:
    """Read the kinds of robot that a study names; none if it names none."""
    if "robots" not in table.content:
        return ()
    named = table.texts("robots")
    for name in named:
        if name not in KINDS:
            raise InputError(
                f"{table.prefix}robots must name kinds of robot ({', '.join(KINDS)}), not {name!r}"
            )
    if len(set(named)) < len(named):
        raise InputError(f"{table.prefix}robots must name each kind of robot once")
    if len(named) < 2:
        raise InputError(f"{table.prefix}robots must name at least two kinds of robot to compare")
    if adaptive:
        raise InputError(
            f"{table.prefix}adaptive is for studies that name no robots: "
            "leave it out, and name the adaptive robot in robots"
        )
    return study_kinds(named)


def _way_in(table: TomlTable, panel: Panel) -> str:
    """Read who may take part; a panel leaves the name of the signed link's parameter free."""
    links = table.one_of("links", LINKS)
    if links == "signed" and LINK in (*panel.identity, *panel.pass_through):
        raise InputError(
            f'{table.prefix}panel must not name {LINK}: with {table.prefix}links = "signed" it is '
            "the parameter of the signature"
        )
    return links


def _check_maps(maps: Sequence[Map], warm_up_map: Map) -> None:
    """Raise for maps of different sizes or with the same name."""
    size = len(warm_up_map.rewards)
    for each in maps:
        if len(each.rewards) != size:
            raise InputError(
                f"maps must all have one size, but {each.name!r} has {len(each.rewards)} rows "
                f"and {warm_up_map.name!r} has {size}"
            )
    names = [each.name for each in (*maps, warm_up_map)]
    for name in names:
        if names.count(name) > 1:
            raise InputError(
                f"maps and warm_up_map must have different names, but {name!r} occurs twice"
            )
