"""A thousand inputs to every reader of files and every command that takes one; `make fuzz` runs any number."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from tests.fuzz import harness, targets
from tests.fuzz.mutate import mutate

pytestmark = pytest.mark.slow
NAMES = (
    *("own csv", "own sparse", "own parquet", "release", "run", "old run"),
    *("model lpgnn", "model label-pool", "model class-sums", "model solitude", "model blink", "model dprr"),
    *("model link-beliefs", "model label-propagation", "model gap", "model progap", "model dp-mlp", "model heterorr"),
    *("ledger beside", "set npz rows", "set npz dense", "set largest component", "set musae", "set ppi", "set saint"),
    *("set images", "set university", "set arxiv", "set reddit", "set planetoid"),
    *("rounds", "transcript", "trial log", "scores", "comparison", "settings", "attacked run", "finished party"),
    *("party", "split", "certificates", "numbers", "tables in Python"),
)
#: Pickles that are not the published ones are never opened; the others do not change a file.
REFUSED, TYPED = ("set planetoid",), ("numbers", "settings")
INPUTS = 1_000
SEED = 20_000


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, targets.Target]:
    return {one.name: one for one in targets.targets(tmp_path_factory.mktemp("fuzz") / "valid")}


def test_every_target_is_run(made: dict[str, targets.Target]) -> None:
    assert tuple(made) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_no_input_is_a_fault_a_traceback_or_nonsense(
    made: dict[str, targets.Target], tmp_path: Path, name: str
) -> None:
    each = -(-INPUTS // len(NAMES))
    found = harness.fuzz([made[name]], each, SEED + each * NAMES.index(name), tmp_path / "work" / "one")
    assert found.failures == []
    assert found.inputs == each
    assert found.accepted < found.inputs  # something was wrong with some of them


@pytest.mark.parametrize("name", [name for name in NAMES if name not in (*REFUSED, *TYPED)])
def test_an_unchanged_input_is_accepted(made: dict[str, targets.Target], tmp_path: Path, name: str) -> None:
    """Otherwise nothing would be fuzzed but one refusal."""
    target = made[name]
    same = targets.Target(
        name,
        target.folder,
        target.files,
        lambda copy, rng: [next(iter(target.commands(copy, rng)))],
        lambda content, name, rng: content,
        target.accepted,
    )
    found = harness.fuzz([same], 1, 0, tmp_path / "work" / "one")
    assert (found.accepted, found.failures) == (1, [])


def planted_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that trusts a key to be there."""
    from graphveil.graphs import declaration

    original = declaration.parse_declaration

    def parse(content: dict[str, object], where: str) -> object:
        if content.get("range") == [0, 0]:
            raise KeyError("low")
        return original(content, where)

    monkeypatch.setattr(declaration, "parse_declaration", parse)


def planted_nonsense(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that takes what is no class for an unknown one."""
    from graphveil.graphs import tabular

    original = tabular.merge_edges

    def normalise(source, target, nodes, *, directed):  # type: ignore[no-untyped-def]
        return original(source[:-1], target[:-1], nodes, directed=directed)

    monkeypatch.setattr(tabular, "merge_edges", normalise)
    monkeypatch.setattr(tabular, "public_columns", lambda *_, **__: None)


def planted_leftover(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that leaves something half-written."""
    from graphveil.graphs import declaration

    original = declaration.read_declaration

    def read(path: Path) -> object:
        (path.parent / ".x.partial-1").write_text("")
        return original(path)

    monkeypatch.setattr("graphveil.graphs.folder.read_declaration", read)


def planted_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal of two lines."""

    def complain(line: str) -> None:
        sys.stderr.write(f"{line}\nerror: 2\n")

    monkeypatch.setattr("graphveil.cli.app.complain", complain)


@pytest.mark.parametrize("plant", [planted_nonsense, planted_leftover, planted_lines])
def test_a_planted_bug_is_found(
    made: dict[str, targets.Target], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: object
) -> None:
    plant(monkeypatch)  # type: ignore[operator]
    found = harness.fuzz([made["own csv"]], 40, 0, tmp_path / "work" / "one", keep=tmp_path / "kept")
    assert found.failures
    assert len(list((tmp_path / "kept").iterdir())) == len(found.failures)
    assert "own csv, seed" in found.failures[0]


def test_a_planted_fault_is_found(
    made: dict[str, targets.Target], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted_fault(monkeypatch)
    changed = targets.Target(
        "own csv",
        made["own csv"].folder,
        ("graph.toml",),
        lambda copy, rng: [("data", "describe", copy)],
        lambda content, name, rng: content.replace(b"[0, 1]", rng.choice((b"[0, 0]", b"[0, 2]"))),
    )
    found = harness.fuzz([changed], 10, 0, tmp_path / "work" / "one")
    assert found.failures
    assert "exit code 1: internal error: KeyError" in found.failures[0]


@pytest.mark.parametrize("name", ["a.json", "a.toml", "a.csv", "a.bin"])
def test_changes_are_the_same_for_the_same_seed_and_differ_otherwise(name: str) -> None:
    content = b'{"a": [1, 2], "b": "x"}' if name == "a.json" else b"id = 1\nb = 2\n"
    one, again = (mutate(content, name, random.Random(7)) for _ in range(2))
    assert one == again
    assert len({mutate(content, name, random.Random(seed)) for seed in range(100)}) > 40
