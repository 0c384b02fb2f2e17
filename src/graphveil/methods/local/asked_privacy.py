"""What a collection costs in which people send their label, or the answer to a question: one of the two, never both."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from graphveil.errors import InputError
from graphveil.graphs import GraphSchema
from graphveil.mechanisms import NotCollected, PublicLabels
from graphveil.mechanisms.base.domain import VectorDomain
from graphveil.mechanisms.question import Question, question_from
from graphveil.methods.base.people.local_privacy import TOPOLOGY, LocalPrivacy
from graphveil.privacy import Guarantee, Ledger, Spend, either
from graphveil.privacy.statement.observer import SERVER_AND_MODEL


@dataclass(frozen=True)
class AskedPrivacy(LocalPrivacy):
    """As `LocalPrivacy`, where epsilon_x is the budget of an answer and nobody sends a feature vector.

    Attributes:
        question: of those who send no label, see `mechanisms.question`.

    Raises:
        InputError: an answer without a finite budget.
    """

    question: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epsilon_x is None or math.isinf(self.epsilon_x):
            raise InputError(f"epsilon_x = {self.epsilon_x!r}", where="question", allowed="a finite number above 0")

    @property
    def collects_features(self) -> bool:
        """Nobody sends a feature vector."""
        return False

    def features(self, schema: GraphSchema) -> NotCollected:
        """Return what stands for no feature vector being sent."""
        # Answers are reports of their own, and no vector of features can be made of them.
        return NotCollected()

    def asked(self, schema: GraphSchema) -> Question:
        """Return what makes the answers.

        Raises:
            InputError: the schema has no such column, or it cannot be asked so.
        """
        domain = VectorDomain(schema.dimension, schema.low, schema.high)
        return question_from(self.question, float(self.epsilon_x or 0.0), domain, schema.columns)

    def spends(self, schema: GraphSchema) -> tuple[Spend, ...]:
        """Return what one collection spends, in order: an answer of some, a label of the others."""
        asked = self.asked(schema)
        facts: dict[str, float | int | str] = {"question": self.question, "answers": len(asked.answers)}
        name = type(asked.mechanism).__name__
        return Spend("answer", "features", name, facts, asked.epsilon), *super().spends(schema)

    def guarantee(self, schema: GraphSchema, void: str | None = None, ledger: Ledger | None = None) -> Guarantee:
        """Return the guarantee of one person, who sends a label or an answer."""
        labels = self.labels(len(schema.classes))
        parts = [replace(self.asked(schema).guarantee, against=SERVER_AND_MODEL)]
        # Labels that are public cost nothing: then answers are all that anybody pays for.
        if isinstance(labels, PublicLabels):
            whole, open_ = parts[0], labels.guarantee.assumes
        else:
            parts.append(replace(labels.guarantee, against=SERVER_AND_MODEL))
            whole, open_ = either(parts), ()
        return replace(whole, assumes=(*whole.assumes, TOPOLOGY, *open_), void=void)
