"""Valid files made slightly or wildly wrong, by seed: bytes, lines, cells, keys, values, nesting, encodings."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
import re
import zlib
from collections.abc import Callable
from typing import Any

#: What people, programs and attackers write where a number belongs, or a word.
NUMBERS = (
    *("0", "-0", "-1", "1", "2", "0.5", "1e-320", "1e-45", "1e-12", "1e9", "1e15", "1e39", "1e308", "1e309", "-1e308"),
    *("inf", "-inf", "nan", "NaN", "Infinity", "1e", "1_000", "0x10", "١", "1,5", " 1", "", "9" * 20, "9" * 400, "--1"),
    *("2147483648", "-2147483649", "9223372036854775807", "9223372036854775808", "18446744073709551616"),
    *("true", "None"),
)
WORDS = (
    *("", " ", "\x00", "\x1b[31m", "=1+1", "@x", "../../x", "/dev/zero", "a" * 300, "ä", "漢", "\u202e", "\ud7ff"),
    *("\ufeff", "id", "label", "null", "none", "%s", "{}", "{0}", "$", "\\", '"', "'", ",", ";", "a\nb", "a\rb"),
    *("lpgnn", "__class__"),
)
#: The same as values of JSON.
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 0.5, 1e-320, 1e308, -1e308, 2**31, 2**63, 2**64, -(2**63), 10**30, 10**300),
    *("inf", "-inf", "nan", "", "x", "\x00", "\x1b[31m", "=1+1", "a" * 300, "../../x", [], {}, [[]], [None], {"": {}}),
    *([1] * 1000, ["x"] * 1000, {"a": {"a": {"a": {}}}}),
)


def mutate(content: bytes, name: str, rng: random.Random) -> bytes:
    """One to three changes of a file's content, of kinds that fit its name."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        content = rng.choice(_fitting(name))(content, rng)
    return content[: 1 << 20]


Change = Callable[[bytes, random.Random], bytes]


def _fitting(name: str) -> list[Change]:
    ending = name.rpartition(".")[2]
    if ending in ("json", "jsonl"):
        return [*_TEXT, _json, _json, _json, _json, _json, _key_twice, _nest, _number]
    if ending == "toml":
        return [*_TEXT, _toml, _toml, _toml, _toml, _nest_toml, _number]
    if ending in ("csv", "txt"):
        return [*_TEXT, _cell, _cell, _cell, _cell, _column, _number]
    return _BYTES


def _flip(content: bytes, rng: random.Random) -> bytes:
    if not content:
        return b"\x00"
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 4, 32))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _without(content: bytes, rng: random.Random) -> bytes:
    start, length = rng.randrange(len(content) + 1), rng.choice((1, 1, 4, 64))
    return content[:start] + content[start + length :]


def _with(content: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(content) + 1)
    here = content[start : start + 64]
    more = rng.choice((b"\x00", b"\xff\xfe", b"\xff", b"\n", b'"', b",", b"=", rng.randbytes(8), here))
    return content[:start] + more + content[start:]


def _encode(content: bytes, rng: random.Random) -> bytes:
    text = content.decode("utf-8", "replace")
    makers: tuple[Callable[[], bytes], ...] = (
        lambda: b"\xef\xbb\xbf" + content,
        lambda: text.encode("utf-16"),
        lambda: text.encode("utf-32"),
        lambda: (text + "ä").encode("latin-1", "replace"),
        lambda: content.replace(b"\n", b"\r\n"),
        lambda: content.replace(b"\n", b"\r"),
        lambda: content + b"\x00" * 100,
        lambda: content * 2,
        lambda: b"",
        lambda: b"\n" * 100,
    )
    return rng.choice(makers)()


def _pack(content: bytes, rng: random.Random) -> bytes:
    return rng.choice((gzip.compress, bz2.compress, lzma.compress, zlib.compress))(content)


def _lines(content: bytes, rng: random.Random) -> bytes:
    lines = content.split(b"\n")
    place, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    what = rng.randrange(5)
    if what == 0:
        del lines[place]
    elif what == 1:
        lines.insert(other, lines[place])
    elif what == 2:
        lines[place], lines[other] = lines[other], lines[place]
    elif what == 3:
        lines.insert(place, b"")
    else:
        lines[place] *= rng.choice((2, 100))
    return b"\n".join(lines)


