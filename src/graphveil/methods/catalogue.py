"""The methods by name, with the settings each takes; what commands offer is read from here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from graphveil.errors import InputError, ModelFileError
from graphveil.methods.advice import advised_split
from graphveil.methods.baselines import BASELINES, baseline
from graphveil.methods.label_propagation import LabelPropagation
from graphveil.methods.local_privacy import FEATURE_MECHANISMS
from graphveil.methods.lpgnn import LPGNN
from graphveil.methods.network import NetworkSettings
from graphveil.methods.storage import read_method

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
    """A method: how to build it from settings, one line about it, its trust model and its settings."""

    build: Callable[..., Any]
    summary: str
    trust: str
    options: Mapping[str, Option]

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
        if "delta" in settings and settings.get("mechanism") != "gaussian":
            raise InputError(
                "delta belongs to the gaussian mechanism alone", remedy="leave it out or set mechanism=gaussian"
            )
        return {**{name: option.default for name, option in self.options.items()}, **settings}


def build_method(name: str, settings: Mapping[str, Any], classes: int, *, seed: int = 0, device: str = "cpu") -> Any:
    """Return an unfitted method with its settings filled in and a total budget split as `methods.advice` says.

    Args:
        settings: what was chosen; the rest takes its default.
        classes: the declared number of classes, which the split depends on.

    Raises:
        InputError: for an unknown method, setting or value.
    """
    if name not in METHODS:
        raise InputError(f"method {name!r} is not known", allowed=", ".join(METHODS))
    settled = METHODS[name].settle(settings)
    total = settled.pop("epsilon", None)
    if total is not None and "epsilon_x" not in METHODS[name].options:
        settled["epsilon_y"] = total
    elif total is not None:
        epsilon_x, epsilon_y = advised_split(total, classes)
        if epsilon_x is None:
            return LabelPropagation(epsilon_y=epsilon_y, rule="pool", seed=seed, device=device)
        settled |= {"epsilon_x": epsilon_x, "epsilon_y": epsilon_y}
    return METHODS[name].build(**settled, seed=seed, device=device)


def used_settings(settled: Mapping[str, Any], method: LPGNN | LabelPropagation) -> dict[str, Any]:
    """Return settings as a built method uses them: budgets after the split, hops after their defaults."""
    used = {"epsilon_x": method.privacy.epsilon_x, "epsilon_y": method.privacy.epsilon_y}
    if isinstance(method, LPGNN):
        used |= {"steps_x": method.settings.steps_x, "steps_y": method.settings.steps_y}
        return {**settled, **{name: value for name, value in used.items() if name in settled}}
    return {name: used.get(name, value) for name, value in settled.items() if name in ("epsilon", *used)}


def load_method(path: str | Path) -> LPGNN | LabelPropagation:
    """Return the method saved in a file or run folder, whichever it is.

    Raises:
        ModelFileError: when the file is missing, damaged or not ours.
    """
    kind, _, _ = read_method(path)
    kinds: dict[str, Any] = {LPGNN.kind: LPGNN, LabelPropagation.kind: LabelPropagation}
    if kind not in kinds:
        raise ModelFileError(f"holds a {kind!r} model", where=str(path), allowed=", ".join(kinds))
    loaded: LPGNN | LabelPropagation = kinds[kind].load(path)
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
    labels_only = {
        "epsilon_y": private["epsilon_y"],
        "epsilon": Option(None, float, "total per person; the label gets all of it"),
    }
    found = {
        "lpgnn": MethodInfo(
            LPGNN,
            "private features and labels, public topology (CCS 2021)",
            "local",
            {**private, **_network_options()},
        ),
        "label-propagation": MethodInfo(
            LabelPropagation,
            "private labels spread over a public topology; no features, no training",
            "local",
            labels_only,
        ),
        "label-pool": MethodInfo(
            partial(LabelPropagation, rule="pool"),
            "private labels read in several ways at once and pooled; no features; the strongest on labels alone",
            "local",
            labels_only,
        ),
    }
    for model in BASELINES:
        options = _network_options()
        del options["model"], options["steps_x"], options["steps_y"]
        summary = f"plain {model.upper()} on raw data: the non-private baseline"
        found[model] = MethodInfo(_build_baseline(model), summary, "none", options)
    return found


METHODS: Mapping[str, MethodInfo] = MappingProxyType(_methods())
