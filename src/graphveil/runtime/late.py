"""Libraries that load when something of them is first used: settings, guarantees and most plans need none of them.

    from graphveil.runtime.late import Tensor, polars, special, torch

Importing torch takes longer than all else that a plan does.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING


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
