"""What must not be used twice stays in the process that made it.

    copy, clone, thread     the value itself, one at a time (`lock`)
    pickle, fork            a copy that knows what was used, and may use nothing

A copy of an unspent account would ask the same people once more at the first price, and neither would know of it.
"""

from __future__ import annotations

import os
from threading import RLock
from typing import Any, Self

from graphveil.errors import BudgetError


class OneProcess:
    """A value whose copies are itself; `lock`: the lock of whoever changes it."""

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
        # No process has this number: what is unpickled is a copy, in the process of its original too.
        self.lock, self._process = RLock(), 0

    def require_own_process(self) -> None:
        """Refuse a copy that came by pickle or fork. Raises BudgetError where it is one."""
        if self._process != os.getpid():
            raise BudgetError(
                "this is a copy from another process or a pickle, and the same people would be asked once more",
                where="ledger",
                remedy="collect in the process that built the method, then hand on what came out; or load the run "
                "folder, whose ledger all processes share",
            )
