"""All parties of a federation in one process, for experiments and tests, by the programs that run over the network.

One graph is divided: every column and every edge goes to exactly one holder, at random; the labels go to the first
holder. A declared column stays whole: a part of a category's block would mean nothing.
Source: Chen et al., IJCAI 2022, arXiv 2005.11903, section 4.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.federation.core.messages import Transcript, simulate
from graphveil.federation.core.networks import Combination
from graphveil.federation.core.setting import Member, Setting, room_for
from graphveil.federation.core.states import RunContext
from graphveil.federation.effects import Program, Watch
from graphveil.federation.modes.all_shares import AllSharesHolder
from graphveil.federation.modes.guesses import GuessingHolder
from graphveil.federation.modes.holder import EmbeddingHolder, Holding
from graphveil.federation.modes.labels import LabelHead
from graphveil.federation.modes.linear import LinearHolder
from graphveil.federation.modes.linear_server import LinearNetwork
from graphveil.federation.modes.programs import programs_of
from graphveil.files.columns import blocks_of
from graphveil.graphs import Graph, GraphSchema, Split
from graphveil.graphs.value.features import to_rows
from graphveil.privacy import Randomness
from graphveil.runtime.checks import is_number

#: What a holder's program returns: its publisher, at the label holder its head, and what the mode trains.
HolderResult: TypeAlias = EmbeddingHolder | GuessingHolder | LinearHolder | AllSharesHolder
#: What the server's program returns: its network, where it has one.
ServerResult: TypeAlias = Combination | LinearNetwork | None


@dataclass(frozen=True)
class Trained:
    """The results of all parties' programs, holders' by name, and all messages."""

    server: ServerResult
    holders: Mapping[str, HolderResult]
    transcript: Transcript


def head_of(holdings: Mapping[str, Holding]) -> LabelHead:
    return next(holding.head for holding in holdings.values() if holding.head is not None)


def party_programs(
    contexts: Mapping[str, RunContext], holdings: Mapping[str, Holding]
) -> dict[str, Program[HolderResult | ServerResult]]:
    """Start the programs of all parties, without alignment; by name, the server first, in the order of the agreement.

    Args:
        contexts: by name, the server's and every holder's.
        holdings: by name, each holder's data, rows in one order; the label holder's head is open.
    """
    setting = next(iter(contexts.values())).setting
    nodes, rows = next(iter(holdings.values())).nodes, int(head_of(holdings).train.sum())
    programs: dict[str, Program[HolderResult | ServerResult]] = {}
    of_mode = programs_of(setting)
    programs[setting.server] = of_mode.server(contexts[setting.server], nodes, rows)
    for name in setting.names:
        programs[name] = of_mode.holder(contexts[name], holdings[name])
    return programs


def simulate_training(
    setting: Setting,
    holdings: Mapping[str, Holding],
    *,
    randomness: Randomness,
    seed: int = 0,
    watch: Watch | None = None,
) -> Trained:
    """Run the server and all holders.

    Args:
        holdings: by name, each holder's data, rows in one order.
        randomness: of shares, keys and noise.
        seed: of initial weights and dropout, never of shares and noise.
        watch: called with a party's name and each of its effects.
    """
    generator = torch.Generator().manual_seed(seed)
    head_of(holdings).open(setting, randomness=randomness, generator=generator)
    contexts = {name: RunContext(name, setting, randomness, generator) for name in (setting.server, *setting.names)}
    programs = party_programs(contexts, holdings)
    # Dropout draws from torch's global generator: forked, so that a simulation leaves the caller's as it is.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        results, transcript = simulate(programs, watch=watch)
    server = results.pop(setting.server)
    return Trained(server, results, transcript)


def feature_parts(schema: GraphSchema, shares: Sequence[float], rng: np.random.Generator) -> list[np.ndarray]:
    """Return which features every holder gets, ascending; InputError for shares that leave one without a column.

    Args:
        shares: one number a holder, any scale.
        rng: deals the columns out.
    """
    blocks = [np.arange(block.start, block.stop) for block in blocks_of(schema.columns)]
    columns = len(blocks) or schema.dimension
    parts = [np.sort(part) for part in _parts(rng.permutation(columns), shares)]
    for number, part in enumerate(parts, start=1):
        if not len(part):
            what = f"holder {number} gets none of the {columns} feature columns"
            raise InputError(what, allowed="shares that give each holder at least one")
    return [np.concatenate([blocks[column] for column in part]) for part in parts] if blocks else parts


def vertical_partition(graph: Graph, shares: Sequence[float], *, seed: int) -> list[tuple[Any, Tensor]]:
    """Return (features, edge_index) for every holder; InputError for shares that leave one without a column.

    Args:
        shares: one number a holder, any scale; 5, 5 halves columns and edges.
    """
    rng = np.random.default_rng(seed)
    columns = feature_parts(graph.schema, shares, rng)
    # Both directions of an undirected edge go to one holder: otherwise two holders would know it.
    both = not graph.schema.directed
    one_way = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]] if both else graph.edge_index
    edges = _parts(rng.permutation(one_way.shape[1]), shares)
    rows, parts = to_rows(graph.x), []
    for own_columns, own_edges in zip(columns, edges, strict=True):
        forward = one_way[:, torch.from_numpy(np.sort(own_edges))]
        edge_index = torch.cat([forward, forward.flip(0)], dim=1) if both else forward
        parts.append((rows[:, own_columns], edge_index))
    return parts


def partition_graph(
    graph: Graph, split: Split, shares: Sequence[float], *, seed: int
) -> tuple[tuple[Member, ...], dict[str, Holding]]:
    """Return the members "holder1".. and what each holds; arguments as of `vertical_partition`."""
    members, holdings = [], {}
    bound = max(abs(graph.schema.low), abs(graph.schema.high))
    for number, (rows, edge_index) in enumerate(vertical_partition(graph, shares, seed=seed), start=1):
        name = f"holder{number}"
        head = LabelHead(graph.y, split.train, split.val, split.test) if number == 1 else None
        features = rows if graph.x.layout == torch.sparse_csr else torch.from_numpy(rows.toarray())
        holdings[name] = Holding(features, edge_index, bound, head)
        entries = room_for(edge_index.shape[1], int(graph.num_nodes))
        members.append(Member(name, int(rows.shape[1]), labels=number == 1, entries=entries))
    return tuple(members), holdings


def _parts(order: np.ndarray, shares: Sequence[float]) -> list[np.ndarray]:
    numbers = [] if isinstance(shares, str) or not isinstance(shares, Iterable) else list(shares)
    if not all(is_number(share) and 0 <= share < math.inf for share in numbers) or not sum(numbers):
        raise InputError(f"shares are {shares!r}", allowed="a number of at least 0 for each holder, such as (1, 1)")
    # Divided at rounded sums, not rounded part by part, so that the parts always add up to all of it.
    cuts = np.cumsum(np.asarray(numbers, dtype=float) / sum(numbers))[:-1]
    return np.split(order, np.round(cuts * len(order)).astype(int))
