"""Sums over neighbours with the noise that hides edges or nodes; edges come as `ReceiverRows`.

    Y = (S + Z) step,   S = exact integer sums of grid rows,   Z = round(N(0, (sigma / step)^2)) in each coordinate

Adding or removing one unit changes S by at most `sensitivity` caps in L2, exactly, and integers hide nothing in their
last digits: S + round(N) = round(S + N), so the exact curve of the Gaussian mechanism holds.

    unit            what comes or goes                                        rows changed     sensitivity
    directed-edge   one entry of A                                            1                w_max
    edge            one undirected edge, two entries of A                     2                sqrt(2) w_max
    k-edges         up to k relationships of one person, with both entries    k + 1            sqrt(k (k + 1)) w_max
    node            a node's features and list (or all its edges, if so       D                sqrt(D) w_max
                    declared; then its own row is seen by itself only)

The k of one person move k other rows by one message each, and that person's own row by up to k messages at once:
k + k^2, reached where they all say the same.  Any k edges stay within it: sum_v d_v^2 <= k (k + 1).  Naive group
privacy would charge k sqrt(2).  Weights computed from features make a node's own row depend on its features: that row
is then seen by itself only, too.

Where tensors lie on a device of their own, sums and noise stay there and have the bits that blocks have on the CPU:
sums are exact integers, whose order is free, and each block of receivers draws from its own key.

Source: Sajadmanesh, Shamsabadi, Bellet, Gatica-Perez, "GAP: Differentially Private Graph Neural Networks with
Aggregation Perturbation", USENIX Security 2023, arXiv 2203.00949, section 4.2; there an undirected edge is charged as
one entry, and the sampler behind sqrt(D) is not stable.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from graphveil.aggregation.exact_sum import WEIGHT_BITS, ReceiverRows
from graphveil.aggregation.grid import GridRows, loop_pays, put_block, quantise, unit_block, unit_rows
from graphveil.aggregation.names import UNITS, Unit, require_bits
from graphveil.aggregation.shared import Dense, as_tensor, require_room, rows_of
from graphveil.engine import LOCAL, Block, Blocks, Engine, LocalEngine
from graphveil.errors import InputError, NoiseError
from graphveil.mechanisms.samplers.rounded_normal import LARGEST_LIMIT, RoundedNormal, reach_of
from graphveil.privacy import BlockKey, BlockNoise, Randomness, gaussian_epsilon
from graphveil.runtime.checks import require_choice, require_number, require_whole
from graphveil.runtime.late import dp_accounting, torch

if TYPE_CHECKING:
    import numpy as np
    from dp_accounting import DpEvent
    from torch import Tensor

# Noise of more steps needs too large a table; noise of fewer steps is not tabulated to twelve digits.
_MOST_STEPS: Final = 1 << 17
_FEWEST_STEPS: Final = 10
# (bits, most steps of noise): at 64 columns 2^10 steps shorten rows by 0.4% and 2^8 by 1.6%, so the finer grid is used
# where its table is small.
_FINE: Final = (10, 1 << 14)
_COARSE: Final = (8, _MOST_STEPS)
# Room for the rounding of a few float64 operations.
_UP: Final = 1 + 1e-14


def entries_of(unit: Unit, degree: int | None = None, relationships: int | None = None) -> int:
    """How many rows of a sum one unit can change: one for each entry of A; k edges of one person change k + 1, the k
    others' rows and the person's own. Raises InputError for no such unit, or a degree without "node" or "node" without
    a degree; the same for "k-edges".

    Args:
        degree: the bound on a node's receivers, for "node" alone.
        relationships: k, for "k-edges" alone.
    """
    require_choice(UNITS, unit=unit)
    _require_bound("degree", degree, "node", unit)
    _require_bound("relationships", relationships, "k-edges", unit)
    if degree is not None:
        return degree
    if relationships is not None:
        return relationships + 1
    # An undirected edge is two entries of A: charged as one entry, epsilon 1 would in truth be 1.46.
    return 1 if unit == "directed-edge" else 2


def _require_bound(name: str, value: int | None, of: str, unit: str) -> None:
    if (unit == of) != (value is not None):
        raise InputError(f"{name} is {value!r} for unit {unit!r}", allowed=f'a bound for "{of}", else None')
    if value is not None:
        require_whole(1, **{name: value})


def sensitivity_of(
    unit: Unit, w_max: float = 1.0, degree: int | None = None, relationships: int | None = None
) -> float:
    """The largest L2 change of a sum when one unit comes or goes, in units of the rows' cap, rounded up. Raises
    InputError for a weight that is not above 0, or what `entries_of` refuses.

    Args:
        w_max: the declared largest weight.
        degree, relationships: as for `entries_of`.

    >>> sensitivity_of("directed-edge"), round(sensitivity_of("edge"), 4)
    (1.0, 1.4142)
    """
    require_number("(0, inf)", w_max=w_max)
    # Changes of different rows are orthogonal: they add up as squares.
    squared = entries_of(unit, degree, relationships)
    if relationships is not None:
        # k rows move by 1 and the person's own by k: k + k^2.
        squared *= relationships
    return w_max if squared == 1 else w_max * math.sqrt(squared) * _UP


@dataclass(frozen=True, kw_only=True)
class PerturbedSum:
    """K noisy sums over neighbours, hop k with noise sigmas[k - 1].

    Args:
        unit: what is hidden; "node" needs `degree`, and edges whose degrees are bounded by it.
        sigmas: the noise's standard deviation at each hop, in units of the rows' cap; 0 adds none and hides nothing.
        bits: a row of length cap is 2^bits steps long; None: 8 to 10, as the largest sigma allows (fewer above 512).
        degree: D, how many others one node sends to.
        relationships: k, of one person, hidden together; for "k-edges".

    >>> import torch
    >>> from graphveil.aggregation import PerturbedSum, ReceiverRows
    >>> from graphveil.privacy import SecureRandomness
    >>> hop = PerturbedSum(unit="edge", sigmas=(8.0,))
    >>> rows = ReceiverRows.of(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 3)
    >>> tuple(hop.perturb(rows, torch.randn(3, 4), 1, SecureRandomness()).shape)
    (3, 4)
    >>> round(hop.sensitivity, 4), round(hop.epsilon(1e-5, columns=4), 2)
    (1.4142, 0.63)
    """

    unit: Unit = "edge"
    sigmas: tuple[float, ...]
    w_max: float = 1.0
    bits: int | None = None
    degree: int | None = None
    relationships: int | None = None

    def __post_init__(self) -> None:
        sensitivity_of(self.unit, self.w_max, self.degree, self.relationships)
        if self.bits is not None:
            require_bits(self.bits)
        if not self.sigmas or not all(0.0 <= sigma < math.inf for sigma in self.sigmas):
            raise InputError(f"sigmas are {self.sigmas!r}", allowed="one or more finite numbers of at least 0")

    @property
    def hops(self) -> int:
        """K."""
        return len(self.sigmas)

    @property
    def sensitivity(self) -> float:
        """The largest L2 change of one hop's sum when one unit comes or goes, in units of the rows' cap."""
        return sensitivity_of(self.unit, self.w_max, self.degree, self.relationships)

    @property
    def mu(self) -> float:
        """sqrt(sum_k (sensitivity / sigma_k)^2): all hops cost what one of noise 1 / mu costs; inf without noise."""
        if min(self.sigmas) == 0.0:
            return math.inf
        # Gaussian releases compose exactly, adaptively too: mu adds up in squares.
        return math.sqrt(math.fsum((self.sensitivity / sigma) ** 2 for sigma in self.sigmas)) * _UP

    def event(self) -> DpEvent:
        """All hops as a dp-accounting event, up to the table's rounding (see `epsilon`)."""
        if min(self.sigmas) == 0.0:
            # Never an event of noise 0, which an accountant might read as no release: the price is infinite.
            return dp_accounting.NonPrivateDpEvent()
        return dp_accounting.ComposedDpEvent(
            [dp_accounting.GaussianDpEvent(sigma / (self.sensitivity * _UP)) for sigma in self.sigmas]
        )

    def epsilon(self, delta: float, columns: int) -> float:
        """The exact epsilon of all hops, the table's rounding included. It is infinite without noise, and where the cut
        tails weigh more than delta (at an epsilon of 40 or so). Raises InputError where delta is outside (0, 1).

        Args:
            columns: entries of a row.
        """
        # A millionth of delta is set aside for the noise's cut tails.
        exact = gaussian_epsilon(1.0 / self.mu, delta * (1 - 1e-6)) if self.mu < math.inf else math.inf
        epsilon, charged_delta = self.price(exact, delta * (1 - 1e-6), columns)
        return epsilon if charged_delta <= delta else math.inf

    def price(self, epsilon: float, delta: float, columns: int) -> tuple[float, float]:
        """The epsilon and delta to charge for the hops, or a pipeline with them, given their price with exact normal
        noise.

        Args:
            columns: entries of a row.
        """
        # Only rounding in coordinates that the unit can change counts: in all others both worlds have the same law.
        changed = entries_of(self.unit, self.degree, self.relationships) * columns * self.hops
        shift, steps = self._shift(min(self.sigmas)), 1 << 10
        # Rounded down: the charged reach is that of the drawn noise, or shorter.
        return RoundedNormal(steps, math.floor(reach_of(shift) * steps)).price(epsilon, delta, changed, shift=shift)

    def _shift(self, sigma: float) -> float:
        """The most that one unit moves a number of a sum, in deviations of its noise."""
        # Twice a message, where a node is replaced and both its rows name the same one.
        return max(self.sensitivity, 2 * self.w_max) / sigma if sigma else math.inf

    def perturb(
        self,
        rows: ReceiverRows,
        x: Tensor,
        hop: int,
        randomness: Randomness,
        *,
        engine: Engine = LOCAL,
        out: np.ndarray | None = None,
    ) -> Tensor:
        """Return the noisy sums of one hop, in units in which the rows' cap is 1, float32 [n, c] on the device of `x`.
        Raises InputError for no such hop; weights above `w_max`; "node" without edges of bounded degree; the noise is
        too small or too large for the grid; or `out` does not fit.

        Args:
            x: float [n, c], each row brought to length 1 on the grid; rows with NaN or infinite entries send zero.
            hop: 1..K.
            out: float32 [n, c] that the sums are written into; where it is on disk, rows on the grid are as well.
        """
        if not 1 <= hop <= self.hops:
            raise InputError(f"hop is {hop!r}", allowed=f"1 to {self.hops}")
        return NoisyHops(self, rows, randomness, engine).perturb(x, hop, out)

    def require_noise(self, *, weighted: bool) -> None:
        """Refuse noise that is too small or too large for the grid with NoiseError, before anything is read or paid."""
        weight_bits = WEIGHT_BITS if weighted else 0
        bits = self.row_bits(weight_bits) + weight_bits
        for hop in range(1, self.hops + 1):
            self.noise_of(hop, bits)

    def row_bits(self, weight_bits: int = 0) -> int:
        """The bits of the rows' grid, which depend on the noise and on nothing private."""
        if self.bits is not None:
            return self.bits
        largest = max(self.sigmas)
        if largest == 0.0:
            return _FINE[0]
        candidates = [
            min(most, math.floor(math.log2(steps / largest)) - weight_bits) for most, steps in (_FINE, _COARSE)
        ]
        return max(1, *candidates)

    def require_allowed(self, rows: ReceiverRows) -> None:
        """Raise InputError for weights above the declared one, or edges without the declared bound."""
        if rows.w_max > self.w_max:
            raise InputError(f"weights of up to {rows.w_max:g}", allowed=f"the declared w_max of {self.w_max:g}")
        # A separate number is no proof: only edges that were cut to the bound carry it.
        if self.degree is not None and (rows.sent is None or rows.sent.degree > self.degree):
            raise InputError(
                "nothing bounds how many others a node sends to",
                where='unit "node"',
                allowed=f"edges bounded by {self.degree}",
                remedy="build the rows from graphs.degree_bound",
            )

    def noise_of(self, hop: int, bits: int) -> RoundedNormal | None:
        """Return the noise of a hop in steps of its grid, or None where there is none; raises as `require_noise`."""
        sigma = self.sigmas[hop - 1]
        if sigma == 0.0:
            return None
        steps = sigma * 2.0**bits
        reach = reach_of(self._shift(sigma))
        most = min(_MOST_STEPS, math.floor(LARGEST_LIMIT / reach))
        if not _FEWEST_STEPS <= steps <= most:
            raise NoiseError(
                f"the noise would be {steps:.3g} steps of the rows' grid, too {'few' if steps < most else 'many'}",
                allowed=f"{_FEWEST_STEPS} to {most}",
            )
        return RoundedNormal(steps, math.ceil(reach * steps))


