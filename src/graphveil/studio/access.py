"""Who may use a studio: a token once, then a cookie; its own name, its own origin, and a header that no form sends."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import math
import secrets
import threading
import time
from collections.abc import Collection
from http.cookies import CookieError, SimpleCookie
from typing import Final

from graphveil.collection.service.addresses import host_of, is_host, name_of
from graphveil.collection.service.door import Message, Receive, Scope, Send
from graphveil.collection.service.limits import Buckets
from graphveil.collection.service.pages import HEADERS as PAGE_HEADERS
from graphveil.collection.service.serving import Application
from graphveil.studio.refusals import Refusal
from graphveil.studio.store import Store

#: Ends in the port: browsers send cookies to all ports of a machine, and each may be another studio.
COOKIE: Final = "graphveil_studio_"
#: Seconds for which a browser stays admitted.
_SESSION: Final = 30 * 24 * 3600
#: Seconds in which a request arrives; of a table, each part of it.
PATIENCE: Final = 20.0
#: Bytes of a request, except for tables.
LARGEST: Final = 1 << 20
#: Those of a collector's pages; pictures that the page draws are admitted, and browsers store nothing.
HEADERS: Final = {
    name.lower().encode(): value.replace("img-src 'self'", "img-src 'self' data:").encode()
    for name, value in {**PAGE_HEADERS, "Cache-Control": "no-store"}.items()
}


class Access:
    """Tokens and sessions.

    Args:
        store: keeps sessions by their hashes.
        port: of the server.
        secure: whether cookies are for TLS alone.
    """

    def __init__(self, store: Store, port: int, *, secure: bool = False) -> None:
        self.token = secrets.token_urlsafe(32)
        self._store, self._name, self._secure = store, f"{COOKIE}{port}", secure
        # Acquired by the first who has the token, and never released.
        self._first_use = threading.Lock()
        self._wrong_tokens = Buckets(rate=0.1, size=10.0)

    def admit(self, token: str, address: str) -> tuple[str, str]:
        """Return cookie and CSRF value of a new session; Refusal: the token is wrong (which is slowed) or used."""
        if not (hmac.compare_digest(token.encode(), self.token.encode()) and self._first_use.acquire(blocking=False)):
            code = "not-admitted" if self._wrong_tokens.take(address) else "too-often"
            raise Refusal(code, "this link is wrong or was used: start graphveil studio again for a new one")
        session = secrets.token_urlsafe(32)
        self._store.admit(_hash(session), time.time() + _SESSION)
        attributes = f"HttpOnly; SameSite=Strict; Path=/; Max-Age={_SESSION}{'; Secure' if self._secure else ''}"
        return f"{self._name}={session}; {attributes}", csrf_of(session)

    def session_in(self, headers: Collection[tuple[bytes, bytes]]) -> str | None:
        """Return the session of a request's cookie, None where it has none, or one that is not admitted."""
        try:
            cookies = SimpleCookie(_header(headers, b"cookie") or "")
        except CookieError:
            return None
        session = cookies[self._name].value if self._name in cookies else ""
        return session if session and self._store.is_admitted(_hash(session)) else None


def _hash(session: str) -> str:
    return hashlib.sha256(session.encode()).hexdigest()


def csrf_of(session: str) -> str:
    """Return the value that a page must send beside its cookie, and that reveals nothing of the cookie."""
    return hashlib.sha256(f"csrf {session}".encode()).hexdigest()


class Gate:
    """An application, under localhost, addresses and some names: nothing passes that is not of an admitted page."""

    def __init__(self, application: Application, access: Access, names: Collection[str] = ()) -> None:
        self._application, self._access = application, access
        self._names = {name.casefold() for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        send = _with_headers(send)
        scope = {**scope, "client": (name_of((scope.get("client") or ("", 0))[0]), 0)}
        try:
            scope["state"] = {**scope.get("state", {}), "session": self._admitted(scope)}
        except Refusal as refusal:
            await refuse(refusal, send)
            return
        is_table = scope["path"].startswith("/api/tables/")
        await self._application(scope, _in_time(receive, math.inf if is_table else PATIENCE), send)

    def _admitted(self, scope: Scope) -> str | None:
        """Return the session of a request that may pass; Refusal: it may not."""
        headers, path, method = scope["headers"], scope["path"], scope["method"]
        host = host_of(headers)
        if host is None or not is_host(host, self._names):
            raise Refusal("wrong-host", "this studio does not answer under that name")
        is_reading = method in ("GET", "HEAD")
        session = self._access.session_in(headers)
        is_page = is_reading and (path == "/" or path.startswith("/assets/"))
        # Requests that only read, too: those of a page at another port of this machine carry the cookie.
        if not is_page:
            origin, site = _header(headers, b"origin"), _header(headers, b"sec-fetch-site")
            own_origin = f"{scope['scheme']}://{_header(headers, b'host')}"
            if origin not in (None, own_origin) or site not in (None, "none", "same-origin"):
                raise Refusal("forbidden", "a request from another page")
        if session is None and not is_page and (method, path) != ("POST", "/api/session"):
            raise Refusal("not-admitted", "open the link that graphveil studio printed")
        if session is not None and not is_reading and path != "/api/session":
            token = _header(headers, b"x-csrf-token") or ""
            if not hmac.compare_digest(token.encode(), csrf_of(session).encode()):
                raise Refusal("forbidden", "a request without the page's own header X-CSRF-Token")
        if not is_reading and not path.startswith("/api/tables/"):
            length = _header(headers, b"content-length") or "0"
            # In chunks no size is declared, and the framework reads a body of any size to its end.
            if _header(headers, b"transfer-encoding") is not None or not length.isdecimal() or int(length) > LARGEST:
                raise Refusal("too-large", f"a request of more than {LARGEST:,} bytes, or of no declared size")
        return session


def _in_time(receive: Receive, seconds: float) -> Receive:
    """Take a body whole within some seconds, and each part of it within `PATIENCE`; else its sender is gone."""
    deadline, has_more = time.monotonic() + seconds, True

    async def receive_in_time() -> Message:
        nonlocal has_more
        if not has_more:
            return await receive()
        try:
            message = await asyncio.wait_for(receive(), min(PATIENCE, deadline - time.monotonic()))
        except TimeoutError:
            message = {"type": "http.disconnect"}
        has_more = message.get("more_body", False)
        return message

    return receive_in_time


async def refuse(refusal: Refusal, send: Send) -> None:
    """Answer with a refusal, before any framework."""
    body = json.dumps({"error": refusal.line, "code": refusal.code}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _header(headers: Collection[tuple[bytes, bytes]], name: bytes) -> str | None:
    return next((value.decode("latin-1") for key, value in headers if key == name), None)


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            present = {name.lower() for name, _ in message["headers"]}
            missing = [(name, value) for name, value in HEADERS.items() if name not in present]
            message = {**message, "headers": [*message["headers"], *missing]}
        await send(message)

    return send_with_headers
