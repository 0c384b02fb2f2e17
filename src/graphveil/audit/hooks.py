"""Where pipelines read private data: the mechanisms' methods that `replay` watches, and how their inputs compare."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from scipy import stats
from torch import Tensor

from graphveil.aggregation import CountedSum, PerturbedSum, ReceiverRows
from graphveil.aggregation.contractive import ContractiveChain
from graphveil.aggregation.grid import quantise
from graphveil.audit.exact import Likely
from graphveil.audit.replay import AnyTap, Arguments, Evidence, Question
from graphveil.hierarchy import markov
from graphveil.mechanisms import MechanismInfo, SampledVectors, catalogue
from graphveil.mechanisms.base.values import Values
from graphveil.mechanisms.catalogue import Kind
from graphveil.privacy import SeededRandomness
from graphveil.training.convolved import ConvolvedRegression
from graphveil.training.noisy_updates import NoisyUpdates

A = TypeVar("A")
#: Edges, rows and hop of a noisy sum.
Summed: TypeAlias = tuple[ReceiverRows, Tensor, int]
#: The budget of a drawn tree, and the private edges [2, S].
Drawn: TypeAlias = tuple[float, npt.NDArray[np.int64]]
#: Arguments of `randomize` that are public: who draws where, and the number of a first codebook.
_PUBLIC = ("self", "randomness", "engine", "first")
#: The probability that the measured noise is taken for smaller than it is.
_FALSE_ALARM = 1e-6


def all_taps() -> tuple[AnyTap, ...]:
    """Return the taps of all mechanisms: the catalogue's, noisy sums of either law, chains, heads, descent, trees."""
    kinds = {_owner(info): info.kind for info in catalogue()}
    return (
        *(ReportTap(owner, kind) for owner, kind in kinds.items()),
        SumTap(),
        CountTap(),
        ChainTap(),
        HeadTap(),
        DescentTap(),
        TreeTap(),
    )


def _owner(info: MechanismInfo) -> type:
    """The class whose `randomize` a mechanism of the catalogue has."""
    return info.mechanism if isinstance(info.mechanism, type) else SampledVectors


@dataclass(frozen=True)
class ReportTap:
    """`randomize` of a mechanism of the catalogue.

    Args:
        kind: what it randomizes, as the catalogue says.
    """

    owner: type
    kind: Kind
    attribute: str = "randomize"

    def read(self, mechanism: object, arguments: Arguments) -> Question[Values]:
        """The values are private; how many there are is a setting where each is one user's.

        Args:
            arguments: of `randomize`, by name.
        """
        (values,) = (value for name, value in arguments.items() if name not in _PUBLIC)
        snapshot = values.clone() if isinstance(values, Tensor) else values.copy()
        constants = (mechanism,) if self._is_set else (mechanism, tuple(values.shape))
        return Question(constants, (), snapshot)

    def weigh(self, mechanism: Likely[A, Values], answer: A, first: Values, second: Values) -> Evidence:
        """Count what changed in units of the guarantee, and the log-likelihood ratio of the answer.

        Args:
            answer: what it gave for the first values. first, second: the values of the two runs.
        """
        change = self._change(mechanism, first, second)
        if change == 0.0:
            return Evidence(0.0)
        guarantee = mechanism.guarantee
        pure = 0.0
        # With a delta one answer's ratio proves nothing: rare answers may exceed e^epsilon.
        if guarantee.delta == 0.0:
            ratio = mechanism.log_likelihood(answer, first) - mechanism.log_likelihood(answer, second)
            pure = float(ratio.sum())
        return Evidence(change, guarantee.epsilon, pure)

    @property
    def _is_set(self) -> bool:
        return self.kind in ("lists", "edges")

    def _change(self, mechanism: object, first: Values, second: Values) -> float:
        if self.kind == "counts":
            moved = np.abs(np.asarray(first, np.int64) - np.asarray(second, np.int64)).sum()
            # Where both ends count a relationship it moves two counts, and the guarantee charges for both.
            return float(moved) / (2 if getattr(mechanism, "mode", "") == "both" else 1)
        if self._is_set:
            directed = getattr(mechanism, "mode", "") == "directed"
            return float(len(_pairs(first, directed) ^ _pairs(second, directed)))
        # Rows and not entries: a person's whole vector is one unit, however much of it changed.
        return float((_dense(first) != _dense(second)).any(axis=1).sum())


