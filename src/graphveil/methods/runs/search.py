"""The choice of settings: free on one collection or a public graph (`tuning`), or at a price on the private graph.

A curator's methods are tuned on the private graph itself at a price that is known in advance:

    K ~ law, independent of private data                                         `privacy.RepeatAndSelect`
    K times: settings at random -> publish and train, with fresh noise -> score
    keep the best and its score; the other trials and K are for the curator alone

Every trial has so much noise that the whole tuning, with the exported best, costs the declared (epsilon, delta): see
`privacy.accounting.selection` for trials of different settings and noise from tables.

The score is part of the price of a trial. Where edges are protected, validation labels are public and predictions come
from noisy sums: scoring is post-processing. Where nodes are protected, the score is the number of validation hits with
Gaussian noise. Given a trial's weights and noisy sums, another node's prediction is a function of that node's own row,
so one node changes the number by at most 1. The count is one more release of sensitivity 1 in every trial's pipeline,
which `CuratorPrivacy.noise` prices with the others.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graphveil.errors import DataError, GraphveilError, InputError
from graphveil.graphs import Graph, GraphSchema, Split
from graphveil.graphs.value.value import fingerprint
from graphveil.mechanisms.samplers.rounded_normal import RoundedNormal, reach_of
from graphveil.methods.base.estimator import Estimator
from graphveil.methods.base.method import PAID_TUNING
from graphveil.methods.curator.privacy import Noise
from graphveil.methods.registry import METHODS, tagged
from graphveil.methods.runs.proposals import GRID, Range, Values, require_sampler
from graphveil.methods.runs.result import peak_memory_mb
from graphveil.methods.runs.tuning import (
    PROMISED,
    TRIALS,
    Tuned,
    require_free,
    require_grid,
    require_tunable,
    tune,
    tune_by_proxy,
)
from graphveil.privacy import Ledger, Randomness, RepeatAndSelect, Spend
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.runtime.progress import Progress, ProgressCallback
from graphveil.runtime.words import count_of


@dataclass(frozen=True)
class Search:
    """The settings to try, the number of trials, and the data.

    Attributes:
        trials: the most trials; of a paid search the expected number. None: 20, paid 10.
        law: of the number of trials of a paid search.
        proxy: a public graph to choose on; None: the graph that is trained on.
        log: called with each trial of a paid search, for the curator alone.
        journal: a file that keeps a sampler's trials on a proxy.
    """

    over: Mapping[str, Values]
    trials: int | None = None
    law: str = "logarithmic"
    proxy: Any = None
    log: Log | None = None
    sampler: str = GRID
    journal: Path | None = None

    def paid(self, name: str) -> bool:
        # On a public graph trials read nothing private, whatever the method.
        return self.proxy is None and bool(payable(name, {}))

    @property
    def listed(self) -> Mapping[str, Sequence[Any]]:
        return {key: values for key, values in self.over.items() if not isinstance(values, Range)}

    @property
    def tuning(self) -> RepeatAndSelect:
        return RepeatAndSelect(MEAN if self.trials is None else self.trials, self.law)

    def summary(self, name: str, settings: Mapping[str, Any]) -> str:
        """Return the search and its price in one line."""
        tried = "; ".join(f"{key}={','.join(map(str, values))}" for key, values in self.listed.items())
        most = math.prod(len(values) for values in self.listed.values())
        count = min(most, TRIALS if self.trials is None else self.trials)
        if self.paid(name):
            settled = METHODS[name].settle(settings)
            price = f"epsilon {rounded_up(settled['epsilon'])}, delta {rounded_up(settled['delta'])}"
            cost = f"{self.tuning.mean:g} trainings on average, which cost {price} all together"
        elif self.proxy is not None:
            cost = f"{count_of(count, 'training')} on the public {self.proxy}, and the one that is paid for"
        else:
            cost = f"{count_of(count, 'training')} on one collection in each run, which cost what one does"
        return f"Searching {tried}: {cost}"

    def require(self, name: str, settings: Mapping[str, Any]) -> None:
        """Refuse a search that is empty or names a setting that it may not choose."""
        require_sampler(self.over, self.sampler, paid=self.paid(name))
        if self.paid(name):
            require_payable(name, settings, self.listed, self.tuning)
        else:
            require = require_tunable if self.proxy is None else require_free
            require(name, self.over, TRIALS if self.trials is None else self.trials)


def choose(
    name: str,
    graph: Graph,
    settings: Mapping[str, Any],
    search: Search,
    *,
    split: Split,
    randomness: Randomness,
    seed: int = 0,
    device: str = "cpu",
    progress: ProgressCallback | None = None,
) -> Tuned:
    """Return the method with the best settings, fitted; see `tune`, `tune_by_proxy` and `tune_at_a_price`."""
    shared: dict[str, Any] = {"split": split, "randomness": randomness, "seed": seed, "device": device}
    shared["progress"] = progress
    if search.paid(name):
        return tune_at_a_price(name, graph, settings, search.listed, tuning=search.tuning, log=search.log, **shared)
    shared |= {"trials": TRIALS if search.trials is None else search.trials, "sampler": search.sampler}
    if search.proxy is not None:
        return tune_by_proxy(name, graph, search.proxy, settings, search.over, journal=search.journal, **shared)
    return tune(name, graph, settings, search.over, **shared)


MEAN = 10
#: Methods whose trials can be priced together.
PAID = tagged(PAID_TUNING)
Log = Callable[[Mapping[str, Any]], None]
#: The most grid steps of the count's noise, where it is small.
_STEPS = 128


@dataclass(frozen=True)
class _Trial:
    settings: Mapping[str, Any]
    method: Any
    noise: Noise
    score: float
    seconds: float


def payable(name: str, settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the settings that paid trials may choose; none for methods whose trials are free or impossible."""
    if name not in PAID:
        return ()
    # A bound that lists are cut to may be tried, since each trial pays for its own; a promised one is a fact.
    open_bound = settings.get("unit") == "node" and settings.get("rule") != "declared"
    fixed = PROMISED if open_bound else PROMISED | {"degree_bound"}
    return tuple(key for key in METHODS[name].options if key not in fixed)


