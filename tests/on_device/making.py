"""Vectors of the standard: `python -m tests.on_device.making` writes them into vectors/, the same ones each time.

A line holds what a client is told, and what it answers.  The answers are those of the Python client; test_vectors.py
compares them with the second program of `reference`.  What is random follows from a fixed seed.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from graphveil.device.canonical import canonical, parse
from graphveil.device.exact import WORD
from graphveil.device.lines import Client, answered
from graphveil.device.people import ids_hash
from graphveil.device.task import OPENING, TASK
from graphveil.mechanisms import MultiBit, RandomizedResponse
from tests.on_device.signing import KEY as OWN
from tests.on_device.signing import at_most, degree, facts, features, label, links, signed

FOLDER = Path(__file__).parents[2] / "vectors"
SECRETS = [bytes([place]) * 32 for place in (0, 1, 127, 255)]
NONCES = [bytes(16), bytes(range(16)), b"\xff" * 16]
KEY = bytes(range(100, 132))
STRANGER = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
Line = dict[str, Any]
#: Who takes part: they differ to everybody.
PEOPLE = ("Zo\u00eb B", "zoe b", "\U0001f600\ufe0f", '"\\ \u2028')
#: Two spellings of one id.
TWINS = (
    ("anna b", "anna  b"), ("anna", "ann\u200ba"), ("zo\u00eb", "zoe\u0308"), ("anna", "\uff41\uff4e\uff4e\uff41"),
    ("anna b", "anna\u00a0b"), ("Anna", "ANNA"), ("stra\u00dfe", "STRASSE"),
    ("\u03c3\u03b1\u03c3", "\u03a3\u0391\u03a3"), ("zo\u00eb", "zoe\u200d\u0308"), ("anna", "\u2067anna\u2069"),
    ("anna", "anna\x01"), ("\ud55c", "\u1112\u1161\u11ab"), ("\u13a0", "\uab70"), ("\u0131b", "\U0001d6a4b"),
)  # fmt: skip


def lines_of(ids: Iterable[str]) -> bytes:
    """A list of people on the wire."""
    return b"".join(canonical(id) + b"\n" for id in ids)


def asked(*fields: dict[str, Any], people: int = 12, **changes: Any) -> tuple[Line, str]:
    """The line that tells of a task, and the task's hash."""
    data = signed("task", TASK, facts(*fields, people=people, least=1, **changes))
    line = {"op": "task", "data": data.decode()}
    return line, str(Client().answer(line)["hash"])


def answer(task: str, values: Line, number: int = 0, secret: int = 1, nonce: int = 1, **more: Any) -> Line:
    told = {"op": "answer", "task": task, "number": number, "nonce": NONCES[nonce].hex()}
    return {**told, "secret": SECRETS[secret].hex(), "values": values, **more}


def vector(epsilon: str, dimension: int, sampled: int, low: str = "0", high: str = "1") -> dict[str, Any]:
    """A field of features of which so many are asked."""
    law = MultiBit(epsilon=at_most(epsilon), dimension=dimension, low=float(low), high=float(high), sampled=sampled).law
    return {**features(epsilon, dimension, low, high), "sampled": sampled, "threshold": str(law.low)}


def choice(epsilon: str, classes: int) -> dict[str, Any]:
    share = RandomizedResponse(epsilon=at_most(epsilon), classes=classes).share
    names = [f"class {place}" for place in range(classes)]
    return {"kind": "label", "classes": names, "epsilon": epsilon, "share": str(share)}


def values_of(low: float, high: float) -> list[float]:
    """Both ends, zeros of either sign, halves of a step, and what lies beside them."""
    halves = [low + (high - low) * ((k + 0.5) / 2**32) for k in (0, 1, 2, 2**31, 2**32 - 2, 2**32 - 1)]
    found = [low, high, *halves, (low + high) / 2, math.nextafter(low, high), math.nextafter(high, low), 1 / 3]
    return [one for one in [*found, 0.0, -0.0] if low <= one <= high]


