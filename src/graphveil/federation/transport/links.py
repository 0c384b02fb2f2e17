"""Streams between every two parties: gRPC over TLS with both certificates pinned.

Of two parties the one that comes first in the agreement listens; the other connects, and connects again after a cut.
Every stream begins with a greeting of both ends: agreement, position in it, process.  An unknown certificate never gets
a stream, and a party whose own certificate is refused stops at once; a different agreement is refused with the reason.
A party has at most one greeted stream and one that is about to greet; for strangers see `admission`.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from graphveil.errors import InputError
from graphveil.federation.crypto.keys import Identity, fingerprint_of
from graphveil.federation.effects import PeerError
from graphveil.federation.transport.admission import AdmissionProxy
from graphveil.federation.transport.mailbox import Endpoints, Mailbox, SessionMonitor
from graphveil.federation.transport.wire import CHUNK, HELLO, Frame, WireError, control_bytes, parse, parse_control

_METHOD: Final = "/graphveil.Federation/Exchange"
_OPTIONS: Final = [
    ("grpc.max_receive_message_length", CHUNK + 4096),
    ("grpc.max_send_message_length", CHUNK + 4096),
    ("grpc.keepalive_time_ms", 25_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 20_000),  # also how long a connection may take to come about
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.server_handshake_timeout_ms", 20_000),
    ("grpc.max_concurrent_streams", 2),
]
# Long enough not to flood a party that starts, short enough that a restart costs less than a round.
_RETRY_SECONDS: Final = 0.3
#: How long closing waits for a stream, and connecting for the other end's greeting.
_CLOSING_SECONDS, _GREETING_SECONDS = 2.0, 20.0
#: After how many refusals in a row a run ends: a server that is killed can hang up in the same way, but only once.
_HANG_UPS_THAT_END: Final = 3
_MAX_NOTED: Final = 64
#: gRPC's message for a connection that ends before its first use; "Handshake ..." follows where TLS failed.
_BEFORE_FIRST_USE: Final = "failed to connect to all addresses"
_COMPARE: Final = "compare the certificates in both agreement files"


@dataclass(frozen=True)
class Peer:
    """Another party: its position in the agreement (`place`), name, address "host:port" and certificate in PEM."""

    place: int
    name: str
    address: str
    certificate: bytes


class Links:
    """All of one party's streams.

    Args:
        place: this party's position in the agreement.
        address: to listen on.
        agreement_hash: SHA-256 of the file.
        largest: bytes of the largest message.
        patience: seconds of silence.
        on_control: called with a peer's name and a control message of the sessions' protocol.
        on_restart: called with the name of a peer that has restarted.
        note: called with a line about connections, for the log and the screen.
    """

    def __init__(
        self,
        identity: Identity,
        place: int,
        address: str,
        peers: tuple[Peer, ...],
        agreement_hash: bytes,
        *,
        largest: int,
        patience: float,
        on_control: Callable[[str, dict[str, Any]], None],
        on_restart: Callable[[str], None],
        note: Callable[[str], None],
    ) -> None:
        self._identity, self._place, self._address = identity, place, address
        self._peers, self._agreement_hash = peers, agreement_hash
        self._on_control, self._on_restart, self._note = on_control, on_restart, note
        # Drawn by each process: by it peers distinguish a new connection from a restart, which has lost its masks.
        self._process = secrets.token_hex(16)
        self._processes: dict[str, str] = {}
        self._closing = threading.Event()
        self._server: Any = None
        self._proxy: AdmissionProxy | None = None
        self._about_to_greet: dict[str, Any] = {}
        self._hung_up: Counter[str] = Counter()
        self._streams: Counter[str] = Counter()
        self._noted: deque[tuple[str, str]] = deque(maxlen=_MAX_NOTED)
        self._calls: dict[str, Any] = {}
        self._threads: list[threading.Thread] = []
        self.monitor = SessionMonitor()
        self.refused: dict[str, str] = {}  # name -> why its stream was last refused or lost, for who waits in vain
        self.mail: Mapping[str, Mailbox] = {
            peer.name: Mailbox(
                Endpoints(agreement_hash, place, peer.place, peer.name),
                self.monitor,
                largest=largest,
                patience=patience,
            )
            for peer in peers
        }

    def open(self) -> None:
        """Listen for the parties after this one, and connect to those before it; InputError if it cannot listen."""
        # gRPC reads it once, when it is imported.
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what matters is said by `note` and by errors
        import grpc  # type: ignore[import-untyped]

        after = [peer for peer in self._peers if peer.place > self._place]
        if after:
            self._server = self._listen(grpc, after)
        for peer in self._peers:
            if peer.place < self._place:
                thread = threading.Thread(target=self._connect, args=(grpc, peer), daemon=True)
                thread.start()
                self._threads.append(thread)

    def leave(self) -> None:
        """Expect the other parties to leave: reopen no stream, and do not report streams that end."""
        self._closing.set()

    def close(self) -> None:
        """Close all streams once all control messages are sent; unacknowledged messages are lost."""
        self._closing.set()
        for name, mail in self.mail.items():
            if self._streams[name]:
                mail.drain(_CLOSING_SECONDS)
            mail.close_stream()
        for thread in self._threads:  # their streams end by themselves where the other end is alive
            thread.join(timeout=_CLOSING_SECONDS)
        for call in list(self._calls.values()):
            call.cancel()
        if self._server is not None:
            self._server.stop(grace=_CLOSING_SECONDS).wait()
        if self._proxy is not None:
            self._proxy.close()

    def _listen(self, grpc: Any, peers: list[Peer]) -> Any:
        from concurrent.futures import ThreadPoolExecutor

        try:
            self._proxy = proxy = AdmissionProxy(self._address, refused=self._note_stranger, note=self._note)
        except (OSError, ValueError, OverflowError) as error:  # also for what is no host and port
            remedy = "is the port in use, or the address not of this machine?"
            raise InputError(f"cannot listen on {self._address}", where=self._identity.name, remedy=remedy) from error
        exchange = partial(self._exchange, grpc, proxy, {fingerprint_of(peer.certificate): peer for peer in peers})
        handler = grpc.method_handlers_generic_handler(
            "graphveil.Federation", {"Exchange": grpc.stream_stream_rpc_method_handler(exchange)}
        )
        server = grpc.server(ThreadPoolExecutor(max_workers=4 * len(peers) + 2), options=_OPTIONS)
        server.add_generic_rpc_handlers((handler,))
        credentials = grpc.ssl_server_credentials(
            [(self._identity.private_key, self._identity.certificate)],
            root_certificates=b"".join(peer.certificate for peer in peers),
            # Both ends show a certificate: knowing the address is not enough for a stream.
            require_client_auth=True,
        )
        proxy.behind(lambda where: server.add_secure_port(where, credentials))
        server.start()
        proxy.start()
        return server

    def _exchange(
        self,
        grpc: Any,
        proxy: AdmissionProxy,
        by_fingerprint: Mapping[str, Peer],
        incoming: Iterator[bytes],
        context: Any,
    ) -> Iterator[bytes]:
        """Serve one stream: greet, then send the mailbox's messages."""
        certificate = context.auth_context().get("x509_pem_cert", [b""])[0]
        # By fingerprint and not by name: any certificate can carry a name, but this key belongs to the party.
        peer = by_fingerprint.get(fingerprint_of(certificate)) if certificate and proxy.knows(context.peer()) else None
        if peer is None:
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "this certificate is not in the agreement")
            return
        # One at a time: a party that opens streams without a greeting must not use up the threads.
        before, self._about_to_greet[peer.name] = self._about_to_greet.get(peer.name), context
        if before is not None:
            before.cancel()  # it keeps a thread until it greets
        try:
            self._check_greeting(peer, next(incoming, b""))
        except WireError as error:
            self._refuse(peer, error)
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        finally:
            if self._about_to_greet.get(peer.name) is context:
                del self._about_to_greet[peer.name]
        proxy.greeted(context.peer(), peer.name)
        mail = self.mail[peer.name]
        stream = mail.open_stream()
        threading.Thread(target=self._read_stream, args=(peer, incoming, stream), daemon=True).start()
        yield self._greeting(peer)
        yield from mail.outgoing(stream)

    def _note_stranger(self, host: str) -> None:
        """Note that a certificate was refused, for all parties that may have shown it."""
        why = f"a connection from {host} is refused: its certificate is not in the agreement; {_COMPARE}"
        for peer in self._peers:
            if peer.place > self._place and not self._streams[peer.name]:
                self._refuse(peer, why, quietly=len(self._noted) >= _MAX_NOTED)

    def _read_stream(self, peer: Peer, incoming: Iterator[bytes], stream: int) -> None:
        """Hand a stream's frames to the peer's mailbox until the stream ends."""
        mail = self.mail[peer.name]
        self._streams[peer.name] += 1
        self._note(f"connected with {peer.name}")
        try:
            for data in incoming:
                body = mail.take_frame(data, stream)
                if body is not None:
                    self._on_control(peer.name, parse_control(body))
        except WireError as error:
            self._refuse(peer, error)
            self.monitor.end(PeerError(f"broke the protocol: {error}", where=peer.name))
        except Exception as error:  # the stream was cut; the connecting end opens another
            self._end_if_too_large(peer, error)
        finally:
            self._streams[peer.name] -= 1
            mail.close_stream(stream)
            if not self._closing.is_set():
                self._note(f"lost the stream with {peer.name}; it is opened again")

    def _connect(self, grpc: Any, peer: Peer) -> None:
        credentials = grpc.ssl_channel_credentials(
            # This one certificate and no authority: nobody who signs certificates can impersonate the party.
            root_certificates=peer.certificate,
            private_key=self._identity.private_key,
            certificate_chain=self._identity.certificate,
        )
        options = [*_OPTIONS, ("grpc.ssl_target_name_override", peer.name)]
        while not self._closing.is_set():
            with grpc.secure_channel(peer.address, credentials, options=options) as channel:
                try:
                    self._call(peer, channel.stream_stream(_METHOD))
                except grpc.RpcError as error:
                    self._note_failure(peer, error)
                except WireError as error:
                    self._refuse(peer, error)
                except ValueError:  # the channel was closed under the call
                    continue
            self._closing.wait(_RETRY_SECONDS)

    def _call(self, peer: Peer, method: Any) -> None:
        """Open a stream, greet, and exchange until it ends."""
        mail, greeted = self.mail[peer.name], threading.Event()
        stream: int | None = None

        def going() -> Iterator[bytes]:
            yield self._greeting(peer)
            greeted.wait()
            if stream is not None:
                yield from mail.outgoing(stream)

        call = method(going())
        self._calls[peer.name] = call
        try:
            if self._closing.is_set():
                return
            self._check_greeting(peer, first_message(call, _GREETING_SECONDS))
            stream = mail.open_stream()
            greeted.set()
            self._read_stream(peer, call, stream)
        finally:
            greeted.set()
            call.cancel()

    def _note_failure(self, peer: Peer, error: Any) -> None:
        """Note why a stream failed; a refusal ends the run, any other failure may pass."""
        if self._closing.is_set():
            return
        code, reason = error.code().name, " ".join((error.details() or "no reason given").split())[:300]
        if code in ("UNAUTHENTICATED", "INVALID_ARGUMENT"):
            self.monitor.end(PeerError(f"refused this party: {reason}", where=peer.name))
        elif "CERTIFICATE_VERIFY_FAILED" in reason:
            self.monitor.end(PeerError("presents a certificate other than agreed", where=peer.name, remedy=_COMPARE))
        elif "Connection refused" in reason:
            self._refuse(peer, f"no answer at {peer.address} yet")
        elif reason.startswith(_BEFORE_FIRST_USE) and reason.endswith(": Socket closed"):
            # The peer's own certificate is right: it closed the connection on seeing this party's.
            self._hung_up[peer.name] += 1
            why = f"refuses this party's certificate, which is not in its agreement; {_COMPARE}"
            self._refuse(peer, why)
            if self._hung_up[peer.name] >= _HANG_UPS_THAT_END:
                self.monitor.end(PeerError(why.partition("; ")[0], where=peer.name, remedy=_COMPARE))
            return
        elif "andshake" in reason or "reset by peer" in reason:
            self._refuse(peer, "closes connections before the greeting")
        self._hung_up[peer.name] = 0
        self._end_if_too_large(peer, error)

    def _end_if_too_large(self, peer: Peer, error: Any) -> None:
        code = getattr(error, "code", None)
        if code is not None and code() is not None and code().name == "RESOURCE_EXHAUSTED":
            self.monitor.end(PeerError("broke the protocol: a frame that is too large", where=peer.name))

    def _refuse(self, peer: Peer, why: object, *, quietly: bool = False) -> None:
        self.refused[peer.name] = str(why)
        if not quietly and (peer.name, str(why)) not in self._noted:
            self._noted.append((peer.name, str(why)))
            self._note(f"{peer.name}: {why}")

    def _greeting(self, peer: Peer) -> bytes:
        body = control_bytes({"process": self._process})
        return Frame(HELLO, self._agreement_hash, bytes(16), self._place, peer.place, body=body).to_bytes()

    def _check_greeting(self, peer: Peer, data: bytes) -> None:
        frame = parse(data)
        if frame.type != HELLO or (frame.sender, frame.receiver) != (peer.place, self._place):
            raise WireError("no greeting", where=peer.name)
        # Before any message: with different epsilons or rounds, each party would charge its own.
        if frame.agreement_hash != self._agreement_hash:
            remedy = "compare the agreement files, byte by byte"
            raise WireError(f"{peer.name} and {self._identity.name} have different agreements", remedy=remedy)
        process = parse_control(frame.body).get("process")
        if not isinstance(process, str):
            raise WireError("no greeting", where=peer.name)
        self.refused.pop(peer.name, None)
        self._hung_up[peer.name] = 0
        previous = self._processes.get(peer.name)
        self._processes[peer.name] = process
        # The same process may reconnect and lose nothing; a new one has lost its masks, so the session is over.
        if previous is not None and previous != process:
            self._on_restart(peer.name)


def first_message(call: Iterator[bytes], seconds: float) -> bytes:
    """Return the first message of a call, b"" where it ends without one; WireError if nothing comes.

    gRPC can wait for ever for a connection that broke while the call began, and cancelling the call does not always
    wake its reader (grpc/grpc issue 20562).  So a separate thread reads, and is abandoned where nothing comes.

    Args:
        seconds: how long to wait.
    """
    answer: Future[bytes] = Future()

    def read() -> None:
        try:
            answer.set_result(next(call, b""))
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=read, daemon=True).start()
    try:
        return answer.result(seconds)
    except TimeoutError as error:
        if answer.done():
            raise
        raise WireError(f"takes connections and has said nothing for {seconds:g} s") from error
