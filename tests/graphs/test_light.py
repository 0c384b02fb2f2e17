"""Looking at a folder of tables loads no library that is needed for training only."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.graphs.made import folder

HEAVY = {"torch", "torch_geometric", "sklearn", "numba", "matplotlib", "networkx", "pandas", "dp_accounting"}


def loaded(script: str, *arguments: str) -> set[str]:
    """The heavy libraries that a script of its own process has loaded at its end."""
    script += "\nimport json, sys; sys.stderr.write(json.dumps(sorted(sys.modules)))"
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return HEAVY & set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("json_too", [False, True])
def test_describing_a_folder_loads_no_torch(tmp_path: Path, json_too: bool):
    script = "import sys; from graphveil.cli import main; assert main(sys.argv[1:]) == 0"
    arguments = ["data", "describe", str(folder(tmp_path / "own")), *(["--json"] if json_too else [])]
    assert loaded(script, *arguments) == set()


def test_a_refused_folder_loads_no_torch(tmp_path: Path):
    own = folder(tmp_path / "own", nodes__csv="id,age\na,11\n")
    script = "import sys; from graphveil.cli import main; assert main(sys.argv[1:]) == 2"
    assert loaded(script, "data", "describe", str(own)) == set()


def test_the_room_and_its_schema_load_no_torch():
    assert loaded("import graphveil.graphs; graphveil.graphs.GraphSchema; graphveil.graphs.Graph") == set()


def test_a_public_name_is_no_module_of_the_room():
    """A module of the same name would replace the function once something imports it."""
    from graphveil import graphs

    modules = {path.stem for path in Path(graphs.__file__).parent.glob("*.py")}
    assert not modules & set(graphs.__all__)
