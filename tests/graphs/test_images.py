"""Features that are pixels."""

from __future__ import annotations

import numpy as np
import pytest

from graphveil.errors import InputError
from graphveil.graphs import draw_private, load_graph
from graphveil.graphs.images import ImageShape


def test_pixels_come_to_their_places_and_the_others_between_them() -> None:
    shape = ImageShape(2, 3, (1, 3))
    found = shape.images(np.array([[4.0, 2.0]]))
    with pytest.raises(InputError, match="2, one for each place"):
        shape.images(np.zeros((1, 3)))
    assert found.tolist() == [[[3.0, 4.0, 4.0], [2.0, 3.0, 0.0]]]  # the last has no feature beside it


def test_the_digits_declare_theirs() -> None:
    graph = draw_private(load_graph("digits"), 0.2, 0)
    image = graph.image.images(graph.x.numpy())
    assert image.shape == (1797, 8, 8) and len(graph.image.places) == graph.schema.dimension
    row, column = divmod(graph.image.places[5], 8)
    assert np.array_equal(image[:, row, column], graph.x[:, 5].numpy())


@pytest.mark.parametrize("places", [(0, 0), (4,), (-1,)])
def test_places_outside_or_twice_are_refused(places: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="ImageShape"):
        ImageShape(2, 2, places)
