"""``graphveil attack`` on a real run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from graphveil.attacks.catalogue import ATTACKS
from graphveil.attacks.federation import FEDERATION_ATTACKS
from graphveil.cli.attack import NAMES
from graphveil.errors import ModelFileError
from graphveil.reports.attacks.files import PLAIN, kept
from tests.cli.conftest import Terminal


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy, to which attacks may add."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


def test_help_names_every_attack() -> None:
    assert NAMES.replace("; on a federation:", ",").split(", ") == [*ATTACKS, *FEDERATION_ATTACKS]


def test_an_attack_is_shown_and_kept(type_in: Terminal, run: Path) -> None:
    shown = type_in("attack", run, "--attack", "linkteller", "--nodes", "120")
    assert shown.code == 0, shown.err
    assert "lpgnn: attack linkteller" in shown.out and PLAIN in shown.out and "outside what the" in shown.out
    assert (run / "attack-linkteller.png").read_bytes().startswith(b"\x89PNG")
    found = kept(run)["linkteller"]
    assert found["lpgnn"].auc.mean == 0.5 and found[PLAIN].auc.low > 0.9


def test_json_is_one_object(type_in: Terminal, run: Path) -> None:
    found = type_in("attack", run, "--attack", "averaging-labels", "--json").json
    assert found["results"]["lpgnn"]["epsilon"] == 2.0
    assert set(found["results"]) == {"lpgnn"} and found["picture"].endswith("attack-averaging-labels.png")


def test_a_reconstruction_of_images_leaves_a_picture_of_them(type_in: Terminal, run: Path) -> None:
    shown = type_in("attack", run, "--attack", "reconstruction")
    assert shown.code == 0, shown.err
    found = kept(run)["reconstruction"]
    assert found[PLAIN].auc.mean == 1.0 and found["lpgnn"].auc.mean < 0.7
    assert found["lpgnn"].limit == pytest.approx(0.01 * 2.718, rel=1e-3)
    assert (run / "attack-reconstruction-images.png").read_bytes().startswith(b"\x89PNG")
    assert "without protection" in (run / "attack-reconstruction-images.svg").read_text("utf-8")


def test_a_graph_of_the_adversarys_own_teaches_it(type_in: Terminal, run: Path) -> None:
    words = ("--attack", "link-stealing-shadow", "--shadow", "social-200", "--nodes", "120")
    shown = type_in("attack", run, *words)
    assert shown.code == 0 and "learned on social-200" in shown.out, shown.err
    found = kept(run)["link-stealing-shadow"]
    assert found[PLAIN].auc.low > 0.7


def test_shadows_are_trained_as_the_run_was(type_in: Terminal, run: Path) -> None:
    shown = type_in("attack", run, "--attack", "lira", "--shadows", "4", "--no-plain")
    assert shown.code == 0 and "by 4 shadow models" in shown.out, shown.err


def test_refusals(type_in: Terminal, run: Path) -> None:
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
