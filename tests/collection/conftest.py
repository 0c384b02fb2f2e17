"""Databases of each kind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.collection.collections import Collection, begun, url_of
from tests.collection.postgresql import Postgres, postgresql

_NUMBERS = count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with postgresql() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return url_of(tmp_path)
    server: Postgres = request.getfixturevalue("postgres")
    return server.url(f"test{os.getpid()}_{next(_NUMBERS)}")


@pytest.fixture
def running(url: str) -> Iterator[Collection]:
    collection = begun(url)
    yield collection
    collection.store.engine.dispose()
