"""Measure how the source reads: `python -m tests.metrics` prints a table beside four libraries that we learn from.

`python -m tests.metrics --list KIND` prints where each of a kind stands; KIND is one of `LISTS`.

What is counted:

- **Functions**: every function and method of `src/`, nested ones too; lines from `def` to the end, docstring left out.
- **Docstrings with Args**: of public functions and methods (no part of the name starts with `_`, not nested in a
  function) with two or more parameters besides `self` and `cls`.
- **Comments**: comment tokens by all lines of `src/`, blank ones too.
- **Any**: parameters annotated `Any`, by all parameters besides `self` and `cls`. Those that hold `Any` somewhere
  inside, as in `dict[str, Any]`, are counted apart.
- **Tests by source**: all lines of Python in `tests/` by all lines in `src/`; and the same of lines that hold code.
- **Ladders**: calls of `isinstance` in `methods/` and `reports/` that ask for a class which trains or publishes (it has
  one of the methods `TRAINS`), or for a union of such classes.
- **Privates**: attributes and imported names of others that start with one `_`, in `tests/`.
- **Patches**: code that a test replaces (`monkeypatch.setattr`, `setitem`, `delattr`, `delitem`). The environment and
  the current folder are not counted.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests import source

ROOT = Path(__file__).parent.parent
TRAINS = ("fit", "fit_published", "train", "collect", "publish")
PATCHES = ("setattr", "setitem", "delattr", "delitem")
#: Names of `typing.NamedTuple` that are public in spite of the underscore.
NAMED_TUPLE = ("_asdict", "_fields", "_replace")
LISTS = ("long", "args", "any", "any-inside", "ladders", "privates", "patches")

AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class File:
    """One file of Python, read once."""

    path: Path
    root: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text()

    @property
    def tree(self) -> ast.Module:
        return source.tree(self.path)

    @property
    def nodes(self) -> tuple[ast.AST, ...]:
        return source.nodes(self.path)

    @cached_property
    def lines(self) -> int:
        return len(self.text.splitlines())

    def at(self, line: int, what: str) -> str:
        """A place as an editor opens it, and what stands there."""
        return f"{self.path.relative_to(self.root)}:{line}: {what}"


@dataclass(frozen=True)
class Function:
    """A function with what is measured of it."""

    place: str
    length: int
    public: bool
    annotations: tuple[ast.expr | None, ...]
    docstring: str

    @property
    def needs_args(self) -> bool:
        return self.public and len(self.annotations) >= 2

    @property
    def has_args(self) -> bool:
        return "Args:" in self.docstring


@dataclass(frozen=True)
class Metrics:
    """The figures of the table; shares are between 0 and 1."""

    function_median: int
    function_p90: int
    function_p99: int
    function_longest: int
    file_longest: int
    args: float
    comments: float
    any: float
    any_inside: float
    tests_by_source: float
    code_tests_by_source: float
    ladders: int
    privates: int
    patches: int


class Code:
    """The files of a checkout, and the places of everything that is counted.

    Args:
        root: folder that holds `src/graphveil` and `tests`.
    """

    def __init__(self, root: Path = ROOT) -> None:
        self.source = _files(root, root / "src" / "graphveil")
        self.tests = _files(root, root / "tests")

    @cached_property
    def functions(self) -> list[Function]:
        return [function for file in self.source for function in _functions(file)]

    @cached_property
    def estimators(self) -> set[str]:
        """Classes that train or publish, and the names of unions of them."""
        nodes = [node for file in self.source for node in file.nodes]
        names = {node.name for node in nodes if isinstance(node, ast.ClassDef) and _trains(node)}
        for node in nodes:
            if isinstance(node, ast.Assign) and _is_union(node.value) and _names(node.value) & names:
                names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        return names

    def ladders(self) -> list[str]:
        """Where `methods/` and `reports/` ask which estimator they hold."""
        return [
            file.at(node.lineno, ast.unparse(node))
            for file in self.source
            if {"methods", "reports"} & set(file.path.parts)
            for node in file.nodes
            if isinstance(node, ast.Call) and _asks_for(node, self.estimators)
        ]

    def privates(self) -> list[str]:
        """Where tests reach for a name of another object or module that starts with one underscore."""
        return [file.at(line, what) for file in self.tests for line, what in _privates(file.nodes)]

    def patches(self) -> list[str]:
        """Where tests replace code."""
        return [
            file.at(node.lineno, ast.unparse(node))
            for file in self.tests
            for node in file.nodes
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in PATCHES
            and "monkeypatch" in _names(node.func.value)
        ]

    def with_any(self, *, inside: bool) -> list[str]:
        """Functions by parameter annotated `Any`, or with `Any` somewhere inside the annotation."""
        return [
            f"{function.place} {ast.unparse(annotation)}"
            for function in self.functions
            for annotation in function.annotations
            if annotation is not None and "Any" in _names(annotation) and isinstance(annotation, ast.Name) != inside
        ]

    def listed(self, kind: str) -> list[str]:
        """The places of one of `LISTS`."""
        if kind == "long":
            return [f"{function.place} {function.length}" for function in self.functions if function.length > 20]
        if kind == "args":
            return [function.place for function in self.functions if function.needs_args and not function.has_args]
        if kind in ("any", "any-inside"):
            return self.with_any(inside=kind == "any-inside")
        return {"ladders": self.ladders, "privates": self.privates, "patches": self.patches}[kind]()

    def metrics(self) -> Metrics:
        """Count everything."""
        lengths = sorted(function.length for function in self.functions)
        documented = [function.has_args for function in self.functions if function.needs_args]
        parameters = sum(len(function.annotations) for function in self.functions)
        lines = sum(file.lines for file in self.source)
        return Metrics(
            function_median=_percentile(lengths, 0.5),
            function_p90=_percentile(lengths, 0.9),
            function_p99=_percentile(lengths, 0.99),
            function_longest=lengths[-1],
            file_longest=max(file.lines for file in self.source),
            args=sum(documented) / len(documented),
            comments=sum(_comments(file) for file in self.source) / lines,
            any=len(self.with_any(inside=False)) / parameters,
            any_inside=len(self.with_any(inside=True)) / parameters,
            tests_by_source=sum(file.lines for file in self.tests) / lines,
            code_tests_by_source=sum(map(_code_lines, self.tests)) / sum(map(_code_lines, self.source)),
            ladders=len(self.ladders()),
            privates=len(self.privates()),
            patches=len(self.patches()),
        )


def _files(root: Path, folder: Path) -> list[File]:
    return [File(path, root) for path in sorted(folder.rglob("*.py"))]


def _functions(file: File) -> Iterator[Function]:
    """Every function of a file, outer ones first."""

    def visit(node: ast.AST, path: tuple[str, ...], nested: bool) -> Iterator[Function]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, AnyFunction):
                inner = (*path, child.name)
                yield _function(file, child, inner, nested)
                yield from visit(child, inner, True)
            elif isinstance(child, ast.ClassDef):
                yield from visit(child, (*path, child.name), nested)
            else:
                yield from visit(child, path, nested)

    yield from visit(file.tree, (), False)


def _function(file: File, node: AnyFunction, path: tuple[str, ...], nested: bool) -> Function:
    docstring = ast.get_docstring(node)
    first = node.body[0]
    hidden = (first.end_lineno or 0) - first.lineno + 1 if docstring is not None else 0
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return Function(
        place=file.at(node.lineno, ".".join(path)),
        length=(node.end_lineno or 0) - node.lineno + 1 - hidden,
        public=not nested and not any(name.startswith("_") for name in path),
        annotations=tuple(each.annotation for each in every if each is not None and each.arg not in ("self", "cls")),
        docstring=docstring or "",
    )


def _privates(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    for node in nodes:
        if isinstance(node, ast.Attribute) and _is_private(node.attr) and not _names(node.value) & {"self", "cls"}:
            yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"import {alias.name}") for alias in node.names if _is_private(alias.name))


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in NAMED_TUPLE


def _asks_for(call: ast.Call, classes: set[str]) -> bool:
    """Whether a call is `isinstance(value, one of the classes)`."""
    return isinstance(call.func, ast.Name) and call.func.id == "isinstance" and bool(_names(call.args[1]) & classes)


def _is_union(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)


def _trains(node: ast.ClassDef) -> bool:
    return any(isinstance(part, AnyFunction) and part.name in TRAINS for part in node.body)


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _percentile(ordered: list[int], share: float) -> int:
    return ordered[int(share * len(ordered))]


def _comments(file: File) -> int:
    tokens = tokenize.generate_tokens(io.StringIO(file.text).readline)
    return sum(token.type == tokenize.COMMENT for token in tokens)


def _code_lines(file: File) -> int:
    """Lines that hold code: not blank, not a comment, not of a docstring."""
    texts = {
        line
        for node in file.nodes
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate(file.text.splitlines(), start=1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") and at not in texts for at, line in lines)


def table(metrics: Metrics) -> str:
    """The figures, one a line: ours, those of dp_accounting, jax_privacy, PyG's operators and httpx, and the goal."""
    rows = [
        ("", "ours", "theirs", "goal"),
        ("function lines, median", f"{metrics.function_median}", "6 to 12", ""),
        ("function lines, 90th percentile", f"{metrics.function_p90}", "31 to 41", "<= 20"),
        ("function lines, 99th percentile", f"{metrics.function_p99}", "78 to 125", ""),
        ("function lines, longest", f"{metrics.function_longest}", "", "<= 80"),
        ("file lines, longest", f"{metrics.file_longest}", "", "<= 500"),
        ("docstrings with Args (public, two or more parameters)", f"{metrics.args:.1%}", "65% to 82%", ">= 65%"),
        ("comments by lines", f"{metrics.comments:.1%}", "5% to 8%", "3% to 6%"),
        ("parameters annotated Any", f"{metrics.any:.1%}", "0% to 3%", "<= 2%"),
        ("parameters with Any inside", f"{metrics.any_inside:.1%}", "", ""),
        ("lines of tests by lines of source", f"{metrics.tests_by_source:.2f}", "0.9 to 1.1", "<= 0.6"),
        ("lines of code of tests by those of source", f"{metrics.code_tests_by_source:.2f}", "", ""),
        ("ladders of isinstance over estimators", f"{metrics.ladders}", "", "0"),
        ("privates that tests reach for", f"{metrics.privates}", "", ""),
        ("patches of code in tests", f"{metrics.patches}", "", ""),
    ]
    return "\n".join(f"{name:<55}{ours:>8}  {theirs:<12}{goal}".rstrip() for name, ours, theirs, goal in rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.metrics", description="Measure how the source reads.")
    parser.add_argument("--list", choices=LISTS, help="print where each of a kind stands")
    kind = parser.parse_args().list
    code = Code()
    sys.stdout.write(("\n".join(code.listed(kind)) if kind else table(code.metrics())) + "\n")


if __name__ == "__main__":
    main()
