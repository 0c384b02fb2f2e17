"""`graphveil train METHOD FOLDER --edges FILE`: an exported collection into the run folder of every other run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

from graphveil.methods import load_method
from graphveil.reports.attacks.files import PLAIN
from tests.cli.conftest import Terminal
from tests.collection.answered import IDS, PEOPLE, exported, graph
from tests.on_device.signing import MOODS, degree, label, links

HALF = {"features": 2, "label": 3}


def test_a_run_folder_comes_out(type_in: Terminal, tmp_path: Path) -> None:
    out, edges = exported(tmp_path, silent=HALF)
    answer = type_in(
        "train", "lpgnn", out, "--edges", edges, "--epochs", 2, "--set", "steps_y=4", "--out", "run", "--json"
    )
    assert answer.code == 0, answer.err
    found = answer.json
    assert found["ceiling"] is None and found["best_control"] in found["controls"]
    told = {"people": PEOPLE, "answered_features": 60, "answered_label": 80, "edges": str(edges)}
    assert told.items() <= found["options"].items()
    assert len(found["options"]["task"]) == 64
    assert load_method(Path("run")).guarantee.epsilon == 7.0
    assert "labels that a network is trained on by at most" in found["notes"][-1]
    assert json.loads(Path("run/public/guarantee.json").read_text()) == found["guarantee"]
    card = Path("run/card.md").read_text()
    assert "Estimated accuracy on the test nodes" in card and "no true label is known" in card
    page, readme = Path("run/report.html").read_text(), Path("run/README.md").read_text()
    assert "of 120 people 60 sent features (50%), 80 sent label (67%)" in page
    assert "estimates from people's randomized labels" in page.replace("&#39;", "'")
    assert "Estimated accuracy on test nodes" in page and "true data" not in page
    assert "estimated from randomized labels" in readme and "true data" not in readme
    shown = type_in("report", "run")
    assert shown.code == 0 and Path("run/README.md").read_text() == readme
    # The picture: public edges and predictions, no label that anybody sent and no name.
    own, public = (json.loads(Path(place).read_text()) for place in ("run/picture.json", "run/public/picture.json"))
    assert own == public and own["total"] == PEOPLE and not own["labels"] and not own["names"]
    assert "edges that are declared public" in " ".join(own["told"]) and "picture" in page


@pytest.mark.slow  # whole commands
def test_a_run_is_made_again_from_its_file(type_in: Terminal, tmp_path: Path) -> None:
    out, edges = exported(tmp_path, silent=HALF)
    words = ("--seed", 3, "--epochs", 2, "--no-controls")
    first = type_in("train", "lpgnn", out, "--edges", edges, *words, "--out", "run", "--json")
    assert first.code == 0, first.err
    again = type_in("train", "--config", "run/config.toml", "--out", "again", "--json")
    assert again.code == 0, again.err
    # The same reports, split and weights: nothing is drawn anew but on devices.
    for key in ("settings", "options", "guarantee", "ledger", "accuracy"):
        assert first.json[key] == again.json[key], key
    other = type_in("train", "--config", "run/config.toml", "--epsilon-y", 9)
    assert other.code == 2 and "epsilon_y beside a collection" in other.err


@pytest.mark.slow  # whole commands
def test_lists_are_read_again_from_a_runs_file(type_in: Terminal, tmp_path: Path) -> None:
    out, _ = exported(tmp_path, label("3"), links(PEOPLE, "4"), degree(PEOPLE, "0.5"))
    words = ("train", "dprr", out, "--epochs", 2, "--no-controls", "--keep-suspects", "--out", "run", "--json")
    first, again = type_in(*words), type_in("train", "--config", "run/config.toml", "--json")
    assert (first.code, again.code) == (0, 0), first.err + again.err
    assert "edges" not in first.json["options"]
    assert "people sent lists" in type_in(*words[:-4], "--edges", out / "edges.parquet").err
    assert first.json["accuracy"] == again.json["accuracy"] and again.json["options"]["suspects_kept"]
    assert not Path("run/picture.json").exists()  # links are private: none may be drawn


def truth(folder: Path) -> Path:
    """The people of the collection as a folder of tables, with what nobody but a simulation knows."""
    made, place = graph(), folder / "truth"
    place.mkdir()
    columns: dict[str, Any] = {f"x{n}": column for n, column in enumerate(made.x.to_dense().T.tolist())}
    labels = [MOODS[label] for label in made.y.tolist()]
    polars.DataFrame({"id": IDS, **columns, "mood": labels}).write_csv(place / "nodes.csv")
    polars.read_parquet(folder / "edges.parquet").write_csv(place / "edges.csv")
    declared = (f"classes = {json.dumps(MOODS)}", "range = [0, 1]", "directed = false", 'private = ["features"]')
    (place / "graph.toml").write_text("\n".join([*declared, 'id = "id"', 'label = "mood"']) + "\n")
    return place


@pytest.mark.slow  # whole commands
def test_an_attack_needs_a_truth_that_only_a_simulation_has(type_in: Terminal, tmp_path: Path) -> None:
    out, edges = exported(tmp_path, silent=HALF)
    answer = type_in("train", "lpgnn", out, "--edges", edges, "--epochs", 2, "--no-controls", "--out", "run")
    text = " ".join(answer.out.split())
    for part in ("estimated from randomized labels held out", "60 sent features (50%)", "there is no ceiling"):
        assert part in text, part
    for words in (("attack", "run", "--attack", "membership"), ("predict", "run")):
        refused = type_in(*words)
        assert refused.code == 2 and "what people's devices sent" in refused.err
    found = type_in("attack", "run", "--attack", "membership", "--truth", truth(tmp_path), "--json").json["results"]
    # Judged on those who sent a label, as the training drew them.
    assert set(found) == {"lpgnn", PLAIN} and found["lpgnn"]["positives"] == 40
    other = type_in("attack", "run", "--attack", "membership", "--truth", "social-200")
    assert other.code == 2 and "not those of the collection" in other.err


def test_a_method_that_reads_something_else_is_refused_in_a_line(type_in: Terminal, tmp_path: Path) -> None:
    out, edges = exported(tmp_path)
    assert "--edges edges.parquet" in type_in("train", "lpgnn", out).err
    assert "edges beside data" in type_in("train", "lpgnn", "digits", "--edges", edges).err
    again = type_in("train", "lpgnn", out, "--edges", edges, "--reproducible-noise", 1)
    assert again.code != 0 and "drawn on devices" in again.err
    none = ("answer-pool", "gap", "heterorr")
    for name, said in (
        *((name, f"{name} trains on no reports of devices") for name in none),
        ("solitude", "the task asks for features, label, and solitude needs links too"),
        ("dprr", "and dprr needs links and degree too"),
        ("label-pool", "label-pool does not read features"),
    ):
        refused = type_in("train", name, out)
        assert refused.code == 2 and refused.err.count("\n") == 1
        assert said in refused.err and "allowed: lpgnn, upgnet" in refused.err


def everybody(number: int, body: bytes) -> bytes:
    """A report that names all others: a flag and two bits of the label, the flag of the list, and the list."""
    bits = np.unpackbits(np.frombuffer(body, np.uint8))
    bits[4 : 4 + PEOPLE] = 1
    bits[4 + number] = 0
    return np.packbits(bits).tobytes()


def test_a_collection_of_suspects_alone_is_refused_in_words(type_in: Terminal, tmp_path: Path) -> None:
    out, _ = exported(tmp_path, label("3"), links(PEOPLE, "2", "both"), forged=everybody)
    words = ("train", "link-beliefs", out, "--set", "rounds=1", "--no-controls", "--json")
    refused = type_in(*words)
    assert refused.code == 2 and "120 of 120 reports were left out as suspects" in refused.err
    assert "--keep-suspects trains on all" in refused.err
    # As the other commands have it.
    assert type_in(*words, "--keep-suspects", "-o", "run").code == 0 and Path("run/config.toml").is_file()


def test_a_list_of_everybody_is_left_out_unless_it_is_kept(type_in: Terminal, tmp_path: Path) -> None:
    fields = label("3"), links(PEOPLE, "2", "both")
    out, _ = exported(tmp_path, *fields, forged=lambda number, body: everybody(5, body) if number == 5 else body)
    words = ("train", "link-beliefs", out, "--set", "rounds=1", "--no-controls", "--json")
    found = type_in(*words).json
    assert found["options"]["suspects"] == 1 and found["options"]["answered_links"] == PEOPLE - 1
    assert any("suspects 1 of 120 reports (links: ends that differ 1)" in note for note in found["notes"])
    moved = found["notes"][-1]
    assert moved.startswith("5% forged reports move the share of a class by at most")
    assert "a person's number of links" in moved and "trained on" not in moved
    kept = type_in(*words, "--keep-suspects").json
    assert kept["options"]["suspects_kept"] and kept["options"]["answered_links"] == PEOPLE
