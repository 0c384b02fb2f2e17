"""Why a device refuses: one code for each reason, the same in every language."""

from __future__ import annotations


class DeviceError(Exception):
    """A refusal.

    Args:
        code: what is wrong, of the standard's table.
        said: what was found, and what is allowed.
        remedy: what to do, as a sentence, where more is known of it than what `refusals` tells of the code.
    """

    def __init__(self, code: str, said: str, remedy: str = "") -> None:
        super().__init__(f"{code}: {said}")
        self.code = code
        self.said = said
        self.remedy = remedy
