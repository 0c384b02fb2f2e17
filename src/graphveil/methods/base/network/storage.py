"""A trained network as JSON facts and tensors, and back; used by every method that saves one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from graphveil.methods.base.network.network import Network
from graphveil.methods.base.storage import require_numbers
from graphveil.training import Epoch

if TYPE_CHECKING:
    from torch import Tensor, nn


_WEIGHTS = "weights."


def network_facts(network: Network) -> dict[str, Any]:
    """Return all of a network that is no tensor."""
    return {
        "scale": network.scale,
        "epoch": network.epoch,
        "history": [asdict(epoch) for epoch in network.history],
    }


def backbone_facts(backbone: nn.Module | None) -> dict[str, str]:
    """Return the class of a user's own module, by which a file says that it is needed to load; else nothing."""
    return {} if backbone is None else {"backbone": type(backbone).__name__}


def network_tensors(network: Network) -> dict[str, Tensor]:
    """Return the tensors of a network by name."""
    tensors = {f"{_WEIGHTS}{name}": value for name, value in network.weights.items()}
    tensors["logits"] = network.logits
    if network.mean is not None:
        tensors["mean"] = network.mean
    return tensors


def restored_network(facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Network:
    """Return the network saved with the two functions above; its shapes are still to be checked.

    Args:
        facts: with "backbone" where the weights are those of a user's own module, whose numbers are still to be checked
            as well.
        tensors: by name.
    """
    for name, tensor in tensors.items():
        own = name.startswith(_WEIGHTS) and "backbone" in facts  # its module says which types it has
        if not own and (name in ("logits", "mean") or name.startswith(_WEIGHTS)):
            require_numbers(name, tensor)
    return Network(
        {name.removeprefix(_WEIGHTS): t for name, t in tensors.items() if name.startswith(_WEIGHTS)},
        tensors.get("mean"),
        float(facts["scale"]),
        int(facts["epoch"]),
        tensors["logits"],
        tuple(Epoch(**row) for row in facts["history"]),
    )
