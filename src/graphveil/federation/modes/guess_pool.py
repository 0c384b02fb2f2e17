"""How the label holder combines guesses: opinions on every node's class, with weights fitted to validation labels.

    N_1, N_2         N_k = log((S^k Y + A q) / q), centred: training labels of neighbours, and of theirs; Y [n, c] has a
                     1 at the reported label of each node that trains, q [c] are the shares of the classes among them
    alone            the pool of the label holder's own network, trained without guesses, N_1 and N_2
    taught           log-probabilities of the same network, trained with guesses
    E, S E, S^2 E    E_v = sum_j log L_j[., r_jv], centred: the node's own guesses, and those of its neighbours at the
                     label holder; 0 where nobody is guessed about
    together         the pool of alone, taught, E, S E and S^2 E
    pool             log p = sum_k w_k opinion_k, each opinion of a network first sharpened by one factor

Where columns say little of a class and connections much, as in social networks, labels of neighbours say more than any
network of columns learns.  A network learns from guesses of all nodes what its own columns can predict, and loses what
a node's own guess says, which comes from other holders' columns: the second pool adds it again.  A pool is used only
where held-out validation labels are likelier under it by two standard errors; with few of them the network is used as
it is.  All of it is post-processing: of the label holder's own data alone, or of guesses that were paid for.
Sources: see `models.labels.pool`.  Shapes: opinions [n, c], S [n, n].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphveil.aggregation import SparseMatrix
from graphveil.models.labels.pool import FEWEST_JUDGES, better_pool, held_out

#: The initial weights of the network, N_1 and N_2, and of alone, taught, E, S E and S^2 E.
FIRST_ALONE = (1.0, 0.3, 0.3)
FIRST = (1.0, 0.0, 0.5, 0.5, 0.0)
#: A, the weight of the classes' shares beside neighbours' labels: no class is ruled out where no neighbour has it.
_PRIOR = 0.05
_MIN_CHANCE = 1e-12
_FACTORS = torch.logspace(-1, 2, 61)


def evidence_of(reports: Sequence[Tensor], chances: Sequence[Tensor], rows: Tensor, nodes: int) -> Tensor:
    """Return the evidence of all holders' reports on every node's class, centred log-likelihoods, float32 [n, c].

    Args:
        reports: of each holder, int64 [m].
        chances: L_j [c, reports] of each.
        rows: of the nodes that the reports are about, int64 [m].
        nodes: n; nodes without reports get 0.
    """
    log_chances = [
        chance.clamp_min(_MIN_CHANCE).log().T[report] for chance, report in zip(chances, reports, strict=True)
    ]
    log_likelihood = torch.stack(log_chances).sum(dim=0)
    # Zero, which favours no class: there are no reports of these nodes.
    evidence = log_likelihood.new_zeros(nodes, log_likelihood.shape[1])
    evidence[rows] = log_likelihood - log_likelihood.mean(dim=1, keepdim=True)
    return evidence


def neighbour_labels(labels: Tensor, classes: int, transition: SparseMatrix) -> list[Tensor]:
    """Return N_1 and N_2, float32 [n, c]: the evidence of training labels on the nodes around them.

    Args:
        labels: of who trains, as reported, int64 [n]; below 0 for all other nodes.
        transition: S of the label holder's connections.
    """
    rows = (labels >= 0).nonzero().squeeze(1)
    near = torch.zeros(len(labels), classes)
    near[rows, labels[rows]] = 1.0
    shares = (near.sum(dim=0) + _PRIOR) / (len(rows) + classes * _PRIOR)
    evidence = []
    for _ in range(2):
        near = transition @ near
        score = ((near + _PRIOR * shares) / shares).log()
        evidence.append(score - score.mean(dim=1, keepdim=True))
    return evidence


@dataclass(frozen=True)
class Pool:
    """A fitted pool, which applies to any graph.

    Attributes:
        powers: of each network's log-probabilities, float32 [networks].
        weights: of each opinion, networks first, float32 [k]; empty: one network is used as it is.
        otherwise: the number of that network.
    """

    powers: Tensor
    weights: Tensor
    otherwise: int

    def state(self) -> dict[str, Tensor]:
        return {"powers": self.powers, "weights": self.weights, "otherwise": torch.tensor(self.otherwise)}

    @classmethod
    def restored(cls, state: Mapping[str, Tensor]) -> Pool:
        return cls(state["powers"], state["weights"], int(state["otherwise"]))

    def of(self, networks: Sequence[Tensor], evidence: Sequence[Tensor]) -> Tensor:
        """Return log-scores [n, c].

        Args:
            networks: logits or log-probabilities, [n, c] each.
            evidence: all other opinions, [n, c] each.
        """
        if not len(self.weights):
            return networks[self.otherwise]
        sharp = [_raised(logits, float(power)) for logits, power in zip(networks, self.powers, strict=True)]
        return (self.weights[:, None, None] * torch.stack([*sharp, *evidence])).sum(dim=0)


def pooled_alone(
    logits: Tensor, labels: Tensor, transition: SparseMatrix, val: Tensor, log_likelihood: Tensor
) -> tuple[Tensor, Pool]:
    """Return log-scores [n, c] from the label holder's own network and training labels, and the pool that gives them.

    Args:
        logits: of its network, [n, c].
        labels, transition: see `neighbour_labels`.
        val, log_likelihood: see `pooled`.
    """
    evidence = neighbour_labels(labels, logits.shape[1], transition)
    pool = _fitted([logits], evidence, FIRST_ALONE, val, log_likelihood, otherwise=0)
    return pool.of([logits], evidence), pool


def pooled(
    alone: Tensor, taught: Tensor, evidence: Tensor, transition: SparseMatrix, val: Tensor, log_likelihood: Tensor
) -> tuple[Tensor, Pool]:
    """Return log-scores [n, c] of everything together, with few validation nodes of the taught network, and the pool.

    Args:
        alone, taught: log-probabilities or logits, [n, c].
        evidence: E [n, c].
        transition: S of the label holder's connections.
        val: who validates, bool [n].
        log_likelihood: log Pr[reported label | class] of the m nodes that validate, [m, c].
    """
    networks, spread = [alone, taught], spread_evidence(evidence, transition)
    few = len(log_likelihood) < FEWEST_JUDGES
    pool = _fitted(networks, spread, FIRST, val, log_likelihood, otherwise=int(few))
    return pool.of(networks, spread), pool


def spread_evidence(evidence: Tensor, transition: SparseMatrix) -> list[Tensor]:
    """Return E, S E and S^2 E, [n, c] each; arguments as of `pooled`."""
    # Over the label holder's own connections: it knows no others, and what it averages has been paid for.
    near = transition @ evidence
    return [evidence, near, transition @ near]


def _fitted(
    networks: Sequence[Tensor],
    evidence: Sequence[Tensor],
    first: Sequence[float],
    val: Tensor,
    log_likelihood: Tensor,
    *,
    otherwise: int,
) -> Pool:
    """Return the pool where it is surely better than its first network, else the network `otherwise`."""
    one_network = Pool(torch.ones(len(networks)), torch.zeros(0), otherwise)
    if len(log_likelihood) < FEWEST_JUDGES:
        return one_network
    powers = [_power(logits, val, log_likelihood) for logits in networks]
    sharp = [_raised(logits, power) for logits, power in zip(networks, powers, strict=True)]
    at_val = torch.stack([*sharp, *evidence])[:, val]
    rival = held_out(at_val[:1], log_likelihood, torch.ones(1))
    pool = better_pool(at_val, log_likelihood, torch.tensor(first), rival)
    return one_network if pool is None else Pool(torch.tensor(powers), pool.weights, otherwise)


def _power(logits: Tensor, val: Tensor, log_likelihood: Tensor) -> float:
    """Return the power of the probabilities that makes validation labels likeliest."""
    # Before the pool, whose fit starts at fixed weights, which need scores of a fixed scale.
    scores = torch.log_softmax(logits, dim=1)
    totals = [
        torch.logsumexp(torch.log_softmax(power * scores[val], dim=1) + log_likelihood, dim=1).sum()
        for power in _FACTORS
    ]
    return float(_FACTORS[int(torch.stack(totals).argmax())])


def _raised(logits: Tensor, power: float) -> Tensor:
    return torch.log_softmax(power * torch.log_softmax(logits, dim=1), dim=1)
