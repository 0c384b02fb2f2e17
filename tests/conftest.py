"""How the tests are shared out where several processes run them."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import account

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

    from tests.reports.browser import Browser

# The key store of whoever runs the tests is not for the secrets of made-up people.
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"

# Nor is the user's cache for what tests plan.
if "XDG_CACHE_HOME" not in os.environ:
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="graphveil-cache-")
    atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)

# Kernels of a GPU run on the CPU where there is none, by Triton's interpreter. Read when they are first imported.
if not Path("/dev/nvidiactl").exists():
    os.environ["TRITON_INTERPRET"] = "1"

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
#: CPU seconds of this process and its ended children when the phase of a test before this one ended.
CPU = pytest.StashKey[float]()
STARTED = time.monotonic()


def group(nodeid: str) -> str:
    """Those that a test runs beside in one process: its file, so that what they share is made once."""
    file, _, _ = nodeid.partition("::")
    if file in NETWORK:
        return "network"
    # They parse the whole source, once for all of them.
    if file in ("tests/test_house.py", "tests/test_metrics.py"):
        return "source"
    # One cluster for all of them.
    if file.startswith("tests/engine/"):
        return "engine"
    # What commands leave is shared by those on one kind of data alone.
    if file == "tests/flows/test_flows.py" and "[" in nodeid:
        return "flows on " + nodeid.partition("[")[2].partition("-")[0]
    return nodeid if nodeid.startswith(ALONE) else file


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    from tests.reports.browser import started

    with started(tmp_path_factory.mktemp("profile")) as window:
        yield window


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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--account", action="store_true", help="note the CPU seconds of each test for tests/account.py")
    parser.addoption("--most-seconds", type=float, help="skip the tests that would start later than this")


class Account:
    """Sums the CPU seconds of each test's phases, wherever they ran."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += float(str(dict(report.user_properties)["cpu_seconds"]))

    def pytest_sessionfinish(self) -> None:
        for test, seconds in self.seconds.items():
            account.note(f"test {test}", 0.0, seconds)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--account") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Account())


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[CPU] = sum(os.times()[:4])
    most = item.config.getoption("--most-seconds")
    if most is not None and time.monotonic() - STARTED > most:
        pytest.skip(f"the {most:g} seconds of this run are over")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    now = sum(os.times()[:4])
    # Each report carries the properties of those before it.
    report.user_properties = [("cpu_seconds", now - item.stash.get(CPU, now))]
    item.stash[CPU] = now
    return report
