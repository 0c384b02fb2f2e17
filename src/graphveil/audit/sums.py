"""The mu-audit of noisy sums over neighbours: what one edge shows in the sums that a curator publishes."""

from __future__ import annotations

import numpy as np
import torch

from graphveil.aggregation import ReceiverRows
from graphveil.audit import sampled
from graphveil.audit.verdict import Audit, timed
from graphveil.graphs import GraphSchema
from graphveil.methods.curator.privacy import CuratorPrivacy
from graphveil.privacy import Randomness

_COLUMNS = 4


def audit_sums(
    unit: str = "edge",
    *,
    relationships: int | None = None,
    epsilon: float = 1.0,
    delta: float = 1e-5,
    samples: int = 100_000,
    false_alarm: float = sampled.FALSE_ALARM,
    seed: int = 0,
) -> Audit:
    """Audit one noisy sum, calibrated as the curator's methods calibrate it, on as many separate pairs as samples.
    Every node sends the same unit vector; a pair's score is what both ends received along it ("edge"), or what the end
    of the one entry received ("directed-edge"). For "k-edges" there are stars in place of pairs, and the score is what
    the middle received, k times, and what its contacts did: the sums in proportion to how far they move.

    Args:
        unit: "edge", "directed-edge" or "k-edges". relationships: k. epsilon, delta: what the noise is made for.
        samples: pairs with the edge, and as many without.
        false_alarm: the probability that a true claim is called broken.
        seed: of the noise; the same seed gives the same audit.
    """
    directed = unit == "directed-edge"
    schema = GraphSchema("pairs", 1, 0.0, 1.0, ("first", "second"), directed=directed, source="made for an audit")
    privacy = CuratorPrivacy(epsilon, delta, unit, relationships=relationships)
    mechanism = privacy.sums(schema, privacy.noise(schema, hops=1, columns=_COLUMNS))
    size = 1 + (relationships or 1)
    sent = torch.zeros(size * samples, _COLUMNS)
    moves = torch.tensor([0.0 if directed else size - 1.0, *[1.0] * (size - 1)], dtype=torch.float64)
    # The longest message there is, along one axis: any shorter or spread one would move the sum by less than it may.
    sent[:, 0] = 1.0

    def draw(is_first: bool, count: int, randomness: Randomness) -> sampled.Scores:
        # Separate pairs or stars, each with noise of its own: one call gives as many independent samples as there are.
        groups = torch.arange(size * count).view(-1, size)
        entries = torch.stack([groups[:, :1].expand(-1, size - 1).ravel(), groups[:, 1:].ravel()])
        edges = entries if directed else torch.cat([entries, entries.flip(0)], dim=1)
        rows = ReceiverRows.of(edges if is_first else edges[:, :0], size * count)
        sums = mechanism.perturb(rows, sent[: size * count], 1, randomness)[:, 0].double().view(-1, size)
        # Noises are independent and equal, so sums weighed by their shifts are the best test of all shifts together.
        scores: sampled.Scores = np.asarray(sums @ moves)
        return scores

    target = f"noisy sums, {privacy.unit_name(schema)}"
    options = {"samples": samples, "seed": seed}
    return timed(lambda: sampled.audit_mu(target, epsilon, delta, draw, false_alarm=false_alarm, **options))
