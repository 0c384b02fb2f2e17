"""A task that asks for links of more people than a device has room for is refused in a line, before anybody joins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graphveil.collection.declare import Prices, Words, task_facts
from graphveil.device.__main__ import main
from graphveil.device.task import TASK, task_hash
from graphveil.errors import InputError
from graphveil.graphs import GraphSchema
from tests.on_device.javascript import said
from tests.on_device.pretended import TOKEN, pretended
from tests.on_device.signing import KEY, degree, facts, label, links, signed, task_of

ASKS = {"links": links(12), "degree": {**degree(12), "highest": 2**31}}


@pytest.mark.parametrize("people", [2**20 + 1, 2**40])
@pytest.mark.parametrize("kind", ASKS)
def test_a_device_takes_no_part(kind: str, people: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = facts(ASKS[kind], people=people)
    data = signed("task", TASK, told)
    with pretended(task_of(label())) as collector:
        collector.says["/task"] = (200, data)
        hash = task_hash(told, KEY.public_key().public_bytes_raw()).hex()
        words = ["--folder", str(tmp_path / "home"), "enrol", collector.url, TOKEN, "--task", hash]
        assert main(words) == 2
    told_them, error = capsys.readouterr()
    assert f"links of {people:,} people; a task that asks for links or a degree has 1,048,576 at most" in error
    assert error.startswith("bad-task: ") and error.count("\n") == 1 and "organiser" in error
    assert not told_them and not collector.enrolled
    assert said([{"op": "task", "data": data.decode()}]) == [{"error": "bad-task"}]


@pytest.mark.parametrize("prices", [{"links": "1"}, {"degree": "1"}])
def test_nobody_declares_one(prices: dict[str, Any]) -> None:
    schema = GraphSchema("town", 1, 0.0, 1.0, ("a", "b"), False, ("edges",), "x")
    words = Words(name="n", organiser="o", purpose="p", contact="c")
    with pytest.raises(InputError, match=r"links of 1,048,577 people; allowed: 1,048,576 at most"):
        task_facts(schema, [], list(map(str, range(2**20 + 1))), Prices(**prices), words, opens=0, closes=9, least=1)
