"""The settings of a network, options that several methods share, and the values of settings; checked without torch.

Editors, forms and constructors read the values here; what depends on another setting or on the data, constructors
check.  A name that means different things in different methods has the widest of their ranges, or its own in
`Option.within`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, Final, TypedDict

from graphveil.aggregation.names import FINEST, UNITS, WEIGHT_KINDS
from graphveil.errors import InputError
from graphveil.graphs.degree_bound import RULES
from graphveil.mechanisms.catalogue import feature_names, feature_names_with
from graphveil.methods.base.method import Option
from graphveil.models.names import BACKBONES
from graphveil.privacy.accounting.limits import LARGEST_EPSILON
from graphveil.runtime.checks import require_choice, require_number, require_whole
from graphveil.training.selection import SELECTIONS

SCALINGS = ("standard", "published")
LOSSES = ("drop", "cross-entropy")


@dataclass(frozen=True)
class NetworkSettings:
    """The settings of training, none of which affects the guarantee; refuses a value outside its range.

    Attributes:
        scaling: "standard" shifts and scales the propagated features; "published" leaves the rectifier's output as is.
        loss: "drop" learns from noisy labels through their channel; "cross-entropy" takes them for true ones.
        seed: fixes initial weights and dropout, never privacy noise. device: "cpu" or "cuda".
    """

    model: str = "sage"
    steps_x: int = 8
    steps_y: int = 4
    scaling: str = "standard"
    selection: str = "robust"
    hidden: int = 16
    dropout: float = 0.5
    learning_rate: float = 0.01
    weight_decay: float = 0.001
    epochs: int = 500
    seed: int = 0
    device: str = "cpu"
    loss: str = "drop"
    patience: int = 50

    def __post_init__(self) -> None:
        require_ranges(self)
        if self.loss != "drop" and self.steps_y:
            raise InputError(f"loss {self.loss} over {self.steps_y} hops of labels", allowed="steps_y=0")
        require_device(self.device)


class TrainingOptions(TypedDict, total=False):
    """Keywords of the training of any network."""

    scaling: str
    selection: str
    hidden: int
    dropout: float
    learning_rate: float
    weight_decay: float
    epochs: int
    seed: int
    device: str
    loss: str
    patience: int


class NetworkOptions(TrainingOptions, total=False):
    """`NetworkSettings` as keywords; hops that are None follow from budgets and reports."""

    model: str
    steps_x: int | None
    steps_y: int | None


class ReleasedOptions(TrainingOptions, total=False):
    """Keywords of the network that is trained on a release, which smooths no labels."""

    model: str
    steps_x: int | None


class PooledReleasedOptions(ReleasedOptions, total=False):
    """`ReleasedOptions`, and whether the network is pooled with what is public."""

    pooling: str


def require_device(device: str) -> None:
    """Refuse a device that torch does not find, or that is no text (a `torch.device`)."""
    allowed = "cpu, or cuda where torch finds a GPU"
    if not isinstance(device, str):
        raise InputError(f"device is {device!r}", allowed=f"a text: {allowed}")
    if device == "cpu":
        return
    import torch

    if not (device.startswith("cuda") and torch.cuda.is_available()):
        raise InputError(f"device {device!r} is not available", allowed=allowed)
    if find_spec("triton") is None:
        raise InputError("the kernels of a GPU need Triton, which is not installed", remedy="pip install triton")


NETWORK_HELP = {
    "model": "backbone: sage, gcn, gat or mlp",
    "steps_x": "hops of feature propagation; auto: chosen from reports, 0 for public features",
    "steps_y": "hops of label propagation in the loss; auto: chosen from reports, 0 for public labels",
    "scaling": "standard (shift and scale the propagated features) or published",
    "selection": "which epoch is kept: robust, published or last",
    "hidden": "hidden width",
    "dropout": "dropout rate",
    "learning_rate": "learning rate of Adam",
    "weight_decay": "weight decay of Adam",
    "epochs": "maximum number of epochs",
    "patience": "stop after so many epochs without improvement; 0: never",
}
#: Features and labels in a local collection.
PEOPLE_OPTIONS = {
    "epsilon_x": Option(1.0, float, "epsilon of one feature report; inf: features are public"),
    "epsilon_y": Option(1.0, float, "epsilon of one label report; inf: labels are public"),
    "epsilon": Option(
        None, float, "total per person, split as advised; where the label gets all of it, label-pool is run"
    ),
    "mechanism": Option("multi-bit", str, "feature mechanism: " + ", ".join(feature_names())),
    "delta": Option(1e-10, float, "delta of the gaussian mechanism"),
    "sampled": Option(None, int, "features in a report (multi-bit); none: the best number for epsilon_x"),
}
#: A reader trained elsewhere, for methods that pool several opinions.
START_OPTION = {
    "start": Option(None, str, "a reader pre-trained on public graphs joins the pool: public, or its file", file=True)
}
#: The hops that `tune` tries on noisy features: too few leave the noise, too many erase a dense graph.
NOISY_HOPS = {"steps_x": (2, 4, 8)}
#: The same where lists are noisy, so that each hop adds noise.
NOISY_LISTS = {"steps_x": (0, 1, 2, 4, 8)}
QUERIES_OPTION = {
    "queries": Option(0, int, "predictions that ask the same people again to budget for, each at full price")
}


def field_options(
    settings: type, help: Mapping[str, str], types: Mapping[str, type] | None = None
) -> dict[str, Option]:
    """Return an option for each field of a settings dataclass that there is help for.

    Args:
        help: field -> one line.
        types: of fields whose default is None.
    """
    offered = [field for field in fields(settings) if field.name in help]
    typed = {field.name: (types or {}).get(field.name, type(field.default)) for field in offered}
    return {field.name: Option(field.default, typed[field.name], help[field.name]) for field in offered}


def network_options(without: Iterable[str] = ()) -> dict[str, Option]:
    """Return the options of a network without those named; by default its hops follow from the budgets."""
    options = field_options(NetworkSettings, {key: NETWORK_HELP[key] for key in NETWORK_HELP if key not in without})
    return {
        key: Option(None, option.type, option.help) if key in ("steps_x", "steps_y") else option
        for key, option in options.items()
    }


def refuse_idle_delta(settings: Mapping[str, Any]) -> None:
    """Refuse a delta beside a feature mechanism that has none."""
    takers = feature_names_with("delta")
    if "delta" in settings and settings.get("mechanism") not in takers:
        raise InputError(
            f"delta belongs to the {' or '.join(takers)} mechanism alone",
            remedy=f"leave it out or set mechanism={takers[0]}",
        )


@dataclass(frozen=True)
class Bounds:
    """Numbers from `least` to `most`, above `above` and below `below`; None: no such bound. `infinite`: also infinity;
    `whole`: whole numbers only.
    """

    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    infinite: bool = False
    whole: bool = False

    def require(self, **named: object) -> None:
        """Refuse values outside."""
        if self.whole:
            require_whole(int(self.least or 0), None if self.most is None else int(self.most), **named)
        else:
            start = f"[{self.least:g}" if self.above is None else f"({self.above:g}"
            end = f"{math.inf if self.below is None else self.below:g})" if self.most is None else f"{self.most:g}]"
            require_number(f"{start}, {end}", **named)


def require_ranges(settings: Any) -> None:
    """Refuse a field of a settings dataclass outside its range in `NUMBERS` or `NAMES`; None is allowed if its type has
    it.
    """
    for field in fields(settings):
        name, value = field.name, getattr(settings, field.name)
        if value is None and str(field.type).endswith("None"):
            continue
        if name in NAMES:
            require_choice(NAMES[name], **{name: value})
        # `require_budget` refuses budgets.
        elif name in NUMBERS and not NUMBERS[name].infinite:
            NUMBERS[name].require(**{name: value})


def _whole(least: int, most: int | None = None) -> Bounds:
    return Bounds(least, most, whole=True)


_EPSILON: Final = Bounds(above=0, most=LARGEST_EPSILON, infinite=True)
_SHARE, _POSITIVE, _COUNT = Bounds(above=0, below=1), Bounds(above=0), _whole(1)
_WITH_ZERO: Final = Bounds(least=0, most=10**9)
#: The text for None in a setting: features are not collected, or hops are chosen from reports.
OPEN_WORDS: Final[Mapping[str, str]] = MappingProxyType({"epsilon_x": "none", "steps_x": "auto", "steps_y": "auto"})
NUMBERS: Final[Mapping[str, Bounds]] = MappingProxyType(
    {
        **dict.fromkeys(("epsilon", "epsilon_x", "epsilon_y", "epsilon_a"), _EPSILON),
        **dict.fromkeys(("delta", "share_hops", "tree_share", "count_share", "contraction"), _SHARE),
        **dict.fromkeys(("clip", "learning_rate", "penalty"), _POSITIVE),
        **dict.fromkeys(("learning_rate_a", "weight_decay", "sharpness", "lambda1", "lambda2"), _WITH_ZERO),
        **dict.fromkeys(("chains", "degree_bound", "relationships", "sampled", "steps"), _COUNT),
        **dict.fromkeys(("epochs", "passes"), _whole(1, 10**6)),
        **dict.fromkeys(("patience", "queries"), _whole(0, 10**6)),
        **dict.fromkeys(("steps_x", "steps_y"), _whole(0, 64)),
        **dict.fromkeys(("batch", "least_steps"), _whole(1, 10**9)),
        # 1 is allowed: no edge is read then, or neighbours alone.
        **dict.fromkeys(("restart", "share"), Bounds(above=0, most=1)),
        "bits": _whole(1, FINEST),
        "complement": _whole(0),
        "degree_share": Bounds(least=0.01, most=0.99),
        "dropout": Bounds(least=0, below=1),
        "floor": _whole(1, 10_000),
        "hidden": _whole(1, 4096),
        "hops": _whole(1, 64),
        # Beyond 8 one hop would be all noise: fewer hops are the better choice.
        "hop_ratio": Bounds(least=0.125, most=8),
        "residual": Bounds(least=0, most=100),
        "rounds": _whole(1, 1000),
        "seed": _whole(0, 2**63 - 1),
    }
)
NAMES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "loss": LOSSES,
        "mechanism": feature_names(),
        "model": BACKBONES,
        "rule": RULES,
        "scaling": SCALINGS,
        "selection": SELECTIONS,
        "unit": UNITS,
        "weights": WEIGHT_KINDS,
    }
)
