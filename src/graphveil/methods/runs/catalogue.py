"""The methods by name, with the settings each takes; what commands offer is read from here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from graphveil.aggregation.weights import WEIGHT_KINDS
from graphveil.errors import InputError, ModelFileError
from graphveil.methods.base.core import core_of
from graphveil.methods.base.estimator import Estimator
from graphveil.methods.base.local_privacy import FEATURE_MECHANISMS
from graphveil.methods.base.network import NetworkSettings
from graphveil.methods.base.storage import ledger_of, read_method
from graphveil.methods.curator.class_sums import ClassSums, SumsSettings
from graphveil.methods.curator.dp_mlp import DPMLP
from graphveil.methods.curator.gap import GAP
from graphveil.methods.curator.privacy import RULES, UNITS
from graphveil.methods.curator.progap import ProGAP
from graphveil.methods.curator.training import CuratorSettings
from graphveil.methods.links.denoisers import DENOISERS
from graphveil.methods.links.link_beliefs import LinkBeliefs
from graphveil.methods.links.solitude import Solitude
from graphveil.methods.local.advice import advised_split
from graphveil.methods.local.baselines import BASELINES, INFINITE, baseline
from graphveil.methods.local.label_propagation import LabelPropagation
from graphveil.methods.local.lpgnn import LPGNN, LPGNNCore
from graphveil.methods.release.catalogue import RELEASES, SUMMARIES, build_release, refuse_idle_release, settings_taken
from graphveil.methods.release.heterorr import HeteroRR
from graphveil.models.block_model import ROUNDS

Curator = GAP | ProGAP | DPMLP | ClassSums
Method = Estimator[Any] | Solitude | LinkBeliefs | Curator | HeteroRR
_ESTIMATORS = (LPGNN, LabelPropagation, Solitude, LinkBeliefs, DPMLP, ClassSums, HeteroRR)
#: Settings of the calibration alone.
CALIBRATION = ("lambda1", "lambda2", "learning_rate_a", "complement")

_HELP = {
    "model": "backbone: sage, gcn, gat or mlp",
    "steps_x": "hops of feature propagation; default 8, 0 for public features",
    "steps_y": "hops of label propagation in the loss; default 4, 0 (plain forward correction) for public labels",
    "scaling": "standard (shift and scale the propagated features) or published",
    "selection": "which epoch is kept: robust, published or last",
    "hidden": "hidden width",
    "dropout": "dropout rate",
    "learning_rate": "learning rate of Adam",
    "weight_decay": "weight decay of Adam",
    "epochs": "epochs",
}


@dataclass(frozen=True)
class Option:
    """A setting of a method: its default, its type and one line of help."""

    default: Any
    type: type
    help: str


@dataclass(frozen=True)
class MethodInfo:
    """A method: how to build it, one line about it, its trust model, its settings, and what of a person it reads."""

    build: Callable[..., Any]
    summary: str
    trust: str
    options: Mapping[str, Option]
    reads: tuple[str, ...] = ("features", "labels", "edges")

    def settle(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings with defaults filled in.

        Raises:
            InputError: for a setting the method does not take.
        """
        for name in settings:
            if name not in self.options:
                raise InputError(f"setting {name!r} is not known", allowed=", ".join(sorted(self.options)))
        if settings.get("epsilon") is not None and {"epsilon_x", "epsilon_y"} & set(settings):
            raise InputError(
                "epsilon is a total that is split for you",
                allowed="epsilon, or epsilon_x and epsilon_y",
                remedy="leave one of the two out",
            )
        _refuse_idle(settings, self.options)
        if "delta" in settings and "mechanism" in self.options and settings.get("mechanism") != "gaussian":
            raise InputError(
                "delta belongs to the gaussian mechanism alone", remedy="leave it out or set mechanism=gaussian"
            )
        return {**{name: option.default for name, option in self.options.items()}, **settings}


