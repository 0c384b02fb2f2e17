"""A device that asks whether a round is open before it books anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphveil.device.__main__ import main
from tests.on_device.pretended import TOKEN, Pretended, pretended
from tests.on_device.signing import label, task_of

TASK = task_of(label())


def answer(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """What answering says: code, output, error."""
    (mine := folder / "mine.json").write_text('{"label": "sad"}')
    code = main(["--folder", str(folder / "device"), "answer", str(mine)])
    told = capsys.readouterr()
    return code, told.out, told.err


def enrolled(collector: Pretended, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("enrol", collector.url, TOKEN, "--task", TASK.hash.hex())
    assert main(["--folder", str(folder / "device"), *words]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (
            b'{"epoch":1,"open":false,"until":null}',
            "closed: the round, or the whole collection, has closed: round 1 takes no reports now",
        ),
        (b'{"epoch":0,"open":false,"until":null}', "no-opening: no round has opened yet"),
        (b'{"epoch":1}', "collector: the collector's answer is none of the standard"),
        (b'{"epoch":1,"open":0}', "collector: the collector's answer is none of the standard"),
        (b"nothing", "collector: the collector's answer is none of the standard"),
    ],
)
def test_nothing_is_booked_for_a_round_that_is_not_open(
    told: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pretended(TASK) as collector:
        enrolled(collector, tmp_path, capsys)
        collector.says["/epoch"] = (200, told)
        code, out, error = answer(tmp_path, capsys)
        assert (code, out) == (2, "") and error.startswith(said) and error.count("\n") == 1
        assert "Nothing was booked or sent this time." in error
        assert collector.reports == []
        main(["--folder", str(tmp_path / "device"), "spent"])
        assert capsys.readouterr().out.startswith("epsilon 0 is spent")


def test_a_report_that_is_booked_is_sent_whatever_the_collector_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its acknowledgement may have been lost; and collectors need not say whether a round is open."""
    with pretended(TASK) as collector:
        enrolled(collector, tmp_path, capsys)
        collector.says["/epoch"] = (404, b"{}")
        assert answer(tmp_path, capsys)[0] == 0
        collector.says["/epoch"] = (200, b'{"epoch":1,"open":false,"until":null}')
        assert "had it already" in answer(tmp_path, capsys)[1]
        collector.says["/epoch"] = (200, b'{"epoch":1,"open":true,"until":9}')
        assert "had it already" in answer(tmp_path, capsys)[1]
        assert len(set(collector.reports)) == 1 and len(collector.reports) == 3
