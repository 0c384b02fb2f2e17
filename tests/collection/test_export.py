"""What leaves a collection, and when; what stays when bodies are forgotten."""

from __future__ import annotations

import csv
import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graphveil.collection.declare import ids_hash
from graphveil.collection.export import FILES, export, read_export
from graphveil.collection.tokens import links_at, read_tokens, write_tokens
from graphveil.errors import DataError, InputError
from tests.collection.collections import PEOPLE, Collection, begun, url_of
from tests.on_device.signing import features, label, links, opening_of

IDS = [f"person {number}" for number in range(PEOPLE)]


@pytest.fixture
def running(url: str) -> Collection:
    return begun(url, label(), links(PEOPLE), ids=ids_hash(IDS), least=3)


def answered(running: Collection, *numbers: int, mood: str = "sad") -> None:
    told = running.intake.take([running.report(number, {"label": mood}) for number in numbers])
    assert told == ["accepted"] * len(numbers)


def test_a_closed_collection_is_exported_as_it_was_received(running: Collection, tmp_path: Path) -> None:
    answered(running, 7, 2, 5)
    _, digest = running.store.close_epoch()
    told = export(running.store, tmp_path / "out")
    assert (told["answered"], told["enrolled"], told["people"]) == (3, PEOPLE, PEOPLE)
    found = read_export(tmp_path / "out")
    assert found.facts["epochs"] == [{"hash": digest.hex(), "nonce": bytes(range(16)).hex()}]
    assert found.bodies.numbers.tolist() == [2, 5, 7] and found.last.joined.tolist() == [1, 1, 1]
    assert found.ids == tuple(IDS) and found.nonces == (bytes(range(16)),)
    sent = [running.report(number, {"label": "sad"}).body for number in (2, 5, 7)]
    assert np.packbits(found.bodies.bits, axis=1).tobytes() == b"".join(sent)
    assert found.bodies.answered(0).all() and not found.bodies.answered(1).any()
    running.store.engine.dispose()


def test_nothing_leaves_too_early_or_from_too_few(running: Collection, tmp_path: Path) -> None:
    answered(running, 1, 2)
    with pytest.raises(InputError, match="no epoch is closed"):
        export(running.store, tmp_path / "out")
    running.store.close_epoch()
    with pytest.raises(InputError, match="2 people have answered"):
        export(running.store, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "mine").write_text("here")
    with pytest.raises(InputError, match="is not empty"):
        export(running.store, tmp_path)
    running.store.engine.dispose()


def test_the_last_epochs_report_counts_and_the_open_one_does_not(running: Collection, tmp_path: Path) -> None:
    answered(running, 1, 2, 3)
    first = running.store.close_epoch()
    running.store.open_epoch(b"b" * 16)
    running = replace(running, opening=opening_of(running.task, bytes(range(16)), b"b" * 16))
    answered(running, 2, 4, mood="glad")
    told = export(running.store, tmp_path / "one")
    assert (told["answered"], told["answers_a_person"]) == (3, {"label": 1, "links": 0})
    second = running.store.close_epoch()
    told = export(running.store, tmp_path / "two")
    assert (told["answered"], told["answers_a_person"]) == (4, {"label": 2, "links": 0})
    found = read_export(tmp_path / "two")
    assert found.times.tolist() == [[1, 0], [2, 0], [1, 0], [1, 0]]
    last = [running.report(n, {"label": "glad" if n in (2, 4) else "sad"}).body for n in (1, 2, 3, 4)]
    assert np.packbits(found.bodies.bits, axis=1).tobytes() == b"".join(last)
    # Closing again, later, changes nothing of what was frozen.
    assert [bytes.fromhex(one["hash"]) for one in found.facts["epochs"]] == [first[1], second[1]]
    running.store.engine.dispose()


