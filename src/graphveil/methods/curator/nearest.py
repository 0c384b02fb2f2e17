"""A refusal of noise in terms of the settings: the setting, its value, and the nearest value that is possible.

The code that refuses noise does not know the settings. Here each setting that differs from its default is put back to
it, until there is noise; that setting is named, and bisection towards its default finds the nearest value.
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

#: The stated value is within this fraction of the nearest one.
_CLOSE: Final = 0.02
#: Settings that are changed last: they are the promise.
_PROMISED: Final = ("epsilon", "delta")


def with_nearest(method: Curator, noise_of: Callable[[Curator], Priced]) -> Priced:
    """Return the noise of a method. Raises InputError, naming a setting and the nearest value of it with which there is
    noise.

    Args:
        method, noise_of: its `parameters` build it again; returns its noise, from public facts alone.
    """
    try:
        return noise_of(method)
    except NoiseError as error:
        raise _refusal(method, noise_of, error) from error


def _refusal(method: Any, noise_of: Callable[[Any], Any], error: NoiseError) -> InputError:
    from graphveil.methods.curator.entries import CURATOR_METHODS

    settings, options = method.parameters(), entry_of(method.kind, CURATOR_METHODS).options
    # Of numeric settings; None if the default follows from other settings.
    defaults = {name: option.default for name, option in options.items() if option.type in (int, float)}

    def accepted(name: str, value: Number | None) -> bool:
        try:
            noise_of(type(method)(**{**settings, name: value}))
        except InputError:
            return False
        return True

    changed = [name for name in defaults if _is_number(settings.get(name)) and settings[name] != defaults[name]]
    # The setting farthest from its default first, the promised ones last.
    changed.sort(key=lambda name: (name in _PROMISED, -_log_ratio(settings[name], defaults[name])))
    # Epsilon even at its default, so that at least one setting is tried.
    for name in dict.fromkeys((*changed, "epsilon")):
        value = settings[name]
        for candidate in _candidates(name, value, defaults[name]):
            if accepted(name, candidate):
                near = _nearest(value, candidate, lambda number, name=name: accepted(name, number))  # type: ignore[misc]
                allowed = f"at {'least' if near > value else 'most'} {_written(near)}, the other settings as they are"
                return InputError(f"{name} is {_written(value)}: {error.what}", allowed=allowed)
    listed = ", ".join(f"{name} is {_written(settings[name])}" for name in changed)
    back = ", ".join(f"{name} {_written(value)}" for name in changed if _is_number(value := defaults[name]))
    return InputError(f"{listed}: {error.what}", allowed=f"values towards the defaults: {back}")


def _written(value: Number) -> str:
    return str(value) if isinstance(value, int) else f"{value:.12g}"


def _is_number(value: object) -> bool:
    return is_number(value) and math.isfinite(value)


def _log_ratio(value: Number, default: Number | None) -> float:
    """Return the absolute logarithm of a setting by its default."""
    return abs(math.log(value / default)) if default and value > 0 else math.inf


def _candidates(name: str, value: Number, default: Number | None) -> Iterator[Number]:
    """Yield values to try in place of a refused one: the default, or values ever farther on both sides."""
    if default is not None and default != value:
        yield default
        return
    bounds = NUMBERS.get(name, Bounds())
    low = bounds.least or bounds.above or 0
    high = min(bounds.most or math.inf, bounds.below or math.inf)
    for power in range(1, 21):
        for candidate in (value * 2**power, type(value)(value / 2**power)):
            if low <= candidate <= high and candidate > 0:
                yield candidate


def _nearest(bad: Number, good: Number, accepted: Callable[[Number], bool]) -> Number:
    """Return an accepted value close to `bad`, a refused one, with few digits; `good` is accepted."""
    while abs(good - bad) > (_CLOSE * min(abs(good), abs(bad)) if isinstance(bad, float) else 1):
        if isinstance(bad, int) and abs(good - bad) <= 1 + _CLOSE * min(abs(good), abs(bad)) and abs(bad) > 100:
            break
        # The geometric mean: a delta may be off by hundreds of orders of magnitude.
        middle: Number = math.sqrt(bad) * math.sqrt(good) if min(bad, good) > 0 else (bad + good) / 2
        if isinstance(bad, int):
            middle = min(max(round(middle), min(bad, int(good)) + 1), max(bad, int(good)) - 1)
        bad, good = (bad, middle) if accepted(middle) else (middle, good)
    if good == 0:
        return good
    # To two digits, rounded away from the refused value.
    step = 10.0 ** (math.floor(math.log10(abs(good))) - 1)
    rounded = (math.ceil if good > bad else math.floor)(good / step) * step
    short = max(1, round(rounded)) if isinstance(good, int) else float(f"{rounded:.2g}")
    return short if accepted(short) else good
