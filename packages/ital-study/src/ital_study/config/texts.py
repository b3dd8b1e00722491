"""The texts of a study in every language, with their fields filled in."""

import re
from collections.abc import Iterator, Mapping, Sequence
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
        questionnaires: Pages of questions; the fields of map and robot are filled in when a page is
            shown.
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
        for number, page in enumerate(self.instructions, start=1):
            yield f"instructions[{number}].title", page.title
            yield f"instructions[{number}].text", page.text
        for number, asked in enumerate(self.check, start=1):
            yield f"check[{number}].question", asked.question
            for option in asked.options:
                yield f"check[{number}].options", option
        yield "debriefing", self.debriefing
        for number, questions in enumerate(self.questionnaires, start=1):
            for text in _questions.texts_of_page(questions):
                yield f"questionnaires[{number}]", text


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
        name = match[1]
        if name not in fields:
            raise InputError(
                f"the text {text[:40]!r} … has the unknown field {{{name}}}: add it to [fields]"
            )
        return str(fields[name])

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

    instructions = []
    for page in texts.instructions:
        instructions.append(Instruction(new(page.title), new(page.text), page.picture))
    check = []
    for asked in texts.check:
        options = tuple(map(new, asked.options))
        check.append(Question(new(asked.question), options, asked.answer))
    return Texts(
        language=texts.language,
        title=new(texts.title),
        consent=ConsentForm(texts.consent.version, new(texts.consent.text)),
        instructions=tuple(instructions),
        check=tuple(check),
        debriefing=new(texts.debriefing),
        questionnaires=tuple(_filled_page(page, fields) for page in texts.questionnaires),
    )


def _filled_page(page: Questionnaire, fields: Mapping[str, Any]) -> Questionnaire:
    own_fields = {**fields, **_questions.later_fields(page)}
    return _questions.mapped(page, lambda text: fill(text, own_fields))


def translated(first: Texts, language: str, translation: Translation) -> Texts:
    """Return the texts in another language.

    Args:
        first: The texts in the first language, with answers and pictures.
        language: The other language.
        translation: Its texts.

    Returns:
        The translated texts.
    """
    instructions = []
    for original, page in zip(first.instructions, translation.instructions, strict=True):
        instructions.append(Instruction(page.title, page.text, original.picture))
    check = []
    for question, asked in zip(first.check, translation.check, strict=True):
        check.append(Question(asked.question, asked.options, question.answer))
    pages = map(
        _questions.translated_page,
        first.questionnaires,
        translation.questionnaires,
    )
    return Texts(
        language=language,
        title=translation.title,
        consent=ConsentForm(first.consent.version, translation.consent),
        instructions=tuple(instructions),
        check=tuple(check),
        debriefing=translation.debriefing,
        questionnaires=tuple(pages),
    )


def translation_of(table: TomlTable, first: Texts, taken: Mapping[str, Any]) -> Translation:
    """Read a translation; it must have a counterpart of everything in the first language.

    Args:
        table: Section ``[translations.LANGUAGE]``.
        first: The texts in the first language.
        taken: Names of fields that the translation may not give values to.

    Returns:
        The translation.
    """
    language = table.prefix.removesuffix(".").rpartition(".")[2]
    instructions = tuple(
        Instruction(page.text("title", most=200), page.text("text"))
        for page in table.sections("instructions", Instruction)
    )
    _check_count(f"{table.prefix}instructions", instructions, first.instructions)
    words = table.content.get("words", {})
    return Translation(
        title=table.text("title"),
        consent=table.text("consent"),
        instructions=instructions,
        check=_translated_check(table, first.check),
        debriefing=table.text("debriefing"),
        words=languages.check_words(language, words, f"{table.prefix}words"),
        questionnaires=_questions.translations_of(table, first.questionnaires),
        fields=fields_of(table.content.get("fields", {}), taken, table.prefix),
    )


def _translated_check(
    table: TomlTable, first: Sequence[Question]
) -> tuple[TranslatedQuestion, ...]:
    """Read the questions of the check, with as many answers as in the first language."""
    check = tuple(map(_translated_question, table.sections("check", TranslatedQuestion)))
    _check_count(f"{table.prefix}check", check, first)
    for number, (asked, original) in enumerate(zip(check, first, strict=True), start=1):
        answers = len(asked.options)
        answers_in_first = len(original.options)
        if answers != answers_in_first:
            raise InputError(
                f"{table.prefix}check[{number}].options has {answers} answers, "
                f"but the first language has {answers_in_first}"
            )
    return check


def _translated_question(table: TomlTable) -> TranslatedQuestion:
    return TranslatedQuestion(
        question=table.text("question"),
        options=tuple(table.texts("options")),
    )


def _check_count(key: str, entries: Sequence[Any], first: Sequence[Any]) -> None:
    if len(entries) != len(first):
        raise InputError(
            f"{key} has {len(entries)} entries, but the first language has {len(first)}"
        )


def fields_of(content: Any, taken: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Read ``[fields]``: texts by name.

    Args:
        content: What the file says.
        taken: Names that other keys give values to.
        prefix: What comes before the key in messages.

    Returns:
        The texts.
    """
    if not isinstance(content, dict):
        raise InputError(f"{prefix}fields must be a table of texts, not {content!r}")
    for name, value in content.items():
        if not re.fullmatch("[a-z_]{1,40}", name) or name in taken:
            raise InputError(
                f"{prefix}fields.{name} is no name for a field: use letters and _, "
                f"but not {', '.join(taken)}"
            )
        if not isinstance(value, str) or len(value) > 2000:
            raise InputError(f"{prefix}fields.{name} must be a text of at most 2000 characters")
    return dict(content)
