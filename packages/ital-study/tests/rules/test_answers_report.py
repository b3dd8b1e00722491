import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ital.report import html
from ital_study.analysis import answers_report
from ital_study.analysis.measures import LABELS, robots
from ital_study.config import questions
from ital_study.data import answers as _answers
from ital_study.data import codebooks, table
from tests.questions import asking

NAMES = [(learner, LABELS[learner]) for learner in robots(asking())]


def rows_of(number, page, answers, **place):
    shown = questions.page_about(page, 1, place.get("robot", ""))
    kinds = {item.id: item.kind for item in page.items}
    for cell in _answers.cells_of(shown, answers):
        yield {
            "participant": number,
            "mode": "live",
            "teacher": "human",
            "page": page.id,
            "kind": kinds[cell.item.partition(".")[0]],
            **place,
            **cell._asdict(),
        }


@pytest.fixture(scope="module")
def points():
    """What six people said about aware and naive robots on two maps."""
    return np.random.default_rng(0).integers(1, 6, (6, 2, 2))


@pytest.fixture(scope="module")
def answers(points):
    pages, rows = {page.id: page for page in asking().texts().questionnaires}, []
    for number, person in enumerate(points, start=1):
        rows += rows_of(number, pages["you"], {"age": 20 + number, "gender": 1 + number % 2})
        rows += rows_of(number, pages["last"], {"plan": "a secret thought"} if number == 1 else {})
        for on, (aware, naive) in zip("AE", person, strict=True):
            rows += rows_of(number, pages["map"], {"hard": [1]}, map=on)
            for robot, (learner, point) in enumerate(
                {"aware": aware, "naive": naive}.items(), start=1
            ):
                judged = {"understanding": {"understood": int(point), "learned": 3}}
                rows += rows_of(
                    number, pages["robot"], judged, map=on, robot=str(robot), learner=learner
                )
    return table.frame(
        pd.DataFrame(rows).reindex(columns=list(codebooks.ANSWERS)), codebooks.ANSWERS
    )


def test_distributions_and_paired_differences(answers, points):
    distributions, compared, _ = answers_report.blocks(asking(), answers, NAMES)
    told = {(row[0], row[1]): row[2:] for row in distributions["rows"]}
    assert told["How old are you?", ""] == ["6", "mean 23.5 ± 1.9 (SD), from 21 to 26"]
    assert told["What is your gender?", ""] == [
        "6",
        "Woman: 3 (50 %), Man: 3 (50 %), Another: 0 (0 %)",
    ]
    assert told["What was hard on map …? The colours", ""] == ["12", "chosen in 100 %"]
    assert told["What was hard on map …? The robot", ""] == ["12", "chosen in 0 %"]
    assert told["How did you choose?", ""] == ["1", "texts"]
    assert ("How many hours did you sleep?", "") not in told
    understood = "How well did robot … understand you?"
    assert told[understood, "ITAL"][1].startswith(f"mean {points[..., 0].mean():.1f} ± ")
    assert told[understood, "IMT"][0] == "12"
    row = next(row for row in compared["rows"] if row[0] == understood)
    aware, naive = points.mean(axis=1).T
    low, high = stats.ttest_rel(aware, naive).confidence_interval()
    shown = [
        f"{value:.2f}".replace("-", "−")
        for value in (aware.mean(), naive.mean(), (aware - naive).mean())
    ]
    assert row[1:6] == ["ITAL − IMT", *shown[:2], "6", shown[2]]
    assert row[6] == f"{low:.2f} … {high:.2f}".replace("-", "−")


def test_what_people_wrote_is_not_in_the_report(answers):
    blocks = answers_report.blocks(asking(), answers, NAMES)
    page = html(blocks, "answers")
    assert "secret thought" not in page
    assert "answers.csv" in page


def test_only_participants_who_count_and_only_with_data(answers):
    steps = pd.DataFrame({"participant": [2, 2, 3], "mode": "live", "teacher": "human"})
    kept = answers_report.answers_of(answers, steps)
    assert sorted(kept["participant"].unique()) == [2, 3]
    assert len(kept) == len(answers[answers["participant"].isin([2, 3])])
    assert answers_report.answers_of(answers, steps.assign(mode="simulated")) is None
    assert answers_report.answers_of(None, steps) is None
    assert answers_report.blocks(asking(), None, NAMES) == []


def test_one_participant_gives_no_interval(answers):
    blocks = answers_report.blocks(asking(), answers[answers["participant"] == 1], NAMES)
    assert [block["kind"] for block in blocks] == ["table", "paragraph"]
