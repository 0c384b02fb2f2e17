"""A fitted LPGNN."""

from __future__ import annotations

from dataclasses import dataclass

from graphveil.graphs import GraphSchema
from graphveil.methods.base.network.network import Network
from graphveil.privacy import Assumption, Guarantee
from graphveil.runtime.late import Tensor, torch


@dataclass(frozen=True)
class Fitted:
    """A fitted LPGNN: the public facts of its collection and the trained network. `published`: the guarantee of the
    release that it was trained on, if any; `several`: whether a node has several labels; `notes`: assumptions of
    predictions for other people.
    """

    schema: GraphSchema
    void: str | None
    fingerprint: str
    network: Network
    published: Guarantee | None = None
    several: bool = False
    notes: tuple[Assumption, ...] = ()

    def probabilities(self, logits: Tensor) -> Tensor:
        """Return the probabilities [n, c] of the classes, or of each label by itself where a node has several."""
        return torch.sigmoid(logits) if self.several else torch.softmax(logits, dim=1)
