"""``python -m graphveil.device``: a person's device at a terminal, and a client as a program (``lines``)."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import NoReturn

from graphveil.device import refusals, telling
from graphveil.device.errors import DeviceError
from graphveil.device.lines import answer_lines
from graphveil.device.people.canonical_id import canonical_id
from graphveil.device.people.people import asks_about_links, ids_of, with_numbers
from graphveil.device.remote import Remote
from graphveil.device.reporting import Enrolled, book, preview
from graphveil.device.reports.answer import NANO, answers
from graphveil.device.reports.noise import byte_count
from graphveil.device.storage.home import Enrolment, Home
from graphveil.device.task import Opening, Task
from graphveil.device.wire import number_of, token_of

_STOP = "If you are somebody else, stop and tell the organiser."


def whom(remote: Remote, task: Task, number: int, claimed_id: str | None, agreed_id: str | None) -> str | None:
    """Return the id of the person whom a device answers for, None where no field of the task depends on it.

    Args:
        remote: serves the ids of everybody.
        task: holds the hash of these ids.
        number: of the person.
        claimed_id: who the person says they are; None: they are asked at a terminal.
        agreed_id: the id that they agreed to before.

    Raises:
        DeviceError: `command`, without a terminal, or with an id that is not needed; `enrolment`, another person;
            `bad-ids`, ids that are not the task's.
    """
    if not asks_about_links(task):
        if claimed_id is not None:
            raise DeviceError("command", "--as is for tasks that ask for links, and this one does not", "Leave it out.")
        return None
    id = ids_of(task, remote.ids())[number] if agreed_id is None else agreed_id
    person = telling.person_name(number, id)
    if claimed_id is not None and not _is_same(claimed_id, id):
        raise DeviceError("enrolment", f"you would answer as {person}, and --as says {shlex.quote(claimed_id)}", _STOP)
    if claimed_id is None and agreed_id is None:
        if not sys.stdin.isatty():
            remedy = f"If you are they, add --as {shlex.quote(id)}. {_STOP}"
            raise DeviceError("command", f"you would answer as {person}", remedy)
        why = "two people could tell of the same link, which protects it less"
        sys.stderr.write(f"You answer as {person}. If this is not you, stop: {why}.\nIs it you? [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise DeviceError("enrolment", f"you are not {person}", _STOP)
    return id


def _is_same(claimed_id: str, id: str) -> bool:
    try:
        return canonical_id(claimed_id) == canonical_id(id)
    except DeviceError:
        return False


_EXAMPLE = '{"features": [0.5, 2], "label": "calm", "links": [4, "Ann"]}, or a part of it'
_DATA = 'a file: {"features": [...], "label": "...", "links": [...]}'


class _Parser(argparse.ArgumentParser):
    """Refuses in one line."""

    def error(self, message: str) -> NoReturn:
        raise DeviceError("command", message)


def main(words: list[str] | None = None) -> int:
    """Run the command of these words, or of the process; return 0, or 2 where it was refused."""
    args = argparse.Namespace(done_so_far=refusals.NOTHING)
    try:
        _parser().parse_args(words, args)
        for line in args.run(args):
            # At once: the other end of a pipe may wait for this line before it asks the next.
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
    except DeviceError as error:
        return _refuse(error, args.done_so_far)
    except OSError as error:
        detail = f"{error.filename or args.folder} cannot be used ({error.strerror})"
        remedy = "Make it usable, and type the same command again; the command spent lists what is recorded."
        return _refuse(DeviceError("enrolment", detail, remedy), refusals.after_disk(args.done_so_far))
    return 0


def _refuse(error: DeviceError, done_so_far: str) -> int:
    sys.stderr.write(telling.plain(refusals.refusal_line(error, done_so_far)) + "\n")
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m graphveil.device", description="Check a task, and answer it with a noisy report.")
    # Expanded only where it is used: a user who names another folder needs no home.
    default_folder = os.environ.get("GRAPHVEIL_DEVICE", "~/.graphveil-device")
    folder_help = "where secret and ledger are kept"
    parser.add_argument("--folder", type=_folder, default=default_folder, help=f"{folder_help}; %(default)s")
    # After the command too; where it is left out there, one before the command holds.
    shared = _Parser(add_help=False)
    shared.add_argument("--folder", type=_folder, default=argparse.SUPPRESS, help=folder_help)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    enrol = commands.add_parser("enrol", parents=[shared], help="take part in a task with a token that you were given")
    enrol.add_argument("url", help="of the collector")
    enrol.add_argument("token", help="or -: it is read from stdin, and nobody else on this machine sees it")
    enrol.add_argument("--task", required=True, help="its hash, as you were told it")
    enrol.add_argument("--as", dest="id", help="your id; needed where links are asked and no terminal asks you")
    enrol.add_argument("--limit", help="epsilon that all your reports may cost, none or default")
    enrol.set_defaults(run=_enrol, done_so_far=refusals.JOINING)
    show = commands.add_parser(
        "show", parents=[shared], help="what is asked, and what a report would say; nothing is sent"
    )
    show.set_defaults(run=_show)
    answer = commands.add_parser(
        "answer", parents=[shared], help="book and send the report of this epoch; again: the same one"
    )
    answer.add_argument("--as", dest="id", help="your id: where links are asked, as another person it is refused")
    answer.set_defaults(run=_answer)
    for command in (show, answer):
        command.add_argument("first", nargs="?", metavar="TASK", help="as --task; one word alone is DATA")
        command.add_argument("data", nargs="?", metavar="DATA", help=_DATA)
        command.add_argument("--task", help="its hash, or the beginning of it, where there are several")
    commands.add_parser("spent", parents=[shared], help="what was sent, spent, left").set_defaults(run=_spent)
    lines = commands.add_parser("lines", help="JSON lines in, JSON lines out: docs/standard/conformance.md")
    lines.set_defaults(run=lambda args: answer_lines(sys.stdin.buffer))
    return parser


def _folder(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise argparse.ArgumentTypeError(
            f"{text}: the system knows no home folder of this user; name another"
        ) from error


def _enrol(args: argparse.Namespace) -> Iterator[str]:
    try:
        digest = bytes.fromhex(args.task)
    except ValueError as error:
        raise DeviceError(
            "command", "--task is no hash: it has 64 digits, 0 to 9 and a to f", "Copy it again, whole."
        ) from error
    home, remote, token = Home(args.folder), Remote(args.url), _token(args.token)
    task = Task.of(remote.task(), digest)
    earlier = home.tasks().get(task.hash.hex())
    expected = _number(task, token)
    # All checks come before the token is spent. For the collector another device's token is one that was spent.
    if earlier is not None:
        _require_person(earlier, expected)
    # Only the person knows who they are.
    agreed = earlier.id if earlier is not None and earlier.number == expected else None
    id = whom(remote, task, expected, args.id, agreed)
    home.limit(args.limit)
    # A device whose secret is lost cannot take part.
    home.secret()
    # Nor can one that would answer this organiser twice although its person has not agreed to it.
    home.ledger().require_limit(task)
    number, joined = _join(home, remote, task, token, Enrolment(args.url, os.urandom(32).hex(), id=id))
    yield from telling.task_lines(task)
    yield f"your secret is kept in {home.place}"
    # To a device each key is another organiser, even if one organiser signs each task with a new key: so its person is
    # told the sum.
    if spent := home.ledger().spent:
        yield f"your reports have cost epsilon {float(spent):g} so far; those to this task are added; see --limit"
    yield f"you are {telling.person_name(number, id)}, from epoch {joined} on; nothing of yours was sent"


def _token(word: str) -> str:
    """Return the token that was typed, or the first line of stdin for "-"."""
    if word != "-":
        return word
    if sys.stdin.isatty():
        sys.stderr.write("Token: ")
        sys.stderr.flush()
    return sys.stdin.readline().strip()


def _join(home: Home, remote: Remote, task: Task, token: str, fresh: Enrolment) -> tuple[int, int]:
    """Spend a token for the key of this folder, that of `fresh` where it has none; return number and first epoch."""
    with home.ledger().locked():
        # Read again: another terminal may have joined while the person was asked, and the collector knows that key.
        enrolment = home.tasks().get(task.hash.hex()) or replace(fresh, id=None)
        # On disk before it is sent: where the answer is lost, the same key enrols again.
        home.keep(task, enrolment)
        number, joined = remote.enrol(token, enrolment.key)
        task.person(number, bytes(16))
        is_booked = bool(home.ledger().booked(task.hash))
        _require_person(enrolment, number)
        # By another nonce the device would be asked for other coordinates than it has answered.
        if is_booked and enrolment.joined != joined:
            counted = f"the collector counts you from epoch {joined} on"
            detail = f"{counted}, and you have answered as from {enrolment.joined}"
            raise DeviceError("enrolment", detail, "Nothing was changed; tell the organiser.")
        home.keep(task, replace(fresh, key=enrolment.key, number=number, joined=joined))
    return number, joined


def _number(task: Task, token: str) -> int:
    """Return the number of the person whom a token enrols in a task."""
    number = number_of(token_of(token))
    if number >= task.people:
        detail = f"the token is of none of the {task.people:,} people of this task"
        raise DeviceError("command", detail, "Copy it again, whole.")
    return number


def _require_person(enrolment: Enrolment, number: int) -> None:
    if enrolment.number not in (None, number):
        detail = f"this device is person {enrolment.number} of the collection, and the token is person {number}'s"
        raise DeviceError("enrolment", detail, "Take the token that you joined with, or another --folder.")


def _task_and_data(args: argparse.Namespace) -> tuple[str | None, Path | None]:
    """Return the hash of the task that was typed, and the person's file, which is the last word."""
    task, data = (None, args.first) if args.data is None else (args.first, args.data)
    if None not in (task, args.task):
        raise DeviceError("command", f"{task} and --task {args.task} name a task each", "Leave one out.")
    return args.task if task is None else task, None if data is None else Path(data)


