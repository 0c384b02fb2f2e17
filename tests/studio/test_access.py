"""Who may use a studio: nobody without its token, and no other page, name or path."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from graphveil.studio.root import Root
from tests.studio.studios import Browser, Open, studio_at

ROUTES = (
    *("GET /api/choices", "GET /api/folders", "GET /api/jobs", "GET /api/jobs/1", "GET /api/jobs/1/events"),
    *("GET /api/saved", "GET /api/runs/run", "GET /api/runs/run/graph", "GET /api/runs/run/files/card.md"),
    *("GET /api/session", "GET /openapi.json", "GET /nowhere", "POST /api/queries", "POST /api/jobs"),
    *("POST /api/drafts", "POST /api/declarations", "POST /api/jobs/1/again", "PUT /api/saved"),
    *("PUT /api/tables/a/b.csv", "DELETE /api/jobs/1"),
)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Open]:
    with studio_at(tmp_path / "root") as opened:
        yield opened


def test_a_token_admits_one_browser_once(here: Open) -> None:
    stranger = here.stranger()
    assert stranger.enter(here.access.token).status == 401
    assert stranger.ask("GET", "/api/session").status == 401
    assert here.page.get("/api/session") == {"csrf": here.page.csrf}
    cookie = here.page.seen[0].headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; ")) and "Secure" not in cookie
    stored = (here.studio.root.state / "studio.sqlite").read_bytes()
    assert str(here.page.cookie).partition("=")[2].encode() not in stored


def test_wrong_tokens_are_slowed(here: Open) -> None:
    statuses = [here.stranger().enter(f"{number}").status for number in range(12)]
    assert statuses[0] == 401 and statuses[-1] == 429 and here.page.get("/api/saved")["version"] == 0


@pytest.mark.parametrize("route", ROUTES)
def test_without_a_session_nothing_is_answered(route: str, here: Open) -> None:
    method, path = route.split()
    reply = here.stranger().ask(method, path, {} if method != "GET" else None)
    assert reply.status == 401 and reply.json["code"] == "not-admitted"


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (403, {"x_csrf_token": None}),
        (403, {"x_csrf_token": "0" * 64}),
        (403, {"origin": "http://127.0.0.1:9999"}),
        (403, {"origin": "null"}),
        (403, {"sec_fetch_site": "same-site"}),
        (403, {"sec_fetch_site": "cross-site"}),
        (421, {"host": "evil.example"}),
        (421, {"host": None}),
        (413, {"content_length": str(1 << 21)}),
        (413, {"transfer_encoding": "chunked"}),
        (200, {"origin": "http://127.0.0.1:8750"}),
        (200, {"sec_fetch_site": "same-origin"}),
        (200, {"host": "localhost:8750"}),
    ],
)
def test_a_foreign_page_or_name_is_refused(status: int, headers: dict[str, str | None], here: Open) -> None:
    saving = {"version": 0, "saved": {}}
    assert here.page.ask("PUT", "/api/saved", saving, **headers).status == status
    # Also what only reads: browsers send the cookie to every port of a machine.
    if {"origin", "sec_fetch_site"} & set(headers):
        for path in ("/api/folders", "/api/saved", "/api/jobs", "/openapi.json"):
            assert here.page.ask("GET", path, **headers).status == status


@pytest.mark.parametrize("path", ["/api/session", "/api/saved", "/api/tables/new/nodes.csv"])
def test_a_body_that_does_not_come_ends(path: str, here: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a sender that holds the line the first part comes, and never another."""
    monkeypatch.setattr("graphveil.studio.access.PATIENCE", 0.05)
    method = "POST" if path == "/api/session" else "PUT"
    reply = here.page.ask(method, path, data=b"[", content_length="9", x_unfinished="1")
    assert (reply.status, reply.json["code"]) == (400, "bad-request")
    assert not (here.studio.root.folder / "new" / "nodes.csv").exists()
    assert here.page.get("/api/saved")["version"] == 0


def test_every_answer_has_the_headers_of_a_page_that_runs_nothing_foreign(here: Open) -> None:
    for reply in (
        here.page.ask("GET", "/api/saved"),
        here.page.ask("GET", "/api/nothing"),
        here.stranger().ask("GET", "/x"),
    ):
        assert reply.headers["content-security-policy"].startswith(
            "default-src 'none'; script-src 'self'; style-src 'self'"
        )
        assert reply.headers["cache-control"] == "no-store" and reply.headers["x-content-type-options"] == "nosniff"
    style = here.stranger().ask("GET", "/assets/look.css")
    assert style.status == 200 and style.headers["content-security-policy"].count("default-src") == 1
    assert "cytoscape" in here.stranger().ask("GET", "/assets/cytoscape.min.js").body.decode()


