"""Which program each party runs in each mode: one place for simulations and for runs over the network."""

from __future__ import annotations

from typing import TypeAlias

from graphveil.federation.core.context import RunContext
from graphveil.federation.core.networks import Combination
from graphveil.federation.effects import Program
from graphveil.federation.modes.guesses import GuessingHolder, guessing_holder, guessing_server
from graphveil.federation.modes.holder import EmbeddingHolder, Holding, holder
from graphveil.federation.modes.linear import LinearHolder, linear_holder
from graphveil.federation.modes.linear_server import LinearNetwork, linear_server
from graphveil.federation.modes.server import server

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
