"""A collection from its organiser's terminal: from a declaration to a folder to train on, and what is refused."""

from __future__ import annotations

import csv
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete

from graphveil.cli.app import main
from graphveil.cli.collect.dialogue import Dialogue
from graphveil.collection.desk import Desk
from graphveil.collection.export.export import read_export
from graphveil.collection.store.tables import SETTINGS
from graphveil.device import Opening, Task
from tests.cli.conftest import Terminal
from tests.collection.test_desk import enrolled
from tests.pages import DOCS, ROOT
from tests.test_docs import commands

WORDS = (
    "--organiser", "the city", "--purpose", "to see which clubs are missed", "--contact", "clubs@city.example",
    "--opens", "2026-01-01", "--closes", "2036-01-01", "--least", 2,
)  # fmt: skip
TOML = 'private = ["features", "labels"]\nclasses = ["left", "right"]\ndirected = false\nfeatures = ["runs", "swims"]\n'


@contextmanager
def serving(folder: Path, *words: str, ends: signal.Signals = signal.SIGINT) -> Iterator[dict[str, Any]]:
    """The command `collect serve` in a process of its own, ended by a signal, as Ctrl-C does."""
    command = [sys.executable, "-m", "graphveil", "collect", "serve", str(folder), "--port", "0", "--json", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            yield json.loads(line)
        finally:
            process.send_signal(ends)
            output, complained = process.communicate(timeout=60)
            assert (process.returncode, output, complained) == (0, "", "")


@pytest.fixture
def drafted(type_in: Terminal, tmp_path: Path) -> Path:
    assert type_in("collect", "init", "social-100", "-o", "clubs", "--epsilon-y", "1.5", *WORDS).code == 0
    return tmp_path / "clubs"


@pytest.fixture
def signed(drafted: Path, type_in: Terminal) -> Path:
    assert type_in("collect", "sign", "clubs").code == 0
    return drafted


@pytest.mark.slow  # four collectors, each a process
@pytest.mark.parametrize("words", [[], ["--json"]], ids=["words", "json"])
def test_the_administrations_token_is_told_to_a_terminal_and_to_no_log(signed: Path, words: list[str]) -> None:
    command = [sys.executable, "-m", "graphveil", "collect", "serve", str(signed), "--port", "0", *words]
    here, there = pty.openpty()
    for out in (subprocess.PIPE, there):
        with subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT) as process:
            output = b""
            while b'"admin_file"' not in output and b"Ctrl-C" not in output:
                assert process.poll() is None, output
                output += process.stdout.readline() if process.stdout else os.read(here, 4096)
            process.send_signal(signal.SIGINT)
        token = (signed / "admin-token").read_bytes().strip()
        assert (token in output) == (out == there), output
        assert b"admin-token" in output
        # As if it were the first time again, for the terminal.
        with Desk(signed).store() as store, store.engine.begin() as connection:
            connection.execute(delete(SETTINGS).where(SETTINGS.c.name == "admin"))
    os.close(here)
    os.close(there)


@contextmanager
def beside(*words: str) -> Iterator[subprocess.Popen[str]]:
    """A command in a terminal of its own, which has to end well."""
    with subprocess.Popen([sys.executable, "-m", "graphveil", *words], stderr=subprocess.PIPE, text=True) as process:
        yield process
        complained = process.communicate(timeout=120)[1]
        assert process.returncode == 0, complained


