"""A method's account: what a step costs is booked before anything is read, and stays booked whatever follows.

    collected by the method itself   pay, then read                                   one collection, one spend
    handed in (reports, sums)        free if this account paid for them; else booked as one collection more

Where the ledger has an account on disk, a payment is on disk before `pay` returns.  A collection is identified by a
digest of what was sent, which is public wherever the reports are.  Devices may have reported in several epochs:

    an equal value      the same report, drawn from the same noise             no price
    a changed value     a report with noise of its own                         its price once more
    what a server sees  the number k of epochs in which somebody reported      k prices at most

A server cannot count changes: a fresh report may equal the former one by chance, so the number of different reports
can be below the number of draws, and would understate the price. Each report therefore counts as a draw of its own, up
to the number of possible values: a link has two, a label as many as classes.
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
    """What people sent, or a curator published; the digest identifies it."""

    @property
    def digest(self) -> str: ...


class Reports(Collection, Protocol):
    """What people sent from their own devices, or in a simulation."""

    @property
    def paid(self) -> TaskPayment | None:
        """What devices have paid; None in a simulation."""


_START: Final = assume("start-public")
EXTRACTOR: Final = assume("extractor-public")
#: What a guarantee leans on if a user sets a parameter: training starts from it, or reads data through it.
_PARAMETER_ASSUMPTIONS: Final = MappingProxyType(
    {"start": _START, "backbone": _START, "statistics": assume("statistics-public")}
)
Value = TypeVar("Value")
Collected = TypeVar("Collected", bound=Collection)


@dataclass(eq=False)
class Account(OneProcess):
    """What was paid, and what for; all methods that ask the same people share it.

    Copies are the account itself: a copied method would otherwise ask people a second time at the first price. In
    another process an account pays only from a ledger on disk, which all processes share.

    Attributes:
        collections: digests of the collections that the ledger has paid for.
        assumes: what was declared about how the settings were chosen, on which the guarantee leans.
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
        """Replace the ledger by the one that `pay` returns for it; return the other value that `pay` returns."""
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
        """Return what `read` returns, once it is paid for: the only order in which private data may be read.

        What the ledger cannot pay is refused first, then what `check` refuses; neither costs anything. Then the price
        is paid, for good and on disk before anything is read; a failure of `read` does not pay it back.

        Args:
            read: reads private data through mechanisms.
            check: looks at public facts alone, and raises for data that `read` could not serve.
        """
        spends = tuple(spends)
        self.afford(*spends)
        if check is not None:
            check()
        self.pay(*spends)
        return read()

    def collect(
        self, spends: Iterable[Spend], read: Callable[[], Collected], *, check: Callable[[], object] | None = None
    ) -> Collected:
        """Return a collection, bought as by `buy`, and remember it, so that training on it again is free."""
        with _with_remedy(_TRAIN_AGAIN_REMEDY) if self.collections else nullcontext():
            collected = self.buy(spends, read, check=check)
        self.remember(collected.digest)
        return collected

    def with_declared_assumptions(
        self, guarantee: Guarantee, parameters: Mapping[str, Any], schema: GraphSchema
    ) -> Guarantee:
        """Return a guarantee that also states its assumptions beside mechanisms: what a user supplied, and how settings
        were chosen.
        """
        # Where nothing is protected there is no promise that could lean on anything.
        if guarantee.unprotected:
            return replace(guarantee, assumes=tuple(dict.fromkeys(guarantee.assumes)))
        supplied = [fact for name, fact in _PARAMETER_ASSUMPTIONS.items() if parameters.get(name) is not None]
        supplied += [EXTRACTOR] if schema.extracted else []
        return replace(guarantee, assumes=tuple(dict.fromkeys((*guarantee.assumes, *supplied, *self.assumes))))

    def remember(self, digest: str) -> None:
        """Remember a collection that was paid for."""
        self.collections |= {digest}

    def facts(self) -> dict[str, Any]:
        assumes = {"assumes": [fact.sentence for fact in self.assumes]} if self.assumes else {}
        return {"collections": sorted(self.collections), "ledger": self.ledger.to_dict(), **assumes}

    def book_collection(self, digest: str, spends: Iterable[Spend]) -> None:
        """Book a collection that was handed in, unless this account has paid for it. Raises BudgetError where the
        budget has no room.
        """
        spends = tuple(spends)
        with self.lock:
            # The very same reports reveal nothing new: they were paid for when they were sent.
            if digest in self.collections or not spends:
                return
            further = " (another collection)" if self.ledger.spends else ""
            # The first collection keeps its plain name, so ledgers of a single one read as they always did.
            with _with_remedy(_UNPAID_REMEDY, _UNPAID):
                self.pay(*(replace(spend, name=spend.name + further) for spend in spends))
            # After paying: a collection that could not be paid for must not be free the next time.
            self.remember(digest)

    def book_reports(self, reports: Reports, spends: Iterable[Spend]) -> None:
        """Book reports that were handed in, unless this account has paid for them: of a task what its devices have
        paid, less what is booked already. Raises BudgetError where the budget has no room.

        Args:
            spends: what one report of each person costs.
        """
        if reports.paid is None:
            self.book_collection(reports.digest, spends)
            return
        with self.lock:
            with _with_remedy(_UNPAID_REMEDY, _UNPAID):
                self.ledger = with_task_paid(self.ledger, reports.paid, spends)
            self.remember(f"task {reports.paid.task}")

    def adopt(self, digest: str, ledger: Ledger) -> None:
        """Take over the ledger of a published graph; if something was paid before, book it as one collection more."""
        name = f"release {digest}"
        with self.lock:
            # A second release of the same graph was drawn with noise of its own, and both together cost both; what
            # other people have paid stays paid.
            if self.ledger.spends or any(collection.startswith("release ") for collection in self.collections):
                self.book_collection(name, ledger.spends)
            else:
                self.ledger = ledger
                self.remember(name)


