"""The examples of docstrings say what they say they do."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest
from pytest import param

import graphveil
from graphveil import aggregation, privacy, training
from graphveil.methods.runs import experiment

SOURCE = Path(graphveil.__file__).parent
#: Modules whose docstrings hold examples.
MODULES = sorted(
    "graphveil." + ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    for path in SOURCE.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)
#: Mechanisms draw a value or two; what other modules show may train.
QUICK = "graphveil.mechanisms."

#: What users need most beside the names of the root, and where they find it.
MOST_USED = {
    privacy: ("Guarantee", "Ledger", "SecureRandomness", "SeededRandomness", "compose"),
    aggregation: ("PerturbedSum",),
    training: ("train",),
    experiment: ("run",),
}


@pytest.mark.parametrize(
    "name", [param(name, marks=[] if name.startswith(QUICK) else pytest.mark.slow) for name in MODULES]
)
def test_examples_of_docstrings(name: str) -> None:
    failed, tried = doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert tried and not failed


def test_the_names_that_users_need_most_have_an_example() -> None:
    rooms = {"__version__", "federation", "graphs", "mechanisms", "methods", "privacy"}
    wanted = [(graphveil, name) for name in graphveil.__all__ if name not in rooms]
    wanted += [(room, name) for room, names in MOST_USED.items() for name in names]
    assert len(wanted) >= 25
    assert [name for room, name in wanted if ">>> " not in (getattr(room, name).__doc__ or "")] == []
