"""``ital study serve``, ``export``, ``import``, ``backup``, ``restore``, ``verify``; ``play``."""

import contextlib
import errno
import importlib.util
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ital.errors import InputError
from ital.tools.checks import install
from ital.tools.files import check_writable
from ital_study.cli import folder as _folder

if TYPE_CHECKING:
    from ital_study.server import FreezeCheck
    from ital_study.store import Store

CONFIG = Annotated[
    str | None, typer.Option(help="The study: a TOML file, paper or short (default: paper).")
]
DATABASE = Annotated[
    str,
    typer.Option(
        envvar="ITAL_STUDY_DATABASE", help="A file for SQLite, or postgresql://USER@HOST/NAME."
    ),
]
FOLDER = Annotated[
    Path | None,
    typer.Argument(help="The study's folder, with study.db.", metavar="[DIR]", show_default=False),
]
HOST = Annotated[
    str, typer.Option(help="Address to listen on; 127.0.0.1 allows this machine only.")
]
FILE = "study.db"
LONGEST_DRAIN = 10.0  # seconds that open requests get to finish when the server stops
NEEDED = ("alembic", "argon2", "fastapi", "itsdangerous", "sqlalchemy", "uvicorn")


def register(study: typer.Typer, top: typer.Typer) -> None:
    """Add the commands of the server: those of ``ital study``, and ``ital play``."""
    study.command(epilog="Example: ital study serve my-study --trial")(serve)
    study.command(epilog="Example: ital study export study.db --out data")(export)
    study.command("import", epilog="Example: ital study import data my-copy")(import_folder)
    study.command(epilog="Example: ital study backup my-study")(backup)
    study.command(epilog="Example: ital study restore tonight.backup my-study")(restore)
    study.command(epilog="Example: ital study verify my-study")(verify)
    top.command(epilog="Example: ital play")(play)


def need_extra() -> None:
    """Raise an error of one line if the web and database packages are not installed."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(
            f"this needs {missing[0]}, which is not installed: {install('ital-study[server]')}"
        )


def serve(
    folder: Annotated[
        Path | None,
        typer.Argument(help="A folder made by ital study init.", metavar="DIR", show_default=False),
    ] = None,
    config: CONFIG = None,
    database: DATABASE = FILE,
    host: HOST = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)
    ] = 8000,
    trial: Annotated[
        bool,
        typer.Option(
            "--trial",
            help="Try the study out: placeholders may be left, and nobody who joins counts.",
        ),
    ] = False,
    unblind: Annotated[
        bool,
        typer.Option(
            "--unblind",
            help="Show curves by condition before the end of the intake; the audit keeps it.",
        ),
    ] = False,
) -> None:
    """Run the study: pages for participants, and a dashboard with a password.

    The password comes from ITAL_STUDY_PASSWORD, from the file that ITAL_STUDY_PASSWORD_FILE names,
    or from the folder.
    """
    need_extra()
    import ital_study as study
    from ital_study.cli import doctor, setup
    from ital_study.server import create_app, from_environment, password_of
    from ital_study.store import blinding, open_store

    # Find every error before the first page is served and before anything is written.
    if folder is not None:
        own_config, database = _folder.enter(folder, database)
        config = config or own_config
    parsed = study.load_config(config)
    if not trial:
        doctor.refuse_placeholders(parsed)
    password_of(os.environ)
    with open_store(database, create=True) as store, store.claimed():
        settings = replace(
            from_environment(store.key_file, draw=store.key_fingerprint() is None), trial=trial
        )
        store.bind_key(settings.fingerprint)
        name = store.name
    listening, address = listen(host, port)
    if unblind:
        with open_store(database) as store:
            store.write(blinding.unblind)
    _set_up_jax()
    if folder is not None:
        findings = doctor.examine(folder, parsed, database)
        setup.show([finding for finding in findings if finding.state != doctor.GOOD], err=True)
    say(f"study {parsed.name} (version {parsed.hash[:12]}), data in {name}")
    if trial:
        say("trial: nobody who joins now counts")
    address += settings.prefix
    if settings.origin is not None:
        say(f"participants come to {settings.site}{settings.prefix}/")
    run(
        create_app(parsed, database, settings),
        listening,
        f"participants {address}/   dashboard {address}/dashboard",
    )


def play(
    config: CONFIG = None,
    host: HOST = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)
    ] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Teach naive, teacher-aware and other robots in the browser. Nothing is stored."""
    need_extra()
    import ital_study as study
    from ital_study.server import create_play_app

    parsed = study.load_config(config)
    listening, address = listen(host, port)
    _set_up_jax()
    page = f"{address}/play"
    opened = page if browser and _has_screen() else None
    run(
        create_play_app(parsed), listening, f"{page}   (Ctrl-C stops it; nothing is stored)", opened
    )


