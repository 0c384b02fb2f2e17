"""The notebooks run from top to bottom anywhere, draw a picture, and end with a decision that their figures support."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.pages import DOCS

nbformat = pytest.importorskip("nbformat", reason="the extra 'site' brings what reads notebooks")
nbclient = pytest.importorskip("nbclient", reason="the extra 'site' brings what runs notebooks")
FOLDER = DOCS / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
#: Seconds for one notebook, of which one core takes at most a fifth.
LIMIT = 120
DECIDED = re.compile(
    r"(?m)^(.*: )?(do not )?(collect|publish|train together|hand out|decide nothing)\b.*", re.IGNORECASE
)


def read(file: Path) -> Any:
    return nbformat.read(file, as_version=4)


def outputs(cell: Any) -> list[dict[str, Any]]:
    """What a cell printed or drew, as mappings of kinds to contents; no cell may complain."""
    assert all(output.output_type != "error" and output.get("name") != "stderr" for output in cell.outputs), cell.source
    return [output.get("data", {"text/plain": output.get("text", "")}) for output in cell.outputs]


def text(cell: Any) -> str:
    return "".join(output.get("text/plain", "") for output in outputs(cell))


def require_story(notebook: Any) -> None:
    """Refuse a notebook without a picture, or whose last cell does not decide."""
    drawn = [cell for cell in notebook.cells if any("image/png" in output for output in outputs(cell))]
    assert len(drawn) >= 1
    decision = text(notebook.cells[-1])
    assert DECIDED.search(decision), decision
    assert re.search(r"\d", decision) or "beyond doubt" in decision or "even without noise" in decision


@pytest.fixture
def executed(tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    notebook = read(request.param)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        else:
            cell.outputs = []
    # The kernel talks over files: it needs no port, and so no network.
    manager = nbclient.NotebookClient(
        notebook, timeout=LIMIT, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    manager.create_kernel_manager()
    manager.km.transport, manager.km.ip = "ipc", str(tmp_path / "kernel")
    manager.execute(env=dict(os.environ, OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore"))
    return notebook


def test_there_are_six_and_the_page_names_each() -> None:
    page = (FOLDER / "index.md").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) == 6
    for file in NOTEBOOKS:
        assert f"({file.name})" in page, file.name


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_what_is_stored_is_whole(file: Path) -> None:
    notebook = read(file)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        cell.setdefault("outputs", [])
    require_story(notebook)
    assert file.stat().st_size < 150_000
    assert str(DOCS.parent) not in file.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("executed", NOTEBOOKS, ids=lambda file: file.stem, indirect=True)
def test_a_fresh_run_tells_the_same_story(executed: Any) -> None:
    require_story(executed)
