"""Ids are found where they stand, whatever they are made of, and what is no id is not found."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import polars
import pytest

from graphveil.graphs.id_places import IdPlaces


def texts(kind: str, people: int) -> list[str]:
    """Distinct ids in no order."""
    rng = np.random.default_rng(4)
    if kind == "rows":
        return [str(number) for number in rng.permutation(people)]
    numbers = rng.choice(10**15, people, replace=False)
    return [f"{kind}{number}" for number in numbers]


@pytest.mark.parametrize("kind", ["rows", "", "-", "0", "someone with a long name "])
@pytest.mark.parametrize("people", [1, 2, 127, 128, 5_000])
def test_every_id_is_found_and_no_other(kind: str, people: int) -> None:
    ids = texts(kind, people)
    known = IdPlaces.of(polars.Series(ids))
    asked = np.random.default_rng(people).integers(0, people, 300_000)
    found = known.find(polars.Series(ids).gather(asked))
    assert np.array_equal(found, asked)
    # The same number written otherwise is somebody else.
    strangers = [f"0{one}" for one in ids] + [f"{one} " for one in ids] + [""]
    assert (known.find(polars.Series(strangers)) == -1).all()


class Alike:
    """Texts that have one first hash, or few, and each a second one of its own."""

    dtype = polars.String

    def __init__(self, numbers: list[int], alike: int) -> None:
        self.numbers, self.alike = numbers, alike

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: slice) -> Alike:
        return Alike(self.numbers[rows], self.alike)

    def hash(self, number: int) -> polars.Series:
        return polars.Series([one if number else one % self.alike for one in self.numbers], dtype=polars.UInt64)


@pytest.mark.parametrize("alike", [1, 3, 40])
def test_ids_of_one_hash_are_told_apart_by_the_other(alike: int) -> None:
    known = IdPlaces.of(cast(polars.Series, Alike(list(range(7, 57)), alike)))
    found = known.find(cast(polars.Series, Alike([56, 7, 20, 57, 6], alike)))
    assert found.tolist() == [49, 0, 13, -1, -1]


def test_a_text_with_the_first_hash_of_an_id_only_is_not_found() -> None:
    ids = polars.Series(["a", "b"])
    known = IdPlaces.of(ids)
    first, second = (ids.hash(number) for number in (0, 1))
    pretender = SimpleNamespace(hash=lambda number: second[::-1] if number else first, dtype=polars.String)

    class Both:
        """Two texts that share the first hash with the ids, and not the second."""

        def __len__(self) -> int:
            return 2

        def __getitem__(self, _: slice) -> SimpleNamespace:
            return pretender

    assert known.find(cast(polars.Series, Both())).tolist() == [-1, -1]
