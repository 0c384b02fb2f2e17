"""Why a device refuses: one code for each reason, the same in every language."""

from __future__ import annotations


class DeviceError(Exception):
    """A refusal.

    Args:
        code: the reason, of the standard's table.
        detail: what was found, and what is allowed.
        remedy: what to do, as a sentence, where it is more specific than what `refusals` says of the code.
    """

    def __init__(self, code: str, detail: str, remedy: str = "") -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.remedy = remedy
