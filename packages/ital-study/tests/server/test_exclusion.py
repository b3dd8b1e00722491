"""Exclusions, attention checks and flags: what the server stores, and who counts."""

import asyncio
import dataclasses
import functools
import json

import pytest
from typer.testing import CliRunner

from ital.cli import app
from ital.errors import InputError
from ital_study import StudyRules, teacher
from ital_study.cli.analysis import read_source
from ital_study.config import quality
from ital_study.data import flags
from ital_study.data.left_out import left_out
from ital_study.robots import attention
from ital_study.simulation import participants as _participants
from ital_study.store import exclusions, open_store, operations
from ital_study.store.export import export_study, import_study
from ital_study.store.step_rows import rules_of
from ital_study.store.tables import participants
from tests.server.conftest import serve
from tests.server.people import (
    SIMULATION_KEY,
    Person,
    Refusal,
    Researcher,
    tiny,
    words,
)
from tests.server.test_access import POSTS, everything


def two_who_finished(url):
    with serve(url) as client:
        for _ in range(2):
            Person(client, tiny()).join().begin().finish()


def excluded(url):
    with open_store(url) as store, store.reading() as connection:
        return {each.number: each.excluded for each in operations.everyone(connection)}


def test_excluding_frees_the_order_and_is_audited(filled, url, served):
    filled(two_who_finished)
    with served(url) as client:
        researcher = Researcher(client, tiny()).log_in()
        orders = {row["order"] for row in researcher.overview("live")["orders"]}
        assert len(orders) == 2
        for reason in ("plays music loudly", "came twice"):
            answer = researcher.post("/api/admin/exclude", {"number": 2, "reason": reason})
            assert answer.json() == {"number": 2, "excluded": reason}
        assert researcher.post("/api/admin/unblind", {}).status_code == 200
        told = researcher.overview("live")
        assert [row["excluded"] for row in told["participants"]] == [None, "came twice"]
        # The steps are complete; the exclusion stands beside it.
        assert told["participants"][1]["usable"]
        assert told["intake"]["usable"] == 1
        assert sum(row["usable"] for row in told["orders"]) == 1
        assert {
            curve["n"] for by_learner in told["curves"].values() for curve in by_learner.values()
        } == {1}
        third = Person(client, tiny()).join().begin()
        assert third.state["stage"] == "warm_up"
        assert {
            row["order"] for row in researcher.overview("live")["orders"]
        } == orders  # the freed one again
        assert researcher.post("/api/admin/exclude", {"number": 2}).json() == {
            "number": 2,
            "excluded": None,
        }
        assert researcher.overview("live")["intake"]["usable"] == 2
        entries = researcher.get("audit").json()["entries"]
        assert [(entry["action"], entry["number"], entry["detail"]) for entry in entries] == [
            ("included", 2, ""),
            ("unblinded", None, ""),
            ("excluded", 2, "came twice"),
            ("excluded", 2, "plays music loudly"),
        ]


def test_what_is_refused(filled, url, served):
    filled(two_who_finished)
    with served(url) as client:
        researcher = Researcher(client, tiny()).log_in()
        for body, status in (
            ({"number": 9, "reason": "nobody"}, 404),
            ({"number": 1, "reason": "   "}, 422),
            ({"number": 1, "reason": "two\nlines"}, 422),
            ({"number": 1, "reason": "x" * 501}, 422),
            ({"number": 1, "reason": ""}, 422),
        ):
            assert researcher.post("/api/admin/exclude", body).status_code == status, body
    assert excluded(url) == {1: None, 2: None}


def test_an_excluded_person_gives_the_place_to_somebody_else(url, served):
    """With one place, a second person comes in once the first is excluded, who goes no further."""
    one_place = tiny(intake=1)
    with served(url, one_place) as client:
        first = Person(client, one_place).join(ids={"id": "first"}).begin().teach(3)
        assert Person(client, one_place).join(ids={"id": "second"}).state["stage"] == "closed"
        researcher = Researcher(client, one_place).log_in()
        researcher.post("/api/admin/exclude", {"number": 1, "reason": "asked for help"})
        assert Person(client, one_place).join(ids={"id": "second"}).state["stage"] == "consent"
        with pytest.raises(Refusal) as refused:
            first.step()
        assert (refused.value.status, refused.value.code) == (409, "excluded")
        assert researcher.overview("live")["participants"][0]["excluded"] == "asked for help"
        assert researcher.overview("live")["intake"]["usable"] == 0


STAGES = {
    "consent": lambda one: one,
    "instructions": lambda one: one.consent(),
    "check": lambda one: one.consent().read(),
    "warm_up": lambda one: one.begin(),
    "teach": lambda one: one.begin().teach(3),
    "comments": lambda one: one.begin().teach(),
    "failed_check": lambda one: one.consent().read().answer(right=False).answer(right=False),
    "finished": lambda one: one.begin().finish(),
}


