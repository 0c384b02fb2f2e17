"""People who have to report for a prediction: who they are, and how they pay before anything is read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from graphveil.engine import LOCAL, Engine
from graphveil.errors import BudgetError, InputError
from graphveil.graphs import Graph
from graphveil.mechanisms import catalogue
from graphveil.mechanisms.by_blocks import randomize_by_blocks
from graphveil.methods.base.network.network import as_matrix
from graphveil.methods.base.people.account import Account
from graphveil.methods.base.people.people import BY_ID, Identified, Identity, Records, pay_again, pay_as_new
from graphveil.methods.base.people.released import LocalReports
from graphveil.methods.base.storage import read_answers, restoring, save_answers
from graphveil.privacy import Assumption, Ledger, Randomness, Spend, assume
from graphveil.runtime.late import Tensor, torch
from graphveil.runtime.late import sparse as sp


def charge_people(
    ledger: Ledger, people: Identified | None, spends: Sequence[Spend], *, name: str, group: str, queries: int
) -> tuple[Ledger, frozenset[str]]:
    """Return the ledger after the people to be asked have paid, and the ledger units of the new ones. Raises
    BudgetError where everybody would be asked again without room for it, or another process has meanwhile asked people
    who may be the same.

    Args:
        people: who they are; None: that is open, and everybody who ever reported pays again.
        spends: what one report of each kind costs.
        name, group: the name of their graph, and a hash that identifies it.
    """
    if people is None:
        return pay_again(ledger, spends, name=name), frozenset()
    new_names = [name for name, new in zip(people.names, people.new.tolist(), strict=True) if new]
    # Of the people who are asked and of nobody else: the budget is theirs, not of everybody in the graph.
    key = hashlib.sha256(group.encode() + b"".join(new_names)).hexdigest()
    reason = people.basis or BY_ID
    paid, units = pay_as_new(ledger, spends, key, name=name, queries=queries, reason=reason)
    # The ledger was read anew while paying: a spend since then may be of these very people, who are then not new.
    if reason == BY_ID and len(paid.spends) > len(ledger.spends) + len(units):
        raise BudgetError(
            f"another process asked people of this run at the same time, and {name} may hold the same people",
            where="ledger",
            remedy="nothing was read, but the charge stays: load the run again",
        )
    return paid, units


class AskingMethod(Protocol):
    """A fitted method that stores what people sent or were answered, and may ask people to predict for them."""

    account: Account
    records: Records
    queries: int
    _fitted: Any


def note_assumption(method: AskingMethod, fact: Assumption | None, void: str | None = None) -> None:
    """Add to what the guarantee of a method states from now on: an assumption, and why it is void."""
    fitted = method._fitted
    notes = fitted.notes if fact is None or fact in fitted.notes else (*fitted.notes, fact)
    method._fitted = replace(fitted, notes=notes, void=fitted.void or void)


def everybodys_rows(
    method: AskingMethod,
    graph: Graph,
    people: Identity | None,
    spends: Callable[[int], Sequence[Spend]],
    read: Callable[[Tensor, Randomness], dict[str, Tensor]],
    *,
    randomness: Randomness | None,
    group: str,
    what: str,
) -> dict[str, Tensor]:
    """Return what a graph's people sent or were answered, rows [n] by name: stored rows of people who have reported,
    and new rows of people who are asked once they have paid. Raises InputError if that takes a source of noise and none
    was given.

    Args:
        people: what the caller says of people without ids.
        spends: takes the number of people who are asked, and returns what one report of each kind costs.
        read: takes the mask [n] of people who are asked, and returns their rows by name.
        group, what: a hash that identifies the graph; what people send, in words.
    """
    account, records = method.account, method.records
    identified = records.identify(graph, people, group, account.ledger)
    if identified is not None and not bool(identified.new.any()):
        note_assumption(method, identified.basis if people == "same" else None)
        return records.select(identified.rows)
    if randomness is None:
        raise InputError(
            f"the people of a new graph send {what}, which needs a source of noise",
            where="predict",
            remedy="pass randomness=SecureRandomness()",
        )
    new = torch.ones(int(graph.num_nodes), dtype=torch.bool) if identified is None else identified.new
    name, queries = graph.schema.name, method.queries
    pay = partial(
        charge_people, people=identified, spends=spends(int(new.sum())), name=name, group=group, queries=queries
    )
    units = account.charge(pay)
    # Before anything is read: a seeded source voids the guarantee even if reading fails.
    note_assumption(method, None, randomness.void)
    new_rows = read(new, randomness)
    if identified is None:
        method.records = records.add_group(graph, group, new_rows)
        return new_rows
    method.records = records.add_new(identified, new_rows, units)
    return merged_rows(identified, records.rows, new_rows)


def randomize_features(
    graph: Graph, mechanism: Any, mask: Tensor, *, randomness: Randomness, engine: Engine = LOCAL
) -> Any:
    """Return the feature reports of the people in `mask` [n], and of nobody else."""
    values: Any = as_matrix(graph.x)
    # Cut before the mechanism: people who are not asked send nothing, so their features may not even be read.
    rows = values[mask.numpy()] if sp.issparse(values) else values[mask]
    return randomize_by_blocks(mechanism, rows, randomness=randomness, engine=engine)


def reports_from_tensors(tensors: Mapping[str, Tensor]) -> Any:
    """Return the feature reports that were stored as tensors; refuses what no feature mechanism sends."""
    # By the names of the tensors and not by the method's setting: the file decides what it holds.
    for kind in dict.fromkeys(info.report_type for info in catalogue() if info.kind == "features"):
        try:
            return kind.from_tensors(tensors)
        except InputError:
            continue
    raise InputError(f"no feature report has tensors {sorted(tensors)}", where="reports")


def merged_rows(people: Identified, stored: Mapping[str, Tensor], new: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return rows [n] of everybody: the stored rows of people who are known, the new rows of new people."""
    joined = {}
    for name, new_rows in new.items():
        rows = torch.empty((len(people.rows), *new_rows.shape[1:]), dtype=new_rows.dtype)
        rows[people.new] = new_rows
        if name in stored:
            rows[~people.new] = stored[name][people.rows[~people.new]]
        joined[name] = rows
    return joined


