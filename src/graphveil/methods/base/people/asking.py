"""Asking for a prediction: who has to report for it, and paying for that before anything is read."""

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


def pay_for(
    ledger: Ledger, people: Identified | None, spends: Sequence[Spend], *, name: str, group: str, queries: int
) -> tuple[Ledger, frozenset[str]]:
    """Return the ledger after those who have to be asked have paid, and the budgets of the new ones among them. Raises
    BudgetError where everybody would be asked again, and no room was declared for that; or another process has asked
    people meanwhile, who may be the same.

    Args:
        people: who they are; None: nothing tells, and everybody who ever reported pays again.
        spends: what one report of each kind costs.
        name, group: of their graph, and a hash that tells it from others.
    """
    if people is None:
        return pay_again(ledger, spends, name=name), frozenset()
    new_names = [name for name, new in zip(people.names, people.new.tolist(), strict=True) if new]
    # Of those who are asked and of nobody else: the budget belongs to them, not to everybody in the file.
    key = hashlib.sha256(group.encode() + b"".join(new_names)).hexdigest()
    reason = people.basis or BY_ID
    paid, own = pay_as_new(ledger, spends, key, name=name, queries=queries, reason=reason)
    # The ledger was read anew while paying: a spend since then may be of these very people, who are then not new.
    if reason == BY_ID and len(paid.spends) > len(ledger.spends) + len(own):
        raise BudgetError(
            f"another process asked people of this run at the same time, and {name} may hold the same people",
            where="ledger",
            remedy="nothing was read, but the charge stays: load the run again",
        )
    return paid, own


class Asking(Protocol):
    """A fitted method that keeps what people sent or were answered, and has room for asking again."""

    account: Account
    records: Records
    queries: int
    _fitted: Any


def note(method: Asking, fact: Assumption | None, void: str | None = None) -> None:
    """Keep what the guarantee leans on from now on."""
    fitted = method._fitted
    notes = fitted.notes if fact is None or fact in fitted.notes else (*fitted.notes, fact)
    method._fitted = replace(fitted, notes=notes, void=fitted.void or void)


def rows_of_everybody(
    method: Asking,
    graph: Graph,
    people: Identity | None,
    spends: Callable[[int], Sequence[Spend]],
    read: Callable[[Tensor, Randomness], dict[str, Tensor]],
    *,
    randomness: Randomness | None,
    group: str,
    what: str,
) -> dict[str, Tensor]:
    """Return what a graph's people sent or were answered, rows [n] by name: as it is kept of those who have reported;
    the others are asked once they have paid. Raises InputError where that takes a source of noise and none was given.

    Args:
        people: what the caller says of people without ids.
        spends: takes how many are asked, and returns what one report of each kind costs.
        read: takes the mask [n] of those who are asked, and returns what came of it, a row for each, by name.
        group, what: a hash that tells the graph from others; what people send, in words.
    """
    account, records = method.account, method.records
    identified = records.find(graph, people, group, account.ledger)
    if identified is not None and not bool(identified.new.any()):
        note(method, identified.basis if people == "same" else None)
        return records.take(identified.rows)
    if randomness is None:
        raise InputError(
            f"the people of a new graph send {what}, which needs a source of noise",
            where="predict",
            remedy="pass randomness=SecureRandomness()",
        )
    new = torch.ones(int(graph.num_nodes), dtype=torch.bool) if identified is None else identified.new
    name, queries = graph.schema.name, method.queries
    pay = partial(pay_for, people=identified, spends=spends(int(new.sum())), name=name, group=group, queries=queries)
    own = account.charge(pay)
    # Noted before anything is read: a seeded source voids the guarantee even if the answer fails.
    note(method, None, randomness.void)
    sent = read(new, randomness)
    if identified is None:
        method.records = records.add_group(graph, group, sent)
        return sent
    method.records = records.add_new(identified, sent, own)
    return side_by_side(identified, records.rows, sent)


def randomize_features(
    graph: Graph, mechanism: Any, chosen: Tensor, *, randomness: Randomness, engine: Engine = LOCAL
) -> Any:
    """Return the feature reports of the `chosen` people (mask [n]) of a graph, and of nobody else."""
    values: Any = as_matrix(graph.x)
    # Cut before the mechanism: who is not asked sends nothing, so nothing of theirs may even be looked at.
    own = values[chosen.numpy()] if sp.issparse(values) else values[chosen]
    return randomize_by_blocks(mechanism, own, randomness=randomness, engine=engine)


def reports_from(tensors: Mapping[str, Tensor]) -> Any:
    """Return the feature reports that were kept as tensors; refuses what no feature mechanism sends."""
    # By their tensors' names and not by the method's setting: a file says what it holds.
    for kind in dict.fromkeys(info.report_type for info in catalogue() if info.kind == "features"):
        try:
            return kind.from_tensors(tensors)
        except InputError:
            continue
    raise InputError(f"no feature report has tensors {sorted(tensors)}", where="reports")


def side_by_side(people: Identified, stored: Mapping[str, Tensor], sent: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return rows [n] of everybody: what was stored of those who are known, what was sent by the new ones."""
    joined = {}
    for name, fresh in sent.items():
        rows = torch.empty((len(people.rows), *fresh.shape[1:]), dtype=fresh.dtype)
        rows[people.new] = fresh
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


def handed_in(name: str) -> Assumption:
    """Return what a guarantee leans on where reports for the graph of this name came from outside."""
    return assume("reports-handed-in", graph=name)


def save_people(model: Path, kind: str, records: Records, *, of: str | None) -> None:
    """Write what people sent (or were answered) beside a saved model, with what the file there holds of its people.

    Args:
        of: what tells the model's collection from others.
    """
    if records.rows:
        records = records.after(read_people(model, kind, of=of))
    save_answers(model, kind, {**records.facts(), "of": of}, records.tensors() if records.rows else {})


def read_people(path: str | Path, kind: str, *, of: str | None) -> Records:
    """Return the records beside a model; none where the model alone was handed on, or the file is another one's."""
    stored = read_answers(path, kind)
    if stored is None or stored[0].get("of") != of:
        return Records()
    with restoring(path):
        return Records.restore(*stored)
