"""Label propagation on released labels: no features, no training, no further privacy cost.

    Z <- alpha P Z + (1 - alpha) Y'   (30 steps)     or     Z = P^K Y'

Y' [n, c] holds the one-hot labels that were released (randomized or public), zero rows elsewhere; P = D^-1/2 A D^-1/2.
The variant is chosen by its accuracy on the validation nodes' noisy labels when only the training nodes' labels are
spread, then run with both.  Source: Zhou, Bousquet, Lal, Weston, Scholkopf, "Learning with Local and Global
Consistency", NeurIPS 2003, section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, Self

from graphveil.aggregation import SparseMatrix
from graphveil.aggregation.shared import quick_width
from graphveil.aggregation.sparse import walk_coefficients
from graphveil.engine import LOCAL, Engine
from graphveil.errors import InputError
from graphveil.graphs import Graph, GraphSchema, Split
from graphveil.methods.base.method import entry_of
from graphveil.methods.base.network.objectives import label_matrix
from graphveil.methods.base.network.start import Reader, read_start, require_start, start_name
from graphveil.methods.base.parameters import checked_graph
from graphveil.methods.base.people.account import Account, restored_account
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.methods.base.people.released import LocalReports, Topology, require_servable, topology_of
from graphveil.methods.base.settings import NUMBERS, require_device
from graphveil.methods.base.storage import (
    Stored,
    number,
    schema_facts,
    schema_from,
    stored_number,
    stored_probabilities,
)
from graphveil.methods.local.entries import LOCAL_METHODS
from graphveil.methods.local.label_pool import COMMON, OWN, pool_labels
from graphveil.methods.local.question import QuestionPrivacy, collect_answers, posterior_with_answers, read_statistics
from graphveil.methods.local.reports import ReportsEstimator
from graphveil.models.labels.label_prior import Channel
from graphveil.privacy import Guarantee, Randomness
from graphveil.runtime.checks import require_choice
from graphveil.runtime.late import Tensor, torch
from graphveil.runtime.progress import Progress, ProgressCallback

ALPHAS = (0.8, 0.9, 0.95, 0.98)
HOPS = (2, 4, 8, 16)
STEPS = 30
RULES = ("propagation", "pool")


def spread(p: SparseMatrix, seeds: Tensor, alpha: float, steps: int = STEPS) -> Tensor:
    """Return Z [n, c] after `steps` of the first formula."""
    z = seeds
    for _ in range(steps):
        z = (p @ z).mul_(alpha).add_(seeds, alpha=1 - alpha)
    return z


def variants(p: SparseMatrix) -> dict[str, Callable[[Tensor], Tensor]]:
    """Return every candidate by name, a function from seeds to Z."""
    runs: dict[str, Callable[[Tensor], Tensor]] = {f"alpha={a}": partial(spread, p, alpha=a) for a in ALPHAS}
    runs.update({f"hops={hops}": partial(p.power, hops=hops) for hops in HOPS})
    return runs


def all_spread(p: SparseMatrix, seeds: Tensor, nodes: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Return every candidate's name and some rows of its Z [m, c], from one chain of products for all of them.

    Args:
        p, seeds: [n, n] and Y' [n, c].
        nodes: whose rows are wanted, int64 [m].
    """
    chains = {f"hops={hops}": walk_coefficients(hops, 1.0, STEPS) for hops in HOPS}
    chains |= {f"alpha={alpha}": walk_coefficients(STEPS, alpha, STEPS) for alpha in ALPHAS}
    return zip(chains, p.forward.polynomials(seeds, list(chains.values()), nodes), strict=True)


