"""Link beliefs, list sums and both together: classes from features, labels and noisy neighbour lists.

    devices   as Solitude                                                                            `randomize`
    server    reading "beliefs"  features, and every report weighed by its exact likelihood         `fit_reports`
              reading "sums"     a network on features and unbiased counts of each class in each noisy list
              reading "all"      both, pooled
              each only where it predicts held-out validation labels better than features alone; else without lists

No denoised graph: where neighbour lists are private, most reported links are false, and any choice of edges throws away
what a thousand weak reports say together.  Released validation labels weigh the readings, which costs nothing.
Ours; parts: `methods.links.readings`, `models.blocks.labelled_blocks`, `models.blocks.list_sums`, `models.labels.pool`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, Self, TypedDict, Unpack

from graphveil.errors import InputError
from graphveil.graphs import Graph, GraphSchema
from graphveil.graphs.value.checks import require_one_label
from graphveil.methods.base.method import entry_of
from graphveil.methods.base.people.account import Account, restored_account
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.methods.base.settings import NUMBERS, require_device
from graphveil.methods.base.storage import Stored, schema_from, stored_probabilities
from graphveil.methods.links.collection import (
    LinkReports,
    ListsEstimator,
    options_from,
    people_key,
)
from graphveil.methods.links.entries import LINK_METHODS, READINGS
from graphveil.methods.links.privacy import LinkPrivacy
from graphveil.methods.links.readings import Opinion, read_lists
from graphveil.models.names import BELIEF_ROUNDS, BLOCKS
from graphveil.privacy import Guarantee, Randomness
from graphveil.runtime.checks import require_choice
from graphveil.runtime.late import Tensor, torch
from graphveil.runtime.progress import ProgressCallback


@dataclass(frozen=True)
class FittedBeliefs:
    """What a fitted method keeps: public facts, probabilities [n, c] and which parts were used."""

    schema: GraphSchema
    void: str | None
    people: str | None
    probabilities: Tensor
    variant: str


class LinkBeliefs(ListsEstimator[FittedBeliefs]):
    """Noisy neighbour lists, read without a graph: `fit` is `randomize` (the devices), then `fit_reports` (server).

    Args:
        epsilon_x, epsilon_y, mechanism, delta, mode: as `Solitude`; epsilon_a too, and finite.
        reading: "beliefs", "sums" or "all", see above.

    Example:
        >>> from graphveil.graphs import social_graph
        >>> from graphveil.methods import LinkBeliefs
        >>> graph = social_graph(200, average_degree=8, dimension=20, classes=3, seed=1)
        >>> model = LinkBeliefs(epsilon_x=1.0, epsilon_a=4.0, rounds=2).fit(graph)
        >>> model.guarantee.epsilon, tuple(model.predict_proba().shape)
        (5.0, (200, 3))
    """

    entry, kind = entry_of("link-beliefs", LINK_METHODS), "link-beliefs"
    seed: int
    trains_network = False

    def __init__(
        self,
        *,
        epsilon_x: float | None,
        epsilon_a: float,
        epsilon_y: float = math.inf,
        mode: str | None = None,
        mechanism: str = "multi-bit",
        delta: float = 1e-10,
        sampled: int | None = None,
        reading: str = "beliefs",
        rounds: int = BELIEF_ROUNDS,
        blocks: str = "full",
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.privacy = LocalPrivacy(epsilon_x, epsilon_y, mechanism, delta, sampled)
        self.links = LinkPrivacy(epsilon_a, mode)
        # Likelihoods of certain links are infinite; a known topology has methods of its own.
        if self.links.public:
            raise InputError("epsilon_a is inf: links are public", remedy="train lpgnn, which takes the topology")
        require_choice(READINGS, reading=reading)
        NUMBERS["rounds"].require(rounds=rounds)
        if blocks not in BLOCKS or (blocks != "full" and reading == "sums"):
            raise InputError(f"blocks {blocks!r} with reading {reading}", allowed="full, or planted beside beliefs")
        require_device(device)
        NUMBERS["seed"].require(seed=seed)
        self.reading, self.rounds, self.blocks, self.seed, self.device = reading, rounds, blocks, seed, device
        self.account = Account(self.links.declare(self.privacy.open_ledger()))
        self.released: LinkReports | None = None
        self.parts: Mapping[str, tuple[Opinion, ...]] = {}

    def require_served(self, graph: Graph) -> None:
        require_one_label(graph)

    def fit_reports(
        self,
        released: LinkReports,
        *,
        progress: ProgressCallback | None = None,
        earlier: Mapping[str, tuple[Opinion, ...]] = MappingProxyType({}),
    ) -> Self:
        """Weigh the reports; costs nothing and may be repeated. Raises what `check_and_book` does.

        Args:
            earlier: `parts` of another reading of the same reports with the same settings.
        """
        schema = self.check_and_book(released)
        settings: dict[str, Any] = {"rounds": self.rounds, "blocks": self.blocks, "seed": self.seed}
        reading = read_lists(released, self.reading, **settings, device=self.device, progress=progress, earlier=earlier)
        probabilities = torch.softmax(reading.scores, dim=1).cpu()
        self._fitted = FittedBeliefs(schema, released.void, released.people_key, probabilities, reading.variant)
        self.released, self.parts = released, reading.parts
        return self

    def probabilities(self, graph: Graph | None = None, *, randomness: Randomness | None = None) -> Tensor:
        """Return class probabilities [n, c] of the people who reported; beliefs travel between them alone. Raises
        InputError for other people: beliefs travel between those who reported together.
        """
        fitted = self.result
        if graph is not None and people_key(graph) != fitted.people:
            name = fitted.schema.name
            renamed = people_key(graph, name) == fitted.people
            raise InputError(
                f"{self.name} predicts only people who reported",
                where=graph.schema.name,
                remedy=f"if these are the same people in the same rows under another name: call their graph {name!r}"
                if renamed
                else "collect their reports and fit again, or train solitude, which predicts on new graphs",
            )
        return fitted.probabilities

    def parameters(self) -> dict[str, Any]:
        return {**self._options(), "device": self.device}

    def _options(self) -> dict[str, Any]:
        return {
            **asdict(self.privacy),
            "epsilon_a": self.links.epsilon_a,
            "mode": self.links.mode,
            "reading": self.reading,
            "rounds": self.rounds,
            "blocks": self.blocks,
            "seed": self.seed,
        }

    @property
    def variant(self) -> str:
        """Whether the lists were used."""
        return self.result.variant

    @property
    def mechanism_guarantee(self) -> Guarantee:
        fitted = self.result
        return self.guarantee_of(fitted.schema, len(fitted.probabilities), fitted.void)

    def stored(self) -> Stored:
        """Return predictions, settings, guarantee and ledger; no reports, no links."""
        fitted = self.result
        facts = {**self.collection_facts(self._options(), fitted.schema, fitted.people), "variant": fitted.variant}
        return Stored(facts, {"probabilities": fitted.probabilities})

    @classmethod
    def restore(cls, stored: Stored) -> Self:
        """Return what `stored` gave, able to predict for its own people."""
        facts = stored.facts
        method = cls(**options_from(facts))
        method.account = restored_account(facts)
        schema, void = schema_from(facts["schema"]), Guarantee.from_dict(facts["guarantee"]).void
        probabilities = stored_probabilities(stored, len(schema.classes))
        method._fitted = FittedBeliefs(schema, void, facts["people"], probabilities, facts["variant"])
        return method


class ListOptions(TypedDict, total=False):
    """Keywords of every reading of the lists, but for the budgets of features and lists."""

    epsilon_y: float
    mode: str | None
    mechanism: str
    delta: float
    sampled: int | None
    seed: int
    device: str


class PooledListOptions(ListOptions, total=False):
    """Keywords of a reading with beliefs in it."""

    rounds: int
    blocks: str


class ListSums(LinkBeliefs):
    """Unbiased counts of each class in each noisy list, given to a network with the features; see `LinkBeliefs`.

    Example:
        >>> from graphveil.graphs import social_graph
        >>> from graphveil.methods import ListSums
        >>> graph = social_graph(200, average_degree=8, dimension=20, classes=3, seed=1)
        >>> model = ListSums(epsilon_a=4.0).fit(graph)
        >>> model.epsilon_relationship, tuple(model.predict_proba().shape)
        (4.0, (200, 3))
    """

    entry = entry_of("list-sums", LINK_METHODS)

    def __init__(
        self, *, epsilon_a: float, epsilon_x: float | None = math.inf, **settings: Unpack[ListOptions]
    ) -> None:
        super().__init__(epsilon_x=epsilon_x, epsilon_a=epsilon_a, **settings, **self.entry.fixed)


class Links(LinkBeliefs):
    """Link beliefs and list sums, pooled by released labels; see `LinkBeliefs`.

    Example:
        >>> from graphveil.graphs import social_graph
        >>> from graphveil.methods import Links
        >>> graph = social_graph(200, average_degree=8, dimension=20, classes=3, seed=1)
        >>> model = Links(epsilon_a=4.0).fit(graph)
        >>> model.epsilon_relationship, tuple(model.predict_proba().shape)
        (4.0, (200, 3))
    """

    entry = entry_of("links", LINK_METHODS)

    def __init__(
        self, *, epsilon_a: float, epsilon_x: float | None = math.inf, **settings: Unpack[PooledListOptions]
    ) -> None:
        super().__init__(epsilon_x=epsilon_x, epsilon_a=epsilon_a, **settings, **self.entry.fixed)
