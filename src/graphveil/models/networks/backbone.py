"""A backbone by name, together with the form of the topology that it reads.

Every backbone is split where sharing pays: `first(inputs, structure)` is linear in the features and is computed once
an epoch, `rest(first, structure)` is run twice (training with dropout, evaluation without).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

from graphveil.aggregation import Inputs, Support, normalised, normalised_weights
from graphveil.errors import InputError
from graphveil.models.names import BACKBONES, HEADS
from graphveil.runtime.late import Tensor, nn, torch


class Backbone(Protocol):
    """The two halves of a network for the training loop; only `weight1` multiplies the features."""

    weight1: nn.Parameter

    def first(self, inputs: Inputs, structure: Any) -> Tensor:
        """Return what is linear in the features, a row for each node."""

    def rest(self, first: Tensor, structure: Any) -> Tensor:
        """Return scores [n, c] from what `first` returned."""


def build_backbone(
    name: str, dimension: int, hidden: int, classes: int, dropout: float, *, generator: torch.Generator
) -> nn.Module:
    """Return a two-layer backbone with freshly drawn weights. Raises InputError for an unknown name.

    Args:
        name: one of `BACKBONES`.
        hidden: columns of the hidden layer, of each head for "gat".
        dropout: the rate before the second layer, 0 to 1.
    """
    from graphveil.models.networks.two_layers import GAT, GCN, MLP, GraphSAGE

    kinds: dict[str, Any] = {"sage": GraphSAGE, "gcn": GCN, "gat": GAT, "mlp": MLP}
    if name not in kinds:
        raise InputError(f"model {name!r} is not known", allowed=", ".join(BACKBONES))
    return cast(torch.nn.Module, kinds[name](dimension, hidden, classes, dropout, generator=generator))


def first_width(name: str, hidden: int) -> int:
    """Return the columns of a backbone's first weight.

    Args:
        hidden: columns of the hidden layer, of each head for "gat".
    """
    return {"sage": 2 * hidden, "gat": HEADS * hidden}.get(name, hidden)


def structure_for(
    name: str, edge_index: Tensor, num_nodes: int, device: torch.device | str = "cpu", *, weights: Tensor | None = None
) -> Any:
    """Return what backbone `name` reads of the topology: a mean, a convolution, an edge list, or nothing.

    Args:
        weights: w [E] >= 0, one per edge, 1 where not given; self-loops weigh 1 (see `aggregation.adjacency`).
    """
    if name == "sage":
        return normalised(edge_index, num_nodes, "mean", weights=weights).to(device)
    if name == "gcn":
        return normalised(edge_index, num_nodes, "gcn", self_loops=True, weights=weights).to(device)
    if name == "gat":
        from graphveil.models.networks.two_layers import neighbourhoods

        return neighbourhoods(edge_index, num_nodes, weights=weights).to(device)
    return None


def learned_structure(name: str, support: Support) -> Callable[[Tensor], Any]:
    """Return a function from weights [E] of the support's entries to what a backbone reads of the topology: that of
    `structure_for`, differentiable in them; its `detach()` is a constant. Raises InputError for a backbone that reads
    no edges.

    Args:
        support: E entries.
    """
    if name == "sage":
        return lambda weights: normalised_weights(support, weights, "mean")
    if name == "gcn":
        return lambda weights: normalised_weights(support, weights, "gcn", self_loops=True)
    if name == "gat":
        from graphveil.models.networks.two_layers import learned_neighbourhoods

        return learned_neighbourhoods(support)
    raise InputError(f"model {name!r} reads no edges", allowed="sage, gcn, gat")
