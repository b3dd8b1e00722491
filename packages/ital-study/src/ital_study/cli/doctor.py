"""What a study still needs before people take part: ``ital study doctor``."""

import glob
import itertools
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

GOOD = "good"
DOUBTFUL = "doubtful"
BAD = "bad"

# What the database needs at most; usually it needs a tenth of that.
BYTES_PER_STEP = 7500
BYTES_PER_PERSON = 400_000

PEOPLE = 200  # if the intake has no limit
OLD_BACKUP = 24  # hours

# The words of the numbers from two on.
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
# What numbers in texts count, as regular expressions.
NOUNS = {
    "arrows": "arrows|Pfeilen?",
    "steps": "steps|Schritten?",
    "maps": "maps|Karten",
    "robots": "robots|Robotern?",
}


# What the shipped consent once said of IDs from outside; the researcher can look for them, so it
# was not true.
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
    found = []
    for key, text in texts_of(config.as_dict()):
        # A regular expression has square brackets of its own.
        if key != "panel.pattern":
            found += [(key, match[0]) for match in PLACEHOLDER.finditer(text)]
    return list(dict.fromkeys(found))


def refuse_placeholders(config: Config) -> None:
    """Raise an error of one line if texts or codes are not filled in."""
    left = placeholders(config)
    if not left:
        return
    key, text = left[0]
    others = f" and {len(left) - 1} more" if len(left) > 1 else ""
    raise InputError(
        f"{config.name} is not ready for participants: {key} has the placeholder {text!r}{others}; "
        "fill them in (ital study doctor lists them), or add --trial to try the study out"
    )


