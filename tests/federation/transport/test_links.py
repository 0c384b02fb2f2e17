"""Streams: only agreed certificates and agreements get one, and what is no protocol of ours ends the run."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from graphveil.errors import InputError
from graphveil.federation.core.checkpoints import Checkpoints
from graphveil.federation.crypto.keys import fingerprint_of, new_identity
from graphveil.federation.effects import PeerError
from graphveil.federation.transport import links as links_module
from graphveil.federation.transport.session import Session
from graphveil.federation.transport.wire import CHUNK, CONTROL, DATA, HELLO, Frame, WireError, control_bytes
from tests.federation.parties import NAMES, Place, Running
from tests.waiting import FOREVER, until


def nothing_left(place: Place) -> bool:
    """Whether no holder has sent anything: no transcript names a message of a holder."""
    return not place.sent and not any(e.sender != "server" for session, _ in place.lines for e in session._entries)


def start(place: Place, **settings: dict[str, Any]) -> dict[str, Running]:
    return {name: Running(place, name, **settings.get(name, {})) for name in NAMES}


def give_up(place: Place, running: Iterable[Running]) -> list[str]:
    """Have all give up; return what they say."""
    place.lose_patience()
    return [str(party.wait().error) for party in running]


def test_an_unknown_certificate_is_refused_at_once_in_words_at_both_ends(tmp_path: Path) -> None:
    """The refused party stops by itself; the server, whom an outsider must not stop, notes it and goes on waiting."""
    place = Place(tmp_path)
    server = Running(place, "server")  # alone at first: whoever refuses holder 2 first is the only one it meets
    refused = Running(place, "holder2", identity=new_identity("holder2")).wait().error
    assert isinstance(refused, PeerError)
    words = "server: refuses this party's certificate, which is not in its agreement; compare the certificates"
    assert str(refused).startswith(words)
    noted = "holder2: a connection from 127.0.0.1 is refused: its certificate is not in the agreement; compare"
    until(lambda: place.noted(noted))
    holder1 = Running(place, "holder1")
    until(lambda: place.noted("connected with holder1"))
    assert not server.over and not holder1.over
    place.lose_patience(("server",))
    assert noted.removeprefix("holder2: ") in str(server.wait().error)
    assert str(holder1.wait().error).startswith("server: ")
    assert nothing_left(place)


def test_of_streams_that_never_greet_a_party_has_one(tmp_path: Path) -> None:
    """Each takes a thread of the server until a newer one ends it: under a valid certificate, one after another."""
    place = Place(tmp_path)
    store = Checkpoints(tmp_path, "")
    links = place.links("server", Session("server", "server", NAMES[1:], Mock(), store, patience=1, progress=print))
    peer, guard = links._peers[0], Mock(**{"knows.return_value": True})
    fields = {"auth_context.return_value": {"x509_pem_cert": [peer.certificate]}, "abort.side_effect": ConnectionError}
    streams = [Mock(**fields) for _ in range(3)]

    def silent(place: int) -> Iterator[bytes]:
        if place < len(streams):
            incoming = silent(place + 1)
            with contextlib.suppress(ConnectionError):
                next(links._exchange(Mock(), guard, {fingerprint_of(peer.certificate): peer}, incoming, streams[place]))
        yield b""

    assert next(silent(0)) == b""
    assert [stream.cancel.called for stream in streams] == [True, True, False]


def test_another_certificate_than_the_partys_own_gets_no_stream(tmp_path: Path) -> None:
    """Holder 2 with holder 1's identity is not holder 2, at anybody; nobody speaks to a server with a new one."""
    place = Place(tmp_path / "1")
    parties = start(place, holder2={"identity": place.identities["holder1"]})
    assert isinstance(parties["holder2"].wait().error, PeerError)
    give_up(place, parties.values())
    assert all(isinstance(running.error, PeerError) for running in parties.values())
    assert nothing_left(place)
    place = Place(tmp_path / "2")
    parties = start(place, server={"identity": new_identity("server")})
    errors = [str(parties[name].wait().error) for name in NAMES[1:]]
    assert any("server: presents a certificate other than agreed; compare" in text for text in errors)
    give_up(place, parties.values())
    assert nothing_left(place)


def test_an_agreement_that_differs_is_refused_and_said(tmp_path: Path) -> None:
    place = Place(tmp_path)
    parties = start(place, holder2={"agreement": b"z" * 32})
    assert "refused this party: holder2 and" in str(parties["holder2"].wait().error)
    assert place.noted("have different agreements")
    give_up(place, parties.values())
    assert nothing_left(place)