@dataclass(frozen=True)
class SumTap:
    """`PerturbedSum.perturb`: edges are private, the rows that are summed are not (units of edges)."""

    owner: type = PerturbedSum
    attribute: str = "perturb"

    def read(self, mechanism: PerturbedSum, arguments: Arguments) -> Question[Summed]:
        """Rows are public where edges are protected, and part of what is protected where nodes are.

        Args:
            arguments: of `perturb`, by name.
        """
        # Cloned: the caller may overwrite the tensor with the next hop before both runs are compared.
        rows, x = arguments["rows"], arguments["x"].detach().clone()
        constants = (mechanism, arguments["hop"], tuple(x.shape), rows.num_nodes, rows.weight_bits, rows.w_max)
        return Question(constants, () if mechanism.unit == "node" else (x,), (rows, x, arguments["hop"]))

    def weigh(self, mechanism: PerturbedSum, answer: Tensor, first: Summed, second: Summed) -> Evidence:
        """Measure how far the exact sums moved, and the spread of the noise around them.

        Args:
            answer: the first run's noisy sums [n, c]. first, second: edges, rows and hop of the two runs.
        """
        first_sums, second_sums = exact_sums(mechanism, first), exact_sums(mechanism, second)
        moved = float(np.linalg.norm(first_sums - second_sums))
        sigma = mechanism.sigmas[first[2] - 1]
        if moved == 0.0:
            return Evidence(0.0)
        mu = 1e6 if sigma == 0.0 else _fewest_deviations(moved, answer.double().numpy() - first_sums)
        return Evidence(moved / mechanism.sensitivity, mu=mu)


@dataclass(frozen=True)
class CountTap:
    """`CountedSum.perturb`: edges are private, the rows that are summed are not."""

    owner: type = CountedSum
    attribute: str = "perturb"

    def read(self, mechanism: CountedSum, arguments: Arguments) -> Question[tuple[ReceiverRows, Tensor]]:
        """Rows are public, edges are not.

        Args:
            arguments: of `perturb`, by name.
        """
        rows, x = arguments["rows"], arguments["x"].detach().clone()
        return Question((mechanism, tuple(x.shape), rows.num_nodes), (x,), (rows, x))

    def weigh(
        self,
        mechanism: CountedSum,
        answer: Tensor,
        first: tuple[ReceiverRows, Tensor],
        second: tuple[ReceiverRows, Tensor],
    ) -> Evidence:
        """Measure how far the exact sums moved in the L1 norm, and the log-likelihood ratio of the answer.

        Args:
            answer: the first run's noisy sums [n, c]. first, second: edges and rows of the two runs.
        """
        plain = replace(mechanism, epsilon=math.inf)
        first_sums, second_sums = (plain.perturb(rows, x, SeededRandomness(0)) for rows, x in (first, second))
        moved = float((first_sums - second_sums).abs().sum())
        if moved == 0.0:
            return Evidence(0.0)
        ratio = mechanism.log_likelihood(answer, *first) - mechanism.log_likelihood(answer, *second)
        return Evidence(moved / mechanism.change, mechanism.epsilon / mechanism.hops, float(ratio.sum()))


@dataclass(frozen=True)
class ChainTap:
    """`ContractiveChain.hide`: a state before its noise is private; once answers are frozen, earlier ones are not."""

    owner: type = ContractiveChain
    attribute: str = "hide"

    def read(self, mechanism: ContractiveChain, arguments: Arguments) -> Question[tuple[Tensor, float, int]]:
        """The exact state is private, its noise and its number are not.

        Args:
            mechanism: what is public of the chain. arguments: of `hide`, by name.
        """
        exact, sigma, hop = arguments["exact"].clone(), arguments["sigma"], arguments["hop"]
        return Question((mechanism, sigma, hop, tuple(exact.shape)), (), (exact, sigma, hop))

    def weigh(
        self,
        mechanism: ContractiveChain,
        answer: Tensor,
        first: tuple[Tensor, float, int],
        second: tuple[Tensor, float, int],
    ) -> Evidence:
        """Measure how far one step moved against the noise that was really added.

        Args:
            mechanism: what is public of the chain. answer: the first run's state with noise [n, c].
            first, second: exact state, declared noise and number of the step in the two runs.
        """
        exact, sigma, hop = first
        moved = float((exact - second[0]).norm())
        if moved == 0.0:
            return Evidence(0.0)
        mu = _fewest_deviations(moved, (answer - exact).numpy())
        # Noise that is smaller than declared counts as a larger move: hidden states show nothing, so that their own mu
        # is no part of what comes out.
        change = moved if sigma == 0.0 else mu * sigma
        return Evidence(change / mechanism.sensitivity, mu=mu if hop == mechanism.hops else 0.0)


