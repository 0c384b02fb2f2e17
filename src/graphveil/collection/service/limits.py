"""Rate limits: a bucket of tokens for each name, in memory only, forgotten when it is full again."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Rate:
    """How many requests of a kind one client may make: each second in the long run, and at once."""

    each_second: float
    burst: float

    def buckets(self) -> Buckets:
        return Buckets(self.each_second, self.burst)


@dataclass
class Buckets:
    """Buckets that fill at a rate.

    Args:
        rate: tokens a second.
        size: tokens of a full one.
        most: names that are remembered; the oldest are forgotten.
        clock: seconds, of a clock that never goes back.
    """

    rate: float
    size: float
    most: int = 100_000
    clock: Callable[[], float] = time.monotonic
    _buckets: OrderedDict[Hashable, tuple[float, float]] = field(default_factory=OrderedDict, repr=False)

    def take(self, name: Hashable, tokens: float = 1.0) -> bool:
        """Take tokens from a name's bucket; return whether there were enough.

        Args:
            name: an address, or an enrolment.
            tokens: how many.
        """
        now = self.clock()
        left, since = self._buckets.pop(name, (self.size, now))
        left = min(self.size, left + (now - since) * self.rate)
        enough = left >= tokens
        self._buckets[name] = (left - tokens if enough else left, now)
        # The oldest first: its bucket is the likeliest to be full again, and then nothing is lost.
        if len(self._buckets) > self.most:
            self._buckets.popitem(last=False)
        return enough