@pytest.mark.slow  # the commands of a page, with a collector and a hundred phones beside
def test_the_tutorial_is_typed_as_it_stands(type_in: Terminal, tmp_path: Path) -> None:
    """Every command of the page in its order; the collector and the phones run beside, each from its own line on."""
    named: dict[str, str] = {}
    (tmp_path / "mine.json").write_text('{"label": "community 3"}')
    with ExitStack() as collector, ExitStack() as phones:
        for _, *words in commands(DOCS / "tutorials" / "collect.md"):
            typed = [named.get(word, word) for word in words]
            if words[:2] == ["collect", "serve"]:
                served = collector.enter_context(serving(tmp_path / words[2], *words[3:]))
                with (tmp_path / words[2] / "tokens.csv").open(newline="") as file:
                    named = {"URL": served["url"], "HASH": served["task"], "TOKEN": next(csv.DictReader(file))["token"]}
            elif words[:2] == ["collect", "phones"]:
                phones.enter_context(beside(*typed))
                while Desk(tmp_path / "clubs").status()["enrolled"] < 100:
                    time.sleep(0.1)
            elif words[:2] == ["device", "enrol"]:
                # It asks for the token.
                command = [sys.executable, "-m", "graphveil", *typed]
                subprocess.run(command, input=named["TOKEN"], text=True, stdout=subprocess.DEVNULL, check=True)
            else:
                if words[:2] == ["collect", "close"]:
                    phones.close()
                assert type_in(*typed).good, words
    assert (tmp_path / "tried-run" / "report.html").exists() and (tmp_path / "collected-run" / "report.html").exists()
    # An organiser's folder is closed to others.
    office = tmp_path / "clubs"
    assert all((office / name).stat().st_mode & 0o077 == 0 for name in (".", "organiser.key", "tokens.csv"))
    assert (office / "organiser.key").read_text() not in (office / "task.json").read_text()
    assert named and 70 < read_export(tmp_path / "collected").facts["answered"] <= 100


def test_a_declaration_is_enough_where_ids_are_given(type_in: Terminal, tmp_path: Path) -> None:
    (tmp_path / "town").mkdir()
    (tmp_path / "town" / "graph.toml").write_text(TOML + "range = [0, 7]\n")
    (tmp_path / "people.txt").write_text("ann\nbob\n\ncleo\n")
    (tmp_path / "people.csv").write_text("team,id\na,ann\nb,bob\na,cleo\n")
    assert "lists nobody" in type_in("collect", "init", "town", "-o", "one").err
    for number, file in enumerate(("people.txt", "people.csv")):
        words = ("town", "-o", f"new{number}", "--ids", file, "--epsilon-x", "0.5", *WORDS)
        assert type_in("collect", "init", *words, "--json").json["people"] == 3
        assert type_in("collect", "sign", f"new{number}").code == 0
    task = Task.of((tmp_path / "new1" / "task.json").read_bytes())
    assert (task.people, task.fields[0].kind, task.least) == (3, "features", 2)
    assert json.loads(task.data)["task"]["fields"][0]["names"] == ["runs", "swims"]
    # Days need no quotes, and columns of a form are named by their answers.
    assert type_in("collect", "init", "town", "-o", "dated", "--ids", "people.txt", "--epsilon-x", 1, *WORDS).code == 0
    text = Path("dated/task.toml").read_text()
    Path("dated/task.toml").write_text(text.replace('opens = "2026-01-01"', "opens = 2026-01-02T08:00:00Z"))
    assert type_in("collect", "sign", "dated").code == 0
    assert Task.of(Path("dated/task.json").read_bytes()).opens == 1_767_340_800
    form = ROOT / "docs" / "examples" / "town"
    answer = type_in("collect", "init", form, "-o", "form", "--epsilon-x", 4, "--json")
    assert answer.json["plan"] is None  # its edges are private, and nobody is asked for them
    names = json.loads(Path("form/schema.json").read_text())["names"]
    assert answer.json["people"] == len(Path("form/ids.txt").read_text().splitlines())
    assert names[:3] == ["age (14 to 95 as 0 to 1)", "district: old town", "district: harbour"]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("init social-100 -o clubs", "clubs is not empty"),
        ("init nowhere -o new", "no data set or folder 'nowhere'"),
        ("init social-100 -o new --least 101", "least is 101; allowed: 1 to 100, the people"),
        ("init social-100 -o new --epsilon-x inf", "features is not a decimal above 0"),
        ("init social-100 -o new --epsilon-a 201", "links is 201; allowed: an epsilon in (0, 200]; more hides nothing"),
        (
            "init social-100 -o new --opens 2026-02-01 --closes 2026-01-01",
            "closes is '2026-01-01'; allowed: after opens",
        ),
        ("sign new", "new holds no draft of a task"),
        ("sign clubs --database mysql://a", "allowed: sqlite:///FILE, postgresql"),
        ("sign clubs --database postgresql+psycopg://a:secret@127.0.0.1:1/a", "the database cannot be used"),
        ("sign clubs --key none", "none is no file"),
        ("sign clubs --key clubs/task.toml", "holds no key of an organiser"),
        ("enrol clubs", "clubs holds no signed task; sign it: `graphveil collect sign clubs`"),
        ("enrol nowhere", "nowhere holds no task; `graphveil collect init DATA -o FOLDER` begins"),
        ("status nowhere", "nowhere holds no task"),
        ("serve clubs --certificate a", "TLS needs both files"),
        ("serve clubs --port 70000", "65535"),
    ],
)
def test_a_step_too_early_or_wrong_is_refused_in_a_line(
    words: str, message: str, drafted: Path, type_in: Terminal
) -> None:
    answer = type_in("collect", *words.split(), "--json")
    answer.refused(message)
    assert "secret" not in answer.err
    assert not Path("new").exists() and not (drafted / "task.json").exists()


