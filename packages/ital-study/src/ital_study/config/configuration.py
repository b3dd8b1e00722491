"""The study's configuration: one TOML file.

Every key is checked, and its hash is stored with each participant.
"""

import dataclasses
import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ital_study.config import languages as _languages
from ital_study.config import lineup as _lineup
from ital_study.config import texts as _texts
from ital_study.config.panel import Panel
from ital_study.config.parts import StudyPart
from ital_study.config.payment import Payment
from ital_study.config.quality import AttentionCheck, Quality
from ital_study.config.questions import Questionnaire
from ital_study.config.sections import (
    AssumedTeacher,
    Completion,
    ConsentForm,
    Instruction,
    Map,
    Physics,
    Question,
)
from ital_study.config.texts import Texts, Translation
from ital_study.config.toml import toml_content, toml_text

SHIPPED = ("paper", "short", "evidence")  # configurations that come with ital
ARROWS = ("boltzmann", "optimal")
VOLUMES = ("exact", "imitated")
LINKS = ("open", "signed")
MAP_ORDERS = ("fixed", "balanced")
PALETTES = ("safe", "paper")
# Keys added later: where they have their default values, older studies keep their hash.
LATER = (
    "adaptive",
    "robots",
    "volume",
    "assumed_teacher",
    "language",
    "fields",
    "words",
    "translations",
    "questionnaires",
    "quality",
    "attention",
    "smallest_screen",
    "panel",
    "completion.per_person",
    "links",
    "payment",
    "map_order",
    "parts",
)


@dataclass(frozen=True)
class Config:
    """A study. Made by :func:`load_config`; ``docs/study/index.md`` explains every key.

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
        arrows: Directions of arrows: ``boltzmann``, drawn from the true policy, or ``optimal``, its
            best ones.
        palette: Colours of the maps: ``safe`` or ``paper``.
        numbers: Whether maps show numbers.
        hint: Whether pages show the machine's pick after a step.
        release_after_minutes: Minutes of inactivity after which a slot is free again.
        intake: Maximum number of live participants; None: no limit.
        adaptive: Whether there is an adaptive robot on every map, in a study that names no robots.
        robots: Kinds of robot on every map; none: the naive and the aware one.
        volume: Teaching volume that robots assume their teacher uses: ``exact`` or ``imitated``.
        assumed_teacher: How the robot ``ital-posterior`` takes its teacher to choose.
        world: How the robot moves and plans.
        language: The first language, that of the texts outside ``translations``.
        fields: Values of the fields ``{name}`` in texts.
        words: Words of the pages in the first language that differ from those that come with ital.
        translations: Texts in other languages.
        questionnaires: Pages of questions.
        quality: Thresholds of the flags of data quality.
        attention: Attention checks between steps.
        smallest_screen: Width in pixels below which people are asked for a larger screen; 0: never.
        panel: Where participants come from.
        links: Who may take part: ``open``, anybody; ``signed``, those with a link of their own,
            which ``ital study links`` made.
        payment: What people are paid, by how their part ended.
        map_order: Order of the maps: ``fixed``, that of the file, or ``balanced`` over
            participants.
        parts: Sessions of the study; none: one session with all maps.
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
    robots: tuple[str, ...] = ()
    volume: str = "exact"
    assumed_teacher: AssumedTeacher = field(default_factory=AssumedTeacher)
    world: Physics = field(default_factory=Physics)
    language: str = "en"
    fields: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    translations: Mapping[str, Translation] = field(default_factory=dict)
    questionnaires: tuple[Questionnaire, ...] = ()
    quality: Quality = field(default_factory=Quality)
    attention: tuple[AttentionCheck, ...] = ()
    smallest_screen: int = 560
    panel: Panel = field(default_factory=Panel)
    links: str = "open"
    payment: Payment = field(default_factory=Payment)
    map_order: str = "fixed"
    parts: tuple[StudyPart, ...] = ()

    @property
    def learners(self) -> tuple[str, ...]:
        """The kinds of robot on every map."""
        return _lineup.study_kinds(self.robots, adaptive=self.adaptive)

    @property
    def size(self) -> int:
        """Cells along one side of a map."""
        return len(self.warm_up_map.rewards)

    @property
    def part_sizes(self) -> tuple[int, ...]:
        """The number of maps in each part."""
        if not self.parts:
            return (len(self.maps),)
        return tuple(len(part.maps) for part in self.parts)

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
            language=self.language,
            title=self.title,
            consent=self.consent,
            instructions=self.instructions,
            check=self.check,
            debriefing=self.debriefing,
            questionnaires=self.questionnaires,
        )
        # A study's own values of fields replace those that follow from other keys.
        fields = self.given_fields() | dict(self.fields)
        if language is not None and language in self.translations:
            texts = _texts.translated(texts, language, self.translations[language])
            fields |= self.translations[language].fields
        return _texts.filled(texts, fields)

    @property
    def values(self) -> tuple[float, float]:
        """The least and the largest value of a cell."""
        cells: list[float] = []
        for each in self.all_maps:
            cells += each.cells
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
        return {language: self.words_in(language)["name"] for language in self.languages}

    @functools.cached_property
    def hash(self) -> str:
        """SHA-256 of the content; it does not depend on the layout of the file."""
        content = json.dumps(self.as_dict(), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    def as_dict(self) -> dict[str, Any]:
        """Return the content as plain lists, dictionaries, text and numbers.

        Returns:
            The keys of the TOML file with their values, without keys that are not set.
        """
        content = dataclasses.asdict(self)
        for key in LATER:
            section, _, name = key.rpartition(".")
            record: Any = self
            table = content
            if section:
                record = getattr(self, section)
                table = content[section]
            if getattr(record, name) == _default(record, name):
                del table[name]
        return toml_content(content)

    def public(self, language: str | None = None) -> dict[str, Any]:
        """Return what a participant's browser may know.

        Args:
            language: One of :attr:`languages`; None, or any other: the first.

        Returns:
            Texts and sizes for the pages: no answers, no kinds of learner, no seed, nothing of the
            end.
        """
        texts = self.texts(language)
        return {
            "title": texts.title,
            "panel": self.panel.name,
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
            "instructions": [toml_content(dataclasses.asdict(page)) for page in texts.instructions],
            "check": [
                {"question": asked.question, "options": list(asked.options)}
                for asked in texts.check
            ],
        }

    def to_toml(self) -> str:
        """Return the content as a TOML file.

        Returns:
            Text that :func:`parse_config` reads back to the same hash.
        """
        # The thresholds are stated even where they are defaults: readers of the file want to know
        # them.
        thresholds = toml_content(dataclasses.asdict(self.quality))
        return toml_text(self.as_dict() | {"quality": thresholds})


def _default(record: Any, name: str) -> Any:
    """Return the value of a key that is left out."""
    field_of_key = next(each for each in dataclasses.fields(record) if each.name == name)
    if field_of_key.default_factory is dataclasses.MISSING:
        return field_of_key.default
    return field_of_key.default_factory()
