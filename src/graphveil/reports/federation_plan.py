"""What a federation would send, cost and reveal, from the agreement alone."""

from __future__ import annotations

from typing import Any

from graphveil.federation.agreement import Agreement
from graphveil.federation.guarantees import guarantee_of
from graphveil.federation.setting import MODES
from graphveil.federation.traffic import traffic_of


def planned(agreement: Agreement, nodes: int) -> dict[str, Any]:
    """Return the plan of a run over `nodes` aligned nodes, a tenth of which train."""
    setting = agreement.setting
    publication, traffic = setting.publication, traffic_of(setting, nodes, max(nodes // 10, 1))
    return {
        "run": agreement.name,
        "parties": ", ".join(party.name for party in agreement.parties),
        "mode": setting.mode,
        "what is opened": MODES[setting.mode],
        "publications": setting.publications,
        "epsilon, all publications": setting.epsilon,
        "epsilon, each": publication.per_round,
        "noise, in units of the clip": publication.sigma,
        "nodes": nodes,
        "MB once": traffic.once / 1e6,
        "MB a round": traffic.round / 1e6,
        "MB in all": traffic.total(setting.publications) / 1e6,
        "guarantee": guarantee_of(setting).sentence(),
    }
