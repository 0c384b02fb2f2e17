"""The studio's page in a real Chromium: from data to plan, run and card, each failure, two tabs, and how it looks."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.collection.postgresql import postgresql
from tests.reports.browser import Browser
from tests.studio.officer import Officer, Server, look, serving

pytestmark = pytest.mark.slow


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "work").mkdir()
    with serving(tmp_path / "work") as running:
        yield running


@pytest.fixture
def officer(browser: Browser, tmp_path: Path) -> Officer:
    return Officer(browser, tmp_path / "downloads")


def pictures(tmp_path: Path) -> Path:
    """Where pictures of every step in every form go, to be looked at."""
    folder = tmp_path / "pictures"
    folder.mkdir(exist_ok=True)
    return folder


def in_docs(officer: Officer, name: str, head: str, height: int) -> None:
    """Take a picture of the docs, of what stands below a heading; GRAPHVEIL_PICTURES=docs/pictures makes it anew."""
    folder = os.environ.get("GRAPHVEIL_PICTURES")
    if folder is None:
        return
    officer.browser.dress(width=1000)
    time.sleep(0.5)
    script = "return [...document.querySelectorAll('h1, h2')].find(one => one.innerText === arguments[0])"
    top = officer.browser.ask(f"{script}.getBoundingClientRect().top + scrollY", head) - 24
    officer.picture(Path(folder) / name, width=1000, top=top, height=height)
    officer.browser.dress()
    assert (Path(folder) / name).stat().st_size < 150_000


def to_the_plan(officer: Officer) -> None:
    """The shortest way: an example, a curator, the advised budget."""
    officer.presses("digits", "Say whom you trust", "A curator, who trains", "Choose the budget")
    officer.sees("It spends")


def test_from_data_to_plan_to_run_to_card(server: Server, officer: Officer, tmp_path: Path) -> None:
    seen, browser = pictures(tmp_path), officer.browser
    officer.come(server.start())
    assert browser.ask("return location.hash") == "#data"
    officer.presses("digits")
    officer.sees("1,797", "which of 10 classes", "Declared private", "they stand in for private ones")
    look(officer, seen, "data")
    officer.presses("Say whom you trust", "A curator, who trains")
    officer.sees("This leaves open what the data declare private.", "features and labels are NOT protected")
    officer.presses("Everybody else")
    officer.sees("May learn", "epsilon 4, delta 1e-05 for one undirected edge")
    look(officer, seen, "trust")
    in_docs(officer, "studio-trust.png", "Who sees what", 1030)
    officer.presses("Choose the budget")
    officer.sees("Of 100 guesses about one connection at most 99 are right.")
    place = browser.ask("const one = document.querySelector('input[type=range]'); return one.value")
    officer.fills("input[type=range]", str(int(place) - 4))
    officer.sees("Of 100 guesses about one connection at most 89 are right.", "epsilon 2 for one edge")
    # Over the whole slider, one unit an axis, each with its numbers as a table.
    officer.sees(
        "measured on public graphs like yours: cora, cora-ml and citeseer", "Right predictions of 100", "Lift:"
    )
    assert browser.ask("return document.querySelectorAll('.chart:has(.area):has(table)').length") == 3
    follows(officer, int(place) - 4)
    officer.presses("More settings")
    assert browser.ask("return document.querySelector('[data-key=epsilon]').value") == "2"
    officer.fills_in("epochs", "60")
    officer.sees("settings: epochs 60", "--epochs 60")
    look(officer, seen, "budget")
    in_docs(officer, "studio-budget.png", "How much may be learned?", 1250)
    officer.presses("Download plan.md", "Download plan.json")
    assert officer.clicks < 25
    assert "graphveil plan class-sums digits --epsilon 2" in officer.gets("plan.md")
    plan = json.loads(officer.gets("plan.json"))
    assert plan["guarantee"]["epsilon"] == 2 and plan["guarantee_sentence"] in officer.gets("plan.md")
    # Nothing has been spent, and nothing is before the button that names the price.
    assert not (server.folder / "runs").exists()
    officer.presses("Go on to run it")
    officer.sees("Train now: spend epsilon 2 for one connection", f"class-sums on digits: {plan['guarantee_sentence']}")
    officer.sees("graphveil train class-sums digits --epsilon 2 --epochs 60")
    officer.presses("Download config.toml")
    assert "epochs = 60" in officer.gets("config.toml")
    look(officer, seen, "price")
    officer.presses("Train now")
    officer.sees("Result: class-sums on digits", "What may be learned about one person", "run: finished")
    officer.presses("Draw the graph")
    officer.sees("1,797 of 1,797 people are drawn")
    # First an attack on which the picture leans.
    assert browser.ask("return document.querySelector('#attack').value") == "link-stealing"
    officer.fills("#attack", "linkteller")
    officer.presses("Try it")
    officer.sees("without noise 1.00")
    look(officer, seen, "run")
    run = next((server.folder / "runs").iterdir())
    officer.presses("card.md")
    assert officer.gets("card.md") == (run / "card.md").read_text(encoding="utf-8")
    reviewed(officer, run, seen)
    # The browser has nothing to say: no policy is broken, nothing is absent.
    assert browser.complaints() == []


def follows(officer: Officer, place: int) -> None:
    """Marks and readings of all charts follow the slider, and say what the tables behind them say."""
    marks = "return [...document.querySelectorAll('.mark')].map(one => one.getAttribute('x1'))"
    assert len(before := officer.browser.ask(marks)) == 3
    officer.sees("citeseer: 72.6 to 84.4 at epsilon 2", "citeseer: 0.5 to 5.0 at epsilon 2")
    rows = "return [...document.querySelectorAll('.chart tbody tr')].map(one => one.textContent)"
    table = [row for row in officer.browser.ask(rows) if row.startswith("measured")]
    # What was measured at an epsilon beyond the slider is in the table, and ends the area.
    assert [row.partition("citeseer")[2] for row in table if "45" in row] == ["4576.988.6", "454.813.4"]
    officer.fills("input[type=range]", str(place + 2))
    officer.sees("citeseer: 74.1 to 85.8 at epsilon 3", "epsilon 3 for one edge")
    after = officer.browser.ask(marks)
    assert len(set(after)) == 1 and set(after).isdisjoint(before)
    officer.fills("input[type=range]", str(place))
    officer.sees("citeseer: 72.6 to 84.4 at epsilon 2", "epsilon 2 for one edge")


def test_every_measured_method_has_its_own_bands_and_no_other_unit(server: Server, officer: Officer) -> None:
    officer.come(server.start())
    officer.presses("digits", "Say whom you trust", "A curator, who trains", "Choose another method")
    officer.fills("#method", "gap")
    officer.presses("Choose the budget")
    officer.sees("cora, cora-ml and citeseer: 71.7 to 80.5 at epsilon 4", "-1.8 to -0.4 at epsilon 4")
    officer.fills_in("What to hide (unit)", "node")
    officer.sees("caltech")
    assert "cora-ml" not in officer.text("#body")
    officer.fills_in("What to hide (unit)", "k-edges")
    officer.sees("This method was not measured on graphs like yours.")


def reviewed(officer: Officer, run: Path, seen: Path) -> None:
    """From the results to what somebody may learn about one person in two clicks; and everything as a table."""
    officer.presses("Results")
    officer.sees(run.name, "Figure")
    look(officer, seen, "results")
    sort = "const one = document.querySelector('#sort-lift'); one.click(); return document.activeElement.id"
    assert [officer.browser.ask(sort), officer.text("[aria-sort=ascending]")] == ["sort-lift", "lift"]
    officer.fills("#figure", "accuracy")
    officer.sees("Accuracy of each run")
    officer.fills("input[type=search]", "no such run")
    officer.sees("0 of them")
    officer.fills("input[type=search]", "")
    officer.presses("Download results.csv", "Download figure.svg", "Download figure.png")
    assert "class-sums" in officer.gets("results.csv")
    assert "<title>Accuracy of each run</title><desc>Accuracy of each run: class-sums on" in officer.gets("figure.svg")
    officer.clicks = 0
    officer.presses(run.name, "Everybody else")
    officer.sees("of 100 guesses about one undirected edge at most 89 are right")
    assert officer.clicks == 2


def club(folder: Path) -> list[Path]:
    """Two tables of a club: 90 people of three classes, mostly connected within them."""
    draw = random.Random(1)
    classes, pairs = [number % 3 for number in range(90)], set[tuple[int, int]]()
    while len(pairs) < 300:
        person, other = sorted(draw.sample(range(90), 2))
        if classes[person] == classes[other] or draw.random() < 0.2:
            pairs.add((person, other))
    people = [f"p{number},{20 + number % 60},{'abc'[label]},Name {number}" for number, label in enumerate(classes)]
    tables = {
        "members.csv": ["member_id,age,team,name", *people],
        "friendships.csv": ["from,to", *(f"p{person},p{other}" for person, other in sorted(pairs))],
    }
    folder.mkdir()
    for name, lines in tables.items():
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [folder / name for name in tables]


def test_two_tables_become_a_plan(server: Server, officer: Officer, tmp_path: Path) -> None:
    browser = officer.browser
    tables = club(tmp_path / "tables")
    officer.come(server.start())
    officer.waits("return document.querySelector('input[type=file]')")
    browser.driver.find_element("css selector", "input[type=file]").send_keys("\n".join(map(str, tables)))
    officer.fills_in("Name of a new folder", "club")
    officer.presses("Put them into the folder")
    officer.sees("Why you are asked", "it tells who somebody is")
    officer.presses("Write graph.toml and check the folder")
    officer.sees("Say first what is private.")
    officer.presses("who is connected to whom", "Write graph.toml and check the folder")
    officer.sees(
        "Some answers are missing.", "Does a connection have a direction?", "What team holds; or leave it out."
    )
    officer.fills("[data-role=label]", "team")
    officer.fills("[data-answer=classes]", "a, b")
    officer.fills_in("Does a connection have a direction?", "no")
    look(officer, pictures(tmp_path), "declare")
    officer.presses("Write graph.toml and check the folder")
    # The cell is named, and what stands in it is not shown.
    officer.sees("The folder and your answers do not fit yet.", "nodes.csv, line 4")
    assert "'c'" not in officer.text("main")
    # A step back and a reload lose nothing.
    browser.ask("history.back()")
    officer.sees("In your folder")
    browser.ask("history.forward()")
    officer.sees("Why you are asked")
    browser.driver.refresh()
    officer.waits("return document.querySelector('[data-answer=classes]')?.value === 'a, b'")
    officer.fills("[data-answer=classes]", "a, b, c")
    officer.presses("Write graph.toml and check the folder")
    officer.sees("The folder fits what you said.")
    officer.presses("Download graph.toml")
    assert officer.gets("graph.toml") == (server.folder / "club" / "graph.toml").read_text(encoding="utf-8")
    officer.presses("Go on with these data")
    # What was ticked, and not what some method would protect besides.
    officer.sees(
        "Declared private\nwho is connected to whom (edges)",
        "Public\nwhat is known about each person (features); which",
    )
    officer.presses("Say whom you trust", "A curator, who publishes once", "Choose the budget", "Download plan.md")
    assert officer.clicks < 25
    assert "class-counts club" in officer.gets("plan.md")
    assert [complaint for complaint in browser.complaints() if "/api/declarations" not in complaint] == []


def test_a_folder_of_undeclared_columns_becomes_a_plan(server: Server, officer: Officer) -> None:
    """The town of the docs: what most of its columns hold is answered at once, and differs in three."""
    shutil.copytree("docs/examples/town", server.folder / "town", ignore=shutil.ignore_patterns("*.toml", "*.py"))
    officer.come(server.start())
    officer.presses("town", "who is connected to whom")
    officer.fills("[data-role=id]", "person")
    officer.fills("[data-role=label]", "club")
    officer.fills_in("Does a connection have a direction?", "no")
    officer.fills("[data-answer=classes]", "sports, choir, gardens, fire brigade, chess")
    officer.fills("[data-column='*']", "category")
    for column, kind in (("children", "integer"), ("car", "yes-no"), ("hobbies", "tags")):
        officer.fills(f"[data-column={column}]", kind)
    words = {
        "district": "old town, harbour, north, south, hills",
        "job": "school, crafts, office, care, retired",
        "degree": "none, school, apprenticeship, university",
        "hobbies": "football, running, music, books, plants, cooking, games, engines",
    }
    for column, text in words.items():
        officer.fills(f".column:has([data-column={column}]) textarea", text)
    officer.fills(".column:has([data-column=hobbies]) input", "3")
    officer.fills(".column:has([data-column=children]) .row .row > :nth-child(1) input", "0")
    officer.fills(".column:has([data-column=children]) .row .row > :nth-child(2) input", "8")
    officer.presses("Write graph.toml and check the folder")
    officer.sees("The folder fits what you said.")
    officer.presses("Go on with these data", "Say whom you trust", "A curator, who publishes once", "Choose the budget")
    officer.presses("Download plan.md")
    assert "class-counts town" in officer.gets("plan.md") and officer.clicks < 25


def test_other_sources_become_tables(server: Server, officer: Officer) -> None:
    nodes = [{"id": number, "age": 20 + number} for number in range(4)]
    edges = [{"source": number, "target": number - 1} for number in range(1, 4)]
    (server.folder / "friends.json").write_text(json.dumps({"directed": False, "nodes": nodes, "links": edges}))
    arrays = {"x": np.ones((4, 2), np.float32), "edge_index": np.array([[0, 1], [1, 2]])}
    save_file(arrays, server.folder / "pyg.safetensors")
    np.savez(server.folder / "pyg.npz", **arrays)
    queries = {"Query for the people": "SELECT 1 AS id, 30 AS age", "Query for the connections": "SELECT 1, 1"}
    with closing(sqlite3.connect(server.folder / "friends.sqlite")) as database:
        database.execute("CREATE TABLE people (id)")
    with postgresql() as postgres:
        url = postgres.url("town").replace("+psycopg", "")
        files = [("File", name, {}) for name in ("friends.json", "pyg.safetensors", "pyg.npz")]
        databases = [("Database", name, queries) for name in ("sqlite:///friends.sqlite", url)]
        officer.come(server.start())
        for number, (kind, source, more) in enumerate([*files, *databases]):
            officer.browser.ask("location.hash = '#data/import'")
            officer.fills_in("Where is the graph?", kind.lower())
            for label, text in {kind: source, **more, "Name of a new folder": f"new-{number}"}.items():
                officer.fills_in(label, text)
            officer.presses("Copy it into the folder")
            officer.sees("The graph is copied into tables.")
            officer.presses("Say what is in it")
            officer.sees(f"What is in new-{number}?", "Why you are asked")
    assert officer.browser.complaints() == []


def test_a_list_of_edges_becomes_tables(server: Server, officer: Officer) -> None:
    (server.folder / "friends.txt").write_text("# met at school\na b\nb c\n", encoding="utf-8")
    officer.come(server.start())
    officer.presses("Take it from another source")
    officer.fills_in("Where is the graph?", "list")
    officer.presses("Copy it into the folder")
    officer.sees("Something is still empty.")
    officer.fills_in("File", "friends.txt")
    officer.fills_in("Name of a new folder", "friends")
    officer.presses("Copy it into the folder")
    officer.sees("The graph is copied into tables.", "graphveil data import friends.txt --out friends")
    officer.presses("Say what is in it")
    officer.sees("What is in friends?")


def test_by_keyboard_alone(server: Server, officer: Officer) -> None:
    from selenium.webdriver.common.keys import Keys

    browser = officer.browser
    officer.come(server.start())
    officer.reaches("[data-key='name:social']", Keys.ENTER)
    officer.sees("data: social", "Say whom you trust")
    officer.reaches("#body .main", Keys.ENTER)
    officer.reaches("[data-name=curator]", Keys.ENTER)
    officer.reaches("[data-party=readers]", Keys.ENTER)
    officer.sees("May learn")
    # The focus is seen.
    assert browser.ask("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    officer.reaches("#body .acts .main", Keys.ENTER)
    officer.reaches("input[type=range]", *[Keys.ARROW_LEFT] * 3)
    officer.sees("budget: epsilon 2.5 for one connection", "epsilon 2.5 for one edge")
    assert browser.ask("return document.activeElement.type") == "range"
    officer.reaches("#body .acts .main", Keys.ENTER)
    officer.sees("Train now: spend epsilon 2.5 for one connection")
    assert browser.ask("return document.activeElement.id") == "head"


def test_a_goal_first(server: Server, officer: Officer) -> None:
    officer.come(server.start())
    to_the_plan(officer)
    officer.presses("Start from a goal instead")
    officer.fills("input[type=number]", "90")
    officer.presses("Look for the smallest budget")
    officer.sees("is the smallest that reaches 90% in every rehearsal.")
    officer.presses("Use epsilon")
    officer.sees("epsilon 4 for one edge")
    officer.fills("input[type=number]", "99")
    officer.presses("Look for the smallest budget")
    officer.sees("Ask for less, or trust somebody more.")


def test_whatever_fails_says_what_happened(server: Server, officer: Officer) -> None:
    browser = officer.browser
    officer.come(server.start())
    to_the_plan(officer)
    officer.presses("Go on to run it", "Train now", "Stop")
    officer.sees("You stopped it.", "run: stopped")
    assert "SIG" not in officer.text("main")
    officer.presses("Start it again")
    officer.sees("run: under way")
    server.kill_job()
    officer.sees("Something outside ended it.", "No result was written.")
    officer.presses("Start it again")
    officer.sees("run: under way")
    server.kill()
    officer.sees("The studio does not answer.", "start it again in the same folder")
    server.start()
    # The run went on without its server, and the browser is still known.
    officer.sees("The studio answers again.", "Result: class-sums on digits")
    offline = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    browser.driver.execute_cdp_cmd("Network.enable", {})
    browser.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": True, **offline})
    officer.presses("Data")
    officer.sees("The studio does not answer.", "Try again")
    browser.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": False, **offline})
    officer.sees("The studio answers again.")
    officer.presses("Try again")
    officer.sees("Examples to try it with")
    full = (
        "const real = fetch; window.fetch = (path, told) => told.method !== 'PUT' ? real(path, told) : Promise.resolve("
        """new Response('{"error": "the disk of the studio\\'s folder is full", "code": "no-room"}', {status: 507}))"""
    )
    browser.ask(full)
    officer.presses("social")
    officer.sees("The disk is full.", "Make room in the studio's folder")


