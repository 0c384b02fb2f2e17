"""LinkTeller: find private edges by how much one node's features sway another's prediction.

    I(v -> u) = | f(X')_u - f(X)_u | / D       X' is X with row v times 1 - D;  f = log p - its mean over the classes
    score of a pair = I(v -> u) + I(u -> v);  with belief k the k m best pairs are called edges, m the true number

Source: Wu, Long, Zhang, Li, "LinkTeller: Recovering Private Edges from Graph Neural Networks via Influence Analysis",
IEEE S&P 2022 (arXiv 2108.06504), algorithms 1 and 2; there times 1 + D, which takes a feature at its upper end out of
the range that a method checks, and the limit for D -> 0 is the same.  Logarithms undo a softmax that is sure of itself,
where little moves.  The adversary of the paper asks once for each node. To simulate that, nodes whose features meet at
no node under attack share one query: each answer is what a query of its own would have given (Curtis, Powell, Reid, "On
the estimation of sparse Jacobian matrices", 1974).
"""

from __future__ import annotations

from typing import cast

import numpy as np
import scipy.sparse as sp
import torch
from torch.nn import functional

from graphveil.attacks.limits import limit_of, require_truth
from graphveil.attacks.pairs import belief_figures, pairs_of
from graphveil.attacks.result import AttackResult, judge
from graphveil.attacks.service import Answering, Deployed, Service, service_of
from graphveil.errors import InputError
from graphveil.graphs import Graph
from graphveil.runtime.checks import require_number
from graphveil.runtime.words import count_of

STEP = 1e-4
BELIEFS = (0.25, 0.5, 1.0, 2.0, 4.0)
_TOGETHER = 64  # nodes whose effects are computed at once: bounds the memory
_CELLS = 5e7  # of the reach of the nodes under attack; beyond, every node gets a query of its own


def linkteller(
    method: Answering,
    graph: Graph,
    *,
    served: Graph | None = None,
    targets: int = 500,
    seed: int = 0,
    step: float | None = None,
    beliefs: tuple[float, ...] = BELIEFS,
) -> AttackResult:
    """Return how well influence tells edges from other pairs among `targets` random nodes.

    Args:
        method: fitted; what it answers to changed features decides, see `attacks.service`.
        graph: with its true edges, which score the attack.
        served: over whose edges the method answers; None: it.
        step: D, how much a row is scaled; None: its limit 0 in closed form where the network has one, else `STEP`.
        beliefs: densities that the adversary assumes, in multiples of the true one.
    """
    require_truth(graph, "edge", "linkteller")
    pairs = pairs_of(graph, targets=targets, seed=seed)
    service = service_of(method, graph if served is None else served)
    notes = [service.note]
    if step is None and service.network is not None and has_closed_form(service.network):
        influence = influence_gcn(service.network, pairs.nodes)
        notes.append(f"{len(pairs.nodes)} nodes were perturbed by the derivative, which queries approach")
    elif service.changes:
        influence, queries = influences(service, pairs.nodes, step=STEP if step is None else step)
        notes.append(f"{len(pairs.nodes)} nodes were perturbed in {count_of(queries, 'query')} of the simulation")
    else:
        # All scores equal: the attack is left with chance, and spends no queries to learn it.
        influence = np.zeros((len(pairs.nodes), len(pairs.nodes)))
    # An edge sways both of its ends, so both directions count.
    scores = cast(np.ndarray, (influence + influence.T)[pairs.first, pairs.second])
    members, non_members = pairs.split(scores)
    return judge(
        "linkteller",
        f"which of {len(scores):,} pairs of {len(pairs.nodes):,} nodes are an edge",
        members,
        non_members,
        limit=limit_of(method, "edge"),
        seed=seed,
        baseline=0.5,
        baseline_note="without edges no node sways another",
        figures=belief_figures(scores, pairs.edge, beliefs),
        notes=tuple(notes),
    )


def influences(service: Service, nodes: np.ndarray, *, step: float = STEP) -> tuple[np.ndarray, int]:
    """Return I [t, t], row = perturbed, column = swayed, and the number of queries it took.

    Args:
        service: answers for scaled features.
        nodes: ids [t] of the nodes under attack.
        step: D, by which share a node's features are scaled; raises InputError outside (0, 1).
    """
    require_number("(0, 1)", "linkteller", step=step)
    reach, groups = _groups_without_overlap(service, nodes)
    plain = _signal(service.answer(np.ones(service.nodes))[nodes])
    influence = np.zeros((len(nodes), len(nodes)))
    for group in groups:
        factors = np.ones(service.nodes)
        # One query perturbs many nodes, yet no node is swayed by two of them: the influences stay apart.
        factors[nodes[group]] -= step
        moved = np.linalg.norm(_signal(service.answer(factors)[nodes]) - plain, axis=1) / step
        # Without known reach every group has one node, and whatever moved was moved by it.
        if reach is None:
            influence[group[0]] = moved
        else:
            for place in group:
                swayed = reach.indices[reach.indptr[place] : reach.indptr[place + 1]]
                influence[place, swayed] = moved[swayed]
    return influence, len(groups) + 1


