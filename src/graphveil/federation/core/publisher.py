"""The one place where a holder's rows leave: clipped, on a grid, with noise that a restart repeats.

    x~ = clip(x, C) + N(0, sigma^2 I)                       price and noise of `publication`
    shrunk = max(0, 1 - (d - 2) sigma^2 C^2 / |x~|^2) x~    James-Stein, positive part: post-processing

Sources: James, Stein, 1961; Baranchik, 1970 (positive part).  Shapes: x [n, d].
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from graphveil.aggregation.grid import quantise
from graphveil.errors import BudgetError
from graphveil.federation.core.dither import Dither
from graphveil.federation.core.publication import Publication
from graphveil.federation.crypto.masks import MaskKey
from graphveil.mechanisms.samplers.rounded_normal import RoundedNormal


def clip_rows(x: Tensor, clip: float) -> Tensor:
    """Return rows [n, d] shortened to length `clip` where they are longer.

    Args:
        x: float [n, d].
        clip: C, above 0.
    """
    lengths = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    # Right to within float32, for rows without noise: where noise is added, `quantise` holds the bound exactly.
    scale: Tensor = lengths.clamp_min(clip).reciprocal() * clip
    return x * scale


def name_of_rows(round: int, groups: Iterable[Tensor]) -> str:
    """Return the name of a publication, a digest of all its rows.

    Args:
        groups: rows before noise, float32 [., d] each.
    """
    digest = hashlib.sha256(f"{round} ".encode())
    for rows in groups:
        digest.update(rows.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()


class Publisher:
    """Publishes a holder's rows.

    The noise is a pseudorandom function of the secret key, the round and the rows: a round that is run again after an
    interruption with the same rows sends the same bytes, and costs nothing more; other rows are another publication.

    Args:
        key: of the noise, fresh from the operating system; kept with the holder's own checkpoints.
        digests: of what was published before, hexadecimal.

    Attributes:
        latest: the name of the latest publication; "" before the first, and without noise.
    """

    def __init__(self, publication: Publication, key: MaskKey, digests: tuple[str, ...] = ()) -> None:
        self.publication, self.key, self.digests, self.latest = publication, key, digests, ""

    def publish(self, x: Tensor, name: str, group: str) -> Tensor:
        """Return clipped noisy rows on the grid, float32 [n, d]: the same bytes for the same arguments and key.

        Args:
            x: embeddings, float32 [n, d].
            name: of the publication, see `name_of_rows`.
            group: who these are, of all that are published with them.

        Raises:
            BudgetError: for more publications than were paid for, before anything is sent.
        """
        if self.publication.public:
            return clip_rows(x.detach(), self.publication.clip)
        publication = self.publication
        # Noise is drawn in whole steps, and added to rows on the grid: sums of floats would leak in their lowest bits.
        grid = quantise(x.detach(), cap=publication.clip, bits=publication.bits, normalise=False).values
        # Of the rows themselves too: under the same name, other rows are another publication.
        digest = hashlib.sha256(f"{name} {group} ".encode() + grid.numpy().tobytes()).hexdigest()
        # Counted before the noise is drawn: a publication that is refused has drawn and sent nothing.
        self.count(digest)
        self.latest = name
        steps = grid + self._noise(digest, tuple(grid.shape))
        scaled: Tensor = steps * (publication.clip * 2.0**-publication.bits)
        return scaled

    def noise_for(self, label: str, state: str, shape: tuple[int, int], dither: Dither) -> Tensor:
        """Return noise alone, ring elements [n, d], for rows that nobody holds: the same for the same label and state.

        Args:
            state: a name of all that the rows depend on, at all holders (see `commitments`).
        """
        return dither.draw(shape, _Keyed(self.key, f"{label} {state}"))

    @property
    def times_published(self) -> int:
        """How many publications were counted so far."""
        return len(self.digests)

    @property
    def spent(self) -> float:
        """The epsilon of all publications so far."""
        return self.publication.spent(self.times_published)

    def count(self, name: str) -> None:
        """Count a publication before it is made, unless it was counted before.

        Args:
            name: a digest of all that its rows depend on, hexadecimal.

        Raises:
            BudgetError: for more publications than were paid for.
        """
        self.latest = name
        # The same rows in the same round have the same noise: sending them again tells nothing more.
        if name in self.digests:
            return
        if self.times_published >= self.publication.rounds:
            what = f"publication {self.times_published + 1} of {self.publication.rounds}"
            raise BudgetError(what, where="embeddings", remedy="agree on more rounds before the next run")
        # Digests and not a number: after a restart only they tell a repetition from a new publication.
        self.digests = (*self.digests, name)

    def _noise(self, label: str, shape: tuple[int, ...]) -> Tensor:
        sigma = self.publication.sigma * 2.0**self.publication.bits
        if sigma == 0.0:
            return torch.zeros(shape)
        normal = RoundedNormal(sigma, math.ceil(self.publication.cut * sigma))
        steps = normal.draw(math.prod(shape), _Keyed(self.key, label))
        return torch.from_numpy(steps).view(shape).float()


class _Keyed:
    """Words that only the key's holder can tell from random ones; the same words for the same label."""

    void = None

    def __init__(self, key: MaskKey, label: str) -> None:
        self._key, self._label, self._calls = key, label, 0

    def uint64(self, count: int) -> np.ndarray:
        self._calls += 1
        # The call's number is in the label: a sampler that draws twice must not be given the same words twice.
        return self._key.expand(f"{self._label} {self._calls}", (count,)).numpy().view(np.uint64)

    def bytes(self, count: int) -> bytes:
        return self.uint64(-(-count // 8)).tobytes()[:count]


def james_stein(x: Tensor, publication: Publication) -> Tensor:
    """Return noisy rows [n, d] shrunk towards 0 by the positive-part James-Stein factor; unchanged for d below 3.

    Args:
        x: noisy rows, float32 [n, d].
        publication: whose noise it is.
    """
    # Negative below three columns, where James and Stein's factor would lengthen rows instead.
    scale = (publication.columns - 2) * (publication.sigma * publication.clip) ** 2
    if scale <= 0:
        return x
    # A row of zeros would divide by zero; it is shrunk to zero all the same.
    return x * (1 - scale / x.square().sum(dim=1, keepdim=True).clamp_min(1e-30)).clamp_min(0)
