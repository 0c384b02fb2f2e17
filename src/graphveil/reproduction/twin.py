"""A federation as its parties run it, all in one process, beside the same training in the clear."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from graphveil.federation.core.setting import Member, Setting
from graphveil.federation.simulation import head_of, partition_graph, simulate_training, vertical_partition
from graphveil.graphs import Graph, Split
from graphveil.privacy import SeededRandomness
from graphveil.reproduction.clear import Outcome, Plan, run


@dataclass(frozen=True)
class Twins:
    """Both runs of one partition.

    Attributes:
        secure: accuracy on test nodes of the parties' run, a fraction.
        plain: the run in the clear, of the same seeds and, for a shared first layer, of the same draws.
        bytes, seconds: of all messages of the parties' run, and of all parties together on the CPU.
    """

    secure: float
    plain: Outcome
    bytes: int
    seconds: float


def train_twins(plan: Plan, graph: Graph, split: Split, shares: Sequence[float], seed: int) -> Twins:
    """Train a federation's parties, and their plaintext twin on what they drew.

    Args:
        plan: without noise; graph, split: of all holders together; shares: of columns and edges, a number a holder.
        seed: of the partition, weights, dropout, and of what should be secret: a comparison protects nobody.
    """
    members, holdings = partition_graph(graph, split, shares, seed=seed)
    setting = setting_of(plan, members, len(graph.schema.classes))
    blocks = {"paper": [member.columns for member in members] * len(members)}
    blocks["shared-linear"] = [setting.columns] * len(members)
    drawn = [columns * plan.width for columns in blocks.get(plan.mode, [])]
    source, began = _RecordingSource(seed, set(drawn)), time.process_time()
    trained = simulate_training(setting, holdings, randomness=source, seed=seed)
    seconds, predicted = time.process_time() - began, head_of(holdings).predictions
    if predicted is None:
        raise RuntimeError("the label holder has no predictions")
    secure = float((predicted.argmax(dim=1) == graph.y)[split.test].float().mean())
    # Later draws of the same size are masks.
    words = source.words[: len(drawn)]
    # The parties' own server takes rows apart, whatever the paper's does.
    plain = run(replace(plan, apart=True), vertical_partition(graph, shares, seed=seed), graph.y, split, seed, words)
    return Twins(secure, plain, trained.transcript.bytes, seconds)


def setting_of(plan: Plan, members: tuple[Member, ...], classes: int, **changes: Any) -> Setting:
    """Return the agreed run that a plan stands for.

    Args:
        plan, members, classes: the plan, the holders, how many classes; changes: settings beside the plan's.
    """
    own = {name: value for name, value in asdict(plan).items() if name not in ("sigma", "shrink", "apart")}
    return Setting.of(members, classes, **{"opened": True, "epsilon": math.inf, **own, **changes})


class _RecordingSource:
    """A seeded source that remembers what was drawn in these amounts."""

    def __init__(self, seed: int, counts: set[int]) -> None:
        self._source, self._counts = SeededRandomness(seed), counts
        self.void = self._source.void
        self.words: list[np.ndarray] = []

    def uint64(self, count: int) -> np.ndarray:
        drawn = self._source.uint64(count)
        if count in self._counts:
            self.words.append(drawn.copy())
        return drawn

    def bytes(self, count: int) -> bytes:
        return self._source.bytes(count)