def require_payable(
    name: str, settings: Mapping[str, Any], over: Mapping[str, Sequence[Any]], tuning: RepeatAndSelect
) -> None:
    """Refuse a grid that is empty or holds what is promised, and a method without paid trials."""
    allowed = payable(name, settings)
    if not allowed:
        raise InputError(f"{name} does not pay for its trials", where="tune", allowed=", ".join(PAID))
    require_grid(over, tuning.mean)
    for key in over:
        if key not in allowed:
            raise InputError(
                f"{key} is part of the guarantee and cannot be tuned", where="tune", allowed=", ".join(allowed)
            )
    if "attention" in (settings.get("weights"), *over.get("weights", ())):
        raise InputError("weights=attention cannot be tuned at a price", where="tune", remedy="tune on a --proxy")
    if settings.get("epsilon") == math.inf:
        raise InputError(
            "nothing is protected at epsilon inf", where="tune", remedy="give epsilon, or tune on a --proxy"
        )


def tune_at_a_price(
    name: str,
    graph: Graph,
    settings: Mapping[str, Any],
    over: Mapping[str, Sequence[Any]],
    *,
    tuning: RepeatAndSelect,
    split: Split,
    randomness: Randomness,
    seed: int = 0,
    device: str = "cpu",
    ledger: Ledger | None = None,
    log: Log | None = None,
    progress: ProgressCallback | None = None,
) -> Tuned:
    """Run a random number of private trainings on `graph` and return the best; together they have the declared price.

    Args:
        settings: the method's other settings; `epsilon` and `delta` are those of the whole tuning.
        tuning: the law of the number of trials.
        ledger: pays for the tuning, one on disk before anything is read; default: one opened for it.
        log: called with every trial and `seed`, for the curator alone.

    Raises:
        BudgetError: when the ledger cannot pay, before anything is read.
        InputError: as `require_payable`; no validation node; or no noise reaches the price, before anything is read.
        DataError: the graph changed between two trials; nothing is returned then.
    """
    require_payable(name, settings, over, tuning)
    if not bool(split.val.any()):
        raise InputError("no validation node is left to choose settings by", where="tune")
    build = _builder(name, settings, tuning, seed, device)
    # All drawn before anything is read: neither their number nor their settings can depend on the data.
    candidates = [_draw_settings(over, randomness) for _ in range(tuning.draw(randomness))]
    planned = build(candidates[0])
    account = planned.privacy.open_ledger() if ledger is None else ledger
    people = int(split.train.sum())
    for candidate in candidates:
        method = build(candidate)
        noise = method.planned_noise(graph.schema, people)
        # Priced on a copy: a candidate without possible noise refuses the whole search before anything is spent.
        account.detached().spend(*method.privacy.spend("tuning", graph.schema, noise))
    log_trial = None if log is None else lambda entry: log({"seed": seed, **entry})
    # A ledger on disk pays before anything is read, so that interrupted trials are paid for as well.
    paid = None if account.account is None else account.spend(*_in_advance(planned, graph.schema, people))
    best, memory = _run(build, candidates, graph, split, randomness, log_trial, progress)
    method = best.method
    # A last check of this code: the best of many trials must not be priced as one.
    if method.privacy.tuning != tuning or len(method.ledger.spends) != 1:
        raise GraphveilError("a trial was priced as a single run", where="tune", remedy="please report this")
    # One spend for all trials: the law's price covers trials whose results are never shown.
    method.ledger = account.spend(*method.ledger.spends) if paid is None else paid
    return Tuned(method, best.settings, (), _method_note(best, tuning), _score_note(best), best.seconds, memory)


