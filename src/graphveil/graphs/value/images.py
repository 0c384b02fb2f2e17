"""Features that are the pixels of an image: where each of them lies, declared with the graph as `graph.image`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphveil.errors import InputError


@dataclass(frozen=True)
class ImageShape:
    """Where in an image of `rows` x `columns` pixels each feature lies, row by row: `places` [d].

    InputError refuses a place outside the image, or twice.
    """

    rows: int
    columns: int
    places: tuple[int, ...]

    def __post_init__(self) -> None:
        pixels = self.rows * self.columns
        if len(set(self.places)) != len(self.places) or not all(0 <= place < pixels for place in self.places):
            raise InputError(
                "a pixel lies outside the image, or twice",
                where="ImageShape",
                allowed=f"different places below {pixels}",
            )

    def images(self, features: np.ndarray) -> np.ndarray:
        """Return pictures [m, rows, columns] of features [m, d]; InputError for another d.

        A pixel that is no feature is drawn as the mean of those beside, above and below it that are (0 where none is).
        """
        if features.shape[1] != len(self.places):
            raise InputError(
                f"{features.shape[1]} features", where="ImageShape", allowed=f"{len(self.places)}, one for each place"
            )
        has_feature = np.zeros(self.rows * self.columns, dtype=bool)
        has_feature[list(self.places)] = True
        flat = np.zeros((len(features), self.rows * self.columns))
        flat[:, list(self.places)] = features
        shape = (self.rows, self.columns)
        images, there = flat.reshape(-1, *shape), has_feature.reshape(shape).astype(np.float64)
        neighbours = np.maximum(_around(there[None])[0], 1.0)
        filled: np.ndarray = np.where(there > 0, images, _around(images * there) / neighbours)
        return filled


def _around(images: np.ndarray) -> np.ndarray:
    wide = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    total: np.ndarray = wide[:, :-2, 1:-1] + wide[:, 2:, 1:-1] + wide[:, 1:-1, :-2] + wide[:, 1:-1, 2:]
    return total
