"""What a built method makes of the settings it was given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphveil.methods.base.core import core_of
from graphveil.methods.curator.controls import Curator
from graphveil.methods.links.link_beliefs import LinkBeliefsCore
from graphveil.methods.links.solitude import SolitudeCore
from graphveil.methods.local.lpgnn import LPGNNCore
from graphveil.methods.release.heterorr import HeteroRR


def used_settings(settled: Mapping[str, Any], method: Any) -> dict[str, Any]:
    """Return settings as a built method uses them: budgets after the split, hops after their defaults."""
    if isinstance(core_of(method), LinkBeliefsCore | Curator | HeteroRR):
        return dict(settled)
    used = {"epsilon_x": method.privacy.epsilon_x, "epsilon_y": method.privacy.epsilon_y}
    if isinstance(core_of(method), LPGNNCore | SolitudeCore):
        used |= {"steps_x": method.settings.steps_x, "steps_y": method.settings.steps_y}
        return {**settled, **{name: value for name, value in used.items() if name in settled}}
    return {name: used.get(name, value) for name, value in settled.items() if name in ("epsilon", *used)}
