"""Names of a room load on first use, once, and nothing else of the room with them; and each says what it is."""

from __future__ import annotations

import importlib
import inspect
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import graphveil

SOURCE = Path(graphveil.__file__).parent
ROOMS = ("graphveil", "graphveil.graphs", "graphveil.methods", "graphveil.mechanisms", "graphveil.attacks")
ROOM = """
from graphveil.runtime.late import lazy_names

__all__ = ["Value", "inner", "deep"]
__getattr__, __dir__ = lazy_names(__name__, {"Value": "values", "inner": "inner", "deep": "inner.deep"})
"""


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """A room of a class, a room inside it, and a module inside that."""
    folder = tmp_path / "made_room"
    (folder / "inner").mkdir(parents=True)
    (folder / "__init__.py").write_text(ROOM)
    (folder / "values.py").write_text("class Value: ...\n")
    (folder / "inner" / "__init__.py").write_text("")
    (folder / "inner" / "deep.py").write_text("HERE = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("made_room")
    for name in [name for name in sys.modules if name.partition(".")[0] == "made_room"]:
        del sys.modules[name]


def test_nothing_is_loaded_before_it_is_asked_for(room: types.ModuleType) -> None:
    assert "made_room.values" not in sys.modules
    assert room.Value.__module__ == "made_room.values"
    assert "made_room.inner" not in sys.modules


def test_a_home_that_ends_with_the_name_is_a_room_or_a_module(room: types.ModuleType) -> None:
    assert isinstance(room.inner, types.ModuleType) and room.inner.__name__ == "made_room.inner"
    assert room.deep.HERE == 1 and room.deep is room.inner.deep


def test_unknown_names_are_missing_as_python_expects(room: types.ModuleType) -> None:
    assert not hasattr(room, "Other")
    with pytest.raises(AttributeError, match="module 'made_room' has no attribute 'Other'"):
        _ = room.Other
    with pytest.raises(ImportError, match="cannot import name 'Other'"):
        exec("from made_room import Other", {})


@pytest.mark.parametrize("name", ROOMS)
def test_every_listed_name_of_a_room_is_there(name: str) -> None:
    room = importlib.import_module(name)
    assert dir(room) == sorted(room.__all__)
    assert [name for name in room.__all__ if not hasattr(room, name)] == []


def _public_members(room: types.ModuleType) -> Iterator[tuple[str, object]]:
    """The classes and functions that a room lists, and what the package itself defines in these classes."""
    listed = {name: getattr(room, name) for name in room.__all__}
    yield from ((name, value) for name, value in listed.items() if inspect.isclass(value) or inspect.isfunction(value))
    for name, kind in ((name, value) for name, value in listed.items() if inspect.isclass(value)):
        for member in (member for member in dir(kind) if not member.startswith("_")):
            value = getattr(kind, member)
            code = getattr(value, "fget", getattr(value, "func", getattr(value, "__func__", value)))
            if inspect.isfunction(code) and code.__module__.startswith("graphveil"):
                yield f"{name}.{member}", value


@pytest.mark.parametrize("name", sorted(path.parent.name for path in SOURCE.glob("*/__init__.py")))
def test_every_public_member_says_what_it_is(name: str) -> None:
    """Also by the docstring that it inherits; the first room to load torch takes 3 CPU seconds."""
    room = importlib.import_module(f"graphveil.{name}")
    listed = _public_members(room) if hasattr(room, "__all__") else ()
    assert [member for member, value in listed if not inspect.getdoc(value)] == []
