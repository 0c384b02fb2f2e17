"""The examples of docstrings say what they say they do."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

#: Modules whose docstrings hold examples.
MODULES = (
    "graphveil.federation.core.setting",
    "graphveil.federation.crypto.ring",
    "graphveil.federation.crypto.sharing",
    "graphveil.federation.estimator",
    "graphveil.graphs.conversions",
    "graphveil.graphs.description",
    "graphveil.graphs.edges",
    "graphveil.graphs.load",
    "graphveil.graphs.social",
    "graphveil.graphs.splits",
    "graphveil.graphs.value",
    "graphveil.hierarchy.dendrogram",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name: str) -> None:
    failed, tried = doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert tried and not failed
