"""The choice of settings at no further price: on one collection, or on a public graph.

    collect once  ->  for each candidate: train without validation reports  ->  train the best with all reports

Only settings on which nothing sent or published depends may be tried: budgets, mechanisms and modes are fixed before
anybody reports.  A method whose settings change its publication (GAP's hops, say) publishes again in each trial: that
has a price, see `search`, or is done on public data.  Validation labels went through the same randomized response as
all others; on average the candidate that predicts most of them predicts most true ones, if it has not seen them: a
network that learns their noise, spread over edges into its targets, predicts more than a perfect one.

    for each candidate: train on the proxy as on the private graph, noise included
    take the best on the proxy's validation labels  ->  one training on the private graph

The guarantee is that of the one training. It states assumptions that no program can check: that the proxy is public,
and was chosen without looking at the private graph. A proxy that shares ids with it is refused. Nothing of the proxy is
protected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphveil.errors import InputError
from graphveil.graphs import Graph, Split, random_split
from graphveil.graphs.value.value import fingerprint
from graphveil.methods.base.network.network import UnreachedError
from graphveil.methods.base.people.people import shared_ids
from graphveil.methods.base.people.released import LocalReports
from graphveil.methods.registry import METHODS, build_method
from graphveil.methods.runs.proposals import GRID, Values, proposals
from graphveil.privacy import Randomness, assume
from graphveil.runtime.progress import Progress, ProgressCallback
from graphveil.runtime.words import count_of

TRIALS = 20


@dataclass(frozen=True)
class Trial:
    """One candidate and its accuracy on released validation labels."""

    settings: Mapping[str, Any]
    score: float


@dataclass(frozen=True)
class Tuned:
    """The fitted method with the best candidate's settings, and notes on the trials.

    Attributes:
        trials: all of them in order; none if only the best may be shown.
        how: what was done and what it costs; met: what the best did, both in words.
        seconds: of the best one's training; None: of everything.
        peak_memory_mb: of a tuning whose number of trials may not be shown, else None.
    """

    method: Any
    settings: Mapping[str, Any]
    trials: tuple[Trial, ...]
    method_note: str
    score_note: str
    seconds: float | None = None
    peak_memory_mb: float | None = None


def tunable(name: str) -> tuple[str, ...]:
    """Return the settings that may be tried on one collection; none if trials would publish again."""
    return METHODS[name].free


def require_tunable(name: str, over: Mapping[str, Values], trials: int) -> None:
    """Refuse a grid that is empty, or holds a setting that trials may not change."""
    allowed = tunable(name)
    if not allowed:
        raise InputError(
            f"{name} would publish again in every trial, or has nothing to tune",
            where="tune",
            allowed=", ".join(method for method in METHODS if tunable(method)),
            remedy="choose its settings on public data (--proxy)",
        )
    require_grid(over, trials)
    for key in over:
        if key not in allowed:
            raise InputError(
                f"{key} must be fixed before people report", where="tune", allowed=", ".join(sorted(allowed))
            )


def require_grid(over: Mapping[str, Values], trials: float) -> None:
    """Refuse a grid without values, or less than one trial."""
    if not over or not all(over.values()) or not trials >= 1:
        raise InputError("nothing to try", where="tune", remedy="give settings with values, and at least one trial")


def trials_words(count: int, sampler: str) -> str:
    """Return the number of trials, and their sampler unless it was the grid."""
    return f"{count_of(count, 'trial')}" + ("" if sampler == GRID else f" proposed by {sampler}")


def tune(
    name: str,
    graph: Graph,
    settings: Mapping[str, Any],
    over: Mapping[str, Values],
    *,
    split: Split,
    randomness: Randomness,
    trials: int = TRIALS,
    sampler: str = GRID,
    seed: int = 0,
    device: str = "cpu",
    progress: ProgressCallback | None = None,
) -> Tuned:
    """Collect or publish once, train every candidate on it, and return the best on released validation labels.

    Args:
        settings: the method's other settings, budgets among them.

    Raises:
        InputError: as `require_tunable`; or without validation nodes.
        BudgetError: when the one collection cannot be paid.
    """
    require_tunable(name, over, trials)
    if not bool(split.val.any()):
        raise InputError("no validation node is left to choose settings by", where="tune")
    classes = len(graph.schema.classes)
    proposed = proposals(over, trials, sampler, seed)
    family = METHODS[name].load_family()
    # With the fixed settings alone: nothing sent depends on those that are tried.
    sender = build_method(name, settings, classes, seed=seed, device=device)
    if not tunable(sender.name):  # label-pool in place of the named method
        raise InputError("the whole budget goes to the label, so there is nothing to tune", where="tune")
    collected = sender.collect(graph, split=split, randomness=randomness)
    fitted: list[tuple[Trial, Any]] = []
    unreached: UnreachedError | None = None
    for number, candidate in enumerate(proposed, start=1):
        method = build_method(name, {**settings, **candidate}, classes, seed=seed, device=device)
        try:
            labels = family.train(method, collected, exclude_validation=True)
        except UnreachedError as error:
            # No label reaches a training node over these hops; the other trials still use the paid reports.
            unreached = error
            proposed.tell(0.0)
            continue
        # Against released labels: true validation labels would be a query in every trial.
        score = min(float((method.predict() == labels)[split.val].float().mean()), _best_score(collected))
        proposed.tell(score)
        fitted.append((Trial(candidate, score), method))
        if progress is not None:
            progress(Progress(number, proposed.total))
    if unreached is not None and not fitted:
        raise unreached
    # Validation labels were released, so choosing by them is post-processing, however many trials there are.
    best, chosen = max(fitted, key=lambda pair: pair[0].score)
    if _best_score(collected) < 1.0:
        family.train(chosen, collected)
    method_note = f"tuned on one collection in each run, {trials_words(len(fitted), sampler)}: this costs no privacy"
    score_note = f"met {100 * best.score:.1f} % of released validation labels"
    return Tuned(chosen, best.settings, tuple(trial for trial, _ in fitted), method_note, score_note)


def _best_score(collected: Any) -> float:
    """Return the accuracy of a perfect model on noisy validation labels; more than that is luck, or a leak."""
    reports = getattr(collected, "reports", None) or getattr(collected, "people", None)
    return float(reports.channel.keep) if isinstance(reports, LocalReports) else 1.0


#: Settings of the guarantee, which trials may not choose, wherever they run.
_BUDGETS = frozenset({"epsilon", "epsilon_x", "epsilon_y", "epsilon_a", "delta", "queries", "sampled"})
PROMISED = _BUDGETS | {"unit", "relationships", "mode", "rule"}

#: No secret: the proxy is public.
_KEY = b"proxy"


def require_free(name: str, over: Mapping[str, Values], trials: int) -> None:
    """Refuse a grid that is empty or would choose what is promised."""
    require_grid(over, trials)
    for key in over:
        if key in PROMISED:
            allowed = ", ".join(sorted(set(METHODS[name].options) - PROMISED))
            raise InputError(f"{key} is part of the guarantee and cannot be tuned", where="tune", allowed=allowed)


def tune_by_proxy(
    name: str,
    graph: Graph,
    proxy: Graph,
    settings: Mapping[str, Any],
    over: Mapping[str, Values],
    *,
    split: Split,
    randomness: Randomness,
    trials: int,
    sampler: str = GRID,
    journal: Path | None = None,
    seed: int = 0,
    device: str = "cpu",
    progress: ProgressCallback | None = None,
) -> Tuned:
    """Choose settings on `proxy`, which is public, then train once on `graph`.

    Args:
        settings: the method's other settings, budgets among them: trials on the proxy are as noisy as the one training.
        journal: a file that keeps the scores of trials on the proxy, so that an interrupted search can go on.
        split: of `graph`; the proxy's is drawn with `seed`.

    Raises:
        InputError: as `require_free`; the proxy is the graph itself, or has no validation nodes.
        BudgetError: when the one training cannot be paid.
    """
    require_free(name, over, trials)
    key = randomness.bytes(32)
    # Otherwise all trials would read the private graph at the price of one.
    if fingerprint(proxy, key) == fingerprint(graph, key):
        raise InputError("the proxy is the private graph itself", where="--proxy", remedy="name a public graph like it")
    _require_other_people(proxy, graph)
    proxy_split = random_split(proxy, seed)
    if not bool(proxy_split.val.any()):
        raise InputError("no validation node is left to choose settings by", where=f"proxy {proxy.schema.name}")
    searched = f"{name} {proxy.schema.name} {fingerprint(proxy, _KEY)} {sorted(settings.items())}"
    proposed = proposals(over, trials, sampler, seed, journal, searched)
    trials_run = [Trial(proposal, score) for proposal, score in proposed.earlier]
    for proposal in proposed:
        method = build_method(name, {**settings, **proposal}, len(proxy.schema.classes), seed=seed, device=device)
        method.fit(proxy, split=proxy_split, randomness=randomness)
        trials_run.append(Trial(proposal, method.score(proxy, proxy_split.val)))
        proposed.tell(trials_run[-1].score)
        if progress is not None:
            progress(Progress(len(trials_run), proposed.total + 1))
    best = max(trials_run, key=lambda trial: trial.score)
    # The one training on private data, whose account pays once.
    method = build_method(name, {**settings, **best.settings}, len(graph.schema.classes), seed=seed, device=device)
    method.account.assumes += (assume("proxy-public", graph=proxy.schema.name),)
    method.fit(graph, split=split, randomness=randomness)
    if progress is not None:
        progress(Progress(proposed.total + 1, proposed.total + 1))
    public, private = proxy.schema.name, graph.schema.name
    count = trials_words(len(trials_run), sampler)
    method_note = (
        f"tuned on {public}, {count}, then trained once on {private}: the guarantee is that of the one training"
    )
    score_note = f"met {100 * best.score:.1f} % of the validation labels of {public}"
    return Tuned(method, best.settings, tuple(trials_run), method_note, score_note)


def _require_other_people(proxy: Graph, graph: Graph) -> None:
    """Refuse a proxy that shares ids with the private graph, such as an older export of it."""
    shared = shared_ids(proxy, graph)
    if shared:
        raise InputError(
            f"the proxy has {shared} of the private graph's ids",
            where="--proxy",
            allowed="a public graph of other people",
            remedy="name another; if its ids are mere row numbers, begin each with a word of its own",
        )
