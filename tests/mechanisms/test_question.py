"""A question about one column: what is answered, what it costs, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

from graphveil.audit.exact import audit_table, row_table
from graphveil.errors import InputError
from graphveil.files.columns import Category, Column, Integer, Number, Ordinal, Tags, YesNo
from graphveil.mechanisms.base.mechanism import VectorDomain
from graphveil.mechanisms.question import Question, question_from
from graphveil.privacy import SeededRandomness
from graphveil.privacy.statement.unit import USER_FEATURES

COLUMNS = (
    Column("age", Number(0, 100)),
    Column("children", Integer(0, 4)),
    Column("member", YesNo()),
    Column("team", Category(("red", "blue", "green"), empty=True)),
    Column("grade", Ordinal(("low", "middle", "high"))),
    Column("hobbies", Tags(("chess", "go"), 2)),
)
DOMAIN = VectorDomain(9, 0.0, 1.0)
#: age 25, 1 child, member, red, low, chess and go; 50, 4, no, nothing, high, none; 100, 0, yes, green, middle, go.
PEOPLE = np.array(
    [[0.25, 0.25, 1, 1, 0, 0, 0.0, 1, 1], [0.50, 1.00, 0, 0, 0, 0, 1.0, 0, 0], [1.00, 0.00, 1, 0, 0, 1, 0.5, 0, 1]],
    np.float32,
)


def ask(text: str, epsilon: float = 2.0) -> Question:
    return question_from(text, epsilon, DOMAIN, COLUMNS)


@pytest.mark.parametrize(
    ("text", "answers", "truth"),
    [
        ("age>=50", ("below 50", "at least 50"), [0, 1, 1]),
        ("children >= 1", ("below 1", "at least 1"), [1, 1, 0]),
        ("member", ("no", "yes"), [1, 0, 1]),
        ("member=yes", ("other", "yes"), [1, 0, 1]),
        ("team", ("red", "blue", "green", ""), [0, 3, 2]),
        ("team=red|green", ("other", "red|green"), [1, 0, 1]),
        ("team=", ("other", ""), [0, 1, 0]),
        ("grade", ("low", "middle", "high"), [0, 2, 1]),
        ("grade = middle | high", ("other", "middle|high"), [0, 1, 1]),
        ("hobbies=go", ("other", "go"), [1, 0, 1]),
        ("hobbies=chess|go", ("other", "chess|go"), [1, 0, 1]),
    ],
)
def test_every_kind_of_column_can_be_asked(text: str, answers: tuple[str, ...], truth: list[int]) -> None:
    question = ask(text)
    assert question.answers == answers
    assert question.truth(PEOPLE).tolist() == truth
    assert question.truth(scipy.sparse.csr_matrix(PEOPLE)).tolist() == truth
    assert question.truth(torch.from_numpy(PEOPLE)).tolist() == truth


def test_without_declared_columns_coordinates_are_numbers_by_place() -> None:
    question = question_from("1>=2", 1.0, VectorDomain(2, -1.0, 3.0), ())
    assert question.truth(np.array([[0.0, 2.0], [3.0, 1.9]])).tolist() == [1, 0]
    for text in ("2>=1", "-1>=1", "x>=1"):
        with pytest.raises(InputError, match=r"no column .*; allowed: 0 to 1"):
            question_from(text, 1.0, VectorDomain(2, 0.0, 1.0), ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("height", "no column 'height'; allowed: age, children"),
        ("age", "the column 'age' is a number"),
        ("team>=3", "the column 'team' is a category"),
        ("age>=x", "is no question"),
        ("=red", "'=red' is no question"),
        ("", "no question to ask"),
        ("team=pink", "the column 'team' has no value 'pink'; allowed: red, blue, green, an empty value$"),
        ("hobbies", "'hobbies' holds several tags"),
        ("age>=0", "age>=0 has only one answer"),
    ],
)
def test_what_cannot_be_asked_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ask(text)


@pytest.mark.parametrize(
    ("text", "columns", "values"),
    [("team=red", slice(3, 6), each) for each in ([1, 1, 0], [0.5, 0, 0], [0, 0, 0.5])] + [("grade", 6, 0.3)],
)
def test_what_encodes_no_value_is_refused_by_row_and_not_by_value(text: str, columns: Any, values: Any) -> None:
    people = PEOPLE.copy()
    people[1, columns] = values
    with pytest.raises(InputError, match="row 1") as refused:
        ask(text).randomize(people, randomness=SeededRandomness(1))
    assert "0.5" not in str(refused.value) and "0.3" not in str(refused.value)


@pytest.mark.parametrize("text", ["age>=50", "team", "hobbies=go"])
def test_the_audit_accepts_the_epsilon_and_finds_half_the_noise(text: str) -> None:
    """Exactly, every answer enumerated: no false alarm."""

    def audited(claimed: float, built: float) -> bool:
        question = ask(text, built)
        table = row_table(question, torch.from_numpy(PEOPLE), question.mechanism.every_report())
        return audit_table(text, ask(text, claimed).guarantee, table).holds

    assert audited(1.0, 1.0)
    assert not audited(1.0, 2.0)


def test_a_question_is_randomized_response_on_its_answers_at_the_price_of_the_whole_vector() -> None:
    """The same words decide the same reports; 1 bit for an answer of two."""
    question, source = ask("member"), SeededRandomness(3)
    sent = question.randomize(PEOPLE, randomness=source)
    answers = torch.from_numpy(question.truth(PEOPLE))
    assert torch.equal(sent.labels, question.mechanism.randomize(answers, randomness=SeededRandomness(3)).labels)
    logs = question.mechanism.log_likelihood(sent, answers)
    assert torch.equal(question.log_likelihood(sent, PEOPLE), logs)
    guarantee = ask("team", 1.5).guarantee
    assert (guarantee.unit, guarantee.epsilon, guarantee.delta) == (USER_FEATURES, 1.5, 0.0)
    assert question.report_bytes == 1 / 8
