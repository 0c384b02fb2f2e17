"""What stands outside the source: one version, one list of Pythons, one set of dependencies."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import graphveil

ROOT = Path(__file__).parent.parent
PYTHONS = ["3.11", "3.12", "3.13"]


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def pins() -> dict[str, Version]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {name: Version(version) for name, version in pairs}


def requirements(settings: dict[str, Any]) -> list[Requirement]:
    project = settings["project"]
    lines = [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]
    return [Requirement(line) for line in lines]


def test_the_version_is_written_in_the_package_and_read_by_the_build(settings: dict[str, Any]) -> None:
    assert settings["project"]["dynamic"] == ["version"]
    path = ROOT / settings["tool"]["hatch"]["version"]["path"]
    assert f'\n__version__ = "{graphveil.__version__}"\n' in path.read_text()
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [graphveil.__version__]
    assert len(re.findall(r"^  - type: ", citation, re.MULTILINE)) == 7
    dated = re.findall(r"^## \[([\d.]+)\] - (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert dated[0] == (graphveil.__version__, *re.findall(r"^date-released: (.+)$", citation, re.MULTILINE))
    assert json.loads((ROOT / "clients" / "js" / "package.json").read_text())["version"] == graphveil.__version__


def test_every_dependency_has_a_lowest_version_and_its_pin_is_allowed(settings: dict[str, Any]) -> None:
    pinned = pins()
    for requirement in requirements(settings):
        if requirement.name == "graphveil":
            continue
        assert [part.operator for part in requirement.specifier] == [">="], requirement
        assert requirement.name not in pinned or pinned[requirement.name] in requirement.specifier, requirement
    assert set(pinned) <= {requirement.name for requirement in requirements(settings)}


def test_the_same_pythons_are_declared_and_tried(settings: dict[str, Any]) -> None:
    named = [line.rsplit(" ", 1)[1] for line in settings["project"]["classifiers"] if re.search(r":: 3\.\d+$", line)]
    assert named == PYTHONS
    assert settings["project"]["requires-python"] == f">={PYTHONS[0]}"
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert f"python: {str(PYTHONS).replace(chr(39), chr(34))}" in workflow


def test_the_files_and_targets_that_are_named_are_there() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    used = set(re.findall(r"(?:make|target:) ([\w-]+)", workflow))
    assert used == {"test", "test-slow", "coverage", "test-lowest", "test-newest"}
    assert used <= targets
    for page in ("CONTRIBUTING.md", "docs/explanation/architecture.md", "docs/explanation/contracts.md"):
        named = re.findall(r"`(\w+/[\w/-]+\.\w+)`", (ROOT / page).read_text())
        homes = {path: [base for base in ("", "src/graphveil") if (ROOT / base / path).is_file()] for path in named}
        assert [path for path, present in homes.items() if not present] == []
