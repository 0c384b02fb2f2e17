"""Choosing settings on a public graph and training once, with the best, on the private one.

    for each candidate: train on the proxy, as it would be trained on the private graph, noise included
    keep the best on the proxy's validation labels  ->  one training on the private graph

The guarantee is that of the one training. It leans on two things that no program can check: that the proxy is public,
and that it was chosen without looking at the private graph. Nothing of the proxy is protected.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphveil.errors import InputError
from graphveil.graphs import Graph, Split, random_split
from graphveil.graphs.value.fingerprint import fingerprint
from graphveil.methods.registry import METHODS, build_method
from graphveil.methods.runs.proposals import GRID, Values, proposals
from graphveil.methods.runs.tuning import Trial, Tuned, require_grid, trials_words
from graphveil.privacy import Randomness
from graphveil.runtime.progress import Progress, ProgressCallback

#: What is promised, and to whom: not for trials to choose, wherever they run.
PROMISED = frozenset(
    {
        "epsilon",
        "epsilon_x",
        "epsilon_y",
        "epsilon_a",
        "delta",
        "unit",
        "relationships",
        "mode",
        "rule",
        "queries",
        "sampled",
    }
)

#: No secret: the proxy is public.
_KEY = b"proxy"


def require_free(name: str, over: Mapping[str, Values], trials: int) -> None:
    """Refuse a grid that is empty or would choose what is promised.

    Raises:
        InputError: naming the setting and those that may be tried.
    """
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
    """Choose on `proxy`, which is public, then train once on `graph`.

    Args:
        settings: the method's other settings, budgets among them: trials on the proxy are as noisy as the one training.
        over: setting -> values to try.
        sampler: one of `proposals.SAMPLERS`.
        journal: a file that keeps what trials scored on the proxy, so that a search that was stopped goes on.
        split: of `graph`; the proxy's is drawn with `seed`.

    Raises:
        InputError: as `require_free`; the proxy is the graph itself, or has no validation nodes.
        BudgetError: when the one training cannot be paid.
    """
    require_free(name, over, trials)
    key = randomness.bytes(32)
    # The easiest mistake, and the worst: all trials would then read the private graph at the price of one.
    if fingerprint(proxy, key) == fingerprint(graph, key):
        raise InputError("the proxy is the private graph itself", where="--proxy", remedy="name a public graph like it")
    apart = random_split(proxy, seed)
    if not bool(apart.val.any()):
        raise InputError("no validation node is left to choose settings by", where=f"proxy {proxy.schema.name}")
    searched = f"{name} {proxy.schema.name} {fingerprint(proxy, _KEY)} {sorted(settings.items())}"
    proposed = proposals(over, trials, sampler, seed, journal, searched)
    judged = [Trial(proposal, score) for proposal, score in proposed.earlier]
    for proposal in proposed:
        method = build_method(name, {**settings, **proposal}, len(proxy.schema.classes), seed=seed, device=device)
        method.fit(proxy, split=apart, randomness=randomness)
        judged.append(Trial(proposal, method.score(proxy, apart.val)))
        proposed.tell(judged[-1].score)
        if progress is not None:
            progress(Progress(len(judged), proposed.total + 1))
    best = max(judged, key=lambda trial: trial.score)
    # The one training on private data: the account is opened here and pays once.
    method = build_method(name, {**settings, **best.settings}, len(graph.schema.classes), seed=seed, device=device)
    method.fit(graph, split=split, randomness=randomness)
    if progress is not None:
        progress(Progress(proposed.total + 1, proposed.total + 1))
    public, private = proxy.schema.name, graph.schema.name
    count = trials_words(len(judged), sampler)
    how = (
        f"tuned on {public}, {count}, then trained once on {private}: the guarantee is that of the one training and "
        f"assumes that {public} is public and was chosen without looking at {private}"
    )
    met = f"met {100 * best.score:.1f} % of the validation labels of {public}"
    return Tuned(method, best.settings, tuple(judged), how, met)