def propagate_labels(
    p: SparseMatrix,
    labels: Tensor,
    train: Tensor,
    val: Tensor,
    channel: Channel,
    *,
    engine: Engine = LOCAL,
) -> tuple[Tensor, str]:
    """Return class probabilities [n, c] and the name of the variant chosen.

    Args:
        p, labels, train, val: the matrix, released labels [n] (-1 where none), and masks [n].
        channel: the noise of the labels, inverted on the shares that reach a node.
    """
    classes = channel.classes
    p = p.on(engine)
    # Padded with columns of zeros to the fastest width of products.
    width, judges = quick_width(classes), val.nonzero().squeeze(1)
    # On validation labels, which are not among the seeds: otherwise a variant that copies its seeds would win.
    candidates = all_spread(p, label_matrix(labels, train, width), judges)
    hits = {name: int((z[:, :classes].argmax(dim=1) == labels[judges]).sum()) for name, z in candidates}
    runs = variants(p)
    name = max(runs, key=hits.__getitem__)
    z = runs[name](label_matrix(labels, train | val, width))[:, :classes].contiguous()
    return shares_to_probabilities(z, channel), name


def shares_to_probabilities(z: Tensor, channel: Channel) -> Tensor:
    """Return the class shares behind the noisy mass `z` [n, c]: (z / sum - q) / (p - q), clipped and normalised. Rows
    without mass become uniform; the most likely class stays the one with the largest mass.
    """
    total = z.sum(dim=1, keepdim=True)
    shares = torch.where(total > 0, z / total.clamp_min(1e-30), torch.full_like(z, 1.0 / z.shape[1]))
    # Plus a little of the uncorrected shares: clipping alone would leave rows of zeros without an order.
    clean = ((shares - channel.flip) / channel.lean).clamp_min(0) + 1e-6 * shares
    return clean / clean.sum(dim=1, keepdim=True)


@dataclass(frozen=True)
class FittedLabels:
    """A fitted label propagation."""

    schema: GraphSchema
    void: str | None
    fingerprint: str
    probabilities: Tensor
    variant: str
    published: Guarantee | None = None