def exclude_by_command(url):
    """The server does not know yet that everybody is excluded: a command did it."""
    everybody = participants.update().values(excluded="rude")
    with open_store(url) as store:
        store.write(lambda connection: connection.execute(everybody))


def arrive(client, stages):
    """Somebody at every stage, by its name."""
    return {name: go(Person(client, tiny()).join(ids={"id": name})) for name, go in stages.items()}


def leave_and_keep(one):
    one.do("/api/leave", {"keep": True})
    return one


def test_at_every_stage_an_exclusion_acts_at_the_next_request(url, served):
    with served(url) as client:
        people = arrive(client, STAGES)
        assert all(one.state["stage"] == name for name, one in people.items())
        exclude_by_command(url)
        before = everything(url)
        for name, one in people.items():
            for path, body in POSTS.items():
                if path == "leave":
                    continue
                answer = one.post(f"/api/{path}", body)
                assert answer.status_code == 409, (name, path)
                assert answer.json()["code"] == "excluded"
                told = answer.json()["state"]
                assert told["stage"] == "excluded"
                assert not {"scene", "questions", "check", "consent"} & told.keys()
                assert ("completion" in told) == (name in ("comments", "failed_check", "finished"))
                assert ("debriefing" in told) == (name != "consent")
            assert one.look()["stage"] == leave_and_keep(one).state["stage"] == "excluded"
        assert everything(url) == before
        researcher = Researcher(client, tiny()).log_in()
        number = next(row.number for row in before["participants"] if row.stage == "teach")
        researcher.post("/api/admin/exclude", {"number": number})
        assert people["teach"].look()["stage"] == "teach"  # included again: the study continues
        assert people["teach"].step()["progress"]["done"] == 4


def test_at_every_end_people_read_what_the_study_was_about_and_may_withdraw(url, served):
    earned = ("comments", "failed_check", "finished", "left")
    with served(url) as client:
        people = arrive(
            client, {**STAGES, "left": lambda one: leave_and_keep(one.begin().teach(2))}
        )
        about = words(tiny().texts().debriefing)
        assert all(words(people[name].state["debriefing"]) == about for name in earned[1:])
        exclude_by_command(url)
        for name, one in people.items():
            one.join(ids={"id": name})
            proves = one.state["resume_code"] is not None
            assert proves == (name != "consent")
            gone = one.do("/api/leave", {"keep": False})
            assert (gone["stage"], gone["deleted"], "debriefing" in gone) == ("left", True, proves)
            assert ("completion" in gone) == (name in earned)
        assert everything(url)["participants"] == []
        again = Person(client, tiny()).join(ids={"id": "left"})
        assert again.state["stage"] == "deleted"
        assert words(again.state["debriefing"]) == about


def test_exclusions_survive_export_and_import(filled, url, tmp_path):
    filled(two_who_finished)
    with open_store(url) as store:
        store.write(lambda connection: exclusions.exclude(connection, 1, " Too young. "))
        with pytest.raises(InputError, match="there is no participant 5"):
            store.write(lambda connection: exclusions.exclude(connection, 5, "nobody"))
        export_study(store, tmp_path / "one")
    with open_store(str(tmp_path / "copy.db"), create=True) as copy:
        import_study(copy, tmp_path / "one")
        export_study(copy, tmp_path / "two")
    assert excluded(str(tmp_path / "copy.db")) == {1: "Too young.", 2: None}
    for file in ("steps.csv", "participants.csv", "codebook.md", "study.toml"):
        assert (tmp_path / "one" / file).read_text() == (tmp_path / "two" / file).read_text()


def test_the_commands(filled, url, tmp_path):
    filled(two_who_finished)
    run = CliRunner().invoke
    for arguments, said in (
        (
            ["exclude", "2", "--reason", "took part twice"],
            "participant 2 is excluded: took part twice",
        ),
        (["exclude", "1", "--reason", "too young"], "participant 1 is excluded: too young"),
        (["include", "1"], "participant 1 is included"),
    ):
        told = run(app, ["study", *arguments, "--database", url])
        assert (told.exit_code, told.stdout.strip()) == (0, said)
    assert run(app, ["study", "exclude", "2", "--database", url]).exit_code == 2
    assert excluded(url) == {1: None, 2: "took part twice"}
    with open_store(url) as store:
        export_study(store, tmp_path / "data")
    # Analyses of the database and of the export leave out the same.
    for source in (url, str(tmp_path / "data")):
        data, _ = read_source(source, "live")
        reasons = left_out(data.config, data.steps, data.participants).reasons
        assert reasons[["participant", "reason", "decided"]].values.tolist() == [
            [2, "took part twice", "later"]
        ]
    codebook = (tmp_path / "data" / "codebook.md").read_text()
    assert (
        f"Configuration `{tiny().hash}`; participants are left out of the filtered analysis by: "
        "`attention`." in codebook
    )
    assert "| `flag_too_fast` |" in codebook


# Attention checks


def check(step=2, choose="top-left", **changes):
    return quality.AttentionCheck(map="A", robot=1, step=step, choose=choose, **changes)


