"""Prints the lowest version of every dependency that pyproject.toml allows, as constraints for pip."""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def lowest(requirements: list[str]) -> list[str]:
    """Return ``name==version`` for each ``name>=version``."""
    found = [re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\w.]+)", requirement) for requirement in requirements]
    return [f"{match[1]}=={match[2]}" for match in found if match]


if __name__ == "__main__":
    print("\n".join(lowest(tomllib.loads(PROJECT.read_text())["project"]["dependencies"])))