def test_two_tabs_and_a_stranger(server: Server, officer: Officer, tmp_path: Path) -> None:
    driver = officer.browser.driver
    for table in club(server.folder / "work"):
        table.rename(table.with_name("nodes.csv" if "members" in table.name else "edges.csv"))
    toml = 'private = ["edges"]\nclasses = ["a", "b", "c"]\ndirected = false\nid = "member_id"\nlabel = "team"\n'
    toml += 'source = "from"\ntarget = "to"\nfeatures = ["age"]\nrange = [0, 120]\n'
    (server.folder / "work" / "graph.toml").write_text(toml, encoding="utf-8")
    url = server.start()
    officer.come(url)
    to_the_plan(officer)
    first = driver.current_window_handle
    driver.switch_to.new_window("tab")
    driver.get(url.partition("#")[0])
    officer.sees("budget: epsilon 4 for one connection")
    officer.presses("social")
    officer.sees("data: social")
    driver.switch_to.window(first)
    # Whoever comes back to a tab sees what another one has chosen.
    officer.sees("data: social", "Say first whom you trust.")
    officer.browser.ask("location.hash = '#data'")
    # Both on one screen, as it were: this tab does not look before its person chooses, and meets the other's choice.
    officer.browser.ask("document.querySelector('#tabs').append(document.createElement('i'))")
    driver.switch_to.window(next(handle for handle in driver.window_handles if handle != first))
    officer.presses("digits")
    officer.sees("trust: a curator, who trains")
    driver.switch_to.window(first)
    officer.presses("work")
    officer.sees("Another tab has made other choices meanwhile.")
    officer.presses("Take the other tab's")
    officer.sees("data: digits", "trust: a curator, who trains")
    for other in driver.window_handles:
        if other != first:
            driver.switch_to.window(other)
            driver.close()
    driver.switch_to.window(first)
    # The link works once: whoever reads it later is not admitted.
    driver.delete_all_cookies()
    driver.get("about:blank")
    driver.get(url)
    officer.sees("Open this page by its link")
    look(officer, pictures(tmp_path), "closed")
