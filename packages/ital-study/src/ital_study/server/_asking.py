"""Pages of questions: what a participant's page shows, and what is stored of the answers."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from ital_study.config import questions
from ital_study.config.configuration import Config
from ital_study.config.questions import Questionnaire
from ital_study.data.answers import read_answers
from ital_study.server._flow import Asked
from ital_study.server._markdown import parse_markdown
from ital_study.store.records import Event


def localized_page(asked: Asked, config: Config, language: str) -> Questionnaire:
    """Return a page of questions in a language, with the numbers of its map and robot."""
    # By index, because translations have the pages of the configuration in the same order.
    index = config.questionnaires.index(asked.page)
    page = config.texts(language).questionnaires[index]
    if asked.about is None:
        return questions.page_about(page, "", "")
    return questions.page_about(page, asked.about.map_number, asked.about.robot)


def page_questions(asked: Asked, config: Config, language: str) -> dict[str, Any]:
    """Return a page of questions for the browser."""
    page = localized_page(asked, config, language)
    items = [dataclasses.asdict(item) for item in page.items]
    return {
        "page": page.id,
        "place": asked.place,
        "title": page.title,
        "text": parse_markdown(page.text or ""),
        "items": [_without_missing(fields) for fields in items],
    }


def _without_missing(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def answers_event(
    asked: Asked,
    config: Config,
    language: str,
    answers: Mapping[str, Any],
    seconds: float | None,
) -> Event:
    """Return the event of an answered page.

    Raises InputError, with a sentence for the participant, if an answer is wrong.
    """
    data: dict[str, Any] = {"page": asked.page.id, "place": asked.place}
    if asked.about is not None:
        data["map"] = asked.about.map
        # A page after a map is about both of its robots, so none is named.
        if asked.page.when == "after_robot":
            data |= {"robot": asked.about.robot, "learner": asked.about.learner}
    page = localized_page(asked, config, language)
    data["answers"] = read_answers(page, answers)
    if seconds is not None:
        data["seconds"] = seconds
    return Event("answers", data)
