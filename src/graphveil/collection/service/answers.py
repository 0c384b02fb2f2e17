"""A collector's answers: codes, which `graphveil explain CODE` explains, with their HTTP statuses."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType

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
LATER: Mapping[str, int] = MappingProxyType({"busy": 1, "too-often": 10, "disk-full": 60, "not-open": 600, "fault": 10})


def problem(code: str, **more: str) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Return status, headers and body of a refusal (RFC 9457).

    Args:
        code: of `STATUS`. more: further members, such as "detail".
    """
    status = STATUS[code]
    members = {"type": f"urn:graphveil:{code}", "title": code.replace("-", " "), "status": status, "code": code, **more}
    later = [(b"retry-after", str(LATER[code]).encode())] if code in LATER else []
    return status, [(b"content-type", b"application/problem+json"), *later], json.dumps(members).encode()


def report_answers(answers: Sequence[str]) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Return status, headers and body of the answer to reports: a code for each, in order."""
    if len(answers) == 1 and STATUS[answers[0]] >= 400:
        return problem(answers[0])
    status = STATUS[answers[0]] if len(answers) == 1 else 200
    body = json.dumps({"answers": list(answers)}, separators=(",", ":")).encode()
    return status, [(b"content-type", b"application/json")], body
