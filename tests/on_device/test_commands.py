"""`python -m graphveil.device`: from a token to a report that was sent, and one line for everything that is refused."""

from __future__ import annotations

import json
import socket
import stat
import threading
import unicodedata
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from graphveil.device import Task, answers, read
from graphveil.device.canonical import parse
from graphveil.device.people.people import ids_hash
from graphveil.device.task import OPENING, short_key
from graphveil.device.task import TASK as TASK_PURPOSE
from tests.on_device.conftest import Run
from tests.on_device.pretended import IDS, TOKEN, Pretended, pretended
from tests.on_device.signing import degree, features, label, links, signed, task_of

TASK = task_of(label(), features(), links(12), degree(12), name="moods\x1b[2J", ids=ids_hash(IDS))
ENROL = (TOKEN, "--task", TASK.hash.hex(), "--as", IDS[3])
AS = 'you answer as "Ann 3", person 3\n'


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "mine.json"
    path.write_text('{"label": "sad", "features": [0.5, 0, 0, 0, 0, 3], "links": [5, 1]}')
    return path


@pytest.fixture
def enrolled(run: Run, collector: Pretended) -> Pretended:
    assert run("enrol", collector.url, *ENROL)[0] == 0
    return collector


def refused(result: tuple[int, str, str], code: str) -> None:
    """Exit code 2, nothing done, one line on stderr that begins with the code (and what may be said after it)."""
    assert result[0] == 2 and result[1] in ("", AS)
    assert result[2].startswith(code) and result[2].count("\n") == 1


def test_from_a_token_to_a_report(run: Run, collector: Pretended, data: Path, home: Path) -> None:
    code, out, _ = run("enrol", collector.url, *ENROL, "--limit", "20")
    assert code == 0 and 'you are "Ann 3", person 3, from epoch 1 on' in out
    assert collector.enrolled[0]["token"] == TOKEN and len(collector.enrolled[0]["key"]) == 64
    code, out, _ = run("show", data)
    assert code == 0 and "would cost epsilon 7.5 " in out and "the truth is said with 57.6%" in out
    # Nothing of a task moves the cursor.
    assert "collection moods?[2J, by organiser" in out and "\x1b" not in out
    assert run("spent")[1] == "epsilon 0 is spent; 20 left of 20\n" and not collector.reports
    code, out, _ = run("answer", data)
    assert (code, out) == (0, AS + "recorded; epsilon 7.5 is spent in all\nsent\n")
    (sent,) = collector.reports
    report, end = read(sent)
    assert end == len(sent) and report.is_by(bytes.fromhex(collector.enrolled[0]["key"]), 1)
    assert all(bits is not None for bits in answers(TASK, TASK.person(3, bytes(16)), report.body))
    # Again, with other values: the same bytes, at no price.
    data.write_text('{"label": "glad"}')
    assert run("answer", data)[1].endswith("the collector keeps your first answer, whatever you changed since\n")
    assert collector.reports == [sent, sent]
    assert run("spent")[1].endswith("epsilon 7.5 is spent; 12.5 left of 20\n")


