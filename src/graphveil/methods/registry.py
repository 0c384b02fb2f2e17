"""The methods by name.  Commands, tables, tuning and audits read here which methods and settings there are.

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

#: The methods by kind; a kind is what they have in common, in words.
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
    """Refuse a graph with a `release` that the method did not make: it would protect published data again."""
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
    """Return the settings of a method on a graph; on a release of the method they include those of the release.

    Args:
        graph: maybe a release.
        name: of the method.
        settings: as they were given; InputError if they contradict the settings of the release.
    """
    origin, options = getattr(graph, "release", None), find_method(name).options
    if origin is None or origin.method != name:
        return dict(settings)
    fixed = {key: value for key, value in origin.settings.items() if key in options and key != "scores"}
    # In a release's file infinity is a text.
    fixed = {key: float(value) if key.startswith("epsilon") else value for key, value in fixed.items()}
    for key, value in fixed.items():
        if settings.get(key, value) not in (value, None):  # it would have no effect
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
class MethodChoice:
    """A method and its settings, with a total budget split.

    Attributes:
        method: the method to build: label-pool in place of lpgnn where the label gets the whole total.
        settings: of its class, defaults filled in.
    """

    method: Method
    settings: Mapping[str, Any]


def resolved_choice(name: str, settings: Mapping[str, Any], classes: int) -> MethodChoice:
    """Return the method to build and all its settings; `advised_split` splits a total.

    Args:
        classes: the declared number of classes, which the split depends on.
    """
    method = find_method(name)
    used = method.settle(settings)
    # A curator's epsilon is the price of one training and not a total of several reports.
    if method.trust == "central":
        return MethodChoice(method, used)
    total = used.pop("epsilon", None)
    if total is None:
        return MethodChoice(method, used)
    # Where people send a label alone, it gets all of the total.
    if "epsilon_x" not in method.options:
        return MethodChoice(method, {**used, "epsilon_y": total})
    # Nobody sends both reports, so neither takes anything from the other.
    if ONE_REPORT in method.tags:
        return MethodChoice(method, {**used, "epsilon_x": total, "epsilon_y": total})

    epsilon_x, epsilon_y = advised_split(total, classes)
    if epsilon_x is None:
        return MethodChoice(METHODS["label-pool"], {"epsilon_y": epsilon_y})
    return MethodChoice(method, {**used, "epsilon_x": epsilon_x, "epsilon_y": epsilon_y})


def build_method(name: str, settings: Mapping[str, Any], classes: int, *, seed: int = 0, device: str = "cpu") -> Any:
    """Return an unfitted estimator of the `resolved_choice`.

    Args:
        seed: fixes splits and weights, never privacy noise.
    """
    choice = resolved_choice(name, settings, classes)
    return choice.method.load_class()(**choice.settings, seed=seed, device=device)


def chosen_settings(name: str, used: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that build the method of a run again: those that differ from the defaults.

    A total budget is returned in place of its parts.

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
        name: of the method; no files for one that is no entry here.
    """
    options = METHODS[name].options if name in METHODS else {}
    named = {key: value for key, value in settings.items() if key in options and options[key].file}
    return {key: Path(value) for key, value in named.items() if isinstance(value, str) and Path(value).is_file()}


def load_method(path: str | Path) -> Any:
    """Return the method saved in a file or run folder. Raises ModelFileError when the file is missing, damaged or not
    ours.

    The ledger beside it is its account: a spend is in that file before any data is read, and all who load the same run
    share it.

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
    # A method that fixes settings of another class is saved under the name of that class; plain networks have one name.
    stored = {method.name: method for method in METHODS.values() if not method.fixed}
    stored[PLAIN_NETWORK] = BASELINE_METHODS[0]
    federated = graphveil.method_of_kind(kind)
    if federated is not None:
        return federated.load(path)
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

    Reads only the topology (where it is public), the schema, the layout of the features and the number of labels a
    person, no private value.

    Args:
        graph: n nodes; parts of a graph need no torch.
    """
    method, settings = find_method(name), settings_on(graph, name, settings)
    estimator = build_method(name, settings, len(graph.schema.classes))
    family = method.load_family()
    settled = family.used_settings(estimator, method.settle(settings))
    require_trainable(method, graph)
    planned: Plan = family.plan(name, estimator, graph, settled)
    parameters = estimator.parameters()
    guarantee = estimator.account.with_declared_assumptions(planned.guarantee, parameters, graph.schema)
    return replace(planned, guarantee=guarantee)
