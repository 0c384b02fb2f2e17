"""An application on a loopback port."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn


@contextmanager
def served(application: Any, room: int | None = None) -> Iterator[str]:
    """Serve an application in a thread; gives its address."""
    quiet: dict[str, Any] = {"log_level": "warning", "log_config": None, "access_log": False}
    with ran(uvicorn.Server(uvicorn.Config(application, **quiet)), room) as url:
        yield url


@contextmanager
def ran(server: uvicorn.Server, room: int | None = None) -> Iterator[str]:
    """Run a server in a thread; gives its address."""
    with socket.socket() as own:
        if room is not None:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, room)
        own.bind(("127.0.0.1", 0))
        own.listen(100)  # whoever comes before the server is up waits
        thread = threading.Thread(target=server.run, args=([own],), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{own.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
