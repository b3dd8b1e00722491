"""What a study still needs before people take part: ``ital study doctor``."""

import glob
import os
import re
import shlex
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ital.errors import InputError
from ital_study.cli import folder as _folder
from ital_study.config.configuration import Config
from ital_study.config.load import load_config
from ital_study.config.panel import FIELD, PATTERN, guessable
from ital_study.config.texts import PLACEHOLDER

GOOD, DOUBTFUL, BAD = "good", "doubtful", "bad"
BYTES_PER_STEP, BYTES_PER_PERSON = 7500, 400_000  # of the database at most; usually a tenth of it
PEOPLE = 200  # if the intake has no limit
OLD_BACKUP = 24 * 3600  # seconds

NUMBER_WORDS = {
    "en": [
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
    ],
    "de": [
        "zwei",
        "drei",
        "vier",
        "fünf",
        "sechs",
        "sieben",
        "acht",
        "neun",
        "zehn",
        "elf",
        "zwölf",
    ],
}
NOUNS = {
    "arrows": "arrows|Pfeilen?",
    "steps": "steps|Schritten?",
    "maps": "maps|Karten",
    "robots": "robots|Robotern?",
}


# What the shipped consent once said of IDs from outside; the researcher can look for them, so it was not true.
UNTRUE = ("nobody can read back", "niemand sie zurückverfolgen kann")


class Diagnosis(NamedTuple):
    """The result of one check.

    Attributes:
        check: What was checked.
        state: ``good``, ``doubtful`` or ``bad``.
        message: What was found, and what to do.
    """

    check: str
    state: str
    message: str


@dataclass(frozen=True)
class Patient:
    """A study to be checked.

    Attributes:
        folder: Its folder.
        database: Its database.
        config: Its configuration.
        environment: Settings of the server.
    """

    folder: Path
    database: str
    config: Config
    environment: Mapping[str, str]


def examine(
    folder: Path, config: str | Config, database: str, environment: Mapping[str, str] = os.environ
) -> list[Diagnosis]:
    """Check everything that a study needs before people take part.

    Args:
        folder: The study's folder.
        config: Its configuration, or the file of it.
        database: Its database.
        environment: Settings of the server, by default those of the process.

    Returns:
        One finding per check; if the configuration cannot be read, only that one.
    """
    try:
        parsed = load_config(config) if isinstance(config, str) else config
    except InputError as error:
        return [Diagnosis("configuration", BAD, str(error))]
    patient = Patient(folder, database, parsed, environment)
    return [Diagnosis(name, *check(patient)) for name, check in CHECKS.items()]


def placeholders(config: Config) -> list[tuple[str, str]]:
    """List what the researcher must still replace: texts in square brackets, and CHANGE-ME.

    Args:
        config: The study.

    Returns:
        Keys of the configuration and what is left there, each once.
    """
    texts = [(key, text) for key, text in texts_of(config.as_dict()) if key != "panel.pattern"]
    found = [(key, match[0]) for key, text in texts for match in PLACEHOLDER.finditer(text)]
    return list(dict.fromkeys(found))


def refuse_placeholders(config: Config) -> None:
    """Raise an error of one line if texts or codes are not filled in."""
    left = placeholders(config)
    if left:
        key, text = left[0]
        others = f" and {len(left) - 1} more" if len(left) > 1 else ""
        raise InputError(
            f"{config.name} is not ready for participants: {key} has the placeholder {text!r}{others}; fill them in "
            "(ital study doctor lists them), or add --trial to try the study out"
        )


