"""How likely two people are linked, given what each says about their number of links.

    Pr[i ~ j] = sigmoid(beta_i + beta_j),     beta_i <- ln d_i - ln sum_{j != i} 1 / (e^{beta_i} + e^{-beta_j})

The fixed point gives everyone the expected degree d_i (Chatterjee, Diaconis, Sly, "Random graphs with a given degree
sequence", Annals of Applied Probability 21, 2011, theorem 1.5), as Blink's prior (Zhu, Tan, Xiao, CCS 2023,
arXiv 2309.03190).  People of equal degree have equal beta, so that the rounds run over the G distinct degrees: G^2 a
round instead of n^2, and the very same numbers.  Noise can leave degrees that no graph has, for which beta would run
away: it is held at +-2 ln n.  Of a directed graph only the senders' degrees are known, and the fixed point is closed:
Pr[i -> j] = d_i / (n - 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphveil.errors import InputError
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class DegreePrior:
    """The prior's logit of a pair, out[group[i]] + into[group[j]], float64.

    Attributes:
        degrees: [G] the distinct degrees after clamping, ascending; sizes: [G] how many people have each.
        group: [n] each person's position in `degrees`.
        out, into: [G]; both beta for an undirected graph, and logit(d / (n - 1)) and zeros for a directed one.
        directed: whether pairs are ordered.
    """

    degrees: Tensor
    sizes: Tensor
    group: Tensor
    out: Tensor
    into: Tensor
    directed: bool

    @property
    def nodes(self) -> int:
        """Number of people."""
        return len(self.group)

    def logits(self) -> Tensor:
        """Return ln(Pr / (1 - Pr)) of a link from a person of one group to one of another [G, G]."""
        return self.out[:, None] + self.into


def degree_prior(noisy_degrees: Tensor, *, directed: bool = False, rounds: int = 200) -> DegreePrior:
    """Return the prior of noisy degrees [n], clamped to [1, n - 2]: beyond, no finite beta meets them. Raises
    InputError: for fewer than three people, or a degree that is not a finite number.

    Args:
        rounds: fewer are run where beta stops changing before.
    """
    n = noisy_degrees.numel()
    if noisy_degrees.dim() != 1 or n < 3:
        raise InputError(f"noisy degrees of shape {tuple(noisy_degrees.shape)}", allowed="one for each of 3 or more")
    if noisy_degrees.is_floating_point() and not bool(noisy_degrees.isfinite().all()):
        raise InputError("a noisy degree is not a finite number")
    # Noise can leave a degree of 0 or n, for which the fixed point is at infinity.
    clamped = noisy_degrees.cpu().clamp(1, n - 2)
    degrees, group, sizes = torch.unique(clamped, return_inverse=True, return_counts=True)
    d = degrees.double()
    if directed:
        return DegreePrior(degrees, sizes, group, torch.logit(d / (n - 1)), torch.zeros_like(d), True)
    beta = _fixed_point(d, sizes.double(), rounds, 2 * math.log(n))
    return DegreePrior(degrees, sizes, group, beta, beta, False)


def _fixed_point(degrees: Tensor, sizes: Tensor, rounds: int, limit: float) -> Tensor:
    beta, log_degrees = torch.zeros_like(degrees), degrees.log()
    for _ in range(rounds):
        terms = 1 / (beta.exp()[:, None] + (-beta).exp())
        new = (log_degrees - (terms @ sizes - terms.diagonal()).log()).clamp(-limit, limit)
        if torch.equal(new, beta):
            break
        beta = new
    return beta
