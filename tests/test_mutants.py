"""The table of mutants matches the source. A run of tests/mutants.py takes minutes; this test takes a moment."""

import pytest

from tests.mutants import GUARDS, MUTANTS, ROOT, SOURCE, guards, mutated


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.file}: {mutant.before}")
def test_snippets_occur_once_and_what_replaces_them_is_python(mutant):
    text = (ROOT / SOURCE / mutant.file).read_text("utf-8")
    broken = mutated(mutant, text)
    assert broken is not None, f"{mutant.before!r} occurs {text.count(mutant.before)} times in {mutant.file}"
    assert broken != text
    compile(broken, mutant.file, "exec")


def test_the_guards_are_there():
    assert {file for file in GUARDS if not any(mutant.file.startswith(file) for mutant in MUTANTS)} == set()
    for test in {test for mutant in MUTANTS for test in guards(mutant)}:
        file, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text("utf-8") if name else (ROOT / file).exists()


def test_no_mutant_is_there_twice():
    assert len({(mutant.file, mutant.before, mutant.after) for mutant in MUTANTS}) == len(MUTANTS)
