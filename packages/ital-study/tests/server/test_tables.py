"""The tables of participants and answers, as they are exported."""

import io
import json
import math

import pandas as pd
import pytest

from ital_study.analysis import measures
from ital_study.cli.analysis import read_source
from ital_study.data import codebooks
from ital_study.data import table as _table
from ital_study.report import page
from ital_study.store import export, open_store, tables
from tests.questions import asking
from tests.server.conftest import serve
from tests.server.people import Person, Researcher, forge, tiny

SCREEN = {"kind": "screen", "data": {"width": 1280, "height": 720, "pointer": "fine"}}


def with_answers(url):
    with serve(url, asking()) as client:
        one = Person(client, asking()).join().begin()
        one.post(
            "/api/events", {"events": [SCREEN, {"kind": "focus_lost"}, {"kind": "focus_lost"}]}
        )
        forge(url, (1, "comments", "client", '{"text": "forged"}'))
        one.reply(seconds=12.5)
        one.through().do("/api/comments", {"text": "Fun."})
        two = Person(client, asking()).join(language="de").begin()
        two.reply({"age": 50})
        two.through(1)
        Person(client, asking()).join()
        Person(client, asking()).join().consent().read().answer(right=False).answer()
        forge(url, (4, "screen", "client", f'{{"width": {"9" * 400}, "height": 1}}'))
        forge(url, (4, "screen", "client", r'{"width": "wide", "pointer": "\ud800"}'))
        Person(client, asking()).simulate().begin().through().do("/api/comments", {"text": ""})


@pytest.fixture
def studied(url, filled):
    filled(with_answers)
    return url


def read(url, file, columns, mode="live"):
    with open_store(url) as store:
        text = b"".join(export.stream(store, file, mode)).decode()
    return _table.read_csv(io.StringIO(text), columns)


def test_one_row_per_participant(studied):
    table = read(studied, "participants.csv", codebooks.PARTICIPANTS)
    assert list(table.columns) == list(codebooks.PARTICIPANTS)
    assert table["participant"].tolist() == [1, 2, 3, 4]
    assert table["stage"].tolist() == ["finished", "warm_up", "consent", "questions"]
    assert table["usable"].tolist() == [True, False, False, False]
    assert table["language"].tolist() == ["en", "de", "en", "en"]
    assert table["done"].tolist() == [14, 1, 0, 0]
    assert table["answered"].tolist() == [8, 1, 0, 0]
    assert table["tries"].tolist() == [1, 1, 0, 2]
    assert table["focus_losses"].tolist() == [2, 0, 0, 0]
    assert table["comment_length"].tolist() == [4, 0, 0, 0]
    assert table["unreadable_rows"].tolist() == [1, 0, 0, 2]
    assert table["screen_width"].tolist()[:1] == [1280]
    assert table[["screen_width", "screen_height"]].iloc[1:].isna().all(axis=None)
    assert table["pointer"].tolist() == ["fine", "", "", ""]
    assert (table["order"] != "").tolist() == [True, True, False, True]
    assert (table["consent_at"] != "").tolist() == [True, True, False, True]
    assert (table["finished_at"] != "").tolist() == [True, False, False, False]
    first = table.iloc[0]
    assert first["joined_at"] <= first["consent_at"] < first["finished_at"]
    took = pd.Timestamp(first["finished_at"]) - pd.Timestamp(first["consent_at"])
    assert first["minutes"] == pytest.approx(took.total_seconds() / 60)
    assert read(studied, "participants.csv", codebooks.PARTICIPANTS, "simulated")[
        "teacher"
    ].tolist() == ["random"]
    assert read(studied, "participants.csv", codebooks.PARTICIPANTS, "pilot").empty


def test_one_row_per_question(studied):
    table = read(studied, "answers.csv", codebooks.ANSWERS)
    assert list(table.columns) == list(codebooks.ANSWERS)
    first = table[table["participant"] == 1]
    assert not first.duplicated(["place", "page", "item"]).any()
    assert len(first) == 2 + 4 * 2 + 2 * 3 + 2
    row = first[(first["item"] == "understanding.understood") & (first["place"] == "2-1")].iloc[0]
    assert (row["map"], row["robot"], row["value"], row["kind"]) == (
        asking().maps[1].name,
        "1",
        4,
        "likert",
    )
    assert row["wording"] == "How well did robot 1 understand you?"
    steps = read(studied, "steps.csv", _table.CODEBOOK)
    taught = steps[
        (steps["participant"] == 1) & (steps["map"] == row["map"]) & (steps["robot"] == 1)
    ]
    assert row["learner"] == taught["learner"].iloc[0]
    by_item = first.set_index("item")
    assert (by_item.loc["age", "value"], by_item.loc["gender", "label"]) == (34, "Man")
    assert (by_item.loc["plan", "label"], math.isnan(by_item.loc["plan", "value"])) == (
        "By feeling",
        True,
    )
    assert (by_item.loc["age", "seconds"], math.isnan(by_item.loc["plan", "seconds"])) == (
        12.5,
        True,
    )
    options = first[first["item"].str.startswith("hard.") & (first["map"] == asking().maps[0].name)]
    assert options[["value", "label"]].to_numpy().tolist() == [
        [1, "The colours"],
        [0, "The arrows"],
        [1, "The robot"],
    ]
    in_german = table[table["participant"] == 2]
    assert in_german["wording"].tolist() == ["Wie alt sind Sie?", "Was ist Ihr Geschlecht?"]
    assert (in_german["value"].iloc[0], math.isnan(in_german["value"].iloc[1])) == (50, True)
    assert set(read(studied, "answers.csv", codebooks.ANSWERS, "simulated")["mode"]) == {
        "simulated"
    }


