"""What a party needs to resume from a finished round, as named tensors alone: safe to save, nothing to unpickle.

    module/...    parameters         adam/...   step, first and second moments         publisher/...   key and digests

Shares and the noise's key are among them: a holder's checkpoints are secrets of that holder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from graphveil.errors import InputError
from graphveil.federation.core.publisher import Publisher
from graphveil.federation.core.setting import Setting
from graphveil.federation.crypto.masks import MaskKey, as_message
from graphveil.federation.effects import Roster
from graphveil.privacy import Randomness

State = Mapping[str, Tensor]
_DIGEST = 32


def under(prefix: str, state: State) -> dict[str, Tensor]:
    """Return the part of a state whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}


def module_state(prefix: str, module: nn.Module) -> dict[str, Tensor]:
    """Return the parameters of a network, copied: prefix/name -> tensor."""
    return {f"{prefix}/{name}": value.detach().clone() for name, value in module.state_dict().items()}


def load_module(prefix: str, module: nn.Module, state: State) -> None:
    """Set the parameters of a network from a checkpoint; InputError for a state of another network."""
    values = under(f"{prefix}/", state)
    try:
        module.load_state_dict(values)
    except RuntimeError as error:
        raise InputError(
            "this checkpoint belongs to another network", where=prefix, remedy="start a new run"
        ) from error


def adam_state(prefix: str, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return Adam's step, first and second moments of every parameter: prefix/number/name -> tensor."""
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
    state = {}
    for number, parameter in enumerate(parameters):
        for name, value in optimiser.state.get(parameter, {}).items():
            # By number: the parameters' order is fixed by the setting, and torch gives them no names here.
            state[f"{prefix}/{number}/{name}"] = torch.as_tensor(value).clone()
    return state


def load_adam(prefix: str, optimiser: torch.optim.Optimizer, state: State) -> None:
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
    for number, parameter in enumerate(parameters):
        moments = {name: value.clone() for name, value in under(f"{prefix}/{number}/", state).items()}
        if moments:
            optimiser.state[parameter] = moments


def network_state(network: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    return module_state("network", network) | adam_state("adam", optimiser)


def load_network(network: nn.Module, optimiser: torch.optim.Optimizer, state: State) -> None:
    load_module("network", network, state)
    load_adam("adam", optimiser, state)


def publisher_state(publisher: Publisher, prefix: str = "publisher") -> dict[str, Tensor]:
    """Return the noise's key and the digests of what was published."""
    # All digests, also of old rounds: forgetting one would give back a publication that was spent.
    joined = b"".join(bytes.fromhex(digest) for digest in publisher.digests)
    return {f"{prefix}/key": as_message(publisher.key.secret), f"{prefix}/seen": as_message(joined).view(-1, _DIGEST)}


def load_publisher(publisher: Publisher, state: State, prefix: str = "publisher") -> None:
    """Set key and digests, so that a round that runs again costs nothing more and no spend is lost."""
    publisher.key = MaskKey(state[f"{prefix}/key"].numpy().tobytes())
    publisher.digests = tuple(row.numpy().tobytes().hex() for row in state[f"{prefix}/seen"])


def publishers_state(publishers: Mapping[str, Publisher]) -> dict[str, Tensor]:
    """Return the state of a holder's publishers, by group of rows."""
    return {
        name: value
        for group, publisher in publishers.items()
        for name, value in publisher_state(publisher, f"publisher/{group}").items()
    }


def load_publishers(publishers: Mapping[str, Publisher], state: State) -> None:
    """Set the publishers' keys and digests from a checkpoint, by group of rows."""
    for group, publisher in publishers.items():
        load_publisher(publisher, state, f"publisher/{group}")


@dataclass(frozen=True)
class RunContext:
    """One party's run.

    Attributes:
        me: the party's name.
        randomness: of shares, keys and noise; the secure source except in tests.
        generator: of initial weights and dropout; protects nobody.
        done: how many rounds are finished.
        state: of the last checkpoint; None where the run begins.
    """

    me: str
    setting: Setting
    randomness: Randomness
    generator: torch.Generator = field(default_factory=torch.Generator)
    done: int = 0
    state: State | None = None

    @property
    def roster(self) -> Roster:
        return Roster(self.me, self.setting.names, self.setting.server)

    @property
    def rounds_left(self) -> range:
        """The rounds of publications that are not finished."""
        # Finished rounds are not run again: their epsilon is spent, and nobody waits for their messages.
        return range(self.done + 1, self.setting.publications + 1)