class LabelPropagation(ReportsEstimator[FittedLabels]):
    """Label propagation: `fit` is `randomize` (the devices), then `fit_reports` (the server).

    Args:
        rule: "propagation" (the formulas above) or "pool" (see `methods.local.label_pool`).
        epsilon_x: budget of an answer, which is all that a person without a label spends; needs a question.
        question: what test nodes are asked about their features, see `mechanisms.question`; needed with epsilon_x.
        statistics: how often each class gives each answer, if that is public: rows of classes between semicolons,
            answers between commas, as "0.9,0.1; 0.2,0.8"; None: learned from the reports alone.
        start: a pre-trained reader as one more member of the pool, see `methods.base.network.start`: "public" or a
            file; or None.

    After fitting: `guarantee`, `ledger`, `variant` (the formula chosen on noisy labels, or the pool's weights).

    Example:
        >>> from graphveil.graphs import social_graph
        >>> from graphveil.methods import LabelPropagation
        >>> graph = social_graph(200, average_degree=8, dimension=20, classes=3, seed=1)
        >>> model = LabelPropagation(epsilon_y=2.0).fit(graph)
        >>> model.guarantee.epsilon, str(model.guarantee.unit)
        (2.0, "one user's label")
    """

    entry, kind = entry_of("label-propagation", LOCAL_METHODS), "label-propagation"
    trains_network: ClassVar[Literal[False]] = False
    seed: int

    def __init__(
        self,
        *,
        epsilon_y: float,
        rule: str = "propagation",
        epsilon_x: float | None = None,
        question: str | None = None,
        statistics: str | None = None,
        start: str | None = None,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        for name, text in (("question", question), ("statistics", statistics)):
            if not isinstance(text, str | None):
                raise InputError(f"{name} is a {type(text).__name__}", allowed="a text, as the command takes it")
        self.privacy = LocalPrivacy(None, epsilon_y)
        if question is not None or epsilon_x is not None:
            # A missing question is refused later, where the columns are known.
            self.privacy = QuestionPrivacy(epsilon_x, epsilon_y, question=question or "")
        elif statistics is not None:
            raise InputError("statistics of answers without a question", allowed="question=COLUMN=VALUE")
        require_device(device)
        NUMBERS["seed"].require(seed=seed)
        require_choice(RULES, rule=rule)
        require_start(start)
        if start is not None and rule != "pool":
            raise InputError("nothing is pooled that a start could join", where=rule, allowed="start with label-pool")
        self.rule, self.start, self.seed, self.device = rule, start, seed, device
        self.statistics = statistics
        self.account = Account(self.privacy.open_ledger())
        self.released: LocalReports | None = None
        self.topology: Topology | None = None

    def require_served(self, graph: Graph) -> None:
        """Refuse a graph whose nodes have several labels, or that lacks the column of the question."""
        schema = require_servable(graph)
        # Before people are asked: the file of the reader may be missing.
        self.reader()
        if isinstance(self.privacy, QuestionPrivacy):
            read_statistics(self.statistics, len(schema.classes), len(self.privacy.question_for(schema).answers))

    def reader(self) -> Reader | None:
        """Return the reader that joins the pool, read from its file."""
        return read_start(self.start, "label-pool", OWN, COMMON)

    def randomize(self, graph: Graph, *, split: Split, randomness: Randomness, engine: Engine = LOCAL) -> LocalReports:
        """Return everybody's report: a label, or an answer where a question is asked."""
        if not isinstance(self.privacy, QuestionPrivacy):
            return super().randomize(graph, split=split, randomness=randomness, engine=engine)
        graph = checked_graph(graph, split, randomness)
        privacy = self.privacy
        return self.account.collect(
            self.priced(graph),
            lambda: collect_answers(graph, split, privacy, randomness=randomness, engine=engine),
            check=lambda: self.require_served(graph),
        )

    def fit_reports(
        self,
        released: LocalReports,
        topology: Topology,
        *,
        progress: ProgressCallback | None = None,
        engine: Engine = LOCAL,
    ) -> Self:
        """Spread the released labels; see `ReportsEstimator.fit_reports`."""
        published = self.check_and_book(released, topology)
        edges, channel = topology.uncached(), released.channel
        if self.rule == "pool":
            keywords: dict[str, Any] = {
                "seed": self.seed,
                "device": self.device,
                "progress": progress,
                "engine": engine,
            }
            pool = pool_labels(edges, released.labels, channel, **keywords, reader=self.reader())
            probabilities, variant = pool.probabilities, pool.sentence
        else:
            p = edges.propagation().to(self.device)
            labels, train, val = (t.to(self.device) for t in (released.labels, released.train, released.val))
            probabilities, variant = propagate_labels(p, labels, train, val, channel, engine=engine)
            if progress is not None:
                progress(Progress(1, 1))
        if isinstance(self.privacy, QuestionPrivacy):
            probabilities = posterior_with_answers(probabilities, released, edges, self.statistics)
        fingerprint = topology.fingerprint
        self._fitted = FittedLabels(
            released.schema, released.void, fingerprint, probabilities.cpu(), variant, published
        )
        self.released, self.topology = released, topology
        return self

    def probabilities(self, graph: Graph | None = None, *, randomness: Randomness | None = None) -> Tensor:
        """Return class probabilities [n, c] of the topology that was fitted. Raises InputError for another graph:
        nobody there has reported a label.
        """
        fitted = self.result
        if graph is not None and topology_of(graph).fingerprint != fitted.fingerprint:
            raise InputError(
                f"{self.name} predicts only on the graph whose labels were collected",
                where=graph.schema.name,
                remedy="train lpgnn with an epsilon_x: it predicts on new graphs from features",
            )
        return fitted.probabilities

    def parameters(self) -> dict[str, Any]:
        names = ("rule", "question", "statistics", "start", "seed", "device")
        budgets = {"epsilon_y": self.privacy.epsilon_y, "epsilon_x": self.privacy.epsilon_x}
        return {**budgets, **{name: getattr(self, name) for name in names}}

    @property
    def question(self) -> str | None:
        """The question to people without a label."""
        return self.privacy.question if isinstance(self.privacy, QuestionPrivacy) else None

    @property
    def variant(self) -> str:
        """The formula that was chosen."""
        return self.result.variant

    @property
    def mechanism_guarantee(self) -> Guarantee:
        fitted = self.result
        return fitted.published or self.privacy.guarantee(fitted.schema, fitted.void, self.account.ledger)

    def stored(self) -> Stored:
        """Return predictions, settings, guarantee and ledger; no reports, no edges."""
        fitted, answers = self.result, {}
        # Nothing where no question is asked, as in files of earlier versions.
        if self.question is not None:
            answers = {"epsilon_x": number(self.privacy.epsilon_x), "question": self.question}
            answers |= {"statistics": self.statistics}
        facts = {
            "epsilon_y": number(self.privacy.epsilon_y),
            "rule": self.rule,
            **answers,
            **({} if self.start is None else {"start": start_name(self.start)}),
            "seed": self.seed,
            "schema": schema_facts(fitted.schema),
            "void": fitted.void,
            "fingerprint": fitted.fingerprint,
            "variant": fitted.variant,
            "published": None if fitted.published is None else fitted.published.to_dict(),
            **self.account.facts(),
            "guarantee": self.guarantee.to_dict(),
        }
        return Stored(facts, {"probabilities": fitted.probabilities})

    @classmethod
    def restore(cls, stored: Stored) -> Self:
        """Return what `stored` gave, able to predict on its own graph."""
        facts = stored.facts
        options = {name: facts.get(name) for name in ("question", "statistics", "start")}
        budgets = {"epsilon_y": float(facts["epsilon_y"]), "epsilon_x": stored_number(facts.get("epsilon_x"))}
        method = cls(**budgets, rule=facts["rule"], seed=facts["seed"], **options)  # type: ignore[arg-type]
        method.account = restored_account(facts)
        schema = schema_from(facts["schema"])
        probabilities = stored_probabilities(stored, len(schema.classes))
        published = facts.get("published")
        guarantee = None if published is None else Guarantee.from_dict(published)
        place, variant = facts["fingerprint"], facts["variant"]
        method._fitted = FittedLabels(schema, facts["void"], place, probabilities, variant, guarantee)
        return method


class LabelPool(LabelPropagation):
    """Private labels, read in several ways and pooled; see `methods.local.label_pool`.

    Example:
        >>> from graphveil.graphs import social_graph
        >>> from graphveil.methods import LabelPool
        >>> graph = social_graph(200, average_degree=8, dimension=20, classes=3, seed=1)
        >>> model = LabelPool(epsilon_y=2.0).fit(graph)
        >>> model.guarantee.epsilon, str(model.guarantee.unit)
        (2.0, "one user's label")
    """

    entry = entry_of("label-pool", LOCAL_METHODS)

    def __init__(self, *, epsilon_y: float, start: str | None = None, seed: int = 0, device: str = "cpu") -> None:
        super().__init__(epsilon_y=epsilon_y, start=start, seed=seed, device=device, **self.entry.fixed)


class AnswerPool(LabelPropagation):
    """`LabelPool` in which everybody who sends no label answers one question about a feature instead.

    Example:
        >>> from graphveil.graphs import social_graph
        >>> from graphveil.methods import AnswerPool
        >>> graph = social_graph(200, average_degree=8, dimension=20, classes=3, seed=1)
        >>> model = AnswerPool(epsilon_x=1.0, epsilon_y=1.0, question="0>=0.5").fit(graph)
        >>> tuple(model.predict_proba().shape)
        (200, 3)
    """

    entry = entry_of("answer-pool", LOCAL_METHODS)

    def __init__(
        self,
        *,
        epsilon_x: float,
        epsilon_y: float,
        question: str | None = None,
        statistics: str | None = None,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        answers: dict[str, Any] = {"epsilon_x": epsilon_x, "question": question, "statistics": statistics}
        super().__init__(epsilon_y=epsilon_y, **answers, seed=seed, device=device, **self.entry.fixed)
