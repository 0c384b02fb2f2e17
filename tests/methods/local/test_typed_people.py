"""Graphs whose columns have kinds of their own, from a folder to a trained, saved and loaded method."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from graphveil.errors import InputError
from graphveil.graphs import Graph, load_graph, random_split
from graphveil.methods import LabelPropagation, load_method
from graphveil.privacy import SeededRandomness
from tests.graphs.made import folder

TOML = """private = ["features", "labels"]
classes = ["junior", "senior"]
directed = false

[columns]
age = { number = [18, 70] }
member = "yes-no"
team = { category = ["design", "sales", "support"], empty = true }
skills = { tags = ["drawing", "law", "python"], most = 2 }
"""
PEOPLE = 160


def office(place: Path) -> Path:
    """160 people in a ring with chords; seniors are older and three times as often members."""
    source = np.random.default_rng(5)
    senior = source.random(PEOPLE) < 0.5
    rows = ["id,age,member,team,skills,label"]
    for number, old in enumerate(senior):
        age = source.integers(40, 70) if old else source.integers(18, 45)
        member = "yes" if source.random() < (0.9 if old else 0.3) else "no"
        team = source.choice(["design", "sales", "support", ""])
        skills = ";".join(source.choice(["drawing", "law", "python"], source.integers(0, 3), replace=False))
        rows.append(f"p{number},{age},{member},{team},{skills},{'senior' if old else 'junior'}")
    edges = ["source,target"]
    for number in range(PEOPLE):
        alike = [other for other in range(PEOPLE) if senior[other] == senior[number] and other != number]
        edges += [f"p{number},p{other}" for other in source.choice(alike, 2, replace=False)]
        edges.append(f"p{number},p{(number + 1) % PEOPLE}")
    return folder(place, graph__toml=TOML, nodes__csv="\n".join(rows) + "\n", edges__csv="\n".join(edges) + "\n")


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return load_graph(office(tmp_path_factory.mktemp("office") / "office"))


@pytest.mark.parametrize("question", ["member", "age>=40", "team=sales|support", "team", "skills=law"])
def test_every_column_of_the_folder_can_be_asked(graph: Graph, question: str) -> None:
    method = LabelPropagation(epsilon_y=2.0, epsilon_x=2.0, rule="pool", question=question)
    method.fit(graph, split=random_split(graph, 0), randomness=SeededRandomness(1))
    probabilities = method.predict_proba()
    assert torch.allclose(probabilities.sum(dim=1), torch.ones(PEOPLE), atol=1e-5)
    assert method.guarantee.epsilon == 2.0


@pytest.mark.slow
def test_a_column_that_tells_the_class_is_worth_asking_for(graph: Graph) -> None:
    """Ten splits, fixed seeds: "age>=40" (true of seniors, hardly of juniors) adds 4 points, "skills=law" at most 2."""
    gains = {"age>=40": [], "skills=law": []}
    for seed in range(10):
        split = random_split(graph, seed)
        plain = LabelPropagation(epsilon_y=1.0, rule="pool", seed=seed)
        plain.fit(graph, split=split, randomness=SeededRandomness(seed))
        before = (plain.predict_proba().argmax(dim=1) == graph.y)[split.test].double().mean()
        for question, gained in gains.items():
            asked = LabelPropagation(epsilon_y=1.0, epsilon_x=2.0, rule="pool", question=question, seed=seed)
            asked.fit(graph, split=split, randomness=SeededRandomness(seed))
            gained.append(float((asked.predict_proba().argmax(dim=1) == graph.y)[split.test].double().mean() - before))
    assert np.mean(gains["age>=40"]) > 0.04
    assert np.mean(gains["skills=law"]) < 0.02


def test_a_saved_method_knows_its_columns_and_its_question(graph: Graph, tmp_path: Path) -> None:
    method = LabelPropagation(epsilon_y=1.0, epsilon_x=1.0, rule="pool", question="team=sales", statistics="1,1;2,1")
    method.fit(graph, split=random_split(graph, 0), randomness=SeededRandomness(1))
    method.save(tmp_path)
    again = load_method(tmp_path)
    assert again.schema.columns == graph.schema.columns
    assert (again.question, again.statistics) == ("team=sales", "1,1;2,1")
    assert again.guarantee == method.guarantee
    assert torch.equal(again.predict_proba(), method.predict_proba())
    assert again.get_params() == method.get_params()


def test_a_question_that_this_folder_does_not_have_is_refused(graph: Graph) -> None:
    for question, message in (("height", "no column 'height'"), ("team=law", "has no value 'law'")):
        method = LabelPropagation(epsilon_y=1.0, epsilon_x=1.0, rule="pool", question=question)
        with pytest.raises(InputError, match=message):
            method.fit(graph, split=random_split(graph, 0), randomness=SeededRandomness(1))
        assert method.ledger.spends == ()
