"""``graphveil attack`` on a federation: folder and data in, figures and a picture kept, what does not fit refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from graphveil.attacks.federation import FEDERATION_ATTACKS
from graphveil.cli import main
from graphveil.reports.attacks.federation import is_federation
from graphveil.reports.attacks.files import PLAIN, kept
from tests.cli.conftest import Terminal

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


def test_an_attack_on_a_federation_is_shown_and_kept_beside_the_naive_design(type_in: Terminal, copy: Path) -> None:
    answer = type_in("attack", copy / "run", "--attack", "feature-recovery", "--truth", copy / "parts", "--nodes", 100)
    assert answer.code == 0, answer.err
    assert "shared-linear: attack feature-recovery" in answer.out and "not covered by any epsilon" in answer.out
    found = kept(copy / "run")["feature-recovery"]
    assert list(found) == ["shared-linear", PLAIN]
    assert found[PLAIN].auc.low > 0.99 and found["shared-linear"].auc.mean < 0.6
    assert (copy / "run" / "attack-feature-recovery.png").read_bytes().startswith(b"\x89PNG")


def test_a_party_folder_does_as_well_and_json_is_one_object(type_in: Terminal, copy: Path) -> None:
    words = ("--attack", "label-inference", "--truth", copy / "parts", "--nodes", 60, "--no-plain", "--json")
    found = type_in("attack", copy / "run" / "holder2", *words).json
    assert set(found["results"]) == {"shared-linear"} and found["attack"] == "label-inference"
    assert found["results"]["shared-linear"]["auc"]["mean"] > 0.5
    assert "attack-label-inference.json" in {file.name for file in (copy / "run" / "holder2").iterdir()}


def test_what_is_a_federation(federated: Path, tmp_path: Path) -> None:
    assert is_federation(federated / "run") and is_federation(federated / "run" / "server")
    assert not is_federation(federated / "parts") and not is_federation(tmp_path / "nowhere")


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
