"""What `make test` says at its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.account import account


def test_steps_are_summed_and_the_ten_slowest_tests_listed() -> None:
    tests = "".join(f"test a.py::t{number}\t0.00\t{number}.00\n" for number in range(12))
    lines = account("lint\t1.00\t2.00\nlint\t2.00\t3.00\n" + tests + "tests\t60.00\t110.00\n").splitlines()
    assert lines[0].split() == ["lint", "3", "s", "5", "CPU", "s"]
    assert lines[2].split() == ["in", "all", "63", "s", "115", "CPU", "s"]
    assert lines[3] == "12 tests; the slowest:"
    assert [line.split()[-1] for line in lines[4:]] == [f"a.py::t{number}" for number in range(11, 1, -1)]


def test_a_step_is_noted_and_its_exit_code_kept(tmp_path: Path) -> None:
    script, env = Path(__file__).parent / "account.py", {"ACCOUNT": str(tmp_path / "account.tsv")}
    command = [sys.executable, "-c", "sum(range(10**6)); raise SystemExit(7)"]
    done = subprocess.run([sys.executable, script, "types", *command], env=env, check=False)
    assert done.returncode == 7
    printed = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, check=True).stdout
    assert printed.startswith("types ") and not (tmp_path / "account.tsv").exists()
