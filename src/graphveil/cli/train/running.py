"""One training run with its controls, for `train` and `tune`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graphveil.cli.base import choices, groups

if TYPE_CHECKING:
    from graphveil.engine import Engine
    from graphveil.graphs import Graph
    from graphveil.methods.runs.result import Result
    from graphveil.methods.runs.search import Search
    from graphveil.runtime.progress import ProgressCallback


def run_method(
    method: str,
    graph: Graph,
    settings: Mapping[str, Any],
    repetition: groups.Repetition,
    speed: groups.Speed,
    progress: ProgressCallback,
    search: Search | None = None,
    engine: Engine | None = None,
) -> tuple[Result, str | None]:
    """Return the result of a run, and the sentence printed about budgets left at their defaults.

    Args:
        method: its name.
        graph: the graph to train on.
        settings: those that were given.
        repetition: number of repeats, split, controls and noise.
        speed: device and threads.
        progress: receives progress.
        search: the settings to search in each run; None: no search.
        engine: processes blocks of rows; None: one after the other in this process.

    Raises:
        GraphveilError: from `methods.runs.experiment.run`.
    """
    from graphveil.engine import LOCAL
    from graphveil.methods.runs import experiment

    defaults = choices.Defaults({method: {**settings, **({} if search is None else search.over)}}, progress)
    choices.warn_of_size([(method, settings)], graph)
    choices.settle_threads(speed.threads, graph)
    result = experiment.run(
        method,
        graph,
        settings=settings,
        search=search,
        repeats=repetition.repeats,
        seed=repetition.seed,
        controls=not repetition.no_controls,
        randomness=choices.noise(repetition.reproducible_noise),
        device=speed.device,
        split=repetition.split,
        progress=defaults,
        engine=LOCAL if engine is None else engine,
    )
    defaults.say()
    return result, defaults.notice
