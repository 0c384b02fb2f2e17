"""Libraries that load when something of them is first used: settings, guarantees and most plans need none of them.

    from graphveil.runtime.late import special, torch

Importing torch takes longer than all else that a plan does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING


class LateModule:
    """A module, of this full name, that is imported when an attribute of it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> object:
        # The import system waits for a thread that is still loading the library. The module is stored, because every
        # use asks for it.
        library = self.__dict__.get("library")
        if library is None:
            library = self.__dict__["library"] = import_module(self._name)
        return getattr(library, attribute)


if TYPE_CHECKING:
    import torch as torch
    from scipy import special as special
else:
    special = LateModule("scipy.special")
    torch = LateModule("torch")
