"""All parties of a federation in one process: the same programs as over the network, for experiments and tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from graphveil.federation.core.messages import Transcript
from graphveil.federation.core.programs import Program, Watch, simulate
from graphveil.federation.core.setting import Setting
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.registry import holding_program, serving
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
    common: Any = {"randomness": randomness, "generator": generator}
    programs: dict[str, Program] = {setting.server: serving(setting, nodes, int(desk.train.sum()), **common)}
    programs |= {name: holding_program(name, setting, holdings[name], **common) for name in setting.names}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        results, transcript = simulate(programs, watch=watch)
    return Trained(results, transcript)
