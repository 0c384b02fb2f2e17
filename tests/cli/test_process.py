"""The command as a process: start-up, streams, signals."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer.testing

from graphveil.cli.app import build

#: Seconds after which what never ends is given up; no test that passes waits as long, on a machine of any speed.
FOREVER = 600.0
START = "import sys; from graphveil.cli import main; sys.exit(main())"


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


@pytest.mark.parametrize("command", [[], ["train"], ["plan"], ["predict"], ["compare"], ["report"], ["data"]])
def test_every_help_names_the_exit_codes(command: list[str]) -> None:
    done = typer.testing.CliRunner().invoke(build(), [*command, "--help"])
    assert done.exit_code == 0
    assert "130" in done.output or command == ["data"]
    assert "Usage: " in done.output
    assert "[[" not in done.output


def test_help_wraps_its_paragraphs_to_the_terminal() -> None:
    done = typer.testing.CliRunner().invoke(build(), ["predict", "--help"], env={"COLUMNS": "80"})
    assert "recognized by their ids and not" in done.output


def test_help_is_quick_and_loads_nothing_heavy(tmp_path: Path) -> None:
    heavy = "{'torch', 'torch_geometric', 'matplotlib', 'polars', 'numpy', 'jinja2', 'sklearn'}"
    code = f"import sys; from graphveil.cli import main; main(['train', '--help']); print({heavy} & set(sys.modules))"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.stdout.splitlines()[-1] == "set()"
    # CPU seconds, so that a busy machine does not fail the test.
    assert after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime < 1


def test_version(tmp_path: Path) -> None:
    with start("--version", cwd=tmp_path) as process:
        out, err = process.communicate(timeout=FOREVER)
    assert out.startswith("graphveil ")
    assert err == ""


@pytest.mark.slow
def test_stdout_is_one_object_and_nothing_else(tmp_path: Path) -> None:
    with start("train", "lpgnn", "digits", "--epochs", "2", "--no-controls", "--json", cwd=tmp_path) as process:
        out, err = process.communicate(timeout=FOREVER)
    assert process.returncode == 0, err
    assert json.loads(out)["data"] == "digits"
    assert out.count("\n") == 1
    assert "Warning" not in err


@pytest.mark.slow
@pytest.mark.parametrize("method", ["lpgnn", "solitude"])
def test_an_interrupt_leaves_nothing(tmp_path: Path, method: str) -> None:
    words = ("--epsilon-y", "1", "--epsilon-x", "1", *(("--epsilon-a", "8") if method == "solitude" else ()))
    with start("train", method, "digits", *words, "--epochs", "100000", "--out", "run", cwd=tmp_path) as process:
        assert process.stderr is not None
        assert f"{method} 1/1" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=FOREVER)
    assert process.returncode == 130
    assert out == ""
    assert err.splitlines()[-1] == "interrupted; no partial files remain"
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_goes_away_is_no_fault(tmp_path: Path) -> None:
    with start("data", "describe", "digits", "--json", cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        complaints = process.stderr.read()
    assert "internal error" not in complaints
    assert "Traceback" not in complaints


@pytest.mark.slow
def test_a_terminal_of_another_alphabet_shows_question_marks(tmp_path: Path) -> None:
    folder = tmp_path / "d\u00e4ten"
    folder.mkdir()
    toml = 'private = ["labels"]\nrange = [0, 1]\nclasses = ["\u56fe", "b"]\ndirected = false\n'
    (folder / "graph.toml").write_text(toml, "utf-8")
    (folder / "nodes.csv").write_text("id,f,label\n1,0,\u56fe\n2,1,b\n", "utf-8")
    (folder / "edges.csv").write_text("source,target\n1,2\n")
    with start("data", "describe", folder.name, cwd=tmp_path, encoding="ascii") as process:
        out, err = process.communicate(timeout=FOREVER)
    assert process.returncode == 0, err
    assert "? 1, b 1" in out