def _refuse_idle(settings: Mapping[str, Any], options: Mapping[str, Option]) -> None:
    """Refuse settings that the chosen denoiser would not look at."""
    if settings.get("epsilon_a") == INFINITE:
        for name in ("degree_share", *CALIBRATION):
            if name in settings:
                raise InputError(f"{name} says nothing where links are public (epsilon_a = inf)", remedy="leave it out")
    if "denoiser" not in options:
        return
    denoiser = settings.get("denoiser") or options["denoiser"].default
    if "degree_share" in settings and DENOISERS.get(denoiser) == "lists":
        takers = ", ".join(name for name, kind in DENOISERS.items() if kind != "lists")
        raise InputError(f"degree_share says nothing to denoiser {denoiser}", allowed=f"with {takers}")
    for name in CALIBRATION:
        if name in settings and denoiser != "calibration":
            raise InputError(f"{name} says nothing to denoiser {denoiser}", allowed="with calibration")


def build_method(name: str, settings: Mapping[str, Any], classes: int, *, seed: int = 0, device: str = "cpu") -> Any:
    """Return an unfitted method with its settings filled in and a total budget split as `methods.local.advice` says.

    Args:
        settings: what was chosen; the rest takes its default.
        classes: the declared number of classes, which the split depends on.

    Raises:
        InputError: for an unknown method, setting or value.
    """
    if name not in METHODS:
        raise InputError(f"method {name!r} is not known", allowed=", ".join(METHODS))
    settled = METHODS[name].settle(settings)
    if name in RELEASES:
        refuse_idle_release(name, settings)
    if METHODS[name].trust == "central":
        return METHODS[name].build(**settled, seed=seed, device=device)
    total = settled.pop("epsilon", None)
    if total is not None and "epsilon_x" not in METHODS[name].options:
        settled["epsilon_y"] = total
    elif total is not None:
        epsilon_x, epsilon_y = advised_split(total, classes)
        if epsilon_x is None:
            return LabelPropagation(epsilon_y=epsilon_y, rule="pool", seed=seed, device=device)
        settled |= {"epsilon_x": epsilon_x, "epsilon_y": epsilon_y}
    return METHODS[name].build(**settled, seed=seed, device=device)


def used_settings(settled: Mapping[str, Any], method: Method) -> dict[str, Any]:
    """Return settings as a built method uses them: budgets after the split, hops after their defaults."""
    if isinstance(method, LinkBeliefs | Curator | HeteroRR):
        return dict(settled)
    used = {"epsilon_x": method.privacy.epsilon_x, "epsilon_y": method.privacy.epsilon_y}
    if isinstance(core_of(method), LPGNNCore | Solitude):
        used |= {"steps_x": method.settings.steps_x, "steps_y": method.settings.steps_y}
        return {**settled, **{name: value for name, value in used.items() if name in settled}}
    return {name: used.get(name, value) for name, value in settled.items() if name in ("epsilon", *used)}


