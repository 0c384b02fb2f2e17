"""From a graph's declaration and prices to the facts of a task, with the thresholds of our own mechanisms.

    epsilon (a decimal)  ->  the largest binary64 number that is not above it  ->  the mechanism  ->  its whole numbers

So devices and simulation share every integer, and what a device checks in whole numbers holds for the decimal that
people read.

A task promises of each unit one guarantee, which adds up all answers about it that a report carries:

    one relationship            list + number of links, times two where both ends report or may do so
    features, label             each by itself
    all that a person reports   features + label + one relationship

A list and a number of links leave together, so whoever reads the report divides by both: a guarantee of either alone
would say of a report what holds of a part of it.
"""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from graphveil.device.canonical import canonical
from graphveil.device.people.people import ids_hash
from graphveil.device.reading import number
from graphveil.device.reports.exact import LARGEST
from graphveil.device.reports.links import MOST_PEOPLE
from graphveil.device.task import OPENING, TASK, VERSION, Task, to_sign
from graphveil.errors import InputError
from graphveil.files.writing import write_bytes
from graphveil.graphs import GraphSchema
from graphveil.mechanisms import AdjacencyRR, MultiBit, RandomizedResponse
from graphveil.mechanisms.edges.degrees import NoisyDegree
from graphveil.mechanisms.permanent import permanent_guarantee
from graphveil.privacy import Guarantee, ProtectedUnit, compose, together
from graphveil.privacy.accounting.limits import LARGEST_EPSILON
from graphveil.privacy.statement.guarantee import paragraph
from graphveil.runtime.words import count_of

Mechanism: TypeAlias = MultiBit | RandomizedResponse | AdjacencyRR | NoisyDegree


@dataclass(frozen=True, kw_only=True)
class Prices:
    """The fields of a task with epsilons of one report each, as decimals; None leaves a field out.

    Args:
        mode: for whom a list answers, see `AdjacencyRR`.
        sampled: coordinates of the features; None: the best number.
    """

    features: str | None = None
    label: str | None = None
    links: str | None = None
    degree: str | None = None
    sampled: int | None = None
    mode: str = "lower"


@dataclass(frozen=True, kw_only=True)
class Words:
    """The texts of a task: name, organiser, purpose, contact, and sentences on what is public."""

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
    """Return the facts of a task to be signed; InputError for no field, or a price or size that no task can have.

    Args:
        schema: of the graph to be collected.
        ids: of everybody who may take part, in order.
        opens, closes: seconds since 1970.
        least: reports, below which nothing is exported.
    """
    fields_and_mechanisms = list(_fields(schema, names, len(ids), prices))
    if not fields_and_mechanisms:
        raise InputError("the task asks for nothing", allowed="an epsilon for features, label, links or degree")
    fields, mechanisms = zip(*fields_and_mechanisms, strict=True)
    guarantees = guarantees_of(mechanisms, [str(facts["epsilon"]) for facts in fields])
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
        # Two tasks that ask the same are two tasks: noise and price of one are not those of the other.
        "nonce": secrets.token_hex(16),
    }


def at_most(decimal: str, name: str = "epsilon") -> float:
    """Return the largest binary64 number not above the epsilon of a field, at most 44; DeviceError for a text that is
    no decimal, InputError for an epsilon that hides nothing.
    """
    exact = number({name: decimal}, name)
    if exact > LARGEST_EPSILON:
        remedy = "more hides nothing, but would look like a guarantee"
        raise InputError(f"{name} is {decimal}", allowed=f"an epsilon in (0, {LARGEST_EPSILON:g}]", remedy=remedy)
    return below(exact)


def below(exact: Fraction) -> float:
    """Return the largest binary64 number that is not above an epsilon, 44 at most."""
    # From 44 on a threshold of 64 bits cannot tell one epsilon from the next, and devices count them as 44.
    nearest = float(min(exact, Fraction(LARGEST)))
    return nearest if Fraction(nearest) <= exact else math.nextafter(nearest, 0.0)


def _fields(
    schema: GraphSchema, names: Sequence[str], people: int, prices: Prices
) -> Iterable[tuple[Mapping[str, object], Mechanism]]:
    if prices.features is not None:
        yield _features(schema, names, prices.features, prices.sampled)
    if prices.label is not None:
        response = RandomizedResponse(epsilon=at_most(prices.label, "label"), classes=len(schema.classes))
        facts = {"kind": "label", "classes": list(schema.classes), "epsilon": prices.label}
        yield {**facts, "share": str(response.share)}, response
    if people > MOST_PEOPLE and (prices.links, prices.degree) != (None, None):
        raise InputError(
            f"links of {people:,} people",
            allowed=f"{MOST_PEOPLE:,} at most",
            remedy="ask for neither links nor a degree",
        )
    if prices.links is not None:
        lists = AdjacencyRR(epsilon=at_most(prices.links, "links"), nodes=people, mode=prices.mode)
        facts = {"kind": "links", "mode": prices.mode, "epsilon": prices.links}
        yield {**facts, "threshold": str(lists.threshold)}, lists
    if prices.degree is not None:
        degree = NoisyDegree(epsilon=at_most(prices.degree, "degree"), nodes=people, mode=prices.mode)
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
        raise InputError(f"{count_of(len(names), 'name')} of {count_of(schema.dimension, 'column')}", where=schema.name)
    bits = MultiBit(
        epsilon=at_most(epsilon, "features"),
        dimension=schema.dimension,
        low=schema.low,
        high=schema.high,
        sampled=sampled,
    )
    low, high = (_decimal(bound) for bound in (schema.low, schema.high))
    facts = {"kind": "features", "names": list(names), "low": low, "high": high, "epsilon": epsilon}
    return {**facts, "sampled": bits.coordinates, "threshold": str(bits.law.low)}, bits


