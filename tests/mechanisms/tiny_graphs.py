"""Every graph and every report there is on three users, and the audits that go through all of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphveil.audit import exact
from graphveil.mechanisms import EdgeReports
from tests.mechanisms.conformance import ROUNDING

NODES = 3
MODES = ("lower", "both", "directed")


def units(mode: str, nodes: int = NODES) -> list[tuple[int, int]]:
    """The relationships, or directed links, that a graph may have."""
    if mode == "directed":
        return list(itertools.permutations(range(nodes), 2))
    return list(itertools.combinations(range(nodes), 2))


def edge_index(present: Sequence[tuple[int, int]], mode: str) -> Tensor:
    """A graph with these relationships, both directions of each unless directed."""
    links = list(present) if mode == "directed" else [link for i, j in present for link in ((i, j), (j, i))]
    return torch.tensor(links, dtype=torch.int64).reshape(-1, 2).T.contiguous()


def all_graphs(mode: str) -> list[Tensor]:
    """Graph number g has unit k exactly if bit k of g is 1.

    Directed links are those of users 0 and 1: user 2 is like them, and four times as many graphs would show no more.
    """
    pairs = units(mode)[:4]
    return [
        edge_index([unit for k, unit in enumerate(pairs) if number >> k & 1], mode) for number in range(1 << len(pairs))
    ]


def neighbouring(graphs: int) -> list[tuple[int, int]]:
    """Numbers of graphs that differ in one unit."""
    return [(g, g ^ bit) for g in range(graphs) for bit in (1 << k for k in range(graphs.bit_length() - 1)) if g & bit]


def reports_of(lists: Sequence[Sequence[int]]) -> EdgeReports:
    """Reports that name these ids."""
    starts = torch.tensor([0, *itertools.accumulate(map(len, lists))])
    return EdgeReports(starts, torch.tensor([j for named in lists for j in named], dtype=torch.int32))


def lists_of(user: int, mode: str, nodes: int = NODES) -> list[tuple[int, ...]]:
    """Every list that one user can send."""
    candidates = [j for j in range(nodes) if j > user or (j != user and mode != "lower")]
    return [named for size in range(len(candidates) + 1) for named in itertools.combinations(candidates, size)]


def all_reports(mode: str, nodes: int = NODES) -> list[EdgeReports]:
    """Every collection of lists that can be sent."""
    return [reports_of(lists) for lists in itertools.product(*(lists_of(user, mode, nodes) for user in range(nodes)))]


def log_table(mechanism: Any, graphs: Sequence[Any], outputs: Sequence[Any]) -> np.ndarray[Any, Any]:
    """log Pr[output | graph] of every user: [graphs, outputs, users]."""
    return np.array([[mechanism.log_likelihood(sent, graph).numpy() for sent in outputs] for graph in graphs])


def worst_ratio(table: np.ndarray[Any, Any]) -> float:
    """The largest change of log Pr[output] when one unit of the graph comes or goes; table [graphs, outputs]."""
    return exact.worst_ratio(table, neighbouring(len(table)))


def is_private(ratio: float, claimed: float) -> bool:
    """The verdict of an audit."""
    return ratio <= claimed * (1 + ROUNDING)


def worst_of_independent(table: np.ndarray[Any, Any]) -> float:
    """As `worst_ratio`, when every user may send each of its outputs whatever the others send.

    Args:
        table: [graphs, outputs, users]; what all users send together is any combination of outputs.
    """
    return exact.worst_of_independent(table, neighbouring(len(table)))
