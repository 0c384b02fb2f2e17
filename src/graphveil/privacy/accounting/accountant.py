"""What several mechanisms cost together.

Pure local guarantees add up. For stacks of Gaussian and sampled mechanisms the number we print comes from
the privacy-loss-distribution accountant of dp-accounting (exact up to a pessimistic grid); Renyi accounting
is the cross-check. Central-limit accounting reports less than was spent and is not offered.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

from graphveil.errors import InputError
from graphveil.privacy.statement.assumption import assume
from graphveil.privacy.statement.guarantee import Guarantee
from graphveil.privacy.statement.unit import ProtectedUnit, together
from graphveil.runtime.checks import require_number, require_whole
from graphveil.runtime.late import dp_accounting

if TYPE_CHECKING:
    from dp_accounting import DpEvent

AccountantName = Literal["pld", "rdp"]

# Fixed, so that the same event always gives the same epsilon. Whole orders only: their series are finite.
PLD_GRID: Final = 1e-4
RDP_ORDERS: Final = (*range(2, 64), 80, 96, 128, 192, 256, 384, 512, 768, 1024)


def compose(guarantees: Iterable[Guarantee], *, unit: ProtectedUnit | None = None) -> Guarantee:
    """The guarantee of one person whose data went through all of `guarantees`: epsilons and deltas add up.

    Args:
        guarantees: at least one, all with the same relation, model and observers.
        unit: the unit of the result; default: the different units together.

    Raises:
        InputError: there are none, or they differ in relation, model or observers.

    >>> from graphveil.mechanisms import MultiBit, RandomizedResponse
    >>> features = MultiBit(epsilon=1.0, dimension=6, low=0.0, high=40.0)
    >>> compose([features.guarantee, RandomizedResponse(epsilon=2.0, classes=3).guarantee]).epsilon
    3.0
    """
    parts = tuple(guarantees)
    if not parts:
        raise InputError("nothing to compose", allowed="at least one guarantee")
    first = parts[0]
    # An epsilon under "replace" may be twice that under "add/remove", and one against the server says nothing of a
    # reader: numbers that mean different things have no sum.
    for name in ("relation", "model", "against"):
        values = {getattr(part, name) for part in parts}
        if len(values) > 1:
            listed = " and ".join(repr(value) for value in sorted(map(str, values)))
            raise InputError(f"guarantees with {name} {listed} cannot be composed", remedy="state them side by side")
    epsilon = math.fsum(part.epsilon for part in parts)
    # fsum rounds once, at the end: the order of the parts does not change what is printed.
    delta = math.fsum(part.delta for part in parts)
    # With delta 1 every mechanism satisfies the guarantee, so it says nothing: infinity is the honest number.
    if delta >= 1.0:
        epsilon, delta = math.inf, 0.0
    # One void part voids the whole: whoever can remove the noise of that part learns that part of the person.
    reasons = tuple(dict.fromkeys(part.void for part in parts if part.void))
    return Guarantee(
        unit=unit or together(dict.fromkeys(part.unit for part in parts)),
        relation=first.relation,
        model=first.model,
        epsilon=epsilon,
        delta=delta,
        against=first.against,
        assumes=tuple(dict.fromkeys(fact for part in parts for fact in part.assumes)),
        void="; ".join(reasons) or None,
        parts=parts,
    )


def either(guarantees: Iterable[Guarantee]) -> Guarantee:
    """The guarantee of one person whose data went through one of `guarantees`: the largest epsilon and delta. Parallel
    composition: two data sets that differ in one person differ in the input of one mechanism alone, because which
    one reads that person was fixed in public before anybody reported.

    Raises:
        InputError: as `compose`.

    >>> from graphveil.mechanisms import MultiBit, RandomizedResponse
    >>> features = MultiBit(epsilon=1.0, dimension=6, low=0.0, high=40.0)
    >>> either([features.guarantee, RandomizedResponse(epsilon=2.0, classes=3).guarantee]).epsilon
    2.0
    """
    # `compose` checks whether the parts may be compared at all; the sums that it returns are replaced.
    whole = compose(guarantees)
    epsilon, delta = (max(getattr(part, name) for part in whole.parts) for name in ("epsilon", "delta"))
    return replace(whole, epsilon=epsilon, delta=delta, assumes=(*whole.assumes, assume("one-of-reports")))


def share_out(epsilon: float, weights: Sequence[float]) -> tuple[float, ...]:
    """Epsilon divided over parts that are all released, in proportion to public weights; the parts add up to no more.

    Args:
        epsilon: of all parts together, finite and positive.
        weights: one a part, finite and above 0, the same for everybody and fixed before anything is collected.

    Raises:
        InputError: epsilon or a weight is outside its range, or there is no part.

    >>> share_out(2.0, (1, 3))
    (0.5, 1.5)
    """
    require_number("(0, inf)", epsilon=epsilon)
    if not weights or not all(0 < weight < math.inf for weight in weights):
        raise InputError(f"weights are {list(weights)}", allowed="finite numbers above 0, one for each part")
    total = math.fsum(weights)
    shares = [epsilon * weight / total for weight in weights]
    # Rounding may leave the sum an ulp above what was promised; the largest part gives that up.
    while math.fsum(shares) > epsilon:
        largest = shares.index(max(shares))
        shares[largest] = math.nextafter(shares[largest], 0.0)
    return tuple(shares)


def several(guarantee: Guarantee, count: int) -> Guarantee:
    """What the guarantee of one unit says of k = `count` units at once: group privacy, for any mechanism. Epsilon
    becomes k epsilon and delta the sum of e^(i epsilon) delta over i < k (Vadhan, "The complexity of differential
    privacy", 2017, Lemma 2.2). Where that delta reaches 1 nothing is promised: epsilon is infinity.

    Args:
        guarantee: of one unit.
        count: how many of them change together.

    Raises:
        InputError: the count is below 1.
    """
    require_whole(1, count=count)
    # A path of k neighbouring data sets leads from one to the other; each step multiplies by at most e^epsilon.
    epsilon, delta = count * guarantee.epsilon, guarantee.delta
    if delta:
        # exp overflows above 709; a usable delta times e^700 is far beyond 1 and ends as "nothing is promised".
        delta *= sum(math.exp(min(i * guarantee.epsilon, 700.0)) for i in range(count))
    if delta >= 1.0:
        epsilon, delta = math.inf, 0.0
    return replace(guarantee, unit=guarantee.unit.times(count), epsilon=epsilon, delta=delta, parts=())


def epsilon_of(event: DpEvent, delta: float, accountant: AccountantName = "pld") -> float:
    """The epsilon of a dp-accounting event at `delta`, for adding or removing one unit.

    Args:
        event: any composition of dp-accounting events.
        delta: in (0, 1).
        accountant: "pld" (tight, pessimistic) or "rdp" (looser, fast).

    Raises:
        InputError: delta or the accountant's name is not allowed.
    """
    require_number("(0, 1)", delta=delta)
    if accountant == "rdp" and not _is_or_holds_selection(event):

        @cache
        def epsilon(index: int) -> float:
            return float(
                dp_accounting.rdp.RdpAccountant(orders=RDP_ORDERS[index : index + 1]).compose(event).get_epsilon(delta)
            )

        low, high = 0, len(RDP_ORDERS) - 1
        while low < high:
            middle = (low + high) // 2
            # To the left also where both are infinite: so are all higher orders.
            low, high = (middle + 1, high) if epsilon(middle + 1) < epsilon(middle) else (low, middle)
        # For a tiny spend only the lowest order may show that it costs nothing.
        return min(epsilon(low), epsilon(0))
    # A new accountant each time, with our fixed grids: an accountant keeps a ledger, and would add earlier events.
    if accountant == "pld":
        single_use = dp_accounting.pld.PLDAccountant(value_discretization_interval=PLD_GRID)
    elif accountant == "rdp":
        single_use = dp_accounting.rdp.RdpAccountant(orders=RDP_ORDERS)
    else:
        raise InputError(f"accountant is {accountant!r}", allowed="pld, rdp")
    return float(single_use.compose(event).get_epsilon(delta))


def _is_or_holds_selection(event: DpEvent) -> bool:
    """Whether an event is or contains a selection, whose bound at one order needs all the other orders."""
    inner = *getattr(event, "events", ()), *((event.event,) if hasattr(event, "event") else ())
    return isinstance(event, dp_accounting.dp_event.RepeatAndSelectDpEvent) or any(map(_is_or_holds_selection, inner))
