"""Where pipelines read private data: the mechanisms' methods that `replay` watches, and how their inputs compare."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
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
from graphveil.audit.replay import Arguments, Evidence, Question, Tap
from graphveil.hierarchy import markov
from graphveil.mechanisms import SampledVectors, catalogue
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
#: Exact state, declared noise and number of a step.
State: TypeAlias = tuple[Tensor, float, int]
#: Kinds of values of which any number is one graph's.
_SETS = ("lists", "edges")
#: Arguments of `randomize` that are public: who draws where, and the number of a first codebook.
_PUBLIC = ("self", "randomness", "engine", "first")
#: The probability that the measured noise is taken for smaller than it is.
_FALSE_ALARM = 1e-6


def all_taps() -> tuple[Tap, ...]:
    """Return the taps of all mechanisms: the catalogue's, noisy sums of either law, chains, heads, descent, trees."""
    kinds = {info.mechanism if isinstance(info.mechanism, type) else SampledVectors: info.kind for info in catalogue()}
    return (*(report_tap(owner, kind) for owner, kind in kinds.items()), SUMS, COUNTS, CHAIN, HEAD, DESCENT, TREE)


def report_tap(owner: type, kind: Kind) -> Tap:
    """Return the tap of `randomize` of a mechanism of the catalogue: the values are private.

    Args:
        kind: what it randomizes, as the catalogue says.
    """
    return Tap(owner, "randomize", partial(_read_report, kind), partial(_weigh_report, kind))


def _read_report(kind: Kind, mechanism: object, arguments: Arguments) -> Question[Values]:
    (values,) = (value for name, value in arguments.items() if name not in _PUBLIC)
    snapshot = values.clone() if isinstance(values, Tensor) else values.copy()
    # How many values there are is a setting where each is one user's.
    return Question((mechanism,) if kind in _SETS else (mechanism, tuple(values.shape)), (), snapshot)


def _weigh_report(kind: Kind, mechanism: Likely[A, Values], answer: A, first: Values, second: Values) -> Evidence:
    """Count what changed in units of the guarantee, and the log-likelihood ratio of the answer."""
    mode = getattr(mechanism, "mode", "")
    if kind == "counts":
        moved = np.abs(np.asarray(first, np.int64) - np.asarray(second, np.int64)).sum()
        # Where both ends count a relationship it moves two counts, and the guarantee charges for both.
        change = float(moved) / (2 if mode == "both" else 1)
    elif kind in _SETS:
        change = float(len(_pairs(first, mode == "directed") ^ _pairs(second, mode == "directed")))
    else:
        # Rows and not entries: a person's whole vector is one unit, however much of it changed.
        change = float((_dense(first) != _dense(second)).any(axis=1).sum())
    if change == 0.0:
        return Evidence(0.0)
    guarantee, pure = mechanism.guarantee, 0.0
    # With a delta one answer's ratio proves nothing: rare answers may exceed e^epsilon.
    if guarantee.delta == 0.0:
        ratio = mechanism.log_likelihood(answer, first) - mechanism.log_likelihood(answer, second)
        pure = float(ratio.sum())
    return Evidence(change, guarantee.epsilon, pure)


def _read_sum(mechanism: PerturbedSum, arguments: Arguments) -> Question[Summed]:
    # Cloned: the caller may overwrite the tensor with the next hop before both runs are compared.
    rows, x = arguments["rows"], arguments["x"].detach().clone()
    constants = (mechanism, arguments["hop"], tuple(x.shape), rows.num_nodes, rows.weight_bits, rows.w_max)
    # Rows are public where edges are protected, and part of what is protected where nodes are.
    return Question(constants, () if mechanism.unit == "node" else (x,), (rows, x, arguments["hop"]))


def _weigh_sum(mechanism: PerturbedSum, answer: Tensor, first: Summed, second: Summed) -> Evidence:
    """Measure how far the exact sums moved, and the spread of the noise around them."""
    first_sums, second_sums = exact_sums(mechanism, first), exact_sums(mechanism, second)
    moved = float(np.linalg.norm(first_sums - second_sums))
    if moved == 0.0:
        return Evidence(0.0)
    noiseless = mechanism.sigmas[first[2] - 1] == 0.0
    mu = 1e6 if noiseless else _fewest_deviations(moved, answer.double().numpy() - first_sums)
    return Evidence(moved / mechanism.sensitivity, mu=mu)


#: Edges are private; the rows that are summed are not, but for units of nodes.
SUMS = Tap(PerturbedSum, "perturb", _read_sum, _weigh_sum)


def _read_count(mechanism: CountedSum, arguments: Arguments) -> Question[tuple[ReceiverRows, Tensor]]:
    rows, x = arguments["rows"], arguments["x"].detach().clone()
    return Question((mechanism, tuple(x.shape), rows.num_nodes), (x,), (rows, x))


