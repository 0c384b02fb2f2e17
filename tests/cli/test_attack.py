"""``graphveil attack`` on a real run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from graphveil.attacks.catalogue import ATTACKS
from graphveil.attacks.federation import FEDERATION_ATTACKS
from graphveil.cli import main
from graphveil.cli.attack import NAMES
from graphveil.errors import ModelFileError
from graphveil.reports.attacks.federation import is_federation
from graphveil.reports.attacks.files import PLAIN, kept
from tests.cli.conftest import Terminal

pytestmark = pytest.mark.usefixtures("quick_pages")


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy, to which attacks may add."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


@pytest.mark.slow  # whole commands
def test_an_attack_is_shown_and_kept(type_in: Terminal, run: Path) -> None:
    shown = type_in("attack", run, "--attack", "linkteller", "--nodes", "120")
    assert shown.code == 0, shown.err
    assert "lpgnn: attack linkteller" in shown.out and PLAIN in shown.out and "outside what the" in shown.out
    assert (run / "attack-linkteller.png").read_bytes().startswith(b"\x89PNG")
    found = kept(run)["linkteller"]
    assert found["lpgnn"].auc.mean == 0.5 and found[PLAIN].auc.low > 0.9
    assert "not covered by epsilon" in " ".join(shown.out.split())
    for card in cards(run):  # which told of none before
        assert "None was run." not in card and "AUC without protection" in card and "proves nothing" in card
        assert "outside what the method protects" in card
    found = type_in("attack", run, "--attack", "averaging-labels", "--json").json
    assert found["results"]["lpgnn"]["epsilon"] == 2.0
    assert set(found["results"]) == {"lpgnn"} and found["picture"].endswith("attack-averaging-labels.png")


def test_attacks_on_runs_are_refused(type_in: Terminal, run: Path) -> None:
    assert NAMES.replace("; on a federation:", ",").split(", ") == [*ATTACKS, *FEDERATION_ATTACKS]
    unnamed = type_in("attack", run)
    assert unnamed.code == 2 and "--attack: no attack is named; allowed: linkteller, " in unnamed.err
    for words, said in (
        ((run, "--attack", "guess"), "not known"),
        ((run, "--attack", "label-inference"), "on a federation"),
        ((run / "no", "--attack", "linkteller"), "no run"),
        ((run, "--attack", "membership", "--truth", "nowhere"), "nowhere"),
        ((run, "--attack", "link-stealing-shadow"), "--shadow"),
        ((run, "--attack", "link-stealing", "--shadow", "social-200"), "is for the attack link-stealing-shadow"),
    ):
        answer = type_in("attack", *words)
        assert answer.code == 2 and said in answer.err
    (run / "attack-x.json").write_text('{"a": 1}')
    with pytest.raises(ModelFileError, match="damaged"):
        kept(run)


# ---- the cards of a run tell of attacks as soon as they were run, and `graphveil report` writes them anew ----


CARDS = ("card.md", "card.html")


def cards(run: Path) -> list[str]:
    return [(run / name).read_text() for name in CARDS]


@pytest.mark.slow  # whole commands
def test_report_writes_the_cards_anew_from_what_the_folder_holds(type_in: Terminal, run: Path) -> None:
    fresh = cards(run)
    type_in("attack", run, "--attack", "averaging-labels")
    told = cards(run)
    assert all("the ledger refuses to pay for a second" in card and "MORE THAN" not in card for card in told)
    for name in CARDS:
        (run / name).unlink()
    assert type_in("report", run, "--json").json["card"] == str(run / "card.md")
    assert cards(run) == told
    # What was edited or damaged is named, and nothing is written.
    file = run / "attack-averaging-labels.json"
    content = json.loads(file.read_text())
    content["lpgnn"]["auc"]["mean"] = 0.5
    for forged in (content, {name: value for name, value in content.items() if name != "sha256"}):
        file.write_text(json.dumps(forged))
        answer = type_in("report", run)
        assert (answer.code, "was changed since it was written" in answer.err) == (2, True)
    file.write_text("[1]")
    answer = type_in("report", run)
    assert (answer.code, "averaging-labels.json: damaged attack" in answer.err) == (2, True)
    assert cards(run) == told
    file.unlink()
    assert type_in("report", run).code == 0
    assert cards(run) != told
    assert all("None was run." in card for card in (*fresh, *cards(run)))


# ---- graphveil attack`` on a federation ----


QUICK = ("--set", "epochs=4", "--set", "hops=2", "--set", "width=16")


@pytest.fixture(scope="session")
def federated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `run` and `parts` of two holders in the default mode."""
    folder = tmp_path_factory.mktemp("federation")
    assert (
        main(["federation", "split", "social-200", "--out", str(folder / "parts"), "--proportion", "3:2", "--json"])
        == 0
    )
    words = ["--from", str(folder / "parts"), "--out", str(folder / "run"), "--epsilon", "8", *QUICK, "--json"]
    assert main(["federation", "init", *words]) == 0
    return folder


@pytest.fixture
def copy(federated: Path, tmp_path: Path) -> Path:
    """The same, to which attacks may add."""
    return Path(shutil.copytree(federated, tmp_path / "federated"))


def test_refusals(type_in: Terminal, copy: Path) -> None:
    run, parts = copy / "run", copy / "parts"
    other = copy / "other"
    shutil.copytree(parts / "holder2", other / "holder1")
    shutil.copytree(parts / "holder2", other / "holder2")
    for words, said in (
        (("--attack", "linkteller", "--truth", parts), "does not apply to a federation"),
        (("--attack", "guess", "--truth", parts), ", ".join(FEDERATION_ATTACKS)),
        (("--attack", "gram"), "--truth"),
        (("--attack", "lattice", "--truth", parts), "takes hours"),
        (("--attack", "gram", "--truth", copy / "nowhere"), "no data of holder1"),
        (("--attack", "gram", "--truth", other), "as agreed"),
    ):
        answer = type_in("attack", run, *words)
        assert (answer.code, answer.out) == (2, "")
        assert answer.err.count("\n") == 1 and said in answer.err, answer.err
    assert not kept(run)
    assert is_federation(run) and is_federation(run / "server")
    assert not is_federation(parts) and not is_federation(copy / "nowhere")
