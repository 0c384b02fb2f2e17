"""From what a user typed to what a method takes; what does not apply is refused, with the nearest name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from graphveil.cli.base.console import complain
from graphveil.cli.base.near import nearest
from graphveil.errors import InputError
from graphveil.graphs import Graph
from graphveil.mechanisms.catalogue import feature_names_with
from graphveil.methods.base.ranges import OPEN_WORDS
from graphveil.runtime.late import torch
from graphveil.runtime.progress import Progress, ProgressCallback

if TYPE_CHECKING:
    from graphveil.cli.base.groups import Source
    from graphveil.engine import Engine
    from graphveil.graphs.value.parts import GraphParts
    from graphveil.methods.base.method import AnyMethod
    from graphveil.privacy import Randomness
    from graphveil.reports.compare.cells import Comparison

Grid = dict[str, Any]
NAMED = ("epsilon_x", "epsilon_y", "epsilon_a", "epsilon", "delta", "unit", "model", "epochs")
"""The settings that have an option of their own; all others go through ``--set``."""
AXES = ("epsilon_x", "epsilon_y", "epsilon_a", "epsilon")
"""The settings that ``compare`` takes several values of."""


def find_method(name: str, data: str | None = None) -> AnyMethod:
    """The method called ``name``.

    Args:
        name: as it was typed.
        data: what was typed behind it, where the two may have changed places.

    Raises:
        InputError: there is none.
    """
    from graphveil.methods import METHODS

    if name not in METHODS:
        meant = f"did you mean {data} {name}?" if data in METHODS else nearest(name, METHODS)
        raise InputError(f"no method {name!r}", allowed=", ".join(METHODS), remedy=meant)
    return METHODS[name]


def collect(method: str, info: AnyMethod, params: Mapping[str, Any]) -> dict[str, Any]:
    """The settings a user gave for ``method``, by option of their own or by ``--set``.

    Args:
        method: its name, for messages.
        info: its description.
        params: the command's parameters; those in ``NAMED`` that are not ``None`` count, and the list ``set``.

    Raises:
        InputError: an option does not apply to the method, a key is unknown, or a value cannot be read.
    """
    settings = read_settings(method, info, params)
    refuse_bad_values(method, settings)
    return settings


def read_settings(method: str, info: AnyMethod, params: Mapping[str, Any]) -> dict[str, Any]:
    """The settings a user typed, each of its own type; whether a method takes them together is not asked.

    Args:
        method, info, params: as in `collect`.

    Raises:
        InputError: as `collect`, but for values out of their range.
    """
    from graphveil.methods.registry import files_of

    settings: dict[str, Any] = {}
    for key in NAMED:
        if params.get(key) is None:
            continue
        if key not in info.options:
            raise _does_not_apply(method, info, key)
        settings[key] = _read(key, info.options[key].type, params[key], where=flag(key))
    for pair in params.get("settings") or ():
        key, text = split_pair(pair)
        # Two values for one setting: whichever were taken, somebody would read the other.
        if key in settings:
            raise InputError(f"{key} is given twice", where=f"--set {pair}")
        settings[key] = read_value(method, info, key, text)
    # Absolute: a run is made again, and attacked, from other working folders too.
    return settings | {key: str(file.absolute()) for key, file in files_of(method, settings).items()}


def refuse_bad_values(method: str, settings: Mapping[str, Any]) -> None:
    """Refuse values out of their range now, before any data is touched; the number of classes changes nothing.

    Raises:
        InputError: of the method.
    """
    from graphveil.methods.registry import build_method

    # Built and thrown away: the constructors are the one place that knows every range.
    build_method(method, settings, classes=2)


def _does_not_apply(method: str, info: AnyMethod, key: str) -> InputError:
    own = ", ".join(flag(name) for name in NAMED if name in info.options) or "no option of its own"
    return InputError(f"{flag(key)} does not apply to {method}", allowed=own)


def flag(key: str) -> str:
    """``epsilon_x`` -> ``--epsilon-x``."""
    return "--" + key.replace("_", "-")


def split_pair(pair: str, *, where: str = "--set") -> tuple[str, str]:
    """``x-hops=4`` -> ``("x_hops", "4")``.

    Args:
        pair: as it was typed.
        where: the option it was typed behind, for the error.

    Raises:
        InputError: there is no ``=``, or nothing before it.
    """
    key, equals, value = pair.partition("=")
    key = key.strip().replace("-", "_")
    if not equals or not key:
        many = ",VALUE,..." if where == "--over" else ""
        raise InputError(f"{pair!r} is not a setting", where=where, allowed=f"KEY=VALUE{many}")
    return key, value.strip()


def read_value(method: str, info: AnyMethod, key: str, text: str, *, where: str = "--set") -> Any:
    """The value of setting ``key`` written as ``text``.

    Args:
        method: its name, for the error.
        info: says the settings of the method and their types.
        key: the setting, as written before the "=" of ``--set``.
        text: as written behind it.
        where: the option it was typed behind, for the error.

    Returns:
        A value of the setting's own type.

    Raises:
        InputError: the method has no such setting, or the text is no value of its type.
    """
    if key not in info.options:
        raise InputError(
            f"{method} has no setting {key!r}",
            where=where,
            allowed=", ".join(sorted(info.options)),
            remedy=nearest(key, info.options),
        )
    return _read(key, info.options[key].type, text, where=where)


def grid(
    method: str, info: AnyMethod, over: Iterable[str], settings: Mapping[str, Any], require: Callable[[Grid], None]
) -> Grid:
    """The settings to choose and the values to try, each written ``key=v1,v2``.

    Args:
        require: refuses settings that may not be chosen.

    Raises:
        InputError: a setting is unknown, fixed, given twice or by ``--set`` too, or a value cannot be read.
    """
    values_of: Grid = {}
    for pair in over:
        key, text = split_pair(pair, where="--over")
        if key in values_of or key in settings:
            raise InputError(f"{key} is given twice", where=f"--over {pair}")
        values_of[key] = _values(method, info, key, text)
    require(values_of)
    for key, values in values_of.items():
        for value in values if isinstance(values, tuple) else (values.low, values.high):
            refuse_bad_values(method, {**settings, key: value})
    return values_of


def _values(method: str, info: AnyMethod, key: str, text: str) -> Any:
    """The values behind the "=" of ``--over``: V1,V2,... or, of a number, LOW:HIGH or LOW:HIGH:log."""
    from graphveil.methods.runs.proposals import Range

    ends = text.split(":")
    if len(ends) == 1 or key not in info.options or info.options[key].type not in (int, float):
        return _listed(method, info, key, text)
    if len(ends) > 3 or ends[2:] not in ([], ["log"]):
        raise InputError(f"{key}={text}", where="--over", allowed="V1,V2,..., LOW:HIGH or LOW:HIGH:log")
    low, high = (read_value(method, info, key, word, where="--over") for word in ends[:2])
    return Range(low, high, log=len(ends) == 3)


def _listed(method: str, info: AnyMethod, key: str, text: str) -> tuple[Any, ...]:
    words = [word for word in text.split(",") if word.strip()]
    if not words:
        raise InputError(f"no values of {key}", where=f"--over {key}={text}", allowed="KEY=VALUE,VALUE,...")
    values = tuple(read_value(method, info, key, word, where="--over") for word in words)
    # Tried twice, a value would be paid for twice where trials have a price.
    if len(set(values)) < len(values):
        raise InputError(f"{key} names a value twice", where=f"--over {key}={text}")
    return values


def _read(key: str, kind: type, value: object, *, where: str) -> Any:
    """A value of type ``kind``, or None for the word that leaves a setting open."""
    if not isinstance(value, str):
        return value
    # None collects no features, inf sends them as they are: opposite promises, so the word is asked for.
    if (word := value.strip().lower()) == OPEN_WORDS.get(key):
        return None
    try:
        return _TRUTH[word] if kind is bool else kind(value)
    except (ValueError, KeyError) as error:
        problem = f"{key} = {value!r}" if where in ("--set", "--over") else repr(value)
        allowed = KINDS.get(kind, kind.__name__) + (f", or {OPEN_WORDS[key]}" if key in OPEN_WORDS else "")
        raise InputError(problem, where=where, allowed=allowed) from error


_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
KINDS = {bool: "true or false", int: "a whole number", float: "a number, or inf"}


def several(key: str, text: str, kind: type = float) -> tuple[Any, ...]:
    """``"1,2,inf"`` -> ``(1.0, 2.0, inf)``.

    Args:
        key: the setting, such as "epsilon_x", for the error.
        text: numbers with commas between them.
        kind: float or int.

    Raises:
        InputError: a part is no number, or is there twice.
    """
    values = tuple(_read(key, kind, part, where=flag(key)) for part in text.split(","))
    if len(set(values)) != len(values):
        raise InputError(f"{text!r} names a value twice", where=flag(key))
    return values


def comparison(methods: str, data: str, params: Mapping[str, Any]) -> Comparison:
    """What ``graphveil compare`` compares: each option goes to the methods it applies to.

    Args:
        methods: names, separated by commas.
        data: the graph's name or folder.
        params: the command's parameters.

    Raises:
        InputError: a method is unknown or named twice, an option applies to none of them, or a value cannot
            be read.
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
        # None keeps the method's own default.
        method_params |= {} if name in delta_for else {"delta": None}
        method_pairs = [f"{key}={text}" for key, text in pairs if key in info.options]
        settings[name] = collect(name, info, {**method_params, "settings": method_pairs})
    result = Comparison(
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
    for cell in result.cells():
        refuse_bad_values(cell.method, cell.settings)
    return result


def _takes(axes: Mapping[str, Any], infos: Mapping[str, AnyMethod]) -> dict[str, list[str]]:
    """The epsilons each method takes part in: those of its parts where they are given, else the total.

    A total that no method is left for goes to all that know it, and is refused there.
    """
    by_method = {name: [key for key in axes if key in info.options] for name, info in infos.items()}
    without_total = {
        name: [key for key in keys if key != "epsilon" or not {"epsilon_x", "epsilon_y"} & set(keys)]
        for name, keys in by_method.items()
    }
    return without_total if any("epsilon" in keys for keys in without_total.values()) else by_method


def _takes_delta(info: AnyMethod, pairs: Mapping[str, str]) -> bool:
    """Whether a method has a delta in any case, or because its features are given Gaussian noise."""
    optional = {"mechanism", "features"} & set(info.options)
    mechanisms = {pairs.get(key) for key in optional}
    return "delta" in info.options and (not optional or bool(mechanisms & set(feature_names_with("delta"))))


def _refuse_useless(infos: Mapping[str, AnyMethod], params: Mapping[str, Any]) -> None:
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


def load(data: str, source: Source, seed: int, progress: ProgressCallback, engine: Engine | None = None) -> Graph:
    """The graph that a command was given, with a share of its edges drawn as private where that was asked for.

    Args:
        data: a named data set, or a folder.
        source: where it lies, and the share to draw.
        seed: fixes the draw.
        progress: what hears of progress. engine: works on blocks of rows of a folder's edges; None: one thread.
    """
    from graphveil.graphs import load_plain

    engine_options: dict[str, Any] = {} if engine is None else {"engine": engine}
    return drawn(load_plain(data, source.data_root, progress=progress, **engine_options), source.private_share, seed)


def load_parts(data: str, source: Source, seed: int, progress: ProgressCallback) -> GraphParts:
    """The parts of the graph that `load` would return; without a share to draw, no torch is needed."""
    from graphveil.graphs import load_parts
    from graphveil.graphs.value.value import parts_of

    if source.private_share is None:
        return load_parts(data, source.data_root, progress=progress)
    return parts_of(load(data, source, seed, progress))


def drawn(graph: Graph, share: float | None, seed: int) -> Graph:
    """The graph, with a share of its edges drawn as private where that was asked for.

    Args:
        graph: all edges as they were read.
        share: of undirected edges to declare private, in (0, 1]; None: leave the declaration alone.
        seed: fixes which.
    """
    from graphveil.graphs import draw_private

    return graph if share is None else draw_private(graph, share, seed)


def noise_of_cell(base: int | None, seed: int) -> Randomness:
    """The source of the noise of one cell of a comparison: another stream for each seed.

    Args:
        base: number of the reproducible noise; None: secure noise.
        seed: of the cell.
    """
    return noise(None if base is None else base + seed)


def noise(seed: int | None) -> Randomness:
    """The source of the privacy noise: the secure one, unless the user asked for repeatable noise."""
    from graphveil.privacy import SecureRandomness, SeededRandomness

    # `--seed` never comes here: it fixes splits and weights, and a guarantee made with it would be void.
    return SecureRandomness() if seed is None else SeededRandomness(seed)


def warn_of_size(runs: Iterable[tuple[str, Mapping[str, Any]]], graph: Graph) -> None:
    """Print each warning of these methods and settings once on stderr, before anything is collected.

    Args:
        runs: method and settings of everything that will be run.
        graph: only its size and classes are read.

    Raises:
        InputError: neighbour lists cannot be collected as asked in a graph of this kind.
    """
    from graphveil.methods.registry import METHODS, build_method

    warnings = {}
    for name, settings in runs:
        method = build_method(name, settings, len(graph.schema.classes))
        warning = METHODS[name].load_family().warning(method, graph)
        if warning:
            warnings[warning] = name
    for warning, name in warnings.items():
        complain(f"warning: {name}: {warning}")


def run_options(params: Mapping[str, Any]) -> dict[str, Any]:
    """The choices of a run that are no setting of its method, as its folder keeps them."""
    from graphveil.graphs.load import lasting

    private_share = {} if params["private_share"] is None else {"private_share": params["private_share"]}
    options = {key: params[key] for key in ("seed", "repeats", "split")}
    return {
        **options,
        "controls": not params["no_controls"],
        "device": params["device"],
        **lasting(params["data"], params["data_root"]),
    } | private_share


def defaults_sentence(settings_of: Mapping[str, Mapping[str, Any]]) -> str | None:
    """One sentence on every finite epsilon that nobody gave and a default stands for; None where there is none.

    Args:
        settings_of: method -> the settings that were given, all axes of a comparison included.
    """
    from graphveil.methods import METHODS

    defaulted = []
    for method, settings in settings_of.items():
        if settings.get("epsilon") is not None:
            continue
        defaults = {key: METHODS[method].options[key].default for key in AXES if key in METHODS[method].options}
        left = {key: value for key, value in defaults.items() if _finite(value) and key not in settings}
        missing = [f"{flag(key)} {value:g}" for key, value in left.items()]
        if missing:
            defaulted.append(f"{' and '.join(missing)} for {method}")
    return f"Using defaults: {'; '.join(defaulted)}." if defaulted else None


class Defaults:
    """Prints `defaults_sentence` on stderr before the first line of progress, so that a refusal stays one line.

    Args:
        settings_of: as of `defaults_sentence`. progress: what hears of progress.
    """

    def __init__(self, settings_of: Mapping[str, Mapping[str, Any]], progress: ProgressCallback) -> None:
        self.sentence = defaults_sentence(settings_of)
        self._progress, self._due = progress, self.sentence is not None

    def __call__(self, event: Progress) -> None:
        """Hand on an event of progress."""
        self.say()
        self._progress(event)

    def say(self) -> None:
        """Say it, once."""
        if self._due and self.sentence is not None:
            complain(self.sentence)
        self._due = False


def _finite(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def prepare(device: str, threads: int | None) -> None:
    """Set the number of threads and refuse a device that is not there.

    Args:
        device: "cpu" or "cuda".
        threads: of torch; None: decided once the graph is known, see `settle_threads`.

    Raises:
        InputError: the device is unknown or absent.
    """
    if device not in ("cpu", "cuda"):
        raise InputError(f"{device!r}", where="--device", allowed="cpu, cuda", remedy=nearest(device, ("cpu", "cuda")))
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("no CUDA device found", where="--device", remedy="use --device cpu")
    # Set before the graph loads, so that reading it is limited too.
    if threads is not None:
        torch.set_num_threads(threads)


def settle_threads(threads: int | None, graph: Graph) -> None:
    """Choose the number of threads that measures fastest on this graph, unless the user gave one.

    Args:
        threads: what the user gave; any number is kept.
        graph: propagation over it is timed.
    """
    if threads is None:
        from graphveil.methods.base.threads import settle_threads as measure

        measure(graph)
