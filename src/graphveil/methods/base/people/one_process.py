"""What must not be used twice stays in the process that created it.

    copy, clone, thread     the value itself, changed under its `lock`
    pickle, fork            a copy that records what was used, and may use nothing

A copy of an unspent account would ask the same people once more at the first price, unknown to the original.
"""

from __future__ import annotations

import os
from threading import RLock
from typing import Any, Self

from graphveil.errors import BudgetError


class OneProcess:
    """A value whose copies are itself; `lock`: to be held while it is changed."""

    def __init__(self) -> None:
        self.lock, self._process = RLock(), os.getpid()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("lock", "_process")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        # No process has number 0: what is unpickled is a copy, even in the process of its original.
        self.lock, self._process = RLock(), 0

    def require_own_process(self) -> None:
        """Raise BudgetError in a copy that came by pickle or fork."""
        if self._process != os.getpid():
            raise BudgetError(
                "this is a copy from another process or a pickle, and the same people would be asked once more",
                where="ledger",
                remedy="collect in the process that built the method, then hand on what came out; or load the run "
                "folder, whose ledger all processes share",
            )
