"""Databases of other shapes: brought up to date by steps, whole or not at all, or refused and left as they are."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection, inspect, text

from graphveil.collection.store.store import Store
from graphveil.collection.store.tables import EPOCHS, SETTINGS, Step, opened
from graphveil.errors import InputError
from tests.collection.collections import PEOPLE, begun
from tests.on_device.signing import label


def shaped(url: str, shape: bytes | None) -> None:
    """A collection in a database that says another shape, or none."""
    store = begun(url, label()).store
    with store.engine.begin() as connection:
        connection.execute(SETTINGS.delete().where(SETTINGS.c.name == "shape"))
        if shape is None:
            connection.execute(text("ALTER TABLE epochs DROP COLUMN secret"))
    if shape is not None:
        store.keep("shape", shape)
    store.engine.dispose()


@pytest.mark.parametrize(
    "shape,says", [(None, r"not graphveil's.* another file"), (b"7", r"newer .*shape 7; .*up to 1.* install")]
)
def test_an_unknown_shape_is_refused_and_left_alone(url: str, shape: bytes | None, says: str) -> None:
    shaped(url, shape)
    for _ in range(2):
        with pytest.raises(InputError, match=says) as refused:
            opened(url)
        assert "\n" not in str(refused.value)


def add_column(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE epochs ADD COLUMN motto VARCHAR"))


def columns(url: str, *steps: Step) -> set[str]:
    engine = opened(url, steps)
    names = {column["name"] for column in inspect(engine).get_columns(EPOCHS.name)}
    engine.dispose()
    return names


def test_a_step_is_taken_once_and_whole(url: str) -> None:
    running = begun(url, label())
    running.intake.take([running.report(number, {}) for number in range(5)])
    running.store.engine.dispose()
    with pytest.raises(ZeroDivisionError):
        opened(url, (add_column, lambda _: 1 // 0))  # type: ignore[return-value]
    assert "motto" not in columns(url)
    for _ in range(2):
        assert "motto" in columns(url, add_column)
    with pytest.raises(InputError, match="shape 2"):
        opened(url)
    later = Store(opened(url, (add_column,)))
    status = later.status()
    assert (status["enrolled"], status["received"]) == (PEOPLE, 5)
    later.engine.dispose()
