"""The command as a process: start-up, streams, signals, and others beside it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer.testing

from graphveil.cli.app import build
from graphveil.graphs import social_graph, write_folder
from tests.cli.conftest import Terminal
from tests.graphs.made import NODES, TOML, folder

#: Seconds after which what never ends is given up; no test that passes waits as long, on a machine of any speed.
FOREVER = 600.0
#: Signals as at a terminal: under nohup, or in a shell's background, tests inherit that some are ignored.
START = """
import signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
from graphveil.cli import main
sys.exit(main())
"""


def start(*words: str, cwd: Path, encoding: str = "utf-8") -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "80", "PYTHONIOENCODING": encoding}
    return subprocess.Popen(
        [sys.executable, "-c", START, *words],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_every_help_names_the_exit_codes() -> None:
    for command in ([], ["train"], ["plan"], ["predict"], ["compare"], ["report"], ["data"]):
        done = typer.testing.CliRunner().invoke(build(), [*command, "--help"], env={"COLUMNS": "80"})
        assert done.exit_code == 0 and "Usage: " in done.output and "[[" not in done.output
        assert "130" in done.output or command == ["data"]
        assert command != ["predict"] or "recognized by their ids and not" in done.output  # wrapped to the terminal
    version = typer.testing.CliRunner().invoke(build(), ["--version"])
    assert version.output.startswith("graphveil ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "number"),
    [("lpgnn", signal.SIGINT), ("lpgnn", signal.SIGTERM), ("lpgnn", signal.SIGHUP), ("solitude", signal.SIGINT)],
)
def test_an_interrupt_leaves_nothing(tmp_path: Path, method: str, number: signal.Signals) -> None:
    words = ("--epsilon-y", "1", "--epsilon-x", "1", *(("--epsilon-a", "8") if method == "solitude" else ()))
    with start("train", method, "digits", *words, "--epochs", "100000", "--out", "run", cwd=tmp_path) as process:
        assert process.stderr is not None
        assert f"{method} 1/1" in process.stderr.readline()
        process.send_signal(number)
        out, err = process.communicate(timeout=FOREVER)
    assert process.returncode == 130
    assert out == ""
    assert err.splitlines()[-1].startswith("interrupted; no partial files remain, nothing was released")
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_goes_away_is_no_fault(tmp_path: Path) -> None:
    with start("data", "describe", "digits", "--json", cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        complaints = process.stderr.read()
    assert "internal error" not in complaints
    assert "Traceback" not in complaints


def test_streams_that_are_closed_or_full_end_no_command_in_silence(tmp_path: Path) -> None:
    words = [sys.executable, "-c", START, "data", "describe", "digits"]
    closed = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *words], cwd=tmp_path, timeout=FOREVER)
    assert closed.returncode == 0
    with Path("/dev/full").open("wb", buffering=0) as full:
        lost = subprocess.run(words, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, timeout=FOREVER)
        # Of the log alone: the answer is there, also where the terminal says that it has no columns.
        unread = subprocess.run(
            words,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=full,
            env={**os.environ, "COLUMNS": "0"},
            timeout=FOREVER,
        )
    assert lost.returncode == 2 and lost.stderr.startswith("error: stdout: cannot be written (No space left on device)")
    assert unread.returncode == 0 and b"1,797" in unread.stdout


@pytest.mark.slow
def test_a_terminal_of_another_alphabet_shows_question_marks(tmp_path: Path) -> None:
    toml = TOML.replace("cat", "\u56fe")
    place = folder(tmp_path / "d\u00e4ten", graph__toml=toml, nodes__csv=NODES.replace("cat", "\u56fe"))
    with start("data", "describe", place.name, cwd=tmp_path, encoding="ascii") as process:
        out, err = process.communicate(timeout=FOREVER)
    assert process.returncode == 0, err
    assert "? 1, dog 1" in out


# ---- commands at once, and output that is taken while one computes: nothing is lost, and nobody pays twice ----


class Intruder:
    """Makes a folder as soon as a graph is read, once armed."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        sys.addaudithook(self._see)  # never removed, but silent unless armed

    def _see(self, event: str, args: tuple[object, ...]) -> None:
        if self.folder is not None and event == "open" and str(args[0]).endswith("graph.toml"):
            folder, self.folder = self.folder, None
            folder.mkdir()
            (folder / "theirs").touch()


