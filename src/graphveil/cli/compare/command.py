"""``graphveil compare`` trains methods x epsilons x seeds for one table; ``compare-runs`` tabulates finished runs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphveil.cli.base import choices, groups, options
from graphveil.cli.base.choices import AXES, NAMED, collect, find_method, flag, refuse_bad_values, several, split_pair
from graphveil.cli.base.console import complain, emit, working
from graphveil.errors import InputError
from graphveil.mechanisms.catalogue import feature_names_with
from graphveil.runtime.words import nearest

if TYPE_CHECKING:
    from graphveil.methods.base.method import Method
    from graphveil.reports.compare.cells import Comparison

Methods = Annotated[str, typer.Argument(metavar="METHODS", help="Methods, separated by commas.")]
Out = Annotated[Path | None, typer.Option("--out", help="Folder to create, or to resume. Default: one in runs/.")]
Runs = Annotated[list[Path], typer.Argument(metavar="FOLDER", help="Folders of runs, releases or federations.")]
RunsOut = Annotated[Path | None, typer.Option("--out", help="Folder to create for tables and figure.")]


@groups.spread(repeats=3)
def compare(
    context: typer.Context,
    methods: Methods,
    data: options.Data,
    source: groups.Source,
    epsilons: groups.EpsilonLists,
    method_settings: groups.MethodSettings,
    repetition: groups.Repetition,
    speed: groups.Speed,
    out: Out = None,
    as_json: options.Json = False,
) -> None:
    """Compare methods over epsilons (default 1,2,3) and seeds, grouped by who is trusted; can be resumed."""
    comparison = comparison_of(methods, data, context.params)
    choices.prepare(speed.device, speed.threads)

    from graphveil.cli.compare import screens
    from graphveil.files.outputs import new_output
    from graphveil.files.writing import room_for
    from graphveil.methods.registry import plan, settings_on
    from graphveil.methods.runs.experiment import split_of
    from graphveil.reports.compare import cells, table
    from graphveil.reports.compare.folder import write
    from graphveil.reports.compare.rows import tabulate
    from graphveil.reports.compare.sheet import sheet_of

    check = partial(cells.check_folder, comparison)
    # Locked from before loading to the end: two comparisons in one folder would run each cell twice.
    with working() as progress, new_output(out, cells.default_folder(data), say=complain, check=check) as output:
        graph = choices.load(data, source, repetition.seed, progress)
        split_of(graph, repetition.split, repetition.seed)
        # A method that the graph refuses ends the command now, and not when the others have been trained.
        for method, cell in {cell.method: cell for cell in comparison.cells()}.items():
            plan(method, graph, cell.settings)
        takes, methods_settings = comparison.takes, comparison.methods
        settings_of = {
            name: settings_on(
                graph, name, {**methods_settings[name], **{key: comparison.axes[key][0] for key in takes[name]}}
            )
            for name in methods_settings
        }
        defaults = choices.Defaults(settings_of, progress)
        choices.warn_of_size([(cell.method, cell.settings) for cell in comparison.cells()], graph)
        cells.open_folder(comparison, output)
        if (output.path / table.MARKDOWN).exists():
            complain(f"{output.path} was finished before, on the data as they were then; another --out compares anew")
        else:
            cells.require_same_graph(output, graph)
        choices.settle_threads(speed.threads, graph)
        run = cells.cell_runner(
            graph,
            noise=partial(choices.noise_of_cell, repetition.reproducible_noise),
            controls=not repetition.no_controls,
            device=speed.device,
            split=repetition.split,
            progress=defaults,
        )
        with room_for(output.path / "table", choices.room_of(graph, len(list(comparison.cells())))):
            records = cells.run_missing(comparison, output, run)
            defaults.say()
        page = sheet_of(comparison, tabulate(comparison, records))
        output.in_folder(lambda path: write(page, path))
        cells.remove_fingerprint(output)
    answer = table.answer(page, output.path, data=data)
    emit(answer, as_json=as_json, screen=lambda: screens.compared(page, output.path), first=defaults.notice)


def comparison_of(methods: str, data: str, params: Mapping[str, Any]) -> Comparison:
    """The comparison that the options describe: each option goes to the methods that it applies to.

    Args:
        methods: names, separated by commas.

    Raises:
        InputError: a method is unknown or named twice, an option applies to none of them, or a value cannot be read.
    """
    from graphveil.reports.compare.cells import Comparison

    names = [name.strip() for name in methods.split(",")]
    if len(set(names)) != len(names):
        raise InputError(f"{methods!r} names a method twice")
    infos = {name: find_method(name) for name in names}
    _refuse_useless(infos, params)
    axes = {key: several(key, params[key]) for key in AXES if params.get(key) is not None}
    pairs = [split_pair(pair) for pair in params.get("settings") or ()]
    # A delta typed for Gaussian methods must not reach those that add no Gaussian noise.
    delta_for = [name for name, info in infos.items() if _takes_delta(info, dict(pairs))] or list(infos)
    settings = {}
    for name, info in infos.items():
        method_params = {key: params[key] for key in NAMED if key in info.options and key not in AXES}
        # None leaves the method its default.
        method_params |= {} if name in delta_for else {"delta": None}
        method_pairs = [f"{key}={text}" for key, text in pairs if key in info.options]
        settings[name] = collect(name, info, {**method_params, "settings": method_pairs})
    comparison = Comparison(
        data=data,
        methods=settings,
        axes=axes,
        takes=_takes(axes, infos),
        seeds=range(params["seed"], params["seed"] + params["repeats"]),
        options={
            "controls": not params["no_controls"],
            "reproducible_noise": params["reproducible_noise"],
            **({} if params.get("private_share") is None else {"private_share": params["private_share"]}),
            **({} if params["split"] == "random" else {"split": params["split"]}),
        },
    )
    # Every cell is checked before the first is trained: a mistyped value must not cost hours.
    for cell in comparison.cells():
        refuse_bad_values(cell.method, cell.settings)
    return comparison


def _takes(axes: Mapping[str, Any], infos: Mapping[str, Method]) -> dict[str, list[str]]:
    """The epsilons of each method: those of its parts if given, else the total; where all have parts, all refuse it."""
    by_method = {name: [key for key in axes if key in info.options] for name, info in infos.items()}
    without_total = {
        name: [key for key in keys if key != "epsilon" or not {"epsilon_x", "epsilon_y"} & set(keys)]
        for name, keys in by_method.items()
    }
    return without_total if any("epsilon" in keys for keys in without_total.values()) else by_method


def _takes_delta(info: Method, pairs: Mapping[str, str]) -> bool:
    """Whether a method has a delta, always or because its features get Gaussian noise."""
    optional = {"mechanism", "features"} & set(info.options)
    mechanisms = {pairs.get(key) for key in optional}
    return "delta" in info.options and (not optional or bool(mechanisms & set(feature_names_with("delta"))))


def _refuse_useless(infos: Mapping[str, Method], params: Mapping[str, Any]) -> None:
    """Refuse an option or ``--set`` key that none of the methods takes."""
    keys = set().union(*(info.options for info in infos.values()))
    for key in NAMED:
        if params.get(key) is not None and key not in keys:
            raise InputError(f"{flag(key)} applies to none of {', '.join(infos)}")
    for pair in params.get("settings") or ():
        key, _ = split_pair(pair)
        if key not in keys:
            remedy = nearest(key, keys)
            raise InputError(
                f"none of {', '.join(infos)} has a setting {key!r}",
                where="--set",
                allowed=", ".join(sorted(keys)),
                remedy=remedy,
            )


def compare_runs(runs: Runs, out: RunsOut = None, as_json: options.Json = False) -> None:
    """Compare finished runs, releases and federations, with the attacks made on them."""
    from graphveil.cli.compare import screens
    from graphveil.files.outputs import new_output
    from graphveil.files.writing import new_folder
    from graphveil.reports.compare import table
    from graphveil.reports.compare.finished import finished_sheet
    from graphveil.reports.compare.folder import write

    def keep(path: Path) -> None:
        with new_folder(path, owner_only=True) as folder:
            write(page, folder)

    with ExitStack() as stack:
        stack.enter_context(working())
        output = None if out is None else stack.enter_context(new_output(out, out, say=complain))
        page = finished_sheet(runs)
        if output is not None:
            output.write(keep, paid=False)
    path = None if output is None else output.path
    answer = table.answer(page, path)
    emit(answer, as_json=as_json, screen=lambda: screens.compared(page, path))
