"""Downloads from a server on this machine: whole, bounded, told of, and never trusted for their size."""

from __future__ import annotations

import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from graphveil.errors import MissingDataError
from graphveil.graphs.root import download, ensure_files, unzip
from graphveil.progress import Progress

CONTENT = b"people," * 100_000


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/absent":
            self.send_error(404)
            return
        self.send_response(200)
        claimed = len(CONTENT) + (10 if self.path == "/short" else 0)
        self.send_header("Content-Length", str(claimed))
        self.end_headers()
        self.wfile.write(CONTENT)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    web = HTTPServer(("127.0.0.1", 0), _Answers)
    thread = threading.Thread(target=web.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{web.server_port}"
    web.shutdown()
    web.server_close()
    thread.join()


def test_a_download_is_whole_and_told_of(server: str, tmp_path: Path):
    steps: list[Progress] = []
    assert download(f"{server}/x", tmp_path / "x", steps.append).read_bytes() == CONTENT
    assert steps[-1] == Progress(len(CONTENT), len(CONTENT), "downloading x")


def test_a_download_that_ends_early_or_is_absent_is_refused(server: str, tmp_path: Path):
    with pytest.raises(OSError, match=f"ended after {len(CONTENT)} of {len(CONTENT) + 10} bytes"):
        download(f"{server}/short", tmp_path / "x", lambda _: None)
    with pytest.raises(OSError, match="404"):
        download(f"{server}/absent", tmp_path / "x", lambda _: None)


def test_a_download_larger_than_any_set_is_stopped(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("graphveil.graphs.root.LARGEST_DOWNLOAD", 1000)
    with pytest.raises(OSError, match="more than 1,000 bytes"):
        download(f"{server}/x", tmp_path / "x", lambda _: None)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("nested/x", bytes(5000))
    with pytest.raises(zipfile.BadZipFile, match="unpacks to more"):
        unzip(tmp_path / "bomb.zip", ("x",), tmp_path)


@pytest.mark.parametrize("path", ["short", "absent"])
def test_a_failed_download_leaves_nothing(server: str, tmp_path: Path, path: str):
    folder = tmp_path / "set"

    def fetch(target: Path, tell) -> None:  # type: ignore[no-untyped-def]
        download(f"{server}/{path}", target / "x", tell)

    with pytest.raises(MissingDataError, match=r"data set 'made': x absent, and downloading failed"):
        ensure_files(folder, ("x",), name="made", fetch=fetch, progress=None)
    assert list(tmp_path.rglob("*")) in ([], [folder])
