"""LPGNN's network pooled with labels alone on the same graph.

    z   = w1 u(network) + w2 log p        u: minus its mean over the classes, scaled to unit root-mean-square over all
    p   = the probabilities of the pool of labels, see `methods.local.label_pool`
    w   = the weights under which validation reports are likeliest, see `models.labels.pool`, regularized towards FIRST

Neither side has seen the reports that weigh them: a network of a short training stands in for the final one, and the
pool scores each node without its own report.  A network uses features, and the pool reads the graph in more ways than
any number of hops: each is best on some family of graphs, and both together on most.  A report changes the likelihood
by at most log 1/q, q the channel's probability of each other class, so that few forged reports have little influence.

Ours.  All of it is post-processing of released data, and costs no privacy.
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
        """The weights, for people."""
        network, labels = (round(weight, 2) for weight in self.weights)
        return (
            f"the network (weight {network:g}) is pooled with what labels alone say (weight {labels:g}), weighed at no "
            "further cost by released validation labels that neither had heard; other graphs get the network's answers"
        )


def can_pool(labels: Labels, settings: NetworkSettings) -> bool:
    """Return whether labels have a pool: one label a node, in a loss that corrects for the channel."""
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
    """Return a trained network pooled with labels alone.

    Args:
        network, hops: trained on all reports; the choice of its hops, if any, whose trial the reports judge.
        features, offset, labels, topology, settings: of its training, as in `train_network`.
    """
    values = torch.where(labels.train | labels.val, labels.values, -1)
    channel = labels.channel
    read_keywords: dict[str, Any] = {"seed": settings.seed, "device": settings.device, "engine": engine}
    read = read_labels(topology, values, channel, **read_keywords, work=NETWORK_WORK)
    edges = read.setting.entries
    complete = affordable(edges, channel.classes, NETWORK_WORK) or not affordable(edges, channel.classes)
    out_of_fold, whole = (opinion.cpu() for opinion in pooled_opinions(read, labels.val))
    judges = (labels.val & (values >= 0)).nonzero().squeeze(1)
    weights = torch.tensor(FIRST)
    if len(judges):
        trial = None if hops is None else hops.trial
        judged = trial or short_training(features, offset, labels, topology, settings, engine=engine, **keywords)
        log_likelihood = channel.logs[:, values[judges]].T
        opinions = torch.stack([_unit(judged.logits)[judges], out_of_fold[judges]])
        # In double precision, so that the search reaches the optimum, also on a GPU.
        weights = pool_weights(opinions.double(), log_likelihood.double(), weights.double()).float()
    logits = torch.tensordot(weights, torch.stack([_unit(network.logits), whole]), dims=1)
    return Pooled(logits, whole.exp() if complete else None, (float(weights[0]), float(weights[1])))


def _unit(scores: Tensor) -> Tensor:
    """Return scores [n, c] in the scale of `unit_scores`: trainings differ in scale."""
    return unit_scores(scores[:, None]).squeeze(1)
