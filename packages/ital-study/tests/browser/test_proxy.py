"""The study behind a real nginx with TLS, with the files of deploy/: under a path, and on a host of
its own.
"""

import contextlib
import csv
import http.client
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import HURRY, PACKAGE, PASSWORD, Person, study_config
from tests.server.people import cheap_hash

DEPLOY = PACKAGE / "deploy"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def nginx():
    for place in (shutil.which("nginx"), "/usr/sbin/nginx"):
        if place and Path(place).exists() and shutil.which("openssl"):
            return place
    pytest.skip(
        "there is no nginx, or no openssl, on this machine "
        "(Debian: apt install nginx-light openssl)"
    )


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate that nobody signed, and its key."""
    folder = tmp_path_factory.mktemp("certificate")
    subprocess.run(
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost "
        "-keyout privkey.pem -out fullchain.pem",
        shell=True,
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder


def settled(name, folder, backend):
    """A file of deploy/ for this machine: other paths and another port, nothing else."""
    text = (DEPLOY / name).read_text(encoding="utf-8")
    return text.replace("127.0.0.1:8000", backend).replace("/var/log/nginx", str(folder))


@contextlib.contextmanager
def proxy(nginx, folder, site):
    """nginx with this site, until the end."""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = " ".join(f"{kind}_temp_path {folder / kind};" for kind in kinds)
    user = "user root;" if os.getuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"{user} pid {folder}/pid; error_log {folder}/error.log; events {{}}\n"
        f"http {{ {places} access_log {folder}/access.log;\n{site}\n}}\n"
    )
    process = subprocess.Popen(
        [
            nginx,
            "-e",
            folder / "error.log",
            "-p",
            folder,
            "-c",
            folder / "nginx.conf",
            "-g",
            "daemon off;",
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for _ in range(200):
            assert process.poll() is None, process.stderr.read()
            if (folder / "pid").exists() and (folder / "pid").read_text():
                break
            time.sleep(0.05)
        yield
    finally:
        process.send_signal(signal.SIGQUIT)
        process.wait(20)
        process.stderr.close()


class Study:
    """``ital study serve`` as it is typed, on one port."""

    def __init__(self, folder, config, origin):
        self.folder, self.port = folder, free_port()
        (folder / "study.toml").write_text(config.to_toml(), encoding="utf-8")
        self.environment = {
            **os.environ,
            "ITAL_STUDY_PASSWORD": cheap_hash(PASSWORD),
            "ITAL_STUDY_ORIGIN": origin,
        }

    def start(self):
        command = f"study serve --config study.toml --database study.db --port {self.port}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ital", *command.split()],
            env=self.environment,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
        )
        said = []
        for line in self.process.stderr:
            said.append(line)
            if "dashboard http://" in line:
                return "".join(said)
        raise AssertionError("".join(said))

    def stop(self):
        self.process.terminate()
        self.process.wait(30)
        self.process.stderr.close()


@pytest.fixture
def few_steps():
    return study_config(warm_up_steps=1, steps=1)


@pytest.fixture
def taught(nginx, certificate, tmp_path, few_steps):
    """A study at https://localhost:PORT/teach on a host that has other pages; its address and its
    server.
    """
    port = free_port()
    origin = f"https://localhost:{port}/teach"
    study = Study(tmp_path, few_steps, origin)
    site = (
        f"server {{ listen 127.0.0.1:{port} ssl; server_name localhost;\n"
        f"ssl_certificate {certificate}/fullchain.pem; "
        f"ssl_certificate_key {certificate}/privkey.pem;\n"
        f"location = / {{ return 200 'another page of the laboratory'; }}\n"
        f"{settled('nginx-prefix.conf', tmp_path, f'127.0.0.1:{study.port}')}\n}}"
    )
    said = study.start()
    assert f"participants come to {origin}/\n" in said
    with proxy(nginx, tmp_path, site):
        yield origin, study
    study.stop()


@pytest.fixture
def somebody(browser, taught):
    """Browsers that accept the certificate, and report every request outside the study's path."""
    outside = []
    with contextlib.ExitStack() as stack:

        def open_browser():
            opened = stack.enter_context(
                contextlib.closing(browser.new_context(ignore_https_errors=True))
            )
            opened.set_default_timeout(15_000)
            opened.add_init_script(HURRY)
            opened.on("request", lambda request: outside.append(request.url))
            return opened

        yield open_browser
    assert [url for url in outside if not url.startswith((taught[0], "data:"))] == []