def _show(args: argparse.Namespace) -> Iterator[str]:
    home = Home(args.folder)
    digest, data = _task_and_data(args)
    task, enrolment, enrolled = home.task(digest)
    yield from telling.task_lines(task)
    if data is not None:
        opening, values = _opening(enrolment, task, enrolled), _values(data, task, enrolment)
        response, nano = preview(task, opening, enrolled, values, home.ledger())
        person = task.person(enrolled.number, opening.nonce(enrolled.joined))
        if enrolment.id is not None:
            name = telling.person_name(enrolled.number, enrolment.id)
            yield f"you answer as {name}; if this is not you, stop and tell the organiser"
        size = byte_count(len(response.body))
        yield f"a report of {size} would cost epsilon {nano / NANO:g} and say, now and ever after:"
        yield from telling.report_lines(task, person, answers(task, person, response.body))


def _answer(args: argparse.Namespace) -> Iterator[str]:
    home = Home(args.folder)
    digest, data = _task_and_data(args)
    if data is None:
        raise DeviceError("command", "the file of what you answer is missing", f"Write into it {_EXAMPLE}.")
    task, enrolment, enrolled = home.task(digest)
    id = whom(Remote(enrolment.url), task, enrolled.number, args.id, enrolment.id)
    _require_open(Remote(enrolment.url), home, task, enrolled)
    opening, values = _opening(enrolment, task, enrolled), _values(data, task, enrolment)
    if id is not None:
        home.keep(task, replace(enrolment, id=id))
        yield f"you answer as {telling.person_name(enrolled.number, id)}"
    report = book(task, opening, enrolled, values, home.ledger())
    # The report is on disk: where sending fails, the next try sends the same bytes.
    args.done_so_far = refusals.BOOKED
    yield f"recorded; epsilon {float(home.ledger().spent):g} is spent in all"
    code = Remote(enrolment.url).send(report)
    repeated = "nothing new was sent: the collector keeps your first answer, whatever you changed since"
    yield "sent" if code == "accepted" else repeated


