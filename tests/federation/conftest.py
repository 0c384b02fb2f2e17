"""Runs over the network need the loopback interface; where it is not there they are skipped, with that reason."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

NETWORK = {"test_links", "test_party", "test_session", "test_admission"}


def loopback() -> bool:
    """Whether this machine can listen and connect on 127.0.0.1."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), timeout=5).close()
    except OSError:
        return False
    return True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = [item for item in items if Path(__file__).parent in item.path.parents and item.path.stem in NETWORK]
    if here and not loopback():
        for item in here:
            item.add_marker(pytest.mark.skip(reason="no loopback interface on this machine"))
