"""Public names document their arguments, results and fields, in Google's style, and begin with a
verb.
"""

import ast
import re
from collections.abc import Iterator, Mapping

from tools.house.sources import Source

Definition = ast.FunctionDef | ast.ClassDef

# An article or a question word says what something is called, not what it does.
NO_VERB = re.compile(
    r"(A|An|The|What|Which|Who|Whose|Where|When|Whether|How|Why|This|That|These)\b"
)


def listed_names(tree: ast.Module) -> list[str]:
    """Return the names in a module's ``__all__``."""
    names = []
    for node in tree.body:
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.List)):
            continue
        target = node.targets[0]
        if isinstance(target, ast.Name) and target.id == "__all__":
            names += [each.value for each in node.value.elts if isinstance(each, ast.Constant)]
    return [str(name) for name in names]


def find_definition(
    module: str, name: str, sources: Mapping[str, Source]
) -> tuple[str, Definition] | None:
    """Return a public function or class with its dotted name, where it is defined; None for modules
    and constants.
    """
    for node in sources[module].tree.body:
        if isinstance(node, Definition) and node.name == name:
            return f"{module}.{name}", node
        if not isinstance(node, ast.ImportFrom) or node.module == module:
            continue
        if node.module in sources and any(alias.name == name for alias in node.names):
            return find_definition(node.module, name, sources)
    return None


def public_definitions(sources: Mapping[str, Source]) -> dict[str, Definition]:
    """Return every public function, class and method, by its dotted name."""
    public = {}
    for module, source in sources.items():
        for listed in listed_names(source.tree):
            found = find_definition(module, listed, sources)
            if found is None:
                continue
            name, node = found
            public[name] = node
            if isinstance(node, ast.ClassDef):
                public |= {f"{name}.{method.name}": method for method in public_methods(node)}
    return public


def public_methods(node: ast.ClassDef) -> Iterator[ast.FunctionDef]:
    """Yield the public methods of a class; properties are described like fields."""
    for method in node.body:
        if not isinstance(method, ast.FunctionDef) or method.name.startswith("_"):
            continue
        decorators = [ast.unparse(decorator) for decorator in method.decorator_list]
        if not any("property" in each or each.endswith(".setter") for each in decorators):
            yield method


def parameters(function: ast.FunctionDef) -> list[str]:
    """Return what a function takes, as its documentation should name it."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    names = [argument.arg for argument in positional]
    if arguments.vararg:
        names.append(f"*{arguments.vararg.arg}")
    if arguments.kwarg:
        names.append(f"**{arguments.kwarg.arg}")
    return [name for name in names if name not in ("self", "cls")]


def described(text: str, *sections: str) -> set[str]:
    """Return the names that some sections of a docstring describe."""
    found: set[str] = set()
    section = ""
    for line in text.splitlines():
        if line and not line.startswith(" "):
            section = line.removesuffix(":")
        elif section in sections and re.match(r" {4}\S.*:", line):
            found.add(line.partition(":")[0].strip())
    return found


def gaps(node: Definition) -> list[str]:
    """Return what the documentation of a function or class leaves out."""
    text = ast.get_docstring(node) or ""
    if isinstance(node, ast.ClassDef):
        return sorted(fields_of(node) - described(text, "Attributes", "Args"))
    missing = sorted(set(parameters(node)) - described(text, "Args"))
    is_silent = node.returns is None or ast.unparse(node.returns) == "None"
    says_result = {"Returns:", "Yields:"} & set(text.splitlines())
    if not is_silent and not says_result:
        missing.append("Returns")
    return missing


def strangers(node: Definition) -> list[str]:
    """Return what the documentation of a function or class describes although it does not exist."""
    text = ast.get_docstring(node) or ""
    if isinstance(node, ast.ClassDef):
        return sorted(described(text, "Attributes") - fields_of(node) - attributes_of(node))
    return sorted(described(text, "Args") - set(parameters(node)))


def fields_of(node: ast.ClassDef) -> set[str]:
    """Return the fields of a record and what its constructor takes."""
    annotated = [each for each in node.body if isinstance(each, ast.AnnAssign)]
    fields = {ast.unparse(each.target) for each in annotated if "ClassVar" not in ast.dump(each)}
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            fields |= set(parameters(each))
    return fields


def attributes_of(node: ast.ClassDef) -> set[str]:
    """Return the properties of a class and everything that its methods set on ``self``."""
    found = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    found |= {ast.unparse(each.target) for each in node.body if isinstance(each, ast.AnnAssign)}
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and ast.unparse(each.value) == "self":
            found.add(each.attr)
    return found


def undocumented(sources: Mapping[str, Source]) -> Iterator[str]:
    """Yield public names whose documentation leaves something out or describes something else."""
    for name, node in public_definitions(sources).items():
        if gaps(node):
            yield f"{name} does not document {', '.join(gaps(node))}"
        if strangers(node):
            yield f"{name} documents {', '.join(strangers(node))}, which it does not have"


def without_verb(sources: Mapping[str, Source]) -> list[str]:
    """Return the functions whose docstring does not begin with a verb."""
    found = []
    for source in sources.values():
        for node in ast.walk(source.tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if is_property(node):
                continue
            if NO_VERB.match(ast.get_docstring(node) or ""):
                found.append(f"{source.module}:{node.lineno} {node.name}")
    return found


def is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a method reads like a field: then a noun describes it."""
    return any("property" in ast.unparse(each) for each in node.decorator_list)