@pytest.mark.parametrize("name", ["http_proxy", "all_proxy"])
def test_no_proxy_is_told_what_goes_to_this_machine(
    name: str, run: Run, collector: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would read the token and the key; the collector itself is asked."""
    with pretended(TASK) as proxy:
        monkeypatch.setenv(name, proxy.url)
        assert run("enrol", collector.url, *ENROL)[0] == 0
    assert len(collector.enrolled) == 1 and not proxy.enrolled


def test_what_is_shown_is_what_is_sent(run: Run, enrolled: Pretended, data: Path) -> None:
    lines = run("show", data)[1].splitlines()
    label_line = next(line for line in lines if line.startswith("- label: says "))
    assert run("answer", data)[0] == 0
    bits = answers(TASK, TASK.person(3, bytes(16)), read(enrolled.reports[0])[0].body)[0]
    assert bits is not None
    assert label_line == f"- label: says {('calm', 'glad', 'sad')[2 * bits[0] + bits[1]]}"
    assert any(line.startswith("- links: names ") and line.endswith(" of 8 people") for line in lines)
    assert sum("whoever reads it has odds at most" in line for line in lines) == 4


def test_only_the_owner_may_read(enrolled: Pretended, run: Run, data: Path, home: Path) -> None:
    assert run("answer", data)[0] == 0
    for path in (home, *home.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path
    home.chmod(0o755)
    refused(run("spent"), "enrolment")


@pytest.mark.parametrize("gone", ["secret", "ledger.jsonl", "ledger.seal"])
def test_a_device_that_lost_a_part_of_itself_says_nothing_more(
    gone: str, enrolled: Pretended, run: Run, data: Path, home: Path
) -> None:
    """Neither fresh noise for values that were told, nor values that nobody counts any more."""
    assert run("answer", data)[0] == 0
    content = (home / gone).read_bytes()
    (home / gone).unlink()
    refused(run("answer", data), "ledger")
    refused(run("show", data), "ledger")
    (home / gone).write_bytes(content)
    assert run("answer", data)[0] == 0
    assert len(set(enrolled.reports)) == 1


def test_who_is_enrolled_makes_no_second_secret(enrolled: Pretended, run: Run, data: Path, home: Path) -> None:
    """Secret and ledger are gone together, and the enrolment is there: by its key the person would be the same."""
    assert run("answer", data)[0] == 0
    contents = {path: path.read_bytes() for path in home.iterdir() if path.is_file()}
    for path in contents:
        path.unlink()
    for words in (("answer", data), ("show", data), ("enrol", enrolled.url, *ENROL)):
        refused(run(*words), "ledger")
    assert not (home / "secret").exists() and len(enrolled.reports) == len(enrolled.enrolled) == 1
    for path, data_before in contents.items():
        path.write_bytes(data_before)
    assert run("answer", data)[0] == 0 and len(set(enrolled.reports)) == 1


def test_a_folder_that_cannot_be_read_is_one_line(enrolled: Pretended, run: Run, data: Path, home: Path) -> None:
    place = home / TASK.hash.hex() / "enrolled.json"
    content = place.read_bytes()
    for spoilt in (b"", b"{}", b"[]", content.replace(b"url", b"address")):
        place.write_bytes(spoilt)
        refused(run("show"), "enrolment")
    place.write_bytes(content)
    (home / TASK.hash.hex() / "task.json").write_bytes(task_of(label()).data)
    refused(run("answer", data), "wrong-hash")
    (home / TASK.hash.hex() / "task.json").unlink()
    refused(run("answer", data), "enrolment")


def test_a_folder_below_a_home_that_nobody_has_is_one_line(run: Run) -> None:
    refused(run("spent", "--folder", "~nobody-of-this-name/device"), "command: argument --folder: ~nobody")


def test_nothing_of_a_task_turns_or_hides_what_stands_beside_it(run: Run, tmp_path: Path) -> None:
    """Overrides that a task leaves open would reach to the end of the line, over the price."""
    turned = "low \u202eprice\u2066 \u200f\u061c\u200b\u2028"
    mood = {**label(), "classes": [turned, "glad", "גיל می\u200cخواهم"]}
    task = task_of(mood, name=turned, organiser=turned, purpose=turned, guarantee=[turned], public=[turned])
    with pretended(task) as collector:
        screen = run("enrol", collector.url, TOKEN, "--task", task.hash.hex())[1]
        (tmp_path / "mine.json").write_text('{"label": "angry"}')
        refusal = run("show", tmp_path / "mine.json")[2]
    assert "which you are: low ?price? ??? , glad, גיל می\u200cخواهم; one of them, epsilon 1" in screen
    assert "label is none of low ?price? ??? , glad" in refusal
    hidden = {letter for letter in screen + refusal if unicodedata.category(letter) in ("Cf", "Cc", "Zl")}
    assert hidden == {"\n", "\u200c"}


def test_an_enrolment_whose_answer_was_lost_asks_again_with_the_same_key(run: Run, collector: Pretended) -> None:
    right = collector.says["/enrolments"]
    for wrong in ((500, b""), (200, b"{"), (200, b'{"number":3}'), (200, b'{"number":"3","joined":1}'), (403, b"{}")):
        collector.says["/enrolments"] = wrong
        refused(run("enrol", collector.url, *ENROL), "collector")
        refused(run("show"), "enrolment")
    collector.says["/enrolments"] = right
    assert run("enrol", collector.url, *ENROL)[0] == 0
    assert len({json.dumps(enrolment) for enrolment in collector.enrolled}) == 1


def test_who_is_enrolled_enrols_again_as_the_same_person(run: Run, enrolled: Pretended, data: Path) -> None:
    """A collector that was put back from a backup has forgotten the enrolment: it is told the same key again."""
    again = ("enrol", enrolled.url, *ENROL)
    assert run(*again)[0] == 0
    # Nothing is booked: another first epoch is as good as the one before.
    enrolled.says["/enrolments"] = (200, b'{"number":3,"joined":2}')
    assert run(*again)[0] == 0
    enrolled.says["/enrolments"] = (200, b'{"number":3,"joined":1}')
    assert run(*again)[0] == 0 and run("answer", data)[0] == 0
    for other, message in (
        (b'{"number":4,"joined":1}', "enrolment: your token is person 3's, and the collector says that you are person"),
        (b'{"number":3,"joined":2}', "enrolment: the collector counts you from epoch 2 on"),
    ):
        enrolled.says["/enrolments"] = (200, other)
        refused(run(*again), message)
    enrolled.says["/enrolments"] = (403, b'{"code":"bad-token"}')
    refused(run(*again), "bad-token: ")
    assert run("answer", data)[0] == 0 and len(set(enrolled.reports)) == 1
    assert len({json.dumps(enrolment) for enrolment in enrolled.enrolled}) == 1


def test_another_persons_token_is_refused_before_the_collector_hears_of_it(run: Run, enrolled: Pretended) -> None:
    """To the collector a good token with another device's key is one that was spent: it would ask for a new one."""
    enrolled.says["/enrolments"] = (403, b'{"code":"bad-token"}')
    other = TOKEN[:-1] + "4"
    result = run("enrol", enrolled.url, other, "--task", TASK.hash.hex(), "--as", IDS[4])
    refused(result, "enrolment: this device is person 3 of the collection, and the token is person 4's. ")
    assert "Take the token that you joined with, or another --folder." in result[2]
    assert len(enrolled.enrolled) == 1


def test_a_report_that_was_not_taken_is_sent_again(run: Run, enrolled: Pretended, data: Path) -> None:
    for status, content, message in (
        (507, b'{"code":"disk-full"}', "disk-full: the collector has no room"),
        (200, b'{"answers":["bad-tag"]}', "bad-tag: the report does not carry the device's own mark"),
        (200, b'{"answers":[]}', "collector: the collector's answer is none of the standard"),
        # Codes of the device itself, or of nobody, are not the collector's to say.
        (200, b'{"answers":["cap"]}', "collector: the collector refused with 200 cap"),
        (400, b'{"code":"send-it-elsewhere"}', "collector: the collector refused with 400 send-it-elsewhere"),
        (302, b"", "collector: the collector sends on to another address (302), and nothing is sent there"),
    ):
        enrolled.says["/reports"] = status, content
        code, out, err = run("answer", data)
        assert code == 2 and out.startswith(AS + "recorded; epsilon 7.5") and err.startswith(message)
        assert "Your report is recorded and its price is spent; sent again, it is the same bytes" in err
    del enrolled.says["/reports"]
    assert run("answer", data)[1] == AS + "recorded; epsilon 7.5 is spent in all\nsent\n"
    assert len(enrolled.reports) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"epoch":1,"open":false,"until":null}', "closed: the round, or the whole collection, has closed: round 1 t"),
        (b'{"epoch":0,"open":false,"until":null}', "no-opening: no round has opened yet"),
        (b'{"epoch":1}', "collector: the collector's answer is none of the standard"),
        (b'{"epoch":1,"open":0}', "collector: the collector's answer is none of the standard"),
        (b"nothing", "collector: the collector's answer is none of the standard"),
    ],
)
def test_nothing_is_booked_for_a_round_that_is_not_open(
    content: bytes, message: str, run: Run, enrolled: Pretended, data: Path
) -> None:
    enrolled.says["/epoch"] = (200, content)
    result = run("answer", data)
    refused(result, message)
    assert "Nothing was recorded or sent this time." in result[2] and enrolled.reports == []
    assert run("spent")[1].startswith("epsilon 0 is spent")


