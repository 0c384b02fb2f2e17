"""Hands what a run releases to the tracker that was asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from graphveil.cli.base.console import complain
from graphveil.cli.base.near import nearest
from graphveil.errors import InputError
from graphveil.reports.tracking.trackers import TRACKERS, find_tracker

if TYPE_CHECKING:
    from graphveil.reports.base.record import RunRecord


def tracker(name: str | None, destination: str | None) -> Callable[[RunRecord], None]:
    """What is to be called with a finished run; refused before anything is trained if that cannot be.

    Args:
        name: one of `TRACKERS`; None: nothing is tracked.
        destination: where to, in the words of its library.

    Raises:
        InputError: there is no such tracker, or a place for none.
        MissingExtraError: its library is not installed.
    """
    if name is None:
        if destination is not None:
            raise InputError("goes with --track", where="--track-to", allowed=", ".join(TRACKERS))
        return lambda record: None
    if name not in TRACKERS:
        raise InputError(f"{name!r}", where="--track", allowed=", ".join(TRACKERS), remedy=nearest(name, TRACKERS))
    write = find_tracker(name)

    def send(record: RunRecord) -> None:
        from graphveil.reports.tracking.released import of_run

        complain(f"tracked by {name}: {write(of_run(record), destination)}")

    return send
