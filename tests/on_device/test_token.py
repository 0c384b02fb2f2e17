"""Tokens say who is who: a collector that deals numbers out by itself is refused."""

from __future__ import annotations

import pytest

from graphveil.device import DeviceError
from graphveil.device.remote import Remote
from graphveil.device.wire import number_of, numbered
from tests.on_device.pretended import pretended
from tests.on_device.signing import links, task_of

SECRET = bytes(range(16))


def test_a_token_ends_with_its_persons_number() -> None:
    for number in (0, 255, 256, 2**40 - 1):
        assert number_of(numbered(SECRET, number)) == number and numbered(SECRET, number)[:16] == SECRET
    for token in ("", "ab" * 20, "zz" * 21, "abc"):
        with pytest.raises(DeviceError, match="command: the token is"):
            Remote("http://localhost:1").enrol(token, "00" * 32)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"number":0,"joined":1}', "that you are person 0"),
        (b'{"number":true,"joined":1}', "answer is none of the standard"),
    ],
)
def test_a_collector_that_deals_numbers_out_is_refused(content: bytes, message: str) -> None:
    """Of two people the one with the lower number reports their link: with 0 for everybody, both would."""
    token = numbered(SECRET, 1).hex()
    with pretended(task_of(links(10))) as collector:
        collector.says["/enrolments"] = 200, content
        with pytest.raises(DeviceError, match=message):
            Remote(collector.url).enrol(token, "00" * 32)
        collector.says["/enrolments"] = 200, b'{"number":1,"joined":1}'
        assert Remote(collector.url).enrol(token, "00" * 32) == (1, 1)
