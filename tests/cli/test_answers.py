"""``graphveil train`` and ``predict`` with answer-pool: one price, its controls, a folder that is read back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphveil.privacy import Guarantee
from tests.cli.conftest import Terminal

RUN = ("train", "answer-pool", "social-200", "--epsilon", 2, "--set", "question=20>=0.5")


def test_a_run_states_the_larger_price_and_is_read_back(type_in: Terminal) -> None:
    answer = type_in(*RUN, "--no-controls", "--out", "run", "--json")
    assert answer.code == 0, answer.err
    guarantee = Guarantee.from_dict(answer.json["guarantee"])
    assert guarantee.epsilon == 2.0 and [part.epsilon for part in guarantee.parts] == [2.0, 2.0]
    predicted = type_in("predict", "run", "social-200", "--out", "classes.csv")
    assert predicted.code == 0, predicted.err
    assert len(Path("classes.csv").read_text().splitlines()) == 201


def test_a_folder_that_leaves_out_that_one_report_is_sent_is_refused(type_in: Terminal) -> None:
    """Without that fact the parts add up, and the price stated is half of it."""
    type_in(*RUN, "--no-controls", "--out", "run", "--json")
    file = next(Path("run").rglob("result.json"))
    stored = json.loads(file.read_text())
    stored["guarantee"]["assumes"] = [fact for fact in stored["guarantee"]["assumes"] if "one of these" not in fact]
    file.write_text(json.dumps(stored))
    refused = type_in("predict", "run", "social-200", "--out", "classes.csv")
    assert refused.code == 2


def test_the_controls_hold_the_labels_alone(type_in: Terminal) -> None:
    found = type_in(*RUN, "--json").json
    assert {"label-pool", "label-propagation", "public-only"} <= set(found["controls"])


@pytest.mark.parametrize(
    ("question", "message"),
    [("height=3", "no column 'height'"), ("20>=2", "20>=2 has one answer"), ("20", "the column '20' is a number")],
)
def test_a_question_that_cannot_be_asked_ends_in_one_line(type_in: Terminal, question: str, message: str) -> None:
    answer = type_in("train", "answer-pool", "social-200", "--epsilon", 2, "--set", f"question={question}")
    assert answer.code == 2 and message in answer.err
    assert len(answer.err.strip().splitlines()) <= 2
