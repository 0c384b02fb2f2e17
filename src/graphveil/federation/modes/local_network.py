"""A holder's own network: classes from its own columns over its own edges, and its losses on labels and guesses.

    logits = C S^K X W / s + b    S = D^-1 (A + I) of the holder's edges, rows of X scaled to length 1, W from zero
                                  C takes off each column's mean over who trains, s is the root-mean-square length of
                                  their rows of C S^K X

    loss on labels    - mean over training rows of log( softmax(logits) T )_{y'}             T the channel of the labels
    loss on guesses   - mean over all rows of log sum_c softmax(logits)_c prod_j L_j[c, r_j]

L_j[c, r] is the chance that holder j reports r for a node of class c, estimated on validation nodes, through the known
channel of its randomized response.  The second loss is the exact likelihood of the reports if holders err independently
given the class; it averages noise out over all nodes, which no single noisy row can.  Source: the forward
correction of Patrini et al., CVPR 2017, arXiv 1609.03944, with the confusion matrices of Dawid, Skene, 1979.
Nodes that train move W, and with it every guess.  Mean and length are over them only, so the row of a person who does
not train, and has no connections, moves that person's guess and no other: the protected unit.
Shapes: X [n, d], W [d, c], guesses [n], L [c, c].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import scipy.sparse
import torch
from torch import Tensor, nn

from graphveil.aggregation import SparseMatrix, from_scipy
from graphveil.federation.modes.propagation import Features, transition_matrix

#: The smallest chance in a logarithm; the share of nonzero entries above which a product is quicker dense.
_MIN_CHANCE, _DENSE_SHARE = 1e-12, 0.25
#: The prior of the confusion matrix: how often a guess is right, and its weight in nodes; steps of the fit.
_PRIOR_RIGHT, _PRIOR_WEIGHT, _FIT_STEPS = 0.7, 2.0, 100
#: Random projections by which the length of rows is estimated.
_PROJECTIONS = 32


class LocalNetwork(nn.Module):
    """Logits of all nodes from one holder's features (dense or scipy CSR [n, d]) and edges; nothing of it leaves."""

    def __init__(self, features: Features, edge_index: Tensor, classes: int, hops: int) -> None:
        super().__init__()
        x = features
        if not scipy.sparse.issparse(features):
            # As scipy CSR where most are 0, which makes products with few columns quicker.
            rows = torch.as_tensor(features)
            is_sparse = int((rows != 0).sum()) < _DENSE_SHARE * rows.numel()
            x = scipy.sparse.csr_array(rows.float().numpy()) if is_sparse else rows
        self._x, self._lengths = operator_of(x), row_lengths(features)
        self.transition = from_scipy(transition_matrix(edge_index, int(features.shape[0])))
        self._hops = hops
        self._rows, self._scale = torch.empty(0, dtype=torch.int64), 1.0
        # From zero, nothing is drawn: a holder that trains again gets the same network.
        self.weight = nn.Parameter(torch.zeros(features.shape[1], classes))
        self.bias = nn.Parameter(torch.zeros(classes))

    def centre_on(self, rows: Tensor) -> None:
        """Take mean and length over the rows of those who train, int64 [m], m > 0."""
        self._rows = rows
        # The length is estimated by a few fixed random projections.
        generator = torch.Generator().manual_seed(0)
        signs = torch.randint(0, 2, (self.weight.shape[0], _PROJECTIONS), generator=generator) * 2.0 - 1.0
        length = float(self._centred(signs)[rows].square().mean().sqrt())
        self._scale = 1.0 / max(length, _MIN_CHANCE)

    def forward(self) -> Tensor:
        """Return logits [n, c], once `centre_on` has been called."""
        return self._scale * self._centred(self.weight) + self.bias

    def learned_state(self) -> dict[str, Tensor]:
        """Return copies of all that `forward` uses of training, for `logits_of` when people have joined."""
        with torch.no_grad():
            offset = self._propagated(self.weight)[self._rows].mean(dim=0)
        parts = {"weight": self.weight, "bias": self.bias, "offset": offset, "scale": torch.tensor(self._scale)}
        return {name: value.detach().clone() for name, value in parts.items()}

    def logits_of(self, learned: Mapping[str, Tensor]) -> Tensor:
        """Return logits [n, c] of this graph's people.

        Args:
            learned: of `learned_state`, perhaps of a graph of fewer people.
        """
        z = self._propagated(learned["weight"]) - learned["offset"]
        return learned["scale"] * z + learned["bias"]

    def _centred(self, weight: Tensor) -> Tensor:
        """Return C S^K X W [n, c]: a dense graph makes rows alike, and their common part says nothing of a class."""
        z = self._propagated(weight)
        return z - z[self._rows].mean(dim=0)

    def _propagated(self, weight: Tensor) -> Tensor:
        # From the right: n x c numbers are propagated in place of n x d, with the same result.
        z = (self._x @ weight) / self._lengths
        for _ in range(self._hops):
            z = self.transition @ z
        return z


