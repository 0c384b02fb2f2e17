"""PrivUnit for vectors of bounded length: one codeword of a public random codebook, the closest ones likeliest.

A codebook is a matrix of independent standard normal numbers, which devices and server expand from one public seed by
AES-256 of a counter, a generator that both sides can enter anywhere. It hides nothing: who knows the seed (everybody)
knows all codebooks, and the noise that protects comes from a `Randomness`. The numbers are whole multiples of 2^-16, so
that products with vectors of whole multiples of 2^-24 are exact in any order of summation: every machine finds the same
codewords closest.

Source: see `caps` for the law; H. Asi et al., "Fast Optimal Locally Private Mean Estimation via Random Projections",
NeurIPS 2023, https://arxiv.org/abs/2306.04444 (projecting to a few random directions first loses next to nothing).
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from graphveil.errors import InputError
from graphveil.mechanisms.base import _validate
from graphveil.mechanisms.base.mechanism import FeatureMechanism
from graphveil.mechanisms.base.reports import NamedTensors, require_inside
from graphveil.mechanisms.base.values import FloatArray, Rows, Values, blocks
from graphveil.mechanisms.samplers.caps import CapLaw, Places, cap_law
from graphveil.privacy import Guarantee, Randomness, assume, require_randomness
from graphveil.runtime.checks import require_whole
from graphveil.runtime.late import special, torch

if TYPE_CHECKING:
    from torch import Tensor

UNIT: Final = 2.0**16
LAST_CODEBOOK: Final = 2**31 - 1
_CIPHER_BLOCK: Final = 16
_PER_BLOCK: Final = _CIPHER_BLOCK // 2  # numbers of a block, each looked up by two bytes

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Codebooks:
    """The codebooks 0..2^31 - 1, each of `rows` (at most 2^15) vectors with `width` (at most 2^20) coordinates."""

    seed: int
    rows: int
    width: int

    def matrices(self, numbers: Numbers) -> FloatArray:
        """The codebooks of these numbers [n, rows, width], times `UNIT`."""
        # Vectors are numbered through all codebooks, so that each can be expanded without those before it.
        first = np.repeat(numbers.astype(np.uint64) * np.uint64(self.rows), self.rows).reshape(-1, self.rows)
        vectors = self._expand((first + np.arange(self.rows, dtype=np.uint64)).ravel())
        return vectors.reshape(len(numbers), self.rows, self.width)

    def vectors(self, numbers: Numbers, rows: Numbers) -> FloatArray:
        """One vector of each of these codebooks [n, width], times `UNIT`.

        Args:
            numbers: int64 [n], which codebooks.
            rows: int64 [n], which vector of each.
        """
        return self._expand(numbers.astype(np.uint64) * np.uint64(self.rows) + rows.astype(np.uint64))

    def _expand(self, places: npt.NDArray[np.uint64]) -> FloatArray:
        """The vectors at these places, counted through all codebooks."""
        blocks = -(-self.width // _PER_BLOCK)
        counters = np.zeros((len(places), blocks, 2), ">u8")
        counters[:, :, 1] = places[:, None] * np.uint64(blocks) + np.arange(blocks, dtype=np.uint64)
        # Encrypting distinct counters block by block is counter mode, started at many counters in one call. The label
        # in the key gives other bits than reproducible noise with the same seed has.
        key = hashlib.sha256(b"graphveil/public-codebooks/1:%d" % self.seed).digest()
        cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
        numbers = np.frombuffer(cipher.update(counters.view(np.uint8).data), "<u2").reshape(len(places), -1)
        vectors: FloatArray = _normal()[numbers[:, : self.width]]
        return vectors


@cache
def _normal() -> npt.NDArray[np.float64]:
    """2^16 equally likely numbers times `UNIT` that stand for the standard normal law. They are the means of its 2^16
    quantiles, stretched to variance 1; their fourth moment is that of the normal law up to 2e-4.
    """
    edges = special.ndtri(np.arange(1, 2**16) / 2**16)
    density = np.concatenate([[0.0], np.exp(-(edges**2) / 2) / math.sqrt(2 * math.pi), [0.0]])
    # The mean of a normal variable between two quantiles is the difference of the densities there over its probability.
    means = -(2**16) * np.diff(density)
    numbers: FloatArray = np.rint(means / np.sqrt(np.mean(means**2)) * UNIT)
    return numbers


# Fine enough not to matter, coarse enough for exact products with codewords.
_VECTOR_STEP: Final = 2.0**-24
_MOST_COORDINATES: Final = 2**20
_MOST_CODEWORDS: Final = 2**16
# How many numbers of codebooks are expanded at a time.
_BLOCK: Final = 1 << 16
# Vectors normalised in 32-bit numbers are a little longer than 1.
_SLACK: Final = 1e-6


@dataclass(frozen=True, eq=False)
class CodewordReports(NamedTensors, codewords=("int32", 1), codebooks=("int64", 1)):
    """The codeword that each user chose, int32 [n], and the number of its public codebook, int64 [n]."""

    codewords: Tensor
    codebooks: Tensor

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.codewords.shape != self.codebooks.shape:
            raise InputError(f"{len(self.codewords)} codewords of {len(self.codebooks)} codebooks", where="reports")


@dataclass(frozen=True, kw_only=True)
class PrivUnit(FeatureMechanism[CodewordReports]):
    """Reports which of `codewords` public random vectors is close to the value, seldom truthfully.

    A device subtracts the middle of the range, divides by `radius` and adds one coordinate that makes the length 1: a
    point v of the unit sphere. It projects v on its own m = codewords/2 public random directions g_1..g_m; the
    codewords are +-g_i. It sends one of the t closest with a probability e^eps times that of any other.

    Formal guarantees: epsilon-local privacy for the whole vector under replacement, exactly and for every public seed
    (probabilities are whole multiples of 2^-64, rounded to the private side). Over the public codebooks, which do not
    depend on any value, estimates are unbiased up to 1e-4 of what they estimate.

    Args:
        epsilon: finite and positive, for the whole vector.
        radius: a public bound on the Euclidean distance of every vector from the middle of the range, for vectors that
            are known to be short; default: what the range allows, (high - low) / 2 * sqrt(d).
        codewords: a power of two from 2 to 65,536; default: the fewest, up to 1024, that lose at most 3% of variance.
        public_seed: a whole number of at least 0 that everybody may know, from which the codebooks are made. User i of
            a collection has codebook i (up to 2^31 users); give another collection another seed.

    >>> import torch
    >>> from graphveil.privacy import SeededRandomness
    >>> mechanism = PrivUnit(epsilon=3.0, dimension=4)
    >>> reports = mechanism.randomize(torch.tensor([[0.0, 0.5, 1.0, 1.0]]), randomness=SeededRandomness(7))
    >>> reports.codewords, reports.codebooks
    (tensor([28], dtype=torch.int32), tensor([0]))
    """

    epsilon: float
    dimension: int
    low: float = 0.0
    high: float = 1.0
    radius: float | None = None
    codewords: int | None = None
    public_seed: int = 0

    def __post_init__(self) -> None:
        require_whole(1, _MOST_COORDINATES, dimension=self.dimension)
        widest = self.domain.width / 2 * math.sqrt(self.dimension)
        _validate.require_epsilon(self.epsilon)
        require_whole(0, public_seed=self.public_seed)
        if self.codewords is not None:
            require_whole(2, _MOST_CODEWORDS, codewords=self.codewords)
            # All 2^64 outcomes must be divided among the codewords, which `caps` can do for powers of two.
            if self.codewords.bit_count() != 1:
                raise InputError(f"codewords is {self.codewords}", allowed="a power of two")
        if self.radius is not None and not 0 < self.radius <= widest * (1 + _SLACK):
            raise InputError(f"radius is {self.radius!r}", allowed=f"above 0 and at most {widest:g}")
        if not math.isfinite(self.scale):
            raise InputError(f"the range [{self.low:g}, {self.high:g}] in {self.dimension} dimensions overflows")

    @property
    def length(self) -> float:
        """The bound on the distance of a vector from the middle: `radius`, or what the range allows."""
        return (self.high - self.low) / 2 * math.sqrt(self.dimension) if self.radius is None else self.radius

    @property
    def scale(self) -> float:
        """The factor from a codeword to the estimate: radius / ((inside - outside) sum of the t largest E|w|)."""
        return self.length / self.law.gain

    @property
    def guarantee(self) -> Guarantee:
        features = self.domain.guarantee(self.epsilon)
        public = [assume("codebooks-public")]
        if self.radius is not None:
            public.append(assume("length-public", radius=f"{self.radius:g}"))
        return replace(features, assumes=(*features.assumes, *public))

    @property
    def worst_variance(self) -> float:
        farthest = min(1.0, (self.high - self.low) / 2 / self.length)
        return float(self._spread(np.array([0.0, farthest**2])).max())

    @property
    def report_bytes(self) -> float:
        return math.log2(self.law.codewords) / 8  # which codebook belongs to whom is public

    def open(self, values: Values) -> Rows:
        """A reader for values [n, d] that are all in range and within the radius; raises as `randomize`."""
        rows = self.domain.open(values)
        for start, stop in self._blocks(rows) if self.radius is not None else ():
            lengths = np.linalg.norm(rows.block(start, stop) - self.midpoint, axis=1)
            # Closeness depends on the direction alone, so the estimate of a longer vector would be too short.
            if lengths.size and lengths.max() > self.length * (1 + _SLACK):
                raise InputError(
                    "the vector is too far from the middle of the range",
                    where=f"values, row {start + int(np.argmax(lengths))}",
                    allowed=f"a distance of at most {self.length:g}",
                    remedy="declare the radius that is publicly known to hold, or shorten the vectors",
                )
        return rows

    def randomize(self, values: Values, *, randomness: Randomness, first: int = 0) -> CodewordReports:
        """What the devices send: the number of a codeword each; user i has codebook i. Raises InputError where an entry
        is NaN, infinite or out of range, or a row too long: it is named, nothing encoded; or no codebook has that
        number.

        Args:
            values: [n, d], dense or sparse rows, every entry in [low, high], every row within `radius` of the middle.
            randomness: the source of the private choice, and of nothing else.
            first: the number of the first row's user.
        """
        require_whole(0, LAST_CODEBOOK, first=first)
        require_randomness(randomness)
        return self._encode(self.open(values), randomness, first)

    def _encode(self, rows: Rows, randomness: Randomness, first: int = 0) -> CodewordReports:
        codewords, books = np.empty(rows.shape[0], np.int32), first + np.arange(rows.shape[0])
        for start, stop in self._blocks(rows):
            order, negative = self._order(rows.block(start, stop), books[start:stop])
            # One word a report, whatever the value: the word decides the place in the order, the value the order.
            places = self.law.places(randomness.uint64(stop - start))
            codewords[start:stop] = self._codeword(places, order, negative)
        return CodewordReports(torch.from_numpy(codewords), torch.from_numpy(books))

    def centred(self, reports: CodewordReports) -> npt.NDArray[np.float32]:
        """The unbiased estimate minus `midpoint`: float32 [n, d], the codewords that were sent times `scale`. Raises
        InputError where the reports do not fit, or n d exceeds 2^30.
        """
        self._check(reports)
        _validate.require_dense_size(len(reports), self.dimension, "the estimate")
        half, numbers = self.law.codewords // 2, reports.codebooks.numpy()
        codewords = reports.codewords.numpy().astype(np.int64)
        factors = np.where(codewords < half, self.scale, -self.scale) / UNIT
        result = np.empty((len(reports), self.dimension), np.float32)
        for start, stop in blocks(len(reports), self.dimension + 1):
            vectors = self._codebooks.vectors(numbers[start:stop], codewords[start:stop] % half)
            # The last coordinate only extends the vector to length 1, and is no part of the value.
            result[start:stop] = vectors[:, :-1] * factors[start:stop, None]
        return result

    def _log_likelihood(self, reports: CodewordReports, rows: Rows, start: int, stop: int) -> FloatArray:
        """Given the public codebook of each row."""
        codewords, books = (part.numpy()[start:stop] for part in (reports.codewords, reports.codebooks))
        order, negative = self._order(rows.block(start, stop), books)
        closest = order[:, : self.law.closest]
        closest = closest + self.law.codewords // 2 * np.take_along_axis(negative, closest, axis=1)
        return self.law.log_probability((closest == codewords[:, None]).any(axis=1))

    def variances(self, values: Values) -> FloatArray:
        """The variance of the estimate of each coordinate over codebooks and choices, float64 [n, d].
        With v the coordinate's distance from the middle over the radius and w = g_sent . v: radius^2 ((1 + (E[w^2] - 1)
        v^2) / E[w]^2 - v^2).
        """
        shares = (self.domain.open_dense(values) - self.midpoint) / self.length
        return self._spread(shares**2)

    def every_report(self) -> CodewordReports:
        codewords = torch.arange(self.law.codewords, dtype=torch.int32)
        return CodewordReports(codewords, torch.zeros(len(codewords), dtype=torch.int64))

    @property
    def law(self) -> CapLaw:
        """The law of the reported codeword's place in the order of closeness."""
        return cap_law(self.epsilon, self.codewords)

    @property
    def _codebooks(self) -> Codebooks:
        return Codebooks(self.public_seed, self.law.codewords // 2, self.dimension + 1)

    def _spread(self, squares: FloatArray) -> FloatArray:
        """The variance of coordinates whose squared share of the radius is given."""
        law = self.law
        return self.scale**2 * (1 + (law.second_moment - 1) * squares) - self.length**2 * squares

    def _blocks(self, rows: Rows) -> list[tuple[int, int]]:
        return list(blocks(rows.shape[0], (self.dimension + 1) * self.law.codewords // 2, _BLOCK))

    def _order(self, values: FloatArray, codebooks: Numbers) -> tuple[Places, npt.NDArray[np.bool_]]:
        """For each value the rows of its codebook, the t closest (by |w|) first; and the signs of all w."""
        ball = (values - self.midpoint) / self.length
        # One more coordinate makes every vector of the ball a point of the sphere, where all lengths are 1.
        rest = np.sqrt(np.maximum(0.0, 1.0 - (ball**2).sum(axis=1)))
        # Whole multiples of 2^-24: products with the codebook are exact in any order, on every machine.
        sphere = np.rint(np.column_stack([ball, rest]) / _VECTOR_STEP)
        scores = (self._codebooks.matrices(codebooks) @ sphere[:, :, None])[:, :, 0]
        # A tie may go either way: exactly t codewords are the closest, whichever they are, and the proof needs no more.
        return np.argpartition(-np.abs(scores), self.law.closest - 1, axis=1), scores < 0

    def _codeword(self, places: Places, order: Places, negative: npt.NDArray[np.bool_]) -> Places:
        """The number of the codeword at each place of closeness: row i for +g_i, half + i for -g_i.
        First come the closest, then their opposites, then both signs of all other rows.
        """
        closest, half = self.law.closest, self.law.codewords // 2
        ranks = np.where(places < 2 * closest, places % closest, closest + (places - 2 * closest) // 2)
        rows = np.take_along_axis(order, ranks[:, None], axis=1)[:, 0]
        negative_rows = np.take_along_axis(negative, rows[:, None], axis=1)[:, 0]
        opposite = np.where(places < 2 * closest, places >= closest, places % 2 == 1)
        return rows + half * (negative_rows ^ opposite)

    def _check(self, reports: CodewordReports) -> None:
        require_inside(reports.codewords, 0, self.law.codewords - 1, "a codeword")
        require_inside(reports.codebooks, 0, LAST_CODEBOOK, "a codebook")
