"""``graphveil tune``: search settings on one collection, at a price or on a public graph, and train with the best."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphveil.cli.base import choices, groups, options, screens
from graphveil.cli.base.console import complain, emit, working
from graphveil.cli.train import configured
from graphveil.cli.train.command import Out, run_method
from graphveil.errors import InputError
from graphveil.files.writing import refuse_used_folder, room_for
from graphveil.methods.base.method import PAID_TUNING
from graphveil.methods.registry import METHODS, tagged
from graphveil.methods.runs.proposals import GRID, Range

if TYPE_CHECKING:
    from graphveil.methods.base.method import Method
    from graphveil.methods.runs.search import Search
    from graphveil.reports.runs.trial_log import TrialLog

#: The methods whose trials have a price, in one list.
*_FIRST, _LAST = tagged(PAID_TUNING)
_PAID = f"{', '.join(_FIRST)} or {_LAST}"
_LOG_ROOM = 4 << 20  # a line takes less than a kilobyte


Grid = dict[str, Any]


def _default_searches() -> str:
    """What `tune` searches by default, for each method that has such settings, in one sentence."""
    names_of: dict[str, list[str]] = {}
    for name, info in METHODS.items():
        if info.search:
            values_text = " ".join(f"{key}={','.join(map(str, values))}" for key, values in info.search.items())
            names_of.setdefault(values_text, []).append(name)
    return "; ".join(f"{', '.join(names)}: {values_text}" for values_text, names in names_of.items())


Over = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=V1,V2,...",
        help="A setting and the values to try, or LOW:HIGH or LOW:HIGH:log with --sampler random or tpe; repeatable. "
        f"Default, by method: {_default_searches()}.",
    ),
]
Trials = Annotated[
    int | None,
    typer.Option(
        min=1,
        help=f"Maximum number of combinations, drawn by --seed (default 20). With {_PAID}: "
        "mean of the random number of trials (default 10).",
    ),
]
Law = Annotated[
    str | None,
    typer.Option(
        metavar="logarithmic|geometric",
        help=f"With {_PAID}: distribution of the number of trials; logarithmic costs less and varies more.",
    ),
]
Sampler = Annotated[
    str | None,
    typer.Option(
        metavar="grid|random|tpe",
        help="How settings are proposed: all combinations (default), at random, or by Optuna's TPE, which learns from "
        "the scores so far. Trials that have a price are always drawn at random.",
    ),
]
Proxy = Annotated[
    str | None, typer.Option(metavar="DATA", help="Search on this PUBLIC graph, then train once on the private one.")
]


@groups.spread()
def tune(
    context: typer.Context,
    method: options.Method,
    data: options.Data,
    source: groups.Source,
    epsilons: groups.Epsilons,
    method_settings: groups.MethodSettings,
    repetition: groups.Repetition,
    speed: groups.Speed,
    over: Over = None,
    config: configured.Config = None,
    trials: Trials = None,
    law: Law = None,
    sampler: Sampler = None,
    proxy: Proxy = None,
    out: Out = None,
    as_json: options.Json = False,
) -> None:
    """Search settings and train with the best: trials on one collection are free, new reads of data are not."""
    info = choices.find_method(method, data)
    over = over or []
    searched = [choices.split_pair(pair, where="--over")[0] for pair in over] or list(info.search)
    settings = configured.collect(context, method, info, searched)
    search = _search(method, info, over, settings, context.params)
    choices.prepare(speed.device, speed.threads)
    if not over:
        complain(search.summary(method, settings))

    from graphveil.files.outputs import new_output
    from graphveil.graphs import load_plain
    from graphveil.reports.runs import folder as run_folder

    if proxy is not None and out is not None and search.sampler != GRID:
        # Beside the folder, which is written whole or not at all: a stopped search resumes from this journal.
        search = replace(search, journal=out.with_name(f"{out.name}.search.log"))

    def default() -> Path:
        return run_folder.default_folder(data, f"{method}-tuned", datetime.now())

    with working() as progress, contextlib.ExitStack() as stack:
        output = stack.enter_context(new_output(out, default(), say=complain, check=_folder_check(search, method)))
        graph = choices.load(data, source, repetition.seed, progress)
        if proxy is not None:
            search = replace(search, proxy=load_plain(proxy, root=source.data_root, progress=progress))
        log = _open_log(output.path, stack) if search.paid(method) else None
        output.reserve(choices.room_of(graph, repetition.repeats))
        result, defaults_sentence = run_method(
            method, graph, settings, repetition, speed, progress, replace(search, log=log)
        )
        run_options = {**choices.run_options(context.params), **_search_options(search, method, proxy)}
        if log is not None:
            log.end()
            complain(f"log of all trials, for the curator only: {log.path}")
            # The start of the tuning stays secret: its duration reveals the number of trials.
            if out is None:
                output = stack.enter_context(new_output(None, default(), say=complain))
        record = output.write(lambda path: run_folder.write_run(result, path, options=run_options, graph=graph))
    emit(record.to_dict(), as_json=as_json, screen=lambda: screens.run(record), first=defaults_sentence)


def _search(method: str, info: Method, over: list[str], settings: dict[str, Any], params: dict[str, Any]) -> Search:
    """The search that the options describe, its proxy still a name; InputError for one that cannot be made."""
    from graphveil.methods.runs.search import Search

    def search_of(grid: Grid) -> Search:
        search = Search(grid, params["trials"], params["law"] or "logarithmic", params["proxy"])
        return search if params["sampler"] is None else replace(search, sampler=params["sampler"])

    if params["law"] is not None and not search_of({}).paid(method):
        problem = "applies only where trials have a price"
        raise InputError(problem, where="--law", allowed=f"with {_PAID}, without --proxy")
    if params["proxy"] is not None and params["proxy"] == params["data"]:
        raise InputError("the proxy is the private graph itself", where="--proxy", remedy="name a public graph like it")

    def require(grid: Grid) -> None:
        search_of(grid).require(method, settings)

    if over:
        return search_of(_grid_of(method, info, over, settings, require))
    # A method that cannot be tuned this way at all is refused first.
    if not (info.free or search_of({}).paid(method) or params["proxy"]):
        require({})
    grid: Grid = {}
    for key, values in info.search.items():
        allowed = tuple(value for value in values if key not in settings and _allowed(method, {**settings, key: value}))
        # A single value needs no search.
        grid |= {key: allowed} if len(allowed) > 1 else {}
    if not grid:
        raise InputError(
            "nothing to try" if info.search else f"{method} has no setting that is searched by default",
            where="tune",
            remedy="name settings and values: --over KEY=V1,V2",
        )
    require(grid)
    return search_of(grid)


def _allowed(method: str, settings: Mapping[str, Any]) -> bool:
    try:
        choices.refuse_bad_values(method, settings)
    except InputError:
        return False
    return True


def _folder_check(search: Search, method: str) -> Callable[[Path], None]:
    """A check that refuses a folder in use, or one with a log of trials beside it."""
    from graphveil.reports.runs.trial_log import require_unused

    def check(folder: Path) -> None:
        refuse_used_folder(folder)
        if search.paid(method):
            require_unused(_log_path(folder))

    return check


def _log_path(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.trials.jsonl")


def _open_log(folder: Path, stack: contextlib.ExitStack) -> TrialLog:
    """The log of trials beside a run folder, with disk space reserved until `stack` closes."""
    from graphveil.reports.runs.trial_log import TrialLog

    path = _log_path(folder)
    return TrialLog(path, stack.enter_context(room_for(path, _LOG_ROOM)), complain, stack)


def _search_options(search: Search, method: str, proxy: str | None) -> dict[str, Any]:
    if search.paid(method):
        return {"law": search.tuning.law, "mean_trials": search.tuning.mean}
    sampler = {} if search.sampler == GRID else {"sampler": search.sampler}
    return sampler if proxy is None else {"proxy": proxy, **sampler}


def _grid_of(
    method: str, info: Method, over: Iterable[str], settings: Mapping[str, Any], require: Callable[[Grid], None]
) -> Grid:
    """The settings to search and the values to try, from each ``key=v1,v2``; `require` refuses settings that cannot be
    searched. Raises InputError: a setting is unknown, fixed or given twice, or a value cannot be read.
    """
    values_of: Grid = {}
    for pair in over:
        key, text = choices.split_pair(pair, where="--over")
        if key in values_of or key in settings:
            raise InputError(f"{key} is given twice", where=f"--over {pair}")
        values_of[key] = _values(method, info, key, text)
    require(values_of)
    for key, values in values_of.items():
        for value in values if isinstance(values, tuple) else (values.low, values.high):
            choices.refuse_bad_values(method, {**settings, key: value})
    return values_of


def _values(method: str, info: Method, key: str, text: str) -> Any:
    """The values after the "=" of ``--over``: V1,V2,... or, for a number, LOW:HIGH or LOW:HIGH:log."""
    ends = text.split(":")
    if len(ends) == 1 or key not in info.options or info.options[key].type not in (int, float):
        return _listed(method, info, key, text)
    if len(ends) > 3 or ends[2:] not in ([], ["log"]):
        raise InputError(f"{key}={text}", where="--over", allowed="V1,V2,..., LOW:HIGH or LOW:HIGH:log")
    low, high = (choices.read_value(method, info, key, word, where="--over") for word in ends[:2])
    return Range(low, high, log=len(ends) == 3)


def _listed(method: str, info: Method, key: str, text: str) -> tuple[Any, ...]:
    words = [word for word in text.split(",") if word.strip()]
    if not words:
        raise InputError(f"no values of {key}", where=f"--over {key}={text}", allowed="KEY=VALUE,VALUE,...")
    values = tuple(choices.read_value(method, info, key, word, where="--over") for word in words)
    # A value tried twice would be paid for twice.
    if len(set(values)) < len(values):
        raise InputError(f"{key} names a value twice", where=f"--over {key}={text}")
    return values