@pytest.fixture(scope="module")
def intruder() -> Intruder:
    return Intruder()


@pytest.mark.parametrize(
    "words",
    [
        ("train", "lpgnn", "town", "--epochs", 1, "--no-controls", "--out"),
        ("tune", "lpgnn", "town", "--over", "hidden=2,4", "--epochs", 1, "--no-controls", "--out"),
        ("release", "edge-rand", "town", "--epsilon-a", 4, "--without-lift", "--out"),
    ],
)
def test_what_is_paid_for_while_its_folder_is_taken_lands_beside_it(
    type_in: Terminal, tmp_path: Path, intruder: Intruder, words: tuple[str, ...]
) -> None:
    write_folder(social_graph(100, seed=1), "town")
    intruder.folder = tmp_path / "out"
    done = type_in(*words, "out", "--json").good
    assert "out-2" in (done.json.get("run"), done.json.get("folder")) and done.json["ledger"]["spends"]
    (message,) = [line for line in done.err.splitlines() if line.endswith(": written to out-2 instead")]
    assert message.startswith(("warning: out is not empty", "warning: out: exists already"))
    assert type_in("report", "out-2").code == 0
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["theirs"]


@pytest.mark.slow  # processes: what one of them asks people, the other one has to know
def test_two_predictions_at_once_ask_new_people_once(type_in: Terminal, tmp_path: Path) -> None:
    settings = ("--epsilon-x", 1, "--epsilon-y", 1, "--epochs", 2, "--no-controls")
    assert type_in("train", "lpgnn", "social-100", *settings, "--out", "run").code == 0
    words = ("predict", "run", "social-200", "--people", "other", "--json")
    runs = [start(*words, cwd=tmp_path) for _ in range(2)]
    answers = [run.communicate(timeout=FOREVER) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], answers
    first, second = (json.loads(out)["predictions"] for out, _ in answers)
    assert first == second  # of the same reports, which the run keeps


# ---- which libraries a command never loads ----


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
    "train --help",
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
    "data describe wrong",
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
    "data describe own --json",
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


# More than 2 CPU seconds: a new process, and what it imports, is what is looked at.
def test_help_refusals_and_plans_load_nothing_heavy(tmp_path: Path) -> None:
    folder(tmp_path / "own")
    folder(tmp_path / "wrong", nodes__csv="id,age\na,11\n")
    expected = [(words, 2 * (words in REFUSED), []) for words in (*ONLY_SAYS, *REFUSED, *PLANNED)]
    assert loads([*ONLY_SAYS, *REFUSED, *PLANNED], tmp_path) == expected


@pytest.mark.slow  # a process of its own, with the accountant
def test_advice_and_plans_of_private_training_load_the_accountant_alone(tmp_path: Path) -> None:
    expected = [(words, ADVISED.get(words, 0), []) for words in (*ACCOUNTED, *ADVISED)]
    assert loads([*ACCOUNTED, *ADVISED], tmp_path, HEAVY - ACCOUNTING) == expected


@pytest.mark.slow  # a process of its own, which trains
def test_no_command_on_a_graph_loads_pyg(tmp_path: Path) -> None:
    commands = [
        "release heterorr social-100 --epsilon-x 1 --epsilon-a 1 --out made",
        "federation split social-100 --out parts",
        "train solitude social-100 --epsilon-a 8 --epochs 1 --no-controls --out run",
    ]
    assert loads(commands, tmp_path, {"torch_geometric"}) == [(words, 0, []) for words in commands]
