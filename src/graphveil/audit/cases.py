"""What is needed to audit one mechanism: a small one to enumerate, a large one to sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from graphveil.audit import exact, sampled
from graphveil.audit.verdict import Audit, timed


@dataclass(frozen=True, kw_only=True)
class Case:
    """One mechanism under audit.

    Attributes:
        name: of the mechanism, as the catalogue has it, and what tells this case from others.
        epsilon: what it is built with.
        small: builds the mechanism whose outputs can be enumerated, for an epsilon.
        table: log Pr[output | input] of a small one.
        large: builds the one that is sampled.
        draw: scores of samples of a large one, see `sampled.Draw`.
        samples: of each of two neighbours.
        neighbours: which inputs of the table are neighbours; None: any two.
        independent, complete: see `exact.audit_table`.
        normal: noise is normal, so that samples bound mu.
    """

    name: str
    epsilon: float
    small: Callable[[float], Any]
    table: Callable[[Any], exact.Table]
    large: Callable[[float], Any]
    draw: Callable[[Any], sampled.Draw]
    samples: int = 100_000
    neighbours: Callable[[Any], Sequence[exact.Pair]] | None = None
    independent: bool = False
    complete: bool = True
    normal: bool = False


def audit_exactly(case: Case, *, actual: float | None = None) -> Audit:
    """Enumerate a mechanism's outputs.

    Args:
        actual: the epsilon that is built while that of the case is claimed; None: the same. For tests of audits.
    """

    def run() -> Audit:
        # The claim of the right mechanism, the table of the one that was built: a test of the audit builds a weaker
        # one.
        claimed = case.small(case.epsilon).guarantee
        mechanism = case.small(case.epsilon if actual is None else actual)
        return exact.audit_table(
            case.name,
            claimed,
            case.table(mechanism),
            neighbours=None if case.neighbours is None else case.neighbours(mechanism),
            independent=case.independent,
            complete=case.complete,
        )

    return timed(run)


def audit_samples(
    case: Case, *, actual: float | None = None, false_alarm: float = sampled.FALSE_ALARM, seed: int = 0
) -> Audit:
    """Sample a mechanism; see `audit_exactly`."""

    def run() -> Audit:
        claimed = case.large(case.epsilon).guarantee
        draw = case.draw(case.large(case.epsilon if actual is None else actual))
        options: dict[str, Any] = {"samples": case.samples, "false_alarm": false_alarm, "seed": seed}
        if case.normal:
            return sampled.audit_mu(case.name, claimed.epsilon, claimed.delta, draw, **options)
        return sampled.audit_events(case.name, claimed, draw, **options)

    return timed(run)
