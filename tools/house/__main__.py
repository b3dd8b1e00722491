"""Check the rules of the house: ``python -m tools.house``; ``--lower`` writes lower limits, ``-v``
names places.
"""

import sys
import tomllib

from tools.house import density, docstrings, walls, words
from tools.house.sources import package_sources


def main(arguments: list[str]) -> int:
    """Print everything that breaks a rule; return 1 if anything does."""
    sources = package_sources()
    limits = {}
    if density.LIMITS.exists():
        limits = tomllib.loads(density.LIMITS.read_text("utf-8"))
    counted = density.counts(sources)
    if "--lower" in arguments:
        density.LIMITS.write_text(density.written(density.lowered(counted, limits)), "utf-8")
        return 0
    if "-v" in arguments:
        print(*docstrings.without_verb(sources), *walls.private_in_tests(), sep="\n")
    broken = [
        *walls.crossed_walls(sources),
        *walls.hidden_imports(sources),
        *walls.repeated_classes(sources),
        *walls.repeated_tests(),
        *walls.foreign_tests(),
        *docstrings.undocumented(sources),
        *words.unwanted_words(sources),
        *density.excess(counted, limits),
    ]
    for line in broken:
        print(line)
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