def texts_of(content: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text of a configuration with its key, before fields are filled in."""
    if isinstance(content, str):
        yield key, content
    elif isinstance(content, dict):
        for name, value in content.items():
            yield from texts_of(value, f"{key}.{name}" if key else name)
    elif isinstance(content, list):
        for number, value in enumerate(content, start=1):
            yield from texts_of(value, f"{key}[{number}]")


Result = tuple[str, str]


def _check_configuration(patient: Patient) -> Result:
    config = patient.config
    size = f"{len(config.maps)} maps, {config.steps} steps each"
    return GOOD, f"{config.name}, version {config.hash[:12]}: {size}"


def _placeholders(patient: Patient) -> Result:
    left = placeholders(patient.config)
    if not left:
        return GOOD, "all texts and codes are filled in"
    listed = ", ".join(f"{key} {text!r}" for key, text in left[:8])
    if len(left) > 8:
        listed += " …"
    return BAD, f"{len(left)} left, fill them in: {listed}"


def _check_consent(patient: Patient) -> Result:
    untrue = []
    for key, text in texts_of(patient.config.as_dict()):
        # Lines may break anywhere.
        words = " ".join(text.split())
        untrue += [key for claim in UNTRUE if claim in words]
    if not untrue:
        version = patient.config.consent.version
        return GOOD, f"version {version} does not promise that nobody can look for an ID"
    return DOUBTFUL, (
        f"{', '.join(untrue)} says that nobody can read an ID back, but ital study find can look "
        "for it: say that data are pseudonymous, as the consent of a new study does, and give the "
        "text a new version"
    )


def _check_numbers_in_texts(patient: Patient) -> Result:
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
    fitting = _fitting_numbers(config)
    words: dict[str, int] = {}
    for number_words in NUMBER_WORDS.values():
        words |= {word: number for number, word in enumerate(number_words, start=2)}
    number = rf"\d+|{'|'.join(words)}"
    wrong = []
    texts = texts_of(config.as_dict())
    for (key, text), (noun, pattern) in itertools.product(texts, NOUNS.items()):
        allowed = fitting[noun]
        # A word may stand between the number and the noun: "30 more steps".
        counted = rf"\b({number})\s+(?:\w+\s+)?({pattern})\b"
        for match in re.finditer(counted, text, re.IGNORECASE):
            written = match[1].lower()
            stated = words.get(written) or int(written)
            if stated == 1 or stated in allowed:
                continue
            phrase = " ".join(match[0].split())
            right = " or ".join(map(str, sorted(allowed)))
            wrong.append(f"{key} says {phrase!r}, but the study has {right}")
    return wrong


def _fitting_numbers(config: Config) -> dict[str, set[int]]:
    """Return the numbers that texts may give, by noun."""
    maps = len(config.maps)
    robots = len(config.learners)
    all_steps = config.total_steps
    steps_that_count = all_steps - config.warm_up_steps
    steps = {config.steps, config.warm_up_steps, all_steps, steps_that_count}
    return {
        "arrows": {
            *steps,
            config.candidates,
            config.candidates - 1,
            robots * config.steps,
        },
        "steps": steps,
        "maps": {maps, maps + 1, 3},  # three maps are side by side; one more is for practice
        "robots": {robots, maps * robots},
    }


def _check_completion(patient: Patient) -> Result:
    wrong = list(_ends(patient.config.as_dict()["completion"], "completion"))
    if wrong:
        return BAD, "; ".join(wrong)
    redirect = patient.config.completion.redirect
    if redirect is None:
        return GOOD, "participants get a code"
    return GOOD, f"participants return to {redirect.split('?')[0]}"


def _ends(end: Mapping[str, Any], key: str) -> Iterator[str]:
    """Yield what is wrong with the code and the redirect of each way to end."""
    code = end.get("code")
    redirect = end.get("redirect")
    if redirect is not None:
        if not redirect.startswith("https://"):
            yield f"{key}.redirect must begin with https://"
        linked = re.search(r"[?&](?:cc|code|survey_code)=([^&#]*)", redirect)
        # A field such as {code} is filled in with the right code.
        if linked and code and linked[1] != code and not FIELD.fullmatch(linked[1]):
            yield (
                f"{key}.redirect has the code {linked[1]!r}, but {key}.code is {code!r}: "
                "make them equal"
            )
    for name, inner in end.items():
        if isinstance(inner, dict):
            yield from _ends(inner, f"{key}.{name}")


def _identities(patient: Patient) -> Result:
    panel = patient.config.panel
    names = " or ".join(panel.identity)
    if panel.pattern != PATTERN and guessable(panel.pattern):
        return DOUBTFUL, (
            "panel.pattern accepts identities that can be guessed: whoever guesses one continues "
            "in "
            f"that person's place; give long random ones in {names}"
        )
    if patient.config.links == "signed":
        return GOOD, (
            f"nobody takes part without a signed link: ital study links {patient.folder} makes them"
        )
    need = "needed" if panel.required else "taken, if there is one,"
    message = f"{need} from {names} in the link"
    # The default pattern accepts almost anything, so it says nothing about how they are made.
    if panel.pattern == PATTERN:
        message += "; make sure that nobody can guess them"
    return GOOD, message


def _languages(patient: Patient) -> Result:
    return GOOD, f"{', '.join(patient.config.languages)}: every text and word is there"


def _origin(patient: Patient) -> Result:
    from ital_study.server import origin_of

    origin = origin_of(patient.environment)
    if origin is None:
        return DOUBTFUL, (
            "no address: before participants come from elsewhere, set ITAL_STUDY_ORIGIN in "
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
    """Check whether others on this machine may read what only the researcher should."""
    database = Path(patient.database.removeprefix("sqlite:///"))
    private = [patient.folder / _folder.PASSWORD]
    # SQLite keeps files of its own beside a database; PostgreSQL has no file here.
    if "://" not in str(database):
        private += sorted(database.parent.glob(f"{glob.escape(database.name)}*"))
    private += sorted(patient.folder.glob("*.key"))
    private += sorted((patient.folder / _folder.BACKUPS).glob("*.backup"))
    readable = [str(file) for file in dict.fromkeys(private) if _others_may_read(file)]
    if not readable:
        return GOOD, "only you can read the password, the key, the data and the backups"
    return BAD, (
        f"others on this machine may read {', '.join(readable)}: "
        f"run chmod 600 {shlex.join(readable)}"
    )


def _others_may_read(file: Path) -> bool:
    # A lock is empty.
    if not file.is_file() or file.suffix == ".lock":
        return False
    return bool(file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))


def _data(patient: Patient) -> Result:
    from ital_study.store import deletions, open_store

    if not _has_database(patient):
        return GOOD, "none yet"
    with open_store(patient.database) as store:
        counts = store.participants_by_mode()
        unreadable = deletions.read(store.tombstone_file).unreadable
    if unreadable:
        return BAD, (
            f"a deletion in {store.tombstone_file} cannot be read: {unreadable[0][:60]!a}; "
            "put a copy in its place"
        )
    listed = ", ".join(f"{count} {mode}" for mode, count in counts.items())
    return GOOD, listed or "no participants yet"


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
        if not people:
            return GOOD, f"{folder} is there"
        advice = f"run ital study backup {patient.folder}, every hour if you can"
        return BAD, f"{people} participants and no backup: {advice}"
    hours = (time.time() - newest) / 3600
    if people and hours > OLD_BACKUP:
        advice = f"run ital study backup {patient.folder}"
        return DOUBTFUL, f"the newest is {hours:.0f} hours old: {advice}"
    return GOOD, f"the newest is {hours:.1f} hours old"


def _disk(patient: Patient) -> Result:
    # In megabytes.
    free = shutil.disk_usage(patient.folder).free / 1e6
    people = patient.config.intake or PEOPLE
    most = people * (BYTES_PER_PERSON + BYTES_PER_STEP * patient.config.total_steps) / 1e6
    message = f"{free:,.0f} MB free; {people} participants can store {most:,.0f} MB at most"
    if free < most / 10:
        return BAD, message
    if free < most:
        return DOUBTFUL, message
    return GOOD, message


def _has_database(patient: Patient) -> bool:
    return "://" in patient.database or Path(patient.database).exists()


def _live_participants(patient: Patient) -> int:
    from ital_study.store import open_store

    if not _has_database(patient):
        return 0
    with open_store(patient.database) as store:
        return store.participants_by_mode().get("live", 0)


def _safely(check: Callable[[Patient], Result]) -> Callable[[Patient], Result]:
    """Return a check whose errors are findings."""

    def checked(patient: Patient) -> Result:
        try:
            return check(patient)
        except InputError as error:
            return BAD, str(error)

    return checked


CHECKS = {
    "configuration": _check_configuration,
    "placeholders": _placeholders,
    "numbers": _check_numbers_in_texts,
    "consent": _check_consent,
    "completion": _check_completion,
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
