"""Counts the programs that a command compiles.

An example: ``python benchmarks/programs.py run regression --steps 100``.

All processes of the command count. The cache of compiled programs on disk is switched off, and
results go to a temporary folder.
"""

import collections
import json
import logging
import os
import re
import sys
import tempfile
from pathlib import Path

LOG = "ITAL_PROGRAMS"
FINISHED = re.compile(r"Finished XLA compilation of (\S+) in ([\d.e-]+) sec")


class Counter(logging.Handler):
    """Append the name and duration of each compilation to a file that all processes share."""

    def emit(self, record):
        """Write a line for a finished compilation."""
        found = FINISHED.search(record.getMessage())
        if found:
            with Path(os.environ[LOG]).open("a") as file:
                file.write(json.dumps([found[1], float(found[2])]) + "\n")


def count_here():
    """Count the compilations of this process."""
    import jax

    jax.config.update("jax_enable_compilation_cache", False)
    logger = logging.getLogger("jax._src.dispatch")
    logger.addHandler(Counter(logging.DEBUG))
    logger.setLevel(logging.DEBUG)
    logger.propagate = False


def main(arguments):
    """Run the command and print what it compiled, the slowest first."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ[LOG] = str(Path(folder) / "programs")
        # Worker processes import sitecustomize from here and count too.
        hook = Path(folder) / "hook"
        hook.mkdir()
        (hook / "sitecustomize.py").write_text(
            f"import sys\nsys.path.append({str(Path(__file__).parent)!r})\nimport programs\n"
            "programs.count_here()\n"
        )
        os.environ["PYTHONPATH"] = os.pathsep.join([str(hook), os.environ.get("PYTHONPATH", "")])
        count_here()
        from ital.cli import main as ital

        try:
            ital([*arguments, "--out", str(Path(folder) / "results")])
        except SystemExit as ended:
            status = ended.code
        lines = Path(os.environ[LOG]).read_text().splitlines()
    compiled = collections.defaultdict(list)
    for name, seconds in map(json.loads, lines):
        compiled[name].append(seconds)
    for name, seconds in sorted(compiled.items(), key=lambda item: -sum(item[1])):
        print(f"{len(seconds):5}  {sum(seconds):7.2f} s  {name}")
    print(f"{len(lines):5}  {sum(map(sum, compiled.values())):7.2f} s  in all")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
