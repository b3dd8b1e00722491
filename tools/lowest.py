"""Prints the lowest version of every dependency that the packages allow, as constraints for pip."""

import re
import tomllib
from pathlib import Path

PROJECTS = sorted((Path(__file__).parents[1] / "packages").glob("*/pyproject.toml"))


def lowest(requirements: list[str]) -> list[str]:
    """Return ``name==version`` for each ``name>=version``; our own packages, at one fixed version,
    are left out.
    """
    found = [
        re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\w.]+)", requirement) for requirement in requirements
    ]
    return [f"{match[1]}=={match[2]}" for match in found if match]


def dependencies() -> list[str]:
    """Return what all packages need; once what several need."""
    projects = [tomllib.loads(project.read_text())["project"] for project in PROJECTS]
    return sorted({requirement for project in projects for requirement in project["dependencies"]})


if __name__ == "__main__":
    print("\n".join(lowest(dependencies())))
