"""The study's configuration: one TOML file. Every key is checked, and its hash is stored with each participant."""

import dataclasses
import functools
import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ital.errors import InputError
from ital.study import _languages, _questions, _texts
from ital.study._quality_config import AttentionCheck, Quality, attention_of, quality_of
from ital.study._questions import Questionnaire
from ital.study._sections import (
    Completion,
    ConsentForm,
    Instruction,
    Map,
    Physics,
    Question,
    completion_of,
    instruction_of,
    map_of,
    physics_of,
    question_of,
)
from ital.study._shipped import shipped_text
from ital.study._texts import Texts, Translation
from ital.study._toml import TomlTable, plain, toml_text

SHIPPED = ("paper", "short")  # configurations that come with ital
LEARNERS = ("naive", "aware")  # of every study
ADAPTIVE = "adaptive"  # the third, if the key of that name is true
ARROWS = ("boltzmann", "optimal")
VOLUMES = ("exact", "imitated")
PALETTES = ("safe", "paper")
# Keys added later: where they have their default values, older studies keep their hash.
LATER = (
    "adaptive",
    "volume",
    "language",
    "fields",
    "words",
    "translations",
    "questionnaires",
    "quality",
    "attention",
    "smallest_screen",
)


@dataclass(frozen=True)
class Config:
    """A study. Made by :func:`load_config`; ``docs/study.md`` explains every key.

    Attributes:
        name: Short name, fit for files.
        title: Title that participants see.
        seed: Seed of all draws.
        maps: Maps on which participants teach.
        warm_up_map: Map of the warm-up.
        consent: What participants agree to.
        instructions: Pages of instructions.
        check: Questions of the comprehension check.
        debriefing: Text at the end.
        completion: Code and address at the end.
        steps: Number of steps of each robot on a map.
        warm_up_steps: Number of steps of the warm-up.
        warm_up_learner: Kind of robot in the warm-up.
        candidates: Number of arrows to choose from in a step.
        lr: Step size η of the robots.
        beta: Rationality β that the aware robot assumes.
        start: Largest absolute reward of the first belief.
        arrows: Directions of arrows: ``boltzmann``, drawn from the true policy, or ``optimal``, its best ones.
        palette: Colours of the maps: ``safe`` or ``paper``.
        numbers: Whether maps show numbers.
        hint: Whether pages show the machine's pick after a step.
        release_after_minutes: Minutes of inactivity after which a slot is free again.
        intake: Maximum number of live participants; None: no limit.
        adaptive: Whether there is an adaptive robot on every map.
        volume: Teaching volume that robots assume their teacher uses: ``exact`` or ``imitated``.
        world: How the robot moves and plans.
        language: The first language, that of the texts outside ``translations``.
        fields: Values of the fields ``{name}`` in texts.
        words: Words of the pages in the first language that differ from those that come with ital.
        translations: Texts in other languages.
        questionnaires: Pages of questions.
        quality: Thresholds of the flags of data quality.
        attention: Attention checks between steps.
        smallest_screen: Width in pixels below which people are asked for a larger screen; 0: never.
    """

    name: str
    title: str
    seed: int
    maps: tuple[Map, ...]
    warm_up_map: Map
    consent: ConsentForm
    instructions: tuple[Instruction, ...]
    check: tuple[Question, ...]
    debriefing: str
    completion: Completion
    steps: int = 30
    warm_up_steps: int = 10
    warm_up_learner: str = "aware"
    candidates: int = 10
    lr: float = 0.015
    beta: float = 10000.0
    start: float = 2.0
    arrows: str = "boltzmann"
    palette: str = "safe"
    numbers: bool = False
    hint: bool = False
    release_after_minutes: float = 120.0
    intake: int | None = None
    adaptive: bool = False
    volume: str = "exact"
    world: Physics = field(default_factory=Physics)
    language: str = "en"
    fields: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    translations: Mapping[str, Translation] = field(default_factory=dict)
    questionnaires: tuple[Questionnaire, ...] = ()
    quality: Quality = field(default_factory=Quality)
    attention: tuple[AttentionCheck, ...] = ()
    smallest_screen: int = 560

    @property
    def learners(self) -> tuple[str, ...]:
        """The kinds of robot on every map."""
        return (*LEARNERS, ADAPTIVE) if self.adaptive else LEARNERS

    @property
    def size(self) -> int:
        """Cells along one side of a map."""
        return len(self.warm_up_map.rewards)

    @property
    def all_maps(self) -> tuple[Map, ...]:
        """The maps that count, then the warm-up map."""
        return (*self.maps, self.warm_up_map)

    @property
    def total_steps(self) -> int:
        """Steps of a whole study, with the warm-up."""
        return self.warm_up_steps + len(self.maps) * len(self.learners) * self.steps

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of the texts, the first one for visitors who speak none of them."""
        return (self.language, *self.translations)

    def texts(self, language: str | None = None) -> Texts:
        """Return what participants read.

        Args:
            language: One of :attr:`languages`; None, or any other: the first.

        Returns:
            The texts, with their fields filled in.
        """
        texts = Texts(
            self.language, self.title, self.consent, self.instructions, self.check, self.debriefing, self.questionnaires
        )
        fields = self.given_fields() | dict(self.fields)
        if language is not None and language in self.translations:
            texts = _texts.translated(texts, language, self.translations[language])
            fields |= self.translations[language].fields
        return _texts.filled(texts, fields)

    @property
    def values(self) -> tuple[float, float]:
        """The least and the largest value of a cell."""
        cells = [cell for on in self.all_maps for row in on.rewards for cell in row]
        return min(cells), max(cells)

    def given_fields(self) -> dict[str, Any]:
        """Return the fields of texts that follow from other keys.

        Returns:
            Numbers, and values of cells with their sign, by the name of the field.
        """
        worst, best = (f"{value:+g}".replace("-", "−") for value in self.values)
        return self.numbers_in_texts() | {"best_value": best, "worst_value": worst}

    def numbers_in_texts(self) -> dict[str, int]:
        """Return the fields of texts that are numbers of something.

        Returns:
            Numbers by the name of the field.
        """
        return {
            "maps": len(self.maps),
            "robots": len(self.learners),
            "robots_in_all": len(self.maps) * len(self.learners),
            "steps": self.steps,
            "warm_up_steps": self.warm_up_steps,
            "arrows_in_all": self.total_steps,
            "candidates": self.candidates,
            "other_candidates": self.candidates - 1,
            "size": self.size,
        }

    def words_in(self, language: str | None = None) -> dict[str, str]:
        """Return the words of participants' pages.

        Args:
            language: One of :attr:`languages`; None, or any other: the first.

        Returns:
            Words by key.
        """
        if language is not None and language in self.translations:
            return _languages.words(language, self.translations[language].words)
        return _languages.words(self.language, self.words)

    def language_names(self) -> dict[str, str]:
        """Return the names of the languages, each in itself.

        Returns:
            Names by tag.
        """
        return {each: self.words_in(each)["name"] for each in self.languages}

    @functools.cached_property
    def hash(self) -> str:
        """SHA-256 of the content; it does not depend on the layout of the file."""
        return hashlib.sha256(json.dumps(self.as_dict(), sort_keys=True).encode()).hexdigest()

    def as_dict(self) -> dict[str, Any]:
        """Return the content as plain lists, dictionaries, text and numbers.

        Returns:
            The keys of the TOML file with their values, without keys that are not set.
        """
        content = dataclasses.asdict(self)
        for key in LATER:
            if getattr(self, key) == _DEFAULTS[key]:
                del content[key]
        return plain(content)

    def public(self, language: str | None = None) -> dict[str, Any]:
        """Return what a participant's browser may know.

        Args:
            language: One of :attr:`languages`; None, or any other: the first.

        Returns:
            Texts and sizes for the pages: no answers, no kinds of learner, no seed, nothing of the end.
        """
        texts = self.texts(language)
        return {
            "title": texts.title,
            "language": texts.language,
            "languages": self.language_names(),
            "palette": self.palette,
            "numbers": self.numbers,
            "hint": self.hint,
            "size": self.size,
            "values": self.values,
            "maps": len(self.maps),
            "robots": len(self.learners),
            "steps": self.steps,
            "warm_up_steps": self.warm_up_steps,
            "version": self.hash,
            "consent": dataclasses.asdict(texts.consent),
            "instructions": [plain(dataclasses.asdict(page)) for page in texts.instructions],
            "check": [{"question": asked.question, "options": list(asked.options)} for asked in texts.check],
        }

    def to_toml(self) -> str:
        """Return the content as a TOML file.

        Returns:
            Text that :func:`parse_config` reads back to the same hash.
        """
        return toml_text(self.as_dict() | {"quality": plain(dataclasses.asdict(self.quality))})  # defaults are stated


_DEFAULTS = {
    each.name: each.default if each.default_factory is dataclasses.MISSING else each.default_factory()
    for each in dataclasses.fields(Config)
}


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
        text = Path(shipped).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        allowed = f"give a TOML file, or a configuration that comes with ital: {' or '.join(SHIPPED)}"
        raise InputError(f"cannot read the configuration {path}: {reason}; {allowed}") from None
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
        return _config(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name} is not TOML: {error}") from None
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _config(content: Mapping[str, Any]) -> Config:
    """Check every key and build the configuration."""
    table = TomlTable("", content, Config)
    maps = tuple(map_of(each) for each in table.sections("maps", Map))
    warm_up_map = map_of(table.section("warm_up_map", Map))
    size, names = len(warm_up_map.rewards), [each.name for each in (*maps, warm_up_map)]
    for each in maps:
        if len(each.rewards) != size:
            raise InputError(
                f"maps must all have one size, but {each.name!r} has {len(each.rewards)} rows "
                f"and {warm_up_map.name!r} has {size}"
            )
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"maps and warm_up_map must have different names, but {twice!r} occurs twice")
    consent = table.section("consent", ConsentForm)
    adaptive = table.yes_or_no("adaptive")
    language = table.text("language", most=12)
    robots, steps = len(LEARNERS) + adaptive, table.whole("steps", 1, 1000)
    checks = table.sections("attention", AttentionCheck) if "attention" in content else []
    config = Config(
        name=table.slug("name"),
        title=table.text("title"),
        seed=table.whole("seed", 0, 2**32 - 1),
        maps=maps,
        warm_up_map=warm_up_map,
        consent=ConsentForm(consent.text("version", most=40), consent.text("text")),
        instructions=tuple(instruction_of(each) for each in table.sections("instructions", Instruction)),
        check=tuple(question_of(each) for each in table.sections("check", Question)),
        debriefing=table.text("debriefing"),
        completion=completion_of(table.section("completion", Completion)),
        steps=steps,
        warm_up_steps=table.whole("warm_up_steps", 1, 1000),
        warm_up_learner=table.one_of("warm_up_learner", (*LEARNERS, ADAPTIVE) if adaptive else LEARNERS),
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
        volume=table.one_of("volume", VOLUMES),
        world=physics_of(table.section("world", Physics)),
        language=language,
        words=_languages.check_words(language, content.get("words", {}), "words"),
        questionnaires=_questions.questionnaires_of(table),
        quality=quality_of(table.section("quality", Quality)),
        attention=attention_of(checks, tuple(each.name for each in maps), robots, steps),
        smallest_screen=table.whole("smallest_screen", 0, 10_000),
    )
    fields = _texts.fields_of(content.get("fields", {}), {**config.numbers_in_texts(), "map": 1, "robot": 1})
    config = dataclasses.replace(config, fields=fields)
    translations = {
        name: _texts.translation_of(each, config.texts(), config.given_fields())
        for name, each in table.tables("translations", Translation).items()
    }
    if language in translations:
        raise InputError(f"translations.{language} is the first language: its texts stand outside [translations]")
    config = dataclasses.replace(config, translations=translations)
    for name in config.languages:
        config.texts(name)  # every field is known
    return config