def operator_of(features: Features) -> SparseMatrix | Tensor:
    """Return features as an operand of `@` that is differentiable in its right side."""
    return from_scipy(features) if scipy.sparse.issparse(features) else torch.as_tensor(features).float()


def row_lengths(features: Features) -> Tensor:
    """Return the length of every row, float32 [n, 1], 1 for rows of zeros."""
    if isinstance(features, Tensor | np.ndarray):
        lengths = torch.linalg.vector_norm(torch.as_tensor(features).double(), dim=1)
    else:
        lengths = torch.from_numpy(np.sqrt(np.asarray(features.multiply(features).sum(axis=1)).ravel()))
    # A person without features stays a row of zeros, in place of NaN that would spread over all neighbours.
    return torch.where(lengths > 0, lengths, 1.0).float()[:, None]


def train_local(
    network: LocalNetwork, rows: Tensor, loss: Callable[[Tensor], Tensor], *, epochs: int, rate: float, decay: float
) -> None:
    """Train from zero, by Adam.

    Args:
        rows: who trains, int64 [m].
        loss: of the logits of all nodes, float32 [n, c].
    """
    with torch.no_grad():
        network.weight.zero_()
        network.bias.zero_()
        network.centre_on(rows)
    optimiser = torch.optim.Adam(network.parameters(), lr=rate, weight_decay=decay)
    for _ in range(epochs):
        optimiser.zero_grad()
        loss(network()).backward()  # type: ignore[no-untyped-call]
        optimiser.step()


def label_loss(logits: Tensor, labels: Tensor, channel: Tensor) -> Tensor:
    """Corrected cross-entropy of labels that went through a known channel, - mean log( softmax(logits) T )_y, a scalar.

    Args:
        logits: float32 [m, c].
        labels: as reported, int64 [m].
        channel: T, Pr[reported = column | true = row], float32 [c, c].
    """
    return label_losses(logits, labels, channel).mean()


def label_losses(logits: Tensor, labels: Tensor, channel: Tensor) -> Tensor:
    """The loss `label_loss` of every row alone, float32 [m]; arguments as there."""
    chances = (torch.softmax(logits, dim=1) @ channel).gather(1, labels[:, None])
    return -chances.clamp_min(_MIN_CHANCE).log().squeeze(1)


def guess_loss(logits: Tensor, guesses: Sequence[Tensor], chances: Sequence[Tensor]) -> Tensor:
    """Negative log-likelihood of all holders' guesses, the mean over nodes.

    Args:
        logits: float32 [n, c].
        guesses: as reported, int64 [n] of each holder.
        chances: L_j [c, reports] of each holder, see `guess_chances`.
    """
    each = [chance.clamp_min(_MIN_CHANCE).log().T[guess] for guess, chance in zip(guesses, chances, strict=True)]
    return -torch.logsumexp(torch.log_softmax(logits, dim=1) + torch.stack(each).sum(dim=0), dim=1).mean()


def guess_chances(guesses: Tensor, labels: Tensor, response: Tensor, channel: Tensor) -> Tensor:
    """Fit the chance of each report given the true class, L, float32 [c, reports], by expectation and maximisation over
    true classes and unrandomized guesses; the prior where there are no pairs (Dawid, Skene, Applied Statistics 28,
    section 3).

    Args:
        guesses: as reported, int64 [m]; m may be 0.
        labels: as reported, int64 [m].
        response: Pr[report | guess] [c, reports].
        channel: Pr[reported label | true label] [c, c].
    """
    classes, reports = response.shape
    response, channel = response.double(), channel.double()
    # Counts of pairs are all that the likelihood depends on: its cost does not grow with the number of nodes.
    pairs = torch.zeros(classes * reports, dtype=torch.float64)
    pairs.index_add_(0, labels * reports + guesses, torch.ones(len(guesses), dtype=torch.float64))
    counts = pairs.view(classes, reports)
    start = torch.full((classes, classes), (1 - _PRIOR_RIGHT) / max(classes - 1, 1), dtype=torch.float64)
    start.fill_diagonal_(_PRIOR_RIGHT)
    confusion, share = start, torch.full((classes, 1), 1 / classes, dtype=torch.float64)
    for _ in range(_FIT_STEPS):
        model = channel.T @ (share * confusion) @ response  # chance of each pair (reported label, report)
        joint = share * confusion * (channel @ (counts / model.clamp_min(_MIN_CHANCE)) @ response.T)
        # As if each class had one more node: a class that no validation node has must stay possible.
        share = (joint.sum(dim=1, keepdim=True) + 1) / (joint.sum() + classes)
        # The prior counts as a few nodes: with few validation nodes an estimate of 0 would forbid what can happen.
        smoothed = joint + _PRIOR_WEIGHT * start
        confusion = smoothed / smoothed.sum(dim=1, keepdim=True)
    return (confusion @ response).float()
