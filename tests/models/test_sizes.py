"""Numbers of networks by arithmetic, against the networks."""

from __future__ import annotations

import pytest

from graphveil.graphs import social_graph
from graphveil.methods.curator.gap import GapRecipe
from graphveil.methods.curator.node_sums import VoteRecipe
from graphveil.methods.curator.progap import ProgapRecipe
from graphveil.methods.curator.settings import CuratorSettings
from graphveil.methods.curator.stages import Recipe
from graphveil.methods.curator.training import ATTENTION, parameters_of

SCHEMA = social_graph(60, average_degree=6, dimension=30, classes=4, seed=1).schema


@pytest.mark.parametrize(("hops", "hidden", "weights"), [(1, 1, ATTENTION), (3, 16, "uniform"), (3, 1, ATTENTION)])
@pytest.mark.parametrize("recipe", [GapRecipe(), ProgapRecipe(), VoteRecipe()], ids=lambda recipe: recipe.kind)
def test_sizes_are_those_of_the_networks(recipe: Recipe, weights: str, hidden: int, hops: int) -> None:
    """The price has in it how often noise is drawn: a plan that counted otherwise would tell another epsilon."""
    settings = CuratorSettings(hidden=hidden, hops=hops, weights=weights)
    built = recipe.networks(settings, SCHEMA, batch_norm=False)
    assert recipe.sizes(settings, SCHEMA) == [parameters_of(network) for network in built]
    # Attention trains on edges, in steps of its own: a plan counts no epochs for it.
    assert len(recipe.layers(hops)) == len(built) - (recipe.kind == "gap" and weights == ATTENTION)
