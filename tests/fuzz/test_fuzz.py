"""A thousand inputs to every reader of files and every command that takes one; `make fuzz` runs any number."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import harness, targets

pytestmark = pytest.mark.slow
NAMES = (
    *("own csv", "own sparse", "own parquet", "undeclared", "sources", "release", "run"),
    *("model lpgnn", "model label-pool", "model class-sums", "model solitude", "model blink", "model dprr"),
    *("model link-beliefs", "model label-propagation", "model gap", "model progap", "model dp-mlp", "model heterorr"),
    *("ledger beside", "set npz rows", "set musae", "set saint", "set university"),
    *("rounds", "transcript", "trial log", "comparison", "attacked run"),
    *("party", "split", "certificates", "numbers"),
)
INPUTS = 1_000
SEED = 20_000


@pytest.fixture(scope="module")
def every_target(tmp_path_factory: pytest.TempPathFactory) -> dict[str, targets.Target]:
    return {target.name: target for target in targets.targets(tmp_path_factory.mktemp("fuzz") / "valid")}


def test_every_target_is_run(every_target: dict[str, targets.Target]) -> None:
    assert tuple(every_target) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_no_input_is_a_fault_a_traceback_or_nonsense(
    every_target: dict[str, targets.Target], tmp_path: Path, name: str
) -> None:
    each = -(-INPUTS // len(NAMES))
    result = harness.fuzz([every_target[name]], each, SEED + each * NAMES.index(name), tmp_path / "work" / "one")
    assert result.failures == []
    assert result.inputs == each
    assert result.accepted < result.inputs  # something was wrong with some of them


@pytest.mark.parametrize("name", [name for name in NAMES if name != "numbers"])
def test_an_unchanged_input_is_accepted(every_target: dict[str, targets.Target], tmp_path: Path, name: str) -> None:
    """Otherwise nothing would be fuzzed but one refusal."""
    target = every_target[name]
    same = targets.Target(
        name,
        target.folder,
        target.files,
        lambda copy, rng: [next(iter(target.commands(copy, rng)))],
        lambda content, name, rng: content,
        target.accepted,
    )
    result = harness.fuzz([same], 1, 0, tmp_path / "work" / "one")
    assert (result.accepted, result.failures) == (1, [])


#: Exit code, stdout and stderr of answers that are wrong, and what the judge says of them.
WRONG = {
    "exit code 1": (1, "", "internal error: KeyError\n"),
    "traceback": (0, "", "Traceback (most recent call last):\n"),
    "not one line": (2, "", "error: one\nerror: two\n"),
    "not one line: 'error: one": (2, "done\n", "error: one\n"),
    "not one line: 'a warning": (2, "", "a warning\n"),
    "20001 characters": (0, "", "x" * 20_001),
    "control character '\\x1b'": (0, "\x1b[2J", ""),
}


@pytest.mark.parametrize("complaint", WRONG)
def test_wrong_answers_are_named(complaint: str, tmp_path: Path) -> None:
    wrong = harness.judge(*WRONG[complaint], tmp_path)
    assert wrong is not None and wrong.startswith(complaint)


def test_a_refusal_of_one_line_is_right_and_what_it_leaves_half_written_is_not(tmp_path: Path) -> None:
    assert harness.judge(2, "", "a warning\nerror: one\n", tmp_path) is None
    (tmp_path / ".x.partial-1").write_text("")
    assert harness.judge(2, "", "error: one\n", tmp_path) == "left ['.x.partial-1']"


def test_a_reader_that_loses_a_row_is_found(
    every_target: dict[str, targets.Target], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it accepts is no longer what it says; inputs that failed are kept."""
    from graphveil.graphs.tables import tabular

    original = tabular.merge_edges

    def fewer(source, target, nodes, *, directed):  # type: ignore[no-untyped-def]
        return original(source[:-1], target[:-1], nodes, directed=directed)

    monkeypatch.setattr(tabular, "merge_edges", fewer)
    monkeypatch.setattr(tabular, "public_columns", lambda *_, **__: None)
    result = harness.fuzz([every_target["own csv"]], 40, 0, tmp_path / "work" / "one", keep=tmp_path / "kept")
    assert "own csv, seed" in result.failures[0]
    assert len(list((tmp_path / "kept").iterdir())) == len(result.failures)