def test_steps_come_once_and_in_order(signed: Path, type_in: Terminal) -> None:
    Path("others.csv").write_text(f"id,token\n0,{bytes(range(21)).hex()}\n")
    Path("there.csv").write_text("kept")

    def refused(words: str, message: str) -> None:
        type_in("collect", *words.split()).refused(message)

    refused("sign clubs", "holds a signed task")
    refused("open clubs", "nobody has enrolled")
    refused("close clubs", "no epoch is open")
    refused("export clubs -o out", "no epoch is closed")
    refused("enrol clubs -o there.csv", "is there already")
    refused("enrol clubs --tokens others.csv", "other ids than those of the task")
    refused("enrol clubs --tokens none.csv", "cannot be read")
    assert Path("there.csv").read_text() == "kept" and not Path("out").exists()
    assert "graphveil collect serve clubs" in " ".join(type_in("collect", "enrol", "clubs").out.split())
    refused("enrol clubs -o second.csv", "tokens were given out already")
    assert not Path("second.csv").exists()  # tokens that enrol nobody are not left lying about
    # The key may lie elsewhere, as the page on running a collector advises.
    (signed / "organiser.key").rename("organiser.key")
    refused("open clubs", "elsewhere, name it: --key FILE")
    Path("organiser.key").rename(signed / "organiser.key")
    # An opening that a crash kept back is signed for the same nonce.
    desk = Desk(signed)
    with desk.store() as store, (signed / "tokens.csv").open(newline="") as file:
        task = store.task()
        store.enrol(task, bytes.fromhex(next(csv.DictReader(file))["token"]), bytes(32))
        store.open_epoch(b"n" * 16)
    assert type_in("collect", "open", "clubs", "--json").json["nonce"] == (b"n" * 16).hex()
    with desk.store() as store:
        assert Opening.of(store.setting("opening") or b"", task).nonces == (b"n" * 16,)
    refused("open clubs", "epoch 1 is open")


def test_whoever_lost_a_token_gets_another_with_the_link_that_opens_their_page(signed: Path, type_in: Terminal) -> None:
    def lost(*words: str) -> dict[str, str]:
        return dict(type_in("collect", "enrol", "clubs", "--again", "7", *words, "--json").good.json)

    with Desk(signed).store() as store:
        task = store.task().hash.hex()
    shutil.copytree(signed, "linked")
    assert type_in("collect", "enrol", "clubs").code == 0
    assert lost().keys() == {"id", "token"}
    token = lost("--url", "https://c.example/below/")
    assert token["link"] == f"https://c.example/below/#{token['token']}.{task}"
    assert f"/#{token['token'][:8]}" not in type_in("collect", "enrol", "clubs", "--again", "7").out
    for url in ("http://c.example", "nonsense"):
        words = ("enrol", "clubs", "--again", "0", "--url", url)
        type_in("collect", *words).refused("not an address that people can open")
    assert enrolled(Desk(signed), 0) == 1  # a mistyped address costs nobody their token
    # The address of the first links is kept.
    assert type_in("collect", "enrol", "linked", "--url", "https://c.example/").code == 0
    again = type_in("collect", "enrol", "linked", "--again", "7", "--json").json
    assert again["link"] == f"https://c.example/#{again['token']}.{task}"
    assert "https://c.example/#" in type_in("collect", "enrol", "linked", "--again", "7").out


# ---- `collect init` asks for what is missing ----


