"""From a declaration to a trained model, in a real Chromium: init, sign, enrol, serve, answer, close, export, train.

The organiser and two people sit at browsers' pages; all others answer with the clients in Python and JavaScript.
"""

from __future__ import annotations

import csv
import json
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import polars
import pytest

from graphveil.collection.clients import commands_of
from graphveil.collection.export import read_export
from graphveil.collection.played import Client
from graphveil.collection.refusal_codes import REFUSAL_CODES
from graphveil.device.remote import Remote
from graphveil.device.task import Task
from graphveil.device.wire import read
from graphveil.graphs import Graph, social_graph
from tests.cli.conftest import Answer, Terminal
from tests.cli.conftest import type_in as type_in  # a fixture
from tests.cli.test_collect import serving
from tests.collection.organising import Organiser, look
from tests.pages import ROOT
from tests.reports.browser import Browser, started

pytestmark = pytest.mark.slow

PEOPLE, FEATURES = 60, ("runs", "swims", "rows", "climbs", "skates", "sails")
AREAS = ("north", "south", "west")
IDS = [f"person {number}" for number in range(PEOPLE)]
#: Who sits at a browser; all others answer with a client.
AT_BROWSERS = (0, 1)
DECLARED = f"""\
name = "town"
private = ["features", "labels"]
classes = {json.dumps(AREAS)}
directed = false
features = {json.dumps(FEATURES)}
range = [0, 1]
"""
WORDS = (
    "--organiser", "the city", "--purpose", "to see which clubs are missed", "--contact", "clubs@city.example",
    "--opens", "2026-01-01", "--closes", "2036-01-01", "--least", 30,
)  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with started(tmp_path_factory.mktemp("profile")) as window:
        yield window


@pytest.fixture(scope="module")
def graph() -> Graph:
    return social_graph(PEOPLE, average_degree=8, dimension=len(FEATURES), classes=len(AREAS), apps=2, seed=1)


def declared(folder: Path, graph: Graph) -> None:
    """A folder that declares what is asked, ids, and the public edges."""
    (folder / "town").mkdir()
    (folder / "town" / "graph.toml").write_text(DECLARED)
    (folder / "people.txt").write_text("".join(f"{one}\n" for one in IDS))
    pairs = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]].tolist()
    ends = {name: [IDS[one] for one in row] for name, row in zip(("source", "target"), pairs, strict=True)}
    polars.DataFrame(ends).write_parquet(folder / "edges.parquet")


def done(answer: Answer) -> Answer:
    assert answer.code == 0, answer.err
    return answer


def values(graph: Graph, number: int, kinds: Sequence[str]) -> dict[str, object]:
    """What a person knows of themselves."""
    told = {"features": graph.x.to_dense()[number].tolist(), "label": AREAS[int(graph.y[number])]}
    return {kind: told[kind] for kind in kinds}


class Town:
    """Everybody but the organiser.

    Args:
        browser: of the two who use one. url: of the collector. tokens: of everybody, by number. graph: their values.
    """

    def __init__(self, browser: Browser, url: str, tokens: Sequence[str], graph: Graph) -> None:
        self.browser, self.tokens, self.graph = browser, tokens, graph
        self.remote = Remote(url)
        self.task = Task.of(self.remote.task())
        self.kinds = [one.kind for one in self.task.fields]
        # Two names of this machine: to a browser they are two sites, and what it keeps for each is one person's.
        self.sites = (url, url.replace("127.0.0.1", "localhost"))

    def join_by_browser(self, number: int) -> None:
        """Open the link that a person was sent, read what is asked, and take part."""
        self.browser.show("about:blank")
        self.browser.show(f"{self.sites[number]}/#{self.tokens[number]}.{self.task.hash.hex()}")
        self._sees("What is asked of you")
        self._click("#join button.main")
        self._sees("Enrolment is still open")

    def answer_by_browser(self, number: int) -> None:
        """Fill in, look at the report, and send it."""
        self.browser.show("about:blank")
        self.browser.show(f"{self.sites[number]}/")
        self._sees("Your answers")
        mine = values(self.graph, number, self.kinds)
        if "features" in mine:
            for place, value in enumerate(self.graph.x.to_dense()[number].tolist()):
                self.browser.ask("document.querySelector(arguments[0]).focus()", f"#number-{place}")
                self.browser.press(f"{value:g}")
        self._click(f"input[value={mine['label']}]")
        self._click("#preview")
        self._sees("This is your report")
        self._click("#send")
        self._sees("your report has arrived")

    def join(self, number: int, client: Client) -> tuple[int, str, str]:
        """Enrol somebody's device: joined, key, secret."""
        client.asked(op="task", data=self.remote.task().decode(), expected=self.task.hash.hex())
        key, secret = os.urandom(32).hex(), os.urandom(32).hex()
        found, joined = self.remote.enrol(self.tokens[number], key)
        assert found == number
        return joined, key, secret

    def answer(self, number: int, client: Client, device: tuple[int, str, str]) -> str:
        """Draw, report and send; what the collector said."""
        return self.remote.send(read(self.report(number, client, device))[0])

    def report(self, number: int, client: Client, device: tuple[int, str, str]) -> bytes:
        joined, key, secret = device
        known: Mapping[str, object] = {"task": self.task.hash.hex(), "secret": secret}
        opening = self.remote.opening().decode()
        opened = client.asked(op="opening", task=self.task.hash.hex(), data=opening, joined=joined)
        mine = values(self.graph, number, self.kinds)
        body = client.asked(op="answer", **known, number=number, nonce=opened["nonce"], values=mine)["body"]
        return bytes.fromhex(client.asked(op="report", **known, epoch=opened["epoch"], body=body, key=key)["data"])

    def _sees(self, text: str) -> None:
        self.browser.until("return document.body.innerText.includes(arguments[0])", text)

    def _click(self, selector: str) -> None:
        self.browser.until("return document.querySelector(arguments[0])?.checkVisibility()", selector)
        self.browser.ask("document.querySelector(arguments[0]).click()", selector)