def _in_advance(planned: Any, schema: GraphSchema, people: int) -> list[Spend]:
    """Return the price of all trials with the facts known in advance, none of a single trial."""
    spends = planned.privacy.spend("tuning", schema, planned.planned_noise(schema, people))
    public = ("unit", "law", "mean_trials")
    return [replace(spend, parameters={name: spend.parameters[name] for name in public}) for spend in spends]


def _builder(
    name: str, settings: Mapping[str, Any], tuning: RepeatAndSelect, seed: int, device: str
) -> Callable[[Mapping[str, Any]], Any]:
    info = METHODS[name]

    def build(candidate: Mapping[str, Any]) -> Any:
        return info.load_class()(**info.settle({**settings, **candidate}), seed=seed, device=device, tuning=tuning)

    return build


def _draw_settings(over: Mapping[str, Sequence[Any]], randomness: Randomness) -> dict[str, Any]:
    """Draw one value of each setting; any law that is independent of private data is valid."""
    words = randomness.uint64(len(over))
    return {key: values[int(word) % len(values)] for (key, values), word in zip(over.items(), words, strict=True)}


def _run(
    build: Callable[[Mapping[str, Any]], Any],
    candidates: Sequence[Mapping[str, Any]],
    graph: Graph,
    split: Split,
    randomness: Randomness,
    log: Log | None,
    progress: ProgressCallback | None,
) -> tuple[_Trial, float]:
    """Run all trials and return the best, the first of equals, and the memory of the first one."""
    # A secret key: an unkeyed hash of the graph in a log would let anybody test a guess of the graph.
    key = randomness.bytes(32)
    best, memory, first_fingerprint = None, 0.0, fingerprint(graph, key)
    for number, candidate in enumerate(candidates, start=1):
        began, method = time.perf_counter(), build(candidate)
        method.fit(graph, split=split, randomness=randomness)
        noise = method.planned_noise(graph.schema, int(split.train.sum()))
        score = score_of(method, graph, split, noise, randomness)
        trial = _Trial(candidate, method, noise, score, time.perf_counter() - began)
        # The price of repeat-and-select holds for trials on one data set only.
        if fingerprint(graph, key) != first_fingerprint:
            raise DataError(
                "the graph changed between trials", where="tune", remedy="nothing was saved; start the tuning again"
            )
        if log is not None:
            log({"trial": number, "settings": dict(candidate), "score": score, "data": first_fingerprint})
        memory = memory or peak_memory_mb()
        # The first of equals: later trials must not break ties.
        if best is None or score > best.score:
            best = trial
        if progress is not None:
            progress(Progress(number, len(candidates)))
    if best is None:
        raise GraphveilError("no trial was run", where="tune")
    return best, memory


def score_of(method: Estimator, graph: Graph, split: Split, noise: Noise, randomness: Randomness) -> float:
    """Return the accuracy of a trial on validation nodes: exact if labels are public, else from a noisy count."""
    right = (method.predict() == graph.y)[split.val]
    count = int(right.sum())
    if noise.score > 0.0:
        return noisy_count(count, noise.score, randomness) / int(split.val.sum())
    return count / int(split.val.sum())


def noisy_count(count: int, sigma: float, randomness: Randomness) -> float:
    """Return a whole number plus rounded normal noise of deviation sigma, on a grid that divides 1.

    Args:
        sigma: refused if no table holds such large noise.
    """
    # A power of 2: dividing by it is exact, so the output is a grid point whatever the count.
    scale = 1 << max(0, math.floor(math.log2(_STEPS / sigma)))
    steps = sigma * scale * (1 + 1e-15)
    # One node changes the number by 1.
    noise = int(RoundedNormal(steps, math.ceil(reach_of(1 / sigma) * steps)).draw(1, randomness)[0])
    return (count * scale + noise) / scale


def _method_note(best: _Trial, tuning: RepeatAndSelect) -> str:
    trial_epsilon, epsilon = rounded_up(best.noise.trial, 3), rounded_up(best.method.privacy.epsilon)
    return (
        f"tuned by repeat-and-select: a random number of trials ({tuning.law} law, mean {tuning.mean:g}) with fresh "
        f"noise each, which alone would cost epsilon {trial_epsilon}; epsilon {epsilon} covers all "
        "of them, their scores and the choice; nothing of the other trials may be shown, nor how many there were"
    )


def _score_note(best: _Trial) -> str:
    sigma = best.noise.score
    noise_note = f", counted with noise of deviation {sigma:.2g}" if sigma > 0.0 else ""
    return f"met {100 * min(max(best.score, 0.0), 1.0):.1f} % of validation labels{noise_note}"
