"""Methods that collect neighbour lists at the terminal: plan, warning, train, predict, compare."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from graphveil.mechanisms import AdjacencyRR
from graphveil.mechanisms.edges import adjacency as edges
from graphveil.privacy import Guarantee
from tests.cli.conftest import Terminal

SHORT = ("social-200", "--epsilon-x", 2, "--epsilon-a", 5, "--epochs", 2)
BOTH = ("train", "solitude", *SHORT, "--set", "mode=both", "--set", "hidden=4")
CONTROLS = {"public-only", "label-propagation", "no-edges", "random-features", "random-graph"}


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of a short Solitude, both ends reporting."""
    from graphveil.cli import main

    folder = tmp_path_factory.mktemp("runs") / "run"
    assert main([*map(str, BOTH), "--no-controls", "--out", str(folder)]) == 0
    return folder


@pytest.mark.parametrize("method", ["solitude", "blink"])
def test_plan_shows_what_an_epsilon_buys_in_lists(type_in: Terminal, method: str) -> None:
    words = ("plan", method, "social-200", "--epsilon-x", 2, "--epsilon-a", 5)
    shown = type_in(*words).out
    assert max(map(len, shown.splitlines())) <= 80
    for part in ("Who reports", "epsilon 5 for one bit of a list", "False entries", "true among the entries reported"):
        assert part in flat(shown), part
    assert "noise/signal" not in shown
    assert "Warning" not in shown
    both = method in ("blink", "dprr")
    assert ("both ends of a relationship, in two lists" in flat(shown)) == both
    found = type_in(*words, "--json").json
    assert found["noise_to_signal"] == []
    assert found["links"]["epsilon_relationship"] == found["epsilon"]["one relationship"] == (10.0 if both else 5.0)
    if method == "solitude":
        bare = flat(type_in("plan", method, "social-200", "--epsilon-a", "inf").out)
        assert "Who reports" not in bare and "connections: not protected" in bare
        assert found["links"]["false_entries"] == AdjacencyRR(epsilon=5.0, nodes=200).expected_false


