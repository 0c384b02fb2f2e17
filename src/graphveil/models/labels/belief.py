"""Classes of nodes from noisy labels and an assortative graph: belief propagation, a Gaussian process, answers.

    m_{u->v}(y) propto sum_x  b_{u\\v}(x) H(x, y) ^ t_uv ,    b_u(x) propto prior(x) Pr[y'_u | x] prod_w m_{w->u}(x)
    H = ((1 - h) pi pi^T + h diag(pi)) / (pi pi^T),           t_uv = t (d_u d_v)^-gamma / mean

The exponent t < 1 tempers what loops count twice, gamma discounts edges of busy nodes; `b_{u\\v}` leaves out what v
said, so no report returns to its own sender.  The process (`fit_process`) is observed through randomized response:

    f = B a,   B = (1 - alpha) sum_{k<K} alpha^k Q^k + alpha^K Q^K    (personalised PageRank; Q = D^-1 A or P)
    a = argmax  sum_{v reported} log( softmax(SCALE f_v + log pi) T )_{y'_v}  -  lambda/2 |a|^2

so class scores vary smoothly along edges, and the exact likelihood of each noisy report pulls at them.  Solved by a
fixed number of Adam steps with exact gradients.  Several blocks (which reports are used) are solved side by side.
Of answers to a question, how often each class gives each is learned too:

    p(class v | labels, answer) ~ p(class v | labels) sum_a t(a | class) Pr[report v | a]
    t = argmax  sum_v log sum_c p(c | labels) sum_a t(a | c) Pr[report v | a]  +  log prior(t)       (EM)

The prior counts for some people in each class: with declared statistics theirs, else with the answers of everybody,
which say nothing of the class.  Everything read here was released.
Source: Yedidia, Freeman, Weiss, "Understanding belief propagation and its generalizations", 2003, equations 12 and 15.
Shapes: evidence [n, c], messages [E, c], result [n, c]; likelihood [n, c], used [n, b], scores [n, b, c].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from graphveil.aggregation import SparseMatrix
from graphveil.aggregation.sparse import Rows
from graphveil.models.labels.label_prior import class_softmax
from graphveil.runtime.late import Tensor, torch

ROUNDS = 12
#: Of friends' answers, chosen with those of validation nodes of Caltech36, Reed98 and Johns Hopkins55 at epsilon 2.
TEMPER, DISCOUNT = 0.5, 0.25


@dataclass(frozen=True)
class Edges:
    """Directed copies of undirected edges, grouped by receiver."""

    receiver: Tensor  # [E] node numbers
    sender: Tensor  # [E] node numbers
    reverse: Tensor  # [E] position of each edge's opposite
    into: Rows  # sums edge values into receivers
    degree: Tensor  # [n]


def edges_of(a: SparseMatrix) -> Edges:
    """Return the edges of an undirected graph, given A or P: where its entries are counts, and not what they are."""
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
    edges: Edges, evidence: Tensor, prior: Tensor, homophily: float, *, temper: float, discount: float
) -> Tensor:
    """Return log-beliefs [n, c] less the log-prior.

    Args:
        evidence: log-likelihood of each node's report under each class [n, c]; zeros where none.
        prior: pi [c].
        homophily: h.
        temper: t.
        discount: gamma.
    """
    coupling = _coupling_of(prior, homophily)
    weight = _edge_weights(edges, temper, discount)
    own = evidence + prior.log()
    messages = torch.zeros(len(edges.sender), len(prior), device=evidence.device)
    for _ in range(ROUNDS):
        belief = own + edges.into.times(messages)
        incoming = belief.index_select(0, edges.sender).sub_(messages.index_select(0, edges.reverse))
        cavity = class_softmax(incoming)
        messages = (cavity @ coupling).clamp_min_(1e-9).log_().mul_(weight)
        # A constant over the classes means nothing; taken off, it cannot grow with every round.
        messages -= messages.mean(dim=1, keepdim=True)
    return own + edges.into.times(messages) - prior.log()


def _coupling_of(prior: Tensor, homophily: float) -> Tensor:
    """Return H [c, c] of class shares pi [c] and homophily h."""
    joint = (1 - homophily) * prior[:, None] * prior + torch.diag(homophily * prior)
    coupling: Tensor = joint / (prior[:, None] * prior)
    return coupling


def _edge_weights(edges: Edges, temper: float, discount: float) -> Tensor:
    """Return t_uv of every edge [E, 1], for t and gamma."""
    weight = (edges.degree[edges.receiver] * edges.degree[edges.sender]).pow(-discount)
    return (temper * weight / weight.mean())[:, None]


def heard_of_friends(edges: Edges, before: Tensor, after: Tensor, prior: Tensor, homophily: float) -> Tensor:
    """Return what friends' answers say of a person's class, e [n, c]: their part of one round of belief propagation.

        before_u = p(class u | labels)                    after_u = p(class u | labels, the answer of u)
        e_v(y) = sum_{u in N(v)} t_uv log( sum_x after_u(x) H(x, y) / sum_x before_u(x) H(x, y) )

    A ratio, because what friends' labels say is in before_v already; and nobody's own answer takes part in e_v.  The
    homophily is that of the labels, as reported: how alike answers of friends are does not enter, since most of it only
    says again how alike their classes are.

    Args:
        before: [n, c], from labels alone.
        after: [n, c], with each one's own answer; as before for those who gave none.
        prior: pi [c].
        homophily: h.
    """
    coupling = _coupling_of(prior, homophily)
    change = (after @ coupling).clamp_min(1e-9).log() - (before @ coupling).clamp_min(1e-9).log()
    return edges.into.times(change[edges.sender] * _edge_weights(edges, TEMPER, DISCOUNT))


SCALE = 10.0
STEPS = 40
DEPTH = 20
RATE = 0.3


def diffuse(q: SparseMatrix, x: Tensor, alpha: float, depth: int, *, transposed: bool = False) -> Tensor:
    """Return B x, or B^T x, by repeated products [n, c].

    Args:
        q: Q [n, n].
        alpha: the weight of one more hop.
        depth: how many products.
        transposed: whether B^T is meant.
    """
    return (q.backward if transposed else q.forward).walk(x, depth, alpha)


def fit_process(
    q: SparseMatrix, likelihood: Tensor, used: Tensor, log_prior: Tensor, *, alpha: float, penalty: float
) -> Tensor:
    """Return SCALE f at the optimum, before the prior is added [n, b, c].

    Args:
        q: Q [n, n].
        likelihood: [n, c] of each node's report under each class.
        penalty: lambda.
        used: [n, b] whose reports each block uses.
        log_prior: log pi [c].
        alpha: the weight of one more hop.
    """
    (n, blocks), c = used.shape, likelihood.shape[1]
    a = torch.zeros(n, blocks * c, device=used.device)
    mean, square = torch.zeros_like(a), torch.zeros(blocks, 1, device=used.device)
    for step in range(1, STEPS + 1):
        slope = gradient(q, a, likelihood, used, log_prior, alpha=alpha, penalty=penalty)
        mean = 0.9 * mean + 0.1 * slope
        # One scale a block and not one an entry: Adam's own would blow up entries whose gradient is nearly 0.
        square = 0.99 * square + 0.01 * slope.view(n, blocks, c).square().mean(dim=(0, 2))[:, None]
        rate = RATE / (1 - 0.9**step) / ((square / (1 - 0.99**step)).sqrt() + 1e-8)
        a = a - (mean.view(n, blocks, c) * rate).view(n, -1)
    return SCALE * diffuse(q, a, alpha, DEPTH).view(n, blocks, c)


def gradient(
    q: SparseMatrix, a: Tensor, likelihood: Tensor, used: Tensor, log_prior: Tensor, *, alpha: float, penalty: float
) -> Tensor:
    """Return the gradient of what `fit_process` minimises, at a [n, b * c]: the negative of the second formula.

    Args:
        q: the normalised adjacency [n, n].
        a: [n, b * c], where it is asked for.
        likelihood, used, log_prior, alpha, penalty: as in `fit_process`.
    """
    (n, blocks), c = used.shape, likelihood.shape[1]
    # Classes come first between the products: sums over a handful of them are slow along the last dimension.
    scores = diffuse(q, a, alpha, DEPTH).view(n, blocks, c).permute(2, 0, 1).contiguous()
    expected = torch.softmax(scores.mul_(SCALE).add_(log_prior[:, None, None]), dim=0)
    joint = expected * likelihood.T[:, :, None]
    slope = expected.addcdiv_(joint, joint.sum(dim=0), value=-1).mul_(used)
    pulled = diffuse(q, slope.permute(1, 2, 0).reshape(n, -1), alpha, DEPTH, transposed=True)
    return pulled.mul_(SCALE).add_(a, alpha=penalty)


Matrix = npt.NDArray[np.float64]

#: How many people the prior of each class counts for: what everybody answers, and what was declared.
OWN_WEIGHT: Final = 2.0
DECLARED_WEIGHT: Final = 30.0
_ROUNDS: Final = 60


def answer_shares(evidence: Matrix) -> Matrix:
    """Return how often each answer is true among all [k], by maximum likelihood of log Pr[report | answer]."""
    likely = _likely(evidence)
    shares = np.full(likely.shape[1], 1 / likely.shape[1])
    for _ in range(_ROUNDS):
        parts = likely * shares
        # Half a person for each answer: one that nobody gave stays possible.
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
    likely, classes = _likely(evidence), posterior.shape[1]
    prior = np.tile(answer_shares(evidence), (classes, 1)) if statistics is None else statistics
    weight = OWN_WEIGHT if statistics is None else DECLARED_WEIGHT
    table = prior.copy()
    for _ in range(_ROUNDS):
        chance = likely @ table.T
        share = posterior / (posterior * chance).sum(axis=1, keepdims=True)
        # The prior enters every round: what the rounds approach is the mode of the posterior, not of the likelihood.
        table = table * (share.T @ likely) + weight * prior
        table /= table.sum(axis=1, keepdims=True)
    return table


def with_answers(posterior: Matrix, evidence: Matrix, table: Matrix) -> Matrix:
    """Return the classes' probabilities [n, c] with the answers taken in.

    Args:
        posterior: [n, c], from labels alone.
        evidence: [n, k].
        table: t [c, k].
    """
    # Given one's class, what others' labels say and one's own answer are taken to be independent.
    joint = posterior * (_likely(evidence) @ table.T)
    whole: Matrix = joint / joint.sum(axis=1, keepdims=True)
    return whole


def _likely(evidence: Matrix) -> Matrix:
    """Likelihoods up to a factor for each report, the largest of them 1."""
    # Factors of a report cancel in every posterior, and left in they could underflow.
    likely: Matrix = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    return likely