@pytest.mark.parametrize(
    ("method", "prices"),
    [("label-propagation", ("--epsilon-y", 3)), ("lpgnn", ("--epsilon-x", 6, "--epsilon-y", 3))],
)
def test_from_a_declaration_to_a_trained_model(
    method: str, prices: tuple[object, ...], browser: Browser, graph: Graph, type_in: Terminal, tmp_path: Path
) -> None:
    declared(tmp_path, graph)
    done(type_in("collect", "init", "town", "-o", "clubs", "--ids", "people.txt", *prices, *WORDS))
    done(type_in("collect", "sign", "clubs"))
    done(type_in("collect", "enrol", "clubs"))
    with (tmp_path / "clubs" / "tokens.csv").open(newline="") as file:
        tokens = [row["token"] for row in csv.DictReader(file)]
    names = "python,js" if shutil.which("node") else "python"
    with ExitStack() as stack:
        # One address stands for everybody here.
        told = stack.enter_context(serving(tmp_path / "clubs", "--enrolments-burst", "100"))
        token = Path(told["admin_file"]).read_text().strip()
        programs = commands_of(names, ROOT / "clients" / "js" / "lines.js").items()
        clients = [stack.enter_context(Client(name, command)) for name, command in programs]
        collected(Town(browser, told["url"], tokens, graph), clients, Organiser(browser, told["url"]), token)
        commands = trainings(browser)
    found = read_export(tmp_path / "clubs" / "collected")
    assert found.bodies.numbers.tolist() == list(range(PEOPLE)) and found.facts["answered"] == PEOPLE
    # Typed as the page says it, but for the length of training.
    program, *words = next(one for one in commands if one[2] == method)
    epochs = ("--epochs", 3) if method == "lpgnn" else ()
    assert program == "graphveil"
    done(type_in(*words, *epochs, "--no-controls"))
    run = tmp_path / f"{method}-run"
    result = json.loads((run / "result.json").read_text())
    assert result["method"] == method and f"{PEOPLE} sent label (100%)" in " ".join(result["notes"])
    assert {"report.html", "ledger.json", "model.safetensors", "card.md"} <= {path.name for path in run.iterdir()}


def collected(town: Town, clients: Sequence[Client], organiser: Organiser, admin: str) -> None:
    """Everybody enrols, answers and is counted; the organiser opens, closes and exports by keyboard."""
    for number in AT_BROWSERS:
        town.join_by_browser(number)
    by_client = [(number, clients[number % len(clients)]) for number in range(len(AT_BROWSERS), PEOPLE)]
    devices = {number: town.join(number, client) for number, client in by_client}
    organiser.come(admin)
    organiser.sees(f"{PEOPLE} of {PEOPLE} people have enrolled")
    organiser.does("open")
    organiser.sees("Round 1 is open.")
    for number in AT_BROWSERS:
        town.answer_by_browser(number)
    assert {town.answer(number, client, devices[number]) for number, client in by_client} == {"accepted"}
    # Whoever hears nothing sends again; whoever forges is refused, and the organiser hears of it.
    number, client = by_client[0]
    assert town.answer(number, client, devices[number]) == "again"
    forged = town.report(number, client, (devices[number][0], "00" * 32, devices[number][2]))
    with pytest.raises(Exception, match="unknown-enrolment"):
        town.remote.send(read(forged)[0])
    organiser.come(admin)
    organiser.sees(f"{PEOPLE} of {PEOPLE} people have answered (100%)")
    organiser.sees(REFUSAL_CODES["unknown-enrolment"].means)
    organiser.does("close")
    organiser.sees("Round 1 is closed.")
    organiser.does("export")
    organiser.sees(f"The reports of {PEOPLE} people are exported.")
    look(organiser.browser)


def trainings(browser: Browser) -> list[list[str]]:
    """The commands that the page tells to train with."""
    found = browser.ask("return [...document.querySelectorAll('#train pre')].map(one => one.textContent)")
    return [shlex.split(line) for line in found]
