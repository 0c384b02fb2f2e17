"""The setting that all parties agree on before a run, with its publications, products and prices."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import TypeAlias

import torch
from torch import Tensor, nn

from graphveil.errors import InputError
from graphveil.federation.core.dither import Bounds, Dither
from graphveil.federation.core.mode import MODE_OF, Mode
from graphveil.federation.core.networks import AGGREGATORS, COMBINES
from graphveil.federation.core.person import PersonPrice
from graphveil.federation.core.publication import Guessing, Publication
from graphveil.federation.core.rate import Rate
from graphveil.federation.crypto.ring import FRACTION_BITS
from graphveil.federation.crypto.sharing import PARTIES
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.runtime.checks import require_choice, require_whole
from graphveil.runtime.words import count_of

#: What each mode opens to whom, as printed with every guarantee.
MODES: Mapping[str, str] = MappingProxyType({name: mode.opens.sentence for name, mode in MODE_OF.items()})
#: The unit of epsilon: one published row or guess, or one person at one holder.
UNITS = ("publication", "person")
#: Paper mode is refused where the number of opened projections reaches this share of a holder's columns.
# As many projections as columns give the features away; of sparse and binary columns fewer do.
RELEASE_SHARE = 0.25
_MAX_COUNT = 1_000_000
#: Connections a node for which a holder's graph has room in mode "shared-linear", where nothing else is agreed.
ENTRIES = 8
#: On shares all layers but the first descend at 2^-4 of its rate: faster, values leave the range of the polynomials.
_HALVINGS = 4
#: The value of an option: a flag, a whole number, a number (inf too) or a word.
Option: TypeAlias = bool | int | float | str


def room_for(edges: int, nodes: int) -> int:
    """Return for how many connections a node a holder declares room: a power of two, which reveals little of the count.

    Args:
        edges: how many the holder has, in both directions.
    """
    return 1 << max(2, math.ceil(math.log2((edges + nodes) / nodes)))


@dataclass(frozen=True)
class Member:
    """One data holder, by public facts.

    Attributes:
        entries: for how many connections a node, itself counted, its part of the graph has room on shares.
    """

    name: str
    columns: int
    labels: bool = False
    entries: int = ENTRIES


@dataclass(frozen=True)
class Model:
    """The networks.

    Attributes:
        aggregator, combine: of `networks.AGGREGATORS` and `networks.COMBINES`.
        width, hops: h and K.
        layers, dropout: of the server's network.
    """

    aggregator: str = "sage"
    combine: str = "mean"
    width: int = 64
    hops: int = 2
    layers: int = 1
    dropout: float = 0.5


@dataclass(frozen=True)
class Training:
    """How long and how fast.

    Attributes:
        learning_rate, weight_decay: of Adam at every party.
        shared_rate, momentum: of the shared first layer, which is trained by plain descent.
        epochs: steps of the server's network; every `republish` of them the holders train and publish anew.
        validate: every how many publications validation nodes are scored.
    """

    learning_rate: float = 0.01
    weight_decay: float = 1e-3
    shared_rate: float = 20.0
    momentum: float = 0.9
    epochs: int = 200
    republish: int = 1
    validate: int = 10

    def optimiser(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Adam:
        return torch.optim.Adam(parameters, lr=self.learning_rate, weight_decay=self.weight_decay)

    @property
    def publications(self) -> int:
        """How often holders publish, in modes in which they publish in rounds."""
        return math.ceil(self.epochs / self.republish)


@dataclass(frozen=True)
class Privacy:
    """The budgets, and the preparation of rows for noise.

    Attributes:
        epsilon, delta: of all publications of one holder together; inf is no privacy against whoever reads them.
        clip: C, how long a published row may be.
        shrink: whether the server shrinks noisy rows (`james_stein`).
        epsilon_y: labels go through randomized response once at the label holder; inf: others can learn them.
        unit: one of UNITS; "person" in mode guesses alone.
        degree_bound: with unit person, how many entries are read of the list of each who trains; 0: connections are
            not read.
    """

    epsilon: float = math.inf
    delta: float = 1e-4
    clip: float = 1.0
    shrink: bool = False
    epsilon_y: float = math.inf
    unit: str = "publication"
    degree_bound: int = 0


@dataclass(frozen=True)
class Protocol:
    """How the parties work together.

    Attributes:
        mode: one of MODES.
        bits: f, fraction bits of shared numbers.
        opened: the acknowledgement that paper mode opens more than a quarter of a holder's columns.
    """

    mode: str = "shared-linear"
    bits: int = FRACTION_BITS
    opened: bool = False


_GROUPS: Mapping[str, type[Protocol] | type[Model] | type[Training] | type[Privacy]] = MappingProxyType(
    {"protocol": Protocol, "model": Model, "training": Training, "privacy": Privacy}
)


#: Option -> its group, in the order of agreement files, which are signed byte by byte.
_GROUP_OF: Mapping[str, str] = MappingProxyType(
    {"mode": "protocol"}
    | {field.name: group for group in ("model", "training", "privacy") for field in fields(_GROUPS[group])}
    | {"bits": "protocol", "opened": "protocol"}
)
#: Every option of a setting by the name that files and callers use, with its default, in the order of agreement files.
OPTIONS: Mapping[str, Option] = MappingProxyType(
    {name: getattr(_GROUPS[group](), name) for name, group in _GROUP_OF.items()}
)


@dataclass(frozen=True)
class Setting:
    """The agreed run; public.

    Attributes:
        members: the holders in the order that concatenation uses; exactly one holds the labels.

    Raises:
        InputError: for a value outside its range, or members that make no federation.

    Example:
        >>> setting = Setting.of((Member("bank", 3, labels=True), Member("shop", 5)), 2, epsilon=8.0, epochs=40)
        >>> setting.columns, setting.publications, round(setting.publication.sigma, 2)
        (8, 40, 6.87)
    """

    members: tuple[Member, ...]
    classes: int
    protocol: Protocol = Protocol()
    model: Model = Model()
    training: Training = Training()
    privacy: Privacy = Privacy()
    server: str = "server"

    @staticmethod
    def of(members: Sequence[Member], classes: int, *, server: str = "server", **options: Option) -> Setting:
        """Build a setting from options by the names of OPTIONS; InputError as for the class, and for unknown names.

        Args:
            members: the holders in order.
            options: those that are not at their defaults.
        """
        require_options(options)
        groups = {
            group: kind(**{name: value for name, value in options.items() if _GROUP_OF[name] == group})  # type: ignore[arg-type]
            for group, kind in _GROUPS.items()
        }
        return Setting(tuple(members), classes, server=server, **groups)  # type: ignore[arg-type]

    @property
    def options(self) -> dict[str, Option]:
        """Every option with its value, in the order of agreement files."""
        return {name: getattr(getattr(self, group), name) for name, group in _GROUP_OF.items()}

    def with_options(self, **options: Option) -> Setting:
        """Return the setting with other values of some options; InputError for an unknown option or value."""
        return Setting.of(self.members, self.classes, server=self.server, **{**self.options, **options})

    def __post_init__(self) -> None:
        self._require_members()
        require_choice(MODES, mode=self.protocol.mode)
        require_choice(AGGREGATORS, aggregator=self.model.aggregator)
        require_choice(COMBINES, combine=self.model.combine)
        require_choice(UNITS, unit=self.privacy.unit)
        training = {name: getattr(self.training, name) for name in ("epochs", "republish", "validate")}
        model = {"width": self.model.width, "hops": self.model.hops}
        require_whole(1, _MAX_COUNT, **model, **training, classes=self.classes)
        if self.mode.opens_layer:
            opened = self.model.width * self.publications
            for member in self.members:
                if opened >= RELEASE_SHARE * member.columns and not self.protocol.opened:
                    raise InputError(
                        f"paper mode opens {opened} projections of {member.name}'s {member.columns} columns: a holder "
                        "can solve for the features",
                        allowed=f"fewer than {math.ceil(RELEASE_SHARE * member.columns)}",
                        remedy="choose mode shared-linear or individual, or acknowledge it: --set opened=true",
                    )
        # A row that is trained on neighbours and on gradients of all rounds has no bound for a person.
        if self.per_person and not self.mode.guesses:
            raise InputError(f"unit person in mode {self.mode.name}", allowed="mode guesses")
        if self.privacy.degree_bound and not self.per_person:
            raise InputError(f"degree_bound is {self.privacy.degree_bound}", allowed="with unit person")
        # Built for their checks: what no noise, channel or ring can do is refused before anybody's data is read.
        _ = self.price, self.label_channel
        if self.mode.opens_sum:
            _ = self.bounds
        self._require_arithmetic()

    @property
    def mode(self) -> Mode:
        """How the parties work together."""
        return MODE_OF[self.protocol.mode]

    @property
    def names(self) -> tuple[str, ...]:
        """The holders' names in order."""
        return tuple(member.name for member in self.members)

    @property
    def columns(self) -> int:
        """d, feature columns of all holders together."""
        return sum(member.columns for member in self.members)

    @cached_property
    def blocks(self) -> dict[str, slice]:
        """Each holder's columns of all columns side by side."""
        ends = itertools.accumulate(member.columns for member in self.members)
        return {member.name: slice(end - member.columns, end) for member, end in zip(self.members, ends, strict=True)}

    @property
    def label_holder(self) -> str:
        """The name of the holder of the labels."""
        return next(member.name for member in self.members if member.labels)

    @property
    def publications(self) -> int:
        """R, how often every holder publishes."""
        return 1 if self.mode.guesses else self.training.publications

    @property
    def rounds(self) -> int:
        """Rounds of a run, with R publications:

        guesses        1 + R      labels are given first
        shared-linear  R + 1 + 1  then the rest is multiplied, and published
        others         R + 1      then the rest is published
        """
        return self.publications + self.mode.rounds_after

    def validates(self, round: int) -> bool:
        """Return whether validation nodes are scored in a round, from 1."""
        return round % self.training.validate == 0 or round == self.publications

    @property
    def validations(self) -> int:
        """The number of publications at which validation nodes are scored."""
        return math.ceil(self.publications / self.training.validate)

    @property
    def entries(self) -> dict[str, int]:
        """Holder -> for how many connections a node, itself counted, its graph has room."""
        return {member.name: member.entries for member in self.members}

    @cached_property
    def publication(self) -> Publication:
        """The price and noise of one holder's publications."""
        return self.publication_of(self.publications)

    def publications_of(self, holder: object) -> int:
        """Return how often a holder of this name publishes: never, where it reads the others' guesses."""
        return 0 if self.mode.guesses and holder == self.label_holder else self.publications

    def publication_of(self, times: int) -> Publication:
        """Return the price and noise of rows that one holder publishes some times, for the whole epsilon.

        Args:
            times: how often.
        """
        privacy = self.privacy
        return _publication(privacy.epsilon, privacy.delta, times, self.model.width, privacy.clip)

    def dither_of(self, publication: Publication) -> Dither | None:
        """Return the noise that each holder adds to what mode "shared-linear" opens; None where epsilon is inf."""
        return None if publication.public else Dither(publication, 2 * self.protocol.bits, len(self.members))

    @cached_property
    def bounds(self) -> Bounds:
        """The bounds on lengths of rows and weights in mode "shared-linear"."""
        dithers = [self.dither_of(self.publication_of(times)) for times in {self.publications, self.validations, 1}]
        # The shortest of all: one W makes the rows of each kind.
        longest = min((dither.longest for dither in dithers if dither is not None), default=math.inf)
        return Bounds(len(self.members), self.columns, self.model.width, self.model.hops, self.protocol.bits, longest)

    @property
    def guessing(self) -> Guessing:
        """The price and noise of one holder's guesses."""
        return Guessing.best(self.privacy.epsilon, self.classes)

    @property
    def per_person(self) -> bool:
        """Whether epsilon is the price of one person at one holder."""
        return self.privacy.unit == "person"

    @cached_property
    def person_price(self) -> PersonPrice:
        """The price and noise of one person at one holder."""
        columns = max(member.columns for member in self.members if not member.labels)
        privacy = self.privacy
        return PersonPrice(privacy.epsilon, privacy.delta, self.classes, columns, privacy.degree_bound)

    @property
    def price(self) -> Publication | Guessing | PersonPrice:
        """What one holder's publications cost in this mode."""
        if self.per_person:
            return self.person_price
        return self.guessing if self.mode.guesses else self.publication

    @property
    def label_channel(self) -> Tensor:
        """Pr[reported label = column | true label = row] of the training labels, float32 [c, c]."""
        return Guessing(self.privacy.epsilon_y, self.classes).channel.float()

    @property
    def rates(self) -> tuple[Rate, Rate]:
        """The rates of descent in mode "all-shares": of the first layer, and of all others on shares."""
        return Rate.of(self.training.shared_rate), Rate.of(self.training.shared_rate, _HALVINGS)

    def steps(self, round: int) -> int:
        """Return how many steps the server's network takes in round 1..R."""
        return min(self.training.republish, self.training.epochs - (round - 1) * self.training.republish)

    def _require_members(self) -> None:
        names = self.names
        least, most = PARTIES
        if not least <= len(names) <= most:
            raise InputError(count_of(len(names), "holder"), allowed=f"{least} to {most}")
        if len({*names, self.server}) != len(names) + 1:
            raise InputError(f"names {', '.join([*names, self.server])}", allowed="a different name for every party")
        for member in self.members:
            require_whole(1, _MAX_COUNT, member.name, entries=member.entries)
        if sum(member.labels for member in self.members) != 1:
            raise InputError("none or several holders have the labels", allowed="exactly one label holder")

    def _require_arithmetic(self) -> None:
        """Refuse options for which the mode has no arithmetic."""
        if math.isfinite(self.privacy.epsilon) and not self.mode.noisy:
            raise InputError(
                f"epsilon {rounded_up(self.privacy.epsilon)} in mode {self.mode.name}, which publishes nothing with "
                "noise",
                allowed="inf",
                remedy="take mode guesses, shared-linear or individual for a finite epsilon",
            )
        for name in self.mode.fixed:
            if self.options[name] != OPTIONS[name]:
                raise InputError(f"{name} is {self.options[name]} in mode {self.mode.name}", allowed=str(OPTIONS[name]))
        if self.mode.opens_hidden:
            _ = self.rates


def require_options(names: Iterable[str], where: str | None = None) -> None:
    """Refuse names that are no option of a setting: InputError.

    Args:
        where: which caller or file gave them, for the message.
    """
    for name in names:
        if name not in OPTIONS:
            raise InputError(f"setting {name!r} is not known", where=where, allowed=", ".join(OPTIONS))


@lru_cache(maxsize=64)
def _publication(epsilon: float, delta: float, rounds: int, columns: int, clip: float) -> Publication:
    # Cached, because each new value costs a search for its noise; arguments are public numbers alone.
    return Publication(epsilon, delta, rounds, columns, clip)
