"""Databases of each kind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.collection import visits
from tests.collection.collections import BEGUN, Collection, begun, url_of
from tests.collection.postgresql import Postgres, postgresql
from tests.collection.visits import Running
from tests.on_device.signing import label

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


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """No connection outlives its test: a server of databases has few."""
    yield
    while BEGUN:
        BEGUN.pop().engine.dispose()


@pytest.fixture
def running(url: str) -> Collection:
    return begun(url)


@pytest.fixture
def moods(tmp_path: Path) -> Iterator[Running]:
    """A collection of labels, that visitors come to."""
    with visits.running(tmp_path, label()) as collection:
        yield collection
