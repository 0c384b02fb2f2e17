"""The tensors of a fitted method in a file: its networks' weights, and its logits where they are for everybody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from graphveil.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor, nn


def stored_tensors(networks: Sequence[nn.Module], logits: Tensor | None) -> dict[str, Tensor]:
    """Return what a file holds.

    Args:
        networks, logits: trained; [n, c], or None where a node's row is for that node alone.
    """
    tensors: dict[str, Tensor] = {} if logits is None else {"logits": logits}
    for which, network in enumerate(networks):
        tensors |= prefixed(f"network{which}", {name: value.cpu() for name, value in network.state_dict().items()})
    return tensors


def restore_networks(networks: Sequence[nn.Module], tensors: Mapping[str, Tensor]) -> None:
    """Load stored weights into networks that were built on the device "meta"; refuses weights of other networks."""
    for which, network in enumerate(networks):
        restored(network, without_prefix(f"network{which}", tensors))


def restored_logits(tensors: Mapping[str, Tensor], classes: int) -> Tensor | None:
    """Return the stored logits [n, c], None where there are none."""
    logits = tensors.get("logits")
    if logits is not None and (logits.dim() != 2 or logits.shape[1] != classes):
        raise InputError(f"logits are {tuple(logits.shape)}", allowed=f"(nodes, {classes})")
    return logits


def restored(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Load stored weights into a network that was built on the device "meta". Raises InputError where a tensor is
    missing, left over or of another shape; names the first.
    """
    expected = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    shapes = {name: tuple(value.shape) for name, value in tensors.items()}
    for name in sorted({*shapes, *expected}):
        if shapes.get(name) != expected.get(name):
            raise InputError(f"{name} is {shapes.get(name)}", allowed=str(expected.get(name)))
    # Assigned and not copied: on the device "meta" there is nothing to copy into.
    model.load_state_dict(dict(tensors), assign=True)
    model.eval()


def prefixed(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": value for name, value in tensors.items()}


def without_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    start = f"{prefix}."
    return {name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)}
