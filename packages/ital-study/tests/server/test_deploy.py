"""The files of deploy/: they can be read, and their commands run here with other paths."""

import configparser
import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import ssl
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import yaml

from ital_study.cli import folder as _folder
from ital_study.cli.serve import listen
from tests.server.people import Person, cheap_hash, tiny

DEPLOY = Path(__file__).parents[2] / "deploy"
UNITS = ("ital-study.service", "ital-study-backup.service", "ital-study-backup.timer")


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "my-study"
    _folder.create(made, "short")
    (made / "study.toml").write_text(tiny().to_toml(), encoding="utf-8")
    (made / "password").write_text(cheap_hash("good enough"))
    return made


def free_port():
    probe, address = listen("127.0.0.1", 0)
    probe.close()
    return address.rpartition(":")[2]


def here(command, changes):
    """A command for this machine: its own interpreter, other paths, and nothing else."""
    words = list(command)
    if Path(words[0]).name == "ital":
        words[0:1] = [sys.executable, "-m", "ital"]
    for there, ours in changes.items():
        words = [word.replace(there, ours) for word in words]
    return words


@contextlib.contextmanager
def started(command, environment=None):
    """The address of a server that was started by a command, and what it printed."""
    settings = {
        name: value for name, value in os.environ.items() if not name.startswith("ITAL_STUDY")
    }
    process = subprocess.Popen(
        command, env={**settings, **(environment or {})}, stderr=subprocess.PIPE, text=True
    )
    try:
        said = []
        for line in process.stderr:
            said.append(line)
            if "dashboard http://" in line:
                break
        else:
            raise AssertionError("".join(said))
        yield re.search(r"dashboard (http://\S+)/dashboard", said[-1])[1], "".join(said)
    finally:
        process.terminate()
        process.wait(30)
        process.stderr.close()
    assert process.returncode == -signal.SIGTERM


def unit(name):
    """The sections of a unit. A key that occurs twice keeps its last value."""
    parsed = configparser.ConfigParser(strict=False, interpolation=None)
    parsed.optionxform = str
    parsed.read(DEPLOY / name)
    return parsed


def test_the_units_serve_and_back_up(folder):
    port = free_port()
    paths = {"/var/lib/ital-study": str(folder)}
    serve = here(shlex.split(unit("ital-study.service")["Service"]["ExecStart"]), paths)
    with (
        started([*serve, "--port", port]) as (address, _),
        httpx.Client(base_url=address) as client,
    ):
        assert client.get("/health").json() == {"state": "ready"}
        assert Person(client, tiny()).join().state["mode"] == "live"
        service = unit("ital-study-backup.service")["Service"]
        subprocess.run(
            here(shlex.split(service["ExecStart"]), paths), check=True, capture_output=True
        )
        [backup] = (folder / "backups").iterdir()
        (old := backup.with_name("study-20200101-000000.backup")).touch()
        os.utime(old, (0, 0))
        subprocess.run(here(shlex.split(service["ExecStartPost"]), paths), check=True)
        assert list((folder / "backups").iterdir()) == [backup]


def test_systemd_understands_the_units(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd on this machine")
    for name in UNITS:
        text = (
            (DEPLOY / name)
            .read_text(encoding="utf-8")
            .replace("/opt/ital/bin/ital", shutil.which("true"))
        )
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = subprocess.run(
        [
            "systemd-analyze",
            "verify",
            "--recursive-errors=no",
            *(tmp_path / name for name in UNITS),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (
        found.returncode,
        [line for line in found.stderr.splitlines() if str(tmp_path) in line],
    ) == (0, [])


@pytest.fixture
def compose():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))


def test_compose_has_a_proxy_secrets_volumes_and_a_health_check(compose):
    services = compose["services"]
    assert set(services) == {"study", "proxy", "backup"}
    assert "ports" not in services["study"]  # only the proxy can be reached
    assert compose["networks"]["inside"] == {"internal": True}
    assert services["study"]["secrets"] == list(compose["secrets"])
    assert {"${STUDY_FOLDER}/password"} == {
        secret["file"] for secret in compose["secrets"].values()
    }
    assert all(service["restart"] == "always" for service in services.values())
    recipe = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    command = json.loads(re.search(r"^CMD (\[.*\])$", recipe, re.MULTILINE)[1])
    assert command == services["study"]["command"]
    health = json.loads(re.search(r"^HEALTHCHECK .*CMD (\[.*\])$", recipe, re.MULTILINE)[1])
    assert ["CMD", *health] == services["study"]["healthcheck"]["test"]


def test_the_commands_of_compose_serve_check_and_back_up(compose, folder):
    services, port = compose["services"], free_port()
    paths = {"/study": str(folder), "0.0.0.0": "127.0.0.1", "8000": port}
    study = services["study"]
    environment = {
        name: value.replace("/run/secrets/ital_study_password", str(folder / "password"))
        for name, value in study["environment"].items()
    }
    environment["ITAL_STUDY_ORIGIN"] = "https://localhost"
    health = [sys.executable, *here(study["healthcheck"]["test"][2:], paths)]
    with started(here(study["command"], paths), environment) as (address, said):
        assert "participants come to https://localhost/" in said
        assert subprocess.run(health, capture_output=True, check=False).returncode == 0
        shell = here(services["backup"]["command"], {"/study": str(folder), "sleep 3600": "exit"})
        shell[-1] = shell[-1].replace("ital study", f"{sys.executable} -m ital study")
        subprocess.run(shell, check=True, capture_output=True)
        assert len(list((folder / "backups").iterdir())) == 1
        if shutil.which("caddy"):
            through_caddy(services["proxy"]["command"], address.removeprefix("http://"), folder)
    assert subprocess.run(health, capture_output=True, check=False).returncode != 0


def through_caddy(command, backend, folder):
    """The proxy's own command, with a certificate of its own making."""
    port = free_port()
    words = here(command, {"${STUDY_HOST}": f"localhost:{port}", "study:8000": backend})
    home = {
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder / "caddy"),
        "XDG_CONFIG_HOME": str(folder / "caddy"),
    }
    caddy = subprocess.Popen(
        [*words, "--internal-certs"], env={**os.environ, **home}, stderr=subprocess.PIPE, text=True
    )
    try:
        unsigned = ssl.create_default_context()
        unsigned.check_hostname, unsigned.verify_mode = False, ssl.CERT_NONE
        transport = httpx.HTTPTransport(verify=unsigned, retries=8)
        with httpx.Client(base_url=f"https://localhost:{port}", transport=transport) as client:
            person = Person(client, tiny())
            joined = person.request("POST", "/api/join", {}, Origin="https://localhost")
            assert joined.status_code == 200
            assert "Secure" in joined.headers["set-cookie"]
    finally:
        caddy.terminate()
        said = caddy.communicate(timeout=20)[1]
    assert "/api/join" not in said  # no access log
