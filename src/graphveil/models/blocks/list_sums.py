"""Sums over neighbours from noisy lists: the classes on every list, and those of friends of friends.

    a_uv = (L_uv - 1) / chi^2        1 on average for a link and 0 for none, by the known channel of the lists
    H_v  = sum over u != v of a_uv m_u        E[H] = A M, with variance |m_k|^2 / chi^2 a column, more where links are
    S_v  = sum over w of a_vw sum over u not in {v, w} of a_uw m_u / d_w      messages of everybody who also names w

A message m_u that is itself unbiased, such as the unbiased estimate of a randomized label, leaves H unbiased: the two
noises are independent.  Own messages never enter own sums.  The pairs nobody named share one small
negative number and are summed in closed form, so that the sums cost the reports.  Two steps see people whose friends
differ from them in class, yet agree with one another (monophily: Altenburger and Ugander, Nature Human Behaviour 2,
2018).  d_w is the noisy length of w's list, at least its noise and 1, so that a person with a short list does not get
the weight of thousands.  Shapes: messages and sums [n, k].
"""

from __future__ import annotations

import math

from graphveil.models.blocks.block_model import CHUNK, NamedPairs
from graphveil.models.labels.label_prior import Channel
from graphveil.runtime.late import Tensor, torch


def list_sums(pairs: NamedPairs, messages: Tensor) -> Tensor:
    """Return the unbiased estimate of A M [n, k]: for the owner of each list the sum over everyone on it.

    Args:
        pairs: of directed links, lists belong to their sources.
        messages: M [n, k], of any floating-point type.
    """
    return _sums(pairs, pairs.estimate, messages, to_source=True, to_target=not pairs.directed)


def named_by_sums(pairs: NamedPairs, messages: Tensor) -> Tensor:
    """Return the unbiased estimate of A^T M [n, k]: the sum over everyone whose list names a person."""
    return _sums(pairs, pairs.estimate, messages, to_source=not pairs.directed, to_target=True)


def neighbour_means(pairs: NamedPairs, messages: Tensor) -> Tensor:
    """Return D^-1 A^T M [n, k]: the mean over everyone whose list names a person, shrunk where noise dominates."""
    return named_by_sums(pairs, messages) / _lengths(pairs, messages)


def shared_sums(pairs: NamedPairs, messages: Tensor) -> Tensor:
    """Return S [n, k]: the sum over everyone on a list of the mean message of all other people who name them. Given d,
    E[S] = A D^-1 A^T M less its diagonal times M.

    Args:
        pairs: of directed links, people who name the same people are combined.
        messages: M [n, k].
    """
    named, other = pairs.estimate
    squares, share = (named.square(), other**2), 1 / _lengths(pairs, messages)
    own_return = _sums(pairs, squares, share, to_source=True, to_target=not pairs.directed)
    return list_sums(pairs, neighbour_means(pairs, messages)) - own_return * messages


def noise_scale(pairs: NamedPairs, messages: Tensor) -> Tensor:
    """Return the standard deviation [k] that the noise of lists alone gives each column of the sums."""
    scale: Tensor = messages.norm(dim=0) / math.sqrt(pairs.information)
    return scale


def unbiased_labels(labels: Tensor, reporting: Tensor, channel: Channel) -> Tensor:
    """Return the unbiased estimate of each class from label reports, 1 on average for the true class, else 0 [n, c].

    Args:
        labels: int64 [n], as reported.
        reporting: bool [n], whose reports count; all other rows are zeros.
    """
    rows: Tensor = torch.nn.functional.one_hot(labels.clamp_min(0), channel.classes).float()
    shares: Tensor = torch.where(reporting[:, None], (rows - channel.flip) / channel.lean, torch.zeros(()).to(rows))
    return shares


def _lengths(pairs: NamedPairs, like: Tensor) -> Tensor:
    unit = like.new_ones(pairs.nodes, 1)
    return named_by_sums(pairs, unit).clamp_min(max(1.0, float(noise_scale(pairs, unit))))


def _sums(
    pairs: NamedPairs, weights: tuple[Tensor, float], messages: Tensor, *, to_source: bool, to_target: bool
) -> Tensor:
    """Return the sums of messages weighed by a number for each named pair [S] and one for all others."""
    named, other = weights
    sums = other * (messages.sum(dim=0) - messages)
    for start in range(0, len(named), CHUNK):
        chunk = slice(start, start + CHUNK)
        source, target = pairs.source[chunk], pairs.target[chunk]
        excess = (named[chunk] - other).to(messages)[:, None]
        if to_source:
            sums.index_add_(0, source, excess * messages[target])
        if to_target:
            sums.index_add_(0, target, excess * messages[source])
    return sums
