"""A TCP proxy that stands for a line: every direction of every connection has a rate and a delay of its own.

    leaves at    max(now - 10 ms, when the bytes before it have left) + 8 bytes / rate       token bucket of 10 ms
    arrives at   that and the delay

What is under way is bounded, so a slow reader slows its sender.  Bytes are never lost: TCP's slow start, and what a
loss costs it, are left out, as is the round trip in which a connection comes about.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Mapping
from functools import partial
from types import TracebackType

from graphveil.federation.transport.line import Line

_BLOCK, _BURST, _LOOK = 1 << 14, 0.01, 0.05
_SPARE = 64  # blocks beyond those that fit on the line


class SlowLine:
    """Proxies on this machine, in a thread of their own, for as long as the context is open.

    Args:
        line: rate and delay of every direction of every connection.
        ports: port to listen on -> port to connect to.

    Attributes:
        directions: bytes of each direction of each connection so far.
        now: another line, for a while: (port to listen on, whether towards its listener) -> line; None: nothing passes.
    """

    def __init__(self, line: Line, ports: Mapping[int, int]) -> None:
        self.directions: list[int] = []
        self.now: dict[tuple[int, bool], Line | None] = {}
        self._line, self._ports = line, ports
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []

    def __enter__(self) -> SlowLine:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self) -> None:
        for port, behind in self._ports.items():
            accept = partial(self._accept, port, behind)
            self._servers.append(await asyncio.start_server(accept, "127.0.0.1", port, limit=_BLOCK))

    async def _accept(self, port: int, behind: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await self._relay(reader, writer, port, behind)

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, behind: int) -> None:
        try:
            # A party that does not listen yet closes the connection, as its own machine would refuse it.
            inside, outside = await asyncio.open_connection("127.0.0.1", behind, limit=_BLOCK)
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(self._carry(reader, outside, (port, True)))
                    both.create_task(self._carry(inside, writer, (port, False)))
            finally:
                outside.close()
        except* OSError:  # an end was cut: so is the other
            pass
        finally:
            writer.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: tuple[int, bool]) -> None:
        """Carry one direction to its end."""
        loop, number, left = asyncio.get_running_loop(), len(self.directions), 0.0
        self.directions.append(0)
        fits = int(self._line.delay * self._line.rate / 8 / _BLOCK)
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(fits + _SPARE)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._arrive(under_way, writer))
            while block := await reader.read(_BLOCK):
                self.directions[number] += len(block)
                while (line := self.now.get(way, self._line)) is None:
                    await asyncio.sleep(_LOOK)
                left = max(loop.time() - _BURST, left) + line.seconds(len(block))
                await asyncio.sleep(left - loop.time())
                await under_way.put((max(loop.time(), left) + line.delay, block))
            await under_way.put((0.0, b""))

    async def _arrive(self, under_way: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
        while (entry := await under_way.get())[1]:
            await asyncio.sleep(entry[0] - asyncio.get_running_loop().time())
            writer.write(entry[1])
            await writer.drain()
        with contextlib.suppress(OSError):
            writer.write_eof()