@dataclass(frozen=True)
class HeadTap:
    """`ConvolvedRegression.released`: the weights at the minimum are private."""

    owner: type = ConvolvedRegression
    attribute: str = "released"

    def read(self, mechanism: ConvolvedRegression, arguments: Arguments) -> Question[Tensor]:
        """The weights are private, what the noise is made for is not.

        Args:
            mechanism: what is public of the regression. arguments: of `released`, by name.
        """
        weights = arguments["weights"].detach().clone()
        return Question((mechanism, arguments["multiplier"], tuple(weights.shape)), (), weights)

    def weigh(self, mechanism: ConvolvedRegression, answer: Tensor, first: Tensor, second: Tensor) -> Evidence:
        """Measure how far the weights moved, and the spread of the noise around them.

        Args:
            mechanism: what is public of the regression. answer: the first run's noisy weights.
            first, second: the weights of the two runs.
        """
        moved = float((first - second).norm())
        mu = 0.0 if moved == 0.0 else _fewest_deviations(moved, (answer.double() - first).numpy())
        return Evidence(moved / mechanism.sensitivity, mu=mu)


@dataclass(frozen=True)
class DescentTap:
    """The noise of a private gradient step: the clipped sum of a batch is private. One sample that changes its values
    moves the sum by at most two clipping norms, and by one if it comes or goes; an edge changes the sample at either
    end.
    """

    owner: type = NoisyUpdates
    attribute: str = "add_noise"

    def read(self, mechanism: NoisyUpdates, arguments: Arguments) -> Question[Tensor]:
        """Batches are drawn from the same noise in both runs, so that steps and shapes have to agree.

        Args:
            arguments: of `add_noise`, by name.
        """
        totals = arguments["totals"]
        snapshot = totals.to(torch.float64, copy=True)  # noise is added in place
        return Question((tuple(totals.shape), mechanism.schedule), (), snapshot)

    def weigh(self, mechanism: NoisyUpdates, answer: Tensor, first: Tensor, second: Tensor) -> Evidence:
        """Measure how far the sum moved, in what all samples that may change can move it by.

        Args:
            answer: not read: noise is added in place.
            first, second: float64 [P], the sums of the two runs in whole steps.
        """
        grid = mechanism.schedule.grid
        return Evidence(float((first - second).norm()) * grid.step / (2 * grid.clip * mechanism.samples))


@dataclass(frozen=True)
class TreeTap:
    """`fit_markov`: private edges are private, all else that steers the chain is public."""

    owner: ModuleType = markov
    attribute: str = "fit_markov"

    def read(self, mechanism: int, arguments: Arguments) -> Question[Drawn]:
        """The number of nodes stands in for the mechanism.

        Args:
            mechanism: n, the first argument of `fit_markov`. arguments: of `fit_markov`, by name.
        """
        names = ("nodes", "members", "public", "epsilon", "steps", "chains", "start")
        constants = tuple(arguments.get(name) for name in names)
        return Question(constants, (), (arguments["epsilon"], np.array(arguments["private"])))

    def weigh(self, mechanism: int, answer: object, first: Drawn, second: Drawn) -> Evidence:
        """Count the edges that changed; what a tree of many nodes says about one cannot be computed.

        Args:
            mechanism: n. answer: not read. first, second: epsilon and private edges of the two runs.
        """
        change = float(len(_pairs(first[1], directed=False) ^ _pairs(second[1], directed=False)))
        return Evidence(change, first[0]) if change else Evidence(0.0)


def _fewest_deviations(moved: float, noise: npt.NDArray[np.float64]) -> float:
    """A lower bound on a move, in deviations of the noise, at most 1e6; wrong with probability _FALSE_ALARM."""
    # Measured and not read off the settings: noise that was never added, or with half its deviation, shows here.
    largest = math.sqrt(float((noise**2).sum()) / float(stats.chi2.ppf(_FALSE_ALARM, noise.size)))
    return 1e6 if largest == 0.0 else min(moved / largest, 1e6)


def exact_sums(mechanism: PerturbedSum, private: Summed) -> npt.NDArray[np.float64]:
    """Return the sums without noise, in the answer's unit, float64 [n, c]."""
    rows, x, _ = private
    bits = mechanism.row_bits(rows.weight_bits)
    sums = rows.sums(quantise(x, bits=bits))
    values = sums.values.numpy().astype(np.float64)
    values[sums.long.numpy()] = sums.totals.numpy()
    return np.asarray(values * 2.0 ** -(bits + rows.weight_bits))


def _pairs(edges: Values, directed: bool) -> set[tuple[int, int]]:
    columns = np.asarray(edges, np.int64)
    if not directed:
        columns = np.sort(columns, axis=0)
    return set(zip(*columns.tolist(), strict=True)) if columns.size else set()


def _dense(values: Values) -> npt.NDArray[Any]:
    """Users' values as rows."""
    if isinstance(values, Tensor):
        values = (values if values.layout == torch.strided else values.to_dense()).numpy()
    rows = values if isinstance(values, np.ndarray) else np.asarray(values.toarray())
    return rows.reshape(len(rows), -1)
