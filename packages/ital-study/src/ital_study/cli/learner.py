"""``ital study learner``: the robots for other front ends."""

import re
from typing import Annotated

import typer

from ital.errors import InputError
from ital_study.cli import serve
from ital_study.cli.serve import CONFIG, HOST

ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?|https?://\[[0-9a-f:]+\](:[0-9]{1,5})?")


def register(study: typer.Typer) -> None:
    """Add ``ital study learner``."""
    study.command(epilog="Example: ital study learner --allow-origin https://lab.example.org")(
        learner
    )


def learner(
    config: CONFIG = None,
    host: HOST = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)
    ] = 8010,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            help="Site whose pages may use the learner, as https://HOST; may be repeated.",
            show_default="none",
        ),
    ] = None,
    requests: Annotated[
        int,
        typer.Option(help="Requests that one address may send per minute.", min=1, max=1_000_000),
    ] = 1200,
) -> None:
    """Serve the robots to other front ends, such as jsPsych: a small JSON interface. Nothing is
    stored.
    """
    serve.need_extra()
    import ital_study as study
    from ital_study.server import create_learner_app

    origins = [checked_origin(one) for one in allow_origin or ()]
    parsed = study.load_config(config)
    listening, address = serve.listen(host, port)
    serve._set_up_jax()
    app = create_learner_app(parsed, origins, requests)
    serve.run(app, listening, f"{address}/api/learner   (Ctrl-C stops it; nothing is stored)")


def checked_origin(text: str) -> str:
    """Return the origin of a site, as browsers write it; raise for anything else."""
    origin = text.rstrip("/")
    if not ORIGIN.fullmatch(origin):
        raise InputError(
            f"--allow-origin {text}: expected a site in lower case, such as https://lab.example.org"
        )
    return origin