@pytest.mark.parametrize("command", ["train", "compare"])
def test_a_large_collection_is_warned_of_before_it_runs(
    type_in: Terminal, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(edges, "FALSE_EDGES_WARNING", 100)
    answer = type_in(command, "solitude", *SHORT, "--no-controls", "--json", "--repeats", 1)
    assert answer.code == 0
    assert answer.json
    first = answer.err.splitlines()[0]
    assert first.startswith("warning: solitude: epsilon 5 among 200 users makes about 133 false edges")
    assert answer.err.count("warning: ") == 1
    assert "Warning" in type_in("plan", "solitude", *SHORT).out


def test_a_run_has_the_price_of_a_relationship(run: Path) -> None:
    assert json.loads((run / "result.json").read_text())["epsilon_relationship"] == 10.0
    assert "epsilon 10 for one relationship" in (run / "card.md").read_text()


@pytest.mark.slow  # eleven networks beside it
def test_a_run_has_controls_and_rivals(type_in: Terminal) -> None:
    found = type_in(*BOTH, "--json").json
    assert set(found["controls"]) == CONTROLS
    assert set(found["rivals"]) == {"base", "lpgnn", "link-beliefs", "list-sums", "links", "blink", "dprr"}
    assert found["best_rival"] in found["rivals"]


def test_the_screen_says_what_together_means(type_in: Terminal) -> None:
    shown = flat(type_in("train", "solitude", *SHORT, "--no-controls").out)
    assert re.search(r"one person's features \(\d\) and ONE relationship \(\d\): epsilon 7 together", shown)
    assert "Not protected: several connections at once" in shown
    assert "false entries: denoising pays" in shown


def test_predicting_other_people_takes_their_features_and_lists(type_in: Terminal, run: Path) -> None:
    own = type_in("predict", run, "social-200", "--json").json
    assert "epsilon 2 and one neighbour list at epsilon 5 a bit, 10 a relationship" in own["note"]
    before = json.loads((run / "ledger.json").read_text())
    assert type_in("predict", run, "social-150", "--json").code == 2  # no ids tell that they are others
    others = ("predict", run, "social-150", "--people", "other", "--json")
    first, again = (type_in(*others).json for _ in range(2))
    assert first["predictions"] == again["predictions"]
    ledger = json.loads((run / "ledger.json").read_text())
    added = ledger["spends"][len(before["spends"]) :]
    assert [row["unit"].split(" (")[0] for row in added] == ["features of social-150", "links of social-150"]
    assert [row["epsilon"] for row in added] == [2.0, pytest.approx(10.0)]


@pytest.mark.slow  # whole commands
def test_link_beliefs_refuses_other_people(type_in: Terminal) -> None:
    type_in("train", "link-beliefs", "social-200", "--epsilon-a", 5, "--no-controls", "--out", "run")
    note = type_in("predict", "run", "social-200", "--json").json["note"]
    assert note == "predicting costs nothing more; this model knows only the people who reported for the run"
    answer = type_in("predict", "run", "social-150")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: social-150: link-beliefs predicts only people who reported; ")


# ---- graphveil train`` and ``predict`` with answer-pool ----


RUN = ("train", "answer-pool", "social-200", "--epsilon", 2, "--set", "question=20>=0.5")


def test_a_run_states_the_larger_price_and_is_read_back(type_in: Terminal) -> None:
    answer = type_in(*RUN, "--no-controls", "--out", "run", "--json")
    assert answer.code == 0, answer.err
    guarantee = Guarantee.from_dict(answer.json["guarantee"])
    assert guarantee.epsilon == 2.0 and [part.epsilon for part in guarantee.parts] == [2.0, 2.0]
    predicted = type_in("predict", "run", "social-200", "--out", "classes.csv")
    assert predicted.code == 0, predicted.err
    assert len(Path("classes.csv").read_text().splitlines()) == 201
    # A folder that leaves out that one report is sent: the parts add up, and the price stated is half of it.
    file = next(Path("run").rglob("result.json"))
    stored = json.loads(file.read_text())
    stored["guarantee"]["assumes"] = [fact for fact in stored["guarantee"]["assumes"] if "one of these" not in fact]
    file.write_text(json.dumps(stored))
    assert type_in("predict", "run", "social-200", "--out", "again.csv").code == 2


@pytest.mark.parametrize(
    ("question", "message"),
    [("height=3", "no column 'height'"), ("20>=2", "20>=2 has one answer"), ("20", "the column '20' is a number")],
)
def test_a_question_that_cannot_be_asked_ends_in_one_line(type_in: Terminal, question: str, message: str) -> None:
    answer = type_in("train", "answer-pool", "social-200", "--epsilon", 2, "--set", f"question={question}")
    assert answer.code == 2 and message in answer.err
    assert len(answer.err.strip().splitlines()) <= 2


# ---- --unit k-edges ----


FIVE = ("--unit", "k-edges", "--set", "relationships=5")
PRIVATE = "any set of up to 5 relationships of one person"
FIRST = f"This protects {PRIVATE}, not a person: this epsilon does not cover that person's features, label"


@pytest.mark.parametrize("method", ["class-sums", "gap"])
def test_a_plan_prices_the_unit_that_was_asked_for(method: str, type_in: Terminal) -> None:
    found = type_in("plan", method, "social-200", "--epsilon", 4, *FIVE, "--json").json
    assert found["epsilon"] == {PRIVATE: 4.0}
    guarantee = Guarantee.from_dict(found["guarantee"])
    assert (guarantee.unit.code, guarantee.epsilon) == ("5*one-relationship-of-a-person", 4.0)
    edge = type_in("plan", method, "social-200", "--epsilon", 4, "--json").json
    five, one = (plan["curator"]["noise"]["sigmas"][0] for plan in (found, edge))
    assert five > 3 * one


def test_a_run_and_its_card_say_it_first(type_in: Terminal, tmp_path: Path) -> None:
    words = ("train", "class-sums", "social-200", "--epsilon", 4, *FIVE, "--epochs", 3, "--no-controls")
    answer = type_in(*words, "--out", "run", "--json")
    assert answer.code == 0
    found = answer.json
    assert found["settings"]["unit"] == "k-edges" and found["settings"]["relationships"] == 5
    assert found["epsilon_relationship"] == pytest.approx(0.8)
    row = found["ledger"]["spends"][0]["parameters"]
    assert (row["unit"], row["relationships"]) == ("k-edges", 5)
    card = (tmp_path / "run" / "card.md").read_text(encoding="utf-8")
    assert FIRST in " ".join(card.split())
    assert "More of one person's relationships at once than 5." in card
    assert "for one relationship, everything released about it included" in card
