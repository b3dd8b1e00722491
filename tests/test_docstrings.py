"""Public names are documented: arguments, return values and fields, in Google's style.

A name is public if an ``__all__`` lists it. The test reads the source, so that no extra has to be installed.
"""

import ast

import pytest
from tests.test_house import TREES


def listed(tree):
    """The names in a module's ``__all__``."""
    assigned = [
        node
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List)
    ]
    return [
        name.value
        for node in assigned
        if node.targets[0].id == "__all__"
        for name in node.value.elts
    ]


def definition(module, name):
    """The function or class of that name, where it is defined; None for modules and constants."""
    for node in TREES[module][1].body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return f"{module}.{name}", node
        elsewhere = (
            isinstance(node, ast.ImportFrom) and node.module in TREES and node.module != module
        )
        if elsewhere and any(alias.name == name for alias in node.names):
            return definition(node.module, name)
    return None


def parameters(function):
    """What a function takes, as its documentation should name it."""
    arguments = function.args
    names = [
        argument.arg
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    ]
    names += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    names += [f"**{arguments.kwarg.arg}"] if arguments.kwarg else []
    return [name for name in names if name not in ("self", "cls")]


def decorators(node):
    return {ast.unparse(decorator) for decorator in node.decorator_list}


def public():
    """Every public function, class and method, by its dotted name."""
    for module, (_, tree) in TREES.items():
        for name, node in filter(None, (definition(module, name) for name in listed(tree))):
            yield name, node
            for method in node.body if isinstance(node, ast.ClassDef) else ():
                is_method = isinstance(method, ast.FunctionDef) and not method.name.startswith("_")
                if is_method and not any(
                    "property" in d or d.endswith(".setter") for d in decorators(method)
                ):
                    yield f"{name}.{method.name}", method


def described(text, *sections):
    """The names that some sections describe."""
    lines = text.splitlines()
    found = set()
    for section in sections:
        if f"{section}:" in lines:
            for line in lines[lines.index(f"{section}:") + 1 :]:
                if line and not line.startswith(" "):
                    break
                if line.startswith("    ") and not line.startswith("     ") and ":" in line:
                    found.add(line.partition(":")[0].strip())
    return found


def missing(node):
    """What the documentation of a function or class leaves out."""
    text = ast.get_docstring(node) or ""
    if isinstance(node, ast.ClassDef):
        fields = [
            n.target.id
            for n in node.body
            if isinstance(n, ast.AnnAssign) and "ClassVar" not in ast.dump(n)
        ]
        makers = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
        given = [name for maker in makers for name in parameters(maker)]
        return sorted({*fields, *given} - described(text, "Attributes", "Args"))
    left_out = sorted(set(parameters(node)) - described(text, "Args"))
    silent = node.returns is None or ast.unparse(node.returns) == "None"
    if not silent and not any(
        f"{section}:" in text.splitlines() for section in ("Returns", "Yields")
    ):
        left_out.append("Returns")
    return left_out


PUBLIC = dict(public())


@pytest.mark.parametrize("name", PUBLIC)
def test_public_things_are_documented(name):
    assert not missing(PUBLIC[name])


def test_a_gap_would_be_seen():
    function = ast.parse(
        'def f(a, *b, c=1) -> int:\n    """One line.\n\n    Args:\n        a: a number.\n    """'
    )
    assert missing(function.body[0]) == ["*b", "c", "Returns"]
    record = ast.parse('class A(NamedTuple):\n    """One line."""\n\n    x: int')
    assert missing(record.body[0]) == ["x"]


def test_public_things_are_found():
    assert {
        "ital.teaching._teach.teach",
        "ital.teaching._teach.Result.plot",
        "ital.tasks._pool_data.Pool",
    } <= set(PUBLIC)
