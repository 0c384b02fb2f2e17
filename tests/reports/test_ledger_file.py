"""The ledger on disk: several processes spend from one account, and a killed one leaves its spend behind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from graphveil.errors import BudgetError, InputError, ModelFileError
from graphveil.privacy import Budget, Ledger, Spend, ledger_file
from graphveil.privacy.ledger_file import LedgerFile, read_ledger

SPENDER = """
import os, signal, sys
from pathlib import Path
from graphveil.errors import BudgetError
from graphveil.privacy import Ledger, Spend
from graphveil.privacy.ledger_file import LedgerFile, read_ledger

path, name, last = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
ledger = LedgerFile(path).open(read_ledger(path))
print("ready", flush=True)
sys.stdin.readline()
try:
    ledger = ledger.spend(Spend(name, "edges", "Gaussian", {}, 1.0))
    if last == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    print("spent", flush=True)
except BudgetError:
    print("refused", flush=True)
"""


KILLED = """
import os, signal, sys
from graphveil.cli import main
from graphveil.privacy.ledger_file import LedgerFile

settle = LedgerFile.settle

def dying(account, held, paid):
    settle(account, held, paid)
    os.kill(os.getpid(), signal.SIGKILL)

LedgerFile.settle = dying
main(["predict", *sys.argv[1:]])
"""


def start(script: str, *words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def together(processes: list[subprocess.Popen[str]]) -> list[tuple[int, str, str]]:
    """Let all of them go on once all of them have read the ledger; return exit codes and what they said."""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", process.communicate()[1]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    outputs = [process.communicate() for process in processes]
    return [(process.returncode, *words) for process, words in zip(processes, outputs, strict=True)]


def spend(name: str = "query", unit: str = "edges", epsilon: float = 1.0) -> Spend:
    return Spend(name, unit, "Gaussian", {"sigma": 2.0, "kind": "x"}, epsilon)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger file with room for two spends, one of which is made."""
    place = tmp_path / "ledger.json"
    place.write_text(json.dumps(Ledger.open({"edges": (2.0, 0.0)}).spend(spend("training")).to_dict()))
    return place


def test_of_two_processes_with_room_for_one_query_one_is_refused(path: Path) -> None:
    outcomes = together([start(SPENDER, path, name, "stay") for name in ("one", "two")])
    assert sorted(words for _, words, _ in outcomes) == ["refused\n", "spent\n"]
    assert len(read_ledger(path).spends) == 2


def test_a_killed_process_has_spent_and_holds_no_lock(path: Path) -> None:
    ((code, output, _),) = together([start(SPENDER, path, "killed", "die")])
    assert (code, output) == (-signal.SIGKILL, "")
    assert [entry.name for entry in read_ledger(path).spends] == ["training", "killed"]
    with pytest.raises(BudgetError):
        LedgerFile(path).open(read_ledger(path)).spend(spend("after"))


@pytest.mark.slow  # a kill; a spender that is killed is enough for every day
def test_a_prediction_killed_after_it_was_paid_for_has_spent_and_left_no_answer(tmp_path: Path) -> None:
    from graphveil.cli import main

    run, out = tmp_path / "run", tmp_path / "p.csv"
    words = ["gap", "social-120", "--epsilon", 1, "--delta", 1e-4, "--epochs", 1, "--set", "queries=1"]
    assert main(["train", *map(str, words), "--no-controls", "--out", str(run)]) == 0
    killed = start(KILLED, run, "social-100", "--out", out)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    assert len(json.loads((run / "ledger.json").read_text())["spends"]) == 2 and not out.exists()
    assert main(["predict", str(run), "social-100", "--out", str(out)]) == 2  # its only query is gone
    assert not out.exists() and main(["report", str(run)]) == 0


def test_a_spend_is_on_disk_when_spend_returns_and_stays_without_a_result(path: Path) -> None:
    ledger = LedgerFile(path).open(read_ledger(path))
    paid = ledger.spend(spend())
    assert read_ledger(path) == paid
    assert LedgerFile(path).open(ledger) == paid  # what a process finds that knows less


def test_trying_spends_nothing_void_stays_and_the_first_spend_makes_the_file(path: Path, tmp_path: Path) -> None:
    path.write_text(json.dumps(replace(read_ledger(path), void="seed 3").to_dict()))
    ledger = LedgerFile(path).open(read_ledger(path))
    assert len(ledger.detached().spend(spend()).spends) == 2
    assert len(read_ledger(path).spends) == 1
    ledger.spend(spend())
    assert (read_ledger(path).void, len(read_ledger(path).spends)) == ("seed 3", 2)
    place = tmp_path / "new.json"
    first = LedgerFile(place).open(Ledger.open({"edges": (2.0, 0.0)}))
    assert not place.exists()
    assert first.spend(spend()) == read_ledger(place)


def test_a_declaration_is_kept_with_its_first_spend(path: Path) -> None:
    ledger = LedgerFile(path).open(read_ledger(path)).declare("features of others", 1.0)
    assert len(read_ledger(path).budget) == 1
    paid = ledger.spend(spend(unit="features of others"))
    assert read_ledger(path) == paid
    assert LedgerFile(path).open(Ledger.open({"edges": (2.0, 0.0)}).spend(spend("training"))) == paid


def test_a_budget_may_be_raised_only_together_with_a_spend(path: Path) -> None:
    ledger = read_ledger(path)
    raised = replace(LedgerFile(path).open(ledger), budget=(Budget("edges", 3.0),))
    raised.spend(spend())
    assert LedgerFile(path).open(ledger).budget[0].epsilon == 3.0
    path.write_text(json.dumps(replace(ledger, budget=(Budget("edges", 9.0),)).to_dict()))
    with pytest.raises(ModelFileError, match="does not continue"):
        LedgerFile(path).open(ledger)


@pytest.mark.parametrize("count", [0, 1])
def test_a_ledger_that_lacks_or_changed_a_spend_is_refused(path: Path, count: int) -> None:
    ledger = read_ledger(path).spend(spend())
    path.write_text(json.dumps(replace(ledger, spends=ledger.spends[:count]).to_dict()))
    with pytest.raises(ModelFileError, match="does not continue"):
        LedgerFile(path).open(ledger)
    changed = replace(ledger, spends=(replace(ledger.spends[0], epsilon=0.5), ledger.spends[1]))
    path.write_text(json.dumps(changed.to_dict()))
    with pytest.raises(ModelFileError, match="does not continue"):
        LedgerFile(path).open(ledger)


@pytest.mark.parametrize("content", ["", "{}", '{"budget": [], "spends": []}', "[" * 5000, "\udcff"])
def test_a_damaged_ledger_is_refused_by_name(path: Path, content: str) -> None:
    ledger = read_ledger(path)
    path.write_text(content, errors="surrogateescape")
    with pytest.raises(ModelFileError, match=r"ledger\.json: damaged ledger"):
        LedgerFile(path).open(ledger)


def test_a_disk_that_refuses_spends_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = LedgerFile(path).open(read_ledger(path))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ledger_file, "write_text", full)
    with pytest.raises(InputError, match="No space left on device; nothing was read or spent"):
        ledger.spend(spend())
    assert len(read_ledger(path).spends) == 1
