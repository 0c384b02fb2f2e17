"""The table of docs that says what each party sees: every kind of message, by tests that are there."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from graphveil import load_graph
from graphveil.federation.core.messages import ANYBODY, HOLDER, KINDS, LABELS, SERVER, simulate
from graphveil.federation.core.mode import MODE_OF
from graphveil.federation.core.setting import Member, Setting
from graphveil.federation.core.states import RunContext
from graphveil.federation.effects import Effect, Receive, Send
from graphveil.federation.party import holder_program
from graphveil.privacy import SeededRandomness
from tests.federation.views import holdings, setting_of, watched
from tests.pages import page, table

ROOT = Path(__file__).parent.parent
LINES = table("federation-views")


def test_every_kind_of_message_has_its_reader_and_what_it_tells() -> None:
    listed = {row[1].strip("`"): row[0] for row in LINES}
    assert listed == {name: kind.receiver for name, kind in KINDS.items()}
    assert len(LINES) == len(KINDS)
    # A prediction alone sends who is new.
    assert {kind for mode in MODE_OF.values() for kind in mode.sent} == set(KINDS) - {"new-rows"}
    assert set(listed.values()) == {SERVER, HOLDER, LABELS, ANYBODY}
    assert all(len(row) == 5 and row[3] and row[4] for row in LINES)


def test_every_test_that_is_named_is_there() -> None:
    named = {word.strip("`,") for row in LINES for word in row[4].split()}
    text = page("federation-views")
    named |= {word.strip("(`).,") for word in text.split() if "::test_" in word}
    assert len(named) > 20
    for name in named:
        file, function = name.split("::")
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert function in functions, name


class Enough(Exception):
    """Both have told the server what they tell it first."""


def test_a_count_and_who_trains_are_all_that_the_server_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """After alignment one number, of ids that all share; then the numbers of the rows that train."""
    graph, sent = load_graph("social-200"), []
    ids = {"h1": [f"person {number}" for number in range(200)], "h2": [f"person {number}" for number in range(50, 250)]}
    members = tuple(Member(name, graph.schema.dimension, name == "h1") for name in ids)
    setting = Setting.of(members, len(graph.schema.classes), mode="individual")

    def watch(name: str, effect: Effect) -> None:
        if isinstance(effect, Send) and effect.to == "server":
            sent.append((name, effect.kind, effect.body.tolist()))
        if len(sent) == 2:
            raise Enough

    programs: dict[str, Any] = {
        name: holder_program(RunContext(name, setting, SeededRandomness(1)), graph, ids[name], seed=0) for name in ids
    }

    def server() -> Any:
        for name in ids:
            yield Receive(name, "aligned", (1,))

    with pytest.raises(Enough):
        simulate({"server": server(), **programs}, watch=watch)
    first = [(name, kind, body) for name, kind, body in sent if kind == "aligned"]
    assert first and all(body == [150] for _, _, body in first)
    for mode in ("shared-linear", "individual", "paper"):
        by_holder = holdings(2, 20, 3)
        head = by_holder["h1"].head
        assert head is not None
        seen = watched(setting_of(by_holder, mode=mode, opened=True), by_holder, monkeypatch)
        (trains,) = seen.bodies("labelled-rows", to="server")
        assert trains.tolist() == head.train.nonzero().flatten().tolist()
        # All parties are sent whose rows are published when.
        announced = [
            (kind, send.to)
            for kind in ("labelled-rows", "validation-rows")
            for _, send in seen.messages
            if send.kind == kind
        ]
        everybody = [(kind, to) for kind in ("labelled-rows", "validation-rows") for to in ("server", "h2")]
        assert announced == everybody
