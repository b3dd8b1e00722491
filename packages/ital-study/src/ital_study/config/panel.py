"""Where participants come from.

Which parameters of the link identify them, and what the way back needs.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ital.errors import InputError
from ital_study.config.toml import TomlTable

# One word without the brackets and signs of templates that nobody filled in: {{%PROLIFIC_PID%}},
# %SURVEY_CODE%, ${e://Field/id}, [ID], <id>.
PATTERN = r"[^\s{}\[\]<>%$]{1,100}"
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
FIELD = re.compile(r"\{([A-Za-z][A-Za-z0-9_-]*)\}")  # of a redirect
CODE = "code"  # the field of a redirect that is not a parameter of the link
LINK = "link"  # the parameter of a signed link that holds its signature
MOST_NAMES = 10
LONGEST = 200  # characters of an identity
# Identities that anybody might try.
GUESSES = (
    "1",
    "7",
    "42",
    "123",
    "0042",
    "12345",
    "123456",
    "p12",
    "s001",
    "anna",
    "anna.smith",
    "anna@example.org",
)


@dataclass(frozen=True)
class Panel:
    """Where participants come from: section ``[panel]``.

    Attributes:
        identity: Parameters of the link that identify a person; the first that is there counts.
        pattern: Regular expression that the whole identity must match.
        required: Whether people need an identity to take part.
        pass_through: Other parameters of the link, handed on to the page that people return to;
            never stored.
        name: Name of the panel, for the button that leads back; None: no name.
    """

    identity: tuple[str, ...] = ("PROLIFIC_PID", "id")
    pattern: str = PATTERN
    required: bool = False
    pass_through: tuple[str, ...] = ()
    name: str | None = None

    def accepts(self, identity: str) -> bool:
        """Say whether an identity is one that this panel may give.

        Args:
            identity: What the link says.

        Returns:
            True if the whole identity matches the pattern.
        """
        return len(identity) <= LONGEST and re.fullmatch(self.pattern, identity) is not None

    def identity_in(self, parameters: Mapping[str, str]) -> tuple[str, str] | None:
        """Find the identity among the parameters of a link.

        Args:
            parameters: Values by name.

        Returns:
            Name and value of the first parameter that carries an identity; None without one.
        """
        for name in self.identity:
            if name in parameters:
                return name, parameters[name]
        return None


def guessable(pattern: str) -> bool:
    """Say whether somebody could guess identities that match a pattern.

    Whoever knows an identity can continue the study in that person's place.

    Args:
        pattern: The pattern of the configuration.

    Returns:
        True if the pattern accepts a short number, a counter or a person's name.
    """
    return any(re.fullmatch(pattern, guess) for guess in GUESSES)


def panel_of(table: TomlTable) -> Panel:
    """Read where participants come from."""
    identity = _names(table, "identity", Panel.identity)
    pass_through = _names(table, "pass_through", Panel.pass_through)
    if not identity:
        raise InputError(f"{table.prefix}identity must name at least one parameter of the link")
    for name in pass_through:
        if name in identity:
            raise InputError(
                f"{table.prefix}pass_through must not name {name}, "
                f"which {table.prefix}identity names"
            )
    pattern = _regular_expression(table, "pattern")
    panel = Panel(
        identity=identity,
        pattern=pattern,
        required=table.yes_or_no("required"),
        pass_through=pass_through,
        name=table.text("name", most=60) if "name" in table.content else None,
    )
    # Somebody without an identity would otherwise take part as everybody without one.
    if panel.accepts("") or panel.accepts(" "):
        raise InputError(
            f"{table.prefix}pattern must not accept a blank identity, but {pattern!r} does"
        )
    return panel


def _regular_expression(table: TomlTable, key: str) -> str:
    pattern = table.text(key, most=500)
    try:
        re.compile(pattern)
    except re.error as error:
        raise InputError(
            f"{table.prefix}{key} must be a regular expression, not {pattern!r}: {error}"
        ) from None
    return pattern


def _names(table: TomlTable, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
    """Read names of parameters of the link."""
    if key not in table.content:
        return default
    names = table.get(key)
    if (
        not isinstance(names, list)
        or len(names) > MOST_NAMES
        or len(set(map(str, names))) < len(names)
    ):
        raise InputError(
            f"{table.prefix}{key} must be a list of at most {MOST_NAMES} different names, "
            f"not {names!r}"
        )
    for name in names:
        if not isinstance(name, str) or not NAME.fullmatch(name) or name == CODE:
            raise InputError(
                f"{table.prefix}{key} must name parameters of the link: letters, digits, _ and -, "
                f"but not {CODE!r}; {name!r} is none"
            )
    return tuple(names)
