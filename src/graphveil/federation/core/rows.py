"""Which rows train and which validate; public, as the label holder announces them before anything is multiplied.

    train        published in every round            R times
    validation   published every few rounds          ceil(R / every) times
    rest         published once, when all is done    once

The same epsilon for each row: what is published seldom needs little noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from graphveil.errors import DataError
from graphveil.federation.core.publisher import Publisher
from graphveil.federation.core.setting import Setting
from graphveil.federation.crypto.masks import MaskKey
from graphveil.federation.effects import Program, Receive

GROUPS = TRAIN, VALIDATION, REST = "train", "validation", "rest"


def times_of(setting: Setting) -> dict[str, int]:
    """Return how often each group of rows is published."""
    return {TRAIN: setting.publications, VALIDATION: setting.looked, REST: 1}


def publishers_of(setting: Setting, key: MaskKey) -> dict[str, Publisher]:
    """Return a holder's publishers, by group of rows; all draw under labels of their own.

    Args:
        key: of all their noise.
    """
    return {group: Publisher(setting.published(count), key) for group, count in times_of(setting).items()}


class PublishesRows:
    """A holder that publishes its rows by group.

    Attributes:
        publishers: group of rows -> counts publications and draws noise.
    """

    publishers: Mapping[str, Publisher]

    @property
    def publisher(self) -> Publisher:
        """Of those who train: nobody's rows are published more often."""
        return self.publishers[TRAIN]

    @property
    def spent(self) -> float:
        """The epsilon of a row so far, at most: a row stands in one group."""
        return max(publisher.spent for publisher in self.publishers.values())


@dataclass(frozen=True)
class Rows:
    """Numbers of nodes, int64: who trains, who validates; of n nodes.

    Raises:
        DataError: a number is no node's, or stands twice.
    """

    nodes: int
    train: Tensor
    validation: Tensor

    def __post_init__(self) -> None:
        some = self.some
        if len(some) and not (int(some.min()) >= 0 and int(some.max()) < self.nodes):
            raise DataError("a row that trains or validates does not exist", where="label holder")
        if len(torch.unique(some)) != len(some):
            raise DataError("a row trains or validates twice", where="label holder")

    @property
    def some(self) -> Tensor:
        """Those who train, then those who validate."""
        return torch.cat([self.train, self.validation])

    @property
    def rest(self) -> Tensor:
        """All others, ascending."""
        left = torch.ones(self.nodes, dtype=torch.bool)
        left[self.some] = False
        return left.nonzero().squeeze(1)

    def places(self, group: str) -> slice:
        """Return where a group stands in `some`."""
        trained = len(self.train)
        return slice(0, trained) if group == TRAIN else slice(trained, trained + len(self.validation))

    def of(self, group: str) -> Tensor:
        """Return the nodes of a group."""
        return {TRAIN: self.train, VALIDATION: self.validation}.get(group, self.rest)

    def groups(self, setting: Setting, round: int) -> tuple[str, ...]:
        """Return who is published in a round.

        Args:
            round: from 1.
        """
        return (TRAIN, VALIDATION) if setting.looks(round) and len(self.validation) else (TRAIN,)


def receive_rows(setting: Setting, nodes: int, rows: int = -1) -> Program[Rows]:
    """Wait for the label holder's announcement.

    Args:
        nodes: n.
        rows: how many train; -1 where only the label holder knows.
    """
    train = yield Receive(setting.label_holder, "labelled-rows", (rows,))
    validation = yield Receive(setting.label_holder, "validation-rows", (-1,))
    return Rows(nodes, train, validation)
