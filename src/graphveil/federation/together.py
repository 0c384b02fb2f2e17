"""All parties of a federation in one process: the same programs as over the network, for experiments and tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from graphveil.federation.holder import Holding, holder
from graphveil.federation.linear import linear_holder
from graphveil.federation.linear_server import linear_server
from graphveil.federation.messages import Transcript
from graphveil.federation.programs import Program, Watch, simulate
from graphveil.federation.server import server
from graphveil.federation.setting import Setting
from graphveil.privacy import Randomness


@dataclass(frozen=True)
class Trained:
    """What every party returned, by name, and all messages."""

    results: Mapping[str, Any]
    transcript: Transcript


def train_together(
    setting: Setting,
    holdings: Mapping[str, Holding],
    *,
    randomness: Randomness,
    seed: int = 0,
    watch: Watch | None = None,
) -> Trained:
    """Run the server and all holders.

    Args:
        seed: of initial weights and dropout, never of shares and noise.
    """
    generator = torch.Generator().manual_seed(seed)
    desk = next(held.desk for held in holdings.values() if held.desk is not None)
    desk.open(setting, randomness=randomness, generator=generator)
    nodes = next(iter(holdings.values())).nodes
    rows, linear = int(desk.train.sum()), setting.mode == "shared-linear"
    serve = linear_server if linear else server
    programs: dict[str, Program] = {
        setting.server: serve(setting, nodes, rows, randomness=randomness, generator=generator)
    }
    for name in setting.names:
        if linear:
            programs[name] = linear_holder(name, setting, holdings[name], randomness=randomness)
        else:
            programs[name] = holder(name, setting, holdings[name], randomness=randomness, generator=generator)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        results, transcript = simulate(programs, watch=watch)
    return Trained(results, transcript)
