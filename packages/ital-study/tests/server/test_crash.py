"""kill −9: nothing that was acknowledged is lost or duplicated."""

import asyncio

import pytest

from ital_study.store import open_store
from ital_study.store.answers_table import answers_table
from tests.questions import asking
from tests.server import crash, postgres
from tests.server.people import tiny


def test_a_few_kills(url, tmp_path):
    config = asking(steps=6)
    survived = asyncio.run(
        crash.survive(
            url, tmp_path, config, kills=2, participants=12, think=0.15, seed=1, longest=0.6
        )
    )
    crash.check(url, config, survived)
    assert survived.outcome.retries > 0  # the kills were felt
    with open_store(url) as store:
        answers = answers_table(store, "simulated")
    assert (answers.groupby(["participant"])["place"].nunique() == 8).all()
    assert not answers.duplicated(["participant", "place", "item"]).any()
    assert answers["participant"].nunique() == 12


@pytest.mark.slow
def test_fifty_kills(url, tmp_path):
    config = tiny(steps=150, warm_up_steps=10)  # more than anybody can do before the last kill
    survived = asyncio.run(
        crash.survive(
            url, tmp_path, config, kills=50, participants=40, think=0.2, seed=2, longest=3.0
        )
    )
    crash.check(url, config, survived)
    print(
        f"\n{survived.kills} kills, {len(survived.outcome.acknowledged)} steps, "
        f"{survived.outcome.retries} retries"
    )
    assert survived.outcome.retries > 50


@pytest.mark.slow
def test_postgresql_that_is_killed_itself_loses_nothing(tmp_path, monkeypatch):
    """The database stops under the running server and comes back; the server continues."""
    if postgres.binaries() is None:
        pytest.skip(postgres.MISSING)
    monkeypatch.setenv("ITAL_STUDY_FOLDER", str(tmp_path))
    cluster = postgres.Cluster(durable=True)
    try:
        with cluster.new() as url:
            config = tiny(steps=20)
            asyncio.run(_with_restarts(cluster, url, tmp_path, config))
            with open_store(url) as store:
                assert len(store.steps_table("simulated")) == 10 * 80
    finally:
        cluster.stop()


async def _with_restarts(cluster, url, folder, config):
    from ital_study.simulation import arms, participants

    server = crash.Server(url, folder, config)
    try:
        await server.start()
        teacher = arms.teacher("random", default=config.beta)
        crowd = asyncio.create_task(
            participants.take_part(
                server.address, config, teacher, 10, key=crash.SIMULATION_KEY, think=0.1
            )
        )
        for _ in range(3):
            await asyncio.sleep(1.0)
            await asyncio.to_thread(cluster.restart)
        outcome = await crowd
    finally:
        server.close()
    crash.check(url, config, crash.Survived(outcome, 3, []))
