"""A training run: repeats of one method on one graph with its controls, as one value.

Repeats draw a new split and fresh noise, which only a simulation can do: a real collection has one report per person.
Accuracies are measured on test nodes whose labels no method has seen.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np

from graphveil.engine import LOCAL, Engine
from graphveil.errors import InputError
from graphveil.graphs import Graph, Split, published_split, random_split, shares_of
from graphveil.graphs.value.splits import MORE_LABELS, fold_split, has_two_parts, separate_test_nodes
from graphveil.methods.base.estimator import Estimator
from graphveil.methods.base.family import AnyFamily, Controls
from graphveil.methods.base.network.objectives import SEVERAL_LABELS
from graphveil.methods.base.parameters import as_own_graph
from graphveil.methods.base.settings import NUMBERS
from graphveil.methods.local.controls import hits
from graphveil.methods.registry import (
    MethodChoice,
    build_method,
    find_method,
    require_trainable,
    resolved_choice,
    settings_on,
)
from graphveil.methods.runs.intervals import Interval, interval
from graphveil.methods.runs.result import Cost, Result, RunPrivacy, Scores, peak_memory_mb
from graphveil.methods.runs.search import Search, choose
from graphveil.methods.runs.tuning import Tuned
from graphveil.privacy import Ledger, Randomness
from graphveil.runtime.checks import require_whole
from graphveil.runtime.progress import Progress, ProgressCallback

CEILING = "ceiling"
#: Splits of one graph overlap, and are no sample of graphs.
ONE_GRAPH = (
    "an interval over overlapping splits of one graph says nothing about other graphs; how methods do on many is in "
    "benchmarks/README.md, The panel"
)


def run(
    name: str,
    graph: Graph,
    *,
    settings: Mapping[str, Any],
    randomness: Randomness,
    repeats: int = 1,
    seed: int = 0,
    controls: bool = True,
    comparisons: bool = True,
    device: str = "cpu",
    split: str = "random",
    search: Search | None = None,
    progress: ProgressCallback | None = None,
    engine: Engine = LOCAL,
) -> Result:
    """Train method `name` on `graph` `repeats` times, each time with its controls unless `controls` is False. Raises
    InputError for an unknown method or setting, a graph without test nodes, or another engine than `LOCAL` for a search
    or a method that does not work by blocks.

    Args:
        comparisons: whether the non-private ceiling and rivals at the same price are trained beside the controls.
        seed: fixes splits and weights; never privacy noise, which comes from `randomness`.
        split: "random" draws half, a quarter, a quarter anew for each repeat, "75/10/15" shares of so many percent;
            "declared" takes the graph's own; "5-fold" the next of five folds in each repeat;
            "80/20" has no validation nodes, and no edges between training and test nodes.
        search: settings to choose by validation labels, in each repeat anew.
        progress: called for every epoch and control, with the epsilon that one person has spent.
        engine: where the method's blocks are worked on, not those of controls and rivals; no result depends on it.

    Example:
        >>> from graphveil.graphs import social_graph
        >>> from graphveil.methods.runs import experiment
        >>> from graphveil.privacy import SecureRandomness
        >>> graph = social_graph(200, average_degree=8, dimension=20, classes=3, seed=1)
        >>> settings = {"epsilon_x": 1.0, "epsilon_y": 2.0, "epochs": 2}
        >>> result = experiment.run("lpgnn", graph, settings=settings, randomness=SecureRandomness())
        >>> sorted(result.scores.controls)[:3], result.model.lift == result.scores.lift
        (['label-pool', 'label-propagation', 'majority'], True)
    """
    graph = as_own_graph(graph)
    entry, settings = find_method(name), settings_on(graph, name, settings)
    require_whole(1, repeats=repeats)
    NUMBERS["seed"].require(seed=seed)
    if not isinstance(split, str):
        what, allowed = f"split is a {type(split).__name__}", "a text, such as random, declared, 5-fold or 75/10/15"
        raise InputError(what, allowed=allowed, remedy="with a Split of your own: fit of the class")
    # Trials take no engine: it would have no effect.
    if search is not None and engine != LOCAL:
        raise InputError("trials of a search run here", where="engine", allowed="the local engine with one worker")
    settled = entry.settle(settings)
    choice = resolved_choice(name, settings, len(graph.schema.classes))
    family: AnyFamily = choice.method.load_family()
    start = time.perf_counter()
    if entry.trust == "central" and "epochs" in settled:
        import torch

        # Torch's first optimiser loads for a second or more, which must not count as part of the first fit. Only
        # private descent uses it; training on released values does not (`training.loop`).
        torch.optim.Adam([torch.zeros(1, requires_grad=True)])
    hits_of: dict[str, list[np.ndarray]] = {}
    rival_hits: dict[str, list[np.ndarray]] = {}
    methods, seconds, tuned = [], [], []
    for number in range(repeats):
        node_split = split_of(graph, split, seed + number)
        cut = separate_test_nodes(graph, node_split) if has_two_parts(split) else graph
        method = build_method(name, settings, len(cut.schema.classes), seed=seed + number, device=device)
        require_trainable(entry, cut)
        stage = f"{name} {number + 1}/{repeats}"
        staged = _with_stage(progress, stage, method if search is None else None, cut)
        began = time.perf_counter()
        if search is None:
            method.fit(cut, split=node_split, randomness=randomness, progress=staged, engine=engine)
        else:
            ask = partial(choose, name, cut, settings, search, split=node_split, randomness=randomness)
            tuned.append(ask(seed=seed + number, device=device, progress=staged))
            method = tuned[-1].method
        seconds.append(time.perf_counter() - began)
        if tuned and tuned[-1].seconds is not None:  # the time of all trials would reveal their number
            # Subtracted from the total as well, for the same reason.
            start += seconds[-1] - tuned[-1].seconds
            seconds[-1] = tuned[-1].seconds
        methods.append(method)
        # The predictions of the training graph's own nodes were made while fitting, at no further cost.
        hits_of.setdefault(name, []).append(hits(method.predict_proba(), cut, node_split))
        if controls:
            planned = dict(family.controls(method, cut, node_split, randomness=randomness))
            if comparisons and getattr(cut, "release", None) is None:  # else only a release of the truth is at hand
                planned[CEILING] = partial(family.ceiling, method, cut, node_split, randomness=randomness)
            _compare(planned, "control", hits_of, method, progress)
            if comparisons:
                rivals = family.rivals(method, cut, node_split, randomness=randomness)
                _compare(rivals, "rival", rival_hits, method, progress)
    elapsed = time.perf_counter() - start
    if tuned:
        settled |= tuned[0].settings
    memory = next((repeat.peak_memory_mb for repeat in tuned if repeat.peak_memory_mb is not None), None)
    cost = Cost(elapsed, float(np.mean(seconds)), peak_memory_mb() if memory is None else memory)
    result = _result(choice, name, cut, settled, _scores(name, hits_of, rival_hits), methods, cost)
    return replace(result, notes=(*_tuning_notes(tuned), *result.notes))


def _tuning_notes(tuned: list[Tuned]) -> tuple[str, ...]:
    if not tuned:
        return ()
    notes = [tuned[0].method_note]
    for number, repeat in enumerate(tuned, start=1):
        chosen = ", ".join(f"{key}={value}" for key, value in repeat.settings.items())
        notes.append(f"run {number} chose {chosen} ({repeat.score_note})")
    return tuple(notes)


def split_of(graph: Graph, kind: str, seed: int) -> Split:
    """Return the split of the repeat with this seed; refuses one without training or test nodes."""
    if kind == "declared":
        split = published_split(graph)
    elif kind.endswith("-fold") and kind.removesuffix("-fold").isdecimal():
        split = fold_split(graph, int(kind.removesuffix("-fold")), seed)
    else:
        split = random_split(graph, seed) if kind == "random" else random_split(graph, seed, shares_of(kind))
    if split is None:
        raise InputError(f"{graph.schema.name} declares no split", remedy="use split random, or declare a split column")
    for part, use in (
        (split.train, "training node is left to learn from"),
        (split.test, "test node is left to measure accuracy on"),
    ):
        if not bool(part.any()):
            raise InputError(f"no {use}", where=graph.schema.name, remedy=MORE_LABELS)
    return split


def _compare(
    planned: Controls,
    what: str,
    hits_of: dict[str, list[np.ndarray]],
    method: Estimator,
    progress: ProgressCallback | None,
) -> None:
    """Train the controls or rivals of a method, and add the hits of each to `hits_of`."""
    for done, (name, train) in enumerate(planned.items()):
        if progress is not None:
            stage = name if name == CEILING else f"{what} {name}"
            progress(Progress(done, len(planned), stage, _epsilon(method.ledger)))
        hits_of.setdefault(name, []).append(train())


def _result(
    choice: MethodChoice,
    name: str,
    graph: Graph,
    settled: Mapping[str, object],
    scores: Scores,
    methods: Sequence[Estimator],
    cost: Cost,
) -> Result:
    first, repeats = methods[0], len(methods)
    first.lift = scores.lift
    family: AnyFamily = choice.method.load_family()
    one_run = "one run: the interval covers the test nodes, not other splits or other noise"
    # A release states in its own notes what stands for missing values.
    notes = (*family.notes(first, graph, settled, controlled=bool(scores.controls)), *graph.schema.missing_words)
    return Result(
        method=name,
        built=choice.method.name,
        data=graph.schema.name,
        settings=family.used_settings(first, settled),
        scores=scores,
        privacy=RunPrivacy(first.guarantee, first.ledger, getattr(first, "epsilon_relationship", None)),
        cost=cost,
        history=tuple(tuple(asdict(epoch) for epoch in method.history) for method in methods),
        model=first,
        notes=(
            *((SEVERAL_LABELS,) if graph.y.dim() == 2 else ()),
            *dict.fromkeys(notes),
            family.repeats_note(first, repeats) if repeats > 1 else one_run,
            ONE_GRAPH,
        ),
    )


def _scores(name: str, hits_of: dict[str, list[np.ndarray]], rival_hits: dict[str, list[np.ndarray]]) -> Scores:
    """Return the scores of hits [test nodes] by run: of the method, its controls and ceiling, and its rivals."""
    scores = {label: interval(hits) for label, hits in hits_of.items()}
    controls = {label: score for label, score in scores.items() if label not in (name, CEILING)}
    rivals = {label: interval(hits) for label, hits in rival_hits.items()}
    best, lift = _best(controls), None
    if best is not None:
        pairs = zip(hits_of[name], hits_of[best], strict=True)
        # Paired by run and node: both have the same test nodes, so their common luck cancels.
        lift = interval([method_hits - control_hits for method_hits, control_hits in pairs], difference=True)
    return Scores(scores[name], controls, scores.get(CEILING), best, lift, rivals, _best(rivals))


def _best(scores: Mapping[str, Interval]) -> str | None:
    # The best of several is chosen by the same figures that are reported: lift over it errs on the low side.
    return max(scores, key=lambda label: scores[label].mean) if scores else None


def _with_stage(
    progress: ProgressCallback | None, stage: str, method: Estimator | None, graph: Graph
) -> ProgressCallback | None:
    if progress is None:
        return None
    report, origin = progress, getattr(graph, "release", None)

    def staged(event: Progress) -> None:
        spent = None if method is None else _epsilon(method.ledger)  # the price of trials is known at the end
        if origin is not None:  # it was spent before
            spent = origin.guarantee.epsilon
        report(event.named(stage, spent))

    return staged


def _epsilon(ledger: Ledger) -> float:
    """Return the epsilon that one person has spent; inf if nothing is protected."""
    if not ledger.spends:
        return math.inf
    return float(sum(ledger.total(entry.unit)[0] for entry in ledger.budget))
