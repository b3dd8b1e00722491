import dataclasses
import json
import math

import numpy as np
import pytest

import ital_study as study
from ital.errors import InputError
from ital_study.config import questions as _questions
from ital_study.data import answers as _answers
from ital_study.server._flow import asked, asked_next, rounds, stage_after
from tests import questions
from tests.questions import ANSWERS, asking


def page(name, config=None):
    return next(one for one in (config or asking()).texts().questionnaires if one.id == name)


def test_written_and_read_back():
    config = asking()
    again = study.parse_config(config.to_toml())
    assert (again, again.hash) == (config, config.hash)


def test_a_study_without_questions_keeps_its_hash():
    config = study.parse_config(questions.bare())
    assert "questionnaires" not in config.to_toml()
    assert study.parse_config(questions.bare() + questions.TOML).hash != config.hash


def test_pages_do_not_know_later_questions():
    text = json.dumps(asking().public())
    assert "How old" not in text
    assert "understand you" not in text


def test_fields_and_languages():
    config = asking()
    assert page("you").text == f"Ask {config.fields['contact']} about these 2 maps."
    shown = _questions.page_about(page("robot"), 2, 1)
    assert (shown.title, shown.items[0].question) == ("Robot 1 on map 2", "How well did robot 1")
    in_german = _questions.page_about(config.texts("de").questionnaires[1], 2, 1)
    assert in_german.title == "Roboter 1"
    assert [(row.id, row.text) for row in in_german.items[0].rows] == [
        ("understood", "Sie verstanden?"),
        ("learned", "gelernt?"),
    ]
    assert in_german.items[0].scale[-1] == "sehr gut"
    assert config.texts("de").questionnaires[0].items[0].most == 120
    told = dict(config.texts("de").all())
    assert "Zuletzt" in [
        text for key, text in config.texts("de").all() if key == "questionnaires[4]"
    ]
    assert told["title"] == "Roboter"


REFUSED = [
    ('id = "gender"', 'id = "age"', "questions must have different ids, but 'age' occurs twice"),
    ('id = "map"', 'id = "you"', "questionnaires must have different ids, but 'you' occurs twice"),
    (
        'when = "end"',
        'when = "never"',
        "questionnaires[4].when must be one of before, after_robot, after_map, end",
    ),
    (
        'kind = "text"',
        'kind = "essay"',
        "questionnaires[4].items[2].kind must be one of single, multiple, likert",
    ),
    (
        "longest = 40",
        "scale = []",
        "items[2].scale does not belong to kind 'text': its own keys are longest",
    ),
    ("longest = 40", "longest = 0", "items[2].longest must be a whole number from 1 to 5000"),
    ("longest = 40", "length = 40", "unknown key questionnaires[4].items[2].length"),
    ("least = 18", "", "the key questionnaires[1].items[1].least is missing"),
    ("most = 120", "most = 17", "questionnaires[1].items[1].most must be a number at least 18"),
    (
        '["Woman", "Man", "Another"]',
        '["Woman"]',
        "items[2].options must be a list of 2 to 50 texts",
    ),
    ('"", "very well"]', '"", ""]', "items[1].scale must be a list of 2 to 11 labels"),
    (
        'id = "learned"',
        'id = "understood"',
        "rows must have different ids, but 'understood' occurs twice",
    ),
    ("{contact}", "{robot}", "unknown field {robot}"),
    ('title = "Map {map}"', 'title = "Robot {robot}"', "unknown field {robot}"),
    ('title = "At last"', "", "the key questionnaires[4].title is missing"),
]


@pytest.mark.parametrize(("old", "new", "message"), REFUSED)
def test_what_makes_no_questions_is_refused_by_name(old, new, message):
    assert old in questions.TOML
    with pytest.raises(InputError) as refused:
        study.parse_config(questions.bare() + questions.TOML.replace(old, new, 1))
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'id = "map"',
            'id = "card"',
            "questionnaires must be those of the first language, in its order: you, robot",
        ),
        (
            '{ id = "plan", question = "Wie?" }',
            "",
            "items must be those of the first language, in its order: hours",
        ),
        (', "Anderes"]', "]", "items[2].options must be a list of 3 to 3 texts"),
        (
            '"gar nicht", "",',
            '"gar nicht",',
            "items[1].scale must have 5 labels, as in the first language",
        ),
        ('"Sie verstanden?", ', "", "items[1].rows must be a list of 2 to 2 texts"),
        (
            'text = "Fragen an {contact}"',
            "",
            "translations.de.questionnaires[1].text must be a text",
        ),
        (
            questions.GERMAN,
            "",
            "translations.de.questionnaires must be those of the first language",
        ),
    ],
)
def test_a_translation_has_the_same_questions(old, new, message):
    first = questions.bare() + questions.TOML
    whole = first + questions.german(study.parse_config(questions.bare()))
    assert old in questions.GERMAN
    with pytest.raises(InputError) as refused:
        study.parse_config(whole + questions.GERMAN.replace(old, new, 1))
    assert message in str(refused.value)


@pytest.mark.parametrize("name", list(ANSWERS))
def test_valid_answers_are_stored_as_they_are(name):
    assert _answers.read_answers(page(name), ANSWERS[name]) == ANSWERS[name]


