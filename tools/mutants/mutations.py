"""The small errors that can be made in a source file: mutmut's operators, and slips they do not
make.

A mutation is left out where it means nothing: annotations, decorators, imports, words for people
(strings, messages of errors, warnings), assertions, and checks of the program on itself
(``zip(strict=True)``).
"""

import ast
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation import mutators

Operator = Callable[[cst.CSTNode], Iterable[cst.CSTNode]]


class Mutation(NamedTuple):
    """One error: its file, the line where it begins, its kind, the code before and after, its
    number among equals.

    ``place`` is its place among all that are found in the file.
    """

    file: str
    line: int
    kind: str
    before: str
    after: str
    number: int
    place: int

    @property
    def key(self) -> str:
        """A name that stays the same while other lines of the file change."""
        return "\n".join((self.file, self.kind, self.before, self.after, str(self.number)))

    def rank(self, seed: int) -> str:
        """Its place in a seed's random order."""
        return hashlib.sha256(f"{seed}\n{self.key}".encode()).hexdigest()


# Functions that are mistaken for each other.
TWINS = {
    "max": "min",
    "any": "all",
    "argmax": "argmin",
    "nanmax": "nanmin",
    "maximum": "minimum",
    "sum": "mean",
    "median": "mean",
    "cumsum": "cumprod",
    "floor": "ceil",
    "logical_and": "logical_or",
    "zeros": "ones",
    "zeros_like": "ones_like",
    "sorted": "list",
    "first": "last",
}
TWIN_OF = {**{second: first for first, second in TWINS.items() if second != "list"}, **TWINS}
# Arguments that only words, looks, or the program's checks of itself depend on.
IDLE_ARGUMENTS = {
    "strict",
    "help",
    "metavar",
    "rich_help_panel",
    "encoding",
    "stacklevel",
    "title",
    "label",
}
# Calls that only tell.
TELLING = {
    "warn",
    "debug",
    "info",
    "warning",
    "say",
    "show",
    "TypeVar",
    "NewType",
    "cast",
    "String",
}
# Calls whose arguments are never mistaken for each other.
PLAIN = {"suppress", "isinstance", "issubclass", "getattr", "hasattr", "setattr", "Path", "Column"}
# Places where numbers and options are a matter of taste.
LOOKS = ("figures/", "report/")
OF_TASTE = {"number", "smaller_number", "dropped_keyword"}
NOT_CODE = (
    cst.Annotation,
    cst.Decorator,
    cst.Import,
    cst.ImportFrom,
    cst.Assert,
    cst.Raise,
    cst.BaseString,
)


def smaller_number(node: cst.Integer) -> Iterator[cst.BaseExpression]:
    """One less; mutmut makes it one more."""
    value = node.evaluated_value - 1
    yield cst.parse_expression(str(value) if value >= 0 else f"({value})")


def _forced(condition: cst.BaseExpression, word: str) -> cst.BaseExpression:
    inside = condition.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    operator = cst.And() if word == "False" else cst.Or()
    return cst.BooleanOperation(inside, operator, cst.Name(word))


def forced_condition(node: cst.If) -> Iterator[cst.If]:
    """A check that is dropped, and a branch that is always taken."""
    yield node.with_changes(test=_forced(node.test, "False"))
    if node.orelse is not None:
        yield node.with_changes(test=_forced(node.test, "True"))


def dropped_filter(node: cst.CompIf) -> Iterator[cst.CompIf]:
    """A comprehension that keeps everything."""
    yield node.with_changes(test=_forced(node.test, "True"))