def _number(content: bytes, rng: random.Random) -> bytes:
    """Another number in place of one."""
    numbers = list(re.finditer(rb"-?\d+(\.\d+)?(e-?\d+)?", content))
    if not numbers:
        return content
    number = rng.choice(numbers)
    return content[: number.start()] + rng.choice(NUMBERS).encode() + content[number.end() :]


def _cell(content: bytes, rng: random.Random) -> bytes:
    rows = [row.split(b",") for row in content.split(b"\n")]
    row = rng.choice(rows)
    other = rng.choice(rng.choice(rows))
    row[rng.randrange(len(row))] = rng.choice((rng.choice(NUMBERS).encode(), _word(rng), other))
    return b"\n".join(b",".join(row) for row in rows)


def _word(rng: random.Random) -> bytes:
    word = rng.choice(WORDS)
    quoted = '"' + word.replace('"', '""') + '"'
    return rng.choice((word, quoted)).encode("utf-8", "surrogatepass")


def _column(content: bytes, rng: random.Random) -> bytes:
    rows = [row.split(b",") for row in content.split(b"\n")]
    place = rng.randrange(len(rows[0]))
    add = rng.random() < 0.5
    for row in rows:
        if add:
            row.insert(place, row[min(place, len(row) - 1)])
        elif place < len(row):
            del row[place]
    return b"\n".join(b",".join(row) for row in rows)


def _json(content: bytes, rng: random.Random) -> bytes:
    """Another value somewhere in the tree, or a key that is gone or renamed."""
    try:
        tree = json.loads(content)
    except (ValueError, RecursionError):
        return _flip(content, rng)
    places = _places(tree)
    if not places:
        return json.dumps(rng.choice(VALUES)).encode()
    holder, key = rng.choice(places)
    what = rng.randrange(6)
    if what == 0:
        del holder[key]
    elif what == 1 and isinstance(holder, dict):
        holder[rng.choice(WORDS)] = holder.pop(key)
    elif what == 2:
        other, place = rng.choice(places)
        holder[key] = json.loads(json.dumps(other[place])) if _there(other, place) else None
    else:
        holder[key] = rng.choice(VALUES)
    return json.dumps(tree).encode()


def _there(holder: Any, key: Any) -> bool:
    return key in holder if isinstance(holder, dict) else key < len(holder)


def _places(tree: Any) -> list[tuple[Any, Any]]:
    places, left = [], [tree]
    while left:
        value = left.pop()
        keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
        for key in keys:
            places.append((value, key))
            left.append(value[key])
    return places


def _key_twice(content: bytes, rng: random.Random) -> bytes:
    pairs = list(re.finditer(rb'"\w+": [^\[{,}\]]+,', content))
    return content if not pairs else content.replace((pair := rng.choice(pairs)).group(), pair.group() * 2, 1)


def _nest(content: bytes, rng: random.Random) -> bytes:
    deep = rng.choice((40, 60, 1000, 5000, 100_000))
    opening, closing = rng.choice(((b"[", b"]"), (b'{"a":', b"}")))
    return opening * deep + rng.choice((content, b"1", b"")) + closing * rng.choice((deep, 0))


def _nest_toml(content: bytes, rng: random.Random) -> bytes:
    deep = rng.choice((40, 60, 1000, 5000))
    return content + b"\n" + rng.choice((b"x = " + b"[" * deep, b"x = " + b"{a=" * deep, b"a." * deep + b"a = 1"))


def _toml(content: bytes, rng: random.Random) -> bytes:
    """Another value of a key, a key more or less, or one that is renamed."""
    lines = list(re.finditer(rb"^(\w+) = (.*)$", content, re.MULTILINE))
    if not lines:
        return _lines(content, rng)
    match = rng.choice(lines)
    other = rng.choice(lines)
    value = rng.choice((rng.choice(NUMBERS).encode(), json.dumps(rng.choice(WORDS)).encode(), other[2], _list(rng)))
    changed, moved = match[1] + b" = " + value, other[1] + b" = " + match[2]
    line = rng.choice((changed, changed, b"", moved, b"extra = 1"))
    return content[: match.start()] + line + content[match.end() :]


def _list(rng: random.Random) -> bytes:
    items = (rng.choice((*NUMBERS, *(json.dumps(word) for word in WORDS))) for _ in range(rng.randrange(4)))
    return ("[" + ", ".join(items) + "]").encode()


_BYTES: list[Change] = [_flip, _flip, _cut, _without, _with]
_TEXT: list[Change] = [*_BYTES, _encode, _pack, _lines]
