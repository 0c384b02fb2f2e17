"""Every mutant fits the source as it is, and the tests that must kill it exist; the mutants run by `make mutants`."""

from __future__ import annotations

import ast
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

import pytest

from tests.mutants.__main__ import Ended, outcome
from tests.mutants.catalogue import FOLDER, ROOT, Mutant, StaleMutantError, read_mutant, read_mutants
from tests.on_device.javascript import node
from tests.pages import generated

MUTANTS = read_mutants()
#: What the client in JavaScript is to those who use it, and the modules of the person's page.
SCRIPTS = ("clients/js/dist/device.js", "src/graphveil/collection/assets/")


def named(mutant: Mutant) -> str:
    return mutant.name


@pytest.mark.parametrize("mutant", MUTANTS, ids=named)
def test_a_mutant_fits_the_source_once_and_parses(mutant: Mutant) -> None:
    before = (ROOT / mutant.file).read_text(encoding="utf-8")
    after = mutant.applied(before)
    if mutant.file.startswith(SCRIPTS):
        # A module that cannot be read would fail every test and show nothing.
        done = subprocess.run([node(), "--check", "--input-type=module", "-"], input=after, text=True, check=False)
        assert after != before and done.returncode == 0
        return
    assert mutant.file.startswith("src/graphveil/")
    assert ast.dump(ast.parse(after)) != ast.dump(ast.parse(before)), "only comments or layout differ"


def test_every_file_is_a_mutant_of_its_own() -> None:
    assert len(MUTANTS) >= 47
    assert {path.suffix for path in FOLDER.glob("*/*") if path.parent.name != "__pycache__"} == {".toml"}
    changes = Counter((mutant.file, mutant.old, mutant.new) for mutant in MUTANTS)
    assert not [change for change, count in changes.items() if count > 1]


def test_the_named_tests_exist() -> None:
    nodes = sorted({node for mutant in MUTANTS for node in mutant.tests})
    words = [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider", *nodes]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_the_page_lists_every_mutant() -> None:
    table = generated("mutants")
    listed = [line.split("`")[1] for line in table.splitlines() if line.startswith("| `")]
    assert listed == [mutant.name for mutant in MUTANTS]
    assert table.startswith(f"{len(MUTANTS)} mutants.\n")


def test_a_stale_patch_is_refused() -> None:
    mutant = Mutant("room/bug", "src/graphveil/x.py", "a < b", "a <= b", "a promise", ("tests/x.py::test_x",))
    assert mutant.applied("if a < b:") == "if a <= b:"
    for text in ("if a > b:", "a < b and a < b"):
        with pytest.raises(StaleMutantError, match=r"stands [02] times"):
            mutant.applied(text)


def test_a_file_without_a_reason_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tests.mutants.catalogue.FOLDER", tmp_path)
    file = tmp_path / "bug.toml"
    file.write_text('file = "a"\nold = "b"\nnew = "c"\nbreaks = ""\ntests = ["d"]\n')
    with pytest.raises(StaleMutantError, match=r"empty: \[.breaks.\]"):
        read_mutant(file)


@pytest.mark.parametrize(
    ("code", "case", "verdict"),
    [
        (0, "", "passed"),
        (0, "<skipped/>", "not run"),
        (1, '<failure message="AssertionError: x"/>', "failed"),
        (1, '<failure message="NameError: x"/>', "crashed"),
        (1, '<error message="fixture"/>', "not run"),
        (2, None, "not run"),
        (4, None, "not run"),
    ],
)
def test_only_a_failed_test_kills(code: int, case: str | None, verdict: str) -> None:
    cases = [] if case is None else [ElementTree.fromstring(f'<testcase name="t" time="1">{case}</testcase>')]
    assert outcome(Ended(code, ""), cases).verdict.split(":")[0] == verdict
