"""A method's account: what a step costs is booked before anything is read, and stays booked whatever happens then.

    asked by the method itself      pay, then read                                    one collection, one spend
    handed in (reports, sums)       free where this account paid for them; else paid as one collection more

Where the ledger has an account on disk, paying is on disk before `pay` returns.  A collection is known by a digest of
what was sent, which is public wherever the reports are.  Devices may have answered over several epochs:

    an equal value    the same answer, drawn from the same noise           no price
    a changed value   an answer of noise of its own                        its price once more
    what a server sees  in how many epochs k somebody has answered         k prices at most

A server cannot count changes: a fresh answer may be the former one by chance, so the number of different answers is
below the number of draws, and would state too little. Each answer is therefore taken for a draw of its own, up to the
number of values that there are: a link has two, a label as many as classes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeVar

from graphveil.errors import BudgetError
from graphveil.graphs.value.schema import GraphSchema
from graphveil.methods.base.people.one_process import OneProcess
from graphveil.privacy import Assumption, Budget, Guarantee, Ledger, Spend, assume
from graphveil.privacy.statement.texts import assumption_of
from graphveil.runtime.late import Tensor, torch


class Collection(Protocol):
    """What people sent, or a curator published; the digest is a hash that tells it from any other one."""

    @property
    def digest(self) -> str: ...


class Reports(Collection, Protocol):
    """What people sent from their own devices, or in a simulation."""

    @property
    def paid(self) -> Paid | None:
        """What devices have paid, None in a simulation."""


_START: Final = assume("start-public")
EXTRACTOR: Final = assume("extractor-public")
#: What a guarantee leans on where a user sets a parameter, because training starts from it or reads by it.
_BROUGHT: Final = MappingProxyType({"start": _START, "backbone": _START, "statistics": assume("statistics-public")})
Value = TypeVar("Value")
Collected = TypeVar("Collected", bound=Collection)


@dataclass(eq=False)
class Account(OneProcess):
    """What was paid, and what for; whoever asks the same people shares it.

    Copies are the account itself: a copied method would otherwise ask people a second time at the first price. In
    another process an account pays only from a ledger on disk, which sees all of them.

    Attributes:
        collections: digests of the collections that the ledger has paid for.
        assumes: what was declared of how the method came by its settings, on which its guarantee leans.
    """

    ledger: Ledger
    collections: frozenset[str] = frozenset()
    assumes: tuple[Assumption, ...] = ()

    def __post_init__(self) -> None:
        super().__init__()

    def afford(self, *spends: Spend) -> None:
        """Raise BudgetError where the ledger cannot pay; nothing is spent."""
        if spends:
            self._require_payer()
        # On a copy without its file: asking whether there is room must leave no trace on disk.
        self.ledger.detached().spend(*spends)

    def pay(self, *spends: Spend) -> None:
        """Spend, for good, before anything is read; what fails afterwards is not paid back."""
        if spends:
            self.charge(lambda ledger: (ledger.spend(*spends), None))

    def charge(self, pay: Callable[[Ledger], tuple[Ledger, Value]]) -> Value:
        """Spend as `pay` says, which takes the ledger and returns the one after it, and something more: return that."""
        self._require_payer()
        # Two threads that each saw enough left would both be paid otherwise.
        with self.lock:
            self.ledger, value = pay(self.ledger)
        return value

    def _require_payer(self) -> None:
        if self.ledger.account is None:
            self.require_own_process()

    def buy(
        self, spends: Iterable[Spend], read: Callable[[], Value], *, check: Callable[[], object] | None = None
    ) -> Value:
        """Return what `read` makes of private data, once it is paid for: the one order in which data may be read.

        What the ledger cannot pay is refused first, then what `check` refuses; neither costs anything. Then the price
        is paid, for good and on disk before anything is read, and whatever happens to `read` does not pay it back.

        Args:
            read: reads private data through mechanisms.
            check: looks at public facts alone, and raises for data that `read` could not serve.
        """
        priced = tuple(spends)
        self.afford(*priced)
        if check is not None:
            check()
        self.pay(*priced)
        return read()

    def collect(
        self, spends: Iterable[Spend], read: Callable[[], Collected], *, check: Callable[[], object] | None = None
    ) -> Collected:
        """Return a collection that is bought, see `buy`, and remembered, so that training on it again is free."""
        with _with_remedy(_TRAIN_AGAIN) if self.collections else nullcontext():
            collected = self.buy(spends, read, check=check)
        self.remember(collected.digest)
        return collected

    def leaning(self, guarantee: Guarantee, parameters: Mapping[str, Any], schema: GraphSchema) -> Guarantee:
        """Return a guarantee with what it leans on beside mechanisms: what a user brought, how settings were chosen."""
        brought = [fact for name, fact in _BROUGHT.items() if parameters.get(name) is not None]
        brought += [EXTRACTOR] if schema.extracted else []
        # Where nothing is protected there is no promise that could lean on anything.
        more = () if guarantee.unprotected else (*brought, *self.assumes)
        return replace(guarantee, assumes=tuple(dict.fromkeys((*guarantee.assumes, *more))))

    def remember(self, digest: str) -> None:
        """Remember a collection that has just been paid for and made."""
        self.collections |= {digest}

    def facts(self) -> dict[str, Any]:
        noted = {"assumes": [fact.sentence for fact in self.assumes]} if self.assumes else {}
        return {"collections": sorted(self.collections), "ledger": self.ledger.to_dict(), **noted}

    def recognise(self, digest: str, spends: Iterable[Spend]) -> None:
        """Book a collection that was handed in, unless this account has paid for it. Raises BudgetError where the
        budget has no room.
        """
        spends = tuple(spends)
        with self.lock:
            # The very same reports tell nothing new: they were paid for when they were sent, whoever hands them in.
            if digest in self.collections or not spends:
                return
            further = " (another collection)" if self.ledger.spends else ""
            # The first collection keeps its plain name, so ledgers of a single one read as they always did.
            with _with_remedy(_OTHERS, _UNPAID):
                self.pay(*(replace(spend, name=spend.name + further) for spend in spends))
            # After paying: a collection that could not be paid for must not be free the next time.
            self.remember(digest)

    def book(self, reports: Reports, spends: Iterable[Spend]) -> None:
        """Book reports that were handed in, unless this account has paid for them.

        Args:
            spends: what one report of each person costs.
        """
        if reports.paid is None:
            self.recognise(reports.digest, spends)
        else:
            self.follow(reports.paid, spends)

    def follow(self, paid: Paid, spends: Iterable[Spend]) -> None:
        """Book what devices have paid for a task, less what is booked already. Raises BudgetError where the budget has
        no room.
        """
        with self.lock:
            with _with_remedy(_OTHERS, _UNPAID):
                self.ledger = follow(self.ledger, paid, spends)
            self.remember(f"task {paid.task}")

    def adopt(self, digest: str, ledger: Ledger) -> None:
        """Take over the account of a graph that was published; book it as one more where something was paid before."""
        name = f"release {digest}"
        with self.lock:
            # A second release of the same graph was drawn with noise of its own, and both together cost both; what
            # other people have paid stays paid.
            if self.ledger.spends or any(collection.startswith("release ") for collection in self.collections):
                self.recognise(name, ledger.spends)
            else:
                self.ledger = ledger
                self.remember(name)


def restored_account(facts: Mapping[str, Any]) -> Account:
    assumes = tuple(map(assumption_of, facts.get("assumes", ())))
    return Account(Ledger.from_dict(facts["ledger"]), frozenset(facts.get("collections", ())), assumes)


def digest_of(parts: Mapping[str, Tensor]) -> str:
    """Return a hash that tells one collection from another: 32 hexadecimal digits."""
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(parts):
        value = parts[name].detach().cpu()
        # Shape and type beside the bytes: the same bytes in another shape are other reports.
        digest.update(f"{name}{tuple(value.shape)}{value.dtype}".encode())
        csr = value.layout == torch.sparse_csr
        for part in (value.crow_indices(), value.col_indices(), value.values()) if csr else (value,):
            digest.update(part.contiguous().numpy().data)
    return digest.hexdigest()


_UNPAID: Final = "this is not the collection that was paid for, and would have to be paid too: "
_OTHERS: Final = (
    "fit on the reports that were paid for, or build another method for the others, with an account of its own"
)
_TRAIN_AGAIN: Final = (
    "what was paid for trains again at no cost: fit_reports, or fit_published; other people need another method"
)


@contextmanager
def _with_remedy(remedy: str, before: str = "") -> Iterator[None]:
    """While the block runs, what a ledger cannot pay is refused with what to do instead, and in words put `before`."""
    try:
        yield
    except BudgetError as error:
        raise BudgetError(before + error.what, where=error.where, allowed=error.allowed, remedy=remedy) from error


#: What a guarantee leans on where a device answered more than once.
AGAIN: Final = (assume("permanent-reports"), assume("changes-open"))
_TASK, _REPORT = "task", "report"


@dataclass(frozen=True)
class Paid:
    """What stands behind the reports of a task.

    Args:
        task: its hash, by which its later exports are known.
        times: by unit of the budget ("features", "labels", "links"), how many draws the most asked person may have
            made; 1 where it names none.
    """

    task: str
    times: Mapping[str, int]

    def spends(self, once: Iterable[Spend]) -> tuple[Spend, ...]:
        """Return what the most asked person may have paid, of what one report costs."""
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
        once: what one report costs.
    """
    new = [spend for spend in paid.spends(once) if spend not in ledger.spends]
    if not new:
        return ledger
    # The limit is each device's own; a budget here only writes it down, unless reports of others have used it.
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
