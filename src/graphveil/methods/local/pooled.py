"""LPGNN's network pooled with what labels alone say of the same graph.

    z   = w1 u(network) + w2 log p        u: less its mean over the classes, to unit root-mean-square over everybody
    p   = what the pool of labels says, see `methods.local.label_pool`
    w   = the weights by which validation reports are likeliest, see `models.labels.pool`, pulled towards FIRST

The reports that weigh were heard by neither: the network of a short training stands for the one in the end, and the
pool leaves out each report where it speaks of its own node.  A network sees what features say, and the pool reads a
graph in more ways than any number of hops: each is best on some family of graphs, and both together on most.
A report is worth at most log 1/q, q the channel's chance of any other class, so that few forged ones move little.

Ours.  All of it is post-processing of what was released, and costs no privacy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphveil.engine import LOCAL, Engine
from graphveil.methods.base.network.hops import ChosenHops, short_training
from graphveil.methods.base.network.network import FeatureMatrix, Labels, Network
from graphveil.methods.base.people.released import Topology
from graphveil.methods.base.settings import NetworkSettings
from graphveil.methods.local.label_pool import NETWORK_WORK, affordable, pooled_opinions, read_labels, unit_scores
from graphveil.models.labels.pool import pool_weights
from graphveil.runtime.late import Tensor, torch

#: Weights of the network and of the labels before any report judges.
FIRST = (0.3, 1.0)


@dataclass(frozen=True)
class Pooled:
    """The pool of a network and of labels: log-scores [n, c] of both, probabilities [n, c] by the labels' pool where it
    has all members of `label-pool`, and the weights of the network and of the labels.
    """

    logits: Tensor
    labels_alone: Tensor | None
    weights: tuple[float, float]

    @property
    def sentence(self) -> str:
        """The weights in a sentence."""
        network, labels = (round(weight, 2) for weight in self.weights)
        return (
            f"the network (weight {network:g}) is pooled with what labels alone say (weight {labels:g}), weighed at no "
            "further cost by released validation labels that neither had heard; other graphs get the network's answers"
        )


def can_pool(labels: Labels, settings: NetworkSettings) -> bool:
    """Return whether labels have a pool: those of one class a node, whose channel is heeded."""
    return settings.loss == "drop" and labels.values.dim() == 1


def pool_with_labels(
    network: Network,
    hops: ChosenHops | None,
    features: FeatureMatrix,
    offset: float,
    labels: Labels,
    topology: Topology,
    settings: NetworkSettings,
    *,
    engine: Engine = LOCAL,
    **keywords: Any,
) -> Pooled:
    """Return a trained network pooled with what labels alone say.

    Args:
        network, hops: trained on all reports; how its hops were chosen, if they were: the trial is what reports judge.
        features, offset, labels, topology, settings: what it was trained on, as of `train_network`.
    """
    values = torch.where(labels.train | labels.val, labels.values, -1)
    channel = labels.channel
    where: dict[str, Any] = {"seed": settings.seed, "device": settings.device, "engine": engine}
    read = read_labels(topology, values, channel, **where, work=NETWORK_WORK)
    edges = read.setting.entries
    complete = affordable(edges, channel.classes, NETWORK_WORK) or not affordable(edges, channel.classes)
    out_of_fold, alone = (opinion.cpu() for opinion in pooled_opinions(read, labels.val))
    judges = (labels.val & (values >= 0)).nonzero().squeeze(1)
    weights = torch.tensor(FIRST)
    if len(judges):
        trial = None if hops is None else hops.trial
        judged = trial or short_training(features, offset, labels, topology, settings, engine=engine, **keywords)
        heard = channel.logs[:, values[judges]].T
        opinions = torch.stack([_unit(judged.logits)[judges], out_of_fold[judges]])
        # In double precision: the search ends at the optimum, and not where rounding stops it, another place on a GPU.
        weights = pool_weights(opinions.double(), heard.double(), weights.double()).float()
    logits = torch.tensordot(weights, torch.stack([_unit(network.logits), alone]), dims=1)
    return Pooled(logits, alone.exp() if complete else None, (float(weights[0]), float(weights[1])))


def _unit(scores: Tensor) -> Tensor:
    """Return scores [n, c] as one block of `unit_scores`: trainings differ in how sure they are."""
    return unit_scores(scores[:, None]).squeeze(1)
