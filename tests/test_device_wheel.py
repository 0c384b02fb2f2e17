"""The wheel of the device alone runs where there is numpy and cryptography, and nothing else."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import graphveil

ROOT = Path(__file__).parent.parent
CLEAN = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
#: Of what the wheel depends on, and what that depends on.
LIBRARIES = ("numpy", "cryptography", "cffi", "pycparser")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("device-wheel")
    source = ROOT / "clients" / "python"
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def python(wheel: Path) -> Path:
    """An interpreter with the wheel and links to its libraries."""
    environment = wheel.parent / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    (site,) = environment.glob("lib/python3*/site-packages")
    for library in LIBRARIES:
        for file in {Path(str(file)).parts[0] for file in importlib.metadata.files(library) or ()}:
            here = Path(sysconfig.get_path("platlib"), file)
            if file != ".." and here.exists() and not (site / file).exists():
                (site / file).symlink_to(here)
    zipfile.ZipFile(wheel).extractall(site)
    return environment / "bin" / "python"


def test_it_holds_the_device_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "src"
    sources = {str(path.relative_to(source)) for path in (source / "graphveil" / "device").rglob("*.py")}
    assert {name for name in names if ".dist-info/" not in name} == sources
    about = zipfile.ZipFile(wheel).read(next(name for name in names if name.endswith("METADATA"))).decode()
    assert f"\nVersion: {graphveil.__version__}\n" in about
    assert {line for line in about.splitlines() if line.startswith("Requires-Dist")} == {
        "Requires-Dist: numpy>=2.0",
        "Requires-Dist: cryptography>=44",
        "Requires-Dist: keyring>=25.6; extra == 'keyring'",
    }
    assert wheel.stat().st_size < 64_000


def test_it_passes_vectors_without_torch(python: Path) -> None:
    cases = [json.loads(line) for line in (ROOT / "vectors" / "whole.jsonl").read_text().splitlines()]
    lines = "\n".join(json.dumps(case["in"]) for case in cases)
    run = [python, "-m", "graphveil.device", "lines"]
    done = subprocess.run(run, input=lines, capture_output=True, text=True, env=CLEAN, check=True)
    assert [json.loads(line) for line in done.stdout.splitlines()] == [case["out"] for case in cases]
    for missing in ("torch", "scipy", "graphveil.privacy"):
        imported = subprocess.run([python, "-c", f"import {missing}"], capture_output=True, env=CLEAN, check=False)
        assert imported.returncode == 1, missing