def restored_account(facts: Mapping[str, Any]) -> Account:
    assumes = tuple(map(assumption_of, facts.get("assumes", ())))
    return Account(Ledger.from_dict(facts["ledger"]), frozenset(facts.get("collections", ())), assumes)


def tensors_digest(parts: Mapping[str, Tensor]) -> str:
    """Return a hash of tensors, their names, shapes and types: 32 hexadecimal digits."""
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
_UNPAID_REMEDY: Final = (
    "fit on the reports that were paid for, or build another method for the others, with an account of its own"
)
_TRAIN_AGAIN_REMEDY: Final = (
    "what was paid for trains again at no cost: fit_reports, or fit_published; other people need another method"
)


@contextmanager
def _with_remedy(remedy: str, prefix: str = "") -> Iterator[None]:
    """Give a BudgetError of the block this remedy, and its text this prefix."""
    try:
        yield
    except BudgetError as error:
        raise BudgetError(prefix + error.what, where=error.where, allowed=error.allowed, remedy=remedy) from error


#: What a guarantee leans on if a device reported more than once.
REPEATED_REPORTS: Final = (assume("permanent-reports"), assume("changes-open"))
#: Parameters of a spend: the hash of its task, and the number of the report.
_TASK, _REPORT = "task", "report"


@dataclass(frozen=True)
class TaskPayment:
    """What devices have paid for the reports of a task.

    Args:
        task: its hash, which its later exports have as well.
        times: by unit of the budget ("features", "labels", "links"), how many draws the most asked person may have
            made; 1 for a unit that is missing.
    """

    task: str
    times: Mapping[str, int]

    def spends(self, report_spends: Iterable[Spend]) -> tuple[Spend, ...]:
        """Return what the most asked person may have paid.

        Args:
            report_spends: what one report of each kind costs.
        """
        kinds = tuple(report_spends)
        most = max((self.times.get(spend.unit, 1) for spend in kinds), default=0)
        # One row for each report: a later epoch adds rows after those that are booked, and changes none.
        return tuple(
            replace(spend, parameters={**spend.parameters, _TASK: self.task, _REPORT: number})
            for number in range(1, most + 1)
            for spend in kinds
            if number <= self.times.get(spend.unit, 1)
        )


def with_task_paid(ledger: Ledger, paid: TaskPayment, report_spends: Iterable[Spend]) -> Ledger:
    """Return a ledger with everything that a task's devices have paid; what it holds already is not booked again.

    Args:
        report_spends: what one report of each kind costs.
    """
    new = [spend for spend in paid.spends(report_spends) if spend not in ledger.spends]
    if not new:
        return ledger
    # Each device enforces its own limit; a budget here only records it, unless other reports have used it.
    if all(spend.parameters.get(_TASK) == paid.task for spend in ledger.spends):
        ledger = replace(ledger, budget=tuple(_enlarged(limit, (*ledger.spends, *new)) for limit in ledger.budget))
    return ledger.spend(*new)


def repeated_report_assumptions(ledger: Ledger | None) -> tuple[Assumption, ...]:
    """Return what a guarantee leans on if somebody reported more than once."""
    spends = () if ledger is None else ledger.spends
    return REPEATED_REPORTS if any(int(spend.parameters.get(_REPORT, 1)) > 1 for spend in spends) else ()


def _enlarged(budget: Budget, spends: Iterable[Spend]) -> Budget:
    """Return a budget that covers these spends."""
    of_unit = [spend for spend in spends if spend.unit == budget.unit]
    # A ledger adds exactly: a sum of floats would miss its total by a digit.
    ledger = Ledger((replace(budget, epsilon=float("inf"), delta=1 - 2**-50),), tuple(of_unit))
    epsilon, delta = ledger.total(budget.unit)
    return replace(budget, epsilon=max(budget.epsilon, epsilon), delta=max(budget.delta, delta))
