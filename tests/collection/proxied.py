"""A reverse proxy that puts a collector below a path of a host where other things are."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

#: Of what a client says, what is handed on, as a proxy of an operator would.
_HEADERS = ("Content-Type", "Authorization", "If-None-Match")


@dataclass
class Proxy:
    """What it was asked for outside the collector's path.

    Args:
        url: of the collector behind it, without a slash at the end. strayed: paths of other things of the host.
    """

    url: str = ""
    strayed: list[str] = field(default_factory=list)


@contextmanager
def below(path: str, collector: str) -> Iterator[Proxy]:
    """Serve a collector below a path; everything else of the host is not found.

    Args:
        path: such as "/of/ours". collector: address of its root.
    """
    found = Proxy()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if not self.path.startswith(f"{path}/"):
                found.strayed.append(self.path)
                self.send_error(404)
                return
            behind = http.client.HTTPConnection(collector.removeprefix("http://"), timeout=60)
            told = {name: value for name in _HEADERS if (value := self.headers.get(name)) is not None}
            told["X-Forwarded-For"] = self.client_address[0]
            behind.request(self.command, self.path.removeprefix(path), body, told)
            answer = behind.getresponse()
            self._pass_on(answer, answer.read())
            behind.close()

        do_POST = do_GET

        def _pass_on(self, answer: http.client.HTTPResponse, body: bytes) -> None:
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        # A name and not a number: both are this machine to a browser, which gives cryptography to either.
        found.url = f"http://localhost:{server.server_address[1]}{path}"
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
