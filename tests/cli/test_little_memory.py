"""Commands on a graph that was stored: they run in less memory than its features take."""

from __future__ import annotations

import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from graphveil.cli import main
from graphveil.graphs import GraphSchema, load_parts, normalise_edges, store_parts
from graphveil.graphs.parts import GraphParts
from tests.engine.test_on_disk import little_memory, works

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


def what_works(words: list[str], kept: Path, folder: Path) -> list[int | bool]:
    """Exit codes of a command with plenty of memory and with little, and whether little is enough to read features."""
    os.chdir(folder)
    os.environ["GRAPHVEIL_DATA"] = str(folder)
    # What is imported and compiled is there after a first run.
    plenty = main(words)
    with little_memory(ROOM):
        little = main(words)
    # Under a limit of its own: the command may have given room back.
    return [plenty, little, works(lambda: np.array(load_parts(kept).x), ROOM)]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory without files")
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_hold_none_of_the_features_that_they_do_not_need(kept: Path, tmp_path: Path, command: str) -> None:
    """Read into memory, the features are refused under the same limit: the limit is felt.

    In a process of its own: what earlier tests freed may still be the allocator's, and would be room for the features.
    """
    first, *others = COMMANDS[command]
    words = [first, *others[:1], str(kept), *others[1:], "--json"]
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        found = process.submit(what_works, words, kept, tmp_path).result(timeout=300)
    assert found == [0, 0, False]