def texts_of(content: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a configuration with its key, before fields are filled in."""
    if isinstance(content, str):
        yield key, content
    elif isinstance(content, dict):
        for name, value in content.items():
            yield from texts_of(value, f"{key}.{name}" if key else name)
    elif isinstance(content, list):
        for i, value in enumerate(content, start=1):
            yield from texts_of(value, f"{key}[{i}]")


Result = tuple[str, str]


def _configuration(patient: Patient) -> Result:
    config = patient.config
    return (
        GOOD,
        f"{config.name}, version {config.hash[:12]}: {len(config.maps)} maps, {config.steps} steps each",
    )


def _placeholders(patient: Patient) -> Result:
    left = placeholders(patient.config)
    if not left:
        return GOOD, "all texts and codes are filled in"
    shown = ", ".join(f"{key} {text!r}" for key, text in left[:8]) + (" …" if len(left) > 8 else "")
    return BAD, f"{len(left)} left, fill them in: {shown}"


def _consent(patient: Patient) -> Result:
    texts = list(texts_of(patient.config.as_dict()))
    untrue = [key for key, text in texts for said in UNTRUE if said in " ".join(text.split())]
    if not untrue:
        return (
            GOOD,
            f"version {patient.config.consent.version} does not promise that nobody can look for an ID",
        )
    return DOUBTFUL, (
        f"{', '.join(untrue)} says that nobody can read an ID back, but ital study find can look for it: say that data "
        "are pseudonymous, as the consent of a new study does, and give the text a new version"
    )


def _numbers(patient: Patient) -> Result:
    wrong = wrong_numbers(patient.config)
    if not wrong:
        return GOOD, "numbers of arrows, steps, maps and robots in the texts fit the study"
    return DOUBTFUL, f"{'; '.join(wrong[:4])}: correct them, or write fields such as {{steps}}"


def wrong_numbers(config: Config) -> list[str]:
    """List texts whose numbers of arrows, steps, maps or robots fit nothing in the study.

    Args:
        config: The study.

    Returns:
        One sentence for each.
    """
    maps, robots, steps, in_all = (
        len(config.maps),
        len(config.learners),
        config.steps,
        config.total_steps,
    )
    that_count = in_all - config.warm_up_steps
    fitting = {
        "arrows": {
            config.candidates,
            config.candidates - 1,
            steps,
            robots * steps,
            config.warm_up_steps,
            in_all,
            that_count,
        },
        "steps": {steps, config.warm_up_steps, in_all, that_count},
        "maps": {maps, maps + 1, 3},  # three maps are side by side; one more is for practice
        "robots": {robots, maps * robots},
    }
    words = {
        word: i for language in NUMBER_WORDS.values() for i, word in enumerate(language, start=2)
    }
    wrong = []
    for key, text in texts_of(config.as_dict()):
        for noun, pattern in NOUNS.items():
            for match in re.finditer(
                rf"\b(\d+|{'|'.join(words)})\s+(?:\w+\s+)?({pattern})\b", text, re.IGNORECASE
            ):
                said = words.get(match[1].lower()) or int(match[1])
                if said != 1 and said not in fitting[noun]:
                    right = " or ".join(map(str, sorted(fitting[noun])))
                    wrong.append(
                        f"{key} says {' '.join(match[0].split())!r}, but the study has {right}"
                    )
    return wrong


def _completion(patient: Patient) -> Result:
    wrong = [
        problem
        for problem in _ends(patient.config.as_dict()["completion"], "completion")
        if problem
    ]
    if wrong:
        return BAD, "; ".join(wrong)
    where = patient.config.completion.redirect
    return (
        GOOD,
        "participants get a code"
        if where is None
        else f"participants return to {where.split('?')[0]}",
    )


def _ends(end: Mapping[str, Any], key: str) -> Iterator[str]:
    """What is wrong with the code and the redirect of each way to end."""
    code, redirect = end.get("code"), end.get("redirect")
    if redirect is not None:
        if not redirect.startswith("https://"):
            yield f"{key}.redirect must begin with https://"
        said = re.search(r"[?&](?:cc|code|survey_code)=([^&#]*)", redirect)
        if said and code and said[1] != code and not FIELD.fullmatch(said[1]):
            yield f"{key}.redirect has the code {said[1]!r}, but {key}.code is {code!r}: make them equal"
    for name, inner in end.items():
        if isinstance(inner, dict):
            yield from _ends(inner, f"{key}.{name}")


def _identities(patient: Patient) -> Result:
    panel = patient.config.panel
    names = " or ".join(panel.identity)
    if panel.pattern != PATTERN and guessable(panel.pattern):
        return DOUBTFUL, (
            f"panel.pattern accepts identities that can be guessed: whoever guesses one continues in that person's "
            f"place; give long random ones in {names}"
        )
    told = f"{'needed' if panel.required else 'taken, if there is one,'} from {names} in the link"
    return (
        GOOD,
        told if panel.pattern != PATTERN else f"{told}; make sure that nobody can guess them",
    )


def _languages(patient: Patient) -> Result:
    return GOOD, f"{', '.join(patient.config.languages)}: every text and word is there"


def _origin(patient: Patient) -> Result:
    from ital_study.server import origin_of

    origin = origin_of(patient.environment)
    if origin is None:
        return DOUBTFUL, (
            f"no address: before participants come from elsewhere, set ITAL_STUDY_ORIGIN in "
            f"{patient.folder / _folder.SETTINGS}"
        )
    if not origin.startswith("https://"):
        return BAD, f"{origin} is not encrypted: it must begin with https://"
    return GOOD, f"participants come to {origin.rstrip('/')}/"


def _password(patient: Patient) -> Result:
    from ital_study.server import password_of

    password_of(patient.environment)
    return GOOD, "the dashboard has one"


def _permissions(patient: Patient) -> Result:
    """Whether others on this machine may read what only the researcher should."""
    database = Path(patient.database.removeprefix("sqlite:///"))
    beside = (
        []
        if "://" in str(database)
        else sorted(database.parent.glob(f"{glob.escape(database.name)}*"))
    )
    backups = sorted((patient.folder / _folder.BACKUPS).glob("*.backup"))
    private = [
        patient.folder / _folder.PASSWORD,
        *beside,
        *sorted(patient.folder.glob("*.key")),
        *backups,
    ]
    loose = [str(file) for file in dict.fromkeys(private) if _others_may_read(file)]
    if not loose:
        return GOOD, "only you can read the password, the key, the data and the backups"
    return (
        BAD,
        f"others on this machine may read {', '.join(loose)}: run chmod 600 {shlex.join(loose)}",
    )


def _others_may_read(file: Path) -> bool:
    return (
        file.is_file()
        and file.suffix != ".lock"
        and bool(file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))
    )


def _data(patient: Patient) -> Result:
    from ital_study.store import deletions, open_store

    if not _has_database(patient):
        return GOOD, "none yet"
    with open_store(patient.database) as store:
        counts = store.participants_by_mode()
        unreadable = deletions.read(store.tombstone_file).unreadable
    if unreadable:
        return (
            BAD,
            f"a deletion in {store.tombstone_file} cannot be read: {unreadable[0][:60]!a}; put a copy in its place",
        )
    return GOOD, ", ".join(
        f"{count} {mode}" for mode, count in counts.items()
    ) or "no participants yet"


def _key(patient: Patient) -> Result:
    from ital_study.server import from_environment
    from ital_study.store import open_store

    if not _has_database(patient):
        return GOOD, "drawn when the server first starts"
    with open_store(patient.database) as store:
        fingerprint = store.key_fingerprint()
        if fingerprint is None:
            return GOOD, "drawn when the server first starts"
        settings = from_environment(store.key_file, patient.environment, draw=False)
        if settings.fingerprint != fingerprint:
            return BAD, f"{store.key_file} is not the key of this database: put the right one back"
        return GOOD, f"{store.key_file} is the key of this database: keep a copy elsewhere"


def _backups(patient: Patient) -> Result:
    folder = patient.folder / _folder.BACKUPS
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        return BAD, f"there is no folder {folder} to write to: make it with mkdir {folder}"
    newest = max((file.stat().st_mtime for file in folder.glob("*.backup")), default=None)
    people = _live_participants(patient)
    if newest is None:
        advice = f"run ital study backup {patient.folder}, every hour if you can"
        return (
            (BAD, f"{people} participants and no backup: {advice}")
            if people
            else (GOOD, f"{folder} is there")
        )
    hours = (time.time() - newest) / 3600
    if people and hours * 3600 > OLD_BACKUP:
        return (
            DOUBTFUL,
            f"the newest is {hours:.0f} hours old: run ital study backup {patient.folder}",
        )
    return GOOD, f"the newest is {hours:.1f} hours old"


def _disk(patient: Patient) -> Result:
    free = shutil.disk_usage(patient.folder).free / 1e6
    people = patient.config.intake or PEOPLE
    most = people * (BYTES_PER_PERSON + BYTES_PER_STEP * patient.config.total_steps) / 1e6
    told = f"{free:,.0f} MB free; {people} participants can store {most:,.0f} MB at most"
    return (BAD if free < most / 10 else DOUBTFUL if free < most else GOOD), told


def _has_database(patient: Patient) -> bool:
    return "://" in patient.database or Path(patient.database).exists()


def _live_participants(patient: Patient) -> int:
    from ital_study.store import open_store

    if not _has_database(patient):
        return 0
    with open_store(patient.database) as store:
        return store.participants_by_mode().get("live", 0)


def _safely(check: Callable[[Patient], Result]) -> Callable[[Patient], Result]:
    """A check whose errors are findings."""

    def checked(patient: Patient) -> Result:
        try:
            return check(patient)
        except InputError as error:
            return BAD, str(error)

    return checked


CHECKS = {
    "configuration": _configuration,
    "placeholders": _placeholders,
    "numbers": _numbers,
    "consent": _consent,
    "completion": _completion,
    "identities": _identities,
    "languages": _languages,
    "origin": _safely(_origin),
    "password": _safely(_password),
    "permissions": _permissions,
    "data": _safely(_data),
    "key": _safely(_key),
    "backups": _safely(_backups),
    "disk": _disk,
}
