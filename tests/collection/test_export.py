"""What leaves a collection, and when; what stays when bodies are forgotten."""

from __future__ import annotations

import csv
import json
import os
import random
import re
import shutil
import sqlite3
import struct
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphveil.collection.export.export import FILES, export, read_export
from graphveil.collection.export.learning import left_out
from graphveil.collection.export.reports import Received
from graphveil.collection.service.tokens import links_at, read_tokens, write_tokens
from graphveil.collection.store.frozen import salt_of, seal_of
from graphveil.errors import DataError, InputError
from tests.collection.collections import IDS, PEOPLE, Collection, begun, url_of
from tests.on_device.signing import features, label, links, opening_of


@pytest.fixture
def running(url: str) -> Collection:
    return begun(url, label(), links(PEOPLE), least=3)


@pytest.fixture
def alone(tmp_path: Path) -> Collection:
    """A closed collection of one person's label."""
    collection = begun(url_of(tmp_path), label(), least=1)
    answered(collection, 4)
    collection.store.close_epoch()
    return collection


def answered(running: Collection, *numbers: int, mood: str = "sad") -> None:
    codes = running.intake.take([running.report(number, {"label": mood}) for number in numbers])
    assert codes == ["accepted"] * len(numbers)


def test_a_closed_collection_is_exported_as_it_was_received(running: Collection, tmp_path: Path) -> None:
    answered(running, 7, 2, 5)
    _, digest = running.store.close_epoch()
    before = os.umask(0)
    try:
        facts = export(running.store, tmp_path / "out")
    finally:
        os.umask(before)
    # Its owner's alone, whatever the process's mask is: it holds ids, and what each of them said.
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "out").iterdir()} == {0o600}
    assert (facts["answered"], facts["enrolled"], facts["people"]) == (3, PEOPLE, PEOPLE)
    received = read_export(tmp_path / "out")
    assert received.facts["epochs"] == [{"hash": digest.hex(), "nonce": bytes(range(16)).hex()}]
    assert received.bodies.numbers.tolist() == [2, 5, 7] and received.last.joined.tolist() == [1, 1, 1]
    assert received.ids == tuple(IDS) and received.nonces == (bytes(range(16)),)
    sent = [running.report(number, {"label": "sad"}).body for number in (2, 5, 7)]
    assert np.packbits(received.bodies.bits, axis=1).tobytes() == b"".join(sent)
    assert received.bodies.answered(0).all() and not received.bodies.answered(1).any()


def test_nothing_leaves_too_early_or_from_too_few(running: Collection, tmp_path: Path) -> None:
    answered(running, 1, 2)
    with pytest.raises(InputError, match="no epoch is closed"):
        export(running.store, tmp_path / "out")
    # Who says nothing is not counted.
    assert running.intake.take([running.report(number, {}) for number in (3, 4)]) == ["accepted"] * 2
    running.store.close_epoch()
    with pytest.raises(InputError, match="2 people have answered; allowed: 3 or more"):
        export(running.store, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "mine").write_text("here")
    with pytest.raises(InputError, match="is not empty"):
        export(running.store, tmp_path)


def test_the_last_epochs_report_counts_and_the_open_one_does_not(running: Collection, tmp_path: Path) -> None:
    answered(running, 1, 2, 3)
    first = running.store.close_epoch()
    running.store.open_epoch(b"b" * 16)
    running = replace(running, opening=opening_of(running.task, bytes(range(16)), b"b" * 16))
    answered(running, 2, 4, mood="glad")
    facts = export(running.store, tmp_path / "one")
    assert (facts["answered"], facts["answers_a_person"]) == (3, {"label": 1, "links": 0})
    second = running.store.close_epoch()
    facts = export(running.store, tmp_path / "two")
    assert (facts["answered"], facts["answers_a_person"]) == (4, {"label": 2, "links": 0})
    received = read_export(tmp_path / "two")
    assert received.times.tolist() == [[1, 0], [2, 0], [1, 0], [1, 0]]
    last = [running.report(n, {"label": "glad" if n in (2, 4) else "sad"}).body for n in (1, 2, 3, 4)]
    assert np.packbits(received.bodies.bits, axis=1).tobytes() == b"".join(last)
    # Closing again, later, changes nothing of what was frozen.
    assert [bytes.fromhex(epoch["hash"]) for epoch in received.facts["epochs"]] == [first[1], second[1]]


