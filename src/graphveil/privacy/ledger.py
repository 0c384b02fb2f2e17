"""The account of what a collection has spent, and the refusal of what it cannot pay.

Amounts are added up exactly, as the decimals that they are written as, and sums are rounded up to whole units: 10^-9
of epsilon and 10^-18 of delta. So 0.1 + 0.2 fits into 0.3, and three thirds into 1; what is spent can exceed a budget
with more digits by less than one unit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final, Protocol

from graphveil.errors import BudgetError, InputError
from graphveil.files.serial import number_to_json
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.privacy.statement.assumption import assume
from graphveil.privacy.statement.guarantee import epsilon_from_json, require_fields
from graphveil.runtime.checks import require_number

_NANO: Final = 10**9
_ATTO: Final = 10**18
#: What a ledger in a file cannot check.
ONE_COPY: Final = assume("one-copy")
# Relative distance from a whole unit that only floating point can have caused: 0.1 three times must fit into 0.3.
_SLACK: Final = Fraction(1, 10**12)
_Amount = Fraction | float  # a float is infinity


@dataclass(frozen=True)
class Budget:
    """The most that may be spent on one unit.

    Args:
        unit: the unit of protection ("features", "labels", "edges").
        epsilon: at least 0; infinity declares the unit unprotected.
        delta: in [0, 1).
    """

    unit: str
    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        # Infinity is allowed on purpose: "not protected" has to be declared as loudly as a number.
        _check_amounts(f"budget {self.unit!r}", self.unit, self.epsilon, self.delta)


@dataclass(frozen=True)
class Spend:
    """One use of one mechanism on one unit.

    Args:
        name: what it was spent on ("feature reports").
        unit: the unit of the budget it is paid from.
        mechanism: the mechanism's name.
        parameters: its public parameters.
        epsilon, delta: the price.
    """

    name: str
    unit: str
    mechanism: str
    parameters: Mapping[str, float | int | str] = field(hash=False)
    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        _check_amounts(f"spend {self.name!r}", self.unit, self.epsilon, self.delta)
        if not self.name or not self.mechanism:
            raise InputError("a spend needs a name and a mechanism")
        for key, value in self.parameters.items():
            # A ledger is published beside the model: a tensor among the parameters could carry private data out.
            if not isinstance(value, int | float | str):
                raise InputError(f"parameter {key!r} is {type(value).__name__}", allowed="a number or a text")
        # A copy: the caller may change its own mapping later, a ledger must not move with it.
        object.__setattr__(self, "parameters", dict(self.parameters))


class Account(Protocol):
    """Where the spends of a ledger are durable, perhaps for several processes at once."""

    def settle(self, previous: Ledger, paid: Ledger) -> Ledger:
        """Store durably what `paid` has beyond `previous`, and return everything that the account then holds.

        Args:
            previous: the ledger that the caller had before spending.
            paid: the same ledger with the new spends at its end.

        Raises:
            BudgetError: other processes have spent what was left; nothing is stored then.
        """


@dataclass(frozen=True)
class Ledger:
    """Budgets and what was spent of them, in order; spending gives a new ledger.
    With an `account`, a spend is durable there before `spend` returns, so before any data is read. `void` says why the
    noise that was paid for protects nobody; None: it protects.

    >>> from graphveil.privacy import Ledger, Spend
    >>> ledger = Ledger.open({"features": (1.0, 0.0)})
    >>> ledger = ledger.spend(Spend("first half", "features", "multi-bit", {"dimension": 6}, 0.4))
    >>> ledger.total("features"), ledger.remaining("features")
    ((0.4, 0.0), (0.6, 0.0))
    """

    budget: tuple[Budget, ...]
    spends: tuple[Spend, ...] = ()
    account: Account | None = field(default=None, compare=False, repr=False)
    # Not compared: it does not change what was spent.
    void: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        # Two budgets of one unit would each pay in full, and nobody declared their sum.
        units = [entry.unit for entry in self.budget]
        if not units or len(set(units)) != len(units):
            raise InputError(f"budgets for {units}", where="ledger", allowed="one for each unit")
        # Checked whenever a ledger is built, from a file too: no ledger in use exceeds its budget. In order, so that
        # the refusal names the first spend that does not fit, and no later negative amount makes up for it.
        used: dict[str, tuple[_Amount, _Amount]] = {}
        for spend in self.spends:
            entry = _budget_for(self.budget, spend.unit)
            epsilon, delta = used.get(spend.unit, (Fraction(0), Fraction(0)))
            # Fractions do not round, so thousands of small spends cannot slip below a budget together.
            total = epsilon + _exact(spend.epsilon), delta + _exact(spend.delta)
            if not (_fits(total[0], entry.epsilon, _NANO) and _fits(total[1], entry.delta, _ATTO)):
                raise _refusal(
                    spend, entry, _rounded_up_units(epsilon, _NANO) / _NANO, _rounded_up_units(delta, _ATTO) / _ATTO
                )
            used[spend.unit] = total

    @classmethod
    def open(cls, budgets: Mapping[str, tuple[float, float]]) -> Ledger:
        """An empty ledger with the budgets {unit: (epsilon, delta)}; InputError for anything else."""
        try:
            budget = tuple(Budget(unit, epsilon, delta) for unit, (epsilon, delta) in budgets.items())
        except InputError:
            raise
        except (AttributeError, TypeError, ValueError) as error:
            allowed = 'a pair for each unit, such as {"features": (1.0, 0.0)}'
            raise InputError(f"budgets are {budgets!r}", where="ledger", allowed=allowed) from error
        return cls(budget)

    def spend(self, *spends: Spend) -> Ledger:
        """The ledger after a step made of `spends`, which is checked as a whole; this ledger stays as it is. Raises
        BudgetError where a spend has no budget or would exceed it.
        """
        # Building the new ledger checks the whole step; only then is it made durable, so no step is ever half paid.
        after = replace(self, spends=self.spends + spends)
        return after if self.account is None else self.account.settle(self, after)

    def detached(self) -> Ledger:
        """The same budgets and spends without an account, to try what could be paid."""
        return replace(self, account=None)

    def declare(self, unit: str, epsilon: float, delta: float = 0.0) -> Ledger:
        """The ledger with a budget for one more unit: other people, or other data of the same people.

        Args:
            unit: whose budget it is, by a name that the ledger does not have yet.
            epsilon: the most that may be spent on it.
            delta: the most of delta, in [0, 1).

        Raises:
            InputError: the unit has a budget already; budgets are declared once.
        """
        return replace(self, budget=(*self.budget, Budget(unit, epsilon, delta)))

    def total(self, unit: str) -> tuple[float, float]:
        """Epsilon and delta spent on `unit` so far, by adding up."""
        # A unit without a budget is an error: a mistyped name would read as "nothing was spent".
        _budget_for(self.budget, unit)
        # Sequential composition, which holds for adaptive steps too; a tighter composition is a single spend.
        epsilon, delta = _sum_for(unit, self.spends)
        return epsilon / _NANO, delta / _ATTO

    def remaining(self, unit: str) -> tuple[float, float]:
        """Epsilon and delta that may still be spent on `unit`; an infinite budget stays infinite."""
        entry = _budget_for(self.budget, unit)
        epsilon, delta = _sum_for(unit, self.spends)
        left = math.inf if math.isinf(entry.epsilon) else (_in_units(entry.epsilon, _NANO) - epsilon) / _NANO
        # Both charges were rounded up on their own, so a difference may fall below zero.
        return max(left, 0.0), max((_in_units(entry.delta, _ATTO) - delta) / _ATTO, 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Budgets and spends as JSON values; infinity becomes the string "inf", and `void` is there where it is set."""
        return {
            **({} if self.void is None else {"void": self.void}),
            "budget": [{"unit": b.unit, "epsilon": number_to_json(b.epsilon), "delta": b.delta} for b in self.budget],
            "spends": [_spend_to_dict(spend) for spend in self.spends],
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Ledger:
        """The inverse of `to_dict`; InputError or BudgetError for a ledger that does not add up."""
        # Exactly these fields: an unknown one, silently ignored, could be a spend that a newer version wrote.
        require_fields("ledger", fields, {"budget", "spends"} | ({"void"} & set(fields)))
        try:
            for entry in fields["budget"]:
                require_fields("ledger budget", entry, {"unit", "epsilon", "delta"})
            budget = tuple(
                Budget(entry["unit"], epsilon_from_json(entry["epsilon"]), entry["delta"]) for entry in fields["budget"]
            )
            void = None if fields.get("void") is None else str(fields["void"])
            return cls(budget, tuple(_spend_from_dict(entry) for entry in fields["spends"]), void=void)
        # A file that somebody else wrote may hold any JSON: the refusal is one of ours, whatever the kind of the value.
        except (TypeError, AttributeError) as error:
            raise InputError(f"a value of another kind ({error})", where="ledger") from error


def _spend_to_dict(spend: Spend) -> dict[str, Any]:
    parameters = {
        key: number_to_json(value) if isinstance(value, float) else value for key, value in spend.parameters.items()
    }
    return {**vars(spend), "parameters": parameters, "epsilon": number_to_json(spend.epsilon)}


def _spend_from_dict(fields: Mapping[str, Any]) -> Spend:
    require_fields("ledger spend", fields, set(Spend.__dataclass_fields__))
    return Spend(**{**fields, "epsilon": epsilon_from_json(fields["epsilon"])})


def _check_amounts(where: str, unit: str, epsilon: float, delta: float) -> None:
    if not isinstance(unit, str) or not unit.strip():
        raise InputError(f"unit is {unit!r}", where=where, allowed="a text that is not empty")
    # NaN would make every later sum NaN, which no comparison refuses.
    require_number("[0, inf]", where, epsilon=epsilon)
    require_number("[0, 1)", where, delta=delta)


def _budget_for(budget: tuple[Budget, ...], unit: str) -> Budget:
    for entry in budget:
        if entry.unit == unit:
            return entry
    units = ", ".join(entry.unit for entry in budget)
    raise BudgetError(f"no budget was declared for {unit!r}", where="ledger", allowed=units)


def _refusal(spend: Spend, entry: Budget, epsilon: float, delta: float) -> BudgetError:
    return BudgetError(
        f"{spend.name!r} costs epsilon {rounded_up(spend.epsilon)} and delta {rounded_up(spend.delta)} on "
        f"{spend.unit!r}, of which epsilon {rounded_up(epsilon)} and delta {rounded_up(delta)} are spent already",
        where="ledger",
        allowed=f"epsilon {rounded_up(entry.epsilon)} and delta {rounded_up(entry.delta)} in total",
        remedy="nothing was spent: lower the price of the step or declare a larger budget before collecting",
    )


def _sum_for(unit: str, spends: tuple[Spend, ...]) -> tuple[float, float]:
    unit_spends = [spend for spend in spends if spend.unit == unit]
    epsilon: _Amount = sum((_exact(spend.epsilon) for spend in unit_spends), Fraction(0))
    delta: _Amount = sum((_exact(spend.delta) for spend in unit_spends), Fraction(0))
    return _rounded_up_units(epsilon, _NANO), _rounded_up_units(delta, _ATTO)


def _fits(total: _Amount, budget: float, scale: int) -> bool:
    """Whether a sum is at most a budget, up to the error of floating point."""
    # The second test grants what `remaining` printed: it counts in the same rounded units.
    return total * (1 - _SLACK) <= _exact(budget) or _rounded_up_units(total, scale) <= _in_units(budget, scale)


def _in_units(amount: float, scale: int) -> float:
    """`amount`, a price or a budget, in integer units, rounded up (an int, or the float inf)."""
    return _rounded_up_units(_exact(amount), scale)


def _exact(amount: float) -> _Amount:
    # repr gives the decimal a user typed (0.1), not the binary number beside it, so sums come out as on paper.
    return math.inf if math.isinf(amount) else Fraction(repr(float(amount)))


def _rounded_up_units(amount: _Amount, scale: int) -> float:
    # The slack comes off first: 0.30000000000000004 is 0.3 up to floating point, so 300000000 units and no more.
    return amount if isinstance(amount, float) else math.ceil(amount * scale * (1 - _SLACK))
