"""Signed tasks for tests, with the thresholds that our mechanisms draw with."""

from __future__ import annotations

import math
import os
from fractions import Fraction
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from graphveil.device.canonical import canonical
from graphveil.device.task import OPENING, TASK, Opening, Task
from graphveil.mechanisms import AdjacencyRR, MultiBit, RandomizedResponse
from graphveil.mechanisms.edges.degrees import NoisyDegree

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
MOODS = ("calm", "glad", "sad")


def at_most(epsilon: str) -> float:
    """The float that a mechanism takes for a decimal: the nearest may lie above it, and lose more than is stated."""
    nearest = float(epsilon)
    return nearest if Fraction(nearest) <= Fraction(epsilon) else math.nextafter(nearest, 0.0)


def features(
    epsilon: str = "4", dimension: int = 6, low: str = "-1", high: str = "3", sampled: int | None = None
) -> dict[str, Any]:
    ends = {"low": float(low), "high": float(high)}
    law = MultiBit(epsilon=at_most(epsilon), dimension=dimension, **ends, sampled=sampled)
    names = [f"f{place}" for place in range(dimension)]
    declared = {"kind": "features", "names": names, "low": low, "high": high, "epsilon": epsilon}
    return {**declared, "sampled": law.coordinates, "threshold": str(law.law.low)}


def label(epsilon: str = "1") -> dict[str, Any]:
    share = RandomizedResponse(epsilon=at_most(epsilon), classes=len(MOODS)).share
    return {"kind": "label", "classes": list(MOODS), "epsilon": epsilon, "share": str(share)}


def links(people: int, epsilon: str = "2", mode: str = "lower") -> dict[str, Any]:
    threshold = AdjacencyRR(epsilon=at_most(epsilon), nodes=people, mode=mode).threshold
    return {"kind": "links", "mode": mode, "epsilon": epsilon, "threshold": str(threshold)}


def degree(people: int, epsilon: str = "0.5", mode: str = "lower") -> dict[str, Any]:
    law = NoisyDegree(epsilon=at_most(epsilon), nodes=people, mode=mode)
    digits, overflow = law.thresholds
    declared = {"kind": "degree", "mode": mode, "epsilon": epsilon, "lowest": law.ends[0], "highest": law.ends[1]}
    return {**declared, "digits": [str(digit) for digit in digits], "overflow": str(overflow)}


def facts(*fields: dict[str, Any], people: int = 12, **changes: Any) -> dict[str, Any]:
    words = {name: name for name in ("name", "organiser", "purpose", "contact", "ids", "nonce")}
    numbers = {"version": 2, "opens": 0, "closes": 2_000_000_000, "least": 5, "people": people}
    return {**words, **numbers, "fields": list(fields), "guarantee": ["one"], "public": [], **changes}


def signed(name: str, purpose: bytes, value: dict[str, Any], key: Ed25519PrivateKey = KEY) -> bytes:
    public = key.public_key().public_bytes_raw()
    signature = key.sign(purpose + public + canonical(value)).hex()
    return canonical({"key": public.hex(), "signature": signature, name: value})


def task_of(*fields: dict[str, Any], **changes: Any) -> Task:
    return Task.of(signed("task", TASK, facts(*fields, **changes)))


def opening_of(task: Task, *nonces: bytes) -> Opening:
    hex_nonces = [nonce.hex() for nonce in nonces or (os.urandom(16),)]
    return Opening.of(signed("opening", OPENING, {"task": task.hash.hex(), "nonces": hex_nonces}), task)
