"""Classes of nodes from noisy labels and an assortative graph: belief propagation, and answers to a question.

    m_{u->v}(y) propto sum_x  b_{u\\v}(x) H(x, y) ^ t_uv ,    b_u(x) propto prior(x) Pr[y'_u | x] prod_w m_{w->u}(x)
    H = ((1 - h) pi pi^T + h diag(pi)) / (pi pi^T),           t_uv = t (d_u d_v)^-gamma / mean

The exponent t < 1 tempers what loops count twice, and gamma discounts edges of nodes with many; `b_{u\\v}` leaves out
the message of v, so no report returns to its sender.
Of answers to a question, how often each class gives each is learned too:

    p(class v | labels, answer) ~ p(class v | labels) sum_a t(a | class) Pr[report v | a]
    t = argmax  sum_v log sum_c p(c | labels) sum_a t(a | c) Pr[report v | a]  +  log prior(t)       (EM)

The prior has the weight of some people in each class: the declared statistics, else the answers of everybody, which
carry no information on the class.  Everything read here was released.
Source: Yedidia, Freeman, Weiss, "Understanding belief propagation and its generalizations", 2003, equations 12 and 15.
Shapes: evidence [n, c], messages [E, c], result [n, c].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from graphveil.aggregation import SparseMatrix
from graphveil.aggregation.sparse import Rows
from graphveil.runtime.late import Tensor, torch

#: t and gamma for friends' answers, chosen on validation nodes of Caltech36, Reed98 and Johns Hopkins55 at epsilon 2.
ANSWER_TEMPER, ANSWER_DISCOUNT = 0.5, 0.25


@dataclass(frozen=True)
class Edges:
    """Directed copies of undirected edges, grouped by receiver."""

    receiver: Tensor  # [E] a node
    sender: Tensor  # [E] a node
    reverse: Tensor  # [E] position of each edge's opposite
    into: Rows  # sums edge values into receivers
    degree: Tensor  # [n]


def edges_of(a: SparseMatrix) -> Edges:
    """Return the edges of an undirected graph, given A or P, whose values are not read."""
    rows, n = a.forward, a.shape[0]
    degree = torch.diff(rows.starts.long())
    receiver = torch.repeat_interleave(torch.arange(n, device=degree.device), degree)
    sender = rows.indices.long()
    order = torch.argsort(receiver * n + sender)
    reverse = torch.empty_like(order)
    reverse[torch.argsort(sender * n + receiver)] = order
    positions = torch.arange(len(sender), dtype=torch.int32, device=degree.device)
    into = Rows(rows.starts, positions, torch.ones(len(sender), device=degree.device))
    return Edges(receiver, sender, reverse, into, degree.clamp_min(1).float())


def propagate_beliefs(
    edges: Edges,
    evidence: Tensor,
    prior: Tensor,
    homophily: float,
    *,
    temper: float,
    discount: float,
    rounds: Sequence[int],
) -> list[Tensor]:
    """Return log-beliefs [n, c] less the log-prior, up to a constant of each node, after some numbers of rounds.

    Args:
        evidence: log-likelihood of each node's report under each class [n, c]; zeros where none.
        prior: pi [c].
        homophily: h.
        temper: t.
        discount: gamma.
        rounds: numbers of rounds, ascending; after k rounds reports up to k hops away take part.
    """
    weight = _edge_weights(edges, temper, discount)
    own = evidence + prior.log()
    # Arrays over edges have classes first: gathers and sums over classes are then several times as fast. All rounds use
    # the same memory, since allocating is slow.
    messages, cavity, reverse_messages = (
        torch.zeros(len(prior), len(edges.sender), device=own.device) for _ in range(3)
    )
    rows, received, beliefs = torch.empty_like(messages.T.contiguous()), torch.zeros_like(own), []
    for number in range(1, rounds[-1] + 1):
        torch.index_select((own + received).T.contiguous(), 1, edges.sender, out=cavity)
        cavity.sub_(torch.index_select(messages, 1, edges.reverse, out=reverse_messages))
        # Numbers below e^-80 do not matter, and exponentials near the smallest float are slow.
        cavity.sub_(cavity.amax(dim=0)).clamp_min_(-80.0).exp_()
        cavity.div_(cavity.sum(dim=0))
        messages, cavity = _log_messages(cavity, prior[:, None], homophily).mul_(weight), messages
        received = edges.into.times(rows.copy_(messages.T))
        if number in rounds:
            beliefs.append(evidence + received)
    return beliefs


def _log_messages(belief: Tensor, prior: Tensor, homophily: float) -> Tensor:
    """Return log sum_x b(x) H(x, y) = log(1 - h + h b(y) / pi(y)), written over the beliefs b."""
    return belief.mul_(homophily / prior).add_(1 - homophily).clamp_min_(1e-9).log_()


def _edge_weights(edges: Edges, temper: float, discount: float) -> Tensor:
    """Return t_uv of every edge [E], for t and gamma."""
    weight = (edges.degree[edges.receiver] * edges.degree[edges.sender]).pow(-discount)
    return temper * weight / weight.mean()


def friends_evidence(edges: Edges, before: Tensor, after: Tensor, prior: Tensor, homophily: float) -> Tensor:
    """Return the evidence of friends' answers on a person's class, e [n, c]: their part of one round of propagation.

        before_u = p(class u | labels)                    after_u = p(class u | labels, the answer of u)
        e_v(y) = sum_{u in N(v)} t_uv log( sum_x after_u(x) H(x, y) / sum_x before_u(x) H(x, y) )

    A ratio, because before_v includes the evidence of friends' labels already; a person's own answer is not in e_v.
    The homophily is that of the reported labels: the likeness of friends' answers is not used, since most of it only
    repeats that of their classes.

    Args:
        before: [n, c], from labels alone.
        after: [n, c], with each person's own answer; equal to `before` for people without one.
        prior: pi [c].
        homophily: h.
    """
    change = _log_messages(after.clone(), prior, homophily) - _log_messages(before.clone(), prior, homophily)
    return edges.into.times(change[edges.sender] * _edge_weights(edges, ANSWER_TEMPER, ANSWER_DISCOUNT)[:, None])


Matrix = npt.NDArray[np.float64]

#: The weight of the prior of each class, in people: the answers of everybody, and declared statistics.
OWN_WEIGHT: Final = 2.0
DECLARED_WEIGHT: Final = 30.0
_ROUNDS: Final = 60


def answer_shares(evidence: Matrix) -> Matrix:
    """Return the share of people with each true answer [k], by maximum likelihood given log Pr[report | answer]."""
    likelihoods = _likelihoods(evidence)
    shares = np.full(likelihoods.shape[1], 1 / likelihoods.shape[1])
    for _ in range(_ROUNDS):
        parts = likelihoods * shares
        # Half a person more for each answer, so that each stays possible.
        shares = (parts / parts.sum(axis=1, keepdims=True)).sum(axis=0) + 0.5
        shares /= shares.sum()
    return shares


def fit_answers(posterior: Matrix, evidence: Matrix, statistics: Matrix | None = None) -> Matrix:
    """Return t [c, k]: how often each class gives each answer.

    Args:
        posterior: [n, c] of those who answered, from labels alone.
        evidence: log Pr[report | answer] [n, k].
        statistics: [c, k], declared and public; None: nothing is known before.
    """
    likelihoods, classes = _likelihoods(evidence), posterior.shape[1]
    prior = np.tile(answer_shares(evidence), (classes, 1)) if statistics is None else statistics
    weight = OWN_WEIGHT if statistics is None else DECLARED_WEIGHT
    table = prior.copy()
    for _ in range(_ROUNDS):
        chance = likelihoods @ table.T
        share = posterior / (posterior * chance).sum(axis=1, keepdims=True)
        # The prior enters every round: rounds converge to the mode of the posterior, not of the likelihood.
        table = table * (share.T @ likelihoods) + weight * prior
        table /= table.sum(axis=1, keepdims=True)
    return table


def update_posterior(posterior: Matrix, evidence: Matrix, table: Matrix) -> Matrix:
    """Return the probabilities of classes [n, c] given labels and answers.

    Args:
        posterior: [n, c], from labels alone.
        evidence: [n, k].
        table: t [c, k].
    """
    # Given a person's class, the evidence of other labels and the person's own answer are assumed to be independent.
    joint = posterior * (_likelihoods(evidence) @ table.T)
    whole: Matrix = joint / joint.sum(axis=1, keepdims=True)
    return whole


def _likelihoods(evidence: Matrix) -> Matrix:
    """Likelihoods up to a factor for each report, the largest of them 1."""
    # A factor of a report cancels in every posterior, but could make the likelihoods underflow.
    likelihoods: Matrix = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    return likelihoods
