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
from tests.on_device.signing import MOODS, label, links

HALF = {"features": 2, "label": 3}


def test_a_run_folder_comes_out(type_in: Terminal, tmp_path: Path) -> None:
    out, edges = exported(tmp_path, silent=HALF)
    words = ("--edges", edges, "--epochs", 2, "--set", "steps_y=4", "--out", "run", "--json")
    result = type_in("train", "lpgnn", out, *words).good.json
    assert result["ceiling"] is None and result["best_control"] in result["controls"]
    options = {"people": PEOPLE, "answered_features": 60, "answered_label": 80, "edges": str(edges)}
    assert options.items() <= result["options"].items()
    assert len(result["options"]["task"]) == 64
    assert load_method(Path("run")).guarantee.epsilon == 7.0
    assert "labels that a network is trained on by at most" in result["notes"][-1]
    assert json.loads(Path("run/public/guarantee.json").read_text()) == result["guarantee"]
    card = Path("run/card.md").read_text()
    assert "Estimated accuracy on the test nodes" in card and "no true label is known" in card
    page, readme = Path("run/report.html").read_text(), Path("run/README.md").read_text()
    assert "of 120 people 60 sent features (50%), 80 sent label (67%)" in page
    assert "estimates from people's randomized labels" in page.replace("&#39;", "'")
    assert "Estimated accuracy on test nodes" in page and "true data" not in page
    assert "estimated from randomized labels" in readme and "true data" not in readme
    message = "a collection is no graph; for its own people train with --predictions"
    type_in("predict", "run", out).refused(message)
    assert type_in("report", "run").good and Path("run/README.md").read_text() == readme
    # The picture: public edges and predictions, no label that anybody sent and no name.
    own, public = (json.loads(Path(place).read_text()) for place in ("run/picture.json", "run/public/picture.json"))
    assert own == public and own["total"] == PEOPLE and not own["labels"] and not own["names"]
    assert "edges that are declared public" in " ".join(own["told"]) and "picture" in page


def truth(folder: Path) -> Path:
    """The people of the collection as a folder of tables, with what nobody but a simulation knows."""
    people, place = graph(), folder / "truth"
    place.mkdir()
    columns: dict[str, Any] = {f"x{n}": column for n, column in enumerate(people.x.to_dense().T.tolist())}
    labels = [MOODS[label] for label in people.y.tolist()]
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
        type_in(*words).refused("what people's devices sent")
    results = type_in("attack", "run", "--attack", "membership", "--truth", truth(tmp_path), "--json").json["results"]
    # Judged on those who sent a label, as the training drew them.
    assert set(results) == {"lpgnn", PLAIN} and results["lpgnn"]["positives"] == 40
    other = type_in("attack", "run", "--attack", "membership", "--truth", "social-200")
    other.refused("not those of the collection")


def test_a_method_that_reads_something_else_is_refused_in_a_line(type_in: Terminal, tmp_path: Path) -> None:
    out, edges = exported(tmp_path)
    for words, message in (
        (("lpgnn", out), "--edges edges.parquet"),
        (("lpgnn", "digits", "--edges", edges), "edges beside data that have their own"),
        (("lpgnn", out, "--edges", edges, "--reproducible-noise", 1), "the noise was drawn on devices"),
        (("label-pool", out), "label-pool does not read features"),
    ):
        type_in("train", *words).refused(message)


def everybody(number: int, body: bytes) -> bytes:
    """A report that names all others: a flag and two bits of the label, the flag of the list, and the list."""
    bits = np.unpackbits(np.frombuffer(body, np.uint8))
    bits[4 : 4 + PEOPLE] = 1
    bits[4 + number] = 0
    return np.packbits(bits).tobytes()


def test_a_collection_of_suspects_alone_is_refused_with_the_way_to_keep_them(type_in: Terminal, tmp_path: Path) -> None:
    out, _ = exported(tmp_path, label("3"), links(PEOPLE, "2", "both"), forged=everybody)
    refused = type_in("train", "link-beliefs", out, "--set", "rounds=1", "--no-controls", "--json")
    refused.refused("120 of 120 reports were left out as suspects", "--keep-suspects trains on all")
