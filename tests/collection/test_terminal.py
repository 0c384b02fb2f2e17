"""A person at a terminal and a real collector: the report that is shown is booked, taken and counted once."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from graphveil.collection.answers import LATER, STATUS
from graphveil.collection.service import Collector
from graphveil.collection.store import Store
from graphveil.collection.tables import opened
from graphveil.device.__main__ import main
from graphveil.device.people import ids_hash
from graphveil.device.task import OPENING
from tests.collection.collections import PEOPLE, token, url_of
from tests.collection.test_service import served
from tests.on_device.signing import degree, features, label, links, signed, task_of
from tests.pages import page

IDS = [f"person {number}" for number in range(PEOPLE)]


def test_from_a_token_to_a_report_that_counts_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = task_of(label(), features(), links(PEOPLE), degree(PEOPLE), people=PEOPLE, ids=ids_hash(IDS))
    store = Store(opened(url_of(tmp_path)))
    store.begin(task, ((one, token(number)) for number, one in enumerate(IDS)))
    data = tmp_path / "mine.json"
    data.write_text(json.dumps({"label": "sad", "features": [0.5] * 6, "links": [5, 11]}))

    def run(folder: str, *words: object) -> tuple[int, str]:
        code = main(["--folder", str(tmp_path / folder), *map(str, words)])
        told = capsys.readouterr()
        return code, told.out + told.err

    with served(Collector(store)) as url:
        enrol = ("enrol", url, token(3).hex(), "--task", task.hash.hex(), "--as", IDS[3])
        assert run("device", *enrol)[0] == 0
        assert run("device", "answer", data)[1].startswith("no-opening: no round has opened yet. ")
        nonce = bytes(range(16))
        store.open_epoch(nonce)
        store.keep("opening", signed("opening", OPENING, {"task": task.hash.hex(), "nonces": [nonce.hex()]}))
        assert run("device", "answer", data)[1].endswith("\nsent\n")
        assert run("device", "answer", data)[1].endswith("nothing new was sent\n")
        # The token is spent: whoever finds it, this person on another device too, is nobody to the collector.
        assert run("other", *enrol)[1].startswith("bad-token: this token enrols nobody here. ")
        # Who enrols now is asked from the next epoch on.
        late = ("enrol", url, token(4).hex(), "--task", task.hash.hex(), "--as", IDS[4])
        assert "from epoch 2 on" in run("late", *late)[1]
        assert run("late", "answer", data)[1].startswith("not-open: ")
    assert store.status()["received"] == 1


def test_the_standard_tells_of_every_answer() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (\d+) \|", page("wire"), re.MULTILINE)
    assert {code: int(status) for code, status in rows} == dict(STATUS)
    later = page("wire").rpartition("After ")[2]
    assert set(re.findall(r"`([a-z-]+)`", later)) == set(LATER)
