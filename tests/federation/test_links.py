"""Streams: only agreed certificates and agreements get one, and what is no protocol of ours ends the run."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from graphveil.errors import InputError
from graphveil.federation.keys import Identity, new_identity
from graphveil.federation.mailbox import PeerError
from graphveil.federation.wire import CHUNK, CONTROL, DATA, HELLO, Frame, word_bytes
from tests.federation.parties import NAMES, Place, Running

#: One after another: they wait for each other in real time.
pytestmark = pytest.mark.xdist_group("network")


def started(place: Place, **settings: dict[str, Any]) -> dict[str, Running]:
    found = {name: Running(place, name, **settings.get(name, {})) for name in NAMES}
    return {name: running.wait(20) for name, running in found.items()}


def nothing_left(place: Place) -> bool:
    """Whether no holder has sent anything: no transcript names a message of a holder."""
    return not place.sent and not any(e.sender != "server" for session, _ in place.lines for e in session._entries)


def test_an_unknown_certificate_gets_no_stream(tmp_path: Path) -> None:
    place = Place(tmp_path, patience=1.5)
    found = started(place, holder2={"identity": new_identity("holder2")})
    assert isinstance(found["holder2"].error, PeerError)
    assert "a certificate that it does not know; compare the certificates" in str(found["holder2"].error)
    assert "holder2" in str(found["server"].error)
    assert nothing_left(place)


def test_a_swapped_certificate_gets_no_stream(tmp_path: Path) -> None:
    """Holder 2 with holder 1's identity is not holder 2, at anybody."""
    place = Place(tmp_path, patience=1.5)
    found = started(place, holder2={"identity": place.identities["holder1"]})
    assert all(isinstance(running.error, PeerError) for running in found.values())
    assert nothing_left(place)


def test_a_server_with_another_certificate_is_not_spoken_to(tmp_path: Path) -> None:
    place = Place(tmp_path, patience=2)
    found = started(place, server={"identity": new_identity("server")})
    said = [str(found[name].error) for name in NAMES[1:]]
    assert any("server: shows another certificate than agreed; compare" in text for text in said)
    assert nothing_left(place)


def test_an_agreement_that_differs_is_refused_and_said(tmp_path: Path) -> None:
    place = Place(tmp_path, patience=1.5)
    found = started(place, holder2={"agreement": b"z" * 32})
    assert "refused this party: the agreement of holder2 is another than that of" in str(found["holder2"].error)
    assert any("the agreement of holder2 is another" in note for note in place.notes)
    assert "holder2: no word" in str(found["server"].error)
    assert nothing_left(place)


def test_plain_connections_and_other_tls_clients_are_refused(tmp_path: Path) -> None:
    place = Place(tmp_path, patience=1.5)
    running = [Running(place, name) for name in ("server", "holder1")]
    time.sleep(0.3)
    with socket.create_connection(("127.0.0.1", place.ports["server"])) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n" * 10)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    raw = socket.create_connection(("127.0.0.1", place.ports["server"]))
    with pytest.raises(OSError, match=r".*"), raw, context.wrap_socket(raw) as wrapped:  # no certificate
        wrapped.sendall(b"x" * 100)
        if not wrapped.recv(1000):
            raise OSError("closed")
    for one in running:
        assert isinstance(one.wait().error, PeerError)
    assert nothing_left(place)


class Rogue:
    """Holder 2's key in the hands of a program that says what it likes."""

    def __init__(self, place: Place, *frames: bytes, greet: bool = True) -> None:
        import grpc

        identity, server = place.identities["holder2"], place.identities["server"]
        credentials = grpc.ssl_channel_credentials(server.certificate, identity.private_key, identity.certificate)
        options = [("grpc.ssl_target_name_override", "server")]
        options += [(f"grpc.{which}_reconnect_backoff_ms", 100) for which in ("initial", "min", "max")]
        hello = Frame(HELLO, place.agreement, bytes(16), 2, 0, body=word_bytes({"process": "rogue"})).to_bytes()
        said = [hello, *frames] if greet else list(frames)
        self.code = "OK"
        with grpc.secure_channel(f"127.0.0.1:{place.ports['server']}", credentials, options=options) as channel:
            call = channel.stream_stream("/graphveil.Federation/Exchange")(iter(said), wait_for_ready=True, timeout=5)
            try:
                for _ in call:
                    pass
            except grpc.RpcError as error:
                self.code = error.code().name