INIT = ("collect", "init", "social-100", "-o")
#: A part of each question -> what a person types, wrong answers first.
ASKED = {
    "youth office): ": ["the city"],
    "What for, in words that everybody understands? (purpose): ": ["ci\u202ety", "clubs"],
    "such as a mail address): ": ["clubs@city.example"],
    "T08:00) [": ["soon", ""],
    "(as before, and later) [": ["2020-01-01", ""],
    "before anything is exported? (1 to 100": ["many", "0", "101", "40"],
}
ASKED_PRICES = {
    "features): ": [""],
    "class (label): ": ["-1", "2.5"],
    "list (links): ": ["1e3", "2"],
    "links (degree): ": [""],
    "report two links [lower]: ": ["neither", "both"],
}


def dialogue(
    type_in: Terminal, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], answers: dict[str, list[str]]
) -> tuple[int, str]:
    """What a command says and shows to somebody who answers each of its questions."""
    screen: list[str] = []
    waiting = [(question, answer) for question, several in answers.items() for answer in several]

    def hear() -> str | None:
        question, answer = waiting.pop(0)
        assert question in screen[-1], screen[-1]
        return None if answer == "\x04" else f"{answer}\n"

    monkeypatch.setattr(Dialogue, "here", classmethod(lambda cls: cls(hear, screen.append, screen.append)))
    answer = type_in(*words)
    assert not waiting, f"never asked for {waiting}: {screen}"
    return answer.code, "\n".join([*screen, answer.out, answer.err])


def test_a_newcomer_is_asked_for_everything_and_can_sign(
    type_in: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code, screen = dialogue(type_in, monkeypatch, (*INIT, "clubs"), {**ASKED, **ASKED_PRICES})
    assert code == 0, screen
    task = tomllib.loads((tmp_path / "clubs" / "task.toml").read_text())
    today = datetime.now(UTC)
    assert {name: task[name] for name in ("organiser", "purpose", "contact", "least")} == {
        "organiser": "the city", "purpose": "clubs", "contact": "clubs@city.example", "least": 40,
    }  # fmt: skip
    assert task["opens"] in {f"{today - timedelta(days):%Y-%m-%d}" for days in (0, 1)}
    assert task["closes"] in {f"{today + timedelta(days):%Y-%m-%d}" for days in (29, 30)}
    assert task["price"] == {"features": "", "label": "2.5", "links": "2", "degree": "", "mode": "both"}
    for wrong in (
        "the character U+202E is invisible; please try again",
        "this is not a day or moment such as 2027-01-31; please try again",
        "this is not later than",
        "this is not a whole number from 1 to 100; please try again",
        "this is not a decimal above 0",
        "this is not one of lower, both, directed",
    ):
        assert wrong in screen, screen
    assert "To fill in" not in screen and "read it, then graphveil collect sign clubs" in screen
    assert "range" not in screen.partition("Promised")[0], "ranges are the declaration's"
    assert Desk(tmp_path / "clubs").sign()["task"]


def test_what_is_left_empty_stays_for_the_file_and_what_is_known_is_not_asked_for(
    type_in: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = {"youth office): ": ["the city"], "(purpose): ": ["\x04"]}
    code, screen = dialogue(type_in, monkeypatch, (*INIT, "ended"), later)
    assert code == 0 and tomllib.loads(Path("ended/task.toml").read_text())["organiser"] == "the city"
    assert "To fill in" in screen and "purpose, contact, opens, closes, least, price" in " ".join(screen.split())
    # A folder that is used is told before anybody is asked.
    assert "Who asks" not in dialogue(type_in, monkeypatch, (*INIT, "ended"), {})[1]
    given = ("--organiser", "city", "--purpose", "clubs", "--contact", "us", "--epsilon-y", "1", "--least", "5")
    dated = (*INIT, "dated", *given, "--closes", "2036-01-01")
    code, screen = dialogue(type_in, monkeypatch, dated, {"T08:00) [": [""]})
    assert code == 0 and not any(text in screen for text in ("Who asks", "one report cost", "Until when"))


def test_off_a_terminal_nobody_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in ((), ("--json",)):
        assert main([*INIT, str(tmp_path / f"clubs{len(words)}"), *words]) == 0
        printed = capsys.readouterr()
        assert "?" not in printed.err and "organiser" in printed.out
    assert " ".join(json.loads(printed.out)["missing"]) == "organiser purpose contact opens closes least price"