def test_plain_connections_and_other_tls_clients_are_refused(tmp_path: Path) -> None:
    place = Place(tmp_path)
    running = [Running(place, name) for name in ("server", "holder1")]
    until(lambda: place.noted("connected with holder1"))
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    for wrap in (lambda raw: raw, context.wrap_socket):  # plain, and without a certificate
        raw = socket.create_connection(("127.0.0.1", place.ports["server"]))
        with pytest.raises(OSError, match=r".*"), raw, wrap(raw) as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n" * 10)
            if not client.recv(1000):
                raise OSError("closed")
    assert not any(party.over for party in running)
    give_up(place, running)
    assert nothing_left(place)


def test_a_call_that_neither_answers_nor_ends_is_left_behind() -> None:
    """As gRPC's can be, cancelled or not."""
    never = threading.Event()
    with pytest.raises(WireError, match=r"said nothing for 0\.1 s"):
        links_module.first_message((b"" for _ in [0] if never.wait()), 0.1)
    assert links_module.first_message(iter([b"hello", b"more"]), FOREVER) == b"hello"
    assert links_module.first_message(iter([]), FOREVER) == b""
    with pytest.raises(ZeroDivisionError):
        links_module.first_message((bytes(1 // divisor) for divisor in [0]), FOREVER)


class Rogue:
    """Holder 2's key in the hands of a program that says what it likes."""

    def __init__(self, place: Place, *frames: bytes, greet: bool = True) -> None:
        import grpc

        identity, server = place.identities["holder2"], place.identities["server"]
        credentials = grpc.ssl_channel_credentials(server.certificate, identity.private_key, identity.certificate)
        options = [("grpc.ssl_target_name_override", "server")]
        options += [(f"grpc.{which}_reconnect_backoff_ms", 100) for which in ("initial", "min", "max")]
        hello = Frame(HELLO, place.agreement, bytes(16), 2, 0, body=control_bytes({"process": "rogue"})).to_bytes()
        messages = [hello, *frames] if greet else list(frames)
        self.code = "OK"
        with grpc.secure_channel(f"127.0.0.1:{place.ports['server']}", credentials, options=options) as channel:
            call = channel.stream_stream("/graphveil.Federation/Exchange")(
                iter(messages), wait_for_ready=True, timeout=FOREVER
            )
            try:
                for _ in call:
                    pass
            except grpc.RpcError as error:
                self.code = error.code().name


def frame(place: Place, type_: int, **fields: Any) -> bytes:
    return Frame(type_, place.agreement, bytes(16), 2, 0, **fields).to_bytes()


NO_PROTOCOL: tuple[Callable[[Place], bytes], ...] = (
    lambda p: b"no frame at all",
    lambda p: frame(p, CONTROL, body=b"{"),
    lambda p: frame(p, HELLO, body=control_bytes({"process": "again"})),
    lambda p: frame(p, DATA, number=2, kind=6, dtype=2, shape=(1,), body=bytes(4)),
    lambda p: frame(p, DATA, number=1, kind=6, dtype=2, shape=(2**30, 2**10), body=bytes(4)),
    lambda p: Frame(DATA, b"y" * 32, bytes(16), 2, 0, number=1, kind=6, dtype=2, body=bytes(4)).to_bytes(),
    lambda p: bytes(CHUNK + 300),
)


def test_what_is_no_protocol_of_ours_ends_the_run_with_a_reason(tmp_path: Path) -> None:
    places = [Place(tmp_path / str(number)) for number in range(len(NO_PROTOCOL))]
    servers = [Running(place, "server") for place in places]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda place, make: Rogue(place, make(place)), places, NO_PROTOCOL))
    for place, server in zip(places, servers, strict=True):
        assert isinstance(server.wait().error, PeerError)
        assert str(server.error).startswith("holder2: broke the protocol: ")
        assert "\n" not in str(server.error)
        assert nothing_left(place)


def test_a_stream_without_a_greeting_or_with_a_frame_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    place = Place(tmp_path)
    server = Running(place, "server")
    elsewhere = Frame(HELLO, place.agreement, bytes(16), 1, 0, body=control_bytes({"process": "x"})).to_bytes()
    for first in (b"", b"hello", frame(place, DATA, number=1, kind=6, dtype=2, body=bytes(4)), elsewhere):
        assert Rogue(place, first, greet=False).code == "INVALID_ARGUMENT"
    assert Rogue(place, bytes(3 * CHUNK)).code != "OK"
    assert not server.over  # a stranger's noise does not end the run, silence does
    assert "no answer for 0 s" in give_up(place, [server])[0]
    assert nothing_left(place)


def test_an_address_that_cannot_be_listened_on_is_named(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with socket.create_server(("127.0.0.1", place.ports["server"])):
        error = Running(place, "server").wait().error
    assert isinstance(error, InputError)
    assert str(error).startswith(f"server: cannot listen on 127.0.0.1:{place.ports['server']}; ")
