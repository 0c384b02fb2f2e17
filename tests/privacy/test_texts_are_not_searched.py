"""Meaning is read from values: only `privacy/statement/texts.py` looks for words in what a guarantee prints."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

from graphveil.privacy.statement.registry import CODES
from tests import source

SOURCE = Path(__file__).parents[2] / "src" / "graphveil"
READER = SOURCE / "privacy" / "statement" / "texts.py"
#: What makes a text of a value: `unit.text`, `against.text`, `fact.sentence`, `guarantee.sentence()`, `str(unit)`.
TEXTS = {"text", "sentence"}
VALUES = {"unit", "against", "assumes"}
SEARCHES = {
    *("startswith", "endswith", "find", "rfind", "index", "rindex", "count", "split", "rsplit", "partition"),
    *("rpartition", "replace", "removeprefix", "removesuffix", "search", "match", "fullmatch", "findall"),
}
FILES = sorted(file for file in SOURCE.rglob("*.py") if file != READER)


def is_text(node: ast.AST) -> bool:
    """Whether an expression is a text that was made of a value of a guarantee."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str":
        return any(isinstance(arg, ast.Attribute) and arg.attr in VALUES for arg in node.args)
    if not isinstance(node, ast.Attribute) or node.attr not in TEXTS:
        return False
    owner = node.value
    named = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
    return node.attr == "sentence" or named in VALUES


def searches(nodes: Iterable[ast.AST]) -> list[str]:
    """Every place that compares such a text, or looks for words in it."""
    places = []
    for node in nodes:
        operands: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SEARCHES:
            operands = [node.func.value, *node.args]
        if any(is_text(part) for operand in operands for part in ast.walk(operand)):
            places.append(ast.unparse(node))
    return places


def test_a_search_is_noticed() -> None:
    for code in (
        "'edge' in part.unit.text",
        "guarantee.unit.text == 'one edge'",
        "any('NOT' in fact.sentence for fact in found.assumes)",
        "str(guarantee.against).startswith('everybody')",
        "guarantee.sentence().split('Assumes')",
        "re.search('edge', unit.text)",
        "'edge' in ' '.join(part.unit.text for part in parts).lower()",
        "unit.text.lower().find('edge')",
    ):
        assert searches(ast.walk(ast.parse(code))), code
    for code in (
        "'edge' in unit.covers",
        "guarantee.unit == NODE",
        "{'unit': guarantee.unit.text}",
        "f'{guarantee.unit.text}: {epsilon}'",
        "', '.join(names) == title",
        "spend.unit.split(' of ')",
    ):
        assert not searches(ast.walk(ast.parse(code))), code


def test_no_module_looks_for_words_in_what_a_guarantee_prints() -> None:
    searched = {str(file.relative_to(SOURCE)): lines for file in FILES if (lines := searches(source.nodes(file)))}
    assert not searched, "decide by codes, see privacy/statement/unit.py and assumption.py"


def test_no_sentence_of_the_registry_is_written_twice() -> None:
    sentences = {entry.sentence for entry in CODES.values() if "{" not in entry.sentence}
    for file in FILES:
        if "privacy" in file.parts:
            continue
        words = {node.value for node in source.nodes(file) if isinstance(node, ast.Constant)}
        assert not {word for word in words if isinstance(word, str)} & sentences, file.relative_to(SOURCE)
