"""The programs of each mode and the sizes of what they send: the other half of `core.mode`, by the same names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from torch import Tensor

from graphveil.federation.core.setting import Setting
from graphveil.federation.core.states import RunContext, State
from graphveil.federation.effects import Program
from graphveil.federation.modes import all_shares, embedding_server, guesses_predict, linear_predict
from graphveil.federation.modes.all_shares import all_shares_holder, all_shares_server
from graphveil.federation.modes.guesses import guessing_holder, guessing_server
from graphveil.federation.modes.holder import Holding, holder
from graphveil.federation.modes.joined import Prediction
from graphveil.federation.modes.linear import linear_holder
from graphveil.federation.modes.linear_server import linear_server
from graphveil.federation.modes.traffic import (
    GUESSES,
    LAST,
    ONCE,
    ROUND,
    ROWS,
    SHARES,
    SUMS,
    VALIDATION,
    Sizes,
    Traffic,
)


@dataclass(frozen=True)
class Programs:
    """The programs of a mode.

    Attributes:
        holder, server: of a run, after alignment.
        later_holder, later_server: of a prediction for people who joined after it.
        sizes: of what a run and a prediction send.
    """

    holder: Callable[[RunContext, Holding], Program[Any]]
    server: Callable[[RunContext, int, int], Program[Any]]
    later_holder: Callable[[RunContext, State, Holding, Tensor, Tensor], Program[Prediction]]
    later_server: Callable[[RunContext, State, int], Program[Any]]
    sizes: Sizes


#: Of both modes in which holders publish embeddings.
_EMBEDDINGS: Final = Programs(
    holder,
    embedding_server.embedding_server,
    embedding_server.predicting_holder,
    embedding_server.predicting_server,
    ROWS,
)
_PROGRAMS: Final[Mapping[str, Programs]] = MappingProxyType(
    {
        "individual": _EMBEDDINGS,
        "paper": _EMBEDDINGS,
        "shared-linear": Programs(
            linear_holder, linear_server, linear_predict.predicting_holder, linear_predict.predicting_server, SUMS
        ),
        "guesses": Programs(
            guessing_holder,
            guessing_server,
            guesses_predict.predicting_holder,
            guesses_predict.predicting_server,
            GUESSES,
        ),
        "all-shares": Programs(
            all_shares_holder, all_shares_server, all_shares.predicting_holder, all_shares.predicting_server, SHARES
        ),
    }
)


def programs_of(setting: Setting) -> Programs:
    """Return the programs of the agreed mode."""
    return _PROGRAMS[setting.protocol.mode]


def traffic_of(setting: Setting, nodes: int, rows: int, validation: int | None = None) -> Traffic:
    """Count the bytes of a run after alignment.

    Args:
        nodes: n, rows that all holders share.
        rows: how many of them train.
        validation: how many validate; None: as many as train.
    """
    flows = programs_of(setting).sizes.flows(setting, nodes, rows, rows if validation is None else validation)
    return Traffic(tuple(flows), {ONCE: 1, ROUND: setting.publications, VALIDATION: setting.validations, LAST: 1})


def prediction_traffic(setting: Setting, nodes: int, people: int) -> Traffic:
    """Count the bytes of a prediction after alignment.

    Args:
        nodes: n, rows that all holders share now.
        people: how many of them joined later.
    """
    return Traffic(tuple(programs_of(setting).sizes.flows_later(setting, nodes, people)), {ONCE: 1, LAST: 1})
