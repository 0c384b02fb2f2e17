"""The client in TypeScript says the bytes that the one in Python says, is small, and is what its sources build."""

from __future__ import annotations

import gzip
import json
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphveil.device import Task
from graphveil.device.lines import answer_lines
from graphveil.device.task import TASK
from tests.on_device.javascript import BUNDLE, CLIENT, deno, js_answers, node, tools
from tests.on_device.signing import MOODS, degree, facts, features, label, links, signed
from tests.on_device.vectors import FILES, vectors

#: Bytes that a page loads, as they are sent.
LARGEST = 5 * 1024
#: And where links are asked: half of it are tables of Unicode, without which two clients could differ.
LARGEST_LIST = 1200
MODES = ("lower", "both", "directed")
TESTS = ("laws", "reporting", "seal")


def python(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in answer_lines(map(json.dumps, lines))]


@pytest.mark.parametrize("name", FILES)
def test_it_passes_the_vectors(name: str) -> None:
    cases = vectors(name)
    assert js_answers(case["in"] for case in cases) == [case["out"] for case in cases]


def test_the_program_that_stands_alone_says_the_same(tmp_path: Path) -> None:
    """Of one file, in a folder without the modules; it is what the wheel holds."""
    program, built = tmp_path / "lines.mjs", (BUNDLE.parent / "lines.mjs").read_bytes()
    # Of which 2 KiB are tables: what nobody sees, and what later versions of Unicode have added.
    assert len(built) < 18 * 1024
    program.write_bytes(built)
    lines = vectors("whole")
    text = "".join(f"{json.dumps(case['in'])}\n" for case in lines)
    done = subprocess.run([node(), str(program)], input=text, capture_output=True, text=True, check=True)
    assert [json.loads(line) for line in done.stdout.splitlines()] == [case["out"] for case in lines]


@pytest.mark.parametrize("name", FILES)
def test_it_passes_the_vectors_in_deno(name: str) -> None:
    cases = vectors(name)
    assert js_answers((case["in"] for case in cases), *deno()) == [case["out"] for case in cases]


def random_lines(source: random.Random) -> Iterator[dict[str, Any]]:
    """A task of one to four fields in any order and mode, and answers to it, some of which leave something out."""
    people, pick = source.choice([5, 12, 300]), source.choice
    epsilon = (pick(["0.1", "1", "2.5", "8", "0.123456789"]) for _ in range(4))
    low, high = pick([("-1", "3"), ("-0.1", "1e-3")])
    every = [features(next(epsilon), pick([1, 6, 300]), low, high), label(next(epsilon))]
    every += [make(people, next(epsilon), pick(MODES)) for make in (links, degree)]
    fields = source.sample(every, source.randint(1, 4))
    data = signed("task", TASK, facts(*fields, people=people))
    yield {"op": "task", "data": data.decode()}
    kinds = {"links" if field["kind"] == "degree" else field["kind"] for field in fields}
    names = [name for field in fields if field["kind"] == "features" for name in field["names"]]
    for number in source.sample(range(people), 4):
        everyone_else = [person for person in range(people) if person != number]
        values: dict[str, Any] = {"label": pick(MOODS), "links": source.sample(everyone_else, pick([0, 2, 4]))}
        values["features"] = [source.uniform(float(low), float(high)) for _ in names]
        values_of = {kind: values[kind] for kind in sorted(kinds) if source.random() < 0.85}
        who = {"task": Task.of(data).hash.hex(), "number": number, "nonce": source.randbytes(16).hex()}
        yield {**who, "op": "answer", "secret": source.randbytes(32).hex(), "values": values_of}


def test_it_says_the_bytes_of_python() -> None:
    source = random.Random(1)
    lines = [line for _ in range(25) for line in random_lines(source)]
    ours = python(lines)
    assert js_answers(lines) == ours and not any("error" in answer for answer in ours)


# Each is a process of Node, and starts others that race and die: two seconds of work.
@pytest.mark.parametrize(
    ("name", "least"), [pytest.param("laws", 3, marks=pytest.mark.slow), ("reporting", 9), ("seal", 3)], ids=TESTS
)
def test_its_own_tests_pass(name: str, least: int) -> None:
    """Laws of a million bits and of 5,000 labels, the ledger under writers that race and die: clients/js/tests."""
    done = subprocess.run([node(), "--test", str(CLIENT / "tests" / f"{name}.test.js")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    passed = re.search(r"^\W+ pass (\d+)$", done.stdout, re.M)
    assert passed is not None and int(passed[1]) >= least
    assert sorted(path.name for path in (CLIENT / "tests").glob("*.test.js")) == [f"{test}.test.js" for test in TESTS]


def test_the_bundle_is_small_and_stands_alone() -> None:
    people = BUNDLE.with_name("people.js")
    sizes = [len(gzip.compress(file.read_bytes(), 9)) for file in (BUNDLE, people)]
    assert sizes[0] < LARGEST and sizes[1] < LARGEST_LIST
    assert not re.search(r"\bimport\b|\brequire\(", BUNDLE.read_text())
    assert re.findall(r"\bimport\b.*?from(\S+?);", people.read_text()) == ['"./device.js"']
    package = json.loads((CLIENT / "package.json").read_text())
    assert not package.keys() & {"dependencies", "peerDependencies", "optionalDependencies", "bundledDependencies"}


def test_every_tool_is_pinned_by_its_hash() -> None:
    packages = json.loads((CLIENT / "package-lock.json").read_text())["packages"]
    tools = {name: package for name, package in packages.items() if name}
    assert tools and all(tool["integrity"].startswith("sha512-") and tool["dev"] for tool in tools.values())


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
