"""Every Python block of the written documentation runs: the blocks of a file in order, in one
namespace.
"""

import re
from pathlib import Path

import matplotlib
import pytest

from ital import learners, tasks, teachers

ROOT = Path(__file__).parents[1]
FIELD = ("field-control", "field-hypotheses", "field-irl", "field-kernel", "field-learners")
PAGES = (
    "how-to/quickstart",
    "how-to/extending",
    "how-to/fit-teachers",
    *(f"explanation/{page}" for page in (*FIELD, "irl", "method")),
    "paper/equations",
)
FILES = ("README.md", "packages/ital/README.md", *(f"docs/{page}.md" for page in PAGES))
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture
def restored_registries():
    """Examples may register parts; other tests must not see them."""
    registries = (tasks.REGISTRY, teachers.REGISTRY, learners.REGISTRY)
    before = [dict(registry) for registry in registries]
    yield
    for registry, kept in zip(registries, before, strict=True):
        registry.clear()
        registry.update(kept)


@pytest.mark.parametrize("name", FILES)
def test_python_blocks_run(name, tmp_path, monkeypatch, restored_registries):
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
    assert blocks, f"{name} has no Python block"
    namespace = {"__name__": "__main__"}
    for block in blocks:
        line = text.count("\n", 0, block.start(1))
        # Blank lines in front, so that a traceback names the line of the document.
        exec(compile("\n" * line + block[1], str(ROOT / name), "exec"), namespace)
