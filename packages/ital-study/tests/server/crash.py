"""Repeated kill −9 of the server at random moments under load."""

import asyncio
import contextlib
import multiprocessing
import os
import random
import signal
from typing import NamedTuple

import httpx
import sqlalchemy as sa

from ital_study import StudyRules
from ital_study.cli.serve import listen
from ital_study.server import _flow
from ital_study.server._keys import Keys
from ital_study.simulation import arms
from ital_study.simulation import participants as _participants
from ital_study.store import open_store
from ital_study.store.tables import participants as participants_table
from ital_study.store.tables import steps as steps_table
from ital_study.store.verification import verify
from tests.server.people import PASSWORD, SECRET, SIMULATION_KEY, cheap_hash


class Survived(NamedTuple):
    outcome: _participants.CrowdOutcome
    kills: int
    stored_at_kills: list[int]


READY = multiprocessing.get_context("forkserver")
READY.set_forkserver_preload(
    ["ital.cli", "ital_study.server", "ital_study.store", "alembic.command", "uvicorn"]
)


def _serve(arguments, environment, log):
    """``ital`` in a process that has already imported what it needs."""
    import jax

    from ital.cli import main

    os.environ.update(environment)
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for output in (1, 2):
        os.dup2(handle, output)
    # Compiled programs are read, not written: a killed process must not leave a half-written
    # program to others.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 1e9)
    main(arguments)


class Server:
    """``ital study serve`` in a separate process, always on the same port."""

    def __init__(self, url, folder, config):
        probe, self.address = listen("127.0.0.1", 0)
        probe.close()
        (folder / "study.toml").write_text(config.to_toml(), encoding="utf-8")
        port = self.address.rpartition(":")[2]
        arguments = [
            "study",
            "serve",
            "--config",
            str(folder / "study.toml"),
            "--database",
            url,
            "--port",
            port,
        ]
        environment = {
            "ITAL_STUDY_PASSWORD": cheap_hash(PASSWORD),
            "ITAL_STUDY_SECRET": SECRET.decode(),
            "ITAL_STUDY_SIMULATION_KEY": SIMULATION_KEY,
            "ITAL_STUDY_FOLDER": str(folder),
        }
        self.told = arguments, environment, str(folder / "server.log")
        self.process = None
        StudyRules(config).warm_up()  # compiled here, where it is kept for all

    async def start(self, most=120.0):
        self.process = READY.Process(target=_serve, args=self.told)
        self.process.start()
        async with asyncio.timeout(most), httpx.AsyncClient(base_url=self.address) as client:
            while True:
                assert self.process.is_alive(), "the server ended by itself: see server.log"
                with contextlib.suppress(httpx.TransportError):
                    if (await client.get("/api/state")).status_code == 401:
                        return
                await asyncio.sleep(0.05)

    def kill(self):
        """As kill −9 does."""
        self.process.kill()
        self.process.join()
        assert self.process.exitcode == -signal.SIGKILL

    def close(self):
        if self.process is not None and self.process.is_alive():
            self.kill()


async def survive(url, folder, config, *, kills, participants, think, seed, longest=1.5):
    """Run a study with that many kills, then let everybody finish."""
    server, rng, stored = Server(url, folder, config), random.Random(seed), []
    teacher = arms.teacher("random", default=config.beta)
    try:
        await server.start()
        crowd = asyncio.create_task(
            _participants.take_part(
                server.address,
                config,
                teacher,
                participants,
                key=SIMULATION_KEY,
                think=think,
                seed=seed,
                patience=3600.0,  # the server may be down more often than not
            )
        )
        for _ in range(kills):
            await asyncio.sleep(rng.uniform(0.1, longest))
            assert not crowd.done(), "everybody was done before the last kill"
            server.kill()
            stored.append(await asyncio.to_thread(count_steps, url))
            await server.start()
        return Survived(await crowd, kills, stored)
    finally:
        server.close()


def count_steps(url):
    """Steps in the database, read by a process other than the server."""
    with open_store(url) as store, store.reading() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(steps_table)).scalar_one()


def check(url, config, survived):
    """No acknowledged step is missing or duplicated, everybody finished, and a replay equals what
    is stored.
    """
    outcome = survived.outcome
    assert outcome.finished == outcome.participants
    assert outcome.catch_ups == 0  # nobody ever saw an unexpected state
    told = [(one.participant, one.round, one.step, one.choice) for one in outcome.acknowledged]
    assert len(told) == len({one[:3] for one in told}) == outcome.participants * config.total_steps
    assert set(told) == stored_steps(url, config, {one[0] for one in told})
    with open_store(url) as store:
        report = verify(store)
    assert report.problems == []
    assert report.steps == len(told)


def stored_steps(url, config, names):
    """What the database holds of participants, in the words in which it was acknowledged."""
    hashes = {Keys(SECRET).external_hash("id", name): name for name in names}
    with open_store(url) as store, store.reading() as connection:
        people = {row.number: row for row in connection.execute(sa.select(participants_table))}
        rows = connection.execute(sa.select(steps_table)).all()
    ids = {
        number: {(one.map, one.learner): one.id for one in _flow.rounds(config, row.order)}
        for number, row in people.items()
    }
    return {
        (
            hashes[people[row.participant].external_hash],
            ids[row.participant][row.map, row.learner],
            row.step - 1,
            row.choice,
        )
        for row in rows
    }
