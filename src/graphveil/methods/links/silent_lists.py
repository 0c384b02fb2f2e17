"""The evidence of neighbour lists about pairs if some people sent none: of a pair only the ends that reported count.

    k_e         reports that could name pair e: of its reporting ends that sent their list
    log L_e     = (2 named_e - k_e) ln((1 - p) / p),  0 without any report
    chi^2       = mean over all pairs of E[L_e | link] - 1,  E[L_e | link] = r^{k_e},  r = (1 - p)^2 / p + p^2 / (1 - p)

With that mean (L - 1) / chi^2 stays unbiased summed over pairs, if who reports is independent of links: pairs without a
report give 0, and all others as much more. Pairs with fewer than all reports are listed one by one.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from graphveil.errors import InputError
from graphveil.mechanisms import AdjacencyRR, EdgeReports
from graphveil.models.blocks.block_model import NamedPairs
from graphveil.runtime.late import Tensor, torch
from graphveil.runtime.words import count_of

#: The most pairs that lack a report, which are listed one by one: 24 bytes each, and again in messages.
MOST_UNHEARD: Final = 20_000_000


def usual_excess(flip: float, reports: int = 1) -> float:
    """Return E[L | link] - 1 of some reports whose bits are wrong with probability `flip`; above 0 below 1/2."""
    # (1 - f)^2 / f + f^2 / (1 - f) - 1, which near 1/2 would be lost in rounding.
    return math.expm1(reports * math.log1p((1 - 2 * flip) ** 2 / (flip * (1 - flip))))


def of_heard(sent: EdgeReports, heard: Tensor) -> EdgeReports:
    """Return n lists; those outside the mask [n] are empty.

    Args:
        heard: mask [n].
    """
    lengths = torch.where(heard, sent.starts.diff(), 0)
    keep = torch.repeat_interleave(heard, sent.starts.diff())
    starts = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    return EdgeReports(starts, sent.columns[keep])


def pairs_of_some(lists: AdjacencyRR, sent: EdgeReports, heard: Tensor) -> NamedPairs:
    """Return what the lists of some say about every pair; refuses more pairs without a report than MOST_UNHEARD.

    Args:
        heard: mask [n] of those who sent theirs.
    """
    reports_of_pair, heard_mask = 2 if lists.mode == "both" else 1, heard.numpy()
    evidence = lists.evidence(of_heard(sent, heard))
    source, target = evidence.source.numpy(), evidence.target.numpy()
    # Of a named pair: its evidence if all had reported, plus that of missing reports, none of which denies it.
    unit = -evidence.background / reports_of_pair
    ratio = evidence.log_ratio.numpy() + (reports_of_pair - _reports(lists.mode, heard_mask, source, target)) * unit
    first, second = _pairs_lacking_reports(lists, heard_mask)
    unnamed = ~np.isin(first * lists.nodes + second, source * lists.nodes + target)
    first, second = first[unnamed], second[unnamed]
    rest = -_reports(lists.mode, heard_mask, first, second) * unit
    return NamedPairs(
        lists.nodes,
        torch.from_numpy(np.concatenate([source, first])),
        torch.from_numpy(np.concatenate([target, second])),
        torch.from_numpy(np.concatenate([ratio, rest])),
        evidence.background,
        _information(lists, heard_mask),
        evidence.directed,
    )


def _reports(mode: str, heard_mask: np.ndarray, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return k_e of pairs [m]; of an undirected pair the source has the lower number."""
    reports: np.ndarray = heard_mask[source].astype(np.int64)
    return reports + heard_mask[target] if mode == "both" else reports


def _pairs_lacking_reports(lists: AdjacencyRR, heard_mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs that could have been in more reports, as two int64 [m]."""
    people, silent = np.arange(lists.nodes), np.flatnonzero(~heard_mask)
    count = len(silent) * (lists.nodes - 1)
    if count > MOST_UNHEARD:
        raise InputError(
            f"{len(silent):,} of {count_of(lists.nodes, 'person')} sent no list",
            where="lists",
            allowed=f"{MOST_UNHEARD:,} pairs that lack a report",
            remedy="leave out who sent nothing at all, or wait for more of them",
        )
    first, second = np.repeat(silent, lists.nodes), np.tile(people, len(silent))
    # In mode "lower" a pair is in the list of its lower end alone: the other end need not report.
    keep = first < second if lists.mode == "lower" else first != second
    first, second = first[keep], second[keep]
    if lists.mode != "both":
        return first, second
    keys = np.unique(np.minimum(first, second) * lists.nodes + np.maximum(first, second))
    return keys // lists.nodes, keys % lists.nodes


def _information(lists: AdjacencyRR, heard_mask: np.ndarray) -> float:
    nodes, excess = lists.nodes, usual_excess(lists.flip)
    if lists.mode == "both":
        senders = int(heard_mask.sum())
        two, single = senders * (senders - 1) / 2, senders * (nodes - senders)
        return (two * usual_excess(lists.flip, 2) + single * excess) / (nodes * (nodes - 1) / 2)
    after = np.arange(nodes - 1, -1, -1) if lists.mode == "lower" else np.full(nodes, nodes - 1)
    return float(after[heard_mask].sum() / after.sum()) * excess