def test_blank_answers_count_as_none():
    assert _answers.read_answers(page("last"), {"hours": None, "plan": "  \n "}) == {}
    assert _answers.read_answers(page("map"), {"hard": []}) == {}
    given = _answers.read_answers(page("last"), {"plan": " a\x00b\ud800\r\nc "})
    assert given == {"plan": "ab\nc"}


WRONG = [
    ("you", {}, "Please answer “How old are you?”."),
    ("you", {"age": 17}, "Please answer “How old are you?” with a whole number from 18 to 120."),
    ("you", {"age": 34.5}, "whole number"),
    ("you", {"age": "34"}, "whole number"),
    ("you", {"age": True}, "whole number"),
    ("you", {"age": 34, "gender": 0}, "“What is your gender?” with one of the options"),
    ("you", {"age": 34, "gender": 4}, "“What is your gender?”"),
    ("you", {"age": 34, "gender": [1]}, "“What is your gender?”"),
    ("you", {"age": 34, "name": "x"}, "There is no question 'name' on this page."),
    ("robot", {}, "Please answer “How well did robot {robot}”."),
    ("robot", {"understanding": {"understood": 3}}, "one point of the scale in every row"),
    ("robot", {"understanding": {"understood": 3, "learned": 6}}, "one point of the scale"),
    (
        "robot",
        {"understanding": {"understood": 3, "learned": 1, "liked": 1}},
        "one point of the scale",
    ),
    ("robot", {"understanding": [3, 3]}, "one point of the scale"),
    ("map", {"hard": [1, 1]}, "some of the options"),
    ("map", {"hard": [4]}, "some of the options"),
    ("map", {"hard": 1}, "some of the options"),
    ("last", {"hours": float("nan")}, "a number from 0 to 24"),
    ("last", {"hours": float("inf")}, "a number from 0 to 24"),
    ("last", {"plan": "x" * 41}, "a text of at most 40 characters"),
    ("last", {"plan": 5}, "a text of at most 40 characters"),
]


@pytest.mark.parametrize(("name", "answers", "message"), WRONG)
def test_wrong_answers_are_refused_by_the_question(name, answers, message):
    with pytest.raises(InputError) as refused:
        _answers.read_answers(page(name), answers)
    assert message in str(refused.value)


def test_every_page_has_the_same_rows_of_the_table_whatever_is_answered():
    for one in asking().texts().questionnaires:
        full, none = _answers.cells_of(one, ANSWERS[one.id]), _answers.cells_of(one, {})
        assert [(cell.item, cell.wording) for cell in full] == [
            (cell.item, cell.wording) for cell in none
        ]
        assert all(math.isnan(cell.value) or cell.value == 0 for cell in none)
    cells = {
        cell.item: cell
        for one in asking().texts().questionnaires
        for cell in _answers.cells_of(one, ANSWERS[one.id])
    }
    assert {item: cell.value for item, cell in cells.items() if item != "plan"} == {
        "age": 34,
        "gender": 2,
        "understanding.understood": 4,
        "understanding.learned": 2,
        "hard.1": 1,
        "hard.2": 0,
        "hard.3": 1,
        "hours": 7.5,
    }
    labels = {item: cell.label for item, cell in cells.items()}
    assert (labels["gender"], labels["hard.2"], labels["plan"]) == (
        "Man",
        "The arrows",
        "By feeling",
    )
    assert cells["understanding.learned"].wording == "How well did robot {robot} learn?"


def test_drawn_answers_are_valid_and_follow_the_seed():
    for one in asking().texts().questionnaires:
        drawn = [_answers.draw_answers(one, np.random.default_rng(seed)) for seed in range(200)]
        for answers in drawn:
            assert _answers.read_answers(one, answers) == answers
        assert drawn[3] == _answers.draw_answers(one, np.random.default_rng(3))
    ages = {
        _answers.draw_answers(page("you"), np.random.default_rng(seed))["age"]
        for seed in range(2000)
    }
    assert (min(ages), max(ages)) == (18, 120)  # both ends


def course(config, order):
    """A participant's way, stage by stage, as the server counts it."""
    done, answered, way = 0, 0, []
    while True:
        stage = stage_after(config, order, done, answered)
        if stage == "comments":
            return way
        if stage == "questions":
            here = asked_next(config, order, done, answered)
            way.append((here.page.id, here.place))
            answered += 1
        else:
            way.append(
                next(one.id for one in rounds(config, order) if done < one.first + one.steps)
            )
            done += 1


def test_the_course():
    config = asking()
    assert course(config, "naive-aware") == [
        ("you", "start"),
        *["w"] * 2,
        *["1-1"] * 3,
        ("robot", "1-1"),
        *["1-2"] * 3,
        ("robot", "1-2"),
        ("map", "1"),
        *["2-1"] * 3,
        ("robot", "2-1"),
        *["2-2"] * 3,
        ("robot", "2-2"),
        ("map", "2"),
        ("last", "end"),
    ]
    assert [
        one.about.learner for one in asked(config, "naive-aware") if one.page.id == "robot"
    ] == [
        "naive",
        "aware",
        "aware",
        "naive",
    ]
    without = dataclasses.replace(config, questionnaires=())
    assert course(without, "naive-aware") == [
        place for place in course(config, "naive-aware") if isinstance(place, str)
    ]