def require_reports_for(reports: LocalReports, mechanism: Any, nodes: int, *, name: str) -> None:
    """Refuse reports that were handed in for a prediction and cannot be those of its people."""
    if not isinstance(reports, LocalReports):
        raise InputError(f"reports is a {type(reports).__name__}", where=name, allowed="what randomize returned")
    actual = reports.privacy.features(reports.schema)
    # Reports made at another epsilon have another law, and their estimate would be wrong without any sign of it.
    if actual != mechanism or reports.features is None:
        raise InputError(
            f"the reports were made by {actual}", where=name, allowed=f"feature reports made by {mechanism}"
        )
    # Of those who sent none as well: their rows are there, and empty.
    rows = len(reports.labels)
    if rows != nodes:
        raise InputError(f"{rows} reports for {nodes} nodes", where=name)


def handed_in_assumption(name: str) -> Assumption:
    """Return what a guarantee leans on if reports for the graph of this name came from outside."""
    return assume("reports-handed-in", graph=name)


def save_records(model: Path, kind: str, records: Records, *, collection: str | None) -> None:
    """Write what people sent (or were answered) beside a saved model; records of its collection there are preserved.

    Args:
        collection: identifies the model's collection.
    """
    if records.rows:
        records = records.with_earlier(load_records(model, kind, collection=collection))
    save_answers(model, kind, {**records.facts(), "of": collection}, records.tensors() if records.rows else {})


def load_records(path: str | Path, kind: str, *, collection: str | None) -> Records:
    """Return the records beside a model; none if the model came without them, or they are of another collection."""
    stored = read_answers(path, kind)
    if stored is None or stored[0].get("of") != collection:
        return Records()
    with restoring(path):
        return Records.restore(*stored)
