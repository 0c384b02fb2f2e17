"""What type checkers know of the public classes; only they read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_type

import graphveil
from graphveil.graphs import Graph

if TYPE_CHECKING:

    def face(graph: Graph) -> None:
        """Each name is a class, its parameters are real, and what it returns is of that class."""
        kind: type[graphveil.ClassSums] = graphveil.ClassSums
        assert_type(kind(epsilon=1.0).fit(graph), graphveil.ClassSums)
        assert_type(graphveil.LabelPool.load("model.safetensors"), graphveil.LabelPool)
        graphveil.LPGNN(epsilon_x=1.0, epsilon_y=2.0, hidden=8).set_params(hidden=16)
        graphveil.LPGNN(epsilon_x="much", epsilon_y=2.0)  # type: ignore[arg-type]
        graphveil.LabelPool(epsilon_y=2.0, rule="pool")  # type: ignore[call-arg]
        graphveil.GAP(epsilon=2.0, passses=3)  # type: ignore[call-arg]
