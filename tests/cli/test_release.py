"""``graphveil release``: publish, train on it, report; and what is refused."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest

from graphveil.cli import main
from graphveil.graphs import load_graph
from graphveil.methods.release.heterorr import HeteroRRCore
from graphveil.methods.release.rehearsal import Rehearsal
from graphveil.methods.runs.intervals import Interval
from graphveil.privacy import Guarantee, Ledger
from tests.cli.conftest import Terminal

SHARE = ("--private-share", 0.3)
RELEASE = ("release", "heterorr", "social-200", "--epsilon-x", 2, "--epsilon-a", 2, *SHARE, "-o", "out")
#: A rule in place of a rehearsal, which trains.
QUICK = ("--without-lift",)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release") / "out"
    assert main([*map(str, RELEASE[:-1]), str(folder), "--json"]) == 0
    return folder


@pytest.fixture
def out(published: Path, tmp_path: Path) -> Path:
    """A copy of what was published, called `out` in the folder of the test."""
    return Path(shutil.copytree(published, tmp_path / "out"))


def folder_of(path: str) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in Path(path).iterdir()}


def test_a_release_says_what_it_is_and_the_truth_stays_outside(type_in: Terminal) -> None:
    answer = type_in(*RELEASE)
    assert answer.code == 0
    words = " ".join(answer.out.split())
    for part in (
        "heterorr on social-200: released into out",
        "For the curator only, computed from the true edges; NOT in the folder",
        "generated edges are true private ones",
        "not a person but one person's features (2) and ONE edge (2): epsilon 4 together",
        "Next graphveil train gcn out",
    ):
        assert part in words, part
    assert "labels will be published UNPROTECTED" in answer.err
    found = type_in(*RELEASE[:-1], "again", "--json").json
    assert found["guarantee"]["epsilon"] == 4.0 and found["curator"]["overlap"]["true"] > 0
    assert (found["edges"], found["data"]) == (found["public"] + found["made"], "social-200")
    assert json.loads(Path("again/release.json").read_text())["guarantee"] == found["guarantee"]
    everything = "".join(file.read_text("utf-8", "ignore") for file in Path("again").iterdir())
    for word in ("overlap", "distance_of", 'truth"'):
        assert word not in everything, word
    card = Path("again/card.md").read_text()
    assert "| homophily (edges inside a class) |" in card and "| mean degree |" in card


def test_a_release_is_trained_on_reported_and_predicted(type_in: Terminal, out: Path) -> None:
    trained = type_in("train", "gcn", "out", "--epochs", 2, "--out", "run", "--json").json
    release = load_graph("out").release
    assert Guarantee.from_dict(trained["guarantee"]) == release.guarantee
    assert Ledger.from_dict(trained["ledger"]) == release.ledger
    assert {"public-edges", "random-edges", "no-edges", "random-features"} <= set(trained["controls"])
    assert trained["ceiling"] is None
    assert any("trained on a release (heterorr), at no further cost" in note for note in trained["notes"])
    assert type_in("report", "run").code == 0
    assert release.guarantee.sentence().split(" Assumes: ")[0] in Path("run/card.md").read_text()
    assert type_in("predict", "run", "out").code == 0
    described = type_in("data", "describe", "out", "--json").json
    assert described["release"]["guarantee"] == release.guarantee.sentence()


@pytest.mark.parametrize("method", ["edge-rr", "edge-rand", "lap-graph", "priv-hrg"])
def test_every_edge_method_publishes(type_in: Terminal, method: str) -> None:
    """What is asymptotic says so everywhere; what is expected is told by a rule, and to whoever publishes alone."""
    steps = ("--set", "steps=100") if method == "priv-hrg" else ()
    answer = type_in("release", method, "social-200", "--epsilon-a", 6, *SHARE, *steps, *QUICK, "-o", "out")
    assert answer.code == 0
    assert load_graph("out").release.method == method
    texts = [" ".join(answer.out.split()), Path("out/card.md").read_text(), Path("out/release.json").read_text()]
    for text in texts:
        assert ("asymptotic: no finite-time guarantee" in text) == (method == "priv-hrg")
        assert "expected lift" not in text
    assert " ".join(answer.err.split()).count("expected lift over the public edges alone: ") == 1


@pytest.mark.slow  # whole commands
def test_features_alone_and_randomized_labels(type_in: Terminal) -> None:
    words = ("release", "feature-rr", "social-200", "--epsilon-x", 4, "--epsilon-y", 1, "-o", "out")
    answer = type_in(*words)
    assert answer.code == 0
    assert "Not protected: the edges; facts about groups" in answer.out
    assert "For the curator only" not in answer.out and "expected lift" not in answer.err
    notes = type_in("train", "mlp", "out", "--epochs", 2, "--no-controls", "--out", "run", "--json").json["notes"]
    assert any("measured against the labels in the folder, which are randomized" in note for note in notes)


def test_reproducible_noise_is_void_on_screen_card_and_in_every_run_on_it(type_in: Terminal) -> None:
    answer = type_in(*RELEASE, "--reproducible-noise", 3)
    assert "VOID: this release protects nobody" in answer.out
    assert "VOID. This release protects nobody" in Path("out/card.md").read_text()
    assert "VOID" in type_in("train", "mlp", "out", "--epochs", 2, "--no-controls").out


@pytest.mark.parametrize(
    "words, message",
    [
        (("magic", "social-200", "-o", "x"), "no release method 'magic'; allowed: class-counts, heterorr, feature-rr"),
        (("gcn", "social-200", "-o", "x"), "no release method 'gcn'"),
        (("lpgnn", "social-200", "-o", "x"), "lpgnn publishes no graph, train it: graphveil train lpgnn DATA"),
        (
            ("edge-rand", "social-200", "-o", "x"),
            "--epsilon-a is required: the epsilon of one private edge, spent for good",
        ),
        (("edge-rand", "social-200", "--epsilon-a", 1), "Missing option"),
        (("edge-rand", "social-200", "--epsilon-a", 1, "-o", "taken"), "taken is not empty; name a new folder"),
        (("edge-rand", "social-200", "--epsilon-x", 1, "-o", "x"), "--epsilon-x does not apply to edge-rand"),
        (("edge-rand", "social-200", "--epsilon-a", 1, "--private-share", 2, "-o", "x"), "private share 2.0; allowed"),
        (("edge-rr", "social-200", "--epsilon-a", 1, "--set", "edges=edge-rand", "-o", "x"), "allowed: public-tree"),
        (("edge-rand", "social-200", "--epsilon-a", 1, "--set", "hidden=5", "-o", "x"), "has no setting 'hidden'"),
        (("class-counts", "social-200", *SHARE, "-o", "x"), "--epsilon-a is required"),
        (("priv-hrg", "social-200", "--epsilon-a", 2, "--workers", 2, "-o", "x"), "does not work by blocks yet"),
    ],
)
def test_refusals_are_one_line_and_leave_nothing(type_in: Terminal, words: tuple[object, ...], message: str) -> None:
    Path("taken").mkdir()
    (Path("taken") / "file").write_text("mine")
    answer = type_in("release", *words)
    assert (answer.code, answer.out) == (2, "")
    assert message in answer.err.splitlines()[-1]
    assert [entry.name for entry in Path().iterdir() if entry.name != "data"] == ["taken"]


def test_a_release_is_not_released_again_nor_protected_again(type_in: Terminal, out: Path) -> None:
    again = type_in("release", "edge-rand", "out", "--epsilon-a", 1, "-o", "second")
    assert (again.code, "is a release already (heterorr)" in again.err) == (2, True)
    for method in ("gap", "solitude", "heterorr"):
        answer = type_in("train", method, "out")
        assert answer.code == 2
        assert f"the graph is a release: {method} would protect data that is already public" in answer.err
    assert type_in("plan", "gap", "out").code == 2
    assert "this is free" in type_in("plan", "gcn", "out").out


def test_the_card_of_a_release_is_written_anew_and_a_changed_one_is_refused_by_name(
    type_in: Terminal, out: Path
) -> None:
    card = out / "card.md"
    assert type_in("report", "out").code == 0
    before = card.read_text()
    card.unlink()
    found = type_in("report", "out", "--json").json
    assert card.read_text() == before
    assert (found["card"], found["report"], found["method"]) == ("out/card.md", None, "heterorr")
    ledger = out / "ledger.json"
    kept = ledger.read_text()
    ledger.write_text(kept.replace("2.0", "1.0"))
    answer = type_in("train", "gcn", "out")
    assert (answer.code, "ledger.json: was changed since it was published" in answer.err) == (2, True)
    ledger.unlink()
    answer = type_in("report", "out")
    assert (answer.code, "the release is incomplete: ledger.json is missing" in answer.err) == (2, True)


def test_a_plan_says_how_noisy_features_counts_and_edges_are(type_in: Terminal) -> None:
    answer = type_in("plan", "feature-rr", "social-200", "--epsilon-x", 1)
    words = " ".join(answer.out.split())
    assert answer.code == 0 and "features by" in words
    assert "has the least noise here: the variance of feature-rr is larger" in words
    found = type_in("plan", "heterorr", "social-200", "--epsilon-a", 1, "--set", "edges=mcmc", "--json").json
    assert found["guarantee"]["assumes"][0].startswith("asymptotic: no finite-time guarantee")
    assert found["release"]["steps"] == 20_000
    assert math.isclose(found["epsilon"]["one private edge"], 1.0)
    found = type_in("plan", "class-counts", "social-200", "--epsilon-a", 1, *SHARE, "--json").json
    assert found["guarantee"]["epsilon"] == 1.0
    assert "a count of neighbours has a deviation of 2.8" in found["advice"][0]
    # A warning comes before a huge number of false edges.
    plan = type_in("plan", "edge-rand", "social-20000", "--epsilon-a", 1, "--json").json["release"]
    assert plan["false_edges"] > 5e7 and "false edges" in plan["warning"]


@pytest.mark.slow  # all controls and rivals are trained
def test_training_and_comparing_in_one_run(type_in: Terminal) -> None:
    found = type_in("train", "heterorr", "social-200", *SHARE, "--epochs", 2, "--out", "run", "--json").json
    assert {"public-edges", "random-edges", "no-edges", "random-features", "label-propagation"} <= set(
        found["controls"]
    )
    assert found["ceiling"] is not None
    assert set(found["rivals"]) == {"edge-rand", "lap-graph"}
    assert found["epsilon_relationship"] == 1.0
    assert found["options"]["private_share"] == 0.3
    words = ("compare", "edge-rr,lap-graph", "social-200", "--epsilon-a", "1,8", *SHARE, "--repeats", 1, "--epochs", 2)
    assert len(type_in(*words, "--no-controls", "--out", "study", "--json").json["rows"]) == 4
    assert type_in("release", "class-counts", "social-200", "--epsilon-a", 4, *SHARE, *QUICK, "-o", "out").code == 0
    read = type_in("train", "class-counts", "out", "--epsilon-a", 1, "--json").json
    assert set(read["controls"]) == {"public-edges", "no-edges"}


def test_a_comparison_says_that_a_markov_chain_is_asymptotic(type_in: Terminal) -> None:
    quick = ("--set", "steps=50", *SHARE, "--epochs", 2, "--repeats", 1, "--no-controls", "--out", "study")
    words = ("compare", "priv-hrg,edge-rand", "social-200", "--epsilon-a", 4, *quick)
    answer = type_in(*words)
    asymptotic = "priv-hrg: asymptotic: no finite-time guarantee"
    assert asymptotic in " ".join(answer.out.split())
    assert asymptotic in Path("study/table.md").read_text()
    rows = type_in(*words, "--json").json["rows"]
    assert {row["method"]: bool(row["caution"]) for row in rows} == {"priv-hrg": True, "edge-rand": False}


@pytest.mark.slow  # whole commands
def test_a_release_never_receives_what_attacks_on_it_find(type_in: Terminal, out: Path) -> None:
    before = folder_of("out")
    attack = ("--attack", "published-edges", "--truth", "social-200")
    answer = type_in("attack", "out", *attack)
    assert answer.code == 0, answer.err
    assert "heterorr: attack published-edges" in answer.out and "without protection" in answer.out
    assert folder_of("out") == before
    kept = folder_of("out.curator")
    assert set(kept) == {*(f"attack-published-edges.{kind}" for kind in ("json", "png", "svg")), "card.md", "card.html"}
    for name in ("card.md", "card.html"):
        assert "NOT TO BE PUBLISHED" in kept[name].decode() and "published-edges" in kept[name].decode()
        assert "NOT TO BE PUBLISHED" not in before[name].decode()
        assert "--attack published-edges --truth DATA" in before[name].decode()
    again = type_in("attack", "out/", *attack, "--no-plain", "--json")
    assert set(again.json["results"]) == {"heterorr"}
    assert again.json["picture"] == "out.curator/attack-published-edges.png"
    assert load_graph("out").release is not None and folder_of("out") == before


def test_attacks_on_a_release_are_refused_in_one_line(type_in: Terminal, out: Path, trained: Path) -> None:
    edges = ("--attack", "published-edges")
    for words, said in (
        (("out", *edges), "--truth: is required"),
        (("out", *edges, "--truth", "social-100"), "the truth has 100 nodes"),
        (("out", "--attack", "linkteller", "--truth", "social-200"), "attacks a model, but this is a graph"),
        (("out", *edges, "--truth", "social-200", "--out", "out/mine"), "is inside the release, which is public"),
        (("out", *edges, "--truth", "social-200", "--out", trained), "holds other files"),
        ((trained, *edges, "--truth", "social-200", "--out", "x"), "--out: applies to releases only"),
        (("out", *edges, "--data", "digits"), "--data: applies to runs only"),
    ):
        answer = type_in("attack", *words)
        assert (answer.code, said in answer.err) == (2, True), answer.err
    assert not Path("out.curator").exists() and not Path("x").exists()


@pytest.mark.slow
def test_a_run_on_a_release_is_attacked_with_the_truth(type_in: Terminal, out: Path) -> None:
    type_in("train", "gcn", "out", "--epochs", 5, "--no-controls", "--out", "run")
    before = folder_of("out")
    for name, plain in (("link-stealing", {"without protection"}), ("published-edges", set())):
        answer = type_in("attack", "run", "--attack", name, "--truth", "social-200", "--json")
        assert set(answer.json["results"]) == {"gcn", *plain}, answer.err
    assert "public edges of the release alone" in Path("run/card.md").read_text()
    assert "| published-edges |" in Path("run/card.md").read_text()
    assert folder_of("out") == before


def test_the_lift_of_a_release_is_measured_on_the_release_alone(
    type_in: Terminal, monkeypatch: pytest.MonkeyPatch, out: Path, trained: Path
) -> None:
    from graphveil.reports.releases import lift as release_lift

    monkeypatch.setattr(release_lift, "REPEATS", 1)
    monkeypatch.setattr(release_lift, "SETTINGS", {"epochs": 1})
    assert "--lift" in Path("out/card.md").read_text()
    assert type_in("report", "out", "--lift", "--json").json["card"] == "out/card.md"
    for name in ("card.md", "card.html"):
        card = Path("out", name).read_text()
        assert "Lift over the free baseline, " in card and "public-edges" in card
        assert "what the release holds, and covered by its guarantee" in card and "true data" not in card
    assert load_graph("out").release is not None
    Path("out/lift.json").write_text("[]")
    damaged = type_in("report", "out")
    assert (damaged.code, "lift.json: damaged" in damaged.err) == (2, True)
    refused = type_in("report", trained, "--lift")
    assert (refused.code, "--lift: applies to releases only" in refused.err) == (2, True)


@pytest.mark.slow  # whole commands
def test_counts_are_published_read_and_reported(type_in: Terminal) -> None:
    """A folder of counts: no private edge in it, read by its own method for free, and by mlp as public edges alone."""
    answer = type_in("release", "class-counts", "social-200", "--epsilon-a", 4, *SHARE, *QUICK, "-o", "out")
    assert answer.code == 0
    assert "counts.parquet holds noisy counts" in Path("out/release.json").read_text()
    assert "For the curator only" not in answer.out
    released = load_graph("out")
    assert bool(released.public_edges.all()) and released.release.counts is not None
    assert released.release.counts.counts.shape == (200, len(released.schema.classes))
    trained = type_in("train", "class-counts", "out", "--epsilon-a", 1, "--no-controls", "--out", "run", "--json").json
    assert Guarantee.from_dict(trained["guarantee"]) == released.release.guarantee
    assert (trained["rivals"], trained["ceiling"]) == ({}, None)
    assert any(note.startswith("used: public part") for note in trained["notes"])
    assert type_in("report", "run").code == type_in("predict", "run", "out").code == 0
    plain = type_in("train", "mlp", "out", "--epochs", 1, "--no-controls", "--json").json
    assert plain["guarantee"]["epsilon"] == 4.0
    refused = type_in("train", "heterorr", "social-200", "--set", "edges=class-counts", *SHARE)
    assert refused.code == 2 and "features and labels as they are" in refused.err


@pytest.mark.parametrize(
    ("lift", "said", "code"),
    [
        (-0.05, "error: release edge-rr: expected lift over the public part alone: -5.0 points (-6.0 to -4.0)", 2),
        (0.005, "warning: expected lift over the public part alone: +0.5 points (-0.5 to +1.5)", 0),
        (0.05, "expected lift over the public part alone: +5.0 points (+4.0 to +6.0)", 0),
    ],
)
def test_a_rehearsal_decides_before_anything_is_spent(
    type_in: Terminal, monkeypatch: pytest.MonkeyPatch, lift: float, said: str, code: int
) -> None:
    """What takes away is refused in one line with a remedy that goes on; no private edge is read, nothing paid for."""
    trials = tuple(
        Rehearsal(edges, Interval(mean, mean - 0.01, mean + 0.01, (mean,)))
        for edges, mean in (("public-tree", lift), ("class-counts", 0.03))
    )
    monkeypatch.setattr("graphveil.methods.release.rehearsal.rehearse", lambda *_, **__: trials)
    if code:
        monkeypatch.setattr(HeteroRRCore, "release", None)
    answer = type_in("release", "edge-rr", "social-200", "--epsilon-a", 1, "--private-share", 0.9, "-o", "out")
    assert (answer.code, Path("out").exists()) == (code, not code)
    lines = answer.err.splitlines()
    assert sum(line.startswith(said) for line in lines) == 1, answer.err
    assert ("class-counts: +3.0 points (+2.0 to +4.0)" in answer.err) == (lift < 0.03)
    assert code == 0 or "give a larger --epsilon-a, or go on with --without-lift" in lines[-1]


@pytest.mark.slow  # rehearsals train in made worlds
def test_counts_go_on_where_made_edges_are_refused(type_in: Terminal) -> None:
    words = ("social-200", "--epsilon-a", 1, "--private-share", 0.9)
    assert type_in("release", "edge-rr", *words, "-o", "tree").code == 2 and not Path("tree").exists()
    answer = type_in("release", "class-counts", *words, "-o", "out")
    assert answer.code == 0
    said = " ".join(answer.err.split())
    assert said.count("expected lift over the public part alone:") == 1
    assert "made private edges a person" in said
    assert "expected lift" not in Path("out/card.md").read_text() + Path("out/release.json").read_text()


def test_a_release_is_the_same_wherever_its_blocks_were_worked_on(type_in: Terminal) -> None:
    words = ("release", "heterorr", "social-3000", "--epsilon-x", 2, "--epsilon-a", 12, "--set", "edges=edge-rand")
    for place, workers in (("here", ()), ("there", ("--workers", 3))):
        assert type_in(*words, "--reproducible-noise", 1, *SHARE, *workers, "-o", place).code == 0
    names = {file.name for file in Path("here").iterdir() if file.suffix in (".npz", ".parquet", ".npy", ".csv")}
    assert names and all((Path("here") / name).read_bytes() == (Path("there") / name).read_bytes() for name in names)
