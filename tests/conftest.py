"""How the tests are shared out where several processes run them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

# The key store of whoever runs the tests is not for the secrets of made-up people.
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"

#: Files whose parties wait for each other in real time: one after another.
NETWORK = (
    "tests/federation/test_party.py",
    "tests/federation/transport/test_links.py",
    "tests/federation/transport/test_session.py",
    "tests/federation/transport/test_admission.py",
    "tests/cli/test_federation_run.py",
)
#: Long tests that share nothing with the rest of their file.
ALONE = (
    "tests/test_docs.py::test_commands_on_embedded_graphs_run",
    "tests/test_notebooks.py::test_a_fresh_run_tells_the_same_story",
)


def group(nodeid: str) -> str:
    """Those that a test runs beside in one process: its file, so that what they share is made once."""
    file, _, _ = nodeid.partition("::")
    if file in NETWORK:
        return "network"
    # One cluster for all of them.
    if file.startswith("tests/engine/"):
        return "engine"
    return nodeid if nodeid.startswith(ALONE) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

    return ByGroup(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Hand out groups with slow tests first: a long one that starts last leaves the other processes idle."""
    if hasattr(config, "workerinput"):
        slow = {group(item.nodeid) for item in items if item.get_closest_marker("slow")}
        items.sort(key=lambda item: group(item.nodeid) not in slow)
