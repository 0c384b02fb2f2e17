"""The methods by name.  What commands offer, tables say, tuning may change and audits run is read from here.

Importing this loads no class: no torch, no SciPy, no compiler.  A new method is a class, and one more `Method` in the
`entries` of its family.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import graphveil
from graphveil.errors import InputError, ModelFileError
from graphveil.methods.base.method import ONE_REPORT, RELEASE, Method
from graphveil.methods.baselines.entries import BASELINE_METHODS, PLAIN_NETWORK
from graphveil.methods.curator.entries import CURATOR_METHODS
from graphveil.methods.links.entries import LINK_METHODS
from graphveil.methods.local.entries import LOCAL_METHODS, advised_split
from graphveil.methods.release.entries import RELEASE_METHODS

if TYPE_CHECKING:
    from graphveil.graphs import Graph
    from graphveil.graphs.value.parts import GraphParts
    from graphveil.methods.base.family import Plan

#: What methods of a kind have in common, in words, and the methods.
KINDS: Mapping[str, tuple[Method, ...]] = MappingProxyType(
    {
        "private features and labels": LOCAL_METHODS,
        "private connections too": LINK_METHODS,
        "a trusted curator": CURATOR_METHODS,
        "a curator who publishes a graph": RELEASE_METHODS,
        "not private": BASELINE_METHODS,
    }
)
METHODS: Mapping[str, Method] = MappingProxyType(
    {method.name: method for methods in KINDS.values() for method in methods}
)

#: The methods by the name of their class.
CLASSES: Mapping[str, Method] = MappingProxyType({method.class_name: method for method in METHODS.values()})


def listing() -> str:
    """Return one sentence that names every method by kind."""
    kinds = (f"{kind}: {', '.join(method.name for method in methods)}" for kind, methods in KINDS.items())
    sentence = "; ".join(kinds)
    return f"{sentence[0].upper()}{sentence[1:]}."


def find_method(name: str) -> Method:
    """Return the method called `name`; refuses an unknown one."""
    if name not in METHODS:
        raise InputError(f"method {name!r} is not known", allowed=", ".join(METHODS))
    return METHODS[name]


def require_trainable(method: Method, graph: Graph | GraphParts) -> None:
    """Refuse to protect again what was published already: a graph with a `release` that the method did not make."""
    origin = getattr(graph, "release", None)
    if origin is None:
        return
    if RELEASE in method.tags and origin.method != method.name:
        raise InputError(
            f"the graph is a release of {origin.method}, which {method.name} did not make",
            where=graph.schema.name,
            remedy=f"train {origin.method}, or a network: gcn, sage, gat",
        )
    if not method.load_family().serves_releases:
        raise InputError(
            f"the graph is a release: {method.name} would protect data that is already public",
            where=graph.schema.name,
            allowed=", ".join(other.name for other in (*BASELINE_METHODS, *LOCAL_METHODS)),
        )


def settings_on(graph: Graph | GraphParts, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a method on a graph: a release that it made keeps those that it was made with.

    Args:
        graph: its release, where it is one, is looked at.
        name: of the method.
        settings: as they were given; InputError for other ones than the release was made with.
    """
    origin, options = getattr(graph, "release", None), find_method(name).options
    if origin is None or origin.method != name:
        return dict(settings)
    fixed = {key: value for key, value in origin.settings.items() if key in options and key != "scores"}
    # In a release's file infinity is a text.
    fixed = {key: float(value) if key.startswith("epsilon") else value for key, value in fixed.items()}
    for key, value in fixed.items():
        if settings.get(key, value) not in (value, None):  # it would change nothing, and seem to
            raise InputError(
                f"{key} is {settings[key]}, but the release has been made and paid for",
                where=graph.schema.name,
                allowed=f"{key}={value}",
                remedy="leave it out",
            )
    return {**settings, **fixed}


def tagged(tag: str) -> tuple[str, ...]:
    """Return the names of the methods with a tag, see `base.method`."""
    return tuple(name for name, method in METHODS.items() if tag in method.tags)


@dataclass(frozen=True)
class Advised:
    """What a choice of method and settings comes to once a total budget is split.

    Attributes:
        method: what is really built: label-pool in the place of lpgnn where the label gets all of the total.
        settings: of its class, defaults filled in.
    """

    method: Method
    settings: Mapping[str, Any]