@dataclass
class NoisyHops:
    """The hops of one publication. Their inputs use two arrays in turns: new memory would cost as much as the sums."""

    sums: PerturbedSum
    rows: ReceiverRows
    randomness: Randomness
    engine: Engine
    sent: GridRows | None = None  # the input of the previous hop, whose memory is reused
    ready: GridRows | None = None  # the output of the previous hop, on the grid already

    def perturb(
        self, x: Tensor, hop: int, out: np.ndarray | None, *, normalise: bool = False, last: bool = True
    ) -> Tensor:
        """As `PerturbedSum.perturb`.

        Args:
            normalise: scale the noisy rows to length 1, which is post-processing.
            last: whether this is the last hop; otherwise the next one sums what is returned.
        """
        hop_sums, rows, use_loops = self.sums, self.rows, loop_pays(x)
        hop_sums.require_allowed(rows)
        # Before the first draw: a publication that fails later has already been paid for.
        target = require_room(out, *x.shape)
        bits = hop_sums.row_bits(rows.weight_bits)
        # Every row is scaled to the cap here: the sensitivity does not rely on the caller.
        grid = self.ready or quantise(x, bits=bits, narrow=use_loops or not x.is_cpu, beside=out, over=self.sent)
        noise = hop_sums.noise_of(hop, bits + rows.weight_bits)
        blocks = Blocks.of(*x.shape)
        # Keys of blocks leave this process, their secret does not: a worker can remove the noise of its blocks only.
        keys = BlockNoise(self.randomness).keys(len(blocks), hop)
        if not x.is_cpu:
            sums = noisy_sums(rows, grid, noise, blocks, keys, 2.0 ** -(bits + rows.weight_bits))
            result = unit_rows(sums) if normalise else sums
            return result if out is None else as_tensor(target).copy_(result)
        prepare_next = use_loops and not last and isinstance(self.engine, LocalEngine)
        self.ready, self.sent = self.sent or grid.room(target) if prepare_next else None, grid
        task = _NoisyBlock(rows.largest, rows.weight_bits, bits, noise, normalise, use_loops)
        return self._by_blocks(task, grid, blocks, keys, target)

    def _by_blocks(
        self, task: _NoisyBlock, grid: GridRows, blocks: Blocks, keys: Iterator[BlockKey], target: np.ndarray
    ) -> Tensor:
        # Compiled loops have as many threads as torch's own kernels would have.
        engine = LocalEngine(torch.get_num_threads()) if self.engine == LOCAL and task.loops else self.engine
        shared = engine.put(*self.rows.arrays, grid.values.numpy())
        if not isinstance(engine, LocalEngine):
            return as_tensor(engine.gather(engine.map_blocks(task, blocks, shared, keys), blocks, target))
        # Sums are written into their rows, and put on the grid again while they are in the cache.
        ready = None if self.ready is None else self.ready.values.numpy()
        for _ in engine.map_blocks(task, blocks, (*shared, target, ready), keys):
            pass
        return as_tensor(target)


