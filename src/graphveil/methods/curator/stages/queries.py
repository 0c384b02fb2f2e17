"""Predictions for other graphs: the answers so far, and refusals.

A graph with ids is known again by these.  One without is known by what is in it: another one of its name and size may
be of other people, who get no row of these.  What tells them apart lies in the owner's file beside the model; who has
the model alone has nothing to tell them apart by.
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
class Answers:
    """What was answered to queries, by name of who was asked about; kept beside a model, for its owner alone.

    Attributes:
        rows: [n, c] each. secret: of the names of graphs without ids; none before the first.
        own: keyed hash of the features of the training, where edges alone are protected; "": not at hand.
    """

    rows: dict[str, Tensor] = field(default_factory=dict)
    secret: bytes = b""
    own: str = ""

    def about(self, graph: Graph) -> Tensor | None:
        """Return the answer that was given about the people of a graph, None where there was none."""
        # Nothing of a graph is looked at, unpaid, unless one of its name and size was asked about before.
        begun = people_key(graph)
        return self.rows.get(self._name(graph)) if any(name.startswith(begun) for name in self.rows) else None

    def add(self, graph: Graph, answer: Tensor) -> Tensor:
        """Keep an answer, and return it."""
        self._draw_secret()
        self.rows[self._name(graph)] = answer
        return answer

    def save(self, model: Path, kind: str, of: str, features: FeatureBlock | None = None) -> None:
        """Write them beside a saved model; `of` tells its people from others, and features, where they may be told."""
        if features is not None:
            self._draw_secret()
            self.own = _keyed(features, self.secret)
        saved = read_answers(model, kind)
        # Answers of an earlier save are kept: who loads the file must not pay for them again.
        earlier = saved[1] if saved is not None and saved[0].get("of") == of else {}
        facts = {"of": of, "secret": self.secret.hex(), "own": self.own}
        save_answers(model, kind, facts, {**earlier, **self.rows}, facts_alone=bool(self.own))

    @classmethod
    def read(cls, model: Path, kind: str, of: str) -> Answers:
        """Return those beside a model; none where the model alone was handed on, or the file is another one's."""
        saved = read_answers(model, kind)
        if saved is None or saved[0]["of"] != of:
            return cls()
        return cls(saved[1], bytes.fromhex(saved[0].get("secret", "")), saved[0].get("own", ""))

    def _draw_secret(self) -> None:
        self.secret = self.secret or SecureRandomness().bytes(32)

    def _name(self, graph: Graph) -> str:
        if node_names(graph) is not None:
            return people_key(graph)
        # Without labels, which no answer follows from: they may come to be known later. Files of earlier versions have
        # no secret, and none of their answers is known to be of these people.
        return f"{people_key(graph)} {fingerprint(graph, self.secret or b'none', ('x', 'edge_index'))}"


def is_of(people: str, features: FeatureBlock | None, graph: Graph, answers: Answers) -> bool:
    """Return whether a graph is of the people of a training; one without ids can be of others, whatever its name.

    Args:
        people: the training's `people_key`.
        features: of the training, where they are at hand: without ids, people are known by equal ones.
        answers: beside a loaded model, where they are not.
    """
    if people_key(graph) != people:
        return False
    if node_names(graph) is not None:
        return True
    if features is None:
        return not answers.own or answers.own == _keyed(read_features(graph), answers.secret)
    left: Any = as_matrix(features)
    right: Any = as_matrix(read_features(graph))
    if left.shape != right.shape or hasattr(left, "nnz") != hasattr(right, "nnz"):
        return False
    return (left != right).nnz == 0 if hasattr(left, "nnz") else bool(np.array_equal(left, right))


def require_queries(method: str, graph: Graph) -> None:
    """Refuse a query where the method predicts only the nodes of its training."""
    if "queries" not in METHODS[method].options:
        raise InputError(
            f"{method} predicts only the nodes of its training",
            where=graph.schema.name,
            remedy="train it on a graph that holds the others too, or train gap with --set queries=1",
        )


def no_room(method: str, privacy: CuratorPrivacy, graph: Graph) -> BudgetError:
    """Return the refusal of a query that the budget cannot pay, with the option that makes room and its total."""
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


def _keyed(features: FeatureBlock, key: bytes) -> str:
    """Return a hash of features; whoever lacks the key cannot check a guess of them against it."""
    matrix: Any = as_matrix(features)
    digest = hashlib.blake2b(str(matrix.shape).encode(), key=key, digest_size=16)
    for part in (matrix.indptr, matrix.indices, matrix.data) if hasattr(matrix, "nnz") else (matrix,):
        digest.update(np.ascontiguousarray(part).astype(np.float64).view(np.uint8).data)
    return digest.hexdigest()
