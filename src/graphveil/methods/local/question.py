"""One question about a feature, answered by people who send no label: its price, the answers, and what they say.

Everybody sends a label or an answer, never both. Answers are read with what labels say, on the server.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from graphveil.engine import LOCAL, Engine
from graphveil.errors import InputError
from graphveil.graphs import Graph, GraphSchema, Split
from graphveil.mechanisms import NotCollected, PublicLabels
from graphveil.mechanisms.base.mechanism import VectorDomain
from graphveil.mechanisms.question import Question, question_from
from graphveil.methods.base.people.local_privacy import TOPOLOGY_PUBLIC, LocalPrivacy
from graphveil.methods.base.people.released import Answers, LocalReports, Topology, ask_question, randomize_people
from graphveil.models.labels.belief import Matrix, edges_of, fit_answers, friends_evidence, update_posterior
from graphveil.models.labels.label_prior import class_shares, homophily, label_pairs
from graphveil.privacy import Guarantee, Ledger, Randomness, Spend, either
from graphveil.privacy.statement.observer import SERVER_AND_MODEL
from graphveil.runtime.checks import require_number
from graphveil.runtime.late import Tensor, torch


@dataclass(frozen=True)
class QuestionPrivacy(LocalPrivacy):
    """As `LocalPrivacy`, where epsilon_x is the finite budget of an answer and nobody sends a feature vector.

    Attributes:
        question: of those who send no label, see `mechanisms.question`.
    """

    question: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_number("(0, inf)", "question", epsilon_x=self.epsilon_x)

    @property
    def collects_features(self) -> bool:
        return False

    def features(self, schema: GraphSchema) -> NotCollected:
        # Answers are reports of their own, and no vector of features can be made of them.
        return NotCollected()

    def question_for(self, schema: GraphSchema) -> Question:
        """Return what makes the answers. Raises InputError where the schema has no such column, or it cannot be asked
        so.
        """
        domain = VectorDomain(schema.dimension, schema.low, schema.high)
        return question_from(self.question, float(self.epsilon_x or 0.0), domain, schema.columns)

    def spends(self, schema: GraphSchema) -> tuple[Spend, ...]:
        """Return what one collection spends, in order: an answer of some, a label of all others."""
        question = self.question_for(schema)
        facts: dict[str, float | int | str] = {"question": self.question, "answers": len(question.answers)}
        name = type(question.mechanism).__name__
        return Spend("answer", "features", name, facts, question.epsilon), *super().spends(schema)

    def guarantee(self, schema: GraphSchema, void: str | None = None, ledger: Ledger | None = None) -> Guarantee:
        """Return the guarantee of one person, who sends a label or an answer."""
        labels = self.labels(len(schema.classes))
        parts = [replace(self.question_for(schema).guarantee, against=SERVER_AND_MODEL)]
        # Labels that are public cost nothing: then answers are all that anybody pays for.
        if isinstance(labels, PublicLabels):
            whole, open_ = parts[0], labels.guarantee.assumes
        else:
            parts.append(replace(labels.guarantee, against=SERVER_AND_MODEL))
            whole, open_ = either(parts), ()
        return replace(whole, assumes=(*whole.assumes, TOPOLOGY_PUBLIC, *open_), void=void)


def collect_answers(
    graph: Graph, split: Split, privacy: QuestionPrivacy, *, randomness: Randomness, engine: Engine = LOCAL
) -> LocalReports:
    """Return labels of the train and validation nodes, and answers of the test nodes."""
    labels = randomize_people(graph, split, privacy, randomness=randomness, engine=engine)
    # Never both: whoever sends a label is not asked, so nobody spends more than the larger of the two budgets.
    who = split.test & ~labels.labelled
    answers = ask_question(graph, who, privacy.question_for(labels.schema), randomness=randomness, engine=engine)
    return replace(labels, features=answers)


def posterior_with_answers(
    probabilities: Tensor, released: LocalReports, topology: Topology, statistics: str | None
) -> Tensor:
    """Return class probabilities [n, c] with everybody's own answer and those of friends taken in.

    Args:
        probabilities: [n, c], from labels alone.
        released, topology: with the answers, and of who sent them.
        statistics: see `read_statistics`.
    """
    privacy, answers = released.privacy, released.features
    if not (isinstance(privacy, QuestionPrivacy) and isinstance(answers, Answers)):
        raise InputError("the reports hold no answers", where="fit_reports")
    question, who = privacy.question_for(released.schema), answers.who.nonzero().squeeze(1)
    if not len(who):
        return probabilities
    evidence, before = question.evidence(answers.reports), probabilities[who].double().cpu().numpy()
    declared = read_statistics(statistics, before.shape[1], evidence.shape[1])
    table = fit_answers(before, evidence, declared)
    # The rows of people with a label stay: they were asked for nothing else.
    after = probabilities.clone().cpu()
    after[who] = torch.from_numpy(update_posterior(before, evidence, table)).to(after.dtype)
    # Both directions even if edges have one: labels are alike on either end.
    edges = edges_of(topology.both_ways.normalised())
    pairs = label_pairs(edges.receiver, edges.sender, released.labels, released.channel.classes)
    alike = homophily(pairs, released.channel, least=0.0)
    shares = class_shares(released.labels, released.channel)
    heard = friends_evidence(edges, probabilities.cpu(), after, shares, alike)[who]
    # Once more from the start: a person's own answer counts once, whatever friends say.
    beside_friends = before * torch.exp(heard - heard.max(dim=1, keepdim=True).values).double().numpy()
    after[who] = torch.from_numpy(update_posterior(beside_friends, evidence, table)).to(after.dtype)
    return after


def read_statistics(text: str | None, classes: int, answers: int) -> Matrix | None:
    """Return how often each class gives each answer [c, k], rows adding up to 1; None where nothing is declared. Raises
    InputError for other numbers than that, a negative one, or a row of zeros.

    Args:
        text: rows of classes between semicolons, answers between commas.
    """
    if text is None:
        return None
    allowed = f"{classes} rows between semicolons, each {answers} shares between commas"
    try:
        rows = [[float(share) for share in row.split(",")] for row in text.split(";")]
    except ValueError:
        raise InputError("statistics are no numbers", where="statistics", allowed=allowed) from None
    fits = len(rows) == classes and all(len(row) == answers for row in rows)
    if not fits or not all(min(row) >= 0 and 0 < sum(row) < np.inf for row in rows):
        raise InputError(f"{len(rows)} rows of shares", where="statistics", allowed=allowed)
    table = np.array(rows)
    # An answer that a class is said never to give would rule the class out on one noisy report.
    table = table / table.sum(axis=1, keepdims=True) + 1e-3
    shares: Matrix = table / table.sum(axis=1, keepdims=True)
    return shares
