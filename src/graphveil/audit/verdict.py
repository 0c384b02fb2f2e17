"""The result of an audit: the claim, the proven lower bound, and whether the two agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from time import perf_counter
from typing import Any, Final, Literal, ParamSpec, get_args

from graphveil.errors import InputError
from graphveil.files.serial import json_safe
from graphveil.runtime.checks import require_choice, require_number

P = ParamSpec("P")
Verdict = Literal["holds", "broken"]

#: Room for the rounding of float64 logarithms; the integers behind them leave nothing over.
ROUNDING: Final = 1e-9


@dataclass(frozen=True)
class Audit:
    """The result of one audit; InputError, which names the field, for a value that cannot be.

    Attributes:
        target: what was audited, and how.
        claimed_epsilon, delta: what the target claims.
        lower_bound: an epsilon that the target costs at least, at that delta.
        false_alarm: how often a right target gets a lower bound above what it costs; 0 where all was enumerated.
        verdict: "broken" when the bound exceeds the claim, or something private shows that no bound covers; "holds"
            means that this audit found nothing, and proves nothing more.
        seconds: how long it took.
        notes: how it was done, and what was found.
    """

    target: str
    claimed_epsilon: float
    delta: float
    lower_bound: float
    false_alarm: float
    verdict: Verdict
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.target:
            raise InputError("the target has no name", where="Audit")
        # NaN fails this too: a bound that is no number must not be printed as one that holds.
        bounds = {"claimed_epsilon": self.claimed_epsilon, "lower_bound": self.lower_bound, "seconds": self.seconds}
        require_number("[0, inf]", "Audit", **bounds)
        require_number("[0, 1)", "Audit", delta=self.delta, false_alarm=self.false_alarm)
        require_choice(get_args(Verdict), "Audit", verdict=self.verdict)
        # An audit cannot be built that contradicts itself, whoever fills in the fields.
        if exceeds(self.lower_bound, self.claimed_epsilon) and self.verdict == "holds":
            raise InputError("the bound exceeds the claim", where="Audit", allowed="verdict broken")

    @property
    def holds(self) -> bool:
        """Whether nothing was found."""
        return self.verdict == "holds"

    def to_dict(self) -> dict[str, Any]:
        """All fields, JSON-safe: infinite numbers are "inf"."""
        return {name: json_safe(getattr(self, name)) for name in self.__dataclass_fields__}


def exceeds(bound: float, claimed: float) -> bool:
    """Whether a lower bound contradicts a claim, both epsilons, by more than rounding."""
    return bound > claimed * (1 + ROUNDING) + ROUNDING * ROUNDING


def judge(
    target: str,
    claimed: float,
    delta: float,
    bound: float,
    false_alarm: float,
    *,
    notes: tuple[str, ...] = (),
    findings: tuple[str, ...] = (),
) -> Audit:
    """Return the audit and its verdict: broken by its bound or by any of `findings`, which stand first in the notes.

    Args:
        claimed, delta: what is claimed of it.
        bound: what epsilon is at least.
        false_alarm: the probability that the bound is too high.
        notes: what else a reader should know.
    """
    # A finding breaks whatever the bound is: a leak beside the mechanisms has no epsilon that a bound could show.
    broken = bool(findings) or exceeds(bound, claimed)
    verdict: Verdict = "broken" if broken else "holds"
    return Audit(target, claimed, delta, max(bound, 0.0), false_alarm, verdict, notes=(*findings, *notes))


def timed(audit: Callable[P, Audit]) -> Callable[P, Audit]:
    """Return an audit whose answer holds the seconds that it took."""

    @wraps(audit)
    def run(*args: P.args, **kwargs: P.kwargs) -> Audit:
        start = perf_counter()
        result = audit(*args, **kwargs)
        return replace(result, seconds=perf_counter() - start)

    return run