def test_a_session_survives_its_server(tmp_path: Path) -> None:
    with studio_at(tmp_path / "root") as before:
        cookie, csrf = before.page.cookie, before.page.csrf
    with studio_at(tmp_path / "root") as here:
        browser = Browser(here.page.gate, cookie, csrf)
        assert browser.get("/api/session") == {"csrf": csrf}


LEADING_OUT = "..", "../x", "a/../..", "/etc/passwd", "out", "a/hole"
HIDDEN_OR_NO_NAME = ".hidden", "a/.hidden/b", "-out", "a/-b", "a//b", "a\\b", "a\nb", ""


@pytest.mark.parametrize("path", [*LEADING_OUT, *HIDDEN_OR_NO_NAME])
def test_no_path_leads_out_of_the_root(path: str, here: Open) -> None:
    """`out` and `a/hole` are links, one out of the root and one to its hidden folder."""
    root = here.studio.root.folder
    (root / "a").mkdir()
    (root / "out").symlink_to(root.parent)
    (root / "a" / "hole").symlink_to(root / ".graphveil-studio")
    (root / "run").mkdir()
    (root / "run" / "result.json").write_text("{}")
    (root / "run" / "card.md").symlink_to(__file__)
    before = sorted(root.parent.rglob("*"))
    replies = [
        here.page.ask("POST", "/api/drafts", {"folder": path}),
        here.page.ask("POST", "/api/declarations", {"folder": path, "answers": {}}),
        here.page.ask("POST", "/api/queries", {"query": "describe", "data": path}),
        here.page.ask("POST", "/api/queries", {"query": "compare-runs", "runs": [path]}),
        here.page.ask("POST", "/api/jobs", {"job": "attack", "run": path, "attack": "membership"}),
        here.page.ask("POST", "/api/jobs", {"job": "import", "source": path, "folder": "new"}),
        here.page.ask("POST", "/api/jobs", {"job": "import", "source": f"sqlite:///{path}", "folder": "new"}),
        here.page.ask("GET", f"/api/runs/{path}"),
        here.page.ask("GET", f"/api/runs/{path}/files/card.md"),
        here.page.ask("GET", "/api/runs/run/files/card.md"),
        here.page.ask("PUT", f"/api/tables/{path}/nodes.csv", data=b"id\n1\n"),
    ]
    assert {reply.status for reply in replies} <= {400, 404} and here.page.get("/api/runs/run")["files"] == [
        "result.json"
    ]
    assert sorted(root.parent.rglob("*")) == before and here.page.get("/api/jobs") == {"jobs": []}


def test_tables_are_stored_whole_for_their_owner_alone_and_never_overwritten(here: Open) -> None:
    put = here.page.ask("PUT", "/api/tables/new/nodes.csv", data=b"id\n1\n")
    file = here.studio.root.folder / "new" / "nodes.csv"
    assert (put.status, put.json) == (201, {"path": "new/nodes.csv", "bytes": 5})
    assert file.read_bytes() == b"id\n1\n" and file.stat().st_mode & 0o777 == 0o600
    assert here.page.ask("PUT", "/api/tables/new/nodes.csv", data=b"other").status == 409
    for name in ("nodes.exe", "graph.toml", "..csv", ".csv"):
        assert here.page.ask("PUT", f"/api/tables/new/{name}", data=b"x").status == 400, name
    assert file.read_bytes() == b"id\n1\n" and [path.name for path in file.parent.iterdir()] == ["nodes.csv"]
    assert here.page.get("/api/folders")["data"][0]["state"] == "tables"


