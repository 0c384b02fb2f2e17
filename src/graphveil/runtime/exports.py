"""Names of a room that load on first use (PEP 562): a light module of the room never loads torch or a compiler."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


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
