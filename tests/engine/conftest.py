"""Engines that have to give the same bits: one thread, three, and a Ray cluster of two workers on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from graphveil.engine import LOCAL, Engine, LocalEngine, RayEngine


@pytest.fixture(scope="session")
def ray() -> Iterator[RayEngine]:
    """A cluster that is started for the tests, and stopped after them."""
    # Not imported before the engine does it, which tells it to ask for a token.
    if find_spec("ray") is None:
        pytest.skip("the extra graphveil[ray] is not installed")
    engine = RayEngine(workers=2)
    yield engine
    engine.close()


@pytest.fixture(params=["threads", pytest.param("ray", marks=pytest.mark.slow)])
def engines(request: pytest.FixtureRequest) -> dict[str, Engine]:
    """One thread, and what has to say the same."""
    other = LocalEngine(3) if request.param == "threads" else request.getfixturevalue("ray")
    return {"one": LOCAL, request.param: other}
