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


def publications_by_group(setting: Setting) -> dict[str, int]:
    """Return group of rows -> how often it is published."""
    return {TRAIN: setting.publications, VALIDATION: setting.validations, REST: 1}


def publishers_of(setting: Setting, key: MaskKey) -> dict[str, Publisher]:
    """Return a holder's publishers, by group of rows.

    Args:
        key: of the noise of all of them, which each expands under labels of its own.
    """
    return {
        group: Publisher(setting.publication_of(count), key) for group, count in publications_by_group(setting).items()
    }


class PublishesRows:
    """A holder that publishes its rows by group.

    Attributes:
        publishers: group of rows -> its publisher, which counts publications and draws noise.
    """

    publishers: Mapping[str, Publisher]

    @property
    def publisher(self) -> Publisher:
        """The publisher for rows of those who train, which are published most often."""
        return self.publishers[TRAIN]

    @property
    def spent(self) -> float:
        """The largest epsilon that any row has cost so far: each row is in one group."""
        return max(publisher.spent for publisher in self.publishers.values())


@dataclass(frozen=True)
class Rows:
    """Which nodes train and which validate, by their numbers, int64.

    Attributes:
        nodes: n, how many there are.

    Raises:
        DataError: a number is no node's, or appears twice.
    """

    nodes: int
    train: Tensor
    validation: Tensor

    def __post_init__(self) -> None:
        numbers = self.train_val
        if len(numbers) and not (int(numbers.min()) >= 0 and int(numbers.max()) < self.nodes):
            raise DataError("a row that trains or validates does not exist", where="label holder")
        if len(torch.unique(numbers)) != len(numbers):
            raise DataError("a row trains or validates twice", where="label holder")

    @property
    def train_val(self) -> Tensor:
        """Those who train, then those who validate."""
        return torch.cat([self.train, self.validation])

    @property
    def rest(self) -> Tensor:
        """All others, ascending."""
        left = torch.ones(self.nodes, dtype=torch.bool)
        left[self.train_val] = False
        return left.nonzero().squeeze(1)

    def slice_of(self, group: str) -> slice:
        """Return the positions of a group in `train_val`."""
        start = len(self.train)
        return slice(0, start) if group == TRAIN else slice(start, start + len(self.validation))

    def of(self, group: str) -> Tensor:
        """Return the nodes of a group."""
        return {TRAIN: self.train, VALIDATION: self.validation}.get(group, self.rest)

    def groups(self, setting: Setting, round: int) -> tuple[str, ...]:
        """Return the groups whose rows are published in a round.

        Args:
            round: its number, from 1.
        """
        return (TRAIN, VALIDATION) if setting.validates(round) and len(self.validation) else (TRAIN,)


def receive_rows(setting: Setting, nodes: int, rows: int = -1) -> Program[Rows]:
    """Wait for the label holder's announcement of who trains and who validates.

    Args:
        nodes: n.
        rows: how many train; -1 where only the label holder knows.
    """
    train = yield Receive(setting.label_holder, "labelled-rows", (rows,))
    validation = yield Receive(setting.label_holder, "validation-rows", (-1,))
    return Rows(nodes, train, validation)
