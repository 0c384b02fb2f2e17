"""What a fitted LPGNN keeps."""

from __future__ import annotations

from dataclasses import dataclass

from graphveil.graphs import GraphSchema
from graphveil.methods.base.network.network import Network
from graphveil.privacy import Assumption, Guarantee
from graphveil.runtime.late import Tensor, torch


@dataclass(frozen=True)
class Fitted:
    """What a fitted LPGNN keeps: the public facts of its collection and the trained network. `published` is the
    guarantee of the release that it was trained on, if any; `several`: a node has several labels, each by itself;
    `notes`: what predictions for other people lean on.
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
