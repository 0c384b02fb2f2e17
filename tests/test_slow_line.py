"""The proxy that benchmarks put between two parties: it delays, it limits, it counts, and it loses nothing."""

from __future__ import annotations

import importlib.util
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from graphveil.federation.transport.line import Line
from tests.federation.ports import free_ports

FILE = Path(__file__).parent.parent / "benchmarks" / "slow_line.py"


@pytest.fixture(scope="module")
def slow_line() -> Any:
    spec = importlib.util.spec_from_file_location("slow_line", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["slow_line"] = module
    spec.loader.exec_module(module)
    return module


def send(client: socket.socket, data: bytes) -> None:
    with suppress(OSError):  # the line may be cut before all has left
        client.sendall(data)


def echoed(port: int, data: bytes) -> tuple[bytes, float]:
    """What comes back from a port, and after how many seconds."""
    start = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port)) as client:
        threading.Thread(target=send, args=(client, data), daemon=True).start()
        back = b""
        while len(back) < max(len(data), 1) and (part := client.recv(1 << 16)):
            back += part
        return back, time.perf_counter() - start


def test_a_slow_line_delays_limits_and_counts(slow_line: Any) -> None:
    """Sleeps end late and never early: half of the seconds is sure, ten times as many are for a loaded machine."""
    outside, behind, nobody = free_ports(3)

    def serve() -> None:
        for _ in range(3):
            answered, _ = server.accept()
            with answered:
                while data := answered.recv(1 << 16):
                    answered.sendall(data)

    with socket.create_server(("127.0.0.1", behind)) as server:
        threading.Thread(target=serve, daemon=True).start()
        with slow_line.SlowLine(Line(4e7, 0.05), {outside: behind}) as line:
            few, waited = echoed(outside, b"x")
            assert few == b"x" and 0.05 < waited < 1  # two delays
            data = bytes(range(256)) * 2000  # 0.1 s at that rate, and as long in both directions at once
            back, took = echoed(outside, data)
            assert back == data and 0.1 < took < 2
            assert sorted(line.directions) == [1, 1, len(data), len(data)]
            line.now[outside, True] = None  # nothing passes towards the listener, for a while
            threading.Timer(0.3, line.now.clear).start()
            back, took = echoed(outside, b"y")
            assert back == b"y" and 0.3 < took < 3
    with slow_line.SlowLine(Line(4e7, 0.05), {outside: nobody}):
        assert echoed(outside, b"")[0] == b""
