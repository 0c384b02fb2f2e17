"""Who is who: people are known by their ids, and by nothing that a graph looks like.

    known     what they sent (or were answered) was kept, and is used again: nobody is asked           free
    new       ids that nobody had before: they are asked, once, in rows of the ledger of their own    their own price
    unsaid    no ids tell, and nobody says: the same people are asked again                           paid once more

The caller may say it: "same" (row i is the person that row i of the run was) or "other" (nobody of them has reported:
declared, not checked, and stated in the guarantee).
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from graphveil.device.people.canonical_id import known_as
from graphveil.errors import BudgetError, InputError
from graphveil.graphs import Graph, node_names
from graphveil.privacy import Assumption, Budget, Ledger, Spend, assume
from graphveil.privacy.ledger import ONE_COPY
from graphveil.privacy.statement.texts import assumption_of
from graphveil.runtime.late import Tensor, torch

Identity = Literal["same", "other"]
#: Bytes of a person's name in files: a hash of the id, which is short and no secret.
# 128 bits: two of a million people share one with chance 10^-27, and would then be taken for one person.
NAME_BYTES = 16
BY_ID = assume("known-by-id")
_SAID = "people"
_DECLARED = "id of others"


@dataclass(frozen=True)
class Identified:
    """The people of a graph as the keeper of the records knows them.

    Attributes:
        rows: int64 [n], where what each of them sent is kept; -1 for the new ones.
        names: of each of them, by which the new ones will be known; none where position says who is who.
        basis: what the answer leans on, for the guarantee; None: on nothing more.
        declared: by which the ids of people who are declared to be others are known again, whatever their graph.
    """

    rows: Tensor
    names: tuple[bytes, ...] = ()
    basis: Assumption | None = None
    declared: tuple[bytes, ...] = ()

    @property
    def new(self) -> Tensor:
        """Mask [n] of those who have to be asked."""
        return self.rows < 0


@dataclass(frozen=True, eq=False)
class Records:
    """What is kept of each person, in a file of its own beside the model.

    Attributes:
        own: how many people the run had; theirs are the first rows. 0: nothing was kept of them.
        places: name -> row. named: whether the run's people have ids.
        rows: tensors by name, one row a person. budgets: of whom everything that was paid is in the rows.
    """

    own: int = 0
    places: Mapping[bytes, int] = field(default_factory=dict)
    named: bool = False
    rows: Mapping[str, Tensor] = field(default_factory=dict)
    budgets: frozenset[str] = frozenset()

    @staticmethod
    def of_run(ids: Iterable[object] | None, count: int, rows: Mapping[str, Tensor], ledger: Ledger) -> Records:
        """Return the records after a collection: of its people in row order, with their ids where they have some."""
        places = {} if ids is None else {name: row for row, name in enumerate(_names("id", ids))}
        return Records(count, places, ids is not None, dict(rows), _units(ledger))

    def find(self, graph: Graph, people: Identity | None, group: str, ledger: Ledger) -> Identified | None:
        """Return who the people of a graph are, or None where nothing tells; refuses those who cannot be the same.

        Args:
            people: what the caller says.
            group: a hash of what is public of the graph, by which the very same graph is known again.
        """
        if people not in (None, "same", "other"):
            raise InputError(f"people is {people!r}", where="predict", allowed="same, other, or leave it out")
        count, ids = int(graph.num_nodes), node_names(graph)
        # Declared and not checked, so it stands in the guarantee: who says so wrongly has people report twice.
        if people == "other":
            fact = assume("others-declared", graph=graph.schema.name, times="")
            if ids is None:
                names = _names(f"other {group}", range(count))
                return Identified(self._rows(names), names, fact)
            names = _names(f"{graph.schema.name} id", ids)
            return Identified(self._rows(names), names, fact, _names(_DECLARED, ids))
        if ids is not None and self.named:
            names = _names("id", ids)
            identified = Identified(self._rows(names), names, BY_ID)
            if people == "same" and bool(identified.new.any()):
                raise _not_the_same(graph, f"{int(identified.new.sum())} of the ids have never reported")
            # An id that was declared to be somebody else's may be this person's: then nothing tells, and all pay.
            declared = self._rows(_names(_DECLARED, ids)) >= 0  # the same person, or another one with this id
            # A spend that left no rows may have been these people's: another process, or a failure after paying.
            paid_in_rows = _units(ledger) <= self.budgets
            certain = paid_in_rows and not bool((identified.new & declared).any())
            if certain or not bool(identified.new.any()):
                return identified
            # All of them may have paid once more since, as this very group, whose ids are in its hash.
        elif people == "same":
            # Only the number can be checked; a permutation cannot, and so the guarantee says that rows were declared.
            if count != self.own:
                raise _not_the_same(graph, f"{count} people, and reports of {self.own} were kept")
            fact = assume("rows-declared", graph=graph.schema.name, times="")
            return Identified(torch.arange(count), basis=fact)
        rows = self._rows(_names(f"group {group}", range(count)))
        return None if bool((rows < 0).any()) else Identified(rows)

    def after(self, earlier: Records) -> Records:
        """Return the records once another collection follows `earlier`: nobody who has reported is forgotten."""
        # Whoever is in both keeps the newer row: it is what the last collection was trained on.
        more = {name: row for name, row in earlier.places.items() if name not in self.places}
        joined = self if not (more and self.rows) else self.add(more, earlier.take(torch.tensor(list(more.values()))))
        named = self.named and (earlier.named or not earlier.own)
        return replace(joined, named=named, budgets=self.budgets | earlier.budgets)

    def add(self, names: Iterable[bytes], rows: Mapping[str, Tensor], paid: frozenset[str] = frozenset()) -> Records:
        """Return the records after more people were asked, in the order of their rows.

        Args:
            paid: the names of their budgets.
        """
        start = len(next(iter(self.rows.values()))) if self.rows else 0
        places = {**self.places, **{name: start + row for row, name in enumerate(names)}}
        joined = {key: torch.cat([self.rows[key], t]) if self.rows else t for key, t in rows.items()}
        return replace(self, places=places, rows=joined, budgets=self.budgets | paid)

    def add_new(self, people: Identified, rows: Mapping[str, Tensor], paid: frozenset[str]) -> Records:
        """Return the records after the new ones among `people` were asked, in the order of their rows."""
        new_rows = people.new.nonzero().squeeze(1).tolist()
        joined = self.add([people.names[row] for row in new_rows], rows, paid)
        if not people.declared:
            return joined
        declared = {people.declared[row]: joined.places[people.names[row]] for row in new_rows}
        return replace(joined, places={**declared, **joined.places})

    def add_group(self, graph: Graph, group: str, rows: Mapping[str, Tensor]) -> Records:
        """Return the records after people whom nothing names were asked: the very same graph is known again."""
        return self.add(_names(f"group {group}", range(int(graph.num_nodes))), rows)

    def take(self, rows: Tensor) -> dict[str, Tensor]:
        return {name: value[rows] for name, value in self.rows.items()}

    def facts(self) -> dict[str, Any]:
        return {"own": self.own, "named": self.named, "budgets": sorted(self.budgets)}

    def tensors(self) -> dict[str, Tensor]:
        names = torch.frombuffer(bytearray(b"".join(self.places) or bytes(NAME_BYTES)), dtype=torch.uint8)
        rows = {f"rows.{name}": value for name, value in self.rows.items()}
        places = torch.tensor(list(self.places.values()), dtype=torch.int64)
        return {**rows, "names": names.view(-1, NAME_BYTES)[: len(places)], "places": places}

    @staticmethod
    def restore(facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Records:
        """Return what the two above gave."""
        rows = {name.removeprefix("rows."): t for name, t in tensors.items() if name.startswith("rows.")}
        names, places, own = tensors["names"], tensors["places"].tolist(), int(facts["own"])
        counts = {len(value) for value in rows.values()} or {0}
        # A place outside would hand a person somebody else's report, or -1 the last one's.
        inside = all(0 <= place < min(counts) for place in places)
        if len(counts) > 1 or not inside or own > min(counts) or tuple(names.shape) != (len(places), NAME_BYTES):
            raise InputError("people and their stored reports do not match")
        by_name = {bytes(name): place for name, place in zip(names.numpy(), places, strict=True)}
        return Records(own, by_name, bool(facts["named"]), rows, frozenset(facts["budgets"]))

    def _rows(self, names: tuple[bytes, ...]) -> Tensor:
        return torch.tensor([self.places.get(name, -1) for name in names], dtype=torch.int64)


def shared_ids(graph: Graph, other: Graph) -> int:
    """Return how many people of two graphs have one id; 0 where a graph has no ids."""
    first = {known_as(id) for id in node_names(graph) or ()}
    return len(first.intersection(map(known_as, node_names(other) or ()))) if first else 0


def pay_as_new(
    ledger: Ledger, spends: Iterable[Spend], key: str, *, name: str, queries: int, reason: Assumption
) -> tuple[Ledger, frozenset[str]]:
    """Return the ledger after people who never reported paid for their first reports, and the names of their budgets.

    Args:
        key: a hash by which they are told from others in the ledger.
        queries: how many further times each of them may be asked, as was declared.
        reason: what tells that they are new, which the guarantee will lean on.
    """
    spends = tuple(spends)
    moved = []
    for unit in dict.fromkeys(spend.unit for spend in spends):
        mine = [spend for spend in spends if spend.unit == unit]
        units = {budget.unit for budget in ledger.budget}
        endings = (")", *(f", {number})" for number in range(2, len(units) + 3)))
        own = next(row for ending in endings if (row := f"{unit} of {name} ({key[:8]}{ending}") not in units)
        # `fsum`, as the ledger sums: a budget that is exactly enough must not fail by a float's last digit.
        once = math.fsum(spend.epsilon for spend in mine), math.fsum(spend.delta for spend in mine)
        # A row of their own: people who never reported have their whole budget, whatever others have spent.
        ledger = ledger.declare(own, *((1 + queries) * price for price in once))
        moved += [replace(spend, unit=own, parameters={**spend.parameters, _SAID: reason.sentence}) for spend in mine]
    return (ledger.spend(*moved) if moved else ledger), frozenset(spend.unit for spend in moved)


def pay_again(ledger: Ledger, spends: Iterable[Spend], *, name: str) -> Ledger:
    """Return the ledger after everybody who ever reported paid once more: nothing says who it was that was asked."""
    more = [
        replace(spend, name=f"{spend.name}, again for {name}", unit=budget.unit)
        for spend in spends
        for budget in ledger.budget
        # Every budget of this kind: nobody knows which of them these people are, so each of them pays.
        if _account(budget) == spend.unit
    ]
    try:
        return ledger.spend(*more)
    except BudgetError as error:
        raise BudgetError(
            f"nothing tells the people of {name} from those who have reported (they have no ids, or a paid answer was "
            f"lost), so all would be asked again: {error.what}",
            where=error.where,
            allowed=error.allowed,
            remedy="make room for it before collecting (--set queries=1: once more at the full price), use what they "
            "have sent (people='same', or reports=...), or declare that they are other people (people='other'; at the "
            "command line --people same or --people other); nothing was read",
        ) from error


def leans_on(ledger: Ledger) -> tuple[Assumption, ...]:
    """Return what told those who paid as new people from the others, how often, and where they are known."""
    facts = [
        (str(spend.parameters[_SAID]), spend.unit.partition(" of ")[2])
        for spend in ledger.spends
        if _SAID in spend.parameters
    ]
    times = Counter(assumption_of(sentence) for sentence, _ in dict.fromkeys(facts))
    assumptions = [
        fact if fact == BY_ID or many == 1 else fact.with_facts(times=f" (said {many} times)")
        for fact, many in times.items()
    ]
    return (*assumptions, ONE_COPY) if assumptions else ()


def times_paid(ledger: Ledger | None, unit: str) -> int:
    """Return how many times the most asked people have paid for reports on `unit`, at least 1."""
    if ledger is None:
        return 1
    counts = [
        sum(spend.unit == budget.unit for spend in ledger.spends)
        for budget in ledger.budget
        if _account(budget) == unit
    ]
    return max([1, *counts])


def _units(ledger: Ledger) -> frozenset[str]:
    return frozenset(spend.unit for spend in ledger.spends)


def _account(budget: Budget) -> str:
    """What a budget pays for, whoever's it is: "features of digits (0a1b2c3d)" pays for features."""
    return budget.unit.split(" of ")[0]


def _names(group: str, ids: Iterable[object]) -> tuple[bytes, ...]:
    """Return the hash of every id within a group: of its one form, so that another spelling is the same person."""
    # The group's length comes first: no id of one group can spell a member of another.
    begun = hashlib.blake2b(f"{len(group)}:{group}:".encode(), digest_size=NAME_BYTES)
    names = []
    for identifier in ids:
        digest = begun.copy()
        digest.update(known_as(str(identifier)).encode())
        names.append(digest.digest())
    return tuple(names)


def not_others(graph: Graph) -> InputError:
    """Return the refusal of the run's own graph, whose people are declared to be others and would report twice."""
    return InputError(
        "they cannot be other people: this is the graph of the run",
        where=graph.schema.name,
        remedy="leave out people: who has reported is not asked again; other people need ids of their own",
    )


def _not_the_same(graph: Graph, why: str) -> InputError:
    return InputError(
        f"they cannot be the people of the run: {why}",
        where=graph.schema.name,
        remedy="leave out people, or give their reports",
    )
