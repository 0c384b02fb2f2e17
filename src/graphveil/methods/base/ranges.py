"""Which values settings take, by name, for editors and forms; the constructors are the law and refuse more.

What depends on another setting, or on the data, is not said here.  A name that means different things in different
methods has the widest range of them, or says its own in `Option.within`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from graphveil.aggregation.names import FINEST, UNITS, WEIGHT_KINDS
from graphveil.graphs.bound_rules import RULES
from graphveil.mechanisms.catalogue import feature_names
from graphveil.methods.base.settings import LOSSES, SCALINGS
from graphveil.models.names import BACKBONES
from graphveil.privacy.accounting.limits import LARGEST_EPSILON
from graphveil.training.selection import SELECTIONS


@dataclass(frozen=True)
class Bounds:
    """Numbers from `least` to `most`, above `above` and below `below`; None: no such end. `infinite`: or infinity."""

    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    infinite: bool = False


_EPSILON: Final = Bounds(above=0, most=LARGEST_EPSILON, infinite=True)
_SHARE, _POSITIVE, _COUNT = Bounds(above=0, below=1), Bounds(above=0), Bounds(least=1)
_WITH_ZERO: Final = Bounds(least=0)
#: The word that leaves a setting open: features are not collected, or hops are chosen from reports.
OPEN_WORDS: Final[Mapping[str, str]] = MappingProxyType({"epsilon_x": "none", "steps_x": "auto", "steps_y": "auto"})
NUMBERS: Final[Mapping[str, Bounds]] = MappingProxyType(
    {
        **dict.fromkeys(("epsilon", "epsilon_x", "epsilon_y", "epsilon_a"), _EPSILON),
        **dict.fromkeys(("delta", "share_hops", "tree_share", "count_share", "contraction"), _SHARE),
        **dict.fromkeys(("clip", "penalty"), _POSITIVE),
        # class-sums takes a learning rate of 0: its network then stays as it began.
        **dict.fromkeys(("learning_rate", "learning_rate_a", "weight_decay", "sharpness"), _WITH_ZERO),
        **dict.fromkeys(("lambda1", "lambda2", "complement"), _WITH_ZERO),
        **dict.fromkeys(("chains", "degree_bound", "relationships", "sampled", "steps"), _COUNT),
        **dict.fromkeys(("epochs", "passes"), Bounds(least=1, most=10**6)),
        **dict.fromkeys(("patience", "queries"), Bounds(least=0, most=10**6)),
        **dict.fromkeys(("steps_x", "steps_y"), Bounds(least=0, most=64)),
        # One is taken: no edge is read then, or neighbours alone.
        **dict.fromkeys(("restart", "share"), Bounds(above=0, most=1)),
        "batch": Bounds(least=1, most=10**9),
        "bits": Bounds(least=1, most=FINEST),
        "degree_share": Bounds(least=0.01, most=0.99),
        "dropout": Bounds(least=0, below=1),
        "floor": Bounds(least=1, most=10_000),
        "hidden": Bounds(least=1, most=4096),
        "hops": Bounds(least=1, most=64),
        "hop_ratio": Bounds(least=0.125, most=8),
        "residual": Bounds(least=0, most=100),
        "rounds": Bounds(least=1, most=1000),
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
