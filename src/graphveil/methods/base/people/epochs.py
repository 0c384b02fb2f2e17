"""What devices have paid for the reports of a task, over all epochs in which they answered.

    an equal value    the same answer, drawn from the same noise           no price
    a changed value   an answer of noise of its own                        its price once more
    what a server sees  in how many epochs k somebody has answered         k prices at most

A server cannot count changes: a fresh answer may be the former one by chance, so the number of different answers is
below the number of draws, and would state too little. Each answer is therefore taken for a draw of its own, up to the
number of values that there are: a link has two, a label as many as classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from graphveil.privacy import Assumption, Budget, Ledger, Spend, assume

#: What a guarantee leans on where a device answered more than once.
AGAIN: Final = (assume("permanent-reports"), assume("changes-open"))
_TASK, _REPORT = "task", "report"


@dataclass(frozen=True)
class Paid:
    """What stands behind the reports of a task.

    Args:
        task: its hash, by which its later exports are known. times: by unit of the budget ("features", "labels",
        "links"), how many draws the most asked person may have made; 1 where it names none.
    """

    task: str
    times: Mapping[str, int]

    def spends(self, once: Iterable[Spend]) -> tuple[Spend, ...]:
        """Return what the most asked person may have paid.

        Args:
            once: what one report costs.
        """
        kinds = tuple(once)
        most = max((self.times.get(spend.unit, 1) for spend in kinds), default=0)
        # One row for each report: that of a later epoch stands behind those that are booked, and changes none.
        return tuple(
            replace(spend, parameters={**spend.parameters, _TASK: self.task, _REPORT: number})
            for number in range(1, most + 1)
            for spend in kinds
            if number <= self.times.get(spend.unit, 1)
        )


def follow(ledger: Ledger, paid: Paid, once: Iterable[Spend]) -> Ledger:
    """Return a ledger with everything that a task's devices have paid: what it holds of that is not booked again.

    Args:
        ledger: of a method. paid: for the reports at hand. once: what one report costs.

    Raises:
        BudgetError: the ledger has paid for people of another task, and nothing is left for these.
    """
    new = [spend for spend in paid.spends(once) if spend not in ledger.spends]
    if not new:
        return ledger
    # The limit is each device's own, and was kept before anything was sent; a budget here only writes that down. One
    # that reports of others have used is no such note, and stays as it was declared.
    if all(spend.parameters.get(_TASK) == paid.task for spend in ledger.spends):
        ledger = replace(ledger, budget=tuple(_room(limit, (*ledger.spends, *new)) for limit in ledger.budget))
    return ledger.spend(*new)


def repeat_assumptions(ledger: Ledger | None) -> tuple[Assumption, ...]:
    """Return what a guarantee leans on beside the price: nothing where everybody answered once."""
    spends = () if ledger is None else ledger.spends
    return AGAIN if any(int(spend.parameters.get(_REPORT, 1)) > 1 for spend in spends) else ()


def _room(budget: Budget, spends: Iterable[Spend]) -> Budget:
    of_unit = [spend for spend in spends if spend.unit == budget.unit]
    # The ledger adds exactly, so the sum comes from one: floats would miss it by a digit.
    ledger = Ledger((replace(budget, epsilon=float("inf"), delta=1 - 2**-50),), tuple(of_unit))
    epsilon, delta = ledger.total(budget.unit)
    return replace(budget, epsilon=max(budget.epsilon, epsilon), delta=max(budget.delta, delta))
