"""Under which name the limits know who asks, and what strangers are told of who may take part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graphveil.collection.service.addresses import name_of
from graphveil.collection.service.limits import Rate
from graphveil.collection.service.service import Collector
from tests.collection.collections import PEOPLE, begun, url_of
from tests.collection.listening import served
from tests.collection.test_service import fetch
from tests.on_device.signing import degree, features, label, links

WRONG = ("", "junk", "a" * 60_000, "203.0.113.7:80", "1.2.3", "203.0.113.7, 203.0.113.8")
MINE, YOURS = "2001:db8:1:2", "2001:db8:1:3"


def test_a_household_has_one_name() -> None:
    assert name_of("203.0.113.7") == name_of("::ffff:203.0.113.7") == "203.0.113.7"
    assert name_of(f"{MINE}::1") == name_of(f"{MINE}:ffff:ffff:ffff:ffff") == f"{MINE}::/64" != name_of(f"{YOURS}::1")
    assert {name_of(address) for address in WRONG} == {""}


def test_made_up_addresses_share_one_limit(tmp_path: Path) -> None:
    """By the header that a proxy on this machine passes on."""
    running = begun(url_of(tmp_path))
    with served(Collector(running.store, visits=Rate(0.001, 2.0))) as url:

        def status_for(address: str) -> int:
            return fetch(f"{url}/version", **{"X-Forwarded-For": address})[0]

        assert [status_for(f"junk{number}") for number in range(4)] == [200, 200, 429, 429]
        assert [status_for(f"{MINE}::{number:x}") for number in range(1, 5)] == [200, 200, 429, 429]
        assert status_for(f"{YOURS}::1") == status_for("203.0.113.7") == 200


@pytest.mark.parametrize(
    ("fields", "code"),
    [((label(),), 404), ((features(), label()), 404), ((links(PEOPLE),), 200), ((degree(PEOPLE), label()), 200)],
)
def test_ids_are_told_only_where_links_are_asked_for(tmp_path: Path, fields: tuple[dict[str, Any]], code: int) -> None:
    running = begun(url_of(tmp_path), *fields)
    with served(Collector(running.store)) as url:
        status, body, _ = fetch(f"{url}/ids")
        assert status == code and (b"person 0" in body) == (code == 200)
