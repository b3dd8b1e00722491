"""The texts of a study in every language, with their fields filled in."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ital.errors import InputError
from ital_study.config import languages
from ital_study.config import questions as _questions
from ital_study.config.questions import Questionnaire, TranslatedQuestionnaire
from ital_study.config.sections import ConsentForm, Instruction, Question
from ital_study.config.toml import TomlTable

FIELD = re.compile(r"\{([a-z_]+)\}")
# What a researcher must replace before people take part.
PLACEHOLDER = re.compile(r"\[[^\[\]\n]*\](?!\()|CHANGE-ME")  # not the text of a link


@dataclass(frozen=True)
class TranslatedQuestion:
    """A question of the comprehension check in another language.

    Attributes:
        question: The question.
        options: The possible answers, in the order of the first language.
    """

    question: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class Translation:
    """The texts of a study in another language than its first: section ``[translations.LANGUAGE]``.

    Attributes:
        title: Title that participants see.
        consent: Text of the consent; its version is that of the first language.
        instructions: Pages of instructions; their pictures are those of the first language.
        check: Questions of the comprehension check.
        debriefing: Text at the end.
        words: Words of the pages that differ from those that come with ital.
        questionnaires: Pages of questions.
        fields: Values of fields that differ from those of the first language.
    """

    title: str
    consent: str
    instructions: tuple[Instruction, ...]
    check: tuple[TranslatedQuestion, ...]
    debriefing: str
    words: Mapping[str, str]
    questionnaires: tuple[TranslatedQuestionnaire, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)


class Texts(NamedTuple):
    """What participants read, in one language, with all fields filled in.

    Attributes:
        language: The language, as a tag such as ``de``.
        title: Title.
        consent: Consent form.
        instructions: Pages of instructions.
        check: Questions of the comprehension check.
        debriefing: Text at the end.
        questionnaires: Pages of questions; the fields of map and robot are filled in when a page is shown.
    """

    language: str
    title: str
    consent: ConsentForm
    instructions: tuple[Instruction, ...]
    check: tuple[Question, ...]
    debriefing: str
    questionnaires: tuple[Questionnaire, ...] = ()

    def all(self) -> Iterator[tuple[str, str]]:
        """Iterate over every text.

        Yields:
            The key of the text in the configuration, and the text.
        """
        yield "title", self.title
        yield "consent.text", self.consent.text
        for i, page in enumerate(self.instructions, start=1):
            yield f"instructions[{i}].title", page.title
            yield f"instructions[{i}].text", page.text
        for i, asked in enumerate(self.check, start=1):
            yield f"check[{i}].question", asked.question
            for option in asked.options:
                yield f"check[{i}].options", option
        yield "debriefing", self.debriefing
        for i, questions in enumerate(self.questionnaires, start=1):
            for text in _questions.texts_of(questions):
                yield f"questionnaires[{i}]", text


def fill(text: str, fields: Mapping[str, Any]) -> str:
    """Fill in the fields of a text, ``{name}``.

    Args:
        text: The text.
        fields: Values by name.

    Returns:
        The text with the values.

    Raises:
        InputError: The text names a field that there is not.
    """

    def value(match: re.Match[str]) -> str:
        if match[1] not in fields:
            raise InputError(
                f"the text {text[:40]!r} … has the unknown field {{{match[1]}}}: add it to [fields]"
            )
        return str(fields[match[1]])

    return FIELD.sub(value, text)


def filled(texts: Texts, fields: Mapping[str, Any]) -> Texts:
    """Fill in the fields of all texts.

    Args:
        texts: The texts.
        fields: Values by name.

    Returns:
        The texts with the values.
    """

    def new(text: str) -> str:
        return fill(text, fields)

    return Texts(
        language=texts.language,
        title=new(texts.title),
        consent=ConsentForm(texts.consent.version, new(texts.consent.text)),
        instructions=tuple(
            Instruction(new(page.title), new(page.text), page.picture)
            for page in texts.instructions
        ),
        check=tuple(
            Question(new(q.question), tuple(new(o) for o in q.options), q.answer)
            for q in texts.check
        ),
        debriefing=new(texts.debriefing),
        questionnaires=tuple(_filled_page(page, fields) for page in texts.questionnaires),
    )


def _filled_page(page: Questionnaire, fields: Mapping[str, Any]) -> Questionnaire:
    own_fields = {**fields, **_questions.later_fields(page)}
    return _questions.mapped(page, lambda text: fill(text, own_fields))


def translated(first: Texts, language: str, translation: Translation) -> Texts:
    """The texts in another language.

    Args:
        first: The texts in the first language, with answers and pictures.
        language: The other language.
        translation: Its texts.

    Returns:
        The translated texts.
    """
    pages = zip(first.instructions, translation.instructions, strict=True)
    questions = zip(first.check, translation.check, strict=True)
    return Texts(
        language=language,
        title=translation.title,
        consent=ConsentForm(first.consent.version, translation.consent),
        instructions=tuple(Instruction(page.title, page.text, was.picture) for was, page in pages),
        check=tuple(
            Question(asked.question, asked.options, was.answer) for was, asked in questions
        ),
        debriefing=translation.debriefing,
        questionnaires=tuple(
            map(_questions.translated, first.questionnaires, translation.questionnaires)
        ),
    )


def translation_of(table: TomlTable, first: Texts, known: Mapping[str, Any]) -> Translation:
    """Read a translation; it must have a counterpart of everything in the first language."""
    language = table.prefix.removesuffix(".").rpartition(".")[2]
    instructions = tuple(
        Instruction(each.text("title", most=200), each.text("text"))
        for each in table.sections("instructions", Instruction)
    )
    check = tuple(_question(each) for each in table.sections("check", TranslatedQuestion))
    for key, here, there in (
        ("instructions", len(instructions), len(first.instructions)),
        ("check", len(check), len(first.check)),
    ):
        if here != there:
            raise InputError(
                f"{table.prefix}{key} has {here} entries, but the first language has {there}"
            )
    for i, (asked, was) in enumerate(zip(check, first.check, strict=True), start=1):
        if len(asked.options) != len(was.options):
            raise InputError(
                f"{table.prefix}check[{i}].options has {len(asked.options)} answers, but the first language has "
                f"{len(was.options)}"
            )
    return Translation(
        title=table.text("title"),
        consent=table.text("consent"),
        instructions=instructions,
        check=check,
        debriefing=table.text("debriefing"),
        words=languages.check_words(
            language, table.content.get("words", {}), f"{table.prefix}words"
        ),
        questionnaires=_questions.translations_of(table, first.questionnaires),
        fields=fields_of(table.content.get("fields", {}), known, table.prefix),
    )


def _question(table: TomlTable) -> TranslatedQuestion:
    return TranslatedQuestion(table.text("question"), tuple(table.texts("options")))


def fields_of(content: Any, known: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Read ``[fields]``: texts by name."""
    if not isinstance(content, dict):
        raise InputError(f"{prefix}fields must be a table of texts, not {content!r}")
    for name, value in content.items():
        if not re.fullmatch("[a-z_]{1,40}", name) or name in known:
            raise InputError(
                f"{prefix}fields.{name} is no name for a field: use letters and _, but not {', '.join(known)}"
            )
        if not isinstance(value, str) or len(value) > 2000:
            raise InputError(f"{prefix}fields.{name} must be a text of at most 2000 characters")
    return dict(content)