def test_scrubbed_bodies_are_gone_and_still_known(running: Collection, tmp_path: Path) -> None:
    answered(running, 1, 2, 3)
    running.store.close_epoch()
    frozen = running.store.frozen()[0]
    assert running.store.scrub(frozen) == 3 and running.store.scrub(frozen) == 0
    with pytest.raises(InputError, match="scrubbed"):
        export(running.store, tmp_path / "out")
    # A report that is sent again is the one that stands, and another one of the epoch is none.
    assert running.intake.take([running.report(1, {"label": "sad"})]) == ["again"]
    assert running.intake.take([running.report(1, {"label": "glad"})]) == ["closed"]


def test_scrubbed_bodies_are_in_no_file_of_the_database(tmp_path: Path) -> None:
    """Not on a page that SQLite calls free, and not in its log, while another process holds it open."""
    running = begun(url_of(tmp_path), features(dimension=800, epsilon="800"))
    # Without it the last connection to close would empty the log by itself.
    database = sqlite3.connect(tmp_path / "collection.db")
    database.execute("SELECT count(*) FROM reports").fetchall()
    sent = [running.report(number, {"features": [0.5] * 800}) for number in range(PEOPLE)]
    assert running.intake.take(sent) == ["accepted"] * PEOPLE
    parts = [report.body[start : start + 20] for report in sent for start in range(len(report.body) - 20)]

    def held_yet() -> int:
        files = b"".join(path.read_bytes() for path in sorted(tmp_path.iterdir()))
        return sum(part in files for part in parts)

    assert held_yet() == len(parts) > 100
    running.store.close_epoch()
    assert running.store.scrub(running.store.frozen()[0]) == PEOPLE and held_yet() == 0
    database.close()


def parts_of(folder: Path) -> dict[str, np.ndarray]:
    with np.load(folder / "reports.npz") as arrays:
        return dict(arrays)