def feature_lines() -> Iterator[Line]:
    source = random.Random(1)
    laws = [(1, 1, "1"), (1, 1, "0.001"), (7, 1, "1"), (7, 3, "8"), (7, 7, "0.5"), (64, 5, "12")]
    for dimension, sampled, epsilon in laws:
        for low, high in [("0", "1"), ("-1", "3"), ("-0.1", "0.2"), ("1e-3", "1e6"), ("-1e300", "7e-300")]:
            line, task = asked(vector(epsilon, dimension, sampled, low, high))
            yield line
            edges = values_of(float(low), float(high))
            for turn in range(5):
                own = [edges[(place + 3 * turn) % len(edges)] for place in range(dimension)]
                yield answer(task, {"features": own}, turn, turn % 4, turn % 3)
    for sampled, epsilon in ((1, "1"), (1432, "1000"), (1433, "44")):
        line, task = asked(vector(epsilon, 1433, sampled, "0", "1"))
        yield line
        for number in (0, 11):
            yield answer(task, {"features": [int(source.random() < 0.1) for _ in range(1433)]}, number, 2)
    line, task = asked(vector("1", 1, 1, "0", "1e308"))
    yield line
    # Whole numbers that no word of a processor holds are the nearest numbers of binary64, as others are.
    large = (10**305, 10**302, int("9" * 308) // 10, 2**53 + 1, 1e308, 5e-324)
    yield from (answer(task, {"features": [one]}, secret=secret) for one in large for secret in range(2))
    line, task = asked(vector("4", 3, 2, "-2", "2"))
    yield line
    named = {"f2": 1, "f0": -0.0, "f1": 0.5}
    yield from (answer(task, {"features": told}) for told in (named, [0, 0.5, 1], [0.0, 0.5, 1.0], [-0.0, 0.5, 1]))


def label_lines() -> Iterator[Line]:
    for classes, epsilon in product((2, 3, 4, 7, 40), ("0.01", "1", "8", "44")):
        line, task = asked(choice(epsilon, classes))
        yield line
        for turn, true in enumerate(sorted({0, 1, classes // 2, classes - 1})):
            for secret in range(2):
                yield answer(task, {"label": f"class {true}"}, turn, secret, turn % 3)


def list_lines() -> Iterator[Line]:
    source = random.Random(2)
    for people, mode, epsilon in product((2, 9, 64, 1000), ("lower", "both", "directed"), ("0.5", "3")):
        line, task = asked(links(people, epsilon, mode), degree(people, epsilon, mode), people=people)
        yield line
        for number in sorted({0, people // 2, people - 1}):
            others = [other for other in range(people) if other != number]
            few = source.sample(others, min(len(others), 1 + people // 20))
            for secret, named in enumerate(([], few, others if people < 1000 else few[::-1])):
                yield answer(task, {"links": named}, number, secret)


def whole_lines() -> Iterator[Line]:
    """Tasks of several fields: what is left out, what is asked again, and what it costs then."""
    everything = {"label": "glad", "features": [0.1, 3, -1, 0, 2.5, 1 / 3], "links": [11, 4, 5]}
    for epsilon in ("0.25", "2"):
        line, task = asked(label(epsilon), features(epsilon), links(12, epsilon), degree(12, epsilon))
        yield line
        for kinds in product((False, True), repeat=3):
            told = {kind: own for (kind, own), is_told in zip(everything.items(), kinds, strict=True) if is_told}
            yield answer(task, told, 3)
        # Other people, secrets, nonces, tasks: nothing of one answer is in another.
        yield from (answer(task, everything, number, secret, 2) for number in (0, 10) for secret in range(4))
        first = Client()
        first.answer(line)
        names: Any = first.answer(answer(task, everything, 3))["names"]
        for place, own in names.items():
            yield answer(task, everything, 3, seen={place: own})
        yield answer(task, everything, 3, seen=names, left=0)
        yield answer(task, {**everything, "label": "sad"}, 3, seen=names, left=int(Fraction(epsilon) * 10**9))
        yield answer(task, {**everything, "links": [11, 4, 6]}, 3, seen=names)
        yield answer(task, everything, 3, seen={"2": ["00" * 8, "11" * 8], "1": names["1"][:1]})
    line, task = asked(label("1"), purpose='\u2028 äöü € 😀 "quoted" \\ \n\t\x7f', name="0", public=["", "b", "a"])
    yield line
    line, task = asked(links(4, "1", "both"), people=4, ids=ids_hash(PEOPLE))
    yield line
    for spelling in (json.dumps, lambda id: canonical(id).decode(), lambda id: f" {json.dumps(id)}\t"):
        yield {"op": "ids", "task": task, "data": "".join(f"{spelling(id)}\n" for id in PEOPLE).encode().hex()}
    line, task = asked(label("1"))
    yield line
    for joined, nonces in ((1, NONCES[:1]), (1, NONCES), (2, NONCES), (3, NONCES)):
        told = {"task": task, "nonces": [nonce.hex() for nonce in nonces]}
        data = signed("opening", OPENING, told).decode()
        yield {"op": "opening", "task": task, "data": data, "joined": joined}
    yield {**line, "expected": task}
    outer = parse(str(line["data"]).encode())
    for key in (outer["key"].upper(), " ".join((outer["key"][:2], outer["key"][2:], ""))):
        yield {"op": "task", "data": canonical({**outer, "key": key}).decode(), "expected": task}


def plain_lines() -> Iterator[Line]:
    """What needs no task."""
    texts = ["", "a", '"\\/', "\b\f\n\r\t", "\x00\x1f\x7f", "ä€😀", "\u2028\u2029\ufeff"]
    values: list[Any] = [*texts, 0, -1, 2**53 - 1, 1 - 2**53, True, False, [], {}, [[], [{}]], ["1", 1, True]]
    values += [{"b": 1, "a": 2, "B": 3, "_": 4, "10": 5, "9": 6, "": 7}, {"a": {"z": [texts], "y": {}}}]
    for value in values:
        yield {"op": "canonical", "value": value}
        yield {"op": "parse", "data": canonical(value).hex()}
    source = random.Random(3)
    for epsilon in ("0.000000001", "0.1", "0.5", "1", "2.180000001", "8", "43.999999999", "44", "45"):
        for rare in (1, 1000, source.randrange(2**40, 2**60)):
            most = int(Fraction(math.exp(min(float(epsilon), 44.0))) * rare)
            for likely in (most - most // 2**40 - 1, most + most // 2**40 + 2):
                yield {"op": "keeps", "likely": str(max(likely, 0)), "rare": str(rare), "epsilon": epsilon}
    yield {"op": "keeps", "likely": "0", "rare": "0", "epsilon": "1"}
    yield from ({"op": "form", "id": id} for pair in TWINS for id in pair)
    for dimension, size in ((1, 1), (2, 1), (7, 3), (7, 7), (100, 99), (1433, 1), (1433, 20), (100_000, 5)):
        for number in (0, 1, 2**40):
            told = {"task": bytes(range(32)).hex(), "nonce": NONCES[number % 3].hex(), "number": number}
            yield {"op": "assigned", **told, "dimension": dimension, "size": size}


def report_lines() -> Iterator[Line]:
    whole = ""
    for epoch, body, secret in product((1, 2, 2**32 - 1), ("", "80", "00ff" * 100), range(2)):
        told = {"task": bytes(range(32)).hex(), "epoch": epoch, "body": body}
        line = {"op": "report", **told, "secret": SECRETS[secret].hex(), "key": KEY.hex()}
        yield line
        data = str(Client().answer(line)["data"])
        whole += data
        yield {"op": "read", "data": data, "key": KEY.hex(), "epoch": epoch}
    # All of them, and each epoch's alone have tags of that epoch: a report that was held back is none of a later one.
    for one in (1, 2, 3, 2**32 - 1):
        yield {"op": "read", "data": whole, "key": KEY.hex(), "epoch": one}
    yield {"op": "read", "data": data, "key": SECRETS[1].hex(), "epoch": epoch}
    for place in (1, 33, 49, 69, len(data) // 2 - 1):
        changed = bytearray(bytes.fromhex(data))
        changed[place] ^= 1
        yield {"op": "read", "data": changed.hex(), "key": KEY.hex(), "epoch": epoch}
    line, task = asked(label("1"), features("4"), links(12, "1"), degree(12, "1"))
    yield line
    client = Client()
    client.answer(line)
    told = {"label": "sad", "features": [0.5] * 6, "links": [5]}
    for number, values in ((0, told), (11, told), (3, {}), (4, {"label": "calm"}), (7, {"links": []})):
        made = client.answer(answer(task, values, number))
        yield {"op": "validate", "task": task, "number": number, "nonce": NONCES[1].hex(), "body": made["body"]}


def refused_lines() -> Iterator[Line]:
    yield from refused_tasks()
    yield from refused_values()
    yield from refused_ids()
    yield from refused_bytes()
    yield from odd_lines()
    yield from ({}, {"op": "sign"}, {"op": "canonical"}, {"op": "parse", "data": "0g"}, {"op": "parse", "data": 5})
    yield {"op": "assigned", "task": "00" * 32, "nonce": "00" * 16, "number": True, "dimension": 1, "size": 1}


def odd_lines() -> Iterator[Line]:
    """What a reader of JSON could take for something else, right ones and wrong ones."""
    line, task = asked(label("1"))
    yield line
    told = answer(task, {"label": "sad"}, 3)
    yield from ({**told, "number": number} for number in (3.0, -0.0, 2**53, -1, 3.5, "3", True, None))
    yield from ({**told, "left": left} for left in (1e9, 999_999_999.0, 1e18, 2**53, -1, None))
    kept: tuple[Any, ...] = ([], ["00" * 8])
    seen: list[Any] = [{}, *({"0": one} for one in kept), {"1": []}, {"00": []}, {"x": []}, {"0": "abc"}, {"0": [1]}]
    yield from ({**told, "seen": one} for one in (*seen, [], None))
    yield from ({**told, "secret": secret} for secret in ("", "11", "11" * 31, "11" * 64))
    yield {name: own for name, own in told.items() if name != "values"}
    yield from ({**told, "task": other} for other in (5, None, [task]))
    right = {"op": "keeps", "likely": "1", "rare": "1", "epsilon": "1"}
    for name, texts in (
        ("likely", ("", " 1", "+1", "-1", "01", "1_0", "0x10", "\u0661", "1" + "0" * 100, 1)),
        ("epsilon", ("", "-1", "1/3", "1e1", "1_0", "0x10", ".5", "1.", "01", "1.0000000001", "\u0661", "1\n", 1, "0")),
    ):
        yield from ({**right, name: one} for one in texts)
    few = {"op": "assigned", "task": "11" * 32, "nonce": "22" * 16, "number": 0, "dimension": 5, "size": 2}
    for change in ({"size": 6}, {"size": 0}, {"number": -1}, {"number": 1.0}, {"dimension": 2**20 + 1}, {"nonce": ""}):
        yield {**few, **change}
    told = {"op": "report", "task": "11" * 32, "epoch": 1, "body": "", "secret": "22" * 32, "key": "33" * 32}
    for change in ({"epoch": -1}, {"epoch": 2**32}, {"epoch": 1.0}, {"task": "11"}, {"secret": ""}, {"key": ""}):
        yield {**told, **change}
    yield {"op": "read", "data": "", "key": "", "epoch": 1}
    yield {"op": "task", "data": "\ud800"}
    for value in (1.0, 1e2, -0.0, 1e16, 10**400, "\u2028", "\ufeff"):
        yield {"op": "canonical", "value": value}
    for one in (links(12, "2"), {**degree(12, "0.5"), "highest": 2**31}):
        for people in (2**20, 2**20 + 1, 2**31, 2**40):
            yield {"op": "task", "data": signed("task", TASK, facts(one, people=people)).decode()}
    yield {"op": "task", "data": signed("task", TASK, facts(label("1"), people=2**40)).decode()}


def refused_tasks() -> Iterator[Line]:
    line, task = asked(label("1"))
    good, data = facts(label("1"), least=1), str(line["data"])
    outer = parse(data.encode())
    for key, purpose in ((STRANGER, TASK), (STRANGER, OPENING)):
        other = signed("task", purpose, good, key).decode()
        yield {"op": "task", "data": other.replace(parse(other.encode())["key"], outer["key"])}
    for place in ("key", "signature"):
        for value in ("", "00", "zz" * 32, outer[place][:-2], outer[place].replace("a", "b"), 5):
            yield {"op": "task", "data": canonical({**outer, place: value}).decode()}
    behind, within = (data + " ", data + "\n", "\ufeff" + data, data[:-1]), data.replace(":1,", ":1.0,", 1)
    for spelling in (*behind, within, "[]", "{}", "null"):
        yield {"op": "task", "data": spelling}
    yield {"op": "task", "data": data.replace('"key"', '"key":"","key"', 1)}
    yield {"op": "task", "data": data.replace("label", "l\\u0061bel")}
    yield {**line, "expected": "00" * 32}
    weak = [
        {**vector("4", 7, 2), "epsilon": "3.999999999"},
        {**vector("4", 7, 2), "sampled": 3},
        {**choice("1", 3), "epsilon": "0.999999999"},
        {**choice("1", 3), "share": str(int(choice("1", 3)["share"]) - 2**20)},
        {**links(12, "2"), "epsilon": "1.999999999"},
        {**links(12, "50"), "epsilon": "43"},
        {**degree(12, "0.5"), "epsilon": "0.499999999"},
        {**degree(12, "0.5"), "overflow": "1"},
        {**degree(12, "0.5"), "digits": degree(12, "0.5")["digits"][::-1]},
        {**degree(12, "0.5"), "digits": degree(12, "0.5")["digits"][:-1]},
    ]
    wrong = (4, "4.0000000001", "4e0", "-4", "0", "+4", "04", ".5", "")
    bad = [{**vector("4", 7, 2), "epsilon": told} for told in wrong]
    bad += [{**vector("4", 7, 2), "low": told} for told in ("1", "nan", "-1e999", "-.5", 0, "0x0", "-")]
    bad += [{**vector("4", 7, 2), "names": told} for told in ([], ["a", "a"], [""], "a", [1])]
    bad += [{**choice("1", 3), "classes": ["a"]}, {**choice("1", 3), "share": str(WORD // 3 + 1)}, {"kind": "income"}]
    bad += [{**links(12, "2"), "mode": "upper"}, {**links(12, "2"), "threshold": "0"}, {**links(12, "2"), "more": 1}]
    bad += [{**degree(12), "highest": 10}, {**degree(12), "lowest": 1}, {**degree(12), "digits": ["1"] * 61}]
    for field in (*weak, *bad):
        yield {"op": "task", "data": signed("task", TASK, facts(field, least=1)).decode()}
    changes: list[dict[str, Any]] = [{"version": told} for told in (1, 3, "2", True)]
    changes += [{"least": 13}, {"opens": -1}, {"closes": 0}, {"name": " "}, {"ids": 1}]
    changes += [{"fields": []}, {"fields": [label(), label()]}, {"more": "facts"}, {"public": "none"}, {"people": 0}]
    for change in changes:
        yield {"op": "task", "data": signed("task", TASK, {**good, **change}).decode()}
    old = signed("task", TASK, {**good, "version": 1}).decode()
    yield {"op": "task", "data": old.replace('signature":"', 'signature":"0')}
    # The same facts, signed by whoever runs the collector: another task than the one whose hash people were told.
    other = signed("task", TASK, good, STRANGER).decode()
    yield from ({"op": "task", "data": one, "expected": task} for one in (data, other))
    yield {"op": "task", "data": other}
    # As version 1 signed and hashed, without the key.
    plain = canonical({**outer, "signature": OWN.sign(TASK + canonical(good)).hex()})
    yield {"op": "task", "data": plain.decode()}


def refused_values() -> Iterator[Line]:
    line, task = asked(features("4"), label("1"), links(12, "2"))
    yield answer(task, {})  # before the task is known
    yield line
    for last in (3.0000001, -1.0000001, 1e300, "NaN", "Infinity", "-Infinity", "1", True, None, [1]):
        yield answer(task, {"features": [0, 0, 0, 0, 0, last]})
    for told in ([0] * 5, [0] * 7, "000000", 0, {"f0": 1}, {f"f{place + 1}": 0 for place in range(6)}):
        yield answer(task, {"features": told})
    yield from (answer(task, {"label": told}) for told in ("angry", "", "Sad", 0, True, ["sad"]))
    yield from (answer(task, {"links": told}, 3) for told in ([3], [12], [-1], [5, 5], [True], [1.5], ["5"], "5", 5))
    yield from (answer(task, told) for told in ({"degree": 3}, {"income": 3}, {"features": [0] * 6, "more": 1}))
    yield from (answer(task, {"label": "sad"}, left=left) for left in (0, 10**9 - 1))
    # Of a window from 0 to 2,000,000,000: the first second is in it and the last is not.
    yield from (answer(task, {}, now=now) for now in (-1, 0, 1_999_999_999, 2_000_000_000, 2**53 - 1))
    yield from (answer(task, {}, number) for number in (12, -1))
    yield {**answer(task, {}), "nonce": "00" * 15}
    openings: tuple[tuple[Line, Ed25519PrivateKey], ...] = (
        ({"task": "00" * 32, "nonces": ["00" * 16]}, OWN),
        ({"task": task, "nonces": ["00" * 16]}, STRANGER),
        ({"task": task, "nonces": []}, OWN),
        ({"task": task, "nonces": ["00" * 15]}, OWN),
        ({"task": task, "nonces": ["00" * 16] * 2}, OWN),
        ({"task": task, "nonces": ["00" * 16], "more": 1}, OWN),
    )
    for opening, key in openings:
        data = signed("opening", OPENING, opening, key).decode()
        yield {"op": "opening", "task": task, "data": data, "joined": 1}
    data = signed("opening", OPENING, {"task": task, "nonces": ["00" * 16]}).decode()
    yield from ({"op": "opening", "task": task, "data": data, "joined": joined} for joined in (0, 2))
    yield {"op": "opening", "task": task, "data": data + " ", "joined": 1}
    # The organiser's key and signature beside another nonce; their signature of the same words for another purpose.
    yield {"op": "opening", "task": task, "data": data.replace("00" * 16, "01" * 16), "joined": 1}
    data = signed("opening", TASK, {"task": task, "nonces": ["00" * 16]}).decode()
    yield {"op": "opening", "task": task, "data": data, "joined": 1}


def refused_ids() -> Iterator[Line]:
    """Ids that are none, lists that are not the task's, and those in which somebody stands twice."""
    for id in ("", " ", "\u200d", "a\u0378", "\ue000", "\ud800", "\udfffa", "\uffff", "\u2ffc", "\U00016ea0"):
        yield {"op": "form", "id": id}
    yield from ({"op": "form", "id": id} for id in (5, None, ["a"]))
    line, task = asked(links(3, "1"), people=3, ids=ids_hash(PEOPLE[:3]))
    right = lines_of(PEOPLE[:3])
    yield {"op": "ids", "task": task, "data": right.hex()}  # before the task is known
    yield line
    marked = right[:-1], right + b"\n", b"\xef\xbb\xbf" + right, right + b"5\n", b"\xff" + right
    for data in (*marked, b"", b"\n", b"[]\n"):
        yield {"op": "ids", "task": task, "data": data.hex()}
    yield {"op": "ids", "task": task, "data": lines_of((PEOPLE[1], PEOPLE[0], PEOPLE[2])).hex()}
    yield {"op": "ids", "task": task, "data": 5}
    lists: list[tuple[str, ...]] = [(one, "Bob", other) for one, other in TWINS]
    # Each once, and as many as the task has people; as many of them different; a letter that no device knows.
    lists += [("Ann", "Bob", "Ann"), ("Ann", "Bob"), ("Ann", "Bob", "Cem", "Dia")]
    lists += [("Ann", "Bob", other) for other in ("\u2ffc", " ")]
    for ids in lists:
        line, task = asked(links(3, "1"), people=3, ids=ids_hash(ids))
        yield line
        yield {"op": "ids", "task": task, "data": lines_of(ids).hex()}


def refused_bytes() -> Iterator[Line]:
    told = {"task": bytes(range(32)).hex(), "epoch": 1, "body": "80ff"}
    client = Client()
    data = str(client.answer({"op": "report", **told, "secret": SECRETS[1].hex(), "key": KEY.hex()})["data"])
    longer = data[: 2 * 65] + "ffffffff" + data[2 * 69 :]
    for one in ("", data[:-2], data + "00", data + data[:-2], "01" + data[2:], "00" + data[2:], longer, data[: 2 * 69]):
        yield {"op": "read", "data": one, "key": KEY.hex(), "epoch": 1}
    line, task = asked(label("1"), links(12, "2"), degree(12, "0.5"))
    yield line
    client.answer(line)
    body = str(client.answer(answer(task, {"label": "sad"}, 3))["body"])
    filled, unasked = bytearray.fromhex(body), bytearray.fromhex(body)
    filled[-1] |= 1
    unasked[1] |= 4
    bodies = [body[:-2], body + "00", "", filled.hex(), unasked.hex(), *(one + body[2:] for one in ("60", "e0", "18"))]
    for one in (*bodies, "0000ff80"):  # the last one: a degree above the highest
        yield {"op": "validate", "task": task, "number": 3, "nonce": NONCES[1].hex(), "body": one}
    for text in ("{", "nul", "null", "0.5", "1.0", "1e2", "-0", "01", "9007199254740992", "NaN", " 1", "[1,]", "'a'"):
        yield {"op": "parse", "data": text.encode().hex()}
    for text in ('"\\u0061"', '"\\/"', '"\\u001F"', '{"b":1,"a":2}', '{"a":1,"a":1}', '{"ä":1}', '["\\ud800"]', '"\t"'):
        yield {"op": "parse", "data": text.encode().hex()}
    hexes = "ff", "22c08022", "22eda08022", "efbbbf31", "5b" * 33 + "5d" * 33
    yield from ({"op": "parse", "data": data} for data in hexes)
    yield from ({"op": "canonical", "value": value} for value in (None, 0.5, 2**53, -(2**53), {"ä": 1}, [[None]]))


FILES = {
    "plain": plain_lines, "features": feature_lines, "labels": label_lines, "lists": list_lines, "whole": whole_lines,
    "reports": report_lines, "refused": refused_lines,
}  # fmt: skip


def spelled(lines: Iterable[Line]) -> str:
    """A file of vectors; a client starts anew with each."""
    told = [json.dumps(line) for line in lines]
    return "".join(
        json.dumps({"in": json.loads(one), "out": json.loads(out)}, separators=(",", ":")) + "\n"
        for one, out in zip(told, answered(told), strict=True)
    )


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, lines in FILES.items():
        (FOLDER / f"{name}.jsonl").write_text(spelled(lines()))
