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
    epsilon: float = 1.0,
    delta: float = 1e-5,
    samples: int = 100_000,
    false_alarm: float = sampled.FALSE_ALARM,
    seed: int = 0,
) -> Audit:
    """Audit one noisy sum, calibrated as the curator's methods calibrate it, on as many separate pairs as samples.

    Every node sends the same unit vector; a pair's score is what both ends received along it ("edge"), or what the end
    of the one entry received ("directed-edge").

    Args:
        unit: "edge" or "directed-edge".
        epsilon, delta: what the noise is made for.
        samples: pairs with the edge, and as many without.
        false_alarm: the probability that a true claim is called broken.
        seed: of the noise; the same seed gives the same audit.
    """
    directed = unit == "directed-edge"
    schema = GraphSchema("pairs", 1, 0.0, 1.0, ("first", "second"), directed=directed, source="made for an audit")
    privacy = CuratorPrivacy(epsilon, delta, unit)
    mechanism = privacy.sums(schema, privacy.noise(schema, hops=1, columns=_COLUMNS))
    sent = torch.zeros(2 * samples, _COLUMNS)
    # The longest message there is, along one axis: any shorter or spread one would move the sum by less than it may.
    sent[:, 0] = 1.0

    def draw(is_first: bool, count: int, randomness: Randomness) -> sampled.Scores:
        # Separate pairs: each is one edge with noise of its own, so one call gives as many independent samples as
        # pairs.
        entries = torch.arange(2 * count).view(-1, 2).T
        edges = entries if directed else torch.cat([entries, entries.flip(0)], dim=1)
        rows = ReceiverRows.of(edges if is_first else edges[:, :0], 2 * count)
        sums = mechanism.perturb(rows, sent[: 2 * count], 1, randomness)[:, 0].double().view(-1, 2)
        # Both ends together where both receive: their noises are independent, and the sum is the best test of both
        # shifts.
        scores: sampled.Scores = np.asarray(sums[:, 1] if directed else sums.sum(dim=1))
        return scores

    target = f"noisy sums, one {unit}"
    how = {"samples": samples, "seed": seed}
    return timed(lambda: sampled.audit_mu(target, epsilon, delta, draw, false_alarm=false_alarm, **how))