def dropped_operand(node: cst.BooleanOperation) -> Iterator[cst.BaseExpression]:
    """One side only of ``and`` or ``or``."""
    for side in (node.left, node.right):
        yield side.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def dropped_keyword(node: cst.Call) -> Iterator[cst.Call]:
    """A keyword argument that is forgotten."""
    for i, argument in enumerate(node.args):
        if argument.keyword is not None and argument.keyword.value not in IDLE_ARGUMENTS:
            rest = [*node.args[:i], *node.args[i + 1 :]]
            if rest and i == len(node.args) - 1:
                rest[-1] = rest[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
            yield node.with_changes(args=rest)


def swapped_arguments(node: cst.Call) -> Iterator[cst.Call]:
    """Two neighbouring arguments in the wrong order."""
    if _called(node) in PLAIN:
        return
    simple = (cst.Name, cst.Attribute, cst.Subscript)
    for i, (first, second) in enumerate(zip(node.args, node.args[1:], strict=False)):
        plain = all(one.keyword is None and one.star == "" for one in (first, second))
        if plain and all(isinstance(one.value, simple) for one in (first, second)):
            swapped = [
                first.with_changes(value=second.value),
                second.with_changes(value=first.value),
            ]
            yield node.with_changes(args=[*node.args[:i], *swapped, *node.args[i + 2 :]])


def mistaken_function(node: cst.Call) -> Iterator[cst.Call]:
    """``max`` for ``min`` and the like."""
    twin = TWIN_OF.get(_called(node))
    if twin is not None:
        name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
        yield node.with_deep_changes(name, value=twin)


def _called(node: cst.Call) -> str:
    """The name of what is called, without the object it belongs to."""
    name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
    return name.value if isinstance(name, cst.Name) else ""


def forgotten_statement(node: cst.SimpleStatementLine) -> Iterator[cst.SimpleStatementLine]:
    """A call for its effect, or an update of a variable from itself, that is left out."""
    if len(node.body) != 1:
        return
    statement = node.body[0]
    called = isinstance(statement, cst.Expr) and isinstance(statement.value, cst.Call | cst.Await)
    if called or _updates(statement):
        yield node.with_changes(body=[cst.Pass()])


def _updates(statement: cst.CSTNode) -> bool:
    """Whether a statement computes a variable from its own value."""
    if isinstance(statement, cst.AugAssign):
        return True
    if not isinstance(statement, cst.Assign) or not isinstance(
        statement.targets[0].target, cst.Name
    ):
        return False
    name = statement.targets[0].target.value
    names = _Names()
    statement.value.visit(names)
    return name in names.found


class _Names(cst.CSTVisitor):
    def __init__(self) -> None:
        self.found: set[str] = set()

    def visit_Name(self, node: cst.Name) -> None:
        self.found.add(node.value)


KEYWORDS = cst.Is | cst.IsNot | cst.In | cst.NotIn | cst.Break | cst.Continue
WITH_OPERATOR = (
    cst.BinaryOperation
    | cst.UnaryOperation
    | cst.BooleanOperation
    | cst.ComparisonTarget
    | cst.AugAssign
)  # fmt: skip
OPERATORS: tuple[tuple[Any, Operator], ...] = (
    (cst.BaseNumber, mutators.operator_number),
    (cst.Name, mutators.operator_name),
    (cst.UnaryOperation, mutators.operator_remove_unary_ops),
    (KEYWORDS, mutators.operator_keywords),
    (WITH_OPERATOR, mutators.operator_swap_op),
    (cst.AugAssign, mutators.operator_augmented_assignment),
    (cst.Call, mutators.operator_symmetric_string_methods_swap),
    (cst.Call, mutators.operator_unsymmetrical_string_methods_swap),
    (cst.Match, mutators.operator_match),
    (cst.IfExp, mutators.operator_if_exp),
    (cst.Integer, smaller_number),
    (cst.If, forced_condition),
    (cst.CompIf, dropped_filter),
    (cst.BooleanOperation, dropped_operand),
    (cst.Call, dropped_keyword),
    (cst.Call, swapped_arguments),
    (cst.Call, mistaken_function),
    (cst.SimpleStatementLine, forgotten_statement),
)  # fmt: skip


class _Finder(cst.CSTVisitor):
    """Collects every mutation of a module, as nodes."""

    def __init__(self) -> None:
        self.found: list[tuple[str, cst.CSTNode, cst.CSTNode]] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if _means_nothing(node):
            return False
        for kind, operator in OPERATORS:
            if isinstance(node, kind):
                name = operator.__name__.removeprefix("operator_")
                self.found += [(name, node, broken) for broken in operator(node)]
        return True


def _means_nothing(node: cst.CSTNode) -> bool:
    if isinstance(node, NOT_CODE):
        return not isinstance(node, cst.FormattedString | cst.ConcatenatedString)
    if isinstance(node, cst.If):
        return _mentions(node.test, {"TYPE_CHECKING", "__name__"})
    if isinstance(node, cst.Arg):
        return node.keyword is not None and node.keyword.value in IDLE_ARGUMENTS
    if isinstance(node, cst.Call):
        return _called(node) in TELLING
    return isinstance(node, cst.SimpleStatementLine) and _is_declaration(node.body[0])


def _mentions(node: cst.CSTNode, names: set[str]) -> bool:
    seen = _Names()
    node.visit(seen)
    return bool(seen.found & names)


def _is_declaration(statement: cst.CSTNode) -> bool:
    """Whether a statement lists public names or gives a union of types a name."""
    if not isinstance(statement, cst.Assign) or not isinstance(
        statement.targets[0].target, cst.Name
    ):
        return False
    name = statement.targets[0].target.value
    union = isinstance(statement.value, cst.BinaryOperation) and isinstance(
        statement.value.operator, cst.BitOr
    )
    return name == "__all__" or (union and name[0].isupper())


def _found(module: cst.Module) -> list[tuple[str, cst.CSTNode, cst.CSTNode]]:
    finder = _Finder()
    module.visit(finder)
    return finder.found


def mutations_of(file: str, text: str) -> Iterator[Mutation]:
    """Every mutation of a file."""
    wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
    module = wrapper.module
    positions = wrapper.resolve(PositionProvider)
    taste = any(f"/{place}" in file for place in LOOKS)
    seen: Counter[tuple[str, str, str]] = Counter()
    for place, (kind, node, broken) in enumerate(_found(module)):
        if taste and kind in OF_TASTE:
            continue
        before = module.code_for_node(node).strip()
        after = module.code_for_node(broken).strip()
        number = seen[kind, before, after]
        seen[kind, before, after] += 1
        yield Mutation(file, positions[node].start.line, kind, before, after, number, place)


def broken_text(mutation: Mutation, text: str) -> str:
    """The text of a file with one of its mutations."""
    module = cst.parse_module(text)
    _, node, broken = _found(module)[mutation.place]
    return module.deep_replace(node, broken).code


def changes_the_program(text: str, broken: str) -> bool:
    """Whether a broken text is Python and another program."""
    try:
        return ast.dump(ast.parse(text)) != ast.dump(ast.parse(broken))
    except SyntaxError:
        return False
