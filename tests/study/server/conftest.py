import contextlib
import threading
import time

import httpx
import pytest
import uvicorn

from ital.study._cli_server import listen
from ital.study.store import open_store
from tests.study.server import people, postgres


@pytest.fixture(scope="session")
def cluster():
    if postgres.binaries() is None:
        pytest.skip(postgres.MISSING)
    running = postgres.Cluster()
    yield running
    running.stop()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path, monkeypatch):
    """An empty database, once of either kind; the files beside it are in a folder of the test's own."""
    monkeypatch.setenv("ITAL_STUDY_FOLDER", str(tmp_path))
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'study.db'}"
    else:
        with request.getfixturevalue("cluster").new() as address:
            yield address


@pytest.fixture
def sqlite_url(tmp_path):
    return f"sqlite:///{tmp_path / 'study.db'}"


@pytest.fixture
def store(url):
    with open_store(url, create=True) as opened:
        yield opened


@contextlib.contextmanager
def running(app):
    """A real server in a thread, and a client for it."""
    listening, address = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, access_log=False, log_level="error", server_header=False))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        assert server.started, "the server did not start"
        with httpx.Client(base_url=address, timeout=30) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@pytest.fixture
def served():
    """Starts servers inside the test: ``with served(url) as client``."""
    from ital.study.server import create_app

    def serve(url, config=None, **changes):
        return running(create_app(config or people.tiny(), url, people.settings(**changes)))

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