def chosen_settings(name: str, used: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that build a method once more, of those that `used_settings` told: what is not by default.

    A total budget stands for the parts that it was split into.
    """
    options = METHODS[name].options
    parts = ("epsilon_x", "epsilon_y") if used.get("epsilon") is not None and METHODS[name].trust != "central" else ()
    return {
        key: value
        for key, value in used.items()
        if key in options and key not in parts and value != options[key].default
    }


def load_method(path: str | Path) -> Method:
    """Return the method saved in a file or run folder, whichever it is.

    The ledger beside it, where there is one, is its account: a spend is in that file before any data is read, and all
    who load the same run share it.

    Raises:
        ModelFileError: when the file is missing, damaged or not ours.
    """
    kind, facts, _ = read_method(path)
    kinds: dict[str, Any] = {method.kind: method for method in _ESTIMATORS}
    kinds |= {method.recipe.kind: method for method in (GAP, ProGAP)}
    if kind not in kinds:
        raise ModelFileError(f"holds a {kind!r} model", where=str(path), allowed=", ".join(kinds))
    loaded: Method = kinds[kind].load(path)
    loaded.ledger = ledger_of(path, facts)
    return loaded


def _network_options() -> dict[str, Option]:
    options = {}
    for field in fields(NetworkSettings):
        if field.name not in ("seed", "device"):
            default = None if field.name in ("steps_x", "steps_y") else field.default
            options[field.name] = Option(default, type(field.default), _HELP[field.name])
    return options


def _build_baseline(model: str) -> Callable[..., Any]:
    return lambda **settings: baseline(model, **settings)


def _link_methods(private: Mapping[str, Option], again: Mapping[str, Option]) -> dict[str, MethodInfo]:
    """Return the methods that collect neighbour lists privately."""
    people = {name: private[name] for name in ("epsilon_x", "epsilon_y", "mechanism", "delta")}
    people["epsilon_y"] = Option(INFINITE, float, private["epsilon_y"].help)
    lists = {
        "epsilon_a": Option(8.0, float, "epsilon of one bit of a neighbour list; inf: links are public"),
        "mode": Option(None, str, "who reports a relationship: lower (its lower id), both (twice the price), directed"),
    }
    share = {"degree_share": Option(0.1, float, "part of epsilon_a for a noisy degree (blink, dprr)")}
    calibration = {
        "lambda1": Option(1e-4, float, "price of the distance from the reported lists (calibration)"),
        "lambda2": Option(1e-5, float, "price of the weights themselves (calibration)"),
        "learning_rate_a": Option(0.01, float, "learning rate of the weights (calibration)"),
        "complement": Option(0, int, "pairs nobody reported that are trained along (calibration)"),
    }
    denoiser = {"denoiser": Option("calibration", str, ", ".join(DENOISERS))}
    network = _network_options()
    beliefs = {"rounds": Option(ROUNDS, int, "rounds of belief propagation")}
    clear = {**people, "epsilon_x": Option(INFINITE, float, private["epsilon_x"].help)}
    return {
        "solitude": MethodInfo(
            Solitude,
            "private features and neighbour lists; weights of edges learned with the network (TIFS 2022)",
            "local",
            {**people, **lists, **again, **denoiser, **share, **calibration, **network},
        ),
        "link-beliefs": MethodInfo(
            LinkBeliefs,
            "private neighbour lists weighed by their exact likelihood; no network; the strongest on private lists",
            "local",
            {**clear, **lists, **beliefs},
        ),
        "blink": MethodInfo(
            partial(Solitude, denoiser="blink-hybrid"),
            "private neighbour lists and degrees, denoised by their posterior (CCS 2023)",
            "local",
            {**clear, **lists, "mode": Option("both", str, lists["mode"].help), **again, **share, **network},
        ),
        "dprr": MethodInfo(
            partial(Solitude, denoiser="degree-preserving"),
            "private neighbour lists thinned on the device to a noisy degree (2022)",
            "local",
            {**clear, **lists, "mode": Option("both", str, lists["mode"].help), **again, **share, **network},
        ),
    }


_CURATOR_HELP = {
    "hops": "noisy sums over neighbours, one after the other",
    "hidden": "hidden width",
    "epochs": "epochs of training without noise, at most",
    "learning_rate": "learning rate of Adam",
    "weight_decay": "weight decay of Adam, without noise",
    "patience": "stop after so many epochs in which neither accuracy nor loss got better; 0: never",
    "weights": "weights of messages: " + ", ".join(WEIGHT_KINDS),
    "sharpness": "of the weights kernel",
    "bits": "of the rows' grid; default: as the noise allows",
    "batch": "expected batch of private training (unit node, or weights attention)",
    "passes": "passes over the nodes in private training (the same)",
    "clip": "norm to which private training clips a gradient (the same)",
    "share_hops": "part of the budget for the sums beside private training (the same); default a half",
    "hop_ratio": "noise of each sum over that of the sum before; above 1 the earlier sums get more of the budget",
}
#: Settings of hops, which a method without edges does not have.
_OF_HOPS = ("hops", "weights", "sharpness", "bits", "share_hops", "hop_ratio")


def _curator_methods() -> dict[str, MethodInfo]:
    """Return the methods that a trusted curator trains."""
    network = {
        field.name: Option(field.default, float if field.name == "share_hops" else int, _CURATOR_HELP[field.name])
        if field.default is None
        else Option(field.default, type(field.default), _CURATOR_HELP[field.name])
        for field in fields(CuratorSettings)
        if field.name in _CURATOR_HELP
    }
    budget = {
        "epsilon": Option(4.0, float, "what training costs one unit; inf: nothing is protected"),
        "delta": Option(1e-5, float, "delta of one unit; below one over the number of protected units, declared"),
    }
    unit = {
        "unit": Option(None, str, ", ".join(UNITS) + "; default: edge, in a directed graph directed-edge"),
        "degree_bound": Option(None, int, "how many others one node sends to (unit node); default 100"),
        "rule": Option("lists", str, "how that bound is kept (unit node): " + ", ".join(RULES)),
        "queries": Option(0, int, "predictions of other graphs to make room for, at the price of training each"),
    }
    alone = {name: option for name, option in network.items() if name not in _OF_HOPS}
    only_node = {"unit": Option("node", str, "node: edges are not read")}
    only_edges = {"unit": Option(None, str, "edge or directed-edge; default: edge, in a directed graph directed-edge")}
    sums = {
        field.name: Option(field.default, type(field.default), _HELP[field.name])
        for field in fields(SumsSettings)
        if field.name in _HELP
    }
    return {
        "class-sums": MethodInfo(
            ClassSums,
            "a curator releases one noisy count of neighbours by class; the strongest where labels are public",
            "central",
            {**budget, **only_edges, **sums},
        ),
        "gap": MethodInfo(
            GAP,
            "a curator trains on noisy sums over neighbours, made once (USENIX Security 2023)",
            "central",
            {**budget, **unit, **network},
        ),
        "progap": MethodInfo(
            ProGAP,
            "a curator trains in stages, each on noisy sums of what the last one learned (WSDM 2024)",
            "central",
            {**budget, **unit, **network},
        ),
        "dp-mlp": MethodInfo(
            DPMLP,
            "a curator trains a perceptron by private gradient descent; no edges",
            "central",
            {**budget, **only_node, **alone},
            ("features", "labels"),
        ),
    }


def _release_methods() -> dict[str, MethodInfo]:
    """Return the methods that train on a graph which a trusted curator publishes."""
    network = _network_options()
    del network["steps_y"]
    found = {}
    for name in RELEASES:
        own = {key: Option(*about) for key, about in settings_taken(name).items()}
        found[name] = MethodInfo(build_release(name), SUMMARIES[name], "central", {**own, **network})
    return found


def _methods() -> dict[str, MethodInfo]:
    private = {
        "epsilon_x": Option(1.0, float, "epsilon of one feature report; inf: features are public"),
        "epsilon_y": Option(1.0, float, "epsilon of one label report; inf: labels are public"),
        "epsilon": Option(
            None, float, "total per person, split as advised; where the label gets all of it, label-pool is run"
        ),
        "mechanism": Option("multi-bit", str, "feature mechanism: " + ", ".join(FEATURE_MECHANISMS)),
        "delta": Option(1e-10, float, "delta of the gaussian mechanism"),
    }
    again = {
        "queries": Option(0, int, "predictions that ask the same people again to make room for, at full price each")
    }
    labels_only = {
        "epsilon_y": private["epsilon_y"],
        "epsilon": Option(None, float, "total per person; the label gets all of it"),
    }
    found = {
        "lpgnn": MethodInfo(
            LPGNN,
            "private features and labels, public topology (CCS 2021)",
            "local",
            {**private, **again, **_network_options()},
        ),
        "label-propagation": MethodInfo(
            LabelPropagation,
            "private labels spread over a public topology; no features, no training",
            "local",
            labels_only,
            ("labels", "edges"),
        ),
        "label-pool": MethodInfo(
            partial(LabelPropagation, rule="pool"),
            "private labels read in several ways at once and pooled; no features; the strongest on labels alone",
            "local",
            labels_only,
            ("labels", "edges"),
        ),
        **_link_methods(private, again),
        **_curator_methods(),
        **_release_methods(),
    }
    for model in BASELINES:
        options = _network_options()
        del options["model"], options["steps_x"], options["steps_y"]
        summary = f"plain {model.upper()} on raw data: the non-private baseline"
        reads = ("features", "labels") if model == "mlp" else ("features", "labels", "edges")
        found[model] = MethodInfo(_build_baseline(model), summary, "none", options, reads)
    return found


METHODS: Mapping[str, MethodInfo] = MappingProxyType(_methods())