def test_a_report_that_is_booked_is_sent_whatever_the_collector_says(run: Run, enrolled: Pretended, data: Path) -> None:
    """Its acknowledgement may have been lost; and collectors need not say whether a round is open."""
    enrolled.says["/epoch"] = (404, b"{}")
    assert run("answer", data)[0] == 0
    for content in (b'{"epoch":1,"open":false,"until":null}', b'{"epoch":1,"open":true,"until":9}'):
        enrolled.says["/epoch"] = (200, content)
        assert "nothing new was sent" in run("answer", data)[1]
    assert len(set(enrolled.reports)) == 1 and len(enrolled.reports) == 3


def test_other_tasks_and_openings_are_refused(run: Run, collector: Pretended) -> None:
    refused(run("enrol", collector.url, TOKEN, "--task", "00" * 32), "wrong-hash")
    collector.says["/task"] = (200, task_of(label()).data)
    refused(run("enrol", collector.url, *ENROL), "wrong-hash")
    collector.says["/task"] = (200, b"{}")
    refused(run("enrol", collector.url, *ENROL), "bad-task")
    assert not collector.enrolled


def test_a_collector_that_swaps_the_key_is_refused(run: Run, collector: Pretended, data: Path) -> None:
    """Before somebody joins and afterwards: hash and key are those of the enrolment, and the key is shown."""
    other = Ed25519PrivateKey.generate()
    opening = {"task": TASK.hash.hex(), "nonces": ["00" * 16]}
    swapped = signed("task", TASK_PURPOSE, parse(TASK.data)["task"], other)
    collector.says["/task"] = (200, swapped)
    refused(run("enrol", collector.url, *ENROL), "wrong-hash")
    assert not collector.enrolled
    collector.says["/task"] = (200, TASK.data)
    screen = run("enrol", collector.url, *ENROL)[1]
    assert f"signed by the key {short_key(TASK.key)}, which the organiser can confirm" in screen
    collector.says |= {"/task": (200, swapped), "/opening": (200, signed("opening", OPENING, opening, other))}
    refused(run("answer", data), "bad-signature")
    # An opening of the task that is served now is none of the task that was joined.
    opening["task"] = Task.of(swapped).hash.hex()
    collector.says["/opening"] = (200, signed("opening", OPENING, opening, other))
    assert run("answer", data)[0] == 2 and not collector.reports
    assert run("spent")[1] == "epsilon 0 is spent; no limit of your own: one task of each organiser\n"