def _require_open(remote: Remote, home: Home, task: Task, enrolled: Enrolled) -> None:
    """Refuse to book a report that would come too late or too early: it would be paid for, and not count."""
    round = remote.round()
    if round is None or round.open:
        return
    # A booked report that the collector has is acknowledged at any time.
    if any((booked.task, booked.epoch) == (task.hash.hex(), round.epoch) for booked in home.ledger().booked()):
        return
    if not round.epoch:
        raise refusals.without_detail("no-opening")
    task.require_inside(time.time())
    _require_joined(enrolled, round.epoch)
    raise DeviceError("closed", f"round {round.epoch} takes no reports now")


def _require_joined(enrolled: Enrolled, epoch: int) -> None:
    """Refuse a round that had begun when the person joined."""
    if epoch < enrolled.joined:
        raise DeviceError(
            "not-open", f"round {epoch} had begun when you joined, and your first is round {enrolled.joined}"
        )


def _spent(args: argparse.Namespace) -> Iterator[str]:
    home = Home(args.folder)
    ledger, limit = home.ledger(), home.limit()
    for booked in ledger.booked():
        size = byte_count(len(booked.body) // 2)
        yield f"task {booked.task[:16]} epoch {booked.epoch}: epsilon {booked.nano / NANO:g}, {size}"
    if isinstance(limit, Fraction):
        left = f"{float(max(limit - ledger.spent, Fraction(0))):g} left of {float(limit):g}"
    else:
        left = "no limit" if limit is None else "no limit of your own: one task of each organiser"
    yield f"epsilon {float(ledger.spent):g} is spent; {left}"


def _opening(enrolment: Enrolment, task: Task, enrolled: Enrolled) -> Opening:
    opening = Opening.of(Remote(enrolment.url).opening(), task)
    _require_joined(enrolled, opening.epoch)
    return opening


def _values(path: Path, task: Task, enrolment: Enrolment) -> Mapping[str, object]:
    try:
        values = json.loads(path.read_bytes())
    except OSError as error:
        raise DeviceError("bad-value", f"{path} cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise DeviceError("bad-value", f"{path} is not written as {_EXAMPLE}") from error
    if not isinstance(values, dict):
        raise DeviceError("bad-value", f"{path} is not written as {_EXAMPLE}")
    return with_numbers(values, task, Remote(enrolment.url).ids)


if __name__ == "__main__":
    sys.exit(main())
