"""``graphveil release``: publish, train on it, report; and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from graphveil.cli import main
from graphveil.graphs import load_graph
from graphveil.methods.release.heterorr import HeteroRR
from graphveil.methods.release.rehearsal import Rehearsal
from graphveil.methods.runs.intervals import Interval
from tests.cli.conftest import Terminal

SHARE = ("--private-share", 0.3)
RELEASE = ("release", "heterorr", "social-200", "--epsilon-x", 2, "--epsilon-a", 2, *SHARE, "-o", "out")


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
    answer = type_in(*RELEASE[:-1], "my out").good
    words = " ".join(answer.out.split())
    for part in (
        "heterorr on social-200: released into my out",
        "For the curator only, computed from the true edges; NOT in the folder",
        "generated edges are true private ones",
        "not a person but one person's features (2) and ONE edge (2): epsilon 4 together",
        "Next graphveil train heterorr 'my out'",
    ):
        assert part in words, part
    assert "labels will be published UNPROTECTED" in answer.err
    release = type_in(*RELEASE[:-1], "again", "--json").json
    assert release["guarantee"]["epsilon"] == 4.0 and release["curator"]["overlap"]["true"] > 0
    assert (release["edges"], release["data"]) == (release["public"] + release["made"], "social-200")
    assert json.loads(Path("again/release.json").read_text())["guarantee"] == release["guarantee"]
    everything = "".join(file.read_text("utf-8", "ignore") for file in Path("again").iterdir())
    for word in ("overlap", "distance_of", 'truth"'):
        assert word not in everything, word
    card = Path("again/card.md").read_text()
    assert "| homophily (edges inside a class) |" in card and "| mean degree |" in card


def test_reproducible_noise_is_void_on_screen_card_and_in_every_run_on_it(type_in: Terminal) -> None:
    answer = type_in(*RELEASE, "--reproducible-noise", 3)
    assert "VOID: this release protects nobody" in answer.out
    assert "VOID. This release protects nobody" in Path("out/card.md").read_text()
    assert "VOID" in type_in("train", "mlp", "out", "--epochs", 2, "--no-controls").out


def test_its_own_method_plans_and_reads_a_release_as_it_was_made(type_in: Terminal, out: Path) -> None:
    read = type_in("train", "heterorr", "out", "--epochs", 2, "--no-controls")
    plan = type_in("plan", "heterorr", "out")
    assert "Using defaults" not in read.err + read.out + plan.out and "this is free" in plan.out
    for answer in (read, type_in("predict", *Path("runs").iterdir())):
        assert "features (2) and ONE edge (2): epsilon 4 together" in " ".join(answer.out.split())
        assert "one relationship" not in answer.out, "it costs what the edge does"
    assert "epsilon_a = 2.0" in next(Path("runs").glob("*/config.toml")).read_text()


@pytest.mark.parametrize(
    "words",
    [
        ("train", "heterorr", "out", "--epsilon-a", 9),
        ("plan", "heterorr", "out", "--epsilon-a", 9),
        ("compare", "gcn,heterorr", "out", "--epsilon-a", "2,9"),
        ("tune", "heterorr", "out", "--over", "steps_x=1,2", "--epsilon-a", 9),
    ],
)
def test_an_epsilon_that_a_release_would_leave_aside_is_refused(
    type_in: Terminal, out: Path, words: tuple[str | int, ...]
) -> None:
    refusal = "error: social-200: epsilon_a is 9.0, but the release has been made and paid for"
    answer = type_in(*words)
    assert (answer.code, answer.err) == (2, f"{refusal}; allowed: epsilon_a=2.0; leave it out\n")
    assert not Path("runs").exists() or not any(Path("runs").iterdir())


def test_a_release_is_not_released_again(type_in: Terminal, out: Path) -> None:
    again = type_in("release", "edge-rand", "out", "--epsilon-a", 1, "-o", "second")
    again.refused("is a release already (heterorr)")


def test_the_card_of_a_release_is_written_anew_and_a_changed_one_is_refused_by_name(
    type_in: Terminal, out: Path
) -> None:
    card = out / "card.md"
    assert type_in("report", "out").code == 0
    before = card.read_text()
    card.unlink()
    report = type_in("report", "out", "--json").json
    assert card.read_text() == before
    assert (report["card"], report["report"], report["method"]) == ("out/card.md", None, "heterorr")
    ledger = out / "ledger.json"
    text = ledger.read_text()
    ledger.write_text(text.replace("2.0", "1.0"))
    type_in("train", "gcn", "out").refused("ledger.json: was changed since it was published")
    ledger.unlink()
    type_in("report", "out").refused("the release is incomplete: ledger.json is missing")


@pytest.mark.slow  # whole commands
def test_a_release_never_receives_what_attacks_on_it_find(type_in: Terminal, out: Path) -> None:
    before = folder_of("out")
    attack = ("--attack", "published-edges", "--truth", "social-200")
    answer = type_in("attack", "out", *attack).good
    assert "heterorr: attack published-edges" in answer.out and "without protection" in answer.out
    assert folder_of("out") == before
    files = folder_of("out.curator")
    pictures = {f"attack-published-edges.{kind}" for kind in ("json", "png", "svg")}
    assert set(files) == {*pictures, "card.md", "card.html"}
    for name in ("card.md", "card.html"):
        assert "NOT TO BE PUBLISHED" in files[name].decode() and "published-edges" in files[name].decode()
        assert "NOT TO BE PUBLISHED" not in before[name].decode()
        assert "--attack published-edges --truth DATA" in before[name].decode()
    again = type_in("attack", "out/", *attack, "--no-plain", "--json")
    assert set(again.json["results"]) == {"heterorr"}
    assert again.json["picture"] == "out.curator/attack-published-edges.png"
    assert load_graph("out").release is not None and folder_of("out") == before


def test_attacks_on_a_release_are_refused_in_one_line(type_in: Terminal, out: Path, trained: Path) -> None:
    edges = ("--attack", "published-edges")
    for words, message in (
        (("out", *edges), "--truth: is required"),
        (("out", *edges, "--truth", "social-100"), "the truth has 100 nodes"),
        (("out", "--attack", "linkteller", "--truth", "social-200"), "attacks a model, but this is a graph"),
        (("out", *edges, "--truth", "social-200", "--out", "out/mine"), "is inside the release, which is public"),
        (("out", *edges, "--truth", "social-200", "--out", trained), "holds other files"),
        ((trained, *edges, "--truth", "social-200", "--out", "x"), "--out: applies to releases only"),
        (("out", *edges, "--data", "digits"), "--data: applies to runs only"),
    ):
        answer = type_in("attack", *words)
        assert (answer.code, message in answer.err) == (2, True), answer.err
    assert not Path("out.curator").exists() and not Path("x").exists()


def test_the_lift_of_a_release_is_measured_on_the_release_alone(
    type_in: Terminal, monkeypatch: pytest.MonkeyPatch, out: Path, trained: Path
) -> None:
    from graphveil.reports.releases import card as release_card

    monkeypatch.setattr(release_card, "REPEATS", 1)
    monkeypatch.setattr(release_card, "SETTINGS", {"epochs": 1})
    assert "--lift" in Path("out/card.md").read_text()
    assert type_in("report", "out", "--lift", "--json").json["card"] == "out/card.md"
    for name in ("card.md", "card.html"):
        card = Path("out", name).read_text()
        assert "Lift over the free baseline, " in card and "public-edges" in card
        assert "what the release holds, and covered by its guarantee" in card and "true data" not in card
    assert load_graph("out").release is not None
    Path("out/lift.json").write_text("[]")
    type_in("report", "out").refused("lift.json: damaged")
    type_in("report", trained, "--lift").refused("--lift: applies to releases only")


@pytest.mark.parametrize(
    ("lift", "message", "code"),
    [
        (-0.05, "error: release edge-rr: expected lift over the public part alone: -5.0 points (-6.0 to -4.0)", 2),
        (0.005, "warning: expected lift over the public part alone: +0.5 points (-0.5 to +1.5)", 0),
        (0.05, "expected lift over the public part alone: +5.0 points (+4.0 to +6.0)", 0),
    ],
)
def test_a_rehearsal_decides_before_anything_is_spent(
    type_in: Terminal, monkeypatch: pytest.MonkeyPatch, lift: float, message: str, code: int
) -> None:
    """What takes away is refused in one line with a remedy that goes on; no private edge is read, nothing paid for."""
    trials = tuple(
        Rehearsal(edges, Interval(mean, mean - 0.01, mean + 0.01, (mean,)))
        for edges, mean in (("public-tree", lift), ("class-counts", 0.03))
    )
    monkeypatch.setattr("graphveil.methods.release.rehearsal.rehearse", lambda *_, **__: trials)
    if code:
        monkeypatch.setattr(HeteroRR, "release", None)
    answer = type_in("release", "edge-rr", "social-200", "--epsilon-a", 1, "--private-share", 0.9, "-o", "out")
    assert (answer.code, Path("out").exists()) == (code, not code)
    lines = answer.err.splitlines()
    assert sum(line.startswith(message) for line in lines) == 1, answer.err
    assert ("class-counts: +3.0 points (+2.0 to +4.0)" in answer.err) == (lift < 0.03)
    assert code == 0 or "give a larger --epsilon-a, or go on with --without-lift" in lines[-1]


def test_a_collection_is_not_planned_at_the_price_of_a_release(type_in: Terminal, out: Path) -> None:
    drafted = type_in("collect", "init", "out", "-o", "draft", "--epsilon-y", 2, "--json").json
    assert drafted["plan"] is None and "epsilon = 2, delta = 0, local" in drafted["guarantee"][0]
