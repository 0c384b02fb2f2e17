"""Names and modules that load when they are first used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from graphveil.late import LateModule


def test_a_late_module_is_imported_by_its_first_attribute_and_has_what_it_has_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    late = LateModule("colorsys")
    assert "colorsys" not in sys.modules
    assert late.ONE_THIRD == 1 / 3 and "colorsys" in sys.modules
    monkeypatch.setattr("colorsys.ONE_THIRD", 7)
    assert late.ONE_THIRD == 7
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        late.nothing  # noqa: B018


def test_no_module_of_a_light_room_loads_torch() -> None:  # 2 CPU s: imports every module of four rooms
    script = """
import importlib, pkgutil, sys
for name in ("graphs", "mechanisms", "methods", "privacy"):
    room = importlib.import_module("graphveil." + name)
    for module in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
        importlib.import_module(module.name)
        if "torch" in sys.modules:
            sys.exit(module.name)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow  # torch in a process
@pytest.mark.skipif(not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="pages have one size here")
def test_large_arrays_of_torch_lie_on_large_pages() -> None:
    script = """
import graphveil, torch
large = torch.ones(1 << 22)
parts = open("/proc/self/smaps").read().split("VmFlags:")
for part, flags in zip(parts, parts[1:]):
    ends = [line.split()[0].split("-") for line in part.splitlines() if " " in line and "-" in line.split()[0]][-1]
    if int(ends[0], 16) <= large.data_ptr() < int(ends[1], 16):
        print("hg" in flags.splitlines()[0].split())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_a_stored_attack_is_read_without_any_adversary() -> None:
    script = (
        "import sys; from graphveil.attacks import AttackResult, Limit; "
        "print({'torch', 'scipy.stats', 'graphveil.attacks.influence'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