def test_values_and_limits_are_refused_before_anything_is_booked(run: Run, enrolled: Pretended, data: Path) -> None:
    for text in ("", "{", "[" * 100_000, '{"label": "angry"}', '{"links": [3]}', '{"features": [NaN, 0, 0, 0, 0, 0]}'):
        data.write_text(text)
        refused(run("answer", data), "bad-value")
        assert run("show", data)[0] == 2
    refused(run("answer", data.with_name("none.json")), "bad-value")
    assert run("spent")[1] == "epsilon 0 is spent; no limit of your own: one task of each organiser\n"


def test_a_limit_is_kept(run: Run, collector: Pretended, data: Path) -> None:
    refused(run("enrol", collector.url, *ENROL, "--limit", "two"), "command")
    assert not collector.enrolled
    assert run("enrol", collector.url, *ENROL, "--limit", "2")[0] == 0
    refused(run("answer", data), "cap")
    data.write_text('{"label": "sad"}')
    assert run("answer", data)[0] == 0
    assert run("spent")[1].endswith("epsilon 1 is spent; 1 left of 2\n")


def test_what_was_spent_is_said_where_another_task_is_joined(run: Run, collector: Pretended, data: Path) -> None:
    """A task that is signed with a new key is another organiser's: without a limit, only the person can add them up."""
    words = ("enrol", collector.url, *ENROL)
    assert "have cost" not in run(*words)[1] and run("answer", data)[0] == 0
    spent = run("spent")[1].rpartition("epsilon ")[2].partition(" ")[0]
    assert f"\nyour reports have cost epsilon {spent} so far; those to this task are added" in run(*words)[1]


