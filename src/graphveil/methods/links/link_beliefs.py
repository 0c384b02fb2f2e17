"""Link beliefs: classes from features, labels and noisy neighbour lists, each weighed by its exact likelihood.

    devices   as Solitude                                                                            `randomize`
    server    log f_v(a) = log softmax(x_v W + b)_a          logistic regression, strength by validation  `fit_reports`
              + log Pr[y'_v | a]                             for nodes that sent a label
              beliefs = block_beliefs(log f, lists)          belief propagation through the known channel of the lists
              if they predict held-out validation labels better than f alone, each at its best scale; else f alone

No network and no denoised graph: at the epsilons where neighbour lists are private, most reported links are false, and
a hard or soft choice of edges throws away what a thousand weak reports say together.  The rule that falls back to f
reads released validation labels alone, so it costs nothing.  Ours; parts: `models.logistic`, `models.block_model`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from graphveil.aggregation import from_scipy
from graphveil.errors import InputError
from graphveil.graphs import Graph, GraphSchema
from graphveil.late import torch
from graphveil.methods.base.account import Account, restored_account
from graphveil.methods.base.core import ForgetsPeople, Stored, stored_probabilities
from graphveil.methods.base.features import features_of, labels_of
from graphveil.methods.base.local_privacy import LocalPrivacy
from graphveil.methods.base.network import FeatureMatrix, Labels, as_matrix
from graphveil.methods.base.released import require_one_label
from graphveil.methods.base.settings import require_device
from graphveil.methods.base.storage import number, number_from, schema_facts, schema_from
from graphveil.methods.links.collection import (
    LinkReports,
    graph_guarantee,
    named_pairs,
    open_ledger,
    people_key,
)
from graphveil.methods.links.denoisers import log_channel
from graphveil.methods.links.lists_core import ListsCore
from graphveil.methods.links.privacy import LinkPrivacy
from graphveil.models.block_model import NamedPairs, block_beliefs
from graphveil.models.logistic import choose_logistic, fit_logistic
from graphveil.models.names import BELIEF_ROUNDS
from graphveil.privacy import Guarantee, Randomness
from graphveil.progress import Progress, ProgressCallback
from graphveil.training import Epoch

if TYPE_CHECKING:
    from torch import Tensor


#: Factors on log-scores; below 1 they are made less sure.
SCALES = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1)
LINKS_USED, LINKS_UNUSED = "features, labels and lists", "features and labels alone: the lists say too little"


@dataclass(frozen=True)
class FittedBeliefs:
    """What a fitted method keeps: public facts, probabilities [n, c] and which parts were used."""

    schema: GraphSchema
    void: str | None
    people: str | None
    probabilities: Tensor
    variant: str


class LinkBeliefsCore(ListsCore[FittedBeliefs], ForgetsPeople):
    """Noisy neighbour lists weighed by likelihood: `fit` is `randomize` (the devices), then `fit_reports` (server).

    Args:
        epsilon_x, epsilon_y, mechanism, delta: as `Solitude`.
        epsilon_a, mode: as `Solitude`; epsilon_a is finite.
        rounds: of belief propagation.
        seed: fixes random numbers in place of features that are not collected, never privacy noise.
        device: "cpu" or "cuda".

    After fitting: `guarantee`, `ledger`, `released`, `variant` (whether the lists were used).

    Raises:
        InputError: for budgets and settings outside their range.

    Example:
        >>> from graphveil.graphs import social_graph
        >>> from graphveil.methods import LinkBeliefs
        >>> graph = social_graph(200, average_degree=8, dimension=20, classes=3, seed=1)
        >>> model = LinkBeliefs(epsilon_x=1.0, epsilon_a=4.0, rounds=2).fit(graph)
        >>> model.guarantee.epsilon, tuple(model.predict_proba().shape)
        (5.0, (200, 3))
    """

    kind = "link-beliefs"
    written = "LinkBeliefs"
    says_who: tuple[str, ...] = ()
    several = False
    history: tuple[Epoch, ...] = ()
    trains_network = False

    def __init__(
        self,
        *,
        epsilon_x: float | None,
        epsilon_a: float,
        epsilon_y: float = math.inf,
        mode: str | None = None,
        mechanism: str = "multi-bit",
        delta: float = 1e-10,
        rounds: int = BELIEF_ROUNDS,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.privacy = LocalPrivacy(epsilon_x, epsilon_y, mechanism, delta)
        self.links = LinkPrivacy(epsilon_a, mode)
        # Likelihoods of certain links are infinite; a known topology has methods of its own.
        if self.links.public:
            raise InputError("epsilon_a = inf: links are public", remedy="train lpgnn, which takes the topology")
        if isinstance(rounds, bool) or not isinstance(rounds, int) or not 1 <= rounds <= 1000:
            raise InputError(f"rounds = {rounds!r}", allowed="a whole number in 1..1000")
        require_device(device)
        self.rounds, self.seed, self.device = rounds, seed, device
        self.account = Account(open_ledger(self.privacy, self.links))
        self.released: LinkReports | None = None

    def require_served(self, graph: Graph) -> None:
        """Refuse a graph whose nodes have several labels."""
        require_one_label(graph)

    def fit_reports(self, released: LinkReports, *, progress: ProgressCallback | None = None) -> LinkBeliefsCore:
        """Weigh the reports; costs nothing and may be repeated.

        Raises:
            InputError: when reports and budgets do not belong together, or no training node carries a label.
            BudgetError: other reports than those that were paid for.
        """
        schema = self.recognised(released)
        beliefs, variant = weigh(released, rounds=self.rounds, seed=self.seed, device=self.device, progress=progress)
        probabilities = torch.softmax(beliefs, dim=1).cpu()
        self._fitted = FittedBeliefs(schema, released.void, released.people_key, probabilities, variant)
        self.released = released
        return self

    def probabilities(self, graph: Graph | None = None, *, randomness: Randomness | None = None) -> Tensor:
        """Return class probabilities [n, c] of the people who reported.

        Raises:
            InputError: for other people: beliefs travel between those who reported together.
        """
        fitted = self.result
        if graph is not None and people_key(graph) != fitted.people:
            raise InputError(
                "link-beliefs predicts only people who reported",
                where=graph.schema.name,
                remedy="collect their reports and fit again, or train solitude, which predicts on new graphs",
            )
        return fitted.probabilities

    def parameters(self) -> dict[str, Any]:
        """Return the settings that build the core once more."""
        return {**self._options(), "device": self.device}

    def _options(self) -> dict[str, Any]:
        """Return all settings but the device."""
        return {
            "epsilon_x": self.privacy.epsilon_x,
            "epsilon_a": self.links.epsilon_a,
            "epsilon_y": self.privacy.epsilon_y,
            "mode": self.links.mode,
            "mechanism": self.privacy.mechanism,
            "delta": self.privacy.delta,
            "rounds": self.rounds,
            "seed": self.seed,
        }

    @property
    def variant(self) -> str:
        """Whether the lists were used."""
        return self.result.variant

    @property
    def guarantee(self) -> Guarantee:
        """What all that was collected so far protects."""
        fitted = self.result
        nodes, ledger = len(fitted.probabilities), self.account.ledger
        return graph_guarantee(self.privacy, self.links, fitted.schema, nodes, void=fitted.void, ledger=ledger)

    def stored(self) -> Stored:
        """Return predictions, settings, guarantee and ledger; no reports, no links."""
        fitted, options = self.result, self._options()
        budgets = {name: number(options[name]) for name in ("epsilon_x", "epsilon_y")}
        facts = {
            "options": {**options, **budgets},
            "schema": schema_facts(fitted.schema),
            "people": fitted.people,
            "variant": fitted.variant,
            **self.account.facts(),
            "guarantee": self.guarantee.to_dict(),
        }
        return Stored(facts, {"probabilities": fitted.probabilities})

    @classmethod
    def restore(cls, stored: Stored) -> LinkBeliefsCore:
        """Return what `stored` gave, able to predict for its own people.

        Raises:
            KeyError, TypeError, ValueError: for anything else.
        """
        facts = stored.facts
        options = dict(facts["options"])
        for name in ("epsilon_x", "epsilon_y"):
            options[name] = number_from(options[name])
        method = cls(**options)
        method.account = restored_account(facts)
        schema, void = schema_from(facts["schema"]), Guarantee.from_dict(facts["guarantee"]).void
        probabilities = stored_probabilities(stored, len(schema.classes))
        method._fitted = FittedBeliefs(schema, void, facts["people"], probabilities, facts["variant"])
        return method


def weigh(
    released: LinkReports, *, rounds: int, seed: int, device: str = "cpu", progress: ProgressCallback | None = None
) -> tuple[Tensor, str]:
    """Return log-beliefs [n, c] and which parts of the reports they rest on.

    Without validation nodes a third of the training nodes judges instead.

    Raises:
        InputError: when no training node carries a label.
    """
    labels = _judged(labels_of(released.people), device)
    if not bool(labels.train.any()):
        raise InputError("no training node carries a label", remedy="give the split some training nodes")
    heard = log_channel(labels.classes, labels.keep, labels.flip).to(device)
    pairs = named_pairs(released).to(device)
    features = unit_rows(features_of(released.people, seed)[0], device)
    alone, both = _validated(features, labels, pairs, heard, rounds, progress)
    known = labels.train | labels.val
    # Once more with the validation labels as well: they have chosen, and are worth more as evidence than left out.
    final = fit_logistic(features, labels.values, known.nonzero().squeeze(1), heard, alone.strength)
    evidence = _with_labels(final.log_probabilities(features), labels, known, heard)
    # Ties go to the model without lists: it cannot be worse for noise that it does not read.
    if both.score <= alone.score:
        if progress is not None:
            progress(Progress(2 * rounds, 2 * rounds))
        return evidence, LINKS_UNUSED
    tell = None if progress is None else lambda event: progress(Progress(event.total + event.done, 2 * event.total))
    return both.scale * block_beliefs(pairs, evidence, rounds=rounds, progress=tell).beliefs, LINKS_USED


@dataclass(frozen=True)
class _Judged:
    """How likely log-scores make the validation labels at the best of SCALES, and that scale."""

    score: float
    scale: float
    strength: float = 0.0


def _judged(labels: Labels, device: str) -> Labels:
    """Return the labels on a device, with some of those that train set aside where nobody else judges."""
    values, train, val = (part.to(device) for part in (labels.values, labels.train, labels.val))
    if not bool(val.any()):
        nodes, val = train.nonzero().squeeze(1), torch.zeros_like(train)
        # By the number of nodes, which is public: the draw must be the same each time the same reports are weighed.
        drawn = torch.randperm(len(nodes), generator=torch.Generator().manual_seed(len(nodes)))
        val[nodes[drawn[: len(nodes) // 3].to(device)]] = True
        train = train & ~val
    return replace(labels, values=values, train=train, val=val)


def _validated(
    features: Any, labels: Labels, pairs: NamedPairs, heard: Tensor, rounds: int, progress: ProgressCallback | None
) -> tuple[_Judged, _Judged]:
    """Return what validation labels that take no part say of the regression (with its strength) and of the beliefs.

    Beliefs that travelled in loops are surer than they should be, so both are judged at their best scale.
    """
    train, val = labels.train.nonzero().squeeze(1), labels.val.nonzero().squeeze(1)
    fitted, strength = choose_logistic(features, labels.values, train, val, heard)
    field = fitted.log_probabilities(features)
    evidence = _with_labels(field, labels, labels.train, heard)
    tell = None if progress is None else lambda event: progress(Progress(event.done, 2 * event.total))
    beliefs = block_beliefs(pairs, evidence, rounds=rounds, progress=tell).beliefs

    reported = heard[:, labels.values[val]].T

    def likelihood(log_scores: Tensor, scale: float) -> float:
        return float(torch.logsumexp(torch.log_softmax(scale * log_scores[val], dim=1) + reported, dim=1).sum())

    def judged(log_scores: Tensor) -> tuple[float, float]:
        # Both are judged through the labels' own channel: noisy labels that disagree are no error of a model.
        return max((likelihood(log_scores, scale), scale) for scale in SCALES)

    return _Judged(*judged(field), strength), _Judged(*judged(beliefs))


def _with_labels(field: Tensor, labels: Labels, known: Tensor, heard: Tensor) -> Tensor:
    """Return the evidence of every node: its features', and what the label reports of `known` nodes say."""
    reported = heard[:, labels.values.clamp_min(0)].T
    return field + torch.where(known[:, None], reported, torch.zeros(()).to(reported))