def _decimal(bound: float) -> str:
    """Return the shortest decimal that reads back as the same number."""
    mantissa, _, exponent = repr(float(bound)).partition("e")
    mantissa = mantissa.removesuffix(".0")
    return mantissa if not exponent else f"{mantissa}e{int(exponent)}"


def guarantees_of(mechanisms: Sequence[Mechanism], epsilons: Sequence[str]) -> list[Guarantee]:
    """Return the guarantee of each unit, then of all units together where there are several.

    Args:
        mechanisms: one for each field.
        epsilons: of the fields, as the decimals that the task states.
    """
    # At the stated epsilon: devices pay it, even where no threshold of 64 bits can lose as much.
    stated = [_of_both_ends(mechanism, float(epsilon)) for mechanism, epsilon in zip(mechanisms, epsilons, strict=True)]
    people = [
        permanent_guarantee(mechanism) for mechanism in stated if isinstance(mechanism, MultiBit | RandomizedResponse)
    ]
    lists = [permanent_guarantee(mechanism) for mechanism in stated if isinstance(mechanism, AdjacencyRR | NoisyDegree)]
    of_lists = [_sum_of(lists, lists[0].unit)] if len(lists) > 1 else lists
    each = [*people, *of_lists]
    if len(each) == 1:
        return each
    # Replacing one relationship by another would change two bits; the unit is whether a relationship exists.
    relationship = [replace(guarantee, unit=guarantee.unit.existence(), relation="replace") for guarantee in of_lists]
    parts = [*people, *relationship]
    return [*each, _sum_of(parts, together(guarantee.unit for guarantee in parts))]


def _of_both_ends(mechanism: Mechanism, epsilon: float) -> Mechanism:
    # Friends name each other, even where a list holds only links that begin at its person: whoever reads both lists
    # divides twice, whatever a single link costs.
    if isinstance(mechanism, AdjacencyRR | NoisyDegree) and mechanism.mode == "directed":
        return replace(mechanism, epsilon=epsilon, mode="both")
    return replace(mechanism, epsilon=epsilon)


def _sum_of(parts: Sequence[Guarantee], unit: ProtectedUnit) -> Guarantee:
    # As the decimals that people read: in binary 0.1 + 0.2 is a little above 0.3, and would be printed as 0.300001.
    exact = sum(Fraction(str(part.epsilon)) for part in parts)
    return replace(compose(parts, unit=unit), epsilon=float(exact))


def new_key(path: Path) -> Ed25519PrivateKey:
    """Make a key in a new file of its owner; InputError where it exists: devices would refuse the new key."""
    key = Ed25519PrivateKey.generate()
    partial = path.with_name(f".{path.name}.new")
    # Whole or not at all: half a key would block the name for good, as keys are never overwritten.
    write_bytes(partial, key.private_bytes_raw().hex().encode(), mode=0o600)
    try:
        os.link(partial, path)
    except FileExistsError as error:
        raise InputError(f"{path} is there already", remedy="take that key, or another file") from error
    finally:
        partial.unlink()
    return key


def read_key(path: Path) -> Ed25519PrivateKey:
    """Return the key of a file; InputError where there is no such file, or it holds no key."""
    if not path.is_file():
        raise InputError(f"{path} is no file", remedy="where the key is kept elsewhere, name it: --key FILE")
    try:
        return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(path.read_text()))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} holds no key of an organiser") from error


def signed_task(facts: Mapping[str, object], key: Ed25519PrivateKey) -> Task:
    """Return a signed task, checked as a device checks it.

    Args:
        facts: see `declare.task_facts`.
        key: the organiser's.
    """
    return Task.of(_signed("task", TASK, facts, key))


def signed_opening(task: Task, nonces: Sequence[bytes], key: Ed25519PrivateKey) -> bytes:
    """Return the signed opening of the last epoch.

    Args:
        nonces: one for each epoch so far.
        key: the organiser's.
    """
    return _signed("opening", OPENING, {"task": task.hash.hex(), "nonces": [nonce.hex() for nonce in nonces]}, key)


def _signed(name: str, purpose: bytes, value: Mapping[str, object], key: Ed25519PrivateKey) -> bytes:
    public = key.public_key().public_bytes_raw()
    signature = key.sign(to_sign(purpose, public, value)).hex()
    return canonical({"key": public.hex(), "signature": signature, name: dict(value)})
