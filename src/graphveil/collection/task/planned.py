"""The first step of a collection: its draft, and a plan of the method that its reports would train."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from graphveil.collection.task.declare import Prices
from graphveil.collection.task.drafts import TASK, Draft, read_draft, write_draft
from graphveil.collection.task.subject import Subject
from graphveil.files.writing import new_folder
from graphveil.methods.base.family import Plan
from graphveil.methods.links.privacy import SHARES
from graphveil.methods.registry import plan as plan_of


def drafted(
    out: Path, subject: Subject, typed: Mapping[str, object], prices: Prices
) -> tuple[dict[str, Any], Plan | None]:
    """Write a draft into a new folder; return what is missing, the guarantee, the bytes of a report, and the plan where
    there is a graph to plan with.

    Args:
        typed: those of texts, window and least number that are known.
        prices: those that are known.

    Raises:
        InputError: for a price that no task can have, or a folder that is used.
    """
    # Closed to others: the key and everybody's tokens are written here.
    with new_folder(out, owner_only=True) as partial:
        write_draft(partial, subject, typed, prices)
        # Read back as signing will: what cannot be signed is refused before the folder exists.
        draft = replace(read_draft(partial), subject=subject)
        guarantee, size, plan = draft.guarantee(), draft.report_bytes(), planned(draft)
    facts: dict[str, Any] = {
        "folder": str(out),
        "file": str(out / TASK),
        "people": len(subject.ids),
        "missing": list(draft.missing),
        "guarantee": guarantee,
        "report_bytes": size,
    }
    if plan is None:
        return {**facts, "plan": None}, None
    # The bytes that devices send, not the method's own estimate.
    plan = replace(plan, report_bytes=float(size))
    return {**facts, "plan": plan.to_dict()}, plan


def planned(draft: Draft) -> Plan | None:
    """Return the plan of training on the reports of a draft with possible prices; None without a method or a graph."""
    method, graph, prices = _method(draft.prices), draft.subject.parts, draft.prices
    # The plan of a release states what the release has cost, and that training on it is free.
    if method is None or graph is None or getattr(graph, "release", None) is not None:
        return None
    # Without lists a method needs the edges, which the organiser does not have where they are private.
    if "edges" in graph.schema.private and prices.links is None:
        return None
    # A method's default would plan a report that nobody sends; a label that is not asked is known.
    settings: dict[str, Any] = {"epsilon_y": math.inf if prices.label is None else float(prices.label)}
    if method != "label-pool":
        settings["epsilon_x"] = None if prices.features is None else float(prices.features)
    return plan_of(method, graph, settings | _list_settings(prices))


def _list_settings(prices: Prices) -> dict[str, Any]:
    if prices.links is None:
        return {}
    if prices.degree is None:
        return {"epsilon_a": float(prices.links), "mode": prices.mode}
    total, share = _lists_and_degree(prices)
    return {"epsilon_a": total, "mode": prices.mode, "degree_share": share}


def _lists_and_degree(prices: Prices) -> tuple[float, float]:
    """Return the price of list and degree together, and the degree's share of it."""
    degree = Fraction(prices.degree or 0)
    total = Fraction(prices.links or 0) + degree
    return float(total), float(degree / total)


def _method(prices: Prices) -> str | None:
    # Where links are asked there is no public topology for the methods below; degrees are read beside lists only.
    if prices.degree is not None:
        return "blink" if prices.links is not None and SHARES[0] <= _lists_and_degree(prices)[1] <= SHARES[1] else None
    if prices.links is not None:
        return "link-beliefs"
    if prices.features is not None:
        return "lpgnn"
    return "label-pool" if prices.label is not None else None
