"""From the typed options to the settings of a method; what does not apply is refused, with the nearest name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from graphveil.cli.base.console import complain
from graphveil.errors import InputError
from graphveil.graphs import Graph
from graphveil.graphs.value.value import parts_of
from graphveil.methods.base.settings import OPEN_WORDS, require_device
from graphveil.methods.registry import METHODS, build_method, files_of
from graphveil.runtime.checks import KINDS
from graphveil.runtime.late import torch
from graphveil.runtime.progress import Progress, ProgressCallback
from graphveil.runtime.words import nearest

if TYPE_CHECKING:
    from graphveil.cli.base.groups import Source
    from graphveil.engine import Engine
    from graphveil.graphs.value.parts import GraphParts
    from graphveil.methods.base.method import Method
    from graphveil.privacy import Randomness

NAMED = ("epsilon_x", "epsilon_y", "epsilon_a", "epsilon", "delta", "unit", "model", "epochs")
"""The settings with an option of their own; all others go through ``--set``."""
AXES = ("epsilon_x", "epsilon_y", "epsilon_a", "epsilon")
"""The settings that ``compare`` takes several values of."""


def find_method(name: str, data: str | None = None) -> Method:
    """The method called ``name``; InputError where no method has this name.

    Args:
        data: the argument after the name, in case the two were swapped.
    """
    if name not in METHODS:
        remedy = f"did you mean {data} {name}?" if data in METHODS else nearest(name, METHODS)
        raise InputError(f"no method {name!r}", allowed=", ".join(METHODS), remedy=remedy)
    return METHODS[name]


def collect(method: str, info: Method, params: Mapping[str, Any]) -> dict[str, Any]:
    """The settings given for ``method``, by an option of their own or by ``--set``.

    Args:
        params: the command's parameters; read are those in ``NAMED`` that are not ``None``, and the list ``settings``.

    Raises:
        InputError: an option does not apply to the method, a key is unknown, or a value cannot be read.
    """
    settings = read_settings(method, info, params)
    refuse_bad_values(method, settings)
    return settings


def read_settings(method: str, info: Method, params: Mapping[str, Any]) -> dict[str, Any]:
    """The typed settings as `collect` reads them, each of its own type; ranges and combinations are not checked.

    Args:
        method, info, params: as in `collect`.
    """
    settings: dict[str, Any] = {}
    for key in NAMED:
        if params.get(key) is None:
            continue
        if key not in info.options:
            allowed = ", ".join(flag(name) for name in NAMED if name in info.options) or "no option of its own"
            raise InputError(f"{flag(key)} does not apply to {method}", allowed=allowed)
        settings[key] = _read(key, info.options[key].type, params[key], where=flag(key))
    for pair in params.get("settings") or ():
        key, text = split_pair(pair)
        # Two values for one setting: whichever is used, a reader may believe the other.
        if key in settings:
            raise InputError(f"{key} is given twice", where=f"--set {pair}")
        settings[key] = read_value(method, info, key, text)
    # Absolute, because a run may be repeated or attacked from another working folder.
    return settings | {key: str(file.absolute()) for key, file in files_of(method, settings).items()}


def refuse_bad_values(method: str, settings: Mapping[str, Any]) -> None:
    """Refuse values out of range, before any data is touched, with the method's InputError."""
    # Built and thrown away: only the constructors know every range.
    build_method(method, settings, classes=2)


def flag(key: str) -> str:
    """``epsilon_x`` -> ``--epsilon-x``."""
    return "--" + key.replace("_", "-")


def split_pair(pair: str, *, where: str = "--set") -> tuple[str, str]:
    """``x-hops=4`` -> ``("x_hops", "4")``; InputError where there is no ``=``, or nothing before it.

    Args:
        where: the option, for the error.
    """
    key, equals, value = pair.partition("=")
    key = key.strip().replace("-", "_")
    if not equals or not key:
        many = ",VALUE,..." if where == "--over" else ""
        raise InputError(f"{pair!r} is not a setting", where=where, allowed=f"KEY=VALUE{many}")
    return key, value.strip()


