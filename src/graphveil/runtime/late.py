"""What loads when it is first used: names of a room (PEP 562), and libraries that most plans and settings do not need.

    from graphveil.runtime.late import Tensor, polars, special, torch

Importing torch takes longer than all else that a plan does.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING


def lazy_names(room: str, homes: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a room, to be bound to these names in its `__init__`.

    Args:
        room: the room's own `__name__`.
        homes: each public name and the module of the room that it is in; a home that ends with the name is the name
            itself, a room or module. No other module may be called like a public name: once loaded, it would stand
            in that name's place.
    """

    def load(name: str) -> object:
        # AttributeError, which `hasattr` and `from ... import` expect; any other error would end them.
        if name not in homes:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        module = import_module(f"{room}.{homes[name]}")
        value: object = module if homes[name].rpartition(".")[2] == name else getattr(module, name)
        setattr(sys.modules[room], name, value)  # looked up once
        return value

    return load, lambda: sorted(vars(sys.modules[room])["__all__"])


def homes_of(names: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the module of each name, from the names that each module of a room exports."""
    return {name: module for module, exported in names.items() for name in exported}


class LateModule:
    """A module, of this full name, that is imported when an attribute of it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> object:
        # Stored, because every use asks; the import system waits for a thread that is still loading it.
        library = self.__dict__.get("library")
        if library is None:
            library = self.__dict__["library"] = import_module(self._name)
        return getattr(library, attribute)


if TYPE_CHECKING:
    import polars as polars
    import torch as torch
    from scipy import sparse as sparse
    from scipy import special as special
    from torch import Tensor as Tensor
else:
    polars = LateModule("polars")
    sparse = LateModule("scipy.sparse")
    special = LateModule("scipy.special")
    torch = LateModule("torch")
    Tensor = "torch.Tensor"  # in annotations, which nobody evaluates


@contextmanager
def quiet() -> Iterator[None]:
    """Silence deprecation notices inside PyG and SciPy, and what torch says of CSR and of arrays that are only read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
        warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
        yield