def test_a_folder_that_is_exchanged_for_a_link_takes_nothing(here: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look at a path and its use, somebody else who may write there puts a link in its place."""
    root, outside = here.studio.root, here.studio.root.folder.parent / "outside"
    outside.mkdir()
    (outside / "card.md").write_text("SECRET")
    for name in ("town", "runs"):
        (root.folder / name).mkdir()
    (root.folder / "runs" / "result.json").write_text("{}")
    (root.folder / "runs" / "card.md").write_text("a card")
    inside = Root.descriptor_of

    def exchanged(root: Root, folder: Path) -> AbstractContextManager[int]:
        if not folder.is_symlink():
            folder.rename(folder.with_name(f"{folder.name}-before"))
            folder.symlink_to(outside)
        return inside(root, folder)

    assert here.page.ask("GET", "/api/runs/runs/files/card.md").body == b"a card"
    monkeypatch.setattr(Root, "descriptor_of", exchanged)
    put = here.page.ask("PUT", "/api/tables/town/nodes.csv", data=b"id")
    (root.folder / "town").unlink()
    (root.folder / "town").mkdir()
    declared = here.page.ask("POST", "/api/declarations", {"folder": "town", "answers": {}})
    card = here.page.ask("GET", "/api/runs/runs/files/card.md")
    assert [reply.status for reply in (put, declared, card)] == [507] * 3 and b"SECRET" not in card.body
    assert [path.name for path in outside.iterdir()] == ["card.md"]
    assert sorted(path.name for path in root.scratch.iterdir()) == []


def test_choices_are_saved_once_for_all_windows(here: Open) -> None:
    assert here.page.ask("PUT", "/api/saved", {"version": 0, "saved": {"step": "data"}}).json["version"] == 1
    stale = here.page.ask("PUT", "/api/saved", {"version": 0, "saved": {"step": "trust"}})
    assert (stale.status, stale.json["code"]) == (409, "stale")
    assert here.page.get("/api/saved") == {"version": 1, "saved": {"step": "data"}}
    assert here.page.ask("PUT", "/api/saved", {"version": 1, "saved": {"text": "x" * (65 << 10)}}).status == 413


def test_requests_hold_nothing_unknown(here: Open) -> None:
    for more in ({"words": ["--debug"]}, {"method": "--help"}, {"want": "--json"}, {"query": "train"}, {"seed": -1}):
        plan = {"query": "plan", "data": "name:digits", "method": "lpgnn", **more}
        reply = here.page.ask("POST", "/api/queries", plan)
        assert (reply.status, reply.json["code"]) == (400, "bad-request"), more
    assert not list(here.studio.root.scratch.iterdir())


@pytest.mark.parametrize("value", ["{", "[" * 100_000, "\xff", "9" * 5_000, "NaN", "1e999", '"\\ud800"'])
def test_a_body_that_no_file_could_hold_is_refused(value: str, here: Open) -> None:
    body = b'{"version": 0, "folder": ".", "saved": {"x": %b}, "answers": {"x": %b}}' % ((value.encode("latin-1"),) * 2)
    for method, path in (("PUT", "/api/saved"), ("POST", "/api/declarations"), ("POST", "/api/jobs")):
        reply = here.page.ask(method, path, data=body)
        assert (reply.status, reply.json["code"]) == (400, "bad-request")


@pytest.mark.parametrize(
    "text", ['{"options": []}', '{"options": null, "guarantee": 5}', '{"method": "\\ud800"}', "9" * 9_999]
)
@pytest.mark.parametrize("file", ["result.json", "release.json", "collection.json"])
def test_a_folder_that_somebody_edited_hides_no_other(file: str, text: str, here: Open) -> None:
    for name, content in (("edited", text), ("sound", '{"method": "gap"}')):
        (here.studio.root.folder / name).mkdir()
        (here.studio.root.folder / name / file).write_text(content)
    assert here.page.get("/api/folders")["runs"][1]["method"] == "gap"
    assert here.page.get("/api/runs/edited")["parties"] is None
    assert here.page.ask("GET", "/api/runs/edited/graph").status in (200, 404)


def test_a_link_in_a_folder_leads_nowhere(here: Open) -> None:
    """Neither out of the root, nor to what commands have printed."""
    folder, outside = here.studio.root.folder, here.studio.root.folder.parent / "outside"
    for name in ("result.json", "graph.toml", "picture.json"):
        (folder / name).mkdir(parents=True)
        (folder / name / name).symlink_to(outside)
    (folder / "run").mkdir()
    (folder / "run" / "result.json").write_text("{}")
    (folder / "run" / "picture.json").symlink_to(outside)
    (folder / "run" / "card.md").symlink_to(here.studio.root.state / "studio.sqlite")
    # A run itself links to what its public part holds.
    (folder / "run" / "ledger.json").symlink_to("result.json")
    (folder / "graph.toml" / "nodes.csv").write_text("id\n")
    outside.write_text('private = []\nclasses = ["a", "b"]\nrange = [0, 1]\nname = "OUTSIDE"\n')
    assert here.page.ask("GET", "/api/runs/result.json").status == 404
    assert here.page.ask("GET", "/api/runs/run/files/card.md").status == 404
    assert here.page.ask("GET", "/api/runs/run/files/ledger.json").body == b"{}"
    assert here.page.get("/api/runs/run")["files"] == ["ledger.json", "result.json"]
    assert here.page.get("/api/runs/run/graph")["nodes"] == []
    assert [source["state"] for source in here.page.get("/api/folders")["data"]] == ["tables"]
    assert not any(b"OUTSIDE" in reply.body for reply in here.page.seen)
