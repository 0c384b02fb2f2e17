"""Class counts: a curator publishes, once, how many private neighbours of each public class everybody has, with noise.

    release        public edges, features and labels as they are; in place of private edges a table of counts
    fit_released   readings of the counts, pooled with the public part    `release.counts.count_readings`

Randomized response or a tree publish pairs, of which there are n^2 / 2: at useful epsilons most of them are false.  A
count by class is what a classifier needs of an edge; an edge is in two counts, and their noise does not grow with the
graph.  Features and labels are public here: groups are public labels, or the classes that public edges and features
lead to expect.
Counts of neighbours by class behind noise: Kolluri, Baluta, Hooi, Saxena, "LPGNet: Link Private Graph Networks for Node
Classification", CCS 2022, who train on them in rounds.  One release, public edges beside it and the readings are ours;
the mechanism: `mechanisms.ClassCounts`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

from graphveil.engine import LOCAL, Engine
from graphveil.errors import InputError
from graphveil.graphs import Graph, GraphSchema, Release, Split, require_split
from graphveil.mechanisms.edges.noisy_counts import count_noise
from graphveil.methods.base.estimator import FittedEstimator
from graphveil.methods.base.method import entry_of
from graphveil.methods.base.parameters import as_own_graph
from graphveil.methods.base.people.account import Account, restored_account
from graphveil.methods.base.settings import NUMBERS, require_device
from graphveil.methods.base.storage import Stored, schema_facts, schema_from, stored_probabilities
from graphveil.methods.links.collection import people_key
from graphveil.methods.release.counts.count_readings import read_counts
from graphveil.methods.release.entries import CLASS_COUNTS, RELEASE_METHODS
from graphveil.methods.release.heterorr import HeteroRR
from graphveil.methods.release.privacy import ReleasePrivacy
from graphveil.methods.release.public_part import public_part_of
from graphveil.methods.release.published import domain_of, edge_price, release_digest
from graphveil.methods.release.publisher import Publisher
from graphveil.privacy import Guarantee, Randomness
from graphveil.runtime.late import Tensor, torch
from graphveil.runtime.progress import ProgressCallback


@dataclass(frozen=True)
class FittedCounts:
    """A fitted method: public facts, the release's guarantee, probabilities [n, c], and whether counts are in them."""

    schema: GraphSchema
    people: str
    guarantee: Guarantee
    probabilities: Tensor
    variant: str


