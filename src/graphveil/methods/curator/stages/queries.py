"""Refusals of predictions: of another graph than that of the training, and of rows that each node alone may see."""

from __future__ import annotations

from graphveil.errors import BudgetError, InputError
from graphveil.graphs import Graph
from graphveil.methods.curator.privacy import CuratorPrivacy
from graphveil.methods.registry import METHODS


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
        f"this run made room for {privacy.queries} (queries)",
        where=graph.schema.name,
        remedy=f"nothing was read or spent; train again with room for it: graphveil train {method} DATA "
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
