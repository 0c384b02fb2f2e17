"""What loads on first use: names of a room (PEP 562), and libraries that most plans and settings do not need.

    from graphveil.runtime.late import Tensor, polars, special, torch

Importing torch takes longer than all else that a plan does.
"""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING


def lazy_names(room: str, homes: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a room, to be bound to these names in its `__init__`.

    Args:
        room: the room's own `__name__`.
        homes: each public name and the module of the room that defines it. Where the module's name ends with the public
            name, the name is that module. No other module may have a public name: once loaded, it would replace it.
    """

    def load(name: str) -> object:
        # AttributeError, which `hasattr` and `from ... import` expect; they would not catch another error.
        if name not in homes:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        module = import_module(f"{room}.{homes[name]}")
        value: object = module if homes[name].rpartition(".")[2] == name else getattr(module, name)
        setattr(sys.modules[room], name, value)  # looked up once
        return value

    return load, lambda: sorted(vars(sys.modules[room])["__all__"])


def late_names(room: str, file: str) -> dict[str, str]:
    """Return each name that a room imports for type checkers alone, and its module: late names are listed only there.

    Args:
        room, file: the room's own `__name__` and `__file__`.
    """
    tests = [node for node in ast.parse(Path(file).read_text("utf-8")).body if isinstance(node, ast.If)]
    imports = [node for test in tests for node in test.body if isinstance(node, ast.ImportFrom)]
    names = [(name.name, str(node.module).removeprefix(room)) for node in imports for name in node.names]
    return {name: module.lstrip(".") or name for name, module in names}


class LateModule:
    """A module, of this full name, that is imported when an attribute of it is first asked for.

    Args:
        later: modules that it imports but few calls need; they load when something in them is used.
    """

    __slots__ = ("__dict__", "_later", "_name")

    def __init__(self, name: str, *, later: tuple[str, ...] = ()) -> None:
        self._name, self._later = name, later

    def __getattr__(self, attribute: str) -> object:
        # Runs once: from then on this object has the names of the module. The import system waits for a thread that
        # is still loading it.
        library = _imported(self._name, self._later)
        self.__dict__ = library.__dict__
        return getattr(library, attribute)


def _imported(name: str, later: tuple[str, ...]) -> ModuleType:
    try:
        with _stood_in(later):
            return import_module(name)
    except (AttributeError, TypeError):
        if not later:
            raise
        # Another version uses these modules while it loads: it is imported again, with the real modules.
        for loaded in [loaded for loaded in sys.modules if f"{loaded}.".startswith(f"{name}.")]:
            del sys.modules[loaded]
        return import_module(name)


class _LateName:
    """A function or object of a module; calling it, or asking it for an attribute, loads the module."""

    def __init__(self, module: str, name: str) -> None:
        self._module, self._attribute = module, name

    def __call__(self, *args: object, **options: object) -> object:
        return getattr(import_module(self._module), self._attribute)(*args, **options)

    def __getattr__(self, attribute: str) -> object:
        return getattr(getattr(import_module(self._module), self._attribute), attribute)


class _StandIn(ModuleType):
    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)  # what the import system looks for
        return _LateName(self.__name__, name)


@contextmanager
def _stood_in(names: Sequence[str]) -> Iterator[None]:
    """Let an import inside the block bind stand-ins for modules that are not loaded yet; removes them afterwards."""
    absent = [name for name in names if name not in sys.modules]
    sys.modules.update({name: _StandIn(name) for name in absent})
    try:
        yield
    finally:
        for name in absent:
            if isinstance(sys.modules.get(name), _StandIn):
                del sys.modules[name]


if TYPE_CHECKING:
    import dp_accounting as dp_accounting
    import polars as polars
    import torch as torch
    from scipy import sparse as sparse
    from scipy import special as special
    from torch import Tensor as Tensor
    from torch import nn as nn
else:
    # Few of its functions use these two, which take longer to load than most accounting takes.
    dp_accounting = LateModule("dp_accounting", later=("scipy.signal", "scipy.stats"))
    polars = LateModule("polars")
    sparse = LateModule("scipy.sparse")
    special = LateModule("scipy.special")
    torch = LateModule("torch")
    nn = LateModule("torch.nn")
    Tensor = "torch.Tensor"  # in annotations, which nobody evaluates


@contextmanager
def quiet() -> Iterator[None]:
    """Silence deprecation notices inside PyG and SciPy, and warnings of torch about CSR and read-only arrays."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
        warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
        yield
