"""All parties of a federation in one process: the same programs as over the network, for experiments and tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import torch

from graphveil.federation.core.messages import Transcript
from graphveil.federation.core.networks import Combination
from graphveil.federation.core.programs import simulate
from graphveil.federation.core.setting import Setting
from graphveil.federation.core.states import RunContext
from graphveil.federation.effects import Program, Watch
from graphveil.federation.modes.guesses import GuessingHolder, guessing_holder, guessing_server
from graphveil.federation.modes.holder import EmbeddingHolder, Holding, holder, server
from graphveil.federation.modes.labels import LabelHead
from graphveil.federation.modes.linear import LinearHolder, LinearNetwork, linear_holder, linear_server
from graphveil.privacy import Randomness

#: What a holder's program returns: its publisher, at the label holder its head, and what the mode trains.
HolderResult: TypeAlias = EmbeddingHolder | GuessingHolder | LinearHolder
#: What the server's program returns: its network, where it has one.
ServerResult: TypeAlias = Combination | LinearNetwork | None


def mode_holder(run: RunContext, holding: Holding) -> Program[HolderResult]:
    """Run a holder's program of the agreed mode.

    Args:
        run: the holder's run. holding: its features and edges, rows in the order that all share.
    """
    if run.setting.protocol.mode == "guesses":
        return (yield from guessing_holder(run, holding))
    if run.setting.protocol.mode == "shared-linear":
        return (yield from linear_holder(run, holding))
    return (yield from holder(run, holding))


def mode_server(run: RunContext, nodes: int, rows: int) -> Program[ServerResult]:
    """Run the server's program of the agreed mode; return its network, None in mode "guesses".

    Args:
        run: the server's run.
        nodes: n, rows that all holders share. rows: how many of them train; -1 where only the label holder knows.
    """
    if run.setting.protocol.mode == "guesses":
        yield from guessing_server(run)
        return None
    if run.setting.protocol.mode == "shared-linear":
        return (yield from linear_server(run, nodes, rows))
    return (yield from server(run, nodes, rows))


@dataclass(frozen=True)
class Trained:
    """The results of all parties' programs, holders' by name, and all messages."""

    server: ServerResult
    holders: Mapping[str, HolderResult]
    transcript: Transcript


def head_of(holdings: Mapping[str, Holding]) -> LabelHead:
    return next(holding.head for holding in holdings.values() if holding.head is not None)


def party_programs(
    contexts: Mapping[str, RunContext], holdings: Mapping[str, Holding]
) -> dict[str, Program[HolderResult | ServerResult]]:
    """Start the programs of all parties, without alignment; by name, the server first, in the order of the agreement.

    Args:
        contexts: by name, the server's and every holder's.
        holdings: by name, each holder's data, rows in one order; the label holder's head is open.
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
        holdings: by name, each holder's data, rows in one order. randomness: of shares, keys and noise.
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
