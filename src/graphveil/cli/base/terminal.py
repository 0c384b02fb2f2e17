"""A person at a terminal, who is asked one question after the other."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from graphveil.cli.base.console import complain


class InputEnded(Exception):
    """The person has ended the input."""


@dataclass(frozen=True)
class Terminal:
    """Where questions are asked."""

    hear: Callable[[], str | None]  # the next line typed; None: the input has ended
    say: Callable[[str], None]  # prints a line
    show: Callable[[str], None]  # prints a question

    @classmethod
    def here(cls) -> Self | None:
        """Return the terminal of this process; None: there is none."""
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return None
        return cls(lambda: sys.stdin.readline() or None, complain, _show)

    def typed(self, question: str, default: str) -> str:
        """Ask, and return what was typed without spaces around it; InputEnded where nothing more will be.

        Args:
            default: shown in brackets, unless it is empty.
        """
        self.show(f"{question}{f' [{default}]' if default else ''}: ")
        line = self.hear()
        if line is None:
            raise InputEnded
        return line.strip()


def _show(question: str) -> None:
    sys.stderr.write(question)
    sys.stderr.flush()
