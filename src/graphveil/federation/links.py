"""Streams between every two parties: gRPC over TLS with both certificates pinned.

Of two parties the one that stands first in the agreement listens; the other connects, and connects again after a cut.
Every stream begins with a greeting of both ends: agreement, place, the process that speaks, what it has received.  An
unknown certificate never gets a stream; a different agreement is told so and refused.
"""

from __future__ import annotations

import json
import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from graphveil.errors import InputError
from graphveil.federation.keys import Identity, fingerprint_of
from graphveil.federation.mailbox import Ends, Mailbox, PeerError
from graphveil.federation.wire import CHUNK, HELLO, Frame, WireError, parse

_METHOD: Final = "/graphveil.Federation/Exchange"
_OPTIONS: Final = [
    ("grpc.max_receive_message_length", CHUNK + 4096),
    ("grpc.max_send_message_length", CHUNK + 4096),
    ("grpc.keepalive_time_ms", 25_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.so_reuseport", 0),
]
_RETRY: Final = 0.3


@dataclass(frozen=True)
class Peer:
    """Another party: its place in the agreement, name, address "host:port" and certificate in PEM."""

    place: int
    name: str
    address: str
    certificate: bytes


class Links:
    """All of one party's streams.

    Args:
        identity: its own. place, address: its own, of the agreement. peers: the others. agreement: the hash.
        largest: bytes of the largest message. patience: seconds of silence that are waited through.
        on_control: called with a peer's name and a word of the sessions' protocol.
        on_restart: called with the name of a peer whose process is a new one.
        note: called with a line about connections, for the log and the screen.
    """

    def __init__(
        self,
        identity: Identity,
        place: int,
        address: str,
        peers: tuple[Peer, ...],
        agreement: bytes,
        *,
        largest: int,
        patience: float,
        on_control: Callable[[str, dict[str, Any]], None],
        on_restart: Callable[[str], None],
        note: Callable[[str], None],
    ) -> None:
        self._identity, self._place, self._address = identity, place, address
        self._peers, self._agreement = peers, agreement
        self._on_control, self._on_restart, self._note = on_control, on_restart, note
        self._process = secrets.token_hex(16)
        self._known: dict[str, str] = {}
        self._closing = threading.Event()
        self.mail: Mapping[str, Mailbox] = {
            peer.name: Mailbox(Ends(agreement, place, peer.place, peer.name), largest=largest, patience=patience)
            for peer in peers
        }

    def open(self) -> None:
        """Listen for the parties that stand after this one, and connect to those before it.

        Raises:
            InputError: the address cannot be listened on.
        """
        import grpc  # type: ignore[import-untyped]

        after = [peer for peer in self._peers if peer.place > self._place]
        self._server = None
        if after:
            self._server = self._listen(grpc, after)
        for peer in self._peers:
            if peer.place < self._place:
                threading.Thread(target=self._connect, args=(grpc, peer), daemon=True).start()

    def close(self) -> None:
        """Close all streams; what is not acknowledged is lost."""
        self._closing.set()
        if self._server is not None:
            self._server.stop(grace=0.5).wait()

    # ---- listening ----

    def _listen(self, grpc: Any, peers: list[Peer]) -> Any:
        from concurrent.futures import ThreadPoolExecutor

        by_print = {fingerprint_of(peer.certificate): peer for peer in peers}

        def exchange(incoming: Iterator[bytes], context: Any) -> Iterator[bytes]:
            shown = context.auth_context().get("x509_pem_cert", [b""])[0]
            peer = by_print.get(fingerprint_of(shown)) if shown else None
            if peer is None:
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "this certificate is not in the agreement")
                return
            try:
                yield from self._exchange(peer, incoming)
            except WireError as error:
                self._note(f"{peer.name}: {error}")
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

        handler = grpc.method_handlers_generic_handler(
            "graphveil.Federation", {"Exchange": grpc.stream_stream_rpc_method_handler(exchange)}
        )
        server = grpc.server(ThreadPoolExecutor(max_workers=2 * len(peers) + 2), options=_OPTIONS)
        server.add_generic_rpc_handlers((handler,))
        credentials = grpc.ssl_server_credentials(
            [(self._identity.private_key, self._identity.certificate)],
            root_certificates=b"".join(peer.certificate for peer in peers),
            require_client_auth=True,
        )
        try:
            server.add_secure_port(self._address, credentials)
        except RuntimeError as error:
            raise InputError(
                f"cannot listen on {self._address}", where=self._identity.name, remedy="is another program there?"
            ) from error
        server.start()
        return server

    # ---- connecting ----

    def _connect(self, grpc: Any, peer: Peer) -> None:
        credentials = grpc.ssl_channel_credentials(
            root_certificates=peer.certificate,
            private_key=self._identity.private_key,
            certificate_chain=self._identity.certificate,
        )
        options = [*_OPTIONS, ("grpc.ssl_target_name_override", peer.name)]
        while not self._closing.is_set():
            with grpc.secure_channel(peer.address, credentials, options=options) as channel:
                talk = channel.stream_stream(_METHOD)
                outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
                outbox.put(self._greeting(peer))
                call = talk(iter(outbox.get, None), wait_for_ready=True)
                try:
                    for data in self._exchange(peer, call, greeted=True):
                        outbox.put(data)
                except grpc.RpcError as error:
                    self._told(peer, error)
                except WireError as error:
                    self._note(f"{peer.name}: {error}")
                finally:
                    outbox.put(None)
                    call.cancel()
            time.sleep(_RETRY)

    def _told(self, peer: Peer, error: Any) -> None:
        code = error.code().name
        if code in ("UNAUTHENTICATED", "INVALID_ARGUMENT") and not self._closing.is_set():
            self.mail[peer.name].end(PeerError(f"refused this party: {error.details()}", where=peer.name))

    # ---- one stream, either end ----

    def _greeting(self, peer: Peer) -> bytes:
        body = json.dumps({"process": self._process}).encode()
        return Frame(HELLO, self._agreement, bytes(16), self._place, peer.place, body=body).to_bytes()

    def _exchange(self, peer: Peer, incoming: Iterator[bytes], *, greeted: bool = False) -> Iterator[bytes]:
        """Yield what goes out on a stream while a thread takes what comes in."""
        self._greeted(peer, next(iter(incoming), b""))
        if not greeted:
            yield self._greeting(peer)
        mail, broken = self.mail[peer.name], threading.Event()
        outgoing = mail.outgoing()

        def listen() -> None:
            try:
                for data in incoming:
                    word = mail.arrived(data)
                    if word is not None:
                        self._on_control(peer.name, json.loads(word))
            except WireError as error:
                self._note(f"{peer.name}: {error}")
                mail.end(PeerError(f"broke the protocol: {error}", where=peer.name))
            except Exception:
                pass  # the stream was cut; the connecting end opens another
            finally:
                broken.set()
                mail.interrupt()

        self._note(f"connected with {peer.name}")
        threading.Thread(target=listen, daemon=True).start()
        for data in outgoing:
            yield data
            if broken.is_set() or self._closing.is_set():
                break
        if not self._closing.is_set():
            self._note(f"lost the stream with {peer.name}; it is opened again")

    def _greeted(self, peer: Peer, data: bytes) -> None:
        """Check how the other end introduces itself."""
        frame = parse(data)
        if frame.type != HELLO or (frame.sender, frame.receiver) != (peer.place, self._place):
            raise WireError("no greeting", where=peer.name)
        if frame.agreement != self._agreement:
            raise WireError("its agreement differs from ours", where=peer.name, remedy="compare the agreement files")
        try:
            process = str(json.loads(frame.body)["process"])
        except (ValueError, KeyError, TypeError) as error:
            raise WireError("no greeting", where=peer.name) from error
        known = self._known.get(peer.name)
        self._known[peer.name] = process
        self.mail[peer.name].heard()
        if known is not None and known != process:
            self._on_restart(peer.name)
