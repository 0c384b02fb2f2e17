"""A collector as a device meets it, over HTTP: six requests, nothing kept between them."""

from __future__ import annotations

import http.client
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass

from graphveil.device.errors import DeviceError
from graphveil.device.token import number_of, token_of
from graphveil.device.wire import Report

_SECONDS = 30.0
_LARGEST = 64 << 20
#: How a report is acknowledged: the first time, and ever after.
_TAKEN = {"accepted", "again"}


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect could send token, key and report to somebody else."""

    def redirect_request(self, *told: object) -> None:
        return None


@dataclass(frozen=True)
class Round:
    """What a collector says of its last epoch, which nothing that protects anybody depends on.

    Args:
        epoch: its number, 0 before the first. open: whether reports of it are taken now.
    """

    epoch: int
    open: bool


@dataclass(frozen=True)
class Remote:
    """A collector.

    Args:
        url: https, or http on this machine: tokens and keys are never sent in the clear.
    """

    url: str

    def __post_init__(self) -> None:
        try:
            parts = urllib.parse.urlsplit(self.url)
            host, scheme = parts.hostname, parts.scheme
        except ValueError:
            host, scheme = None, ""
        here = host in ("localhost", "127.0.0.1", "::1")
        if not host or not (scheme == "https" or (scheme == "http" and here)):
            raise DeviceError("collector", "an address is https://..., or http://localhost")

    def task(self) -> bytes:
        """Return the signed task."""
        return self._asked("/task")

    def opening(self) -> bytes:
        """Return the signed opening."""
        return self._asked("/opening")

    def ids(self) -> bytes:
        """Return the ids of everybody in the order of their numbers, a line of JSON each."""
        return self._asked("/ids")

    def round(self) -> Round | None:
        """Return whether reports are taken now, None where the collector does not say."""
        try:
            facts = json.loads(self._asked("/epoch"))
            told = Round(facts["epoch"], facts["open"])
        except DeviceError as error:
            # Collectors need not answer this.
            if "404" in error.said:
                return None
            raise
        except (ValueError, KeyError, TypeError) as error:
            raise DeviceError("collector", "no answer of the standard") from error
        if not (isinstance(told.epoch, int) and told.epoch >= 0 and isinstance(told.open, bool)):
            raise DeviceError("collector", "no answer of the standard")
        return told

    def enrol(self, token: str, key: str) -> tuple[int, int]:
        """Return the person's number and the first epoch that they take part in.

        Args:
            token: that they were given. key: of the tags, hexadecimal.

        Raises:
            DeviceError: `command`, a token that is none; `collector`, where it refuses; `enrolment`, where it says
            another number than the token's.
        """
        expected = number_of(token_of(token))
        told = self._asked("/enrolments", json.dumps({"token": token, "key": key}).encode())
        try:
            facts = json.loads(told)
            number, joined = facts["number"], facts["joined"]
        except (ValueError, KeyError, TypeError) as error:
            raise DeviceError("collector", "no answer of the standard") from error
        if not all(type(one) is int and one >= 0 for one in (number, joined)):
            raise DeviceError("collector", "no answer of the standard")
        if number != expected:
            said = f"your token is person {expected}'s, and the collector says that you are person {number}"
            raise DeviceError("enrolment", f"{said}; nothing of yours was sent, tell the organiser")
        return number, joined

    def send(self, report: Report) -> str:
        """Return how the collector acknowledges a report.

        Args:
            report: which is booked.

        Raises:
            DeviceError: `collector`, where it does not.
        """
        told = self._asked("/reports", report.to_bytes(), "application/octet-stream")
        try:
            (code,) = json.loads(told)["answers"]
        except (ValueError, KeyError, TypeError) as error:
            raise DeviceError("collector", "no answer of the standard") from error
        if code not in _TAKEN:
            raise DeviceError("collector", _code(told))
        return str(code)

    def _asked(self, path: str, body: bytes | None = None, kind: str = "application/json") -> bytes:
        request = urllib.request.Request(self.url.rstrip("/") + path, body, {"Content-Type": kind})
        try:
            with urllib.request.build_opener(*self._handlers()).open(request, timeout=_SECONDS) as answer:
                data: bytes = answer.read(_LARGEST + 1)
        except urllib.error.HTTPError as error:
            with error:
                raise DeviceError("collector", f"refused with {error.code} {_code(error.read(10_000))}") from error
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise DeviceError("collector", f"cannot be reached at {self.url}") from error
        if len(data) > _LARGEST:
            raise DeviceError("collector", "an answer of more than 64 MiB")
        return data

    def _handlers(self) -> list[urllib.request.BaseHandler]:
        # A proxy of the environment would be told token, key and report in the clear. Of https it sees who is asked.
        own = [] if self.url.lower().startswith("https:") else [urllib.request.ProxyHandler({})]
        return [_NoRedirect(), *own]


def _code(told: bytes) -> str:
    """The code of a refusal; nothing else of what a stranger sends is shown."""
    found = re.search(rb'"(?:code|answers)":\s*\[?"([a-z-]{1,40})"', told)
    return found[1].decode() if found else "without a code"
