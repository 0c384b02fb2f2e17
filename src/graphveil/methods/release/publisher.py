"""The base of methods whose curator publishes a graph: a collection is a release, and training reads it.

collect   release, unless the graph is a release already      the curator, once
train     fit_released                                        anybody, any number of times
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from graphveil.engine import LOCAL, Engine
from graphveil.graphs import Graph, Split
from graphveil.methods.base.estimator import Estimator
from graphveil.methods.release.privacy import ReleasePrivacy
from graphveil.privacy import Randomness
from graphveil.runtime.progress import ProgressCallback


@dataclass(frozen=True)
class PublishedGraph:
    """A released graph, and who trains, validates and tests."""

    graph: Graph
    split: Split


class Publisher(Estimator):
    """A method in two halves: `release` (the curator), then `fit_released` (anybody); `published`: the released
    graph that was fitted.
    """

    by_blocks: ClassVar[bool] = True
    published: Graph | None = None

    if TYPE_CHECKING:  # what each method has of its own

        @property
        def privacy(self) -> ReleasePrivacy: ...
        def release(
            self, graph: Graph, *, randomness: Randomness, split: Split | None = None, engine: Engine = LOCAL
        ) -> Graph: ...
        def fit_released(self, released: Graph, *, split: Split, progress: ProgressCallback | None = None) -> Any: ...

    def collect(
        self, graph: Graph, *, split: Split, progress: ProgressCallback | None = None, **keywords: Any
    ) -> PublishedGraph:
        """Release `graph`, unless it is a release already."""
        released = graph if graph.get("release") is not None else self.release(graph, split=split, **keywords)
        return PublishedGraph(released, split)

    def train(
        self,
        collected: PublishedGraph,
        *,
        randomness: Randomness | None = None,
        progress: ProgressCallback | None = None,
    ) -> None:
        self.fit_released(collected.graph, split=collected.split, progress=progress)

    @property
    def epsilon_relationship(self) -> float:
        # From the ledger: the release may have other settings than this method.
        paid = [spend.epsilon for spend in self.ledger.spends if spend.unit == "edges"]
        return math.fsum(paid) if paid else math.inf if self.fitted else self.privacy.epsilon_a
