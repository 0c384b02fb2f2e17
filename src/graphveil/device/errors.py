"""Why a device refuses: one code for each reason, the same in every language."""

from __future__ import annotations


class DeviceError(Exception):
    """A refusal.

    Args:
        code: what is wrong, of the standard's table.
        said: what was found, and what is allowed.
    """

    def __init__(self, code: str, said: str) -> None:
        super().__init__(f"{code}: {said}")
        self.code = code
        self.said = said
