"""The screens of ``graphveil collect``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from graphveil.cli.base.tables import described, pairs, rows
from graphveil.device.reports.noise import byte_count
from graphveil.reports.base.text import printable
from graphveil.runtime.words import count_of

if TYPE_CHECKING:
    from graphveil.methods.base.family import Plan


def drafted(answer: Mapping[str, Any], plan: Plan | None) -> RenderableType:
    """The draft, its guarantee and the plan of a method on it."""
    head = Text(
        f"draft of a task for {count_of(answer['people'], 'person')}: {printable(answer['file'])}", style="bold"
    )
    missing = ", ".join(answer["missing"])
    next_command = f"graphveil collect sign {shlex.quote(answer['folder'])}"
    facts = [
        *(("Promised", line) for line in answer["guarantee"]),
        *([("To fill in", missing)] if missing else []),
        ("Next", f"fill it in, then {next_command}" if missing else f"read it, then {next_command}"),
    ]
    if plan is None:
        return Group(head, Text(), pairs(facts))
    from graphveil.cli.base import screens

    report = f"{byte_count(answer['report_bytes'])} a person"
    return Group(head, Text(), pairs(facts), Text(), screens.planned(plan, report))


def signed(answer: Mapping[str, Any]) -> RenderableType:
    folder = answer["folder"]
    facts = [
        ("Task", answer["task"]),
        ("Signed by", answer["signed_by"]),
        *(("Promised", line) for line in answer["guarantee"]),
        ("Keep", f"{folder}/organiser.key to yourself; tell people the hash of the task, which covers the key"),
        ("Next", f"graphveil collect enrol {shlex.quote(folder)}"),
    ]
    return pairs(facts)


def enrolled(answer: Mapping[str, Any], folder: Path) -> RenderableType:
    people = f"of {count_of(answer['people'], 'person')}; each enrols one device, once"
    links = (
        [("Links", f"{answer['url']}/#TOKEN.HASH, a column of the file: each opens a person's page")]
        if answer.get("url")
        else []
    )
    next_command = f"graphveil collect serve {shlex.quote(str(folder))}, and hand the tokens out one by one"
    return pairs([("Tokens", f"{answer['tokens']}, {people}"), *links, ("Next", next_command)])


def replaced(answer: Mapping[str, str]) -> RenderableType:
    facts = [
        ("Person", answer["id"]),
        ("Token", f"{answer['token']} (shown once; stored nowhere)"),
        *([("Link", f"{answer['link']}: opens their page")] if "link" in answer else []),
        ("Before", "the old token no longer works"),
    ]
    return pairs(facts)


def serving(answer: Mapping[str, object]) -> RenderableType:
    facts = [("Collector", str(answer["url"])), ("Task", str(answer["task"]))]
    facts += [("People", f"{answer['url']}/"), ("Organiser", f"{answer['url']}/organiser")]
    if answer["admin"]:
        facts.append(("Admin token", f"{answer['admin']} (shown once; kept in admin-token)"))
    elif answer["admin_file"]:
        facts.append(("Admin token", f"in the file {answer['admin_file']}"))
    return pairs([*facts, ("To end", "Ctrl-C; what was acknowledged is stored")])


def status(answer: Mapping[str, Any]) -> RenderableType:
    epoch = f"{answer['epoch']}, {'open' if answer['open'] else 'closed'}" if answer["epoch"] else "none has opened"
    if answer["scrubbed"]:
        epoch += "; scrubbed: none can be opened any more"
    do = "does" if answer["empty"] == 1 else "do"
    facts = [
        ("Task", f"{answer['name']}, {answer['task'][:16]}, signed by {answer['signed_by']}"),
        ("Window", f"{_day(answer['opens'])} to {_day(answer['closes'])} (UTC)"),
        ("Enrolled", f"{answer['enrolled']:,} of {count_of(answer['people'], 'person')}"),
        ("Epoch", epoch),
        ("Received", f"{answer['received']:,}; nothing is exported from fewer than {answer['least']:,}"),
        *([("Empty", f"{answer['empty']:,} more left everything out, and {do} not count")] if answer["empty"] else []),
    ]
    facts += [(f"Hash of epoch {number}", digest) for number, digest in answer["hashes"].items()]
    if not answer["refused"]:
        return pairs([*facts, ("Refused", "none")])
    table = rows(("refused as", "times"), ((code, f"{count:,}") for code, count in sorted(answer["refused"].items())))
    return Group(pairs(facts), Text(), table)


def played(answer: Mapping[str, object]) -> RenderableType:
    head = Text("a simulation: devices, tokens and task are made up; the values are the graph's own", style="bold")
    facts = {name: value for name, value in answer.items() if name != "simulation"}
    return Group(head, Text(), described({**facts, "refused": answer["refused"] or "none"}))


def exported(answer: Mapping[str, Any]) -> RenderableType:
    """What was exported, with the findings of the checks for forged reports, and each epoch's hash on its line."""
    facts = {**answer, "findings": answer["findings"]["sentence"]}
    hashes = {f"hash of epoch {number}": epoch["hash"] for number, epoch in enumerate(facts.pop("epochs"), start=1)}
    return described({**facts, **hashes})


def _day(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
