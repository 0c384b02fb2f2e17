"""A collector's answers: codes, which `graphveil explain CODE` explains, with their HTTP statuses."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

#: Of a report.
STATUS: Mapping[str, int] = MappingProxyType(
    {
        "accepted": 201,
        "again": 200,
        "conflict": 409,
        "closed": 410,
        "not-open": 425,
        "wrong-task": 400,
        "wrong-length": 400,
        "impossible": 400,
        "unknown-enrolment": 403,
        "bad-tag": 403,
        "truncated": 400,
        "bad-version": 400,
        # Of a request.
        "too-many": 413,
        "too-large": 413,
        "too-slow": 408,
        "busy": 503,
        "too-often": 429,
        "disk-full": 507,
        "bad-enrolment": 400,
        "bad-token": 403,
        "no-opening": 404,
        "not-admitted": 401,
        "bad-request": 400,
        "wrong-host": 421,
        "not-found": 404,
        # Of the administration.
        "not-now": 409,
        "no-key": 409,
        "fault": 500,
    }
)
#: Seconds after which a retry makes sense.
RETRY_AFTER: Mapping[str, int] = MappingProxyType(
    {"busy": 1, "too-often": 10, "disk-full": 60, "not-open": 600, "fault": 10}
)


def problem(code: str, **members: str) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Return status, headers and body of a refusal (RFC 9457).

    Args:
        code: of `STATUS`.
        members: further ones of the body, such as "detail".
    """
    status = STATUS[code]
    title = code.replace("-", " ")
    body = {"type": f"urn:graphveil:{code}", "title": title, "status": status, "code": code, **members}
    retry_after = [(b"retry-after", str(RETRY_AFTER[code]).encode())] if code in RETRY_AFTER else []
    return status, [(b"content-type", b"application/problem+json"), *retry_after], json.dumps(body).encode()


def report_answers(answers: Sequence[str]) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Return status, headers and body of the answer to reports: a code for each, in order."""
    if len(answers) == 1 and STATUS[answers[0]] >= 400:
        return problem(answers[0])
    status = STATUS[answers[0]] if len(answers) == 1 else 200
    body = json.dumps({"answers": list(answers)}, separators=(",", ":")).encode()
    return status, [(b"content-type", b"application/json")], body


#: Media type of `GET /metrics`: public counters in the text form of Prometheus, version 0.0.4. They identify nobody: no
#: id, address, token or time is among them.
METRICS_KIND = "text/plain; version=0.0.4; charset=utf-8"
_GAUGES = {
    "people": "People who may take part.",
    "enrolled": "People who have enrolled a device.",
    "epoch": "Number of the last epoch that was opened, 0 before the first.",
    "open": "Whether an epoch is open.",
    "received": "Reports of the last epoch that are stored.",
}


def exposition(status: Mapping[str, Any]) -> str:
    """Return the counters of a collection, from `Store.status`."""
    lines = []
    for name, meaning in _GAUGES.items():
        lines += [*_head(name, "gauge", meaning), f"graphveil_{name} {int(status[name])}"]
    lines += _head("refused_total", "counter", "Refused reports, enrolments, and requests that hold none, by code.")
    for code, count in sorted(status["refused"].items()):
        lines.append(f'graphveil_refused_total{{code="{escaped(code)}"}} {count}')
    return "".join(f"{line}\n" for line in lines)


def _head(name: str, kind: str, meaning: str) -> list[str]:
    return [f"# HELP graphveil_{name} {meaning}", f"# TYPE graphveil_{name} {kind}"]


def escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
