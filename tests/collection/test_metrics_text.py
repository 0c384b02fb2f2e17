"""What a Prometheus reads of a collector: its text form, and no more than counts."""

from __future__ import annotations

import re
from pathlib import Path

from graphveil.collection.answers import STATUS
from graphveil.collection.metrics import escaped, exposition
from graphveil.collection.service import Collector
from tests.collection.collections import PEOPLE, begun, token, url_of
from tests.collection.test_service import asked, served
from tests.pages import page

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
_SAMPLE = re.compile(rf"({_NAME})(?:\{{({_LABEL}(?:,{_LABEL})*)?\}})? (-?\d+(?:\.\d+)?)")


def read(text: str) -> dict[tuple[str, str], float]:
    """Samples by name and labels; raises where a line is none of the format, or a sample has no TYPE before it."""
    kinds: dict[str, str] = {}
    found: dict[tuple[str, str], float] = {}
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("#"):
            word, name, rest = re.fullmatch(rf"# (HELP|TYPE) ({_NAME}) (.+)", line).groups()  # type: ignore[union-attr]
            if word == "TYPE":
                assert rest in ("gauge", "counter") and name not in kinds
                kinds[name] = rest
            continue
        sample = _SAMPLE.fullmatch(line)
        assert sample is not None, line
        name, labels, value = sample.groups()
        assert kinds[name] == ("counter" if name.endswith("_total") else "gauge")
        assert (name, labels or "") not in found
        found[name, labels or ""] = float(value)
    return found


def test_a_server_tells_counts_in_the_text_form(tmp_path: Path) -> None:
    running = begun(url_of(tmp_path), enrolled=3)
    with served(Collector(running.store)) as url:
        asked(f"{url}/reports", running.report(0, {"label": "sad"}).to_bytes())
        asked(f"{url}/reports", running.report(1, {}).to_bytes()[:-1] + b"\0")
        status, body, headers = asked(f"{url}/metrics")
    assert status == 200 and headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    told = read(body.decode())
    assert told == {
        ("graphveil_people", ""): PEOPLE,
        ("graphveil_enrolled", ""): 3,
        ("graphveil_epoch", ""): 1,
        ("graphveil_open", ""): 1,
        ("graphveil_received", ""): 1,
        ("graphveil_refused_total", 'code="bad-tag"'): 1,
    }
    # Nobody is named: neither by id, token or key, nor by the task's words.
    secrets = ["person", "127.0.0.1", running.task.name, running.task.hash.hex(), token(0).hex()]
    secrets += [one.key.hex() for one in running.devices]
    assert not [one for one in secrets if one in body.decode()]
    for name, _ in told:
        assert f"`{name}" in page("organise-collections"), name


def test_every_code_can_be_a_label() -> None:
    counts = {code: place for place, code in enumerate(STATUS)}
    status = {"people": 1, "enrolled": 0, "epoch": 0, "open": False, "received": 0, "refused": counts}
    told = read(exposition(status))
    assert {labels[6:-1]: value for (name, labels), value in told.items() if name.endswith("_total")} == counts
    for text in ('a"b', "a\\b", "a\nb", '\\"\n'):
        sample = _SAMPLE.fullmatch(f'name{{code="{escaped(text)}"}} 1')
        assert sample is not None and "\n" not in sample[0]
        assert re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], sample[2][6:-1]) == text