def test_a_study_under_a_path_behind_nginx(somebody, taught, few_steps, tmp_path):
    address, study = taught
    page = somebody().new_page()
    person = Person(page, address, few_steps)
    person.open("?PROLIFIC_PID=one-person")
    person.consent()
    person.read()
    person.answer()
    for stage in ("warm_up", "teach"):
        page.locator(f"body[data-stage={stage}]").wait_for()
        person.press("Start")
        person.at_step(1)
        if stage == "warm_up":
            person.teach()

    # The server restarts while the person picks an arrow; somebody else opens the link.
    study.stop()
    person.pick(3)
    person.confirm()
    expect(page.locator("#trouble")).to_contain_text("No connection to the server")
    late = somebody().new_page()
    assert late.goto(f"{address}/?PROLIFIC_PID=another-person").status == 502
    expect(late.get_by_role("heading")).to_have_text("One moment, please")
    study.start()
    expect(page.locator("#trouble")).to_be_hidden()
    expect(late.get_by_role("heading", name="Do you want to take part?")).to_be_visible()

    for _ in range(3):
        person.press("Start")
        person.at_step(1)
        person.teach()
    page.locator("body[data-stage=comments]").wait_for()
    person.press("Finish")
    page.locator("body[data-stage=finished]").wait_for()
    researcher = somebody().new_page()
    researcher.goto(f"{address}/preview")
    assert researcher.url == f"{address}/dashboard"
    researcher.get_by_label("Password").fill(PASSWORD)
    researcher.get_by_role("button", name="Log in").click()
    expect(researcher.get_by_role("heading", level=1)).to_be_visible()
    with researcher.expect_download() as download:
        researcher.get_by_role("link", name="Steps (CSV)").click()
    rows = list(
        csv.DictReader(Path(download.value.path()).read_text(encoding="utf-8").splitlines())
    )
    assert len(rows) == 4
    assert {row["mode"] for row in rows} == {"live"}
    for visitor, name in ((page, "ital_participant"), (researcher, "ital_researcher")):
        cookie = next(iter(visitor.context.cookies()))
        assert (cookie["name"], cookie["path"]) == (name, "/teach/")
        assert (cookie["secure"], cookie["httpOnly"]) == (True, True)
    researcher.get_by_role("link", name="Preview the study").click()
    researcher.get_by_role("button", name="Start", exact=True).click()
    expect(researcher.locator("#mode")).to_contain_text("Preview")
    # Without its slash the link leads to the study too; nothing of it is in the log of the host.
    somebody().new_page().goto(f"{address}?PROLIFIC_PID=a-third-person")
    assert (tmp_path / "access.log").read_text() == ""


def test_a_study_on_a_host_of_its_own_behind_nginx(nginx, certificate, server, tmp_path):
    http_port, https_port = free_port(), free_port()
    site = settled("nginx.conf", tmp_path, server.removeprefix("http://"))
    for here, there in (
        ("listen [::]:80;", ""),
        ("listen [::]:443 ssl;", ""),
        ("listen 80;", f"listen 127.0.0.1:{http_port};"),
        ("listen 443 ssl;", f"listen 127.0.0.1:{https_port} ssl;"),
        ("/etc/letsencrypt/live/study.example.org", str(certificate)),
    ):
        assert here in site
        site = site.replace(here, there)
    headers = {"Host": "study.example.org", "Origin": "https://study.example.org"}
    unsigned = ssl._create_unverified_context()
    with proxy(nginx, tmp_path, site):
        plain = http.client.HTTPConnection("127.0.0.1", http_port)
        plain.request("GET", "/?id=one-person", headers=headers)
        assert plain.getresponse().headers["location"] == "https://study.example.org/?id=one-person"
        secure = http.client.HTTPSConnection("127.0.0.1", https_port, context=unsigned)
        secure.request(
            "POST",
            "/api/join",
            '{"ids": {"id": "one-person"}}',
            {**headers, "Content-Type": "application/json"},
        )
        answer = secure.getresponse()
        assert answer.status == 200
        assert {"Secure", "Path=/"} <= set(answer.headers["set-cookie"].split("; "))
        assert "strict-transport-security" in answer.headers
        plain.close()
        secure.close()
    assert not (tmp_path / "access.log").read_text()


def test_caddy_reads_its_file():
    if shutil.which("caddy") is None:
        pytest.skip("there is no caddy on this machine (Debian: apt install caddy)")
    subprocess.run(
        ["caddy", "adapt", "--adapter", "caddyfile", "--config", DEPLOY / "Caddyfile"],
        check=True,
        capture_output=True,
    )
