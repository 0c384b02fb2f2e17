"""Which libraries a command never loads: what makes it quick, without timing it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

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


ONLY_SAYS = [
    "--help",
    "plan --help",
    "collect --help",
    "collect serve --help",
    "mechanisms list",
    "explain",
    "reproduce list",
    "demo --help",
]
REFUSED = [
    "train lpgnn digits --nonsense",
    "train lpgnn digits --epsilon-x -1",
    "train gap digits --epsilon -1",
    "train link-beliefs digits --epsilon-a -1",
    "release heterorr digits --epsilon-x -1 --out nowhere",
    "plan lpgnn no-such-graph --epsilon 1",
    "reproduce lpgnn-table33",
    "reproduce lpgnn-figure1",
    "device answer abc mine.json --folder new",
    "demo --seed x",
]
PLANNED = [
    "plan lpgnn digits --epsilon 1 --json",
    "plan lpgnn digits --epsilon-x 1 --epsilon-y 1 --json",
    "plan solitude digits --epsilon-a 1 --epsilon-x 1 --json",
    "plan link-beliefs digits --epsilon-a 1 --json",
    "plan heterorr digits --epsilon-x 1 --epsilon-a 1 --json",
    "plan edge-rr social-100 --epsilon-a 1 --json",
    "plan gcn digits --json",
    "plan gap digits --epsilon 1 --json",
    "plan progap social-1000 --epsilon 1 --unit directed-edge --json",
    "plan class-sums digits --epsilon 1 --json",
    "plan gcon digits --epsilon 1 --json",
    "plan node-sums digits --epsilon inf --json",
    "plan lpgnn own --epsilon 1 --json",
    "data describe own",
    "data croissant own",
    "collect init social-100 -o drafted --epsilon-x 1 --epsilon-y 1",
]
ACCOUNTED = [f"plan {method} digits --epsilon 4 --json" for method in ("dp-mlp", "node-sums", "gap --unit node")]
ACCOUNTED += ["plan gap --set weights=attention --set hops=1 digits --epsilon 4 --json"]
#: What fits a graph is advised: as a refusal where a method is missing.
TOWN = Path(__file__).parents[2] / "docs" / "examples" / "town"
ADVISED = {f"advise {TOWN}": 0, f"train {TOWN}": 2}


def loads(commands: list[str], folder: Path, heavy: set[str] = HEAVY) -> list[tuple[str, int, list[str]]]:
    """Run commands in one new process, in order: each with its exit code and the libraries it was first to load."""
    script = f"""
import json, sys
from graphveil.cli import main
before = set()
for words in {commands!r}:
    code = main(words.split())
    now = set({sorted(heavy)!r}) & set(sys.modules)
    sys.stderr.write("\\n" + json.dumps([words, code, sorted(now - before)]) + "\\n")
    before = now
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=folder)
    lines = [line for line in done.stderr.splitlines() if line.startswith('["')]
    return [tuple(json.loads(line)) for line in lines]


def test_help_refusals_and_plans_load_nothing_heavy(tmp_path: Path) -> None:
    folder(tmp_path / "own")
    expected = [(words, 2 * (words in REFUSED), []) for words in (*ONLY_SAYS, *REFUSED, *PLANNED)]
    assert loads([*ONLY_SAYS, *REFUSED, *PLANNED], tmp_path) == expected


def test_advice_and_plans_of_private_training_load_the_accountant_alone(tmp_path: Path) -> None:
    expected = [(words, ADVISED.get(words, 0), []) for words in (*ACCOUNTED, *ADVISED)]
    assert loads([*ACCOUNTED, *ADVISED], tmp_path, HEAVY - ACCOUNTING) == expected


def test_an_export_is_read_without_a_database() -> None:
    """A folder is all there is; devices and collectors elsewhere have the rest."""
    script = (
        "import sys; from graphveil.collection import learning, moved, reports, suspects; "
        "from graphveil.collection.export import read_export; print('sqlalchemy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_no_command_on_a_graph_loads_pyg(tmp_path: Path) -> None:
    commands = [
        "release heterorr social-100 --epsilon-x 1 --epsilon-a 1 --out made",
        "federation split social-100 --out parts",
        "train solitude social-100 --epsilon-a 8 --epochs 1 --no-controls --out run",
    ]
    assert loads(commands, tmp_path, {"torch_geometric"}) == [(words, 0, []) for words in commands]
