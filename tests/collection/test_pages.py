"""The files of the pages, as a collector serves them: a fixed list, under a strict policy."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphveil.collection.service.pages import ASSETS, FOLDER, PAGES
from graphveil.collection.service.service import Collector
from tests.collection.collections import begun, url_of
from tests.collection.test_service import fetch, served

ADDRESSES = {**PAGES, **{f"/assets/{name}": name for name in ASSETS}}
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(Collector(begun(url_of(tmp_path_factory.mktemp("pages"))).store)) as address:
        yield address


@pytest.mark.parametrize("address", ADDRESSES)
def test_each_file_is_served_as_it_is_and_once(url: str, address: str) -> None:
    status, data, headers = fetch(url + address)
    assert (status, data) == (200, (FOLDER / ADDRESSES[address]).read_bytes())
    assert headers["content-security-policy"].startswith(POLICY) and "unsafe" not in headers["content-security-policy"]
    assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")
    status, again, cached_headers = fetch(url + address, **{"If-None-Match": headers["etag"]})
    assert (status, again, cached_headers["cache-control"]) == (304, b"", "no-cache")
    assert fetch(url + address, **{"If-None-Match": '"another"'})[:2] == (200, data)


@pytest.mark.parametrize(
    "name", ["person.html", "../pages.py", "..%2fpages.py", "%2fetc%2fpasswd", "", "device.js.map", "lines.mjs"]
)
def test_no_other_file_is_served(url: str, name: str) -> None:
    assert fetch(f"{url}/assets/{name}")[0] == 404
    with urllib.request.urlopen(f"{url}/openapi.json") as answer:
        assert b"/assets" not in answer.read()
    assert fetch(f"{url}/redoc")[0] == fetch(f"{url}/docs")[0] == 404


def test_every_file_of_the_folder_is_in_the_list() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted([*ASSETS, *PAGES.values()])


def test_no_page_holds_a_script_a_style_or_another_site() -> None:
    for path in map(Path, sorted(FOLDER.glob("*.html"))):
        text = path.read_text()
        assert not re.search(r"\son\w+=|\sstyle=|<style|<script(?![^>]*\ssrc=)|https?://", text), path
        named = re.findall(r'(?:src|href)="assets/([^"]+)"', text)
        assert named and set(named) <= set(ASSETS), path