@pytest.mark.parametrize("lies", [False, True])
def test_an_export_that_unpacks_to_more_than_it_is_is_refused(lies: bool, alone: Collection, tmp_path: Path) -> None:
    """64 MB of zeros in a file of 64 KB, declared or not: refused before they are unpacked."""
    export(alone.store, tmp_path / "out")
    size, parts, path = 64 << 20, parts_of(tmp_path / "out"), tmp_path / "out" / "reports.npz"
    np.savez_compressed(path, **{**parts, "bodies": np.zeros((1, size), np.uint8)})
    if lies:
        packed = path.read_bytes()
        assert packed.count(struct.pack("<I", size + 128)) >= 1
        path.write_bytes(packed.replace(struct.pack("<I", size + 128), struct.pack("<I", 200)))
    tracemalloc.start()
    with pytest.raises(DataError, match=r"reports\.npz: cannot be read" if lies else "unpacks to 64 MiB or more"):
        read_export(tmp_path / "out")
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The export of two epochs: 1, 4 and 7 answered, then 4 again and 9."""
    folder = tmp_path_factory.mktemp("sent")
    running = begun(url_of(folder), label(), links(PEOPLE), least=3)
    answered(running, 1, 4, 7)
    later = running.after(b"another nonce 16")
    answered(later, 4, 9, mood="glad")
    later.store.close_epoch()
    export(later.store, folder / "whole", 3)
    assert read_export(folder / "whole").times.tolist() == [[1, 0], [2, 0], [1, 0], [1, 0]]
    return folder / "whole"


@pytest.fixture
def sent(whole: Path, tmp_path: Path) -> Path:
    """A copy that may be spoiled."""
    return Path(shutil.copytree(whole, tmp_path / "sent"))


def _each(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]:
    return lambda parts: {name: change(rows) for name, rows in parts.items()}


#: What a reader must refuse, whatever it is called: of the arrays of an export.
SPOILED: dict[str, Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]] = {
    "bodies": lambda parts: {**parts, "bodies": np.roll(parts["bodies"], 1, axis=0)},
    "another answer": lambda parts: {**parts, "bodies": parts["bodies"][[0, 0, 0, 0]]},
    "a body that no device sends": lambda parts: {**parts, "bodies": parts["bodies"] | 255},
    "salts": lambda parts: {**parts, "salts": parts["salts"] ^ 1},
    "rows twice": _each(lambda rows: np.concatenate([rows, rows[:2]])),
    "rows reversed": _each(lambda rows: rows[::-1].copy()),
    "one person less": lambda parts: {
        name: rows if "lea" in name else rows[:3] for name, rows in parts.items()
    },
    "nobody": _each(lambda rows: rows[:0]),
    "numbers lowered": lambda parts: {**parts, "numbers": parts["numbers"] - 2},
    "numbers beyond": lambda parts: {**parts, "numbers": parts["numbers"] + 1000},
    "numbers of another kind": lambda parts: {**parts, "numbers": parts["numbers"].astype(float)},
    "joined before the first": lambda parts: {**parts, "joined": parts["joined"] * 0 - 5},
    "joined later": lambda parts: {**parts, "joined": parts["joined"] + np.array([0, 1, 0, 1])},
    "joined too short": lambda parts: {**parts, "joined": parts["joined"][:2]},
    "epochs": lambda parts: {**parts, "epochs": parts["epochs"] * 0 + 1},
    "leaves of no epoch": lambda parts: {**parts, "leaf_epochs": parts["leaf_epochs"] + 1},
    "leaves": lambda parts: {**parts, "leaves": parts["leaves"] ^ np.uint8(2)},
    "a price left out": lambda parts: {**parts, "leaves": parts["leaves"] & ~np.eye(5, 26, 8, dtype=np.uint8)},
    "an array left out": lambda parts: {name: rows for name, rows in parts.items() if name != "leaves"},
}  # fmt: skip


@pytest.mark.parametrize("what", SPOILED)
def test_reports_are_those_that_were_frozen(what: str, sent: Path) -> None:
    np.savez(sent / "reports.npz", **SPOILED[what](parts_of(sent)))
    with pytest.raises(DataError, match=r"reports\.npz: .*export the collection again"):
        read_export(sent)


#: The same of what `collection.json` says.
TOLD: tuple[Callable[[dict[str, Any]], object], ...] = (
    lambda facts: facts["epochs"][0].update(hash="00" * 32),
    lambda facts: facts["epochs"][1].update(nonce="00" * 16),
    lambda facts: facts["epochs"].pop(),
    lambda facts: facts.update(people=3),
    lambda facts: facts.update(answered_each={"label": 4, "links": 1}),
    lambda facts: facts.update(enrolled="all"),
    lambda facts: facts.update(answers_a_person={"label": 1, "links": 0}),
    lambda facts: facts.update(most_links="3"),
    lambda facts: facts.update(task="00" * 32),
)


def test_what_is_told_fits_the_reports(sent: Path) -> None:
    text = (sent / "collection.json").read_text()
    for change in TOLD:
        changed = json.loads(text)
        change(changed)
        (sent / "collection.json").write_text(json.dumps(changed))
        with pytest.raises(DataError, match=str(sent)):
            read_export(sent)


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_something_else_is_one_error(name: str, sent: Path) -> None:
    for content in (None, b"", b"junk", b"{}", b"[]", b"null", b"\xff\xfe", b"PK\x03\x04"):
        (sent / name).write_bytes(content) if content is not None else (sent / name).unlink()
        with pytest.raises(DataError, match=re.escape(name)):
            read_export(sent)


def test_whatever_bit_flips_no_other_report_is_read(sent: Path, whole: Path) -> None:
    """Refused, or of no consequence: an archive has dates, and how many enrolled is the organiser's word."""
    right, dice, refused = read_export(whole), random.Random(0), 0
    for _ in range(200):
        path = sent / dice.choice(FILES)
        before = path.read_bytes()
        flipped = bytearray(before)
        flipped[dice.randrange(len(flipped))] ^= 1 << dice.randrange(8)
        path.write_bytes(flipped)
        try:
            received = read_export(sent)
        except DataError as error:
            refused += str(sent) in str(error)
        else:
            assert (received.ids, received.nonces) == (right.ids, right.nonces)
            assert received.task.hash == right.task.hash and np.array_equal(received.times, right.times)
            assert np.array_equal(received.bodies.bits, right.bodies.bits)
            assert np.array_equal(received.last.numbers, right.last.numbers)
            assert np.array_equal(received.last.joined, right.last.joined)
        path.write_bytes(before)
    assert refused > 100


