"""What a button would spend, in the library's own words; the server plans again before it believes a page."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from graphveil.studio.commands import SPENDING, Commands
from graphveil.studio.jobs import Jobs
from graphveil.studio.models import Start, Work
from graphveil.studio.refusals import Refusal


class Prices:
    """Plans what a job would spend.

    Args:
        commands: makes the words of the plan.
        jobs: runs it.
    """

    def __init__(self, commands: Commands, jobs: Jobs) -> None:
        self._commands, self._jobs = commands, jobs

    def of(self, start: Start) -> tuple[str | None, dict[str, Any] | None]:
        """Return what a job would spend, None for nothing, and the plan that says so, where there is one."""
        if start.job not in SPENDING:
            return None, None
        if start.job == "compare":
            return _of_comparison(start), None
        plan = self._jobs.query(self._commands.plan(start))
        return self.of_plan(start, plan), plan

    def of_plan(self, work: Work, plan: Mapping[str, Any]) -> str:
        """Return the sentence for the button of what was planned.

        Args:
            work: what would be trained.
            plan: the command's answer.
        """
        sentence = str(plan["guarantee_sentence"])
        if work.reproducible_noise is not None:
            return f"VOID, this protects nobody (reproducible noise): {sentence}"
        times = work.repeats or 1
        return sentence if times == 1 else f"{times} trainings, each of which spends: {sentence}"

    def require(self, start: Start) -> None:
        """Refuse a job that spends something else than its button said."""
        price, _ = self.of(start)
        if start.price != price:
            raise Refusal("other-price", f"the button did not name this price: {price}")


def _of_comparison(start: Start) -> str:
    cells = prod(len(values) for values in start.epsilons.values()) if start.epsilons else 3
    count = cells * len(start.methods) * (start.repeats or 3)
    budgets = "; ".join(
        f"{key} {', '.join(f'{value:g}' for value in listed)}" for key, listed in start.epsilons.items()
    )
    return f"up to {count} trainings, each of which spends its own epsilon ({budgets or 'epsilon 1, 2, 3'})"
