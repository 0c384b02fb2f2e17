"""Commands on a graph that was stored: they run in less memory than its features take."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from graphveil.graphs import GraphSchema, load_parts, normalise_edges, store_parts
from graphveil.graphs.parts import GraphParts
from tests.cli.conftest import Terminal
from tests.engine.test_on_disk import little_memory

NODES, COLUMNS = 20_000, 1_024
#: Less than the features [n, d] take, and enough for the stacks of a few threads.
ROOM = 3 * NODES * COLUMNS
COMMANDS = {
    "describe": ("data", "describe"),
    "train": ("train", "label-propagation", "--epsilon-y", "2", "--no-controls", "--threads", "1"),
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    edges, _ = normalise_edges(*rng.integers(0, NODES, (2, 3 * NODES)), NODES, directed=False)
    schema = GraphSchema("large", COLUMNS, 0.0, 1.0, ("a", "b"))
    x, y = rng.random((NODES, COLUMNS), np.float32), rng.integers(0, 2, NODES)
    return store_parts(GraphParts(x, edges.numpy(), y, schema), tmp_path_factory.mktemp("graph") / "kept")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory without files")
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_hold_none_of_the_features_that_they_do_not_need(type_in: Terminal, kept: Path, command: str) -> None:
    """Read into memory, the features are refused under the same limit: the limit is felt."""
    first, *others = COMMANDS[command]
    words = (first, *others[:1], kept, *others[1:], "--json")
    # What is imported and compiled is there after a first run.
    expected = type_in(*words)
    with little_memory(ROOM):
        found = type_in(*words)
    # Under a limit of its own: the command may have given room back.
    with little_memory(ROOM), pytest.raises(MemoryError):
        np.array(load_parts(kept).x)
    assert (expected.code, found.code) == (0, 0), found.err
