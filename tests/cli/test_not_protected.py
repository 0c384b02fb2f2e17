"""Plain networks on private data: one door, which says NOT PROTECTED wherever its work is shown."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from graphveil.errors import InputError
from graphveil.privacy import Guarantee, SecureRandomness
from graphveil.reports.attacks.files import PLAIN, read_attacks
from graphveil.reports.attacks.run import attack_run
from graphveil.reports.base.card import read_as_is
from tests.cli.conftest import Terminal
from tests.flows.kinds import PARTS, Kind

SHORT = ("--epochs", "2", "--no-controls")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "town"
    Kind("two clubs", private=PARTS, columns="numbers", classes=("a", "b"), labels="all").write(folder)
    return folder


@pytest.mark.parametrize("name", ["gcn", "mlp"])
def test_a_plain_network_trains_on_private_edges_and_says_so(type_in: Terminal, data: Path, name: str) -> None:
    screen = type_in("train", name, data, *SHORT, "--out", "run").good
    parts = "features, labels" if name == "mlp" else "features, labels, edges"
    flat = " ".join(screen.out.split())
    assert f"NOT PROTECTED: This run read {parts} as they are" in flat and f"declared private: {parts})" in flat
    for page in ("README.md", "public/README.md", "card.md", "public/card.md", "report.html", "public/report.html"):
        text = Path("run", page).read_text()
        assert "NOT PROTECTED" in text and f"This run read {parts} as they are" in text, page
        assert "May be handed on" not in text, page
    result = json.loads(Path("run/result.json").read_text())
    assert result["guarantee"]["epsilon"] == "inf" and any("NOT PROTECTED" in note for note in result["notes"])
    again = type_in("predict", "run", data, "--out", "rows.csv")
    assert again.code == 0 and "NOT PROTECTED" in again.out, again.err
    assert Path("rows.csv").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("words", "parts"), [("label-pool --epsilon-y inf", "labels"), ("blink --epsilon-a inf", "features, labels, edges")]
)
def test_a_plan_without_noise_names_all_that_is_sent_and_no_more(type_in: Terminal, words: str, parts: str) -> None:
    guarantee = Guarantee.from_dict(type_in("plan", *words.split(), "social-100", "--json").json["guarantee"])
    assert read_as_is(guarantee, "run").startswith(f"This run read {parts} as they are")


def test_a_run_on_private_edges_is_attacked_beside_a_network_that_says_what_it_read(
    type_in: Terminal, data: Path
) -> None:
    words = ("--epsilon", "2", *SHORT, "--out", "run")
    assert type_in("train", "class-sums", data, *words).code == 0
    text = type_in("attack", "run", "--attack", "linkteller")
    assert text.code == 0 and "NOT PROTECTED: a plain network read the true features" in text.out, text.err
    results = read_attacks(Path("run"))["linkteller"]
    # The control recovers edges, which the method does not show.
    assert results[PLAIN].auc.low > 0.8 and results["class-sums"].auc.mean == 0.5
    assert results[PLAIN].notes[-1].startswith("NOT PROTECTED") and "edges" in results[PLAIN].notes[-1]
    assert Path("run/attack-linkteller.json").stat().st_mode & 0o777 == 0o600
    assert "NOT PROTECTED: a plain network read the true features" in Path("run/card.md").read_text()


def test_a_run_without_edges_to_its_test_nodes_is_attacked_as_it_was_trained(type_in: Terminal, data: Path) -> None:
    assert type_in("train", "gcn", data, *SHORT, "--split", "80/20", "--out", "run").code == 0
    (result,) = attack_run(Path("run"), "linkteller", randomness=SecureRandomness()).values()
    assert "NOT PROTECTED" in result.notes[-1]


NODES = ("node-sums", "--epsilon", "8", "--set", "passes=1", "--set", "batch=30", "--set", "degree_bound=5")


def test_predictions_of_whole_people_are_written_while_training_or_paid_for_again(
    type_in: Terminal, data: Path
) -> None:
    words = (NODES[0], data, *NODES[1:], "--no-controls")
    answer = type_in("train", *words, "--out", "run", "--predictions", "rows.csv")
    assert answer.code == 0 and "for that person's eyes alone" in " ".join(answer.out.split()), answer.err
    assert Path("rows.csv").stat().st_mode & 0o777 == 0o600 and len(Path("rows.csv").read_text().splitlines()) == 61
    type_in("predict", "run", data).refused("--predictions FILE", "--set queries=1")
    type_in("train", *words, "--out", "other", "--predictions", "rows.csv").refused("rows.csv exists")
    assert not Path("other").exists()
    # The other way: room that was declared, charged once, and the same answer for nothing after that.
    assert type_in("train", "--config", "run/config.toml", "--set", "queries=1", "--out", "paid").code == 0
    first, again = (type_in("predict", "paid", data, "--json").json for _ in range(2))
    assert first["predictions"] == again["predictions"] and "eyes alone" in first["note"]
    assert first["guarantee"]["epsilon"] == again["guarantee"]["epsilon"] == pytest.approx(16.0, rel=1e-6)


def test_what_only_its_own_node_is_told_is_nothing_to_attack_by(type_in: Terminal, data: Path) -> None:
    assert type_in("train", NODES[0], data, *NODES[1:], "--no-controls", "--out", "run").code == 0
    attacked = partial(attack_run, Path("run"), randomness=SecureRandomness(), plain=False)
    for attack in ("attribute", "reconstruction"):
        with pytest.raises(InputError, match=r"for its own node alone.*membership"):
            attacked(attack)
    # What is attacked is what was released: weights, on a graph that the adversary holds.
    result = attacked("membership")[NODES[0]]
    assert result.epsilon == pytest.approx(8.0, rel=1e-6) and not result.beats_limit
    for attack in ("linkteller", "link-stealing"):
        assert attacked(attack)[NODES[0]].limit is not None


def test_a_perceptron_of_32_bits_is_attacked_with_rows_of_64_inside_the_range(type_in: Terminal, data: Path) -> None:
    words = ("--epsilon", "8", "--set", "passes=1", "--set", "batch=30", "--no-controls", "--out", "run")
    assert type_in("train", "dp-mlp", data, *words).code == 0
    result = attack_run(Path("run"), "linkteller", randomness=SecureRandomness(), plain=False)["dp-mlp"]
    assert result.auc.mean == 0.5 and "answers every query" in result.notes[0]
