"""`graphveil studio` itself: what it refuses before it listens, and one real server from its link to Ctrl-C."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import urllib.request
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from graphveil.cli import main
from graphveil.cli.base.console import json_lines
from graphveil.graphs.load import present_sets
from graphveil.runtime.progress import Progress
from graphveil.studio.root import STATE


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["nowhere"], "nowhere is no folder"),
        (["--host", "0.0.0.0"], "other machines would reach 0.0.0.0 without TLS"),
        (["--certificate", "a.pem"], "TLS needs both files"),
        (["--memory", "1"], "--memory"),
    ],
)
def test_what_cannot_be_served_is_one_line(
    words: list[str], line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["studio", *words]) == 2
    error = capsys.readouterr().err
    assert line in error and error.count("\n") == 1 and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE jobs (id TEXT PRIMARY KEY, state TEXT)",
        "CREATE TABLE sessions (token TEXT)",
        "CREATE TABLE jobs (number INTEGER PRIMARY KEY, id TEXT UNIQUE, content TEXT);"
        """INSERT INTO jobs VALUES (1, 'a', '{"id": "a", "before": 1}')""",
        None,
    ],
    ids=["other-columns", "other-sessions", "other-jobs", "no-database"],
)
def test_a_database_of_another_version_is_refused(
    script: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / STATE / "studio.sqlite"
    file.parent.mkdir()
    if script is None:
        file.write_text("no database" * 100)
    else:
        with closing(sqlite3.connect(file)) as database:
            database.executescript(script)
    assert main(["studio", str(tmp_path), "--port", "0"]) == 2
    error = capsys.readouterr().err
    assert "of another version or damaged" in error and "move the file away" in error and error.count("\n") == 1


def test_a_link_is_one_line_on_a_narrow_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"http://127.0.0.1:8750/#token={'x' * 43}"
    serve = lambda folder, place, limits, where, started: started({"url": url, "folder": str(folder)})  # noqa: E731
    monkeypatch.setattr("graphveil.studio.serving.serve", serve)
    monkeypatch.setenv("COLUMNS", "40")
    assert main(["studio", str(tmp_path), "--no-browser"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == url


def test_the_link_is_no_word_of_a_browsers_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other users of the machine can read command lines: what is opened is a page that they cannot read."""
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: bool(opened.append(address)) or True)
    monkeypatch.setattr("graphveil.collection.service.serving.run", lambda server, own: None)
    assert main(["studio", str(tmp_path), "--port", "0"]) == 0
    file = Path(unquote(urlparse(opened[0]).path))
    assert urlparse(opened[0]).scheme == "file" and file.stat().st_mode & 0o777 == 0o600
    assert 'content="0;url=http://127.0.0.1:' in file.read_text() and "#token=" in file.read_text()
    assert "token" not in opened[0]


def test_a_missing_package_is_named_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("graphveil.runtime.extras.find_spec", lambda name: None)
    assert main(["studio"]) == 2
    assert "pip install 'graphveil[studio]'" in capsys.readouterr().err


def test_progress_for_a_program_is_a_line_for_each_stage_and_twice_a_second(tmp_path: Path) -> None:
    now = iter([0.0, 0.1, 0.6, 0.7, 0.8])
    show = json_lines(tmp_path / "progress.jsonl", clock=lambda: next(now))
    for done, stage in ((1, "a"), (2, "a"), (3, "a"), (4, "a"), (1, "b")):
        show(Progress(done, 4, stage, 0.5))
    lines = [json.loads(line) for line in (tmp_path / "progress.jsonl").read_text().splitlines()]
    assert [(line["stage"], line["done"]) for line in lines] == [("a", 1), ("a", 3), ("a", 4), ("b", 1)]
    json_lines(tmp_path / "nowhere" / "file", clock=lambda: 0.0)(Progress(1, 1))


def test_named_sets_are_present_where_their_files_are(tmp_path: Path) -> None:
    assert present_sets(tmp_path) == ("digits", "social")
    for file in ("facebook100/Reed98.mat", "pyg/CitationFull/cora_ml/raw/cora_ml.npz"):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).touch()
    assert present_sets(tmp_path) == ("cora-ml", "facebook100-reed98", "digits", "social")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_answers_its_link_and_ends_when_it_is_told(tmp_path: Path, number: signal.Signals) -> None:
    words = [sys.executable, "-m", "graphveil", "studio", str(tmp_path), "--port", "0", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None and server.stderr is not None
        url, token = json.loads(server.stdout.readline())["url"].split("/#token=")
        body = json.dumps({"token": token}).encode()
        enter = urllib.request.Request(f"{url}/api/session", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(enter) as reply:
            cookie = reply.headers["set-cookie"].partition(";")[0]
        assert cookie.startswith(f"graphveil_studio_{url.rpartition(':')[2]}=")
        with urllib.request.urlopen(urllib.request.Request(f"{url}/api/choices", headers={"Cookie": cookie})) as reply:
            assert "digits" in json.load(reply)["named"]
        second = subprocess.run(words, capture_output=True, text=True, check=False)
        assert second.returncode == 2 and "another studio serves" in second.stderr
        server.send_signal(number)
        assert server.wait(20) == 0 and server.stderr.read() == ""
