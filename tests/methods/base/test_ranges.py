"""The ranges of settings: of settings that there are, with their defaults inside, and none forgotten."""

from __future__ import annotations

import math

from graphveil.methods import METHODS
from graphveil.methods.base.ranges import NAMES, NUMBERS, Bounds


def holds(bounds: Bounds, value: float) -> bool:
    """Whether a number lies within its bounds."""
    if math.isinf(value):
        return bounds.infinite
    ends = (
        bounds.least is None or value >= bounds.least,
        bounds.most is None or value <= bounds.most,
        bounds.above is None or value > bounds.above,
        bounds.below is None or value < bounds.below,
    )
    return all(ends)


OPTIONS = [(name, key, option) for name, info in METHODS.items() for key, option in info.options.items()]


def test_every_range_is_of_a_setting_that_some_method_takes() -> None:
    kinds = {key: option.type for _, key, option in OPTIONS}
    assert {key for key, kind in kinds.items() if kind in (int, float)} == {*NUMBERS, "bins"}
    assert all(kinds[key] is str for key in NAMES)


def test_defaults_lie_within_their_ranges() -> None:
    for name, key, option in OPTIONS:
        if option.default is None:
            continue
        if option.type is str:
            assert option.default in (option.within or NAMES.get(key) or (option.default,)), (name, key)
        elif key in NUMBERS:
            assert holds(NUMBERS[key], option.default), (name, key)
