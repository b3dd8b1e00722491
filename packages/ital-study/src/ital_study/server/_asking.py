"""Pages of questions: what a participant's page shows, and what is stored of the answers."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from ital_study.config import questions
from ital_study.config.configuration import Config
from ital_study.config.questions import Questionnaire
from ital_study.data.answers import read_answers
from ital_study.server._flow import Asked
from ital_study.server._markdown import blocks
from ital_study.store.records import Event


def shown_page(asked: Asked, config: Config, language: str) -> Questionnaire:
    """A page of questions in a participant's language, with the numbers of its map and robot."""
    page = config.texts(language).questionnaires[config.questionnaires.index(asked.page)]
    about = asked.about
    return questions.at_place(
        page, "" if about is None else about.map_number, "" if about is None else about.robot
    )


def page_questions(asked: Asked, config: Config, language: str) -> dict[str, Any]:
    """A page of questions for the browser."""
    page = shown_page(asked, config, language)
    items = [
        {key: value for key, value in dataclasses.asdict(item).items() if value is not None}
        for item in page.items
    ]
    text = [] if page.text is None else blocks(page.text)
    return {
        "page": page.id,
        "place": asked.place,
        "title": page.title,
        "text": text,
        "items": items,
    }


def answers_event(
    asked: Asked, config: Config, language: str, answers: Mapping[str, Any], seconds: float | None
) -> Event:
    """The event of an answered page; raises InputError, with a sentence for the participant, if an answer is wrong."""
    data: dict[str, Any] = {"page": asked.page.id, "place": asked.place}
    if asked.about is not None:
        data["map"] = asked.about.map
    if asked.about is not None and asked.page.when == "after_robot":
        data |= {"robot": asked.about.robot, "learner": asked.about.learner}
    data["answers"] = read_answers(shown_page(asked, config, language), answers)
    return Event("answers", data | ({} if seconds is None else {"seconds": seconds}))
