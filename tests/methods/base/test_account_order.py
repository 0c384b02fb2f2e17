"""In which order an account refuses, pays, reads and remembers; and what is left of it when one of them fails."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from graphveil.errors import BudgetError, InputError
from graphveil.graphs.value.features import features_from_rows
from graphveil.methods.base.people.account import Account, restored_account, tensors_digest
from graphveil.privacy import Ledger, Spend
from graphveil.privacy.ledger_file import LedgerFile, read_ledger


@dataclass(frozen=True)
class Sent:
    """A collection that is known by its digest alone."""

    digest: str


def spend(epsilon: float = 1.0, name: str = "reports") -> Spend:
    return Spend(name, "features", "multi-bit", {"dimension": 3}, epsilon)


def account(budget: float = 1.0) -> Account:
    return Account(Ledger.open({"features": (budget, 0.0)}))


def on_disk(folder: Path, budget: float = 1.0) -> Account:
    return Account(LedgerFile(folder / "ledger.json").open(Ledger.open({"features": (budget, 0.0)})))


def unread() -> Sent:
    raise AssertionError("private data was read")


def test_a_second_collection_that_cannot_be_paid_says_that_the_first_trains_again() -> None:
    once = account()
    with pytest.raises(BudgetError, match="declare a larger budget before collecting"):
        once.collect([spend(2.0)], unread)
    once.collect([spend()], lambda: Sent("reports"))
    with pytest.raises(BudgetError, match="trains again at no cost: fit_reports, or fit_published"):
        once.collect([spend()], unread)


class ReadsFirst(Account):
    """Pays for what it has read already."""

    def buy(self, spends: Any, read: Any, *, check: Any = None) -> Any:
        content = read()
        self.pay(*spends)
        return content


class PaysLater(Account):
    """Pays in memory while it reads, and on disk afterwards."""

    def buy(self, spends: Any, read: Any, *, check: Any = None) -> Any:
        priced, before = tuple(spends), self.ledger
        self.ledger = before.detached().spend(*priced)
        content = read()
        self.ledger = before.spend(*priced)
        return content


class PaysBack(Account):
    """Gives the price back where reading failed."""

    def buy(self, spends: Any, read: Any, *, check: Any = None) -> Any:
        before = self.ledger
        self.pay(*spends)
        try:
            return read()
        except BaseException:
            self.ledger = before
            raise


class ChecksLate(Account):
    """Pays for people whom it then cannot serve."""

    def buy(self, spends: Any, read: Any, *, check: Any = None) -> Any:
        self.pay(*spends)
        if check is not None:
            check()
        return read()


def interrupted() -> None:
    raise KeyboardInterrupt


def unserved() -> None:
    raise InputError("no such people")


@pytest.mark.parametrize(("kind", "spends"), [(Account, 1), (PaysLater, 0), (ReadsFirst, 0)])
def test_the_price_is_on_disk_before_anything_is_read(kind: type[Account], spends: int, tmp_path: Path) -> None:
    """A crash in the middle of reading finds it in the file."""
    file, seen = tmp_path / "ledger.json", list[int]()
    account = kind(on_disk(tmp_path).ledger)
    account.buy([spend()], lambda: seen.append(len(read_ledger(file).spends) if file.exists() else 0))
    assert seen == [spends]


@pytest.mark.parametrize(("kind", "spends"), [(Account, 1), (PaysBack, 0), (ReadsFirst, 0)])
def test_what_fails_while_reading_stays_paid(kind: type[Account], spends: int) -> None:
    own = kind(account().ledger)
    with pytest.raises(KeyboardInterrupt):
        own.buy([spend()], interrupted)
    assert len(own.ledger.spends) == spends


@pytest.mark.parametrize(("kind", "spends"), [(Account, 0), (ChecksLate, 1)])
def test_public_facts_are_looked_at_before_the_price_is_paid(kind: type[Account], spends: int) -> None:
    own = kind(account().ledger)
    with pytest.raises(InputError):
        own.buy([spend()], unread, check=unserved)
    assert len(own.ledger.spends) == spends


def test_what_cannot_be_paid_is_refused_before_anything_else_happens(tmp_path: Path) -> None:
    own, checks = on_disk(tmp_path), []
    with pytest.raises(BudgetError):
        own.buy([spend(2.0)], unread, check=lambda: checks.append("check"))
    assert not own.ledger.spends and not checks
    assert not (tmp_path / "ledger.json").exists() or not read_ledger(tmp_path / "ledger.json").spends


def test_a_step_is_bought_whole_or_not_at_all() -> None:
    own = account(1.5)
    with pytest.raises(BudgetError):
        own.buy([spend(name="first"), spend(name="second")], unread)
    assert not own.ledger.spends
    assert own.buy(iter([spend(0.5), spend(1.0)]), lambda: "both") == "both"
    assert own.ledger.remaining("features") == (0.0, 0.0)


def test_only_what_was_read_to_the_end_is_remembered() -> None:
    own = account(2.0)
    with pytest.raises(KeyboardInterrupt):
        own.collect([spend()], interrupted)  # type: ignore[arg-type]
    assert not own.collections and len(own.ledger.spends) == 1
    assert own.collect([spend()], lambda: Sent("a")) == Sent("a")
    assert own.collections == {"a"} and len(own.ledger.spends) == 2


def test_a_remembered_collection_is_free_and_another_one_is_named_as_such() -> None:
    own = account(2.0)
    own.collect([spend()], lambda: Sent("a"))
    for _ in range(3):
        own.book_collection("a", [spend()])
    assert len(own.ledger.spends) == 1
    own.book_collection("b", [spend()])
    assert [row.name for row in own.ledger.spends] == ["reports", "reports (another collection)"]
    own.book_collection("b", [spend()])
    assert len(own.ledger.spends) == 2


def test_a_collection_that_could_not_be_paid_is_not_free_the_next_time() -> None:
    own = account()
    own.book_collection("a", [spend()])
    for _ in range(2):
        with pytest.raises(BudgetError, match="not the collection that was paid for") as refused:
            own.book_collection("b", [spend()])
        assert "an account of its own" in str(refused.value)
    assert own.collections == {"a"} and len(own.ledger.spends) == 1


def test_the_first_release_brings_its_ledger_and_a_second_one_costs_as_much_again() -> None:
    paid = Ledger.open({"features": (2.5, 0.0)}).spend(spend())
    own = account()
    own.adopt("first", paid)
    assert own.ledger is paid and own.collections == {"release first"}
    own.adopt("first", paid)
    assert own.ledger is paid
    own.adopt("second", paid)
    assert own.ledger.total("features") == (2.0, 0.0)
    with pytest.raises(BudgetError, match="not the collection that was paid for"):
        own.adopt("third", paid)
    assert own.collections == {"release first", "release second"}


def test_a_release_does_not_take_the_place_of_what_was_paid() -> None:
    payer = account(2.0)
    payer.collect([spend()], lambda: Sent("a"))
    payer.adopt("of others", Ledger.open({"features": (1.0, 0.0)}).spend(spend()))
    assert payer.ledger.total("features") == (2.0, 0.0)
    with pytest.raises(BudgetError, match="spent already"):
        payer.buy([spend()], unread)


def test_an_account_comes_back_from_its_facts_as_json_tells_them() -> None:
    own = account(3.0)
    for digest in ("b", "a"):
        own.book_collection(digest, [spend()])
    facts = json.loads(json.dumps(own.facts()))
    assert facts["collections"] == ["a", "b"]
    back = restored_account(facts)
    assert (back.ledger, back.collections) == (own.ledger, own.collections)
    back.book_collection("a", [spend()])
    assert len(back.ledger.spends) == 2
    del facts["collections"]  # as older versions wrote it: nothing is remembered, so nothing is free
    with pytest.raises(BudgetError):
        (older := restored_account(facts)).book_collection("a", [spend(1.5)])
    assert not older.collections


PARTS = {"labels": torch.tensor([0, 1, 2, 3]), "bits": torch.tensor([[1, 0], [0, 1]], dtype=torch.uint8)}


@pytest.mark.parametrize(
    "other",
    [
        {"labels": PARTS["labels"]},
        {**PARTS, "more": torch.zeros(0)},
        {"labels": PARTS["bits"], "bits": PARTS["labels"]},
        {**PARTS, "labels": PARTS["labels"].flip(0)},
        {**PARTS, "labels": PARTS["labels"].reshape(2, 2)},
        {**PARTS, "labels": PARTS["labels"].double()},
        {**PARTS, "labels": PARTS["labels"].view(torch.float64)},
    ],
)
def test_other_reports_have_another_digest(other: dict[str, Tensor]) -> None:
    assert tensors_digest(PARTS) != tensors_digest(other)


def test_a_digest_knows_values_and_not_how_they_lie_in_memory() -> None:
    wide = torch.arange(12).reshape(3, 4)
    assert tensors_digest({"a": wide.T}) == tensors_digest({"a": wide.T.contiguous()}) != tensors_digest({"a": wide})
    assert tensors_digest(PARTS) == tensors_digest(dict(reversed(PARTS.items())))
    assert len(tensors_digest(PARTS)) == 32 and int(tensors_digest(PARTS), 16) >= 0
    weight = torch.ones(2, requires_grad=True)
    assert tensors_digest({"a": weight}) == tensors_digest({"a": torch.ones(2)})


def csr(columns: list[int], width: int = 30) -> Tensor:
    """Two rows with a 1 in each."""
    return features_from_rows(sp.csr_matrix((np.ones(2), columns, [0, 1, 2]), shape=(2, width)))


def test_sparse_reports_are_told_apart_by_where_their_numbers_stand() -> None:
    same, moved, wider = (
        tensors_digest({"x": csr([0, 1])}),
        tensors_digest({"x": csr([0, 2])}),
        tensors_digest({"x": csr([0, 1], 40)}),
    )
    assert len({same, moved, wider}) == 3 and same == tensors_digest({"x": csr([0, 1])})
