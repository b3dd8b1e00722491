"""The rules of the house (``python -m tools.house``, in ``make lint``) notice what breaks them."""

import ast

import pytest
from tools.house import density, docstrings, walls, words
from tools.house.sources import ROOT, Source, package_sources


@pytest.fixture(scope="module")
def sources():
    return package_sources()


@pytest.fixture
def with_module(sources):
    """All sources and one more."""

    def add(text, module="ital.made_up"):
        file = ROOT / "packages" / "made_up.py"
        return {**sources, module: Source(module, file, text, ast.parse(text))}

    return add


def test_private_names_stay_in_their_package(with_module):
    text = (
        "from ital.tasks._irl import irl\n"
        "from ital.tasks import _irl, irl\n"
        "from ital.volume import _a\n"
        "NAME = 'ital.tasks._irl.irl'\n"
    )
    broken = with_module(text)
    assert [line.partition(": ")[2] for line in walls.crossed_walls(broken)] == [
        "ital.tasks._irl.irl is private to ital.tasks",
        "ital.tasks._irl is private to ital.tasks",
        "ital.volume._a is private to ital.volume",
    ]
    assert "ital.tasks._irl.irl" in next(walls.hidden_imports(broken))


def test_a_class_has_one_name(with_module):
    broken = with_module("class Task: ...\n")
    assert list(walls.repeated_classes(broken)) == [
        "class Task is defined in ital.tasks._base and ital.made_up"
    ]


def test_files_of_tests_have_one_name_and_the_librarys_need_the_library_alone(tmp_path):
    for package in ("ital", "ital-study"):
        folder = tmp_path / "packages" / package / "tests"
        folder.mkdir(parents=True)
        (folder / "test_one.py").write_text("import ital_study\nfrom ital import _a\n")
    assert len(list(walls.repeated_tests(tmp_path))) == 1
    assert list(walls.foreign_tests(tmp_path)) == [
        "packages/ital/tests/test_one.py: ital_study is of another package"
    ]
    assert len(walls.private_in_tests(tmp_path)) == 2


def test_documentation_with_gaps_or_of_something_else_is_found():
    text = '"""Do it.\n\n    Args:\n        a: a number.\n        z: no argument.\n    """'
    (function,) = ast.parse(f"def f(a, *b, c=1) -> int:\n    {text}").body
    assert docstrings.gaps(function) == ["*b", "c", "Returns"]
    assert docstrings.strangers(function) == ["z"]
    (record,) = ast.parse('class A(NamedTuple):\n    """A record."""\n\n    x: int').body
    assert docstrings.gaps(record) == ["x"]


def test_public_names_are_found(sources):
    assert {
        "ital.teaching._teach.teach",
        "ital.teaching._teach.Result.plot",
        "ital.tasks._pool_data.Pool",
    } <= set(docstrings.public_definitions(sources))


def test_a_docstring_begins_with_a_verb(with_module):
    text = 'def f():\n    """The result."""\n\ndef g():\n    """Return it."""\n'
    mine = {"ital.made_up": with_module(text)["ital.made_up"]}
    assert docstrings.without_verb(mine) == ["ital.made_up:1 f"]


def test_unwanted_words_are_found(with_module):
    broken = with_module('def f():\n    """Return what he said."""  # so many\n')
    assert [line.partition(": ")[2] for line in words.unwanted_words(broken)] == [
        '"""Return what he said."""',
        "# so many",
    ]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("a, b = x, y", "packed"),
        ("[[b for b in a] for a in x]", "nested_comprehensions"),
        ("[b for a in x for b in a]", "nested_comprehensions"),
        ("a if b else c if d else e", "nested_conditions"),
    ],
)
def test_what_is_packed_is_counted(with_module, text, rule):
    mine = {"ital.made_up": with_module(text)["ital.made_up"]}
    assert density.counts(mine)["ital"][rule] == 1
    assert density.counts({"ital.made_up": with_module("a = x")["ital.made_up"]})["ital"][rule] == 0


def test_limits_only_fall():
    found = {"ital": {"packed": 3, "conditions": 9}}
    limits = {"ital": {"packed": 4, "conditions": 8}}
    (line,) = density.excess(found, limits)
    assert line.startswith("ital: 9 × conditions, at most 8")
    assert density.lowered(found, limits) == {"ital": {"packed": 3, "conditions": 8}}