def test_a_scrubbed_body_cannot_be_guessed_from_what_is_left(alone: Collection, tmp_path: Path) -> None:
    """A label is one byte: its seal is in the export, and what salted it is nowhere after the bodies are gone."""
    with sqlite3.connect(tmp_path / "collection.db") as database:
        secret = database.execute("SELECT secret FROM epochs").fetchone()[0]
    (leaf,) = alone.store.frozen()[1].seals
    salt, bodies = salt_of(secret, 4), [bytes([byte]) for byte in range(256)]
    guessed = [body for body in bodies if seal_of(salt, 1, body) == leaf.tobytes()]
    assert guessed == [alone.report(4, {"label": "sad"}).body]
    alone.store.scrub(alone.store.frozen()[0])
    files = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert secret not in files and salt not in files


def test_tokens_are_long_different_and_written_once(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    written = list(write_tokens(path, ["a", 'b,"c"', "d"]))
    assert list(read_tokens(path)) == written and len({token for _, token in written}) == 3
    assert all(len(token) == 25 for _, token in written) and path.stat().st_mode & 0o077 == 0
    with pytest.raises(InputError, match="is there already"):
        list(write_tokens(path, ["a"]))
    # A link opens the page of its token.
    (linked, task) = tmp_path / "linked.csv", bytes(range(32))
    written = list(write_tokens(linked, ["a", "b"], links_at("https://c.example/", task)))
    rows = list(csv.DictReader(linked.read_text().splitlines()))
    assert [row["link"] for row in rows] == [f"https://c.example/#{token.hex()}.{task.hex()}" for _, token in written]
    assert list(read_tokens(linked)) == written
    with pytest.raises(InputError, match="is not an address that people can open"):
        links_at("http://c.example", task)


#: 21 bytes that could have been drawn.
TOKEN = bytes(range(21)).hex()
#: What is wrong with a table, and what is said of it.
TABLES = {
    "a,zz": "line 2: no id with a token of its own",
    f"a,{TOKEN}\nb,{TOKEN}": "line 3: no id with a token of its own",
    "a": "line 2: no id with a token of its own",
    f"a,{TOKEN}\nb,{TOKEN}00\na,{TOKEN}01": "line 4: a second token for 'a'",
    f"a,{'00' * 21}": "line 2: a token that anybody may guess",
    f"a,{'0123' * 11}": "line 2: a token that anybody may guess",
}


def test_tokens_of_others_are_checked(tmp_path: Path) -> None:
    path, table = tmp_path / "tokens.csv", f"id,token\nJos\u00e9,{TOKEN}\n"
    for rows, says in TABLES.items():
        path.write_text(f"id,token\n{rows}\n")
        with pytest.raises(InputError, match=says):
            list(read_tokens(path))
    # A spreadsheet's.
    path.write_text(table, encoding="utf-8-sig")
    assert list(read_tokens(path)) == [("Jos\u00e9", bytes(range(21)))]
    path.write_text(table, encoding="latin-1")
    with pytest.raises(InputError, match="is no table in UTF-8; save it as CSV UTF-8"):
        list(read_tokens(path))


def test_a_field_that_too_few_answer_is_left_out(running: Collection, tmp_path: Path) -> None:
    """Three said what they are, and two of them whom they know: nobody reads these two lists."""
    answers = [{"label": "sad", "links": [7]}, {"label": "sad"}, {"label": "glad", "links": []}, {}]
    assert running.intake.take([running.report(*numbered) for numbered in enumerate(answers)]) == ["accepted"] * 4
    running.store.close_epoch()
    facts = export(running.store, tmp_path / "out")
    assert facts["answered"] == 3 and facts["answered_each"] == {"label": 3, "links": 2}
    received = read_export(tmp_path / "out")
    assert received.too_few == {"links": 2}
    assert received.bodies.answered(0).sum() == 3 and not received.bodies.answered(1).any()
    assert not received.bodies.answers(1).any()
    # They have paid for it all the same, and the export keeps what the collector forgets.
    assert received.times[:, 1].tolist() == [1, 0, 1, 0] and running.store.scrub(received.last) == 4
    assert left_out(Received(received)) == (
        "left out, as fewer people answered than the task's least number, 3 (links: 2)",
    )