def read_value(method: str, info: Method, key: str, text: str, *, where: str = "--set") -> Any:
    """The value of setting ``key``, of its own type; InputError for no such setting, or no such value.

    Args:
        method, where: its name and the option, for the error.
        key, text: as written before and after the "=" of ``--set``.
    """
    if key not in info.options:
        raise InputError(
            f"{method} has no setting {key!r}",
            where=where,
            allowed=", ".join(sorted(info.options)),
            remedy=nearest(key, info.options),
        )
    return _read(key, info.options[key].type, text, where=where)


def _read(key: str, kind: type, value: object, *, where: str) -> Any:
    """A value of type ``kind``, or None for the word that leaves the setting open."""
    if not isinstance(value, str):
        return value
    # "none" collects no features, "inf" sends them unprotected: opposite promises, so the word must be typed.
    if (word := value.strip().lower()) == OPEN_WORDS.get(key):
        return None
    try:
        return _TRUTH[word] if kind is bool else kind(value)
    except (ValueError, KeyError) as error:
        problem = f"{key} is {value!r}" if where in ("--set", "--over") else repr(value)
        allowed = KINDS[kind] + (f", or {OPEN_WORDS[key]}" if key in OPEN_WORDS else "")
        raise InputError(problem, where=where, allowed=allowed) from error


_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def several(key: str, text: str, kind: type = float) -> tuple[Any, ...]:
    """``"1,2,inf"`` -> ``(1.0, 2.0, inf)``; InputError where a part is not a number, or is repeated.

    Args:
        key: the setting, for the error.
    """
    values = tuple(_read(key, kind, part, where=flag(key)) for part in text.split(","))
    if len(set(values)) != len(values):
        raise InputError(f"{text!r} names a value twice", where=flag(key))
    return values


def load(data: str, source: Source, seed: int, progress: ProgressCallback, engine: Engine | None = None) -> Graph:
    """The graph of ``data``, with a share of its edges drawn as private if ``source`` has one.

    Args:
        data: a named data set, or a folder.
        engine: processes blocks of a folder's edges; None: one thread.
    """
    from graphveil.graphs import load_plain

    engine_options: dict[str, Any] = {} if engine is None else {"engine": engine}
    graph = load_plain(data, source.data_root, progress=progress, **engine_options)
    return with_private_share(graph, source.private_share, seed)


def load_parts(data: str, source: Source, seed: int, progress: ProgressCallback) -> GraphParts:
    """The parts of the graph that `load` would return; without a share to draw, no torch is needed."""
    from graphveil.graphs import load_parts

    if source.private_share is None:
        return load_parts(data, source.data_root, progress=progress)
    return parts_of(load(data, source, seed, progress))


def with_private_share(graph: Graph, share: float | None, seed: int) -> Graph:
    """The graph, with a share of its edges drawn as private.

    Args:
        share: of undirected edges, in (0, 1]; None: the declaration stays as it is.
    """
    from graphveil.graphs import draw_private

    return graph if share is None else draw_private(graph, share, seed)


def noise_of_cell(base: int | None, seed: int) -> Randomness:
    """The source of the noise for one cell of a comparison: each seed has a stream of its own.

    Args:
        base: seed of reproducible noise; None: secure noise.
    """
    return noise(None if base is None else base + seed)


def noise(seed: int | None) -> Randomness:
    """The source of the privacy noise: secure, or reproducible where ``seed`` is given."""
    from graphveil.privacy import SecureRandomness, SeededRandomness

    # `--seed` never reaches this: it fixes splits and weights, and noise from it would void the guarantee.
    return SecureRandomness() if seed is None else SeededRandomness(seed)


def warn_of_size(runs: Iterable[tuple[str, Mapping[str, Any]]], graph: Graph) -> None:
    """Print each warning of these methods and settings once on stderr, before anything is collected.

    Args:
        graph: only its size and classes are read.

    Raises:
        InputError: neighbour lists cannot be collected as asked in a graph of this kind.
    """
    warnings = {}
    for name, settings in runs:
        method = build_method(name, settings, len(graph.schema.classes))
        warning = METHODS[name].load_family().warning(method, graph)
        if warning:
            warnings[warning] = name
    for warning, name in warnings.items():
        complain(f"warning: {name}: {warning}")


