"""`GET /metrics`: public counters in the text form of Prometheus, version 0.0.4.

They count and identify nobody: no id, address, token or time is among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

#: Media type of the text.
KIND = "text/plain; version=0.0.4; charset=utf-8"
_GAUGES = {
    "people": "People who may take part.",
    "enrolled": "People who have enrolled a device.",
    "epoch": "Number of the last epoch that was opened, 0 before the first.",
    "open": "Whether an epoch is open.",
    "received": "Reports of the last epoch that are stored.",
}


def exposition(status: Mapping[str, Any]) -> str:
    """Return the counters of a collection, from `Store.status`."""
    return "".join(f"{line}\n" for line in _lines(status))


def _lines(status: Mapping[str, Any]) -> Iterator[str]:
    for name, meaning in _GAUGES.items():
        yield from _head(name, "gauge", meaning)
        yield f"graphveil_{name} {int(status[name])}"
    yield from _head("refused_total", "counter", "Refused reports, enrolments, and requests that hold none, by code.")
    for code, count in sorted(status["refused"].items()):
        yield f'graphveil_refused_total{{code="{escaped(code)}"}} {count}'


def _head(name: str, kind: str, meaning: str) -> Iterator[str]:
    yield f"# HELP graphveil_{name} {meaning}"
    yield f"# TYPE graphveil_{name} {kind}"


def escaped(text: str) -> str:
    """Return a label's value, escaped to stand between quotes."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
