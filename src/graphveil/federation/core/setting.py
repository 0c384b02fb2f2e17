"""What all parties agree on before a run, and what follows from it: publications, products, prices.

individual     h0^i = X_i W_i at each holder; nothing of it leaves
paper          h0 = sum_i X_i W_i on shares, opened to every holder each round
shared-linear  z = S^K X W on shares, S the mean of all holders' graphs, their sum opened to the server, noise within
guesses        each holder trains alone; one randomized guess of each node's class goes to the label holder, once
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from torch import Tensor

from graphveil.errors import InputError
from graphveil.federation.core.bounds import Bounds
from graphveil.federation.core.dither import Dither
from graphveil.federation.core.networks import AGGREGATORS, COMBINES
from graphveil.federation.core.publication import Guessing, Publication
from graphveil.federation.crypto.ring import FRACTION_BITS
from graphveil.federation.crypto.sharing import PARTIES
from graphveil.privacy.assumption import OPENS

#: What each mode opens to whom, as printed wherever a guarantee is shown.
MODES: Mapping[str, str] = MappingProxyType({mode: fact.sentence for mode, fact in OPENS.items()})
#: Paper mode is refused where opened columns reach this share of a holder's columns.
RELEASE_SHARE = 0.25


_MOST = 1_000_000


def _short(value: int) -> str:
    return str(value) if abs(value) < 10**20 else "a number of more than 20 digits"


@dataclass(frozen=True)
class Member:
    """One data holder, by public facts: name, number of feature columns, whether it holds the labels."""

    name: str
    columns: int
    labels: bool = False


@dataclass(frozen=True)
class Setting:
    """The agreed run; public.

    Attributes:
        members: the holders in the order that concatenation uses; exactly one holds the labels.
        classes: number of classes. mode: one of MODES. width: h. hops: K. layers: hidden layers at the server.
        epochs: steps of the server's network; every `republish` of them the holders train and publish anew.
        epsilon, delta, clip: of all publications of one holder together; inf is no privacy against their reader.
            A guess needs no delta and no clip.
        epsilon_y: labels go through randomized response once at the label holder; inf: others can learn them.
        shared_rate, momentum: of the shared first layer, which is trained by plain descent.
        opened: the acknowledgement that paper mode opens more than a quarter of a holder's columns.

    Raises:
        InputError: for a value outside its range, or members that make no federation.
    """

    members: tuple[Member, ...]
    classes: int
    mode: str = "shared-linear"
    aggregator: str = "sage"
    combine: str = "mean"
    width: int = 64
    hops: int = 4
    layers: int = 1
    dropout: float = 0.5
    learning_rate: float = 0.01
    weight_decay: float = 1e-3
    shared_rate: float = 20.0
    momentum: float = 0.9
    epochs: int = 200
    republish: int = 1
    epsilon: float = math.inf
    delta: float = 1e-4
    clip: float = 1.0
    shrink: bool = True
    epsilon_y: float = math.inf
    bits: int = FRACTION_BITS
    opened: bool = False
    server: str = "server"

    def __post_init__(self) -> None:
        names = [member.name for member in self.members]
        least, most = PARTIES
        if not least <= len(names) <= most:
            raise InputError(f"{len(names)} holders", allowed=f"{least} to {most}")
        if len({*names, self.server}) != len(names) + 1:
            raise InputError(f"names {', '.join([*names, self.server])}", allowed="a different name for every party")
        if sum(member.labels for member in self.members) != 1:
            raise InputError("labels are with none or several holders", allowed="exactly one label holder")
        for name, value, known in (
            ("mode", self.mode, tuple(MODES)),
            ("aggregator", self.aggregator, AGGREGATORS),
            ("combine", self.combine, COMBINES),
        ):
            if value not in known:
                raise InputError(f"{name} {value!r} is not known", allowed=", ".join(known))
        for name in ("width", "hops", "epochs", "republish", "classes"):
            if not 1 <= getattr(self, name) <= _MOST:
                raise InputError(
                    f"{name} = {_short(getattr(self, name))}", allowed=f"a whole number from 1 to {_MOST:,}"
                )
        if self.mode == "paper":
            self._require_few_openings()
        _ = self.price, self.label_channel
        if self.mode == "shared-linear":
            _ = self.bounds

    @property
    def names(self) -> tuple[str, ...]:
        """The holders' names in order."""
        return tuple(member.name for member in self.members)

    @property
    def columns(self) -> int:
        """d, feature columns of all holders together."""
        return sum(member.columns for member in self.members)

    @property
    def label_holder(self) -> str:
        """The name of the holder of the labels."""
        return next(member.name for member in self.members if member.labels)

    @property
    def publications(self) -> int:
        """R, how often every holder publishes."""
        return 1 if self.mode == "guesses" else math.ceil(self.epochs / self.republish)

    @property
    def rounds(self) -> int:
        """Rounds of a run: one a publication; mode "guesses" gives labels in a round before."""
        return 2 if self.mode == "guesses" else self.publications

    @cached_property
    def publication(self) -> Publication:
        """The price and noise of one holder's publications."""
        return Publication(self.epsilon, self.delta, self.publications, self.width, self.clip)

    @cached_property
    def dither(self) -> Dither | None:
        """The noise that each holder adds to what mode "shared-linear" opens; None where nothing is protected."""
        return None if self.publication.public else Dither(self.publication, 2 * self.bits, len(self.members))

    @cached_property
    def bounds(self) -> Bounds:
        """How long rows and weights can get in mode "shared-linear"."""
        dither = self.dither
        longest = math.inf if dither is None else dither.longest
        return Bounds(len(self.members), self.columns, self.width, self.hops, self.publications, self.bits, longest)

    @property
    def guessing(self) -> Guessing:
        """The price and noise of one holder's guesses."""
        return Guessing(self.epsilon, self.classes)

    @property
    def price(self) -> Publication | Guessing:
        """What one holder's publications cost in this mode."""
        return self.guessing if self.mode == "guesses" else self.publication

    @property
    def reader(self) -> str:
        """Who reads what holders publish."""
        return "the label holder" if self.mode == "guesses" else "the server"

    @property
    def label_channel(self) -> Tensor:
        """Pr[label as heard = column | true label = row] of the training labels, float32 [c, c]."""
        return Guessing(self.epsilon_y, self.classes).channel.float()

    def steps(self, round: int) -> int:
        """Return how many steps the server's network takes in round 1..R."""
        return min(self.republish, self.epochs - (round - 1) * self.republish)

    def _require_few_openings(self) -> None:
        opened = self.width * self.publications
        for member in self.members:
            if opened >= RELEASE_SHARE * member.columns and not self.opened:
                raise InputError(
                    f"paper mode opens {opened} projections of {member.name}'s {member.columns} columns: a holder "
                    "can solve for the features",
                    allowed=f"fewer than {math.ceil(RELEASE_SHARE * member.columns)}",
                    remedy="choose mode shared-linear or individual, or acknowledge with opened = true",
                )