def run_options(params: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run that are no setting of its method, as its folder records them."""
    from graphveil.graphs.load import lasting_source

    private_share = {} if params["private_share"] is None else {"private_share": params["private_share"]}
    return {
        **{key: params[key] for key in ("seed", "repeats", "split")},
        "controls": not params["no_controls"],
        "device": params["device"],
        **lasting_source(params["data"], params["data_root"]),
        **private_share,
    }


def defaults_sentence(settings_of: Mapping[str, Mapping[str, Any]]) -> str | None:
    """One sentence naming every finite epsilon left at its default, from settings by method; None if there is none."""
    defaulted = []
    for method, settings in settings_of.items():
        if settings.get("epsilon") is not None:
            continue
        defaults = {key: METHODS[method].options[key].default for key in AXES if key in METHODS[method].options}
        finite = {key: value for key, value in defaults.items() if isinstance(value, float) and math.isfinite(value)}
        missing = [f"{flag(key)} {value:g}" for key, value in finite.items() if key not in settings]
        if missing:
            defaulted.append(f"{' and '.join(missing)} for {method}")
    return f"Using defaults: {'; '.join(defaulted)}." if defaulted else None


class Defaults:
    """Prints `defaults_sentence` on stderr before the first line of progress, so that a refusal stays one line."""

    def __init__(self, settings_of: Mapping[str, Mapping[str, Any]], progress: ProgressCallback) -> None:
        self.notice = defaults_sentence(settings_of)
        self._progress, self._due = progress, self.notice is not None

    def __call__(self, event: Progress) -> None:
        self.say()
        self._progress(event)

    def say(self) -> None:
        if self._due and self.notice is not None:
            complain(self.notice)
        self._due = False


def prepare(device: str, threads: int | None) -> None:
    """Set the number of threads and refuse a device that is unknown or absent.

    Args:
        threads: of torch; None: `settle_threads` decides once the graph is loaded.
    """
    if device not in ("cpu", "cuda"):
        raise InputError(f"{device!r}", where="--device", allowed="cpu, cuda", remedy=nearest(device, ("cpu", "cuda")))
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("no CUDA device found", where="--device", remedy="use --device cpu")
    require_device(device)
    # Before the graph loads, so that the limit holds for reading it too.
    if threads is not None:
        torch.set_num_threads(threads)


def settle_threads(threads: int | None, graph: Graph) -> None:
    """Choose the number of threads that measures fastest on this graph.

    Args:
        threads: as typed, which is not changed; None: measure.
    """
    if threads is None:
        from graphveil.methods.base.cost import settle_threads as measure

        measure(graph)


def room_of(graph: Graph, repeats: int = 1) -> int:
    """The most bytes of a run folder: model, pages and pictures, and the epochs of all repeats.

    Args:
        repeats: of the run, each of which records its epochs.
    """
    from graphveil.graphs.value.description import memory_of

    node_bytes = 8 * int(graph.num_nodes) * (len(graph.schema.classes) + 64)
    return (4 << 20) + 3 * memory_of(graph) + node_bytes + repeats * (1 << 20)


def room_of_split(graph: Graph) -> int:
    """The most bytes of the folders of several holders: features, edges, and every person's id in each."""
    from graphveil.graphs.value.description import memory_of

    return (64 << 10) + 2 * memory_of(graph) + 5 * 100 * int(graph.num_nodes)


def room_of_predictions(graph: Graph) -> int:
    """The most bytes of the predictions for a graph: per node an id, a class and a number for each class."""
    classes, ids = graph.schema.classes, graph.get("ids")
    longest = max((len(str(node_id).encode()) for node_id in (() if ids is None else ids)), default=20)
    row = 64 + longest + max(len(name.encode()) for name in classes) + 25 * (len(classes) + 1)
    return (16 << 10) + row * int(graph.num_nodes)


def room_of_answers(graph: Graph) -> int:
    """The most bytes by which a run grows when it stores the reports of a graph's people, or the answers to them."""
    from graphveil.graphs.value.description import memory_of

    return (64 << 10) + 2 * memory_of(graph) + 8 * int(graph.num_nodes) * (len(graph.schema.classes) + 8)
