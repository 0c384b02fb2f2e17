"""The progress of a computation: the event that every loop reports, and the callback that receives it.

A loop knows how many steps are done; its caller adds what the loop is for and what it has spent (`Progress.named`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Progress:
    """A step of a computation."""

    done: int  # with total: units of work (epochs, steps, bytes); a total of 0 is unknown
    total: int
    stage: str = ""  # what is being done, in words; "" until a caller names it
    epsilon: float | None = None  # what one person has spent so far, where that is known and at stake

    def named(self, stage: str, epsilon: float | None = None) -> Progress:
        """Return the event with what the work is for.

        Args:
            stage, epsilon: as of the class.
        """
        return replace(self, stage=stage, epsilon=epsilon)


ProgressCallback = Callable[[Progress], None]
