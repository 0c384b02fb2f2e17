"""Another token for somebody who lost theirs, with the link that opens their page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphveil.collection.desk import Desk
from tests.cli.conftest import Terminal
from tests.cli.test_collect import WORDS
from tests.collection.test_desk import enrolled


@pytest.fixture
def signed(type_in: Terminal, tmp_path: Path) -> Path:
    assert type_in("collect", "init", "social-100", "-o", "clubs", "--epsilon-y", "1.5", *WORDS).code == 0
    assert type_in("collect", "sign", "clubs").code == 0
    return tmp_path / "clubs"


def lost(type_in: Terminal, *words: str) -> dict[str, str]:
    found = type_in("collect", "enrol", "clubs", "--again", "7", *words, "--json")
    assert found.code == 0
    told: dict[str, str] = json.loads(found.out)
    return told


def link(url: str, told: dict[str, str], task: bytes) -> str:
    return f"{url}/#{told['token']}.{task.hex()}"


def test_the_link_is_printed_where_the_address_is_known(signed: Path, type_in: Terminal) -> None:
    with Desk(signed).store() as store:
        task = store.task().hash
    assert type_in("collect", "enrol", "clubs").code == 0
    assert lost(type_in).keys() == {"id", "token"}
    told = lost(type_in, "--url", "https://c.example/below/")
    assert told["link"] == link("https://c.example/below", told, task)
    assert f"/#{told['token'][:8]}" not in type_in("collect", "enrol", "clubs", "--again", "7").out


def test_the_address_of_the_first_links_is_kept(signed: Path, type_in: Terminal) -> None:
    with Desk(signed).store() as store:
        task = store.task().hash
    assert type_in("collect", "enrol", "clubs", "--url", "https://c.example/").code == 0
    told = lost(type_in)
    assert told["link"] == link("https://c.example", told, task)
    assert lost(type_in, "--url", "http://localhost:8700")["link"].startswith("http://localhost:8700/#")
    assert "https://c.example/#" in type_in("collect", "enrol", "clubs", "--again", "7").out


@pytest.mark.parametrize("url", ["http://c.example", "nonsense"])
def test_a_mistyped_address_costs_nobody_their_token(signed: Path, type_in: Terminal, url: str) -> None:
    assert type_in("collect", "enrol", "clubs").code == 0
    refused = type_in("collect", "enrol", "clubs", "--again", "0", "--url", url)
    assert refused.code == 2 and "no address for people" in refused.err
    # The token of the file still enrols them.
    assert enrolled(Desk(signed), 0) == 1
