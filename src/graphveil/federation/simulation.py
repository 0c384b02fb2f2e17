"""All parties of a federation in one process: the same programs as over the network, for experiments and tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from graphveil.federation.core.context import RunContext
from graphveil.federation.core.messages import Transcript
from graphveil.federation.core.programs import simulate
from graphveil.federation.core.setting import Setting
from graphveil.federation.effects import Program, Watch
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.labels import LabelHead
from graphveil.federation.modes.registry import HolderResult, ServerResult, mode_holder, mode_server
from graphveil.privacy import Randomness


@dataclass(frozen=True)
class Trained:
    """The results of all parties' programs, and all messages.

    Attributes:
        server: the server's network. holders: by name, the result of each holder's program.
    """

    server: ServerResult
    holders: Mapping[str, HolderResult]
    transcript: Transcript


def head_of(holdings: Mapping[str, Holding]) -> LabelHead:
    """Return the label holder's head."""
    return next(holding.head for holding in holdings.values() if holding.head is not None)


def party_programs(
    contexts: Mapping[str, RunContext], holdings: Mapping[str, Holding]
) -> dict[str, Program[HolderResult | ServerResult]]:
    """Start the programs of all parties, without alignment.

    Args:
        contexts: by name, the server's and every holder's.
        holdings: by name, each holder's data, rows in one order; the label holder's head is open.

    Returns:
        By name, the server first, in the order of the agreement.
    """
    setting = next(iter(contexts.values())).setting
    nodes, rows = next(iter(holdings.values())).nodes, int(head_of(holdings).train.sum())
    programs: dict[str, Program[HolderResult | ServerResult]] = {}
    programs[setting.server] = mode_server(contexts[setting.server], nodes, rows)
    for name in setting.names:
        programs[name] = mode_holder(contexts[name], holdings[name])
    return programs


def simulate_training(
    setting: Setting,
    holdings: Mapping[str, Holding],
    *,
    randomness: Randomness,
    seed: int = 0,
    watch: Watch | None = None,
) -> Trained:
    """Run the server and all holders.

    Args:
        holdings: by name, each holder's data, rows in one order.
        randomness: of shares, keys and noise.
        seed: of initial weights and dropout, never of shares and noise.
        watch: called with a party's name and each of its effects.
    """
    generator = torch.Generator().manual_seed(seed)
    head_of(holdings).open(setting, randomness=randomness, generator=generator)
    contexts = {name: RunContext(name, setting, randomness, generator) for name in (setting.server, *setting.names)}
    programs = party_programs(contexts, holdings)
    # Dropout draws from torch's global generator: forked, so that a simulation leaves the caller's as it is.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        results, transcript = simulate(programs, watch=watch)
    server = results.pop(setting.server)
    return Trained(server, results, transcript)
