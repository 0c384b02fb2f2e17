"""The context of a party's program: its name, the setting, its randomness, and where it resumes."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from graphveil.federation.core.setting import Setting
from graphveil.federation.core.states import State
from graphveil.federation.effects import Roster
from graphveil.privacy import Randomness


@dataclass(frozen=True)
class RunContext:
    """One party's run.

    Attributes:
        me: this party's name. setting: the agreed one.
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
        """All holders as this one sees them."""
        return Roster(self.me, self.setting.names, self.setting.server)

    @property
    def other_holders(self) -> tuple[str, ...]:
        """The other holders' names in order."""
        return self.roster.other_holders

    @property
    def rounds_left(self) -> range:
        """The numbers of the rounds that are not finished: all holders publish once in each."""
        # Finished rounds are not run again: their noise is spent, and nobody waits for their messages.
        return range(self.done + 1, self.setting.publications + 1)
