"""Lines that a reader of JSON could take for something else: both clients answer each of them alike, and go on."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from typing import Any

from graphveil.device.lines import Client, answer_lines
from tests.on_device.javascript import CLIENT, node
from tests.on_device.signing import OPENING, degree, features, label, links, signed
from tests.on_device.vectors import KEY, NONCES, SECRETS, answer, task_line

#: Spellings of values, right JSON and wrong.
_WORDS = r"""null true false [] {} "" "1" 0 -0 -0.0 1 1.0 1e0 10E-1 -1 2.5 4294967296 9007199254740991 9007199254740992
    9007199254740993.0 1e18 1e308 1e400 -1e400 5e-324 1e-400 NaN Infinity "NaN" 01 1. .5 +1 0x10 1_0 "0x10" "1_0" "1/3"
    "1e1" "\u0661" "\ud800" "\u2028" '1' [1,] [1.0] [null] ["NaN"] [["NaN"]] {"0":[]} {"0":["aa"]} {"0":"aa"} {"9":[]}
    {"00":[]} {"__proto__":[1]} {"toString":1} {"label":"sad","label":"glad"} {"label":null} {"features":[0,0]}
    {"features":[1e0,-0.0,0,0,0,3.0]} {"features":[0,0,0,0,0,1e400]} {"links":[5.0]} {"links":[-0]}"""
SPELLINGS = (
    *_WORDS.split(),
    *('" "', '"\u2028"', '"11 11"', "1" + "0" * 305, "9" * 400, "1" + "0" * 5000, '"' + "11" * 32 + '"'),
    *("[" * depth + "]" * depth for depth in (98, 99, 100, 101, 6000)),
)
_ONE = b'{"op":"canonical","value":1'
_TEXT = b'{"op":"canonical","value":"%s"}'
#: Whole lines.
ODD = (
    *(
        b"",
        b" ",
        b"{}",
        b"[]",
        b"null",
        b"5",
        b'"op"',
        b"{",
        b"\xff",
        b"\xef\xbb\xbf{}",
        b"[" * 100_000,
        b"\xe2\x80\xa8",
    ),
    *(b'{"op":["task"]}', b'{"op":"toString"}', b'{"op":"__proto__"}', b'{"op":"\xff"}', b'{"op":"canonical"}'),
    *(_ONE + end for end in (b"}\r", b"\x0b}", b',"value":2}', b"\xc2\xa0}", b"} ", b"}}")),
    *(_TEXT % text for text in (b"\xe2\x80\xa8", b"\xc2\x85", b"\xed\xa0\x80", b"\xff", b"\x7f", b"\x1f", b"\\u001F")),
)


def rights() -> list[dict[str, Any]]:
    """A line of each operation that is answered, and first of all the task that they are about."""
    begin, task = task_line(label("1"), features("4"), links(12, "2"), degree(12, "0.5"))
    values = {"label": "sad", "features": [0.5] * 6, "links": [5, 11]}
    request = {**answer(task, values, 3), "seen": {"0": ["00" * 8]}, "left": 10**10, "now": 5}
    client = Client()
    client.answer(begin)
    body = client.answer(request)["body"]
    opening = signed("opening", OPENING, {"task": task, "nonces": [nonce.hex() for nonce in NONCES]}).decode()
    report = {"op": "report", "task": task, "epoch": 1, "body": body, "secret": SECRETS[1].hex(), "key": KEY.hex()}
    return [
        {**begin, "expected": task},
        {"op": "canonical", "value": {"a": [1, "b"]}},
        {"op": "parse", "data": b"[1]".hex()},
        {"op": "keeps", "likely": "5", "rare": "2", "epsilon": "1"},
        {"op": "assigned", "task": task, "nonce": "22" * 16, "number": 3, "dimension": 5, "size": 2},
        {"op": "opening", "task": task, "data": opening, "joined": 1},
        request,
        {"op": "validate", "task": task, "number": 3, "nonce": NONCES[1].hex(), "body": body},
        report,
        {"op": "read", "data": client.answer(report)["data"], "key": KEY.hex(), "epoch": 1},
    ]


def spoilt(line: dict[str, Any]) -> list[bytes]:
    """A line with each of its facts spelled in every way, and without it."""
    shorter = [{name: own for name, own in line.items() if name != gone} for gone in line]
    lines = [json.dumps(changed).encode() for changed in shorter]
    for changed, name in zip(shorter, line, strict=True):
        begun = json.dumps(changed).removesuffix("}") + f', "{name}": '
        # Of every fact a third of them: another third for the next one.
        lines += [f"{begun}{spelling}}}".encode() for spelling in SPELLINGS[len(lines) % 3 :: 3]]
    return lines


def test_both_clients_answer_alike() -> None:
    right = rights()
    lines = [*(json.dumps(line).encode() for line in right), *ODD, *(line for line in right for line in spoilt(line))]
    ours = [json.loads(line) for line in answer_lines(lines)]
    assert not any("error" in answer for answer in ours[: len(right)])
    done = subprocess.run([node(), str(CLIENT / "lines.js")], input=b"\n".join(lines), capture_output=True, check=True)
    theirs = [json.loads(line) for line in done.stdout.splitlines()]
    pairs = zip(lines, ours, theirs, strict=True)
    differ = [(line[:80], line[-80:], own, other) for line, own, other in pairs if own != other]
    assert not differ
    codes = Counter(answer.get("error", "answered") for answer in ours)
    assert codes["bad-line"] > 300 and codes["answered"] > 30 and codes["bad-value"] > 5, codes
