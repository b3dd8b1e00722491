"""``ital study researchers`` and ``ital study tokens``: who may see and do what."""

import secrets
from typing import Annotated

import typer

from ital.errors import InputError
from ital_study.cli.links import STUDY_FOLDER
from ital_study.cli.serve import DATABASE, FILE, database_of, need_extra, open_source


def register(study: typer.Typer) -> None:
    """Add the commands to ``ital study``."""
    study.command(epilog="Example: ital study researchers my-study --add anna --role run")(
        researchers
    )
    study.command(epilog="Example: ital study tokens my-study --create nightly")(tokens)


def researchers(
    folder: STUDY_FOLDER,
    add: Annotated[
        str | None,
        typer.Option(help="Add a researcher; prints a password, once.", show_default=False),
    ] = None,
    role: Annotated[
        str,
        typer.Option(
            help="With --add: see (look, download), run (also pause, release, exclude, look up, "
            "pay) or own (also delete, unblind)."
        ),
    ] = "see",
    renew: Annotated[
        str | None,
        typer.Option(help="Give a researcher a new password; prints it.", show_default=False),
    ] = None,
    remove: Annotated[
        str | None, typer.Option(help="Remove a researcher.", show_default=False)
    ] = None,
    database: DATABASE = FILE,
) -> None:
    """List the researchers who may log in with names of their own, or change them. The server may
    run.
    """
    need_extra()
    from ital_study.store import researchers as stored

    _refuse_several({"--add": add, "--renew": renew, "--remove": remove})
    if add is not None:
        stored.check_name(add)
        stored.check_role(role)
    password = secrets.token_urlsafe(12)
    with open_source(database_of(folder, database), create=add is not None) as store:
        if add is not None:
            hashed = _hashed(password)
            store.write(lambda connection: stored.add(connection, add, role, hashed))
            print(f"{add} ({role}) may log in with the password {password}")
        elif renew is not None:
            hashed = _hashed(password)
            store.write(lambda connection: stored.renew(connection, renew, hashed))
            print(f"{renew} may log in with the password {password}")
        elif remove is not None:
            store.write(lambda connection: stored.remove(connection, remove))
            print(f"{remove} may no longer log in")
        else:
            with store.reading() as connection:
                listed = stored.listed(connection)
            print(f"{stored.OWNER}  own  whoever knows the study's password")
            for each in listed:
                print(f"{each.name}  {each.role}  since {_day(each.added_at)}")


def tokens(
    folder: STUDY_FOLDER,
    create: Annotated[
        str | None,
        typer.Option(help="Create a token of this name; prints it, once.", show_default=False),
    ] = None,
    revoke: Annotated[
        str | None, typer.Option(help="Revoke the token of this name.", show_default=False)
    ] = None,
    database: DATABASE = FILE,
) -> None:
    """List the tokens with which programs download data, or change them. The server may run."""
    need_extra()
    from ital_study.store import researchers as stored

    _refuse_several({"--create": create, "--revoke": revoke})
    if create is not None:
        stored.check_name(create)
    with open_source(database_of(folder, database), create=create is not None) as store:
        if create is not None:
            token = f"ital_{secrets.token_urlsafe(32)}"
            store.write(lambda connection: stored.add_token(connection, create, token))
            print(f"{create}: {token}")
        elif revoke is not None:
            store.write(lambda connection: stored.revoke_token(connection, revoke))
            print(f"{revoke} opens nothing any more")
        else:
            with store.reading() as connection:
                listed = stored.listed_tokens(connection)
            for each in listed:
                state = "valid"
                if each.revoked_at is not None:
                    state = f"revoked on {_day(each.revoked_at)}"
                print(f"{each.name}  since {_day(each.created_at)}  {state}")
            if not listed:
                print("there are no tokens")


def _refuse_several(options: dict[str, str | None]) -> None:
    """Raise if several options are given that exclude each other."""
    given = [option for option, value in options.items() if value is not None]
    if len(given) > 1:
        raise InputError(f"give one of {' and '.join(given)} at a time")


def _hashed(password: str) -> str:
    from ital_study.server import hash_password

    return hash_password(password)


def _day(milliseconds: int) -> str:
    from ital_study.store.times import iso

    return iso(milliseconds)[:10]
