"""The libraries inside the pages: those that the list names, unchanged."""

from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path

from graphveil.reports.base.scripts import VENDOR

ROOT = Path(__file__).parent.parent.parent
README = VENDOR / "README.md"


def listed() -> dict[str, str]:
    """File name -> SHA-256, as the list says."""
    return dict(re.findall(r"^\| `([^`]+)` .* `([0-9a-f]{64})` \|$", README.read_text(), re.MULTILINE))


def test_every_file_is_the_one_that_was_fetched() -> None:
    files = {file.name: file for file in VENDOR.iterdir() if file.suffix in (".js", ".css")}
    assert listed().keys() == files.keys()
    for name, file in files.items():
        assert hashlib.sha256(file.read_bytes()).hexdigest() == listed()[name], name


def test_every_library_comes_with_its_licence() -> None:
    licences = set(re.findall(r"`(LICENSE\.\w+)`", README.read_text()))
    assert licences == {file.name for file in VENDOR.glob("LICENSE.*")}
    for name in licences:
        assert "Permission is hereby granted, free of charge" in (VENDOR / name).read_text()


def test_no_library_ends_the_element_it_is_written_into() -> None:
    for file in VENDOR.glob("*.js"):
        text = file.read_text()
        assert not re.search(r"</script|<!--", text, re.IGNORECASE), file.name
        assert "\r" not in text, file.name


def test_the_wheel_takes_all_of_the_package() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["src/graphveil"]}
    ignored = (ROOT / ".gitignore").read_text().split()
    assert not {"vendor/", "*.js", "*.css"} & set(ignored)