def test_an_unanswered_multiple_choice_is_no_choice_against_every_option(url, filled):
    filled(_who_leaves_out_what_is_optional)
    table = read(url, "answers.csv", codebooks.ANSWERS).set_index("item")
    options = table.loc[["hard.1", "hard.2", "hard.3"]]
    assert options["value"].isna().all()
    assert set(options["label"]) == {""}
    assert len(options) == 3 * len(asking().maps)


def test_answers_of_older_versions_are_read_as_they_would_be_stored_now(url, tmp_path):
    """They may have held halves of characters, carriage returns, and empty lists.

    A forged place is skipped.
    """
    texts = {"end": r"\udc00 half", "2": r"two\rlines\u0000", "start": r"\t=1+1"}
    with serve(url, asking()) as client:
        Person(client, asking()).join().begin()
    stored = [
        f'{{"page": "last", "place": "{place}", "answers": {{"plan": "{text}"}}}}'
        for place, text in texts.items()
    ]
    stored += [
        '{"page": "map", "place": "1", "map": "A", "answers": {"hard": []}}',
        r'{"page": "map", "place": "\ud800", "map": "A", "answers": {}}',
        r'{"page": "map", "place": "1", "learner": "\ud800", "answers": {}}',
    ]
    forge(url, *((1, "answers", "server", data) for data in stored))
    with open_store(url) as store:
        store.write(lambda c: c.execute(tables.participants.update().values(answered=4)))
        export.export_study(store, tmp_path / "out", "live")
    for table in (
        read(url, "answers.csv", codebooks.ANSWERS),
        _table.read_study(tmp_path / "out").answers,
    ):
        plans = table[table["item"] == "plan"].set_index("place")["label"]
        assert plans.to_dict() == {"end": "half", "2": "twolines", "start": "=1+1"}
        assert table[table["page"] == "map"]["value"].isna().tolist() == [True] * 3
    assert read(url, "participants.csv", codebooks.PARTICIPANTS)["unreadable_rows"].tolist() == [2]


def _who_leaves_out_what_is_optional(url):
    with serve(url, asking()) as client:
        person = Person(client, asking()).join().begin()
        while person.state["stage"] in ("questions", "warm_up", "teach"):
            asked = person.state.get("questions")
            person.reply({} if asked["page"] == "map" else None) if asked else person.step()


def test_the_codebook_has_the_wording_of_every_item(studied):
    with open_store(studied) as store:
        text = b"".join(export.stream(store, "codebook.md", "live")).decode()
    items = set(read(studied, "answers.csv", codebooks.ANSWERS)["item"])
    for item in items:
        assert text.count(f"| `{item}` |") == 2, item  # in two languages
    for said in (
        "How old are you?",
        "Wie alt sind Sie?",
        "1 Woman; 2 Man; 3 Another",
        "1 gar nicht; 5 sehr gut",
    ):
        assert said in text
    for name in (*_table.COLUMNS, *codebooks.PARTICIPANTS, *codebooks.ANSWERS):
        assert f"| `{name}` |" in text


def test_export_import_and_export_again_is_the_same(studied, tmp_path):
    with open_store(studied) as store:
        export.export_study(store, tmp_path / "first", "live")
    with open_store(str(tmp_path / "copy.db"), create=True) as store:
        assert export.import_study(store, tmp_path / "first") == 4
        export.export_study(store, tmp_path / "second", "live")
    for name in ("participants.csv", "answers.csv", "events.jsonl", "codebook.md", "study.toml"):
        assert (tmp_path / "first" / name).read_bytes() == (
            tmp_path / "second" / name
        ).read_bytes(), name
    answers = _table.read_study(tmp_path / "first").answers
    pd.testing.assert_frame_equal(
        answers, read(studied, "answers.csv", codebooks.ANSWERS), check_exact=True
    )
    records = [
        json.loads(line) for line in (tmp_path / "first" / "events.jsonl").read_text().splitlines()
    ]
    told = [record["data"]["place"] for record in records if record.get("kind") == "answers"]
    assert told == ["start", "1-1", "1-2", "1", "2-1", "2-2", "2", "end", "start"]


def test_the_report_has_a_section_of_answers(sqlite_url, served, tmp_path):
    with served(sqlite_url, asking()) as client:
        for _ in range(2):
            Person(client, asking()).join().begin().through()
    with open_store(sqlite_url) as store:
        export.export_study(store, tmp_path / "out", "live")
    found = [
        measures.analyze(read_source(source, "live")[0], "live")
        for source in (sqlite_url, str(tmp_path / "out"))
    ]
    pd.testing.assert_frame_equal(found[0].answers, found[1].answers, check_exact=True)
    [section] = [part for part in page.sections(found[0]) if part["id"] == "answers"]
    assert "How well did robot … learn?" in json.dumps(section, ensure_ascii=False)


def test_the_researcher_downloads_them(sqlite_url, served):
    with served(sqlite_url) as client:
        Person(client, tiny()).join()
        researcher = Researcher(client, tiny()).log_in()
        table = researcher.get("export/participants.csv")
        assert table.headers["content-type"] == "text/csv; charset=utf-8"
        assert table.text.startswith("participant,mode,teacher")
        assert len(table.text.splitlines()) == 2
        assert researcher.get("export/answers.csv").text.splitlines() == [
            ",".join(codebooks.ANSWERS)
        ]
