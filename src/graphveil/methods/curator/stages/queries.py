"""Predictions for other graphs: the answers so far, and refusals.

A graph with ids is recognised by them, a graph without ids by its content: another one of the same name and size may be
of other people, who get no row of these.  The hashes that this takes are in the owner's file beside the model; the
model alone identifies such a graph by name and size.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from graphveil.errors import BudgetError, InputError
from graphveil.graphs import Graph, node_names
from graphveil.graphs.value.value import fingerprint
from graphveil.methods.base.network.network import as_matrix
from graphveil.methods.base.storage import read_answers, save_answers
from graphveil.methods.curator.privacy import CuratorPrivacy
from graphveil.methods.curator.stages.training import FeatureBlock, read_features
from graphveil.methods.links.collection import people_key
from graphveil.methods.registry import METHODS
from graphveil.privacy import SecureRandomness
from graphveil.runtime.late import Tensor


@dataclass
class QueryAnswers:
    """The answers to queries by the name of their graph, stored beside a model for its owner alone.

    Attributes:
        rows: [n, c] each. secret: the key in names of graphs without ids; empty before the first.
        features_hash: keyed hash of the training's features, where edges alone are protected; "": unknown.
    """

    rows: dict[str, Tensor] = field(default_factory=dict)
    secret: bytes = b""
    features_hash: str = ""

    def find(self, graph: Graph) -> Tensor | None:
        """Return the earlier answer for the people of a graph, or None."""
        # Nothing of a graph is read, unpaid, unless there is an answer for one of its name and size.
        key = people_key(graph)
        return self.rows.get(self._name(graph)) if any(name.startswith(key) for name in self.rows) else None

    def add(self, graph: Graph, answer: Tensor) -> Tensor:
        """Store an answer, and return it."""
        self._draw_secret()
        self.rows[self._name(graph)] = answer
        return answer

    def save(self, model: Path, kind: str, people: str, features: FeatureBlock | None = None) -> None:
        """Write the answers beside a saved model; `people` identifies the training's people, and so do its features
        where a file may hold their hash.
        """
        if features is not None:
            self._draw_secret()
            self.features_hash = _keyed_hash(features, self.secret)
        saved = read_answers(model, kind)
        # Answers of an earlier save stay: whoever loads the file must not pay for them again.
        earlier = saved[1] if saved is not None and saved[0].get("of") == people else {}
        facts = {"of": people, "secret": self.secret.hex(), "own": self.features_hash}
        save_answers(model, kind, facts, {**earlier, **self.rows}, facts_alone=bool(self.features_hash))

    @classmethod
    def read(cls, model: Path, kind: str, people: str) -> QueryAnswers:
        """Return the answers beside a model; none if the model came without them, or they are of another training."""
        saved = read_answers(model, kind)
        if saved is None or saved[0]["of"] != people:
            return cls()
        return cls(saved[1], bytes.fromhex(saved[0].get("secret", "")), saved[0].get("own", ""))

    def _draw_secret(self) -> None:
        self.secret = self.secret or SecureRandomness().bytes(32)

    def _name(self, graph: Graph) -> str:
        if node_names(graph) is not None:
            return people_key(graph)
        # Without labels: answers do not depend on them, and they may change later. Files of earlier versions have no
        # secret, so none of their answers can be matched with these people.
        return f"{people_key(graph)} {fingerprint(graph, self.secret or b'none', ('x', 'edge_index'))}"


def is_training_graph(people: str, features: FeatureBlock | None, graph: Graph, answers: QueryAnswers) -> bool:
    """Return whether a graph is of the people of a training; without ids it may be of others, whatever its name.

    Args:
        people: the training's `people_key`.
        features: of the training, or None: without ids, equal features identify the people.
        answers: beside a loaded model, in place of the features.
    """
    if people_key(graph) != people:
        return False
    if node_names(graph) is not None:
        return True
    if features is None:
        return not answers.features_hash or answers.features_hash == _keyed_hash(read_features(graph), answers.secret)
    trained: Any = as_matrix(features)
    queried: Any = as_matrix(read_features(graph))
    if trained.shape != queried.shape or hasattr(trained, "nnz") != hasattr(queried, "nnz"):
        return False
    return (trained != queried).nnz == 0 if hasattr(trained, "nnz") else bool(np.array_equal(trained, queried))


def require_queries(method: str, graph: Graph) -> None:
    """Refuse a query of a method that predicts only the nodes of its training."""
    if "queries" not in METHODS[method].options:
        raise InputError(
            f"{method} predicts only the nodes of its training",
            where=graph.schema.name,
            remedy="train it on a graph that holds the others too, or train gap with --set queries=1",
        )


def no_room(method: str, privacy: CuratorPrivacy, graph: Graph) -> BudgetError:
    """Return the refusal of a query that the budget cannot pay, with the option that makes room and the total price."""
    return BudgetError(
        f"to predict another graph reads its edges, which costs {privacy.price_of(0)} each time; "
        f"this run has budget for {privacy.queries} (queries){', used up' if privacy.queries else ''}",
        where=graph.schema.name,
        remedy=f"nothing was read or spent; train again with a budget for it: graphveil train {method} DATA "
        f"--set queries={privacy.queries + 1}, {privacy.price_of(privacy.queries + 1)} in total",
    )


def no_rows(query: float | None = None) -> InputError:
    """Return the refusal to predict nodes of the training from a saved model that protects nodes; `query` is the
    epsilon of reading their edges again, None where no edges are read.
    """
    remedy = "predict on their graph: features alone are read, at no further cost"
    if query is not None:
        remedy = (
            "train anew, which costs epsilon again (graphveil train --config RUN/config.toml --out NEW): with "
            "--predictions FILE, a row a person as the training makes it, or with --set queries=1, for predict to read "
            f"them again at {query:g} more"
        )
    return InputError(
        "the saved model holds no predictions of its training nodes: each is for that node only",
        where="unit node",
        remedy=remedy,
    )


def _keyed_hash(features: FeatureBlock, key: bytes) -> str:
    """Return a hash of features; without the key, nobody can check a guess of them against it."""
    matrix: Any = as_matrix(features)
    digest = hashlib.blake2b(str(matrix.shape).encode(), key=key, digest_size=16)
    for part in (matrix.indptr, matrix.indices, matrix.data) if hasattr(matrix, "nnz") else (matrix,):
        digest.update(np.ascontiguousarray(part).astype(np.float64).view(np.uint8).data)
    return digest.hexdigest()
