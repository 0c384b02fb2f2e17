"""A collection that is played: every answer is a real one of the graph, counted once, and none of it is kept."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from graphveil.collection.export.export import read_export
from graphveil.collection.simulation.phones import commands_of, run_phones
from graphveil.collection.simulation.played import Cast, Client, play, served
from graphveil.collection.task.declare import Prices
from graphveil.collection.task.drafts import write_draft
from graphveil.collection.task.subject import subject_of
from graphveil.errors import InputError
from graphveil.files.outputs import Output
from graphveil.graphs import load_parts
from graphveil.runtime.progress import Progress
from tests.collection.test_desk import ready
from tests.on_device.javascript import node

PYTHON = commands_of("python", Path("none"))
GRAPH = load_parts("social-100")


def drafted(folder: Path, **prices: str) -> Path:
    folder.mkdir()
    write_draft(folder, subject_of("social-100"), {"organiser": "the city"}, Prices(**prices))
    return folder


def quiet(_: Progress) -> None:
    pass


def test_reports_are_those_of_the_graphs_people(tmp_path: Path) -> None:
    """At an epsilon at which noise is too rare to be met: a false answer has probability e^-40."""
    folder = drafted(tmp_path / "draft", label="40", links="40")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    heard: list[Progress] = []
    cast = Cast(30, PYTHON, dropouts=0.2, retries=0.5, seed=3)
    facts = play(folder, "social-100", cast, heard.append, out=Output(tmp_path / "out"))
    received = read_export(tmp_path / "out")
    numbers = received.bodies.numbers
    assert facts["enrolled"] == 30 == facts["dropped"] + facts["answered"] and 0 < facts["dropped"] < 15
    assert (len(numbers), facts["refused"], facts["simulation"]) == (facts["answered"], {}, True)
    assert 0 < facts["again"] < facts["answered"] and facts["clients"] == {"python": facts["answered"]}
    assert np.array_equal(received.bodies.values(0), GRAPH.y[numbers])
    lists = np.zeros((100, 100), np.uint8)
    lists[tuple(GRAPH.edge_index)] = 1
    assert np.array_equal(received.bodies.answers(1), np.triu(lists, 1)[numbers])
    assert received.task.name == "simulation of social-100" and received.task.organiser == "the city"
    assert (heard[-1].stage, heard[-1].done, heard[-1].total) == ("answering", 30, 30)
    # What was tried out is still a draft, to be signed or not.
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_both_clients_play_together(tmp_path: Path) -> None:
    node()
    folder = drafted(tmp_path / "draft", features="200", label="40", links="40", degree="5")
    cast = Cast(12, commands_of("python,js"), dropouts=0, retries=1)
    facts = play(folder, "social-100", cast, quiet, out=Output(tmp_path / "out"))
    assert (facts["answered"], facts["again"], facts["clients"]) == (12, 12, {"python": 6, "js": 6})
    received = read_export(tmp_path / "out")
    assert np.array_equal(received.bodies.values(1), GRAPH.y[received.bodies.numbers])
    assert all(received.bodies.answered(place).all() for place in range(4))


@pytest.mark.parametrize(
    ("data", "people", "prices", "message"),
    [
        ("social-200", 5, {"label": "1"}, "social-200 has 200 nodes, and the task is for 100 people"),
        ("social-100", 101, {"label": "1"}, "--people 101; allowed: 1 to 100"),
        ("social-100", 5, {}, "price missing"),
    ],
)
def test_a_play_that_cannot_be_is_refused(
    data: str, people: int, prices: dict[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        play(drafted(tmp_path / "draft", **prices), data, Cast(people, PYTHON), quiet)


def test_clients_that_cannot_play_are_refused() -> None:
    for names, message in (("ruby", "unknown client 'ruby'"), ("python,python", "names a client twice")):
        with pytest.raises(InputError, match=message):
            commands_of(names, Path("none"))
    with pytest.raises(InputError, match="nowhere does not start"):
        Client("mine", ["./nowhere"])
    with Client("mine", [sys.executable, "-c", ""]) as ended, pytest.raises(InputError, match="'mine' refuses task"):
        ended.ask(op="task", data="")
    refusing = f"print({json.dumps(json.dumps({'error': 'bad-task'}))})"
    with Client("mine", [sys.executable, "-c", refusing]) as js, pytest.raises(InputError, match=r"task \(bad-task\)"):
        js.ask(op="task", data="")
    node()
    with pytest.raises(InputError, match="none is no file"):
        commands_of("js", Path("none"))


@pytest.mark.parametrize(
    ("url", "data", "message"),
    [
        ("https://collector.example", "social-81", "is another machine"),
        ("http://192.168.0.7:8700", "social-81", "is another machine"),
        ("nowhere", "social-81", "is another machine"),
        ("", "social-90", "81 tokens, and 90 nodes"),
    ],
)
def test_phones_send_nothing_elsewhere_or_for_other_people(url: str, data: str, message: str, tmp_path: Path) -> None:
    desk = ready(tmp_path / "desk", subject=subject_of("social-81"), label="2")
    with served(desk) as own, pytest.raises(InputError, match=message):
        run_phones(desk.folder, data, url or own, Cast(None, PYTHON, 0.2, 0.5), quiet)
