"""A device's view of a collector over HTTP: six requests, without state between them."""

from __future__ import annotations

import http.client
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass

from graphveil.device.errors import DeviceError
from graphveil.device.refusals import COLLECTOR
from graphveil.device.wire import Report, number_of, token_of

#: Seconds.
_TIMEOUT = 30.0
#: Bytes of a collector's answer.
_LARGEST = 64 << 20
#: The acknowledgements of a report: the first time, and later.
_ACKNOWLEDGED = {"accepted", "again"}


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect could send token, key and report to somebody else."""

    def redirect_request(self, *args: object) -> None:
        return None


class Refused(DeviceError):
    """A collector's refusal.

    Args:
        status: of HTTP.
        code: the collector's, or whatever stood in its place.
    """

    def __init__(self, status: int, code: str) -> None:
        # Only codes of collectors: otherwise a collector could feign a refusal by this device.
        if code in COLLECTOR:
            super().__init__(code, COLLECTOR[code].happened)
        elif 300 <= status < 400:
            detail = f"the collector sends on to another address ({status}), and nothing is sent there"
            super().__init__("collector", detail, "Ask the organiser for the collector's own address.")
        else:
            super().__init__("collector", f"the collector refused with {status} {code}")
        self.status = status


@dataclass(frozen=True)
class Round:
    """A collector's statement on its last epoch; nobody's protection depends on it.

    Args:
        epoch: its number, 0 before the first.
        open: whether reports of it are taken now.
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
        is_local = host in ("localhost", "127.0.0.1", "::1")
        if not host or not (scheme == "https" or (scheme == "http" and is_local)):
            detail = "a collector's address begins with https://, or with http://localhost on this machine"
            raise DeviceError("collector", detail, "Copy the address again, whole.")

    def task(self) -> bytes:
        return self._fetch("/task")

    def opening(self) -> bytes:
        return self._fetch("/opening")

    def ids(self) -> bytes:
        """Return the ids of everybody in the order of their numbers, a line of JSON each."""
        return self._fetch("/ids")

    def round(self) -> Round | None:
        """Return whether reports are taken now, None where the collector does not say."""
        try:
            facts = json.loads(self._fetch("/epoch"))
            state = Round(facts["epoch"], facts["open"])
        except Refused as error:
            # Collectors need not answer this.
            if error.status == 404:
                return None
            raise
        except (ValueError, KeyError, TypeError) as error:
            raise _unreadable() from error
        if not (isinstance(state.epoch, int) and state.epoch >= 0 and isinstance(state.open, bool)):
            raise _unreadable()
        return state

    def enrol(self, token: str, key: str) -> tuple[int, int]:
        """Return the person's number and the first epoch that they take part in.

        Args:
            token: the person's.
            key: of the tags, hexadecimal.

        Raises:
            DeviceError: `command`, an invalid token; `collector`, where it refuses; `enrolment`, where it returns
                another number than the token's.
        """
        expected = number_of(token_of(token))
        reply = self._fetch("/enrolments", json.dumps({"token": token, "key": key}).encode())
        try:
            facts = json.loads(reply)
            number, joined = facts["number"], facts["joined"]
        except (ValueError, KeyError, TypeError) as error:
            raise _unreadable() from error
        if not all(type(value) is int and value >= 0 for value in (number, joined)):
            raise _unreadable()
        if number != expected:
            detail = f"your token is person {expected}'s, and the collector says that you are person {number}"
            raise DeviceError("enrolment", detail, "Do not answer; tell the organiser.")
        return number, joined

    def send(self, report: Report) -> str:
        """Send a booked report; return the collector's acknowledgement. Raises DeviceError: `collector`, where it does
        not acknowledge the report.
        """
        reply = self._fetch("/reports", report.to_bytes(), "application/octet-stream")
        try:
            (code,) = json.loads(reply)["answers"]
        except (ValueError, KeyError, TypeError) as error:
            raise _unreadable() from error
        if code not in _ACKNOWLEDGED:
            raise Refused(200, code if isinstance(code, str) else "without a code")
        return str(code)

    def _fetch(self, path: str, body: bytes | None = None, content_type: str = "application/json") -> bytes:
        request = urllib.request.Request(self.url.rstrip("/") + path, body, {"Content-Type": content_type})
        try:
            # Over http a proxy of the environment would see token, key and report; over https only the name.
            handlers = [] if self.url.lower().startswith("https:") else [urllib.request.ProxyHandler({})]
            with urllib.request.build_opener(_NoRedirect(), *handlers).open(request, timeout=_TIMEOUT) as answer:
                data: bytes = answer.read(_LARGEST + 1)
        except urllib.error.HTTPError as error:
            with error:
                # Nothing else that a stranger sends is printed.
                content = error.read(10_000)
                code = re.search(rb'"(?:code|answers)":\s*\[?"([a-z-]{1,40})"', content)
                raise Refused(error.code, code[1].decode() if code else "without a code") from error
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise DeviceError("collector", f"the collector cannot be reached at {self.url}") from error
        if len(data) > _LARGEST:
            raise DeviceError("collector", "the collector sent an answer of more than 64 MiB")
        return data


def _unreadable() -> DeviceError:
    return DeviceError("collector", "the collector's answer is none of the standard")