def frame(place: Place, type_: int, **fields: Any) -> bytes:
    return Frame(type_, place.agreement, bytes(16), 2, 0, **fields).to_bytes()


NO_PROTOCOL: tuple[Callable[[Place], bytes], ...] = (
    lambda p: b"no frame at all",
    lambda p: b"",
    lambda p: frame(p, CONTROL, body=b"{"),
    lambda p: frame(p, CONTROL, body=b"[1, 2]"),
    lambda p: frame(p, CONTROL, body=b"[" * 4000),
    lambda p: frame(p, HELLO, body=word_bytes({"process": "again"})),
    lambda p: frame(p, DATA, number=2, kind=6, dtype=2, shape=(1,), body=bytes(4)),
    lambda p: frame(p, DATA, number=1, kind=6, dtype=2, shape=(2**30, 2**10), body=bytes(4)),
    lambda p: Frame(DATA, b"y" * 32, bytes(16), 2, 0, number=1, kind=6, dtype=2, body=bytes(4)).to_bytes(),
    lambda p: bytes(CHUNK + 300),
)


def test_what_is_no_protocol_of_ours_ends_the_run_with_a_reason(tmp_path: Path) -> None:
    places = [Place(tmp_path / str(number), patience=15) for number in range(len(NO_PROTOCOL))]
    servers = [Running(place, "server") for place in places]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda place, make: Rogue(place, make(place)), places, NO_PROTOCOL))
    for place, server in zip(places, servers, strict=True):
        assert isinstance(server.wait().error, PeerError)
        assert str(server.error).startswith("holder2: broke the protocol: ")
        assert "\n" not in str(server.error)
        assert nothing_left(place)


def test_a_frame_beyond_the_limit_ends_its_stream_unread(tmp_path: Path) -> None:
    place = Place(tmp_path, patience=1.5)
    server = Running(place, "server")
    assert Rogue(place, bytes(3 * CHUNK)).code != "OK"
    assert isinstance(server.wait().error, PeerError)
    assert nothing_left(place)


def test_a_stream_without_a_greeting_is_refused(tmp_path: Path) -> None:
    place = Place(tmp_path, patience=1.6)
    server = Running(place, "server")
    elsewhere = Frame(HELLO, place.agreement, bytes(16), 1, 0, body=word_bytes({"process": "x"})).to_bytes()
    for first in (b"", b"hello", frame(place, DATA, number=1, kind=6, dtype=2, body=bytes(4)), elsewhere):
        assert Rogue(place, first, greet=False).code == "INVALID_ARGUMENT"
    assert "no word for 2 s" in str(server.wait().error)  # a stranger's noise does not end the run, silence does
    assert nothing_left(place)


def test_an_address_that_cannot_be_listened_on_is_named(tmp_path: Path) -> None:
    place = Place(tmp_path, patience=1)
    with socket.create_server(("127.0.0.1", place.ports["server"])):
        error = Running(place, "server").wait().error
    assert isinstance(error, InputError)
    assert str(error).startswith(f"server: cannot listen on 127.0.0.1:{place.ports['server']}; ")


def test_nobody_listening_is_said(tmp_path: Path) -> None:
    place = Place(tmp_path, patience=1)
    error = Running(place, "holder2").wait().error
    assert f"nobody listens at 127.0.0.1:{place.ports['server']} yet" in str(error)


def test_closing_ends_threads_and_frees_the_port(tmp_path: Path) -> None:
    before = threading.active_count()
    place = Place(tmp_path, patience=1)
    for name in NAMES[:2]:
        Running(place, name)
    time.sleep(2)
    assert threading.active_count() <= before + 2  # gRPC keeps one of its own
    with socket.create_server(("127.0.0.1", place.ports["server"])):
        pass


def test_identities_never_show_their_keys(tmp_path: Path) -> None:
    place = Place(tmp_path)
    identity: Identity = place.identities["server"]
    assert b"PRIVATE" in identity.private_key and "PRIVATE" not in repr(identity)