def test_a_limit_that_is_lost_is_not_none(run: Run, collector: Pretended, data: Path, home: Path) -> None:
    enrol = ("enrol", collector.url, *ENROL)
    assert run(*enrol, "--limit", "2")[0] == 0
    (home / "limit").unlink()
    for words in (("answer", data), ("show", data), ("spent",), enrol):
        result = run(*words)
        refused(result, f"ledger: {home / 'limit'}, your own limit, is gone")
        assert "Write the limit into that file again: 5, 2.5, none or default." in result[2]
    assert not collector.reports
    (home / "limit").write_text("2\n")
    refused(run("answer", data), "cap")
    (home / "limit").unlink()
    assert run(*enrol, "--limit", "none")[0] == 0 and run("answer", data)[0] == 0


def test_two_terminals_that_enrol_at_once_are_one_device(run: Run, collector: Pretended, data: Path) -> None:
    """One waits while the person is asked who they are; meanwhile the other one spends the token for its own key."""
    words, right, keys = ("enrol", collector.url, *ENROL), collector.answer, list[str]()

    def answer(path: str, body: bytes) -> tuple[int, bytes]:
        if path == "/ids" and not keys:
            keys.append("")
            assert run(*words)[0] == 0
        if path == "/enrolments":
            keys.append(json.loads(body)["key"])
            if keys[-1] != keys[1]:
                return 403, b'{"code":"bad-token"}'
        return right(path, body)

    collector.answer = answer  # type: ignore[method-assign]
    assert run(*words)[0] == 0
    assert len(keys) == 3 and keys[1] == keys[2]
    assert run("answer", data)[0] == 0


@pytest.mark.parametrize("url", ["http://example.org", "ftp://localhost", "localhost", "file:///etc", "http://[", ""])
def test_nothing_is_sent_in_the_clear(run: Run, url: str) -> None:
    refused(run("enrol", url, TOKEN, "--task", "00" * 32), "collector: a collector's address begins with https")


def test_wrong_words_are_one_line(run: Run) -> None:
    for words in ((), ("sing",), ("enrol",), ("answer",), ("enrol", "https://localhost", TOKEN, "--task", "zz")):
        refused(run(*words), "command")
    refused(run("show"), "enrolment")
    refused(run("enrol", "http://localhost:1", TOKEN, "--task", "00" * 32), "collector")


def test_a_server_that_speaks_no_http_is_one_line(run: Run) -> None:
    """It hangs up, or speaks something else."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url, says = f"http://127.0.0.1:{server.getsockname()[1]}", (b"", b"nonsense\r\n", b"HTTP/1.1 two\r\n\r\n")

        def answer() -> None:
            for content in says:
                with server.accept()[0] as connection:
                    connection.recv(10_000)
                    connection.sendall(content)

        thread = threading.Thread(target=answer)
        thread.start()
        for _ in says:
            refused(run("enrol", url, TOKEN, "--task", "00" * 32), "collector: the collector cannot be reached")
        thread.join()
