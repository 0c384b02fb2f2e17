"""The built wheel: it holds everything, and its declared dependencies cover what the code imports."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
#: Import names that differ from their distribution's name.
DISTRIBUTIONS = {
    "sklearn": "scikit-learn",
    "torch_geometric": "torch-geometric",
    "dp_accounting": "dp-accounting",
    "grpc": "grpcio",
}
OPTIONAL = {"mlflow", "networkx", "ogb", "optuna", "ray", "shap", "tensorboard", "wandb"}
# Comes with torch where that is built for a GPU.
OPTIONAL |= {"triton"}
# Starlette is what FastAPI is built on, and comes with it.
OPTIONAL |= {"fastapi", "keyring", "psycopg", "pydantic", "sqlalchemy", "starlette", "uvicorn"}
#: A search path of the caller's would hide the wheel.
CLEAN = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of the wheel, installed in an environment of its own (which borrows the libraries of this one)."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = folder.glob("graphveil-*.whl")
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    python = environment / "bin" / "python"
    script = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.run([python, "-c", script], check=True, capture_output=True, text=True).stdout.strip()
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    Path(site, "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    where = [python, "-c", "import graphveil; print(graphveil.__file__)"]
    assert site in subprocess.run(where, check=True, capture_output=True, text=True, env=CLEAN).stdout
    return environment / "bin" / "graphveil"


@pytest.mark.slow
def test_the_wheel_trains_and_reports(command: Path, tmp_path: Path) -> None:
    run = [command, "train", "lpgnn", "digits", "--epochs", "3", "--no-controls", "--out", str(tmp_path / "run")]
    done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path, env=CLEAN, check=False)
    assert done.returncode == 0, done.stderr
    assert "lpgnn on digits" in done.stdout
    assert (tmp_path / "run" / "report.html").read_text().startswith("<!")


@pytest.mark.slow
def test_the_wheel_holds_what_is_not_code(command: Path) -> None:
    """Pretrained readers, libraries of the pages, pages of a collector and of the studio."""
    script = "import sys, pathlib, graphveil; home = pathlib.Path(graphveil.__file__).parent; "
    script += "[print(*sorted(path.name for path in (home / part).iterdir() if path.suffix)) for part in sys.argv[1:]]"
    parts = ("methods/pretrained", "reports/vendor", "collection/assets", "collection/simulation", "studio/assets")
    run = [command.parent / "python", "-c", script, *parts]
    done = subprocess.run(run, check=True, capture_output=True, text=True, env=CLEAN)
    here = [ROOT / "src" / "graphveil" / part for part in parts]
    assert [line.split() for line in done.stdout.splitlines()] == [
        sorted(path.name for path in folder.iterdir() if path.suffix) for folder in here
    ]


def test_declared_dependencies_cover_the_imports() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {line.split(">")[0].split("[")[0].strip() for line in project["dependencies"]}
    used = {
        name.split(".")[0]
        for file in (ROOT / "src").rglob("*.py")
        for pair in re.findall(r"^ *(?:import ([\w.]+)|from ([\w.]+) import )", file.read_text(), re.MULTILINE)
        for name in pair
        if name
    }
    foreign = {name for name in used if name not in sys.stdlib_module_names and name != "graphveil"} - OPTIONAL
    assert "torch" in foreign and {DISTRIBUTIONS.get(name, name) for name in foreign} <= declared
