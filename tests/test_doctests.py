"""The examples of docstrings say what they say they do."""

from __future__ import annotations

import ast
import doctest
from importlib import import_module
from pathlib import Path

import pytest

import graphveil
from graphveil import aggregation, privacy, training
from graphveil.methods.runs import experiment

#: Modules whose docstrings hold examples.
MODULES = (
    "graphveil.aggregation.counted",
    "graphveil.aggregation.entries",
    "graphveil.aggregation.perturbed",
    "graphveil.aggregation.propagation",
    "graphveil.ascending",
    "graphveil.columns",
    "graphveil.engine.blocks",
    "graphveil.engine.local",
    "graphveil.federation.core.setting",
    "graphveil.federation.crypto.ring",
    "graphveil.federation.crypto.sharing",
    "graphveil.federation.estimator",
    "graphveil.graphs.conversions",
    "graphveil.graphs.description",
    "graphveil.graphs.edges",
    "graphveil.graphs.load",
    "graphveil.graphs.schema",
    "graphveil.graphs.social",
    "graphveil.graphs.stored",
    "graphveil.graphs.splits",
    "graphveil.graphs.value",
    "graphveil.hierarchy.dendrogram",
    "graphveil.mechanisms.by_blocks",
    "graphveil.mechanisms.catalogue",
    "graphveil.mechanisms.category_comparison",
    "graphveil.mechanisms.edges.adjacency",
    "graphveil.mechanisms.edges.class_counts",
    "graphveil.mechanisms.edges.degree_preserving",
    "graphveil.mechanisms.edges.degrees",
    "graphveil.mechanisms.edges.edge_rand",
    "graphveil.mechanisms.edges.lap_graph",
    "graphveil.mechanisms.edges.noisy_counts",
    "graphveil.mechanisms.edges.pair_domain",
    "graphveil.mechanisms.features.clipping",
    "graphveil.mechanisms.features.duchi",
    "graphveil.mechanisms.features.feature_rr",
    "graphveil.mechanisms.features.gaussian",
    "graphveil.mechanisms.features.laplace",
    "graphveil.mechanisms.features.multibit",
    "graphveil.mechanisms.features.onebit",
    "graphveil.mechanisms.features.privunit",
    "graphveil.mechanisms.labels.choice",
    "graphveil.mechanisms.labels.randomized_response",
    "graphveil.mechanisms.labels.subset_selection",
    "graphveil.mechanisms.labels.unary_encoding",
    "graphveil.mechanisms.public",
    "graphveil.mechanisms.question",
    "graphveil.methods.base.estimator",
    "graphveil.methods.curator.caribou",
    "graphveil.methods.curator.class_sums",
    "graphveil.methods.curator.dp_mlp",
    "graphveil.methods.curator.dpdgc",
    "graphveil.methods.curator.eclipse",
    "graphveil.methods.curator.gap",
    "graphveil.methods.curator.gcon",
    "graphveil.methods.curator.lpgnet",
    "graphveil.methods.curator.node_sums",
    "graphveil.methods.curator.progap",
    "graphveil.methods.links.link_beliefs",
    "graphveil.methods.links.solitude",
    "graphveil.methods.local.label_propagation",
    "graphveil.methods.local.lpgnn",
    "graphveil.methods.registry",
    "graphveil.methods.release.class_counts",
    "graphveil.methods.release.heterorr",
    "graphveil.methods.runs.experiment",
    "graphveil.privacy.accountant",
    "graphveil.privacy.aes_words",
    "graphveil.privacy.block_noise",
    "graphveil.privacy.guarantee",
    "graphveil.privacy.guessing",
    "graphveil.privacy.ledger",
    "graphveil.privacy.randomness",
    "graphveil.privacy.report_bound",
    "graphveil.training.loop",
)

#: What users need most beside the names of the root, and where they find it.
MOST_USED = {
    privacy: ("Guarantee", "Ledger", "SecureRandomness", "SeededRandomness", "compose"),
    aggregation: ("PerturbedSum",),
    training: ("train",),
    experiment: ("run",),
}


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name: str) -> None:
    failed, tried = doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert tried and not failed


def test_every_module_with_an_example_is_listed() -> None:
    source = Path(graphveil.__file__).parent
    holding = {
        "graphveil." + ".".join(path.relative_to(source).with_suffix("").parts)
        for path in source.rglob("*.py")
        if any(
            ">>> " in (ast.get_docstring(node) or "")
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        )
    }
    assert holding == set(MODULES)


def test_the_names_that_users_need_most_have_an_example() -> None:
    rooms = {"__version__", "federation", "graphs", "mechanisms", "methods", "privacy"}
    asked = [(graphveil, name) for name in graphveil.__all__ if name not in rooms]
    asked += [(room, name) for room, names in MOST_USED.items() for name in names]
    assert len(asked) >= 25
    assert [name for room, name in asked if ">>> " not in (getattr(room, name).__doc__ or "")] == []
