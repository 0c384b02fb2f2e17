"""A studio with the real command: the same bits as by hand, no private cell in an answer, answers as described."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import polars
import pytest

from graphveil.cli import main
from graphveil.studio.jobs import Limits
from tests.studio.studios import Open, studio_at

pytestmark = pytest.mark.slow

#: It stands in a private column, in a label and in the ids of both ends of an edge, and nowhere else.
MARKER = "zqx"
ANSWERS: dict[str, Any] = {
    "private": ["features", "labels", "edges"],
    "classes": ["a", "b", f"{MARKER}-label"],
    "directed": False,
    "label": "club",
    "columns": {"age": {"integer": [0, 99]}, "job": {"category": ["x", "y", f"{MARKER}-job"]}},
}
SUMS: dict[str, Any] = {"settings": {"epsilon": 2, "epochs": 3}, "controls": False}
PUBLIC = json.dumps([*ANSWERS["classes"], *ANSWERS["columns"]["job"]["category"]])


def tables(people: int = 60) -> dict[str, bytes]:
    """A small town in which one person's values are all told from everybody's."""
    rows = [f"p{number},{20 + number % 50},{'xy'[number % 2]},{'ab'[number % 2]}" for number in range(people)]
    rows.append(f"{MARKER}-id,77,{MARKER}-job,{MARKER}-label")
    edges = [f"p{number},p{(number + step) % people}" for number in range(people) for step in (2, 4)]
    edges.append(f"{MARKER}-id,p1")
    texts = {"nodes.csv": ["id,age,job,club", *rows], "edges.csv": ["source,target", *edges]}
    return {name: "\n".join(lines).encode() for name, lines in texts.items()}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    with studio_at(tmp_path_factory.mktemp("studio") / "root") as opened:
        yield opened


@pytest.fixture(scope="module")
def walked(here: Open) -> dict[str, dict[str, Any]]:
    """Every route once, from dropped tables to finished runs: its jobs by name."""
    page = here.page
    for name, data in tables().items():
        assert page.ask("PUT", f"/api/tables/town/{name}", data=data).status == 201
    assert page.post("/api/drafts", {"folder": "town"})["draft"]["roles"]["id"] == "id"
    narrow = {**ANSWERS, "columns": {**ANSWERS["columns"], "job": {"category": ["x", "y"]}}}
    wrong = page.post("/api/declarations", {"folder": "town", "answers": narrow}, 422)["error"]
    assert wrong.startswith("town/nodes.csv, line 62: job is ...") and MARKER not in wrong
    page.post("/api/declarations", {"folder": "town", "answers": ANSWERS}, 409)
    declared = page.post("/api/declarations", {"folder": "town", "answers": ANSWERS, "replace": True})
    assert declared["notes"][-1].startswith("checked: 61 people")
    for place, private in (("streets", ["edges"]), ("people", ["features", "labels"])):
        for name, data in tables().items():
            assert page.ask("PUT", f"/api/tables/{place}/{name}", data=data).status == 201
        page.post("/api/declarations", {"folder": place, "answers": {**ANSWERS, "private": private}})
    for query in ({"query": "describe"}, {"query": "advise"}, {"query": "plan", "method": "class-sums"}):
        page.post("/api/queries", {"data": "town", **query})
    jobs = {
        "sums": here.run("train", data="town", method="class-sums", **SUMS),
        "node": here.run("train", data="town", method="node-sums", **SUMS),
        "local": here.run("train", data="town", method="solitude", settings={"epochs": 3}, controls=False),
        "streets": here.run("train", data="streets", method="class-sums", **SUMS),
        "people": here.run("train", data="people", method="lpgnn", settings={"epochs": 3}, controls=False),
        "release": here.run("release", data="town", method="edge-rand", settings={"epsilon_a": 4}, without_lift=True),
    }
    jobs["attack"] = here.run("attack", run=jobs["sums"]["out"], attack="membership")
    runs = [jobs[name]["out"] for name in ("sums", "local", "release")]
    page.post("/api/queries", {"query": "compare-runs", "runs": runs})
    for out in runs[:2]:
        page.get(f"/api/runs/{out}/graph")
    for out in runs:
        for name in page.get(f"/api/runs/{out}")["files"]:
            assert page.ask("GET", f"/api/runs/{out}/files/{name}").status == 200
    for path in ("choices", "folders", "jobs", "saved", "session", f"jobs/{jobs['sums']['id']}/events"):
        assert page.ask("GET", f"/api/{path}").status == 200
    assert page.ask("PUT", "/api/saved", {"version": 0, "saved": {}}).status == 200
    return jobs


def test_no_answer_holds_a_private_cell(here: Open, walked: dict[str, dict[str, Any]]) -> None:
    """Words that the owner declared to be public (classes, categories) may be said, and nothing else of the marker."""
    assert len(here.page.seen) > 60 and {job["state"] for job in walked.values()} == {"done"}
    for reply in here.page.seen:
        text = reply.body.decode("utf-8", "replace")
        assert f"{MARKER}-id" not in text, text[:300]
        for word in re.findall(rf"{MARKER}[\w-]*", text):
            assert word in PUBLIC


def test_a_graph_leaves_out_what_the_data_declares_private(here: Open, walked: dict[str, dict[str, Any]]) -> None:
    # Noise on edges alone: what is predicted of people is nearly their labels themselves.
    uncovered = here.page.get(f"/api/runs/{walked['sums']['out']}/graph")
    assert (
        uncovered["nodes"] == [] and "private features and labels, which no epsilon covers" in uncovered["left_out"][0]
    )
    graph = here.page.get(f"/api/runs/{walked['streets']['out']}/graph")
    assert len(graph["nodes"]) == 61 and graph["edges"] == [] and graph["left_out"][0].startswith("Edges are left out")
    assert {node["right"] for node in graph["nodes"]} == {True, False}
    # What is drawn of two copies of a class has the same places: they follow from the class alone.
    whole = json.loads((here.studio.root.folder / walked["streets"]["out"] / "picture.json").read_text())
    assert {(node["x"], node["y"]) for node in graph["nodes"]}.isdisjoint({tuple(place) for place in whole["places"]})
    people = here.page.get(f"/api/runs/{walked['people']['out']}/graph")
    assert len(people["nodes"]) == 61 and people["edges"] and people["left_out"][0].startswith("True labels and errors")
    assert {(node["label"], node["right"], node["part"]) for node in people["nodes"]} == {(None, None, None)}
    # A declaration that says more than the run knew counts as well.
    declaration = here.studio.root.folder / "streets" / "graph.toml"
    declaration.write_text(declaration.read_text().replace('["edges"]', '["edges", "labels"]'))
    assert here.page.get(f"/api/runs/{walked['streets']['out']}/graph")["nodes"] == []
    alone = here.page.get(f"/api/runs/{walked['node']['out']}/graph")
    assert alone["nodes"] == [] and "that person's eyes alone" in alone["left_out"][0]
    assert here.page.ask("GET", f"/api/runs/{walked['release']['out']}/graph").status == 404


def test_a_collection_says_what_was_promised(here: Open) -> None:
    folder = here.studio.root.folder / "exported"
    folder.mkdir()
    (folder / "collection.json").write_text('{"people": 3, "answered": 2}')
    for task, sentence in (('{"task": {"guarantee": ["One.", "Two."]}}', "One. Two."), ('{"task": 1}', "")):
        (folder / "task.json").write_text(task)
        run = here.page.get("/api/runs/exported")
        assert (run["kind"], run["result"]["guarantee_sentence"], run["parties"]) == ("collection", sentence, None)


def test_a_public_sets_graph_is_whole(here: Open) -> None:
    run = here.run("train", data="name:digits", method="class-sums", **SUMS)
    graph = here.page.get(f"/api/runs/{run['out']}/graph")
    assert len(graph["nodes"]) == 1797 and graph["edges"][0]["pairs"]
    assert {node["right"] for node in graph["nodes"]} == {True, False}


def test_the_page_and_the_command_run_the_same_bits(
    here: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = {"data": "name:digits", "method": "lpgnn", "settings": {"epsilon_x": 1.5, "epochs": 4}, "seed": 2}
    run = here.run("train", **request, controls=False, reproducible_noise=7)
    words = [*run["words"][:-2], "--out", str(tmp_path / "by-hand"), "--json"]
    config = here.page.post("/api/queries", {"query": "plan", **request, "controls": False})["config"]
    (tmp_path / "run.toml").write_text(config)
    by_file = f"train --config {tmp_path}/run.toml --reproducible-noise 7 --out {tmp_path}/by-file".split()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert main(words) == 0 and main(by_file) == 0
    folders = (here.studio.root.folder / run["out"], tmp_path / "by-hand", tmp_path / "by-file")
    assert len({(folder / "public" / "model.safetensors").read_bytes() for folder in folders}) == 1
    assert run["price"].startswith("VOID") and run["command"].startswith("graphveil train lpgnn digits")


def test_nothing_is_spent_at_another_price_than_the_button_named(here: Open) -> None:
    plan = {"data": "name:digits", "method": "lpgnn", "settings": {"epsilon_x": 1}}
    price = here.page.post("/api/queries", {"query": "plan", **plan})["price"]
    request = {"job": "train", **plan}
    assert price.startswith("lpgnn on digits: ")
    for more in ({"price": None}, {"price": f"{price} "}, {"settings": {"epsilon_x": 2}}, {"repeats": 2}):
        reply = here.page.post("/api/jobs", {**request, "price": price, **more}, 409)
        assert reply["code"] == "other-price"
    before = here.page.get("/api/jobs")["jobs"]
    dear = next(job for job in before if job["job"] == "train")
    assert here.page.post(f"/api/jobs/{dear['id']}/again", {"price": "nothing"}, 409)["code"] == "other-price"
    again = here.page.post(f"/api/jobs/{dear['id']}/again", {"price": dear["price"]}, 201)
    assert again["out"] != dear["out"] and again["words"][:-1] == dear["words"][:-1]
    here.page.ask("DELETE", f"/api/jobs/{again['id']}")
    here.ended(again["id"], "stopped", "done")
    assert len(here.page.get("/api/jobs")["jobs"]) == len(before) + 1


def test_a_table_that_unpacks_to_more_than_memory_ends_its_command_alone(tmp_path: Path) -> None:
    """A column of one value is packed into nothing, whatever its length."""
    with studio_at(tmp_path / "root", limits=Limits(1, 512, 1)) as here:
        (tmp_path / "root" / "big").mkdir()
        column = polars.repeat(1, 30_000_000, eager=True)
        tables = {"nodes": {"id": column, "age": column}, "edges": {"source": [1], "target": [1]}}
        for stem, columns in tables.items():
            polars.DataFrame(columns).write_parquet(tmp_path / "root" / "big" / f"{stem}.parquet")
        assert (tmp_path / "root" / "big" / "nodes.parquet").stat().st_size < 1 << 20
        answers = {"private": [], "label": "none", "classes": ["a", "b"], "directed": False}
        answers |= {"columns": {"age": {"number": [0, 1]}}}
        refused = here.page.post("/api/declarations", {"folder": "big", "answers": answers}, 422)
        assert "memory" in refused["error"] and here.page.get("/api/folders")["data"][0]["path"] == "big"


def test_every_answer_is_as_the_document_describes_it(here: Open, walked: dict[str, dict[str, Any]]) -> None:
    document = here.page.get("/openapi.json")
    # The longest first: it says more of an address.
    routes = {re.sub(r"{\w+}", ".+", path): path for path in sorted(document["paths"], key=len, reverse=True)}
    described = set()
    for method, path, reply in here.page.log:
        route = next((route for pattern, route in routes.items() if re.fullmatch(pattern, path)), None)
        # What is downloaded is bytes to the document, also where it is JSON.
        if route is None or reply.status == 204 or "json" not in reply.headers["content-type"] or "files" in path:
            continue
        responses = document["paths"][route][method.lower()]["responses"]
        schema = responses[str(reply.status)]["content"]["application/json"]["schema"]
        jsonschema.Draft202012Validator({**schema, "components": document["components"]}).validate(reply.json)
        described.add((method, route, reply.status))
    good = {(method, route) for method, route, status in described if status < 300}
    every = {(method.upper(), route) for route, methods in document["paths"].items() for method in methods}
    streams = {("GET", "/api/jobs/{id}/events"), ("GET", "/api/runs/{path}/files/{name}")}
    assert every - good == streams
