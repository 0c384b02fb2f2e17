"""A refusal of noise in the words of who asked for it: the setting, its value, and the nearest value that is taken.

Noise is refused deep down, where nobody knows what was set. Here each setting that is not by default is put back to it,
until the noise can be had; that setting is named, and the interval to its default halved down to the nearest value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from graphveil.errors import InputError, NoiseError
from graphveil.methods.base.method import entry_of
from graphveil.methods.base.settings import NUMBERS, Bounds
from graphveil.runtime.checks import is_number

Curator = TypeVar("Curator")
Priced = TypeVar("Priced")
Number = int | float

#: The named value is within this part of the nearest one.
_CLOSE: Final = 0.02
#: Settings that are looked at last: what is promised should give way to nothing else.
_PROMISED: Final = ("epsilon", "delta")


def with_nearest(method: Curator, noise_of: Callable[[Curator], Priced]) -> Priced:
    """Return what `noise_of` gives for a method. Raises InputError, naming a setting and the nearest value of it with
    which the noise can be had.

    Args:
        method, noise_of: whose `parameters` build it once more; what prices a method, from public facts alone.
    """
    try:
        return noise_of(method)
    except NoiseError as error:
        raise _named(method, noise_of, error) from error


def _named(method: Any, noise_of: Callable[[Any], Any], error: NoiseError) -> InputError:
    from graphveil.methods.curator.entries import CURATOR_METHODS

    settings, options = method.parameters(), entry_of(method.kind, CURATOR_METHODS).options
    # Of the numbers that users set; None where others decide.
    defaults = {name: option.default for name, option in options.items() if option.type in (int, float)}

    def accepted(name: str, value: Number | None) -> bool:
        try:
            noise_of(type(method)(**{**settings, name: value}))
        except InputError:
            return False
        return True

    changed = [name for name in defaults if _is_number(settings.get(name)) and settings[name] != defaults[name]]
    # The one that is farthest from what is usual first, and what is promised last.
    changed.sort(key=lambda name: (name in _PROMISED, -_far(settings[name], defaults[name])))
    # Epsilon also where it is by default: there is always something to say of it.
    for name in dict.fromkeys((*changed, "epsilon")):
        value = settings[name]
        for good in _candidates(name, value, defaults[name]):
            if accepted(name, good):
                near = _nearest(value, good, lambda tried, name=name: accepted(name, tried))  # type: ignore[misc]
                allowed = f"at {'least' if near > value else 'most'} {_written(near)}, the other settings as they are"
                return InputError(f"{name} is {_written(value)}: {error.what}", allowed=allowed)
    listed = ", ".join(f"{name} is {_written(settings[name])}" for name in changed)
    back = ", ".join(f"{name} {_written(value)}" for name in changed if _is_number(value := defaults[name]))
    return InputError(f"{listed}: {error.what}", allowed=f"values towards the defaults: {back}")


def _written(value: Number) -> str:
    return str(value) if isinstance(value, int) else f"{value:.12g}"


def _is_number(value: object) -> bool:
    return is_number(value) and math.isfinite(value)


def _far(value: Number, default: Number | None) -> float:
    """How many times a setting is its default, or the other way round, as a logarithm."""
    return abs(math.log(value / default)) if default and value > 0 else math.inf


def _candidates(name: str, value: Number, default: Number | None) -> Iterator[Number]:
    """Values to try in place of one that is refused: the default, or ever farther ones on both sides."""
    if default is not None and default != value:
        yield default
        return
    bounds = NUMBERS.get(name, Bounds())
    low = bounds.least or bounds.above or 0
    high = min(bounds.most or math.inf, bounds.below or math.inf)
    for power in range(1, 21):
        for other in (value * 2**power, type(value)(value / 2**power)):
            if low <= other <= high and other > 0:
                yield other


def _nearest(bad: Number, good: Number, accepted: Callable[[Number], bool]) -> Number:
    """Return a value that is taken, near to those that are not, in as few digits as say it."""
    while abs(good - bad) > (_CLOSE * min(abs(good), abs(bad)) if isinstance(bad, float) else 1):
        if isinstance(bad, int) and abs(good - bad) <= 1 + _CLOSE * min(abs(good), abs(bad)) and abs(bad) > 100:
            break
        # By ratio: a delta may be off by hundreds of orders of magnitude.
        middle: Number = math.sqrt(bad) * math.sqrt(good) if min(bad, good) > 0 else (bad + good) / 2
        if isinstance(bad, int):
            middle = min(max(round(middle), min(bad, int(good)) + 1), max(bad, int(good)) - 1)
        bad, good = (bad, middle) if accepted(middle) else (middle, good)
    if good == 0:
        return good
    # In two digits, on the side that is away from what is refused.
    step = 10.0 ** (math.floor(math.log10(abs(good))) - 1)
    rounded = (math.ceil if good > bad else math.floor)(good / step) * step
    short = max(1, round(rounded)) if isinstance(good, int) else float(f"{rounded:.2g}")
    return short if accepted(short) else good
