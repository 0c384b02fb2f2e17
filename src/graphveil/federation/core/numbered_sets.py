"""A guess as the number of a set of classes: subset selection whose report is one whole number, as a guess's is.

    number      index of the set among all sets of k of the c classes, in the order of `itertools.combinations`
    k           by least variance of the estimate; 1 is randomized response: one class tells most

With little epsilon and many classes a set of several classes tells more than one class does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from graphveil.mechanisms import SubsetSelection
from graphveil.mechanisms.labels.subset_selection import best_size
from graphveil.privacy import Randomness

#: More sets than these are not numbered: fewer classes are named then.
MOST_SETS = 4_000


@dataclass(frozen=True)
class NumberedSets:
    """Sends the number of a random set of classes that holds the guess more often than chance.

    Args:
        epsilon: finite and positive. classes: c. size: k, from 2 to c - 1.
    """

    epsilon: float
    classes: int
    size: int

    @property
    def selection(self) -> SubsetSelection:
        """The mechanism, whose law and price are those of the number."""
        return SubsetSelection(epsilon=self.epsilon, classes=self.classes, size=self.size)

    def transition(self) -> Tensor:
        """Pr[number = column | guess = row], float64 [c, sets]; exact: it uses the sampler's own integers."""
        return _transition(self)

    def randomize(self, guesses: Tensor, *, randomness: Randomness) -> Tensor:
        """Return the number that is sent for each guess, int64 [n].

        Args:
            guesses: int64 [n], each in 0..c-1.
        """
        # A number tells what the set tells: the order of all sets is public.
        keys = _keys(self.selection.every_report().members, self.classes)
        sent = self.selection.randomize(guesses, randomness=randomness)
        return torch.searchsorted(keys, _keys(sent.members, self.classes))

    @property
    def keep(self) -> float:
        """The probability that the set holds the guess."""
        return self.selection.law.keep


def size_of_sets(epsilon: float, classes: int) -> int:
    """Return how many classes a report names, so that they can be numbered.

    Args:
        epsilon: of a guess, above 0; inf names the guess alone. classes: c.
    """
    size = 1 if math.isinf(epsilon) else best_size(epsilon, classes)
    # Fewer classes than would be best tell a little less, and are as private.
    while size > 1 and math.comb(classes, size) > MOST_SETS:
        size -= 1
    return size


@lru_cache(maxsize=64)
def _transition(sets: NumberedSets) -> Tensor:
    # Depends on public numbers alone, so that a cache tells nothing.
    selection = sets.selection
    return torch.from_numpy(selection.evidence(selection.every_report())).T.exp()


def _keys(members: Tensor, classes: int) -> Tensor:
    """One number for each ascending row [n, k], which rises in the order of combinations."""
    places = classes ** torch.arange(members.shape[1] - 1, -1, -1)
    return (members.long() * places).sum(dim=1)