def _signal(chances: np.ndarray) -> np.ndarray:
    """Return what is compared [t, c]: centred logarithms of probabilities, which are a network's centred logits."""
    logs = np.log(np.maximum(chances, 1e-300))
    return cast(np.ndarray, logs - logs.mean(axis=1, keepdims=True))


def _groups_without_overlap(service: Service, nodes: np.ndarray) -> tuple[sp.csr_matrix | None, list[np.ndarray]]:
    """Return reach [t, t] of the nodes under attack (None where it is unknown or too dense), and places in `nodes`, one
    array for each query: nodes that reach nobody in common. Knowing reach only saves queries, not scores.
    """
    alone = [np.array([place]) for place in range(len(nodes))]
    if service.hops is None or service.adjacency is None:
        return None, alone
    reach = reached(service.adjacency, nodes, service.hops)
    # Grouping only saves queries: where its own table would not fit, asking node by node finds the same.
    if reach.nnz > _CELLS:
        return None, alone
    occupied: list[np.ndarray] = []
    groups: list[list[int]] = []
    # Widest reach first: greedy colouring then needs fewer groups. Stable, so that a seed gives the same groups.
    for place in np.argsort(-np.diff(reach.indptr), kind="stable"):
        swayed = reach.indices[reach.indptr[place] : reach.indptr[place + 1]]
        free = (number for number, mask in enumerate(occupied) if not mask[swayed].any())
        chosen = next(free, len(occupied))
        if chosen == len(occupied):
            groups.append([])
            occupied.append(np.zeros(len(nodes), dtype=bool))
        groups[chosen].append(int(place))
        occupied[chosen][swayed] = True
    return reach, [np.array(group) for group in groups]


def reached(adjacency: sp.csr_matrix, nodes: np.ndarray, hops: int) -> sp.csr_matrix:
    """Return [t, t]: entry (v, u) where v's features reach u within `hops`, itself included; rows = senders.

    Args:
        adjacency: [n, n], entry (receiver, sender).
        nodes: ids [t] under attack.
        hops: propagation steps, at least 0.
    """
    onward = (adjacency.T + sp.identity(adjacency.shape[0], dtype=np.int32, format="csr")).tocsr()
    rows = sp.identity(adjacency.shape[0], dtype=np.int32, format="csr")[nodes]
    for _ in range(hops):
        rows = rows @ onward
        # Walks are counted once, or their number would overflow after a few hops.
        rows.data[:] = 1
    attacked = rows[:, nodes].tocsr()
    attacked.sort_indices()
    return attacked


def influence_gcn(network: Deployed, nodes: np.ndarray) -> np.ndarray:
    """Return the limit of I [t, t] for D -> 0 of a two-layer GCN; InputError for a network of another kind.

        dZ_u = sum_{w in N(u), N(v)} Q_uw Q_wv (scale x_v W1 * selu'(a_w)) W2,    I = | dZ - its mean over the classes |

    Args:
        network: a plain two-layer GCN of one label a node.
        nodes: ids [t] of the nodes under attack.
    """
    if not has_closed_form(network):
        raise InputError("the closed form is for a plain GCN of one label a node", where="linkteller")
    model, rows = network.model, network.structure.forward
    n = network.topology.num_nodes
    q = sp.csr_matrix((rows.values.numpy(), rows.indices.numpy(), rows.starts.numpy()), shape=(n, n))
    with torch.no_grad():
        slopes = _slopes(network.structure @ network.linear(np.ones(n)) + model.bias1)
    second = model.weight2.detach().numpy()
    centred = second - second.mean(axis=1, keepdims=True)
    drive = network.product.numpy() * network.scale
    columns, top = q.tocsc(), q[nodes]
    parts = [nodes[start : start + _TOGETHER] for start in range(0, len(nodes), _TOGETHER)]
    return np.concatenate([_swayed(top, columns[:, part], drive[part], slopes, centred) for part in parts])


def _swayed(
    top: sp.csr_matrix, near: sp.csc_matrix, drive: np.ndarray, slopes: np.ndarray, second: np.ndarray
) -> np.ndarray:
    """Return I [k, t] of k perturbed nodes: of Q's rows of the t nodes [t, n] and columns of the k [n, k]."""
    middle, place = near.indices, np.repeat(np.arange(near.shape[1]), np.diff(near.indptr))
    moved = near.data[:, None] * ((drive[place] * slopes[middle]) @ second)
    squares = np.zeros((top.shape[0], near.shape[1]))
    # Class by class: the sum over the nodes in the middle is then a product of sparse matrices.
    for column in moved.T:
        squares += (top @ sp.csc_matrix((column, middle, near.indptr), shape=near.shape)).toarray() ** 2
    influence: np.ndarray = np.sqrt(squares).T
    return influence


def has_closed_form(network: Deployed) -> bool:
    return network.name == "gcn" and not network.steps and not network.several


def _slopes(before: torch.Tensor) -> np.ndarray:
    with torch.enable_grad():
        a = before.detach().clone().requires_grad_()
        (slope,) = torch.autograd.grad(functional.selu(a).sum(), a)
    return slope.numpy()
