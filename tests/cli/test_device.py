"""`graphveil device` and `python -m graphveil.device`: one device, that takes the same words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphveil.device.__main__ import main
from tests.cli.conftest import Terminal
from tests.on_device.pretended import TOKEN, Pretended, pretended
from tests.on_device.signing import label, task_of

TASK = task_of(label())
HASH = TASK.hash.hex()


@pytest.fixture
def enrolled(type_in: Terminal, tmp_path: Path) -> Iterator[Pretended]:
    (tmp_path / "mine.json").write_text('{"label": "sad"}')
    (tmp_path / "-mine.json").write_text('{"label": "sad"}')
    with pretended(TASK) as collector:
        assert type_in("device", "enrol", collector.url, TOKEN, "--task", HASH, "--folder", "mine").code == 0
        yield collector


@pytest.mark.parametrize(
    "words",
    [
        "--folder elsewhere show --folder mine",
        f"show {HASH} mine.json --folder mine",
        f"show --task {HASH[:8]} --folder mine mine.json",
        "show --folder mine -- -mine.json",
        "spent --folder mine",
    ],
)
def test_both_take_the_same_words(
    words: str, enrolled: Pretended, type_in: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = type_in("device", *words.split())
    assert whole.code == 0, whole.err
    assert main(words.split()) == 0
    assert capsys.readouterr().out == whole.out
    assert ("and say, now and ever after" in whole.out) == ("mine.json" in words)


def test_both_send_the_same_report_and_refuse_the_same_words(
    enrolled: Pretended, type_in: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("answer", HASH, "mine.json", "--folder", "mine")
    assert type_in("device", *words).out.endswith("\nsent\n")
    assert main(list(words)) == 0 and "nothing new was sent" in capsys.readouterr().out
    assert len(set(enrolled.reports)) == 1
    for wrong, message in (
        ("answer --folder mine", "command: the file of what you answer is missing. "),
        (f"show {HASH} mine.json --task {HASH} --folder mine", "name a task each"),
        ("show 00 mine.json --folder mine", "enrolment: no single task of this device begins with 00. "),
    ):
        whole = type_in("device", *wrong.split())
        assert whole.code == 2 and message in whole.err and whole.err.count("\n") == 1
        assert main(wrong.split()) == 2 and capsys.readouterr().err == whole.err
