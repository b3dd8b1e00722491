"""A PostgreSQL server for tests, from local binaries, run by a user other than root, on its own
socket.
"""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

MISSING = (
    "PostgreSQL is not installed: `make tools` as root on Debian, or put its initdb on the PATH"
)


def binaries():
    """The folder of initdb and pg_ctl; None where PostgreSQL is not installed."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda file: int(file.parts[-3])
    )
    on_path = shutil.which("initdb")
    if found:
        return found[-1].parent
    return Path(on_path).resolve().parent if on_path else None


def ordinary_user():
    """The user to run PostgreSQL as, because it refuses root; None if this process is not root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise RuntimeError("PostgreSQL refuses to run as root, and there is no user postgres or nobody")


class Cluster:
    """A running server; ``with cluster.new() as url`` gives an empty database in it."""

    def __init__(self, *, durable=False):
        self.bin, self.user, self.free = binaries(), ordinary_user(), []
        self.folder = Path(tempfile.mkdtemp(prefix="ital-postgres-"))
        if self.user is not None:
            os.chown(self.folder, self.user.pw_uid, self.user.pw_gid)
        safe = [] if durable else ["-c", "fsync=off", "-c", "full_page_writes=off"]
        options = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={self.folder}", *safe]
        self.data = self.folder / "data"
        self._run("initdb", "-D", self.data, "-U", "ital", "-A", "trust", "--no-sync", "-E", "UTF8")
        self.options = " ".join(str(option) for option in options)
        self._start()

    def _start(self):
        self._run(
            "pg_ctl", "-D", self.data, "-w", "-l", self.folder / "log", "-o", self.options, "start"
        )

    def restart(self):
        """Stop as in a power cut, and start again."""
        self._run("pg_ctl", "-D", self.data, "-m", "immediate", "stop")
        self._start()

    def _run(self, program, *arguments):
        who = (
            {}
            if self.user is None
            else {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []}
        )
        command = [str(self.bin / program), *map(str, arguments)]
        subprocess.run(
            command,
            check=True,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            **who,
        )

    @contextlib.contextmanager
    def new(self):
        """The address of an empty database; it is emptied again afterwards."""
        name = self.free.pop() if self.free else self._create()
        yield self._address(name)
        with self._connect(name) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        self.free.append(name)

    def lasting(self):
        """The address of an empty database that stays."""
        return self._address(self._create())

    def copy(self, source, name):
        """Recreate a database as a copy of another one that nobody is using."""
        with self._connect("postgres") as connection:
            connection.execute(f"DROP DATABASE {name}")
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {source}")

    def wait_until_left(self, name):
        """Wait until nobody is connected to a database: what a killed process had sent is done or
        undone then.
        """
        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s"
        with self._connect("postgres") as connection:
            while connection.execute(others, [name]).fetchone()[0]:
                time.sleep(0.01)

    def _address(self, name):
        return f"postgresql://ital@/{name}?host={self.folder}"

    def _create(self):
        name = f"t{uuid.uuid4().hex}"
        with self._connect("postgres") as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return name

    def _connect(self, name):
        import psycopg

        return psycopg.connect(f"host={self.folder} user=ital dbname={name}", autocommit=True)

    def stop(self):
        self._run("pg_ctl", "-D", self.data, "-m", "immediate", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)
