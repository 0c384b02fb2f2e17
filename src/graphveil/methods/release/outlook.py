"""What a release of private edges may be expected to buy, by a rule on public facts, before anything is spent.

    noise of a person    edge-rand, lap-graph   false edges:  (k - 1) / (e^epsilon + 1),  k private nodes
                         class-counts           deviation of the sum of a row of counts:  sqrt(c) deviation of one
    lift is expected     where that is less than LIMIT times the private neighbours of a person

Private edges are not counted: their number is private.  A person is assumed to have as many as public ones, and
ASSUMED_DEGREE at least.  LIMIT is where lift ended on graphs with known edges (benchmarks, the panel of releases);
trees bought nothing there.  A rule and no promise: edges that say nothing of the classes buy nothing at any epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from graphveil.mechanisms import EdgeRand, PairDomain
from graphveil.mechanisms.edges.noisy_counts import count_noise
from graphveil.methods.base.cost import ASSUMED_DEGREE
from graphveil.methods.release.names import CLASS_COUNTS
from graphveil.methods.release.privacy import ReleasePrivacy

#: How many times the private neighbours of a person its noise may be, for lift to be expected.
LIMIT: Final = {"edge-rand": 3.0, "lap-graph": 2.0, CLASS_COUNTS: 2.0}


@dataclass(frozen=True)
class Outlook:
    """What may be expected of a release.

    Attributes:
        noise: of a person, in neighbours; None for trees, whose blocks say nothing of single people.
        neighbours: how many private ones a person is assumed to have.
        lift: whether more is expected than from the public part alone.
    """

    noise: float | None
    neighbours: float
    lift: bool

    @property
    def sentence(self) -> str:
        """The expectation in words."""
        if self.noise is None:
            return (
                "expected lift over the public edges alone: none; made edges of a tree bought nothing on any graph "
                "that it was measured on; class-counts did, where edges alone are private"
            )
        expected = "some" if self.lift else "none"
        return (
            f"expected lift over the public edges alone: {expected}, by a rule: noise of {self.noise:.2g} neighbours a "
            f"person beside {self.neighbours:.2g} assumed private ones"
        )


def outlook_of(privacy: ReleasePrivacy, domain: PairDomain, classes: int) -> Outlook:
    """Return what a release of private edges may be expected to buy; no private edge is looked at.

    Args:
        privacy: budgets and mechanisms; edges are protected.
        domain: the protected pairs, and the public edges.
        classes: how many classes there are.
    """
    neighbours = assumed_neighbours(domain)
    if privacy.edges == CLASS_COUNTS:
        noise = math.sqrt(classes * count_noise(privacy.epsilon_a).variance)
    elif privacy.edges in LIMIT:
        noise = 2 * EdgeRand(epsilon=privacy.epsilon_a, domain=domain).expected_false / domain.nodes
    else:
        return Outlook(None, neighbours, lift=False)
    return Outlook(noise, neighbours, lift=noise < LIMIT[privacy.edges] * neighbours)


def assumed_neighbours(domain: PairDomain, share: float | None = None) -> float:
    """Return how many private neighbours a person is assumed to have.

    Args:
        domain: the public edges.
        share: of all edges that are private, below 1, where that is declared.
    """
    public = 0 if domain.public is None else domain.public.shape[1]
    public_degree = 2 * public / domain.nodes
    return max(ASSUMED_DEGREE, public_degree) if share is None else public_degree * share / (1 - share)
