"""Who is who: people are recognised by their ids, never by what their graph looks like.

    known     their stored reports (or answers) are used again: nobody is asked                  free
    new       ids that are not in the records: each is asked once, at a ledger row of its own    their own price
    unknown   no ids, and the caller does not say: taken to be the same people, asked again      paid once more

The caller may say who they are: "same" (row i is the person that row i of the run was) or "other" (none of them has
reported: declared, not checked, and stated in the guarantee).
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
#: Bytes of a person's name in files: a hash of the id, which hides nothing.
# 128 bits: two of a million people share a name with chance 10^-27, and would then be taken for the same person.
NAME_BYTES = 16
BY_ID = assume("known-by-id")
#: The parameter of a spend that holds the reason why its people are new.
_REASON = "people"
#: The group of names of people who were declared to be others.
_DECLARED_GROUP = "id of others"


@dataclass(frozen=True)
class Identified:
    """The people of a graph as the records identify them.

    Attributes:
        rows: int64 [n], the row of each person's stored reports; -1 for new people.
        names: of each person, by which new people will be recognised; empty where position says who is who.
        basis: the assumption behind the identification, for the guarantee; None: no further one.
        declared_names: by which the ids of people who are declared to be others are recognised in any graph.
    """

    rows: Tensor
    names: tuple[bytes, ...] = ()
    basis: Assumption | None = None
    declared_names: tuple[bytes, ...] = ()

    @property
    def new(self) -> Tensor:
        """Mask [n] of those who have to be asked."""
        return self.rows < 0


@dataclass(frozen=True, eq=False)
class Records:
    """What is stored of each person, in a file of its own beside the model.

    Attributes:
        run_size: how many people the run had; theirs are the first rows. 0: nothing of them was stored.
        row_of: name -> row. has_ids: whether the run's people have ids.
        rows: tensors by name, one row a person. budgets: ledger units whose spends all left their reports in the rows.
    """

    run_size: int = 0
    row_of: Mapping[bytes, int] = field(default_factory=dict)
    has_ids: bool = False
    rows: Mapping[str, Tensor] = field(default_factory=dict)
    budgets: frozenset[str] = frozenset()

    @staticmethod
    def of_run(ids: Iterable[object] | None, count: int, rows: Mapping[str, Tensor], ledger: Ledger) -> Records:
        """Return the records after a collection: of its people in row order, with their ids where they have some."""
        row_of = {} if ids is None else {name: row for row, name in enumerate(_names("id", ids))}
        return Records(count, row_of, ids is not None, dict(rows), _units(ledger))

    def identify(self, graph: Graph, people: Identity | None, group: str, ledger: Ledger) -> Identified | None:
        """Return who the people of a graph are, None if that is open; refuses people who cannot be the same.

        Args:
            people: what the caller says.
            group: a hash of what is public of the graph, by which the very same graph is recognised.
        """
        if people not in (None, "same", "other"):
            raise InputError(f"people is {people!r}", where="predict", allowed="same, other, or leave it out")
        count, ids = int(graph.num_nodes), node_names(graph)
        # Declared and not checked, so the guarantee states it: if it is false, people report twice.
        if people == "other":
            fact = assume("others-declared", graph=graph.schema.name, times="")
            if ids is None:
                names = _names(f"other {group}", range(count))
                return Identified(self._rows_of(names), names, fact)
            names = _names(f"{graph.schema.name} id", ids)
            return Identified(self._rows_of(names), names, fact, _names(_DECLARED_GROUP, ids))
        if ids is not None and self.has_ids:
            names = _names("id", ids)
            identified = Identified(self._rows_of(names), names, BY_ID)
            if people == "same" and bool(identified.new.any()):
                raise _not_same_people(graph, f"{int(identified.new.sum())} of the ids have never reported")
            # An id that was declared to be somebody else's may be this person's: that is open, so all pay.
            declared = self._rows_of(_names(_DECLARED_GROUP, ids)) >= 0
            # A spend that left no rows may have been these people's: another process, or a failure after paying.
            paid_in_rows = _units(ledger) <= self.budgets
            certain = paid_in_rows and not bool((identified.new & declared).any())
            if certain or not bool(identified.new.any()):
                return identified
            # Otherwise all of them may have paid once more since then, as this very group, whose hash covers the ids.
        elif people == "same":
            # Only the number can be checked; a permutation cannot, and so the guarantee says that rows were declared.
            if count != self.run_size:
                raise _not_same_people(graph, f"{count} people, and reports of {self.run_size} were kept")
            fact = assume("rows-declared", graph=graph.schema.name, times="")
            return Identified(torch.arange(count), basis=fact)
        rows = self._rows_of(_names(f"group {group}", range(count)))
        return None if bool((rows < 0).any()) else Identified(rows)

    def with_earlier(self, earlier: Records) -> Records:
        """Return these records with those of an earlier collection: nobody who has reported is forgotten."""
        # Whoever is in both keeps the newer row: the last collection was trained on it.
        earlier_only = {name: row for name, row in earlier.row_of.items() if name not in self.row_of}
        joined = self
        if earlier_only and self.rows:
            joined = self.add(earlier_only, earlier.select(torch.tensor(list(earlier_only.values()))))
        has_ids = self.has_ids and (earlier.has_ids or not earlier.run_size)
        return replace(joined, has_ids=has_ids, budgets=self.budgets | earlier.budgets)

    def add(self, names: Iterable[bytes], rows: Mapping[str, Tensor], budgets: frozenset[str] = frozenset()) -> Records:
        """Return the records with further people, in the order of their rows.

        Args:
            budgets: the ledger units that they paid from.
        """
        start = len(next(iter(self.rows.values()))) if self.rows else 0
        row_of = {**self.row_of, **{name: start + row for row, name in enumerate(names)}}
        joined = {key: torch.cat([self.rows[key], t]) if self.rows else t for key, t in rows.items()}
        return replace(self, row_of=row_of, rows=joined, budgets=self.budgets | budgets)

    def add_new(self, people: Identified, rows: Mapping[str, Tensor], budgets: frozenset[str]) -> Records:
        """Return the records with the new people among `people`, in the order of their rows; budgets: see `add`."""
        new_rows = people.new.nonzero().squeeze(1).tolist()
        joined = self.add([people.names[row] for row in new_rows], rows, budgets)
        if not people.declared_names:
            return joined
        declared = {people.declared_names[row]: joined.row_of[people.names[row]] for row in new_rows}
        return replace(joined, row_of={**declared, **joined.row_of})

    def add_group(self, graph: Graph, group: str, rows: Mapping[str, Tensor]) -> Records:
        """Return the records with people who have no ids: only the very same graph is recognised."""
        return self.add(_names(f"group {group}", range(int(graph.num_nodes))), rows)

    def select(self, rows: Tensor) -> dict[str, Tensor]:
        return {name: value[rows] for name, value in self.rows.items()}

    def facts(self) -> dict[str, Any]:
        return {"own": self.run_size, "named": self.has_ids, "budgets": sorted(self.budgets)}

    def tensors(self) -> dict[str, Tensor]:
        names = torch.frombuffer(bytearray(b"".join(self.row_of) or bytes(NAME_BYTES)), dtype=torch.uint8)
        rows = {f"rows.{name}": value for name, value in self.rows.items()}
        indices = torch.tensor(list(self.row_of.values()), dtype=torch.int64)
        return {**rows, "names": names.view(-1, NAME_BYTES)[: len(indices)], "places": indices}

    @staticmethod
    def restore(facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Records:
        """Return the records that `facts` and `tensors` describe."""
        rows = {name.removeprefix("rows."): t for name, t in tensors.items() if name.startswith("rows.")}
        names, indices, run_size = tensors["names"], tensors["places"].tolist(), int(facts["own"])
        counts = {len(value) for value in rows.values()} or {0}
        # A row beyond the end has no report; -1 would be the last person's.
        inside = all(0 <= row < min(counts) for row in indices)
        if len(counts) > 1 or not inside or run_size > min(counts) or tuple(names.shape) != (len(indices), NAME_BYTES):
            raise InputError("people and their stored reports do not match")
        row_of = {bytes(name): row for name, row in zip(names.numpy(), indices, strict=True)}
        return Records(run_size, row_of, bool(facts["named"]), rows, frozenset(facts["budgets"]))

    def _rows_of(self, names: tuple[bytes, ...]) -> Tensor:
        return torch.tensor([self.row_of.get(name, -1) for name in names], dtype=torch.int64)


def shared_ids(graph: Graph, other: Graph) -> int:
    """Return how many ids two graphs share; 0 where a graph has no ids."""
    first = {known_as(id) for id in node_names(graph) or ()}
    return len(first.intersection(map(known_as, node_names(other) or ()))) if first else 0


def pay_as_new(
    ledger: Ledger, spends: Iterable[Spend], key: str, *, name: str, queries: int, reason: Assumption
) -> tuple[Ledger, frozenset[str]]:
    """Return the ledger after people who never reported paid for their first reports, and the units they paid from.

    Args:
        key: a hash that identifies these people in the ledger.
        queries: how many further times each of them may be asked, as was declared.
        reason: why they are taken to be new, on which the guarantee will lean.
    """
    spends = tuple(spends)
    first_spends = []
    for unit in dict.fromkeys(spend.unit for spend in spends):
        unit_spends = [spend for spend in spends if spend.unit == unit]
        units = {budget.unit for budget in ledger.budget}
        endings = (")", *(f", {number})" for number in range(2, len(units) + 3)))
        own_unit = next(row for ending in endings if (row := f"{unit} of {name} ({key[:8]}{ending}") not in units)
        # `fsum`, as the ledger sums: a budget that is exactly enough must not fail by a float's last digit.
        price = math.fsum(spend.epsilon for spend in unit_spends), math.fsum(spend.delta for spend in unit_spends)
        # A row of their own: people who never reported have their whole budget, whatever others have spent.
        ledger = ledger.declare(own_unit, *((1 + queries) * number for number in price))
        first_spends += [
            replace(spend, unit=own_unit, parameters={**spend.parameters, _REASON: reason.sentence})
            for spend in unit_spends
        ]
    return (ledger.spend(*first_spends) if first_spends else ledger), frozenset(spend.unit for spend in first_spends)


def pay_again(ledger: Ledger, spends: Iterable[Spend], *, name: str) -> Ledger:
    """Return the ledger after everybody who ever reported paid once more: it is open which of them were asked."""
    repeats = [
        replace(spend, name=f"{spend.name}, again for {name}", unit=budget.unit)
        for spend in spends
        for budget in ledger.budget
        # Every budget of this kind: nobody knows which of them these people are, so each of them pays.
        if _paid_for(budget) == spend.unit
    ]
    try:
        return ledger.spend(*repeats)
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


def identity_assumptions(ledger: Ledger) -> tuple[Assumption, ...]:
    """Return why people who paid as new ones were taken to be new, how often, and that their records have one copy."""
    facts = [
        (str(spend.parameters[_REASON]), spend.unit.partition(" of ")[2])
        for spend in ledger.spends
        if _REASON in spend.parameters
    ]
    times = Counter(assumption_of(sentence) for sentence, _ in dict.fromkeys(facts))
    assumptions = [
        fact if fact == BY_ID or count == 1 else fact.with_facts(times=f" (said {count} times)")
        for fact, count in times.items()
    ]
    return (*assumptions, ONE_COPY) if assumptions else ()


def times_paid(ledger: Ledger | None, unit: str) -> int:
    """Return how many times the most asked people have paid for reports on `unit`, at least 1."""
    if ledger is None:
        return 1
    counts = [
        sum(spend.unit == budget.unit for spend in ledger.spends)
        for budget in ledger.budget
        if _paid_for(budget) == unit
    ]
    return max([1, *counts])


def _units(ledger: Ledger) -> frozenset[str]:
    return frozenset(spend.unit for spend in ledger.spends)


def _paid_for(budget: Budget) -> str:
    """What a budget pays for, whoever owns it: "features of digits (0a1b2c3d)" pays for features."""
    return budget.unit.split(" of ")[0]


def _names(group: str, ids: Iterable[object]) -> tuple[bytes, ...]:
    """Return the hash of every id in its canonical form within a group: another spelling is the same person."""
    # The group's length comes first: no id of one group can spell a member of another.
    group_hash = hashlib.blake2b(f"{len(group)}:{group}:".encode(), digest_size=NAME_BYTES)
    names = []
    for identifier in ids:
        digest = group_hash.copy()
        digest.update(known_as(str(identifier)).encode())
        names.append(digest.digest())
    return tuple(names)


def not_other_people(graph: Graph) -> InputError:
    """Return the refusal of the run's own graph whose people are declared to be others: they would report twice."""
    return InputError(
        "they cannot be other people: this is the graph of the run",
        where=graph.schema.name,
        remedy="leave out people: who has reported is not asked again; other people need ids of their own",
    )


def _not_same_people(graph: Graph, why: str) -> InputError:
    return InputError(
        f"they cannot be the people of the run: {why}",
        where=graph.schema.name,
        remedy="leave out people, or give their reports",
    )
