"""A file layer that fails at any step of its writing: by a kill, or because the disk is full.

``LAYER`` stands between a process and its system: it counts what the process writes to files
(writes, syncs, renames, truncations and removals) and sends to PostgreSQL, and lets one of them
fail. A killed write and the first one on a full disk write one half.
"""

import contextlib
import importlib
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

LAYER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { COUNT, KILL, FULL, COUNT_FILES };
static int kind = COUNT;
static long steps = -1, at = 0;  /* -1: everything passes and nothing is counted */

void fault_arm(int what, long step) { kind = what; at = step; steps = 0; }
long fault_steps(void) { return steps; }

static int is_file(int fd) { struct stat s; return fstat(fd, &s) == 0 && S_ISREG(s.st_mode); }
static void die(void) { kill(getpid(), SIGKILL); for (;;) pause(); }
static void step(void) { if (steps >= 0 && ++steps == at && kind == KILL) die(); }

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *from, size_t n) {
    if (steps < 0 || !is_file(fd)) return REAL(write)(fd, from, n);
    steps++;
    if (kind == KILL && steps == at) { REAL(write)(fd, from, n / 2); die(); }
    if (kind == FULL && steps == at && n > 1) return REAL(write)(fd, from, n / 2);
    if (kind == FULL && steps >= at) { errno = ENOSPC; return -1; }
    return REAL(write)(fd, from, n);
}
ssize_t pwrite64(int fd, const void *from, size_t n, off64_t where) {
    if (steps < 0 || !is_file(fd)) return REAL(pwrite64)(fd, from, n, where);
    steps++;
    if (kind == KILL && steps == at) { REAL(pwrite64)(fd, from, n / 2, where); die(); }
    if (kind == FULL && steps == at && n > 1) return REAL(pwrite64)(fd, from, n / 2, where);
    if (kind == FULL && steps >= at) { errno = ENOSPC; return -1; }
    return REAL(pwrite64)(fd, from, n, where);
}
ssize_t pwrite(int fd, const void *from, size_t n, off_t where) {
    return pwrite64(fd, from, n, where);
}
int fsync(int fd) { step(); return REAL(fsync)(fd); }
int fdatasync(int fd) { step(); return REAL(fdatasync)(fd); }
int ftruncate64(int fd, off64_t n) { step(); return REAL(ftruncate64)(fd, n); }
int ftruncate(int fd, off_t n) { step(); return REAL(ftruncate)(fd, n); }
int rename(const char *from, const char *to) { step(); return REAL(rename)(from, to); }
int unlink(const char *file) { step(); return REAL(unlink)(file); }
ssize_t send(int fd, const void *from, size_t n, int flags) {
    /* a full disk here does not keep the database's server from anything */
    if (kind < FULL) step();
    return REAL(send)(fd, from, n, flags);
}
"""
COMPILER = shutil.which("cc")
KINDS = {"count": 0, "kill": 1, "full": 2, "count files": 3}


class Outcome(NamedTuple):
    """What became of a command: whether it was acknowledged, and how it ended."""

    acknowledged: bool
    killed: bool
    steps: int
    said: str


class FaultyProcess:
    """A process over the failing layer that runs commands, each in a child of its own."""

    def __init__(self, folder):
        source, library = folder / "layer.c", folder / "layer.so"
        source.write_text(LAYER)
        subprocess.run(
            [COMPILER, "-shared", "-fPIC", "-O1", "-w", "-o", library, source, "-ldl"], check=True
        )
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.server.faults"],
            env=os.environ | {"LD_PRELOAD": str(library), "JAX_PLATFORMS": "cpu"},
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, command, url, kind="count", at=0, **given):
        """One command over the layer, which fails at its step number ``at``."""
        folder = os.environ.get("ITAL_STUDY_FOLDER", "")
        told = {
            "command": command,
            "url": url,
            "kind": kind,
            "at": at,
            "given": given,
            "folder": folder,
        }
        self._process.stdin.write(json.dumps(told) + "\n")
        self._process.stdin.flush()
        return Outcome(**json.loads(self._process.stdout.readline()))

    def close(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


# The process


def delete(url, number):
    """As ``ital study find --delete`` does."""
    from ital_study.store import open_store, operations

    with open_store(url) as store:
        with store.reading() as connection:
            participant = operations.find(connection, number=number)
        store.erase(participant, "researcher")
        yield


def exclude(url, number, reason):
    """As ``ital study exclude`` does."""
    from ital_study.store import exclusions, open_store

    with open_store(url) as store:
        store.write(lambda connection: exclusions.exclude(connection, number, reason))
        yield


def restore(url, backup):
    """As ``ital study restore --replace`` does."""
    from ital_study.store import backups

    backups.restore(Path(backup), url, replace=True)
    yield


COMMANDS = {"delete": delete, "exclude": exclude, "restore": restore}


def _child(told, report):
    import ctypes

    os.environ["ITAL_STUDY_FOLDER"] = told["folder"]
    layer = ctypes.CDLL(None)
    layer.fault_arm(KINDS[told["kind"]], ctypes.c_long(told["at"]))
    said = ""
    try:
        for _ in COMMANDS[told["command"]](told["url"], **told["given"]):
            os.write(report, b"acknowledged\n")
    except Exception as error:  # whatever it is, the test judges it
        said = f"{type(error).__name__}: {error}"
    os.write(report, json.dumps([layer.fault_steps(), said]).encode())
    os._exit(0)


def _run(told):
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(here)
        _child(told, there)
    os.close(there)
    with os.fdopen(here) as report:
        lines = report.read().splitlines()
    _, status = os.waitpid(child, 0)
    acknowledged = bool(lines) and lines[0] == "acknowledged"
    steps, said = json.loads(lines[-1]) if lines and lines[-1].startswith("[") else (0, "")
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    return Outcome(acknowledged, killed, steps, said)


def main():
    """Read commands from standard input, one JSON object per line, and answer each with its
    outcome.
    """
    for name in (
        "alembic.command",
        "psycopg",
        "ital_study.store.backups",
        "ital_study.store.exclusions",
    ):
        importlib.import_module(name)  # once, before the children
    logging.disable()  # of a server, for its log
    with contextlib.suppress(KeyboardInterrupt):
        for line in sys.stdin:
            print(json.dumps(_run(json.loads(line))._asdict()), flush=True)


if __name__ == "__main__":
    main()
