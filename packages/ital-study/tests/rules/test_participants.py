import asyncio

import httpx
import pytest

import ital_study as study
from ital.errors import InputError
from ital_study.simulation import arms
from ital_study.simulation import participants as _participants
from tests.rules.fake_server import FakeServer

URL = "http://study.test"


@pytest.fixture(scope="module")
def short():
    return study.load_config("short")


def go(server, config, teacher="machine", participants=3, **options):
    options = {"key": "sesame", "transport": httpx.MockTransport(server), **options}
    who = arms.teacher(teacher, default=config.beta)
    return asyncio.run(_participants.take_part(URL, config, who, participants, **options))


def choices_of(server, number):
    return {
        label: [choice for n, r, _, choice in server.stored if (n, r) == (number, label)]
        for label, *_ in server.plan
    }


def test_machines_choose_over_http_as_they_do_in_process(short):
    server = FakeServer(short)
    outcome = go(server, short)
    assert outcome.finished == 3
    assert outcome.ends == ["finished"] * 3
    assert {person["teacher"] for person in server.people.values()} == {"machine"}
    ran = arms.run(short, 3, [arms.teacher("machine", default=1.0)], rules=server.rules)
    for i in range(3):
        for label, choices in choices_of(server, i + 1).items():
            if label == "w":
                assert len(choices) == short.warm_up_steps
                continue
            where, robot = (int(part) - 1 for part in label.split("-"))
            assert choices == ran.trace.choice[i, where, robot].tolist()
    summary = outcome.summary()
    assert summary["steps"] == len(server.stored) == len(outcome.acknowledged) == 3 * (3 + 4 * 8)
    assert 0 < summary["median_ms"] <= summary["p99_ms"] <= summary["slowest_ms"]


@pytest.mark.parametrize("teacher", ["random", "boltzmann:20"])
def test_dice_differ_between_participants_and_repeat_with_the_seed(short, teacher):
    servers = [FakeServer(short) for _ in range(3)]
    for server, seed in zip(servers, (1, 1, 2), strict=True):
        go(server, short, teacher, participants=2, seed=seed, at_once=1)
    first, again, other = ([choices_of(server, number) for number in (1, 2)] for server in servers)
    assert first == again
    assert first != other
    assert first[0] != first[1]


def test_a_server_in_trouble_does_not_end_them_and_no_step_counts_twice(short):
    server = FakeServer(short, trouble=0.05, seed=3)
    outcome = go(server, short, participants=4)
    assert outcome.finished == 4
    assert outcome.retries > 10
    assert len(server.people) == 4
    assert len({step[:3] for step in server.stored}) == len(server.stored) == 4 * 35
    numbers = {name: person["number"] for name, person in server.people.items()}
    assert {(numbers[name], *step) for name, *step in outcome.acknowledged} <= set(server.stored)


def test_they_come_back_to_where_they_were(short):
    server = FakeServer(short)
    seen = []

    def interrupt(steps):
        seen.append(steps)
        if steps == 20:
            raise InputError("enough")

    with pytest.raises(InputError, match="enough"):
        go(server, short, participants=1, names=["someone"], show=interrupt)
    assert len(server.stored) == 20
    outcome = go(server, short, participants=1, names=["someone"])
    assert outcome.finished == 1
    assert len(outcome.acknowledged) == 15
    assert len(server.people) == 1


def test_a_limit_of_time_ends_a_load_test(short):
    server = FakeServer(short)

    async def stuck(request):
        if len(server.stored) >= 20:
            await asyncio.Event().wait()
        return await server(request)

    transport = httpx.MockTransport(stuck)
    outcome = go(
        server, short, participants=5, think=0.001, ramp=0.01, limit=0.7, transport=transport
    )
    assert outcome.finished == 0
    assert len(outcome.acknowledged) == len(server.stored) <= 20
    assert outcome.seconds >= 0.7


def test_what_cannot_work_is_said_in_a_line(short):
    with pytest.raises(
        InputError, match=r"the server refused /api/join: The key is not right\. \(status 403\)"
    ):
        go(FakeServer(short), short, key="wrong")
    with pytest.raises(InputError, match="the server runs another configuration"):
        go(FakeServer(short), study.load_config())
    with pytest.raises(InputError, match="must begin with http"):
        asyncio.run(
            _participants.take_part(
                "study.db", short, arms.teacher("machine", default=1.0), 1, key="sesame"
            )
        )
    with pytest.raises(
        InputError, match=r"no answer from the server for 0\.2 s \(the server is down\)"
    ):
        go(FakeServer(short, trouble=1.0), short, patience=0.2)
    elsewhere = httpx.MockTransport(lambda request: httpx.Response(200, text="<html>"))
    with pytest.raises(InputError, match="is not a study: its answer has no stage"):
        go(FakeServer(short), short, transport=elsewhere)
