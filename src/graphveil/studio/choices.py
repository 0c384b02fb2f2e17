"""What a page offers: trusts, methods with their budgets and settings, stops of the slider, attacks, data sets."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from graphveil.graphs.load import present_sets
from graphveil.methods.advise.rules import TRUSTS
from graphveil.methods.base.method import RELEASE, Method, Option
from graphveil.methods.base.settings import NAMES
from graphveil.methods.curator.entries import CURATOR_METHODS
from graphveil.methods.links.entries import LINK_METHODS
from graphveil.methods.local.entries import LOCAL_METHODS
from graphveil.methods.registry import METHODS
from graphveil.methods.release.entries import OPTIONS as RELEASE_OPTIONS
from graphveil.methods.release.entries import RELEASE_METHODS
from graphveil.privacy.accounting.guessing import right_guesses
from graphveil.studio.models import Attack, Choices, MethodOf, SettingOf, Stop, Trust

#: Where the methods of a trust come from; a federation takes several machines, and no method of this list.
_METHODS: Final[Mapping[str, tuple[Method, ...]]] = MappingProxyType(
    {"local": LOCAL_METHODS, "links": LINK_METHODS, "curator": CURATOR_METHODS, "release": RELEASE_METHODS}
)
_EPSILONS: Final = ("epsilon", "epsilon_x", "epsilon_y", "epsilon_a")
_STOPS: Final = (
    *(0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 0.85, 1.0, 1.25, 1.5),
    *(2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 16.0),
)
#: Attacks in plain words; a test checks that none is missing.
ATTACKS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "linkteller": ("run", "who is connected to whom, by asking with slightly changed features"),
        "link-stealing": ("run", "who is connected to whom, by how alike the answers are"),
        "link-stealing-known": ("run", "who is connected to whom, by somebody who knows half of the connections"),
        "link-stealing-shadow": ("run", "who is connected to whom, learned on a graph of the adversary's own"),
        "membership": ("run", "who was trained on, by how sure the model is"),
        "lira": ("run", "who was trained on, by comparing with models that did not see them"),
        "attribute": ("run", "somebody's feature, from the model's answers"),
        "reconstruction": ("run", "features of people, from what is shown of them"),
        "averaging": ("run", "somebody's features, by averaging many reports"),
        "averaging-labels": ("run", "somebody's label, by averaging many reports"),
        "published-edges": ("release", "which edges of a published graph are true"),
        "label-inference": ("federation", "labels, from the gradients that reach the server"),
        "label-inference-holder": ("federation", "labels, by a holder without labels"),
        "feature-recovery": ("federation", "another holder's features, by the label holder"),
        "feature-recovery-server": ("federation", "a holder's features, by the server"),
        "gram": ("federation", "who is alike at another holder, by the label holder"),
        "gram-server": ("federation", "who is alike at a holder, by the server"),
        "shares": ("federation", "who is alike, from shares and what was dealt"),
        "low-bits": ("federation", "features, from bits below the steps of the noise"),
    }
)


def choices(root: str, data_root: Path | None) -> Choices:
    """Return everything that a page offers.

    Args:
        root: the name of the studio's folder.
    """
    return Choices(
        root=root,
        trusts=[
            Trust(name=name, words=words, methods=[method.name for method in _METHODS.get(name, ())])
            for name, words in TRUSTS.items()
        ],
        methods=[_method(method) for method in METHODS.values()],
        stops=[
            Stop(epsilon=epsilon, right=right, of=guesses)
            for epsilon in _STOPS
            for right, guesses in [right_guesses(epsilon, 0.0) or (None, None)]
        ],
        attacks=[Attack(name=name, on=on, summary=summary) for name, (on, summary) in ATTACKS.items()],  # type: ignore[arg-type]
        named=list(present_sets(data_root)),
    )


def _method(method: Method) -> MethodOf:
    trust = next((name for name, methods in _METHODS.items() if method in methods), "none")
    budgets = [key for key in method.options if key in _EPSILONS]
    # Settings of the training on a release are no settings of the release itself.
    keys = [key for key in method.options if RELEASE not in method.tags or key in RELEASE_OPTIONS]
    return MethodOf(
        name=method.name,
        summary=method.summary,
        trust=trust,
        budgets=[_setting(key, method.options[key]) for key in budgets],
        settings=[_setting(key, method.options[key]) for key in keys if key not in budgets],
        command="release" if RELEASE in method.tags else "train",
    )


def _setting(key: str, option: Option) -> SettingOf:
    allowed = option.within or (NAMES.get(key, ()) if option.type is str else ())
    if key == "unit":
        # Not every method has every unit: its help names those that it has.
        allowed = tuple(name for name in allowed if name in re.findall(r"[\w-]+", option.help))
    allowed = ("true", "false") if option.type is bool else allowed
    # JSON has no infinity.
    default = str(option.default) if option.default in (math.inf, -math.inf) else option.default
    return SettingOf(key=key, default=default, allowed=list(allowed), help=option.help)