def export(
    source: Annotated[
        str, typer.Argument(help="A database, or a folder that contains study.db.")
    ] = FILE,
    mode: Annotated[
        str,
        typer.Option(help="Mode of the participants: live, pilot, preview, trial or simulated."),
    ] = "live",
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("export"),
    raw: Annotated[
        bool,
        typer.Option(
            "--raw", help="Leave texts in CSV files that a spreadsheet takes for formulas."
        ),
    ] = False,
) -> None:
    """Write the data: one tidy row per step as CSV and Parquet, the full log, a codebook and the
    configuration.

    Only you may read the files, because people may have written who they are.
    """
    from ital_study.data.table import unreadable_note
    from ital_study.store import verification
    from ital_study.store.export import export_study

    check_writable(out)
    with open_source(source) as store:
        for file in export_study(store, out, mode, raw=raw):
            print(file)
        versions = store.steps_configs(mode)
        counts = store.participants_by_mode()
        unreadable = unreadable_note(verification.unreadable(store, mode))
    if mode not in counts:
        others = "".join(f"; {count} {name}: use --mode {name}" for name, count in counts.items())
        say(f"the tables are empty: 0 {mode} participants{others}")
    for note in unreadable:
        say(note)
    if versions > 1:
        say(
            f"these participants saw {versions} versions of the configuration: "
            "see the column config"
        )


def import_folder(
    folder: Annotated[
        Path,
        typer.Argument(
            help="A folder written by ital study export.", metavar="DATA", show_default=False
        ),
    ],
    study: FOLDER = None,
    database: DATABASE = FILE,
) -> None:
    """Load exported data into a database, for instance to view them in the dashboard."""
    need_extra()
    from ital_study.store.export import import_study

    with open_source(database_of(study, database), create=True) as store:
        count = import_study(store, folder)
    print(f"{count} participants")


def backup(
    folder: Annotated[
        Path | None,
        typer.Argument(help="A folder made by ital study init.", metavar="DIR", show_default=False),
    ] = None,
    database: DATABASE = FILE,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write (default: study-TIME.backup, in the backups of DIR if given)."
        ),
    ] = None,
) -> None:
    """Write everything to one file, also while the study runs. It can be restored into SQLite or
    PostgreSQL.
    """
    from ital_study.store import backups

    if folder is not None:
        _, database = _folder.enter(folder, database)
    backup_folder = Path() if folder is None else folder / _folder.BACKUPS
    file = out or backup_folder / time.strftime("study-%Y%m%d-%H%M%S.backup")
    check_writable(file.parent)
    with open_source(database) as store:
        counts = backups.backup(store, file)
        key_file = store.key_file
    print(
        f"{file}: {counts['participants']} participants, {counts['steps']} steps, "
        f"{counts['events']} events"
    )
    if key_file.exists():
        say(f"keep a copy of {key_file} elsewhere: without it, a restored study cannot be served")


def restore(
    file: Annotated[
        Path, typer.Argument(help="A file written by ital study backup.", show_default=False)
    ],
    folder: FOLDER = None,
    database: DATABASE = FILE,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the participants in the database.")
    ] = False,
    tombstones: Annotated[
        Path | None,
        typer.Option(help="Deletions to apply: the .tombstones file of the lost machine."),
    ] = None,
) -> None:
    """Load a backup into a database. Participants deleted since then stay deleted. Stop the server
    first.
    """
    need_extra()
    from ital_study.store import backups, read_tombstones

    if tombstones is not None and not tombstones.is_file():
        raise InputError(f"there is no file {tombstones}")
    more_tombstones = [] if tombstones is None else read_tombstones(tombstones)
    database = database_of(folder, database)
    with storing(database):
        counts = backups.restore(file, database, replace=replace, more_tombstones=more_tombstones)
    print(
        f"{counts['participants']} participants, {counts['steps']} steps; "
        f"{counts['erased']} erased again"
    )


