"""Names and modules that load when they are first used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from graphveil.runtime.late import LateModule


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


def test_what_dp_accounting_rarely_needs_loads_with_its_use_and_every_epsilon_is_the_same() -> None:
    # Each in a process of its own: with SciPy's modules loaded before, nothing stands in for them.
    script = """
import sys
from graphveil.privacy.accounting.pipeline import Descent, Hops, pipeline_epsilon
parts, noise = (Descent(steps=20, rate=0.1),), {"training": (1.0,)}
epsilons = [pipeline_epsilon(parts, noise, 1e-5, accountant=name) for name in ("pld", "rdp")]
light = not {"scipy.signal", "scipy.stats"} & set(sys.modules)
epsilons.append(pipeline_epsilon((*parts, Hops(count=1)), {**noise, "hops": (2.0,)}, 1e-5))
import dp_accounting
from scipy import stats
epsilons += [dp_accounting.get_epsilon_gaussian(1.0, 1e-5), float(stats.norm.cdf(1.0))]
assert stats.norm is sys.modules["scipy.stats"].norm
print(light, [epsilon.hex() for epsilon in epsilons])
"""
    lines = [
        subprocess.run([sys.executable, "-c", before + script], capture_output=True, text=True, check=True).stdout
        for before in ("", "import scipy.signal, scipy.stats, dp_accounting")
    ]
    assert lines[0].startswith("True") and lines[1].startswith("False") and lines[0][4:] == lines[1][5:]


def test_a_library_that_needs_more_than_names_while_it_loads_gets_the_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = tmp_path / "eager_library"
    room.mkdir()
    content = "from eager_library import part\nfrom colorsys import ONE_THIRD\nTHREE = 1 / ONE_THIRD"
    (room / "__init__.py").write_text(content)
    (room / "part.py").write_text("from colorsys import hls_to_rgb")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    late = LateModule("eager_library", later=("colorsys",))
    assert late.THREE == 1 / (1 / 3)
    assert late.part.hls_to_rgb is sys.modules["colorsys"].hls_to_rgb  # type: ignore[attr-defined]


def test_no_module_of_a_light_room_loads_torch() -> None:  # 2 CPU s: imports every module of four rooms
    script = """
import importlib, pkgutil, sys
for name in ("graphs", "mechanisms", "methods", "privacy"):
    room = importlib.import_module("graphveil." + name)
    for module in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
        if module.name.endswith("_kernel"):
            continue  # imported where tensors lie on a GPU
        importlib.import_module(module.name)
        if "torch" in sys.modules:
            sys.exit(module.name)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("from graphveil.attacks import AttackResult, Limit", ("torch", "scipy.stats", "graphveil.attacks.influence")),
        ("import graphveil.hierarchy", ("numba",)),
        ("import graphveil.federation", ("torch", "grpc", "numba", "scipy")),
        ("from graphveil.federation import VFGNN", ("grpc",)),
        (
            "from graphveil.mechanisms import catalogue; [info.facts() for info in catalogue()]",
            ("torch", "numpy", "scipy", "numba"),
        ),
        ("import graphveil.methods.registry", ("torch", "torch_geometric", "numba", "scipy", "sklearn")),
        pytest.param(
            # A folder is all there is; devices and collectors elsewhere have the rest.
            "from graphveil.collection.export import export, learning, moved, reports, suspects",
            ("sqlalchemy",),
            marks=pytest.mark.slow,  # it loads training
        ),
    ],
)
def test_what_is_read_and_listed_loads_nothing_heavy(code: str, heavy: tuple[str, ...]) -> None:
    script = f"import sys; {code}; print(sorted(set({heavy!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
