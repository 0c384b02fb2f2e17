"""A demo that was never run: rows as wide as they get, and attacks on draws from two normal laws."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from graphveil.attacks import AttackResult, Limit, judge
from graphveil.mechanisms import RandomizedResponse
from graphveil.methods.runs.intervals import Interval
from graphveil.privacy import Guarantee
from graphveil.reports.demo.story import COUNTEREXAMPLE, Story, Way

ATTACKS = {"class-sums": "linkteller", "links": "linkteller", "guesses": "feature-recovery", "lpgnn": "reconstruction"}
CONTROLS = {"class-sums": "no-edges", "links": "random-features", "guesses": "own data alone", "lpgnn": "label-pool"}
TRUSTS = {"class-sums": "a curator", "links": "nobody", "guesses": "organisations", "lpgnn": "nobody"}


def around(mean: float, half: float) -> Interval:
    return Interval(mean, mean - half, mean + half, (mean,))


@cache
def attacked(name: str, shift: float) -> AttackResult:
    rng = np.random.default_rng(0)
    members, strangers = rng.normal(shift, 1, 200), rng.normal(0, 1, 400)
    limit = Limit(math.inf, 0.0, "the method protects nothing")
    return judge(name, "edges", members, strangers, limit=limit, baseline=0.7, baseline_note="no edge")


def way(method: str, *, lift: float, guarantee: Guarantee) -> Way:
    accuracy = around(0.9, 0.031)
    return Way(
        TRUSTS[method],
        method,
        accuracy,
        CONTROLS[method],
        around(0.9 - lift, 0.05),
        around(lift, 0.055),
        guarantee,
        attacked(ATTACKS[method], 3.0),
        attacked(ATTACKS[method], 0.0),
    )


@cache
def story(*, last: float = -0.324) -> Story:
    """Rows as wide as they get: two negative digits in an interval, the longest names of controls and units."""
    lifts = {"class-sums": 0.192, "links": 0.08, "guesses": 0.184, COUNTEREXAMPLE: last}
    guarantee = RandomizedResponse(epsilon=3.0, classes=8).guarantee
    ways = tuple(way(method, lift=lift, guarantee=guarantee) for method, lift in lifts.items())
    return Story("social-1000", 1000, 10000, 1000, 8, 0, around(0.98, 0.01), ways, attacked("link-stealing", 1.0), 25.0)