def advised(name: str, settings: Mapping[str, Any], classes: int) -> Advised:
    """Return the method and settings that a choice comes to; a total is split by `advised_split`.

    Args:
        classes: the declared number of classes, which the split depends on.
    """
    method = find_method(name)
    used = method.settle(settings)
    # A curator's epsilon is the price of one training and not a total of several reports.
    if method.trust == "central":
        return Advised(method, used)
    total = used.pop("epsilon", None)
    if total is None:
        return Advised(method, used)
    # Where people send a label alone, it gets all of the total.
    if "epsilon_x" not in method.options:
        return Advised(method, {**used, "epsilon_y": total})
    # Nobody sends both reports, so neither takes anything from the other.
    if ONE_REPORT in method.tags:
        return Advised(method, {**used, "epsilon_x": total, "epsilon_y": total})

    epsilon_x, epsilon_y = advised_split(total, classes)
    if epsilon_x is None:
        return Advised(METHODS["label-pool"], {"epsilon_y": epsilon_y})
    return Advised(method, {**used, "epsilon_x": epsilon_x, "epsilon_y": epsilon_y})


def build_method(name: str, settings: Mapping[str, Any], classes: int, *, seed: int = 0, device: str = "cpu") -> Any:
    """Return an unfitted estimator of what `advised` says.

    Args:
        seed: fixes splits and weights, never privacy noise.
    """
    choice = advised(name, settings, classes)
    return choice.method.load_class()(**choice.settings, seed=seed, device=device)


def chosen_settings(name: str, used: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that build a method once more, of those that a run used: what is not by default.

    A total budget stands for the parts that it was split into.

    Args:
        used: what `base.family.Family.used_settings` returned for a run.
    """
    options = METHODS[name].options
    parts = ("epsilon_x", "epsilon_y") if used.get("epsilon") is not None and METHODS[name].trust != "central" else ()
    return {
        key: value
        for key, value in used.items()
        if key in options and key not in parts and value != options[key].default
    }


def files_of(name: str, settings: Mapping[str, Any]) -> dict[str, Path]:
    """Return the files that settings name, by setting.

    Args:
        name: of the method; of one that is no entry here, nothing is known.
    """
    options = METHODS[name].options if name in METHODS else {}
    named = {key: value for key, value in settings.items() if key in options and options[key].file}
    return {key: Path(value) for key, value in named.items() if isinstance(value, str) and Path(value).is_file()}


def load_method(path: str | Path) -> Any:
    """Return the method saved in a file or run folder, whichever it is. Raises ModelFileError when the file is missing,
    damaged or not ours.

    The ledger beside it, where there is one, is its account: a spend is in that file before any data is read, and all
    who load the same run share it.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from graphveil.graphs import social_graph
        >>> from graphveil.methods import LabelPropagation, load_method
        >>> model = LabelPropagation(epsilon_y=2.0).fit(social_graph(100, seed=1))
        >>> with TemporaryDirectory() as folder:
        ...     again = load_method(model.save(Path(folder)))
        >>> again.kind, again.guarantee == model.guarantee
        ('label-propagation', True)
    """
    from graphveil.methods.base.estimator import class_of, load_estimator
    from graphveil.methods.base.storage import read_method

    kind, _, _ = read_method(path)
    # A method that fixes settings of another class is saved under the name of that one; plain networks have one name.
    stored = {method.name: method for method in METHODS.values() if not method.fixed}
    stored[PLAIN_NETWORK] = BASELINE_METHODS[0]
    later = graphveil.method_of_kind(kind)
    if later is not None:
        return later.load(path)
    if kind not in stored:
        raise ModelFileError(f"holds a {kind!r} model", where=str(path), allowed=", ".join(stored))
    loaded = load_estimator(stored[kind].load_class(), path)
    for method in METHODS.values():
        if method.fixed and method.family == stored[kind].family:
            method.load_class()  # it may be the class of the file
    loaded.__class__ = class_of(loaded)
    return loaded


def plan(name: str, graph: Graph | GraphParts, settings: Mapping[str, Any]) -> Plan:
    """Return what training a method on a graph would promise and cost; refuses a graph that the method cannot serve.

    Only the topology (where it is public), the schema, the layout of the features and the number of labels a
    person are looked at; no private value is read.

    Args:
        graph: n nodes; parts of a graph need no torch.
    """
    method, settings = find_method(name), settings_on(graph, name, settings)
    estimator = build_method(name, settings, len(graph.schema.classes))
    family = method.load_family()
    settled = family.used_settings(estimator, method.settle(settings))
    require_trainable(method, graph)
    planned: Plan = family.plan(name, estimator, graph, settled)
    leaning = estimator.account.leaning(planned.guarantee, estimator.parameters(), graph.schema)
    return replace(planned, guarantee=leaning)
