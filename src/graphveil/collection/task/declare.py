"""From what is declared about a graph, and a price, to the facts of a task, with the thresholds of our own mechanisms.

    epsilon (a decimal)  ->  the largest binary64 number that is not above it  ->  the mechanism  ->  its whole numbers

So devices and simulation share every integer, and what a device checks in whole numbers holds for the decimal that
people read.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from graphveil.collection.task.promised import Mechanism, promises
from graphveil.device.people.people import ids_hash
from graphveil.device.reading import number
from graphveil.device.reports.exact import LARGEST
from graphveil.device.reports.links import MOST_PEOPLE
from graphveil.device.task import VERSION
from graphveil.errors import InputError
from graphveil.graphs import GraphSchema
from graphveil.mechanisms import AdjacencyRR, MultiBit, RandomizedResponse
from graphveil.mechanisms.edges.degrees import NoisyDegree
from graphveil.privacy.statement.guarantee import paragraph


@dataclass(frozen=True, kw_only=True)
class Prices:
    """What is asked at which epsilon, as decimals; None asks nothing.

    Args:
        features, label, links, degree: epsilon of one report of each. mode: for whom a list answers, see `AdjacencyRR`.
        sampled: coordinates of the features, None: the best.
    """

    features: str | None = None
    label: str | None = None
    links: str | None = None
    degree: str | None = None
    sampled: int | None = None
    mode: str = "lower"


@dataclass(frozen=True, kw_only=True)
class Words:
    """What people read: name, organiser, purpose and contact of a task, and what of it is public."""

    name: str
    organiser: str
    purpose: str
    contact: str
    public: tuple[str, ...] = ()


def task_facts(
    schema: GraphSchema,
    names: Sequence[str],
    ids: Sequence[str],
    prices: Prices,
    words: Words,
    *,
    opens: int,
    closes: int,
    least: int,
) -> dict[str, object]:
    """Return the facts of a task, ready to be signed.

    Args:
        schema: of the graph that is asked for. names: of its columns. ids: of everybody who may take part, in order.
        prices: what is asked, and for how much. words: what people read.
        opens, closes: seconds since 1970. least: reports, below which nothing is exported.

    Raises:
        InputError: nothing is asked, or a price or size that no task can have.
    """
    fields_and_mechanisms = list(_fields(schema, names, len(ids), prices))
    if not fields_and_mechanisms:
        raise InputError("the task asks for nothing", allowed="an epsilon for features, label, links or degree")
    fields, mechanisms = zip(*fields_and_mechanisms, strict=True)
    guarantees = promises(mechanisms, [str(facts["epsilon"]) for facts in fields])
    texts = {"name": words.name, "organiser": words.organiser, "purpose": words.purpose, "contact": words.contact}
    return {
        "version": VERSION,
        **texts,
        "opens": opens,
        "closes": closes,
        "least": least,
        "people": len(ids),
        "ids": ids_hash(ids),
        "fields": list(fields),
        "guarantee": [paragraph(guarantee) for guarantee in guarantees],
        "public": list(words.public),
        # Two tasks that ask the same are two tasks: their noise, and what they cost, are apart.
        "nonce": secrets.token_hex(16),
    }


def at_most(decimal: str) -> float:
    """Return the largest binary64 number that is not above a decimal, 44 at most.

    Raises:
        DeviceError: no decimal that a task may name.
    """
    return below(number({"epsilon": decimal}, "epsilon"))


def below(exact: Fraction) -> float:
    """Return the largest binary64 number that is not above an epsilon, 44 at most."""
    # From 44 on a threshold of 64 bits cannot tell one epsilon from the next, and devices count them as 44.
    near = float(min(exact, Fraction(LARGEST)))
    return near if Fraction(near) <= exact else math.nextafter(near, 0.0)


def _fields(
    schema: GraphSchema, names: Sequence[str], people: int, prices: Prices
) -> Iterable[tuple[Mapping[str, object], Mechanism]]:
    if prices.features is not None:
        yield _features(schema, names, prices.features, prices.sampled)
    if prices.label is not None:
        response = RandomizedResponse(epsilon=at_most(prices.label), classes=len(schema.classes))
        facts = {"kind": "label", "classes": list(schema.classes), "epsilon": prices.label}
        yield {**facts, "share": str(response.share)}, response
    if people > MOST_PEOPLE and (prices.links, prices.degree) != (None, None):
        raise InputError(
            f"links of {people:,} people",
            allowed=f"{MOST_PEOPLE:,} at most",
            remedy="ask for neither links nor a degree",
        )
    if prices.links is not None:
        lists = AdjacencyRR(epsilon=at_most(prices.links), nodes=people, mode=prices.mode)
        facts = {"kind": "links", "mode": prices.mode, "epsilon": prices.links}
        yield {**facts, "threshold": str(lists.threshold)}, lists
    if prices.degree is not None:
        degree = NoisyDegree(epsilon=at_most(prices.degree), nodes=people, mode=prices.mode)
        digits, overflow = degree.thresholds
        facts = {
            "kind": "degree",
            "mode": prices.mode,
            "epsilon": prices.degree,
            "digits": [str(digit) for digit in digits],
        }
        yield {**facts, "overflow": str(overflow), "lowest": degree.ends[0], "highest": degree.ends[1]}, degree


def _features(
    schema: GraphSchema, names: Sequence[str], epsilon: str, sampled: int | None
) -> tuple[Mapping[str, object], MultiBit]:
    if len(names) != schema.dimension:
        raise InputError(f"{len(names)} names of {schema.dimension} columns", where=schema.name)
    bits = MultiBit(
        epsilon=at_most(epsilon), dimension=schema.dimension, low=schema.low, high=schema.high, sampled=sampled
    )
    low, high = (_decimal(bound) for bound in (schema.low, schema.high))
    facts = {"kind": "features", "names": list(names), "low": low, "high": high, "epsilon": epsilon}
    return {**facts, "sampled": bits.coordinates, "threshold": str(bits.law.low)}, bits


def _decimal(bound: float) -> str:
    """A number as the shortest decimal that is read as it again."""
    mantissa, _, exponent = repr(float(bound)).partition("e")
    mantissa = mantissa.removesuffix(".0")
    return mantissa if not exponent else f"{mantissa}e{int(exponent)}"
