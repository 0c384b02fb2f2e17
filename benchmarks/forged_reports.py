"""Forged reports: people who send what they like, and fake people who link to others.

    random     a class and bits by coin
    labels     one class, and the bits that speak for it
    coordinate the largest bit of one coordinate, wherever it is theirs to report
    fakes      new people: each links to others of its own choice and says that it is of the next class; its bits speak
               for that class and against theirs

All of them know everybody's true values, which no forger does: what they reach is more than what a real one would. A
report keeps to what a device can send, so that none is refused: coordinates are those that were assigned, bits are 0
or 1, a list is as long as an honest one.

Source of the last: L. He, C. Li, P. Tang, L. Sun, S. Su, P. S. Yu, "Devil's Hand: Data Poisoning Attacks to Locally
Private Graph Learning Protocols", arXiv 2506.09803: fake people link to targets in turn, as many links as are usual,
and send extreme reports that a device could have sent. Labels are ours: there fake people send none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.mechanisms import EdgeReports, MultiBitReports
from graphveil.methods.base.people.released import LocalReports, Topology

KINDS = ("random", "labels", "coordinate", "fakes")


@dataclass(frozen=True)
class Truth:
    """What forgers know.

    Args:
        classes: int64 [n], everybody's class. centres: [c, d], the mean features of each class.
    """

    classes: Tensor
    centres: Tensor

    @classmethod
    def of(cls, features: Tensor, classes: Tensor, count: int) -> Truth:
        """Return what is known of true values.

        Args:
            features: [n, d], sparse or dense. classes: [n]. count: c.
        """
        members = torch.nn.functional.one_hot(classes, count).T.float()
        # The sparse one on the left, as products with sparse rows are.
        sums = (features.float().transpose(0, 1) @ members.T).T
        return cls(classes, sums.to_dense() / members.sum(dim=1, keepdim=True).clamp_min(1))

    @property
    def commonest(self) -> int:
        """The class with the most people: the others are nearest to it, and lose most to forgers who all name it."""
        return int(torch.bincount(self.classes, minlength=len(self.centres)).argmax())


def some_of(people: int, share: float, seed: int) -> Tensor:
    """Return the mask [n] of who forges, round(share n) of them. Raises InputError: a share that is none.

    Args:
        people: n. share: of them. seed: of who.
    """
    if not 0 <= share < 1:
        raise InputError(f"share = {share!r}", where="forged reports", allowed="a number in [0, 1)")
    is_forger = torch.zeros(people, dtype=torch.bool)
    order = np.random.default_rng([seed, 0xF0]).permutation(people)
    is_forger[torch.from_numpy(order[: round(share * people)])] = True
    return is_forger


def forge(reports: LocalReports, is_forger: Tensor, kind: str, truth: Truth, seed: int) -> LocalReports:
    """Return reports of which some are forged. Raises InputError: another kind.

    Args:
        reports: of everybody, features by multi-bit. who: mask [n] of the forgers.
        kind: "random", "labels" or "coordinate". truth: what they know. seed: of what is drawn.
    """
    if kind not in KINDS[:3]:
        raise InputError(f"kind {kind!r} is not known", where="forged reports", allowed=", ".join(KINDS[:3]))
    count = len(truth.centres)
    if kind == "coordinate":
        return _with_bits(reports, is_forger, _on_one(reports.features, truth))
    classes = torch.full_like(truth.classes, truth.commonest)
    if kind == "random":
        draws = np.random.default_rng([seed, 0xF1])
        classes = torch.from_numpy(draws.integers(0, count, len(classes)))
        coins = draws.integers(0, 2, tuple(reports.features.bits.shape), np.uint8)
        return _with_bits(_with_labels(reports, is_forger, classes), is_forger, torch.from_numpy(coins))
    bits = speaking_for(reports.features.indices, classes, truth.classes, truth)
    return _with_bits(_with_labels(reports, is_forger, classes), is_forger, bits)


def speaking_for(indices: Tensor, classes: Tensor, against: Tensor, truth: Truth) -> Tensor:
    """Return the bits that are likelier of one class than of another, uint8 [k, m].

    Args:
        indices: [k, m], the coordinates that are reported. classes, against: [k]. truth: what is known.
    """
    columns = indices.long()
    gain = truth.centres[classes[:, None], columns] - truth.centres[against[:, None], columns]
    return (gain > 0).to(torch.uint8)


def with_fakes(
    reports: LocalReports, topology: Topology, count: int, truth: Truth, seed: int
) -> tuple[LocalReports, Topology]:
    """Return reports and topology with fake people after all others.

    Args:
        reports: of everybody. topology: who is linked to whom. count: of fakes. truth: what they know.
        seed: of whom they link to and what coordinates they are asked for.
    """
    draws = np.random.default_rng([seed, 0xF2])
    links = max(1, round(topology.edge_index.shape[1] / topology.num_nodes))
    people = torch.from_numpy(victims(len(truth.classes), count, links, draws))
    fakes = topology.num_nodes + torch.arange(count).repeat_interleave(links)
    edges = torch.stack([fakes, people.flatten()])
    grown = Topology(torch.cat([topology.edge_index, edges, edges.flip(0)], dim=1), topology.num_nodes + count)
    against = truth.classes[people[:, 0]]
    classes = (against + 1) % len(truth.centres)
    size, d = reports.features.indices.shape[1], truth.centres.shape[1]
    indices = torch.from_numpy(np.sort([draws.choice(d, size, replace=False) for _ in range(count)], axis=1)).int()
    bits = speaking_for(indices, classes, against, truth)
    features = MultiBitReports(torch.cat([reports.features.indices, indices]), torch.cat([reports.features.bits, bits]))
    nobody, all_ = torch.zeros(count, dtype=torch.bool), torch.ones(count, dtype=torch.bool)
    masks = torch.cat([reports.train, all_]), torch.cat([reports.val, nobody])
    forged = replace(reports, features=features, labels=torch.cat([reports.labels, classes]), ids=None)
    return replace(forged, train=masks[0], val=masks[1]), grown


def victims(people: int, fakes: int, links: int, draws: np.random.Generator) -> np.ndarray:
    """Return whom each fake links to [fakes, links]: people in turn, so that nobody has two before all have one.

    Args:
        people: n, who can be chosen. fakes, links: how many fakes, and links of each. draws: of the order.
    """
    order = draws.permutation(people)
    return order[np.arange(fakes * links) % people].reshape(fakes, links)


def forge_lists(sent: EdgeReports, is_forger: Tensor, mode: str, flip: float, seed: int) -> EdgeReports:
    """Return lists of which those of forgers name people of their choice, in turn, behind the noise of an honest list.

    Args:
        sent: n lists. who: mask [n] of the forgers. mode: for whom a list answers. flip: p of the lists' noise.
        seed: of whom they name, and of the noise.
    """
    draws, n = np.random.default_rng([seed, 0xF3]), len(sent)
    lengths, forgers = sent.starts.diff().numpy(), is_forger.nonzero().flatten().numpy()
    possible = n - 1 - np.arange(n) if mode == "lower" else np.full(n, n - 1)
    # As many as an honest list holds on average: what is not named by chance.
    usual = max(1, round(float((lengths - possible * flip).sum() / (1 - 2 * flip) / n)))
    rows = np.split(sent.columns.numpy(), sent.starts.numpy()[1:-1])
    for forger, chosen in zip(forgers, victims(n, len(forgers), usual, draws), strict=True):
        named = draws.random(n) < flip
        named[chosen] = draws.random(len(chosen)) >= flip
        named[: forger + 1 if mode == "lower" else 0] = False
        named[forger] = False
        rows[forger] = np.flatnonzero(named).astype(np.int32)
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return EdgeReports(torch.from_numpy(starts), torch.from_numpy(np.concatenate(rows)))


def _on_one(features: MultiBitReports, truth: Truth) -> Tensor:
    """Return bits where that of the rarest coordinate is 1, wherever somebody was asked for it."""
    aimed = int(truth.centres.mean(dim=0).argmin())
    return torch.where(features.indices == aimed, torch.ones_like(features.bits), features.bits)


def _with_labels(reports: LocalReports, is_forger: Tensor, classes: Tensor) -> LocalReports:
    # Who was not asked for a label sends none: it would be refused.
    return replace(reports, labels=torch.where(is_forger & (reports.labels >= 0), classes, reports.labels))


def _with_bits(reports: LocalReports, is_forger: Tensor, bits: Tensor) -> LocalReports:
    forged = torch.where(is_forger[:, None], bits, reports.features.bits)
    return replace(reports, features=MultiBitReports(reports.features.indices, forged))