@functools.cache
def attentive():
    """The tiny study with two checks with the first robot on map A: before step 1 and before step
    2.
    """
    return tiny(attention=(check(1, "bottom-right"), check(2)))


def answer(person, right=True):
    scene = person.state["scene"]
    cells = [arrow["cell"] for arrow in scene["arrows"]]
    choice = attention.right_choice(scene["attention"], cells, scene["size"])
    return person.do(
        "/api/attention", person.step_body(choice if right else (choice + 1) % len(cells))
    )


def events(url, number, kind):
    with open_store(url) as store, store.reading() as connection:
        return [event.data for event in operations.events_of(connection, number, kind)]


def test_a_check_comes_between_steps_and_no_robot_sees_it(url, served):
    with served(url, attentive()) as client:
        asked = Person(client, attentive()).join().begin().teach(2)
        before = asked.state["scene"]
        assert (before["attention"], before["first_of_round"]) == ("bottom-right", True)
        with pytest.raises(Refusal) as refused:  # nobody gets past it
            asked.step()
        assert (refused.value.status, refused.value.body["state"]["scene"]) == (409, before)
        assert asked.look()["scene"] == before
        body = asked.step_body(0)
        with pytest.raises(Refusal) as refused:
            asked.do("/api/attention", body | {"choice": 10})
        assert refused.value.status == 422
        answer(asked)
        after = asked.state["scene"]
        assert after["attention"] is None
        assert after["belief"] == before["belief"]
        # A repeated request changes nothing.
        assert asked.do("/api/attention", body)["scene"] == after
        asked.step(choice=4)
        belief = asked.state["scene"]["belief"]
        assert asked.state["scene"]["attention"] == "top-left"
        assert answer(asked, right=False)["scene"]["belief"] == belief
        asked.teach()
        assert asked.state["stage"] == "comments"
    told = events(url, 1, "attention")
    assert [(data["check"], data["choose"], data["passed"]) for data in told] == [
        (0, "bottom-right", True),
        (1, "top-left", False),
    ]
    assert [(data["round"], data["step"]) for data in told] == [("1-1", 0), ("1-1", 1)]


def test_checks_change_neither_arrows_nor_beliefs(url, served):
    """With and without checks, the arrows are those of the rules of the study without checks."""
    stored = []
    for config in (attentive(), tiny()):
        with served(url, config) as client:
            person = Person(client, config).join()
            rows = []
            person.begin()
            while person.state["stage"] in ("warm_up", "teach"):
                if person.state["scene"].get("attention"):
                    answer(person)
                    continue
                rows.append(
                    (
                        person.state["scene"]["round"],
                        [arrow["cell"] for arrow in person.state["scene"]["arrows"]],
                    )
                )
                person.step(choice=1)
            stored.append(rows)
    for number, rows in enumerate(stored, start=1):
        expected = [
            [arrow.cell for arrow in step] for step in StudyRules(tiny()).candidates(number, "A")
        ]
        assert [cells for round_id, cells in rows if round_id in ("1-1", "1-2")] == expected * 2


def test_after_a_restart_an_answered_check_is_not_asked_again(url, served):
    with served(url, attentive()) as client:
        person = Person(client, attentive()).join(ids={"id": "one"}).begin().teach(2)
        answer(person)
    with served(url, attentive()) as client:
        again = Person(client, attentive()).join(ids={"id": "one"})
        assert again.state["scene"]["attention"] is None
        assert again.step(choice=0)["scene"]["attention"] == "top-left"


def test_simulated_participants_pass(url, served):
    with served(url, attentive()) as client:
        run = _participants.take_part(
            str(client.base_url), attentive(), teacher("random", default=1.0), 2, key=SIMULATION_KEY
        )
        outcome = asyncio.run(run)
    assert (outcome.finished, len(outcome.acknowledged)) == (2, 2 * attentive().total_steps)
    assert [data["passed"] for number in (1, 2) for data in events(url, number, "attention")] == [
        True
    ] * 4


def test_flags_on_the_dashboard_use_the_thresholds_of_the_study(url, served):
    """All steps without times come from a script; the check is failed."""
    config = tiny(
        attention=(check(),), quality=quality.Quality(least_steps=12, exclude=("by_script",))
    )
    with served(url, config) as client:
        person = Person(client, config).join().begin().teach(3)
        answer(person, right=False)
        person.finish()
        told = Researcher(client, config).log_in().overview("live")
    assert told["participants"][0]["flags"][:2] == ["attention", "by_script"]
    assert told["flags"]["attention"] == "failed attention checks, 1 or more"
    with open_store(url) as store, store.reading() as connection:
        columns = exclusions.quality_of(
            connection, rules_of(connection), operations.find(connection, number=1)
        )
    assert (columns["attention_failed"], columns["excluded_by_rule"]) == (1, "by_script")
    assert columns.keys() == flags.COLUMNS.keys()
    assert json.dumps(columns)
    assert dataclasses.asdict(config)["quality"]["least_steps"] == 12