@dataclass(frozen=True)
class _NoisyBlock:
    """The task that an engine runs on a block of receivers: their noisy sums, from the block's own key."""

    largest: int
    weight_bits: int
    bits: int
    noise: RoundedNormal | None
    normalise: bool
    loops: bool  # whether the rows are so many that compiled loops pay

    def __call__(
        self,
        block: Block,
        key: BlockKey,
        starts: np.ndarray,
        senders: np.ndarray,
        weights: np.ndarray | None,
        values: np.ndarray,
        target: np.ndarray | None = None,
        ready: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return float32 [rows of the block, c] from `ReceiverRows.arrays` and the grid's values [n, c].

        Args:
            block: the rows of the block.
            key: of the noise of the block.
            starts, senders, weights, values: of all nodes.
            target: [n, c] into whose rows the sums are written; None: a new array.
            ready: [n, c] into whose rows the sums on the grid are written; None: they are not needed.
        """
        steps = None if weights is None else as_tensor(weights)
        rows = ReceiverRows(as_tensor(starts), as_tensor(senders), steps, self.largest, self.weight_bits)
        out = None if target is None else as_tensor(target[block.rows])
        sums = rows.sums(GridRows(as_tensor(values), 1.0, self.bits), block.rows, out=out)
        if self.noise is not None:
            # Each coordinate, of isolated nodes too: a row without noise would reveal that nobody sends to it.
            self.noise.add_to(sums.values.view(-1).numpy(), key.stream())
        noisy = sums.whole()
        if not self.normalise:
            # A power of two: scaling is exact, so the release is still a whole multiple of the public grid.
            noisy.mul_(2.0 ** -(self.bits + self.weight_bits))
        elif self.loops:
            unit_block(noisy)
        else:
            unit_rows(noisy, out=noisy.numpy())
        if ready is not None:
            put_block(noisy, as_tensor(ready[block.rows]), self.bits)
        result: np.ndarray = noisy.numpy()
        return result


def propagate_privately(
    perturbed: PerturbedSum,
    rows: ReceiverRows,
    x: Dense,
    randomness: Randomness,
    *,
    normalise: bool = True,
    engine: Engine = LOCAL,
    out: Sequence[np.ndarray] | None = None,
) -> list[Tensor]:
    """Return [X_0, ..., X_K], float32 [n, c]: X_0 = unit rows of x, X_k = A^T unit(X_{k-1}) + noise. Everything but X_0
    may be released: edges are read by the noisy sums alone, and each hop reads the hop before it. Raises InputError for
    what `perturb` refuses, or other arrays in `out`.

    Args:
        normalise: scale the rows of X_1..X_K to length 1 too (GAP); ProGAP keeps them as they are.
        out: K + 1 arrays float32 [n, c] that X_0..X_K are written into. On disk, as x and the arrays of `rows` may be,
            no more than blocks and what noise is looked up in take memory.
    """
    start = rows_of(x)
    outputs = [None] * (perturbed.hops + 1) if out is None else [require_room(output, *start.shape) for output in out]
    if len(outputs) != perturbed.hops + 1:
        raise InputError(f"{len(outputs)} arrays in out", allowed=f"{perturbed.hops + 1}, one more than hops")
    # Hop 0 reads no edge, so at edge level it carries no noise and the model never falls below features alone.
    layers, hops = [unit_rows(start, out=outputs[0])], NoisyHops(perturbed, rows, randomness, engine)
    for hop, output in enumerate(outputs[1:], start=1):
        # Fresh noise at each hop, since each is a separate output; scaling afterwards is post-processing.
        last = hop == perturbed.hops
        layers.append(hops.perturb(layers[-1], hop, output, normalise=normalise, last=last))
    return layers


def noisy_sums(
    rows: ReceiverRows,
    grid: GridRows,
    noise: RoundedNormal | None,
    blocks: Blocks,
    keys: Iterable[BlockKey],
    scale: float = 1.0,
) -> Tensor:
    """Return sums with their noise, float32 [n, c] on the device of the grid, which is not the CPU.

    Args:
        grid: what every node sends [n, c].
        scale: the value of a whole step, a power of two: scaling rounds nothing.
    """
    from graphveil.mechanisms.samplers.normal_kernel import NormalKernel

    device = grid.values.device
    sums = rows.to(device).sums(grid)
    if noise is None:
        return sums.whole().mul_(scale)
    # Every entry, of isolated nodes too: a row without noise would reveal that nobody sends to it.
    size = blocks.size * grid.values.shape[1]
    NormalKernel.of(noise, device).add_to(sums.values, list(keys), size=size, scale=scale)
    return sums.whole(scale)