def verify(folder: FOLDER = None, database: DATABASE = FILE) -> None:
    """Replay every choice and compare the robots' beliefs with the stored ones; check what was
    frozen.
    """
    from ital_study.data.table import unreadable_note
    from ital_study.store import verification

    _set_up_jax()
    with open_source(database_of(folder, database)) as store:
        report = verification.verify(store)
        frozen = _check_frozen_plans(store, folder)
    print(
        f"{report.participants} participants, {report.steps} steps replayed, "
        f"{len(report.problems) + len(frozen.problems)} problems"
    )
    for problem in [*frozen.problems, *report.problems[:20], *unreadable_note(report.skipped)]:
        print(f"  {problem}")
    for line in frozen.lines:
        print(line)
    if report.problems or frozen.problems:
        raise typer.Exit(1)


def _check_frozen_plans(store: "Store", folder: Path | None) -> "FreezeCheck":
    """Check what was frozen; the key and the folder may be missing."""
    from ital_study.config.load import load_config
    from ital_study.server import check_freezes, secret_of

    secret = None
    with contextlib.suppress(InputError):
        secret = secret_of(store.key_file)
    config = None
    if folder is None or not folder.is_dir():
        return check_freezes(store, secret, None, None)
    if (folder / _folder.CONFIG).is_file():
        config = load_config(folder / _folder.CONFIG)
    return check_freezes(store, secret, folder, config)


def database_of(folder: Path | None, database: str = FILE) -> str:
    """Return the database that a command is about.

    The one in a folder, with the folder's settings, or the one named.
    """
    if folder is None:
        return database
    if folder.is_file():
        return str(folder)
    if (folder / _folder.CONFIG).is_file():
        return _folder.enter(folder, database)[1]
    if database == FILE:
        return str(folder / FILE)
    return database


@contextlib.contextmanager
def open_source(source: str, *, create: bool = False) -> Iterator["Store"]:
    """Open a database, or the study.db in a folder; a full disk is an error of one line."""
    need_extra()
    from ital_study.store import open_store

    database = database_of(Path(source)) if Path(source).is_dir() else source
    with storing(database), open_store(database, create=create) as store:
        yield store


@contextlib.contextmanager
def storing(database: str) -> Iterator[None]:
    """Turn a write that the database does not take into an error of one line."""
    from ital_study.store import NotStored, name_of

    # The log says the same as the error; it is for servers.
    logging.getLogger("ital_study").addHandler(logging.NullHandler())
    try:
        yield
    except NotStored as error:
        reason = f"not stored, because {error}: mend that and run the command again"
        raise OSError(errno.EIO, reason, name_of(database)) from None


def listen(host: str, port: int) -> tuple[socket.socket, str]:
    """Return a listening socket, and its address for people."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise InputError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    name = f"[{host}]" if ":" in host else host
    port = listening.getsockname()[1]
    return listening, f"http://{name}:{port}"


def run(app: Any, listening: socket.socket, announce: str, opened: str | None = None) -> None:
    """Serve until stopped. Requests are not logged, so that no addresses are stored."""
    import uvicorn

    class Server(uvicorn.Server):
        """Print the addresses once the server is ready.

        Before it stops, finish the requests that are open.
        """

        stopping_since: float | None = None

        def handle_exit(self, sig: int, frame: Any) -> None:
            app.state.health.draining = True
            self.stopping_since = self.stopping_since or time.monotonic()
            super().handle_exit(sig, frame)

        async def on_tick(self, counter: int) -> bool:
            stops = await super().on_tick(counter)
            waited = time.monotonic() - (self.stopping_since or 0.0)
            # A second Ctrl-C forces the exit.
            may_wait = waited < LONGEST_DRAIN and not self.force_exit
            is_busy = app.state.health.open_requests > 0
            return stops and not (is_busy and may_wait)

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets=sockets)
            if self.started:
                say(announce)
                if opened is not None:
                    import webbrowser

                    webbrowser.open(opened)

    settings = uvicorn.Config(
        app,
        access_log=False,
        server_header=False,
        log_level="warning",
        timeout_keep_alive=30,
        timeout_graceful_shutdown=5,
    )
    server = Server(settings)
    # uvicorn sends the signal again at the end: the process ends by it.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Ctrl-C is the normal way to stop.
    with listening, contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listening])
    if not server.started:
        raise typer.Exit(1)


def say(line: str) -> None:
    """Print a line for the person who started the server."""
    print(line, file=sys.stderr, flush=True)


def _has_screen() -> bool:
    if sys.platform in ("darwin", "win32"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def _set_up_jax() -> None:
    import jax

    from ital.tools.platform import set_up_jax

    set_up_jax("cpu")
    # Steps are so small that handing them to another thread takes longer than computing them.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
