"""One training run with its controls, as `train` and `tune` ask for it."""

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
    """Return the result of a run, and the sentence that was printed about budgets that nobody typed.

    Args:
        method: its name.
        graph: what it is trained on.
        settings: the settings that were typed.
        repetition: how often, on which nodes, with which controls and noise.
        speed: where and how fast to compute.
        progress: hears of progress.
        search: settings to choose in each run; None: there is nothing to choose.
        engine: where blocks of rows are worked on; None: here, one after the other.

    Raises:
        GraphveilError: as `methods.runs.experiment.run`.
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
    return result, defaults.sentence
