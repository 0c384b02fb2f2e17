"""The client in TypeScript says the bytes that the one in Python says, is small, and is what its sources build."""

from __future__ import annotations

import gzip
import json
import random
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphveil.device import Task
from graphveil.device.canonical import canonical, parse
from graphveil.device.lines import answered
from graphveil.device.task import OPENING, TASK
from tests.on_device.javascript import BUNDLE, CLIENT, deno, node, said, tools
from tests.on_device.making import FILES, FOLDER
from tests.on_device.signing import degree, facts, features, label, links, signed

#: Bytes that a page loads, as they are sent.
LARGEST = 5 * 1024
#: And where links are asked: half of it are tables of Unicode, without which two clients could differ.
LARGEST_LIST = 1200
MODES = ("lower", "both", "directed")


def python(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in answered(map(json.dumps, lines))]


@pytest.mark.parametrize("name", FILES)
def test_it_passes_the_vectors(name: str) -> None:
    told = [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text().splitlines()]
    assert said(one["in"] for one in told) == [one["out"] for one in told]


def test_the_program_that_stands_alone_says_the_same(tmp_path: Path) -> None:
    """Of one file, in a folder without the modules; it is what the wheel holds."""
    program, built = tmp_path / "lines.mjs", (BUNDLE.parent / "lines.mjs").read_bytes()
    # Of which 2 KiB are tables: what nobody sees, and what later versions of Unicode have added.
    assert len(built) < 18 * 1024
    program.write_bytes(built)
    lines = list(Asking(2).lines(tasks=6, answers=2))
    told = "".join(f"{json.dumps(line)}\n" for line in lines)
    done = subprocess.run([node(), str(program)], input=told, capture_output=True, text=True, check=True)
    assert [json.loads(line) for line in done.stdout.splitlines()] == python(lines)


@pytest.mark.parametrize("name", FILES)
def test_it_passes_the_vectors_in_deno(name: str) -> None:
    told = [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text().splitlines()]
    assert said((one["in"] for one in told), *deno()) == [one["out"] for one in told]