def test_scrubbed_bodies_are_gone_and_still_known(running: Collection, tmp_path: Path) -> None:
    answered(running, 1, 2, 3)
    running.store.close_epoch()
    kept = running.store.last_reports()
    assert running.store.scrub(kept) == 3 and running.store.scrub(kept) == 0
    with pytest.raises(InputError, match="scrubbed"):
        export(running.store, tmp_path / "out")
    # A report that is sent again is the one that stands, and another one of the epoch is none.
    assert running.intake.take([running.report(1, {"label": "sad"})]) == ["again"]
    assert running.intake.take([running.report(1, {"label": "glad"})]) == ["closed"]
    running.store.engine.dispose()


def test_scrubbed_bodies_are_in_no_file_of_the_database(tmp_path: Path) -> None:
    """Not on a page that SQLite calls free, and not in its log, while another process holds it open."""
    running = begun(url_of(tmp_path), features(dimension=800, epsilon="800"))
    # Without it the last connection to close would empty the log by itself.
    held = sqlite3.connect(tmp_path / "collection.db")
    held.execute("SELECT count(*) FROM reports").fetchall()
    sent = [running.report(number, {"features": [0.5] * 800}) for number in range(PEOPLE)]
    assert running.intake.take(sent) == ["accepted"] * PEOPLE
    parts = [one.body[start : start + 20] for one in sent for start in range(len(one.body) - 20)]

    def held_yet() -> int:
        files = b"".join(path.read_bytes() for path in sorted(tmp_path.iterdir()))
        return sum(part in files for part in parts)

    assert held_yet() == len(parts) > 100
    running.store.close_epoch()
    assert running.store.scrub(running.store.last_reports()) == PEOPLE and held_yet() == 0
    held.close()
    running.store.engine.dispose()


def test_an_export_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    running = begun(url_of(tmp_path), label(), ids=ids_hash(IDS), least=1)
    answered(running, 1)
    running.store.close_epoch()
    for name in FILES:
        folder = tmp_path / name
        export(running.store, folder)
        (folder / name).unlink()
        with pytest.raises(DataError, match=f"{name} is missing"):
            read_export(folder)
    folder = tmp_path / "other"
    export(running.store, folder)
    (folder / "ids.txt").write_text(json.dumps("somebody") + "\n")
    with pytest.raises(DataError, match="another task"):
        read_export(folder)
    for bodies, said in (
        (np.zeros((1, 5), np.uint8), "bytes? each"),
        (np.full((1, 1), 255, np.uint8), "no device sends"),
    ):
        folder = tmp_path / said.replace(" ", "")
        export(running.store, folder)
        one = np.ones(1, np.int64)
        np.savez(folder / "reports.npz", numbers=one, epochs=one, joined=one, times=one[:, None], bodies=bodies)
        with pytest.raises(DataError, match=said):
            read_export(folder)


def test_tokens_are_long_different_and_written_once(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    made = list(write_tokens(path, ["a", 'b,"c"', "d"]))
    assert list(read_tokens(path)) == made and len({token for _, token in made}) == 3
    assert all(len(token) == 25 for _, token in made) and path.stat().st_mode & 0o077 == 0
    with pytest.raises(InputError, match="is there already"):
        list(write_tokens(path, ["a"]))


def test_a_link_opens_the_page_of_its_token(tmp_path: Path) -> None:
    path, task = tmp_path / "tokens.csv", bytes(range(32))
    made = list(write_tokens(path, ["a", "b"], links_at("https://c.example/", task)))
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [row["link"] for row in rows] == [f"https://c.example/#{one.hex()}.{task.hex()}" for _, one in made]
    # The table is one of tokens still.
    assert list(read_tokens(path)) == made
    with pytest.raises(InputError, match="no address for people"):
        links_at("http://c.example", task)


@pytest.mark.parametrize("rows", ["a,00", "a,zz", f"a,{'00' * 16}\nb,{'00' * 16}", "a"])
def test_tokens_of_others_are_checked(rows: str, tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text(f"id,token\n{rows}\n")
    with pytest.raises(InputError, match=r"line [23]"):
        list(read_tokens(path))
