import asyncio
import contextlib
import functools
import shutil
import threading

import httpx
import pytest
import sqlalchemy as sa
import uvicorn

from ital_study.cli.serve import listen
from ital_study.store import open_store
from tests.server import people, postgres


@pytest.fixture(scope="session")
def cluster():
    if postgres.binaries() is None:
        pytest.skip(postgres.MISSING)
    running = postgres.Cluster()
    yield running
    running.stop()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path, monkeypatch):
    """An empty database, once of each kind; the files beside it are in the test's own folder."""
    monkeypatch.setenv("ITAL_STUDY_FOLDER", str(tmp_path))
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'study.db'}"
    else:
        with request.getfixturevalue("cluster").new() as address:
            yield address


@pytest.fixture(scope="session")
def _made():
    """Databases that tests copy at their start, by kind and by the function that made them."""
    return {}


@pytest.fixture
def filled(url, request, tmp_path, tmp_path_factory, monkeypatch, _made):
    """``filled(make)`` copies the database that ``make(url)`` filled, and returns what that did.

    The original is made once, and copied with the files beside it for every test.
    """

    def fill(make):
        sqlite = url.startswith("sqlite")
        if (sqlite, make) not in _made:
            folder = tmp_path_factory.mktemp("made")
            source = (
                f"sqlite:///{folder / 'study.db'}"
                if sqlite
                else request.getfixturevalue("cluster").lasting()
            )
            with monkeypatch.context() as patch:
                patch.setenv("ITAL_STUDY_FOLDER", str(folder))
                _made[sqlite, make] = source, folder, make(source)
        source, folder, gave = _made[sqlite, make]
        names = [sa.make_url(one).database for one in (source, url)]
        if not sqlite:
            request.getfixturevalue("cluster").copy(*names)
        for file in folder.iterdir():
            shutil.copy2(file, tmp_path / (file.name if sqlite else file.name.replace(*names)))
        return gave

    return fill


@pytest.fixture
def sqlite_url(tmp_path):
    return f"sqlite:///{tmp_path / 'study.db'}"


@pytest.fixture
def store(url):
    with open_store(url, create=True) as opened:
        yield opened


@functools.cache
def _loop():
    """The event loop of all servers of a worker, in a thread of its own."""
    # log_config None: setting logging up again would close handlers that write to the captured
    # output of earlier tests.
    loop = (uvicorn.Config(None, log_config=None).get_loop_factory() or asyncio.new_event_loop)()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    return loop, thread


@pytest.fixture(scope="session", autouse=True)
def _the_loop_ends():
    yield
    if _loop.cache_info().currsize:
        loop, thread = _loop()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        _loop.cache_clear()


class _Server(uvicorn.Server):
    """uvicorn's server without its pauses: it starts at once and stops as soon as nobody is
    connected.
    """

    async def begin(self, listening):
        self.config.load()
        self.lifespan = self.config.lifespan_class(self.config)
        with contextlib.suppress(SystemExit):
            await self.startup([listening])
            await self.on_tick(0)

    async def end(self):
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        while self.server_state.connections or self.server_state.tasks:
            await asyncio.sleep(0.001)
        await self.lifespan.shutdown()


@contextlib.contextmanager
def running(app):
    """A real server, and a client for it."""
    loop, _ = _loop()
    listening, address = listen("127.0.0.1", 0)
    server = _Server(
        uvicorn.Config(
            app, log_config=None, access_log=False, log_level="error", server_header=False
        )
    )
    try:
        asyncio.run_coroutine_threadsafe(server.begin(listening), loop).result()
        assert server.started, "the server did not start"
        with httpx.Client(base_url=address, timeout=30) as client:
            yield client
    finally:
        if server.started:
            asyncio.run_coroutine_threadsafe(server.end(), loop).result(60)
        listening.close()


def serve(url, config=None, **changes):
    """A server of that database: ``with serve(url) as client``."""
    from ital_study.server import create_app

    return running(create_app(config or people.tiny(), url, people.settings(**changes)))


@pytest.fixture
def served():
    return serve


@pytest.fixture
def client(url, served):
    with served(url) as one:
        yield one


@pytest.fixture
def person(client):
    return lambda config=None: people.Person(client, config or people.tiny())


@pytest.fixture
def researcher(client):
    return people.Researcher(client, people.tiny()).log_in()
