"""Which libraries a command never loads: what makes it quick, without timing it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.graphs.made import folder

ACCOUNTING = {"dp_accounting", "scipy.stats"}
HEAVY = {
    "torch",
    "fastapi",
    "sqlalchemy",
    "uvicorn",
    "torch_geometric",
    "sklearn",
    "pandas",
    "numba",
    "matplotlib",
    *ACCOUNTING,
}


def loaded(*words: str, code: int = 0) -> set[str]:
    """The heavy libraries that a command of its own process has loaded when it ends, with this exit code."""
    script = (
        "import json, sys; from graphveil.cli import main; code = main(sys.argv[1:]); "
        "sys.stderr.write('\\n' + json.dumps([code, *sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=True)
    *said, last = done.stderr.splitlines()
    ended, *modules = json.loads(last)
    assert ended == code, said
    return HEAVY & set(modules)


@pytest.mark.parametrize(
    "words",
    ["--help", "plan --help", "collect --help", "collect serve --help", "mechanisms list", "explain", "reproduce list"],
)
def test_what_only_tells_loads_nothing_heavy(words: str) -> None:
    assert loaded(*words.split()) == set()


def test_an_export_is_read_without_a_database() -> None:
    """A folder is all there is; devices and collectors elsewhere have the rest."""
    script = (
        "import sys; from graphveil.collection import learning, moved, reports, suspects; "
        "from graphveil.collection.export import read_export; print('sqlalchemy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    "words",
    [
        "train lpgnn digits --nonsense",
        "train lpgnn digits --epsilon-x -1",
        "train gap digits --epsilon -1",
        "train link-beliefs digits --epsilon-a -1",
        "release heterorr digits --epsilon-x -1 --out nowhere",
        "plan lpgnn no-such-graph --epsilon 1",
        "reproduce lpgnn-table33",
        "reproduce lpgnn-figure1",
    ],
)
def test_a_refusal_loads_nothing_heavy(words: str) -> None:
    assert loaded(*words.split(), code=2) == set()


@pytest.mark.parametrize(
    "words",
    [
        "lpgnn digits --epsilon 1",
        "lpgnn digits --epsilon-x 1 --epsilon-y 1",
        "solitude digits --epsilon-a 1 --epsilon-x 1",
        "link-beliefs digits --epsilon-a 1",
        "heterorr digits --epsilon-x 1 --epsilon-a 1",
        "edge-rr social-100 --epsilon-a 1",
        "gcn digits",
        "gap digits --epsilon 1",
        "progap social-1000 --epsilon 1 --unit directed-edge",
        "class-sums digits --epsilon 1",
        "gcon digits --epsilon 1",
        "node-sums digits --epsilon inf",
    ],
)
def test_a_plan_loads_nothing_heavy(words: str) -> None:
    assert loaded("plan", *words.split(), "--json") == set()


@pytest.mark.parametrize(
    "method", ["dp-mlp", "node-sums", "gap --unit node", "gap --set weights=attention --set hops=1"]
)
def test_a_plan_of_private_training_loads_the_accountant_alone(method: str) -> None:
    assert loaded("plan", *method.split(), "digits", "--epsilon", "4", "--json") <= ACCOUNTING


def test_a_collection_is_drafted_without_a_server(tmp_path: Path) -> None:
    new = str(tmp_path / "new")
    assert loaded("collect", "init", "social-100", "-o", new, "--epsilon-x", "1", "--epsilon-y", "1") == set()
    assert loaded("device", "answer", "abc", "mine.json", "--folder", new, code=2) == set()


def test_a_folder_is_described_and_planned_without_torch(tmp_path: Path) -> None:
    own = str(folder(tmp_path / "own"))
    assert loaded("data", "describe", own) == set()
    assert loaded("plan", "lpgnn", own, "--epsilon", "1", "--json") == set()


@pytest.mark.parametrize(
    "words",
    [
        "release heterorr social-100 --epsilon-x 1 --epsilon-a 1 --out made",
        "federation split social-100 --out made",
        "train solitude social-100 --epsilon-a 8 --epochs 1 --no-controls --out made",
    ],
)
def test_no_command_on_a_graph_loads_pyg(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "torch_geometric" not in loaded(*words.split())
