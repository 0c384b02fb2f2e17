"""Which program each party runs in each mode: one place for simulations and for runs over the network."""

from __future__ import annotations

from typing import Any

import torch

from graphveil.federation.core.setting import Setting
from graphveil.federation.core.states import State
from graphveil.federation.crypto.products import Talk
from graphveil.federation.modes.guesses import guessing_holder, guessing_server
from graphveil.federation.modes.holder import Holding, holder
from graphveil.federation.modes.linear import linear_holder
from graphveil.federation.modes.linear_server import linear_server
from graphveil.federation.modes.server import server
from graphveil.privacy import Randomness


def holding_program(
    me: str,
    setting: Setting,
    holding: Holding,
    *,
    randomness: Randomness,
    generator: torch.Generator,
    done: int = 0,
    state: State | None = None,
) -> Talk:
    """Return a holder's program; arguments as of `holder`."""
    kept: dict[str, Any] = {"randomness": randomness, "done": done, "state": state}
    if setting.mode == "guesses":
        return guessing_holder(me, setting, holding, **kept)
    if setting.mode == "shared-linear":
        return linear_holder(me, setting, holding, **kept)
    return holder(me, setting, holding, generator=generator, **kept)


def serving(
    setting: Setting,
    nodes: int,
    rows: int,
    *,
    randomness: Randomness,
    generator: torch.Generator,
    done: int = 0,
    state: State | None = None,
) -> Talk:
    """Return the server's program; arguments as of `server`."""
    serve = {"guesses": guessing_server, "shared-linear": linear_server}.get(setting.mode, server)
    return serve(setting, nodes, rows, randomness=randomness, generator=generator, done=done, state=state)
