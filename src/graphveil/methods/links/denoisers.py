"""The graph of a network from noisy neighbour lists; post-processing of reports.

    none               the lists as they are
    calibration        the lists as they are; their weights are learned with the network   (Solitude, equation 14)
    degree-preserving  lists that were thinned on the device to about the noisy degree     (DPRR)
    blink-hard         pairs more likely linked than not                                   (Blink)
    blink-hybrid       the likeliest pairs, as many as links are expected, weighted
    blink-soft         every pair weighted by its posterior
    beliefs            named pairs weighted by their posterior under `models.blocks.block_model`

Sources: Lin, Li, Wang (Solitude), IEEE TIFS 17, 2022; Hidano, Murakami (DPRR), arXiv 2202.10209; Zhu, Tan, Xiao
(Blink), CCS 2023, arXiv 2309.03190; the last is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphveil.errors import InputError
from graphveil.methods.base.network.features import labels_of
from graphveil.methods.base.people.released import Topology
from graphveil.methods.links.collection import LinkReports, named_pairs, reported_edges
from graphveil.methods.links.entries import DENOISERS
from graphveil.methods.links.silent_lists import of_heard
from graphveil.models.blocks.block_model import block_beliefs
from graphveil.models.blocks.group_background import SoftLinks
from graphveil.models.blocks.link_posterior import degree_prior, link_posterior
from graphveil.models.labels.label_prior import class_shares
from graphveil.runtime.late import Tensor, torch

#: Named pairs less likely than this are left out: together they have hardly any weight.
LEAST_LIKELY = 1e-3


@dataclass(frozen=True)
class SoftTopology:
    """A weight on every pair, in place of a `Topology`."""

    links: SoftLinks
    num_nodes: int

    def propagation(self) -> Any:
        return self.links.normalised("gcn")

    def structure(self, model: str, device: str = "cpu") -> Any:
        return self.links.structure(model, device)


def denoise(released: LinkReports, denoiser: str, seed: int) -> Topology | SoftTopology:
    """Return the graph from the reports by a denoiser; refuses lists of a mechanism that it cannot read."""
    nodes = released.nodes
    if released.public_links is not None:
        return Topology(released.public_links, nodes)
    if DENOISERS[denoiser] != released.links.mechanism:
        raise InputError(
            f"denoiser {denoiser} cannot read lists collected by {released.links.mechanism}",
            allowed=", ".join(name for name, kind in DENOISERS.items() if kind == released.links.mechanism),
        )
    if denoiser != "beliefs" and not denoiser.startswith("blink"):
        return Topology(reported_edges(released), nodes)
    pairs = named_pairs(released)
    if denoiser == "beliefs":
        beliefs = block_beliefs(pairs, label_evidence(released))
        likely = beliefs.links > LEAST_LIKELY
        edges, weights = torch.stack([pairs.source, pairs.target])[:, likely], beliefs.links[likely].float()
        # The posterior of a pair is one number for both directions.
        if not pairs.directed:
            edges, weights = torch.cat([edges, edges.flip(0)], dim=1), weights.repeat(2)
        return Topology(edges, nodes, weights)
    prior = degree_prior(degrees_of(released), directed=pairs.directed)
    posterior = link_posterior(pairs.source, pairs.target, pairs.log_ratio, pairs.background, prior)
    if denoiser == "blink-soft":
        return SoftTopology(posterior.soft(), nodes)
    if denoiser == "blink-hard":
        return Topology(posterior.hard(), nodes)
    edges, weights = posterior.hybrid(seed=seed)
    return Topology(edges, nodes, weights)


def degrees_of(released: LinkReports) -> Tensor:
    """Return the estimated degrees [n].

    In mode "lower" the noisy degree counts a person's links to higher ids alone.  The links to the v lower ids are
    estimated without bias from the lists that name v, and shrunk towards v times the density by the noise of that
    estimate beside the variance of a Poisson count. People who sent nothing get the density.
    """
    lists = released.links.parts(released.people.schema, released.nodes)["lists"]
    numbers = torch.arange(released.nodes).double()
    heard = torch.ones(released.nodes, dtype=torch.bool) if released.heard is None else released.heard
    after = released.nodes - 1 - (numbers if lists.mode == "lower" else 0 * numbers)
    reported: Tensor = released.lists["degrees"].levels.double()
    density = max(float(reported[heard].sum()), 1.0) / max(float(after[heard].sum()), 1.0)
    own = torch.where(heard, reported, density * after)
    if lists.mode != "lower":
        return own.round().long()
    lower = heard.double().cumsum(0) - heard.double()
    sent = of_heard(released.lists["lists"], heard)
    named = torch.bincount(sent.columns, minlength=released.nodes)
    # Unbiased: each of `lower` lists names v with probability 1 - p if linked, and p if not.
    unbiased = (named - lower * lists.flip) / (1 - 2 * lists.flip)
    expected = lower * density
    # If lists are swamped the variance of the estimate is far above any degree, and the density alone remains.
    weight = expected / (expected + lower * lists.variance).clamp_min(1e-30)
    degrees: Tensor = own + (numbers - lower) * density + expected + weight * (unbiased - expected)
    return degrees.round().long()


def label_evidence(released: LinkReports) -> Tensor:
    """Return the evidence of the label reports alone about every node: log prior + log Pr[y' | class] [n, c]."""
    labels = labels_of(released.people)
    shares = class_shares(labels.values, labels.channel)
    log_likelihood = labels.channel.logs[:, labels.values.clamp_min(0)].T
    return shares.log() + torch.where((labels.values >= 0)[:, None], log_likelihood, torch.zeros(()))