def unit_rows(features: FeatureMatrix, device: str) -> Any:
    """Return features [n, d] with rows of length 1, as a matrix with `@`; rows of zeros stay."""
    matrix = as_matrix(features)
    if isinstance(matrix, torch.Tensor):
        return (matrix / matrix.norm(dim=1, keepdim=True).clamp_min(1e-12)).to(device)
    if hasattr(matrix, "tocsr"):
        rows = matrix.tocsr().astype("float32", copy=True)
        lengths = torch.from_numpy(rows.multiply(rows).sum(axis=1)).sqrt().clamp_min(1e-12).numpy().ravel()
        rows.data /= lengths.repeat(rows.indptr[1:] - rows.indptr[:-1])
        return from_scipy(rows).to(device)
    return unit_rows(torch.as_tensor(matrix, dtype=torch.float32), device)


def without_links(released: LinkReports, *, seed: int) -> tuple[Tensor, float]:
    """Return what features and labels alone say of every node [n, c], and the share of validation labels met.

    The share is that of the regression before it learns from validation labels as well.
    """
    labels = labels_of(released.people)
    heard = log_channel(labels.classes, labels.keep, labels.flip)
    features = unit_rows(features_of(released.people, seed)[0], "cpu")
    train, val = labels.train.nonzero().squeeze(1), labels.val.nonzero().squeeze(1)
    chosen, strength = choose_logistic(features, labels.values, train, val, heard)
    met = chosen.log_probabilities(features)[val].argmax(dim=1) == labels.values[val]
    known = labels.train | labels.val
    fitted = fit_logistic(features, labels.values, known.nonzero().squeeze(1), heard, strength)
    return _with_labels(fitted.log_probabilities(features), labels, known, heard), float(met.float().mean())