class ClassCounts(Publisher, FittedEstimator[FittedCounts]):
    """Noisy counts of private neighbours by class: `fit` is `release` (the curator), then `fit_released` (anybody).

    After fitting: `guarantee`, `ledger`, `published`, `variant` (whether the counts were used).

    Example:
        >>> from graphveil.graphs import social_graph
        >>> from graphveil.methods import ClassCounts
        >>> graph = social_graph(200, average_degree=8, dimension=20, classes=3, seed=1)
        >>> from graphveil.privacy import SecureRandomness
        >>> published = ClassCounts(epsilon_a=1.0).release(graph, randomness=SecureRandomness())
        >>> published.release.guarantee.epsilon, tuple(published.release.counts.counts.shape)
        (1.0, (200, 3))
    """

    entry, kind = entry_of(CLASS_COUNTS, RELEASE_METHODS), CLASS_COUNTS
    fits = "fit_released"
    seed: int

    def __init__(self, *, epsilon_a: float, seed: int = 0, device: str = "cpu") -> None:
        require_device(device)
        NUMBERS["seed"].require(seed=seed)
        if epsilon_a == math.inf:
            raise InputError("epsilon_a is inf: all edges are public", remedy="train gcn, which takes them as they are")
        self._curator = HeteroRR(epsilon_x=math.inf, epsilon_a=epsilon_a, edges=CLASS_COUNTS)
        self.seed, self.device = seed, device

    # ---- the curator ----

    def release(
        self,
        graph: Graph,
        *,
        randomness: Randomness,
        method: str = CLASS_COUNTS,
        split: Split | None = None,
        progress: ProgressCallback | None = None,
        engine: Engine = LOCAL,
    ) -> Graph:
        """See `HeteroRR.release`, which reads what is private."""
        return self._curator.release(
            graph, randomness=randomness, method=method, split=split, progress=progress, engine=engine
        )

    # ---- anybody ----

    def fit_released(self, released: Graph, *, split: Split, progress: ProgressCallback | None = None) -> Self:
        """Read a released graph, any number of times at no privacy cost. Guarantee and ledger are then the release's,
        whatever epsilon this method was built with.

        Raises:
            InputError: for a graph that nobody released, or without counts for each of its nodes.
            BudgetError: another release than the one that was paid for, and no budget for two.
        """
        released = as_own_graph(released)
        origin: Release | None = released.get("release")
        if origin is None or origin.counts is None:
            raise InputError("no counts were released", where="fit_released", remedy="call release first")
        require_split(split, int(released.num_nodes))
        schema, rate = released.schema, count_noise(edge_price(origin)).rate
        if origin.counts.counts.shape != (int(released.num_nodes), len(schema.classes)):
            raise InputError(f"counts are {tuple(origin.counts.counts.shape)}", where="fit_released")
        self.account.adopt(release_digest(released), origin.ledger)
        public = public_part_of(released, split, domain_of(released), seed=self.seed)
        reading = read_counts(public, origin.counts, rate)
        probabilities = torch.softmax(reading.scores, dim=1)
        self._fitted = FittedCounts(schema, people_key(released), origin.guarantee, probabilities, reading.variant)
        self.published = released
        return self

    # ---- what comes out ----

    def probabilities(self, graph: Graph | None = None, *, randomness: Randomness | None = None) -> Tensor:
        """Return class probabilities [n, c] of the released nodes; nothing private is read. Other nodes are refused:
        their neighbours would have to be counted, which nobody has paid for.
        """
        fitted = self.result
        if graph is not None and people_key(graph) != fitted.people:
            raise InputError(
                "class-counts predicts only the nodes that were released",
                where=graph.schema.name,
                remedy="release the other graph, with a budget of its own",
            )
        return fitted.probabilities

    @property
    def privacy(self) -> ReleasePrivacy:
        """Budgets and mechanisms."""
        return self._curator.privacy

    @property
    def account(self) -> Account:
        """The account of the curator."""
        return self._curator.account

    @account.setter
    def account(self, account: Account) -> None:
        self._curator.account = account

    def parameters(self) -> dict[str, Any]:
        return {"epsilon_a": self.privacy.epsilon_a, "seed": self.seed, "device": self.device}

    @property
    def variant(self) -> str:
        """Whether the counts were used."""
        return self.result.variant

    @property
    def mechanism_guarantee(self) -> Guarantee:
        return self.result.guarantee

    # ---- files ----

    def stored(self) -> Stored:
        """Return predictions, guarantee and ledger; no graph and no counts."""
        fitted = self.result
        facts = {
            "options": {"epsilon_a": self.privacy.epsilon_a, "seed": self.seed},
            "schema": schema_facts(fitted.schema),
            "people": fitted.people,
            "variant": fitted.variant,
            **self.account.facts(),
            "guarantee": self.guarantee.to_dict(),
        }
        return Stored(facts, {"probabilities": fitted.probabilities})

    @classmethod
    def restore(cls, stored: Stored) -> Self:
        """Return what `stored` gave, able to predict for its own nodes; its release cannot be repeated."""
        facts = stored.facts
        method = cls(**facts["options"])
        method.account = restored_account(facts)
        schema, guarantee = schema_from(facts["schema"]), Guarantee.from_dict(facts["guarantee"])
        probabilities = stored_probabilities(stored, len(schema.classes))
        method._fitted = FittedCounts(schema, str(facts["people"]), guarantee, probabilities, str(facts["variant"]))
        return method