def _weigh_count(
    mechanism: CountedSum, answer: Tensor, first: tuple[ReceiverRows, Tensor], second: tuple[ReceiverRows, Tensor]
) -> Evidence:
    """Measure how far the exact sums moved in the L1 norm, and the log-likelihood ratio of the answer."""
    plain = replace(mechanism, epsilon=math.inf)
    first_sums, second_sums = (plain.perturb(rows, x, SeededRandomness(0)) for rows, x in (first, second))
    moved = float((first_sums - second_sums).abs().sum())
    if moved == 0.0:
        return Evidence(0.0)
    ratio = mechanism.log_likelihood(answer, *first) - mechanism.log_likelihood(answer, *second)
    return Evidence(moved / mechanism.change, mechanism.epsilon / mechanism.hops, float(ratio.sum()))


#: Edges are private, the rows that are summed are not.
COUNTS = Tap(CountedSum, "perturb", _read_count, _weigh_count)


def _read_chain(mechanism: ContractiveChain, arguments: Arguments) -> Question[State]:
    exact, sigma, hop = arguments["exact"].clone(), arguments["sigma"], arguments["hop"]
    return Question((mechanism, sigma, hop, tuple(exact.shape)), (), (exact, sigma, hop))


def _weigh_chain(mechanism: ContractiveChain, answer: Tensor, first: State, second: State) -> Evidence:
    """Measure how far one step moved against the noise that was really added."""
    exact, sigma, hop = first
    moved = float((exact - second[0]).norm())
    if moved == 0.0:
        return Evidence(0.0)
    mu = _fewest_deviations(moved, (answer - exact).numpy())
    # Smaller noise than declared counts as a larger move: hidden states show nothing, and their mu does not count.
    change = moved if sigma == 0.0 else mu * sigma
    return Evidence(change / mechanism.sensitivity, mu=mu if hop == mechanism.hops else 0.0)


#: A state before its noise is private; once answers are frozen, earlier ones are not.
CHAIN = Tap(ContractiveChain, "hide", _read_chain, _weigh_chain)


def _read_head(mechanism: ConvolvedRegression, arguments: Arguments) -> Question[Tensor]:
    weights = arguments["weights"].detach().clone()
    return Question((mechanism, arguments["multiplier"], tuple(weights.shape)), (), weights)


def _weigh_head(mechanism: ConvolvedRegression, answer: Tensor, first: Tensor, second: Tensor) -> Evidence:
    """Measure how far the weights moved, and the spread of the noise around them."""
    moved = float((first - second).norm())
    mu = 0.0 if moved == 0.0 else _fewest_deviations(moved, (answer.double() - first).numpy())
    return Evidence(moved / mechanism.sensitivity, mu=mu)


#: The weights at the minimum are private, what the noise is made for is not.
HEAD = Tap(ConvolvedRegression, "released", _read_head, _weigh_head)


def _read_descent(mechanism: NoisyUpdates, arguments: Arguments) -> Question[Tensor]:
    # Batches are drawn from the same noise in both runs, so that steps and shapes have to agree.
    totals = arguments["totals"]
    snapshot = totals.to(torch.float64, copy=True)  # noise is added in place
    return Question((tuple(totals.shape), mechanism.schedule), (), snapshot)


def _weigh_descent(mechanism: NoisyUpdates, answer: object, first: Tensor, second: Tensor) -> Evidence:
    """Measure how far the sum, in whole steps, moved, in what all samples that may change can move it by.

    One sample that changes its values moves the sum by at most two clipping norms, and by one if it comes or goes; an
    edge changes the sample at either end.
    """
    grid = mechanism.schedule.grid
    return Evidence(float((first - second).norm()) * grid.step / (2 * grid.clip * mechanism.samples))


#: The clipped sum of a batch, before the noise of a private gradient step, is private.
DESCENT = Tap(NoisyUpdates, "add_noise", _read_descent, _weigh_descent)


def _read_tree(mechanism: int, arguments: Arguments) -> Question[Drawn]:
    names = ("nodes", "members", "public", "epsilon", "steps", "chains", "start")
    constants = tuple(arguments.get(name) for name in names)
    return Question(constants, (), (arguments["epsilon"], np.array(arguments["private"])))


def _weigh_tree(mechanism: int, answer: object, first: Drawn, second: Drawn) -> Evidence:
    """Count the edges that changed; what a tree of many nodes says about one cannot be computed."""
    change = float(len(_pairs(first[1], directed=False) ^ _pairs(second[1], directed=False)))
    return Evidence(change, first[0]) if change else Evidence(0.0)


#: Private edges are private, all else that steers the chain is public; the mechanism is n, its first argument.
TREE = Tap(markov, "fit_markov", _read_tree, _weigh_tree)


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
    if isinstance(values, Tensor):
        values = (values if values.layout == torch.strided else values.to_dense()).numpy()
    rows = values if isinstance(values, np.ndarray) else np.asarray(values.toarray())
    return rows.reshape(len(rows), -1)
