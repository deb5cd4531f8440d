"""Copies functions out of their files, for notebooks: definitions with everything that they use, and bodies."""

import ast
import importlib
import importlib.util
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from . import cells

HERE = cells.__name__
Task = tuple[Callable[..., object], Callable[..., None]]  # a function, which is the solution, and its check


class Source(NamedTuple):
    """A module's text by line, and its top-level statements by the names that they bind."""

    lines: list[str]
    statements: dict[str, ast.stmt]


@cache
def source_of(module: str) -> Source:
    text = inspect.getsource(importlib.import_module(module))
    statements: dict[str, ast.stmt] = {}
    for node in ast.parse(text).body:
        for name in bound_by(node):
            statements[name] = node
    return Source(text.splitlines(), statements)


def bound_by(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in names)
        case ast.Assign(targets=targets):
            yield from (each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name


def used_by(node: ast.AST) -> Iterator[str]:
    """The names that ``node`` reads, except in annotations, which a notebook does not evaluate.

    What annotations name of other packages is imported all the same; see ``annotated_in``.
    """
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.Name):
                yield child.id
            if isinstance(child, ast.AST):
                yield from used_by(child)


def annotated_in(node: ast.AST) -> Iterator[str]:
    """The names in the annotations of ``node``."""
    for each in ast.walk(node):
        for annotation in (getattr(each, "annotation", None), getattr(each, "returns", None)):
            if annotation is not None:
                yield from (part.id for part in ast.walk(annotation) if isinstance(part, ast.Name))


class Collector:
    """Copies definitions in an order in which they run.

    What ``cells.py`` defines replaces others of that name. ``left_out`` has the modules of names that are not copied.
    """

    def __init__(self, left_out: Mapping[str, str]) -> None:
        self.left_out = left_out
        self.imports: set[str] = set()
        self.copied: list[str] = []
        self.found: dict[str, str] = {}  # the module of each name

    def use(self, node: ast.AST, module: str) -> None:
        """Copy what ``node`` in ``module`` uses."""
        for name in used_by(node):
            self.copy(name, module)

    def copy(self, name: str, module: str) -> None:
        lines, statements = source_of(module)
        node = statements.get(name)
        if node is None or self.left_out.get(name) == module:
            return  # a built-in or local name, or one that the notebook's reader defines
        if isinstance(node, ast.Import | ast.ImportFrom):
            self.follow(name, node, module)
            return
        replaced = source_of(HERE).statements.get(name)
        if module != HERE and replaced is not None and not isinstance(replaced, ast.Import | ast.ImportFrom):
            self.copy(name, HERE)
            return
        if name in self.found:
            assert self.found[name] == module, f"{name} is defined in {self.found[name]} and {module}"
            return
        for each in bound_by(node):
            self.found[each] = module
        self.use(node, module)
        self.import_annotated(node, module)
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
        self.copied.append("\n".join(lines[first - 1 : node.end_lineno]))

    def import_annotated(self, node: ast.AST, module: str) -> None:
        """Import what annotations in ``node`` name of other packages."""
        for each in annotated_in(node):
            imported = source_of(module).statements.get(each)
            if isinstance(imported, ast.ImportFrom) and not is_ours(imported, module):
                self.follow(each, imported, module)

    def follow(self, name: str, node: ast.Import | ast.ImportFrom, module: str) -> None:
        """Copy what an import of ours brings; keep any other import."""
        alias = next(each for each in node.names if (each.asname or each.name.partition(".")[0]) == name)
        if isinstance(node, ast.Import):
            self.imports.add(f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else ""))
            return
        target = imported_module(node, module)
        if is_ours(node, module):
            self.copy(alias.name, target)
        else:
            self.imports.add(f"from {target} import {alias.name}" + (f" as {alias.asname}" if alias.asname else ""))


def imported_module(node: ast.ImportFrom, module: str) -> str:
    """The absolute name of what ``node`` in ``module`` imports from."""
    package = sys.modules[module].__package__ or ""
    return importlib.util.resolve_name("." * node.level + (node.module or ""), package)


def is_ours(node: ast.ImportFrom, module: str) -> bool:
    return imported_module(node, module).split(".")[0] in ("model", "web")


def definitions(run: Callable[..., None], tasks: Sequence[Task] = ()) -> str:
    """The first code cell: imports, and all definitions that ``run`` uses, and ``tasks`` with their checks.

    The tasks themselves are left out.
    """
    collector = Collector(left_out={solution.__name__: solution.__module__ for solution, _ in tasks})
    for function in [run, *(each for task in tasks for each in task)]:
        node = definition_of(function)
        collector.use(node, function.__module__)
        if function is not run:
            collector.import_annotated(node, function.__module__)
    collector.imports.add("import torch")  # for the inputs
    first = ["from __future__ import annotations", "", *sorted(collector.imports)]
    return "\n\n\n".join(["\n".join(first), *collector.copied])


def definition_of(function: Callable[..., object]) -> ast.FunctionDef:
    node = source_of(function.__module__).statements[function.__name__]
    assert isinstance(node, ast.FunctionDef)
    return node


def signature_of(function: Callable[..., object]) -> str:
    """The lines of a function above its docstring."""
    lines, node = source_of(function.__module__).lines, definition_of(function)
    return "\n".join(lines[node.lineno - 1 : node.body[0].lineno - 1])


def body_of(function: Callable[..., object]) -> str:
    """The lines of a function below its docstring, if it has one."""
    lines, node = source_of(function.__module__).lines, definition_of(function)
    first = node.body[0]
    start = first.end_lineno if ast.get_docstring(node) else first.lineno - 1
    return textwrap.dedent("\n".join(lines[start : node.end_lineno])).strip("\n")