class Asking:
    """Lines about tasks that are drawn from a seed.

    Args:
        seed: of every choice; equal seeds ask alike.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def bytes(self, count: int) -> str:
        return self.random.randbytes(count).hex()

    def fields(self, people: int) -> list[dict[str, Any]]:
        """One to four fields in any order."""
        pick = self.random.choice
        epsilon = (pick(["0.1", "0.5", "1", "2.5", "8", "0.123456789"]) for _ in range(4))
        low, high = pick([("-1", "3"), ("0", "1"), ("-0.1", "1e-3")])
        every = [
            features(next(epsilon), pick([1, 6, 50, 300]), low, high),
            label(next(epsilon)),
            links(people, next(epsilon), pick(MODES)),
            degree(people, next(epsilon), pick(MODES)),
        ]
        return self.random.sample(every, self.random.randint(1, 4))

    def values(self, fields: list[dict[str, Any]], people: int, number: int) -> dict[str, Any]:
        """A person's values, some left out."""
        found: dict[str, Any] = {}
        for field in fields:
            kind = "links" if field["kind"] == "degree" else field["kind"]
            if self.random.random() < 0.15:
                continue
            if kind == "features":
                low, high = float(field["low"]), float(field["high"])
                value = [self.random.choice([low, high, self.random.uniform(low, high)]) for _ in field["names"]]
                found[kind] = dict(zip(field["names"], value, strict=True)) if self.random.random() < 0.3 else value
            elif kind == "label":
                found[kind] = self.random.choice(field["classes"])
            else:
                others = [other for other in range(people) if other != number]
                found[kind] = self.random.sample(others, self.random.randrange(min(people, 20)))
        return found

    def spoilt(self, values: dict[str, Any], people: int) -> dict[str, Any]:
        """Values of which one is not as declared."""
        wrong = {
            "features": [[0.0], ["NaN"] * 6, 5, {"f0": True}, [None] * 6],
            "label": ["angry", 0, ["calm"], True],
            "links": [[people], [-1], [0, 0, 1, 1], ["1"], [True], [0.5], "1"],
            "income": [3],
        }
        kind = self.random.choice([*values, "income"])
        return {**values, kind: self.random.choice(wrong[kind])}

    def lines(self, tasks: int, answers: int) -> Iterator[dict[str, Any]]:
        """A task, an opening of it, answers, reports, and bodies that are read, right ones and wrong ones."""
        for _ in range(tasks):
            people = self.random.choice([5, 12, 40, 300])
            fields = self.fields(people)
            data = signed("task", TASK, facts(*fields, people=people))
            task, nonces = Task.of(data), [self.bytes(16) for _ in range(3)]
            yield {"op": "task", "data": data.decode()}
            opening = signed("opening", OPENING, {"task": task.hash.hex(), "nonces": nonces}).decode()
            yield {"op": "opening", "task": task.hash.hex(), "data": opening, "joined": self.random.randrange(6)}
            for _ in range(answers):
                asked = {"task": task.hash.hex(), "number": self.random.randrange(people), "nonce": nonces[0]}
                values = self.values(fields, people, asked["number"])
                told = {**asked, "op": "answer", "secret": self.bytes(32), "values": values}
                yield told
                yield {**told, "values": self.spoilt(values, people)}
                yield {**told, "left": 10**9}
                body = self.bytes(-(-task.bits // 8))
                yield {**asked, "op": "validate", "body": self.random.choice([body, "00" * (len(body) // 2), body[2:]])}
                report = {"op": "report", "task": task.hash.hex(), "epoch": self.random.randrange(9), "body": body}
                yield {**report, "secret": self.bytes(32), "key": self.bytes(32)}


def test_it_says_the_bytes_of_python() -> None:
    """Several hundred answers over all kinds and modes, and as many refusals."""
    lines = list(Asking(1).lines(tasks=60, answers=4))
    theirs, ours = said(lines), python(lines)
    assert theirs == ours
    codes = Counter(one.get("error") for one in ours)
    assert codes[None] > 600
    assert min(codes[code] for code in ("bad-value", "cap", "filling", "bad-opening", "wrong-length")) > 10
    assert sum("names" in one for one in ours) > 300


def test_it_refuses_spoilt_tasks_as_python_does() -> None:
    """Every fact of every field changed, and bytes of a signed task."""
    fields, lines = [features(), label(), links(12), degree(12)], []
    spoils: list[Any] = [0, 1, -1, "", "x", "1", "0.5", "00", "1e2", [], ["1"], {}, True, str(2**64), str(2**255)]
    for field in fields:
        for name in field:
            lines += [facts({**field, name: spoil}) for spoil in spoils]
    told = facts(label())
    lines += [{**told, name: spoil} for name in told for spoil in spoils]
    signed_ones = [signed("task", TASK, one) for one in lines]
    data = signed("task", TASK, told)
    changes = random.Random(2)
    for _ in range(100):
        at = changes.randrange(len(data))
        signed_ones.append(data[:at] + bytes([changes.randrange(32, 127)]) + data[at + 1 :])
    whole = parse(data)
    signed_ones += [canonical({**whole, name: spoil}) for name in whole for spoil in spoils]
    asked = [{"op": "task", "data": one.decode()} for one in signed_ones]
    found = python(asked)
    assert said(asked) == found
    codes = Counter(one.get("error") for one in found)
    assert codes["bad-task"] > 300 and codes["bad-signature"] > 50 and codes["not-canonical"] > 10 and codes["epsilon"]


@pytest.mark.parametrize(
    ("name", "least"), [("laws", 3), ("reporting", 9), ("seal", 3)], ids=["laws", "reporting", "seal"]
)
def test_its_own_tests_pass(name: str, least: int) -> None:
    """Laws of a million bits and of 5,000 labels, the ledger under writers that race and die: clients/js/tests."""
    done = subprocess.run([node(), "--test", str(CLIENT / "tests" / f"{name}.test.js")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    passed = re.search(r"^\W+ pass (\d+)$", done.stdout, re.M)
    assert passed is not None and int(passed[1]) >= least
    assert sorted(path.name for path in (CLIENT / "tests").glob("*.test.js")) == [
        "laws.test.js",
        "reporting.test.js",
        "seal.test.js",
    ]


def test_the_bundle_is_small_and_stands_alone() -> None:
    people = BUNDLE.with_name("people.js")
    sizes = [len(gzip.compress(file.read_bytes(), 9)) for file in (BUNDLE, people)]
    assert sizes[0] < LARGEST and sizes[1] < LARGEST_LIST
    said = re.search(
        r"takes ([\d,]+) bytes as `gzip -9` packs it, of 5,120 at most; where\s+links are asked, ([\d,]+) more",
        (CLIENT / "README.md").read_text(),
    )
    # Other builds of zlib take a few bytes more or less.
    assert said is not None
    assert all(abs(int(one.replace(",", "")) - size) < 32 for one, size in zip(said.groups(), sizes, strict=True))
    assert not re.search(r"\bimport\b|\brequire\(", BUNDLE.read_text())
    assert re.findall(r"\bimport\b.*?from(\S+?);", people.read_text()) == ['"./device.js"']
    package = json.loads((CLIENT / "package.json").read_text())
    assert not package.keys() & {"dependencies", "peerDependencies", "optionalDependencies", "bundledDependencies"}


def test_every_tool_is_pinned_by_its_hash() -> None:
    packages = json.loads((CLIENT / "package-lock.json").read_text())["packages"]
    tools = {name: one for name, one in packages.items() if name}
    assert tools and all(one["integrity"].startswith("sha512-") and one["dev"] for one in tools.values())


def test_the_built_files_are_those_of_the_sources(tmp_path: Path) -> None:
    tools()
    subprocess.run([node(), "build.js", str(tmp_path)], cwd=CLIENT, check=True)
    built = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert built == {file.name: file.read_bytes() for file in BUNDLE.parent.iterdir() if file.is_file()}
    assert sorted(built) == ["device.js", "lines.mjs", "node.js", "people.js"]


def test_its_types_are_right() -> None:
    compiler = tools() / "typescript" / "bin" / "tsc"
    done = subprocess.run([node(), str(compiler), "--noEmit"], cwd=CLIENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
