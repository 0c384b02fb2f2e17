"""How many reports a collector takes, how soon it answers, and what ten million of them take.

    python benchmarks/collector.py rates                        reports a second and latencies, beside a plain server
    python benchmarks/collector.py rates --database postgresql+psycopg://graphveil@127.0.0.1:5432/empty
    python benchmarks/collector.py large --reports 10000000     collected over HTTP, closed, exported, ready to train
    python benchmarks/collector.py invalid                      half of the requests wrong, at 1.5 times the stated rate
    python benchmarks/collector.py idle                         2,000 idle connections at 256 descriptors
    python benchmarks/collector.py memory                       strangers who send large requests without an end

Client and server are two processes that share the machine. The plain server is a JSON route of FastAPI that checks the
same tags and commits each request to SQLite with synchronous=FULL.
"""

from __future__ import annotations

import argparse
import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from collector_load import Maker, Seen, collection, load, requests, server, usage
from timing import processor, ratio

STATED = {100: 10_000, 1: 2_500}


def main() -> None:
    """Run a part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("rates", "large", "invalid", "idle", "memory", "step"))
    parser.add_argument("--reports", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=10.0, help="about how long each rate is measured")
    parser.add_argument("--database", help="of the collector; default: a SQLite file")
    parser.add_argument("--folder", type=Path, help="where files lie; default: a temporary folder")
    parser.add_argument("--step", choices=tuple(STEPS))
    options = parser.parse_args()
    if options.part == "step":
        STEPS[options.step](options.folder)
        return
    print(f"processor: {processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as bodies_sent:
        PARTS[options.part](options, Path(bodies_sent))


# ---- rates ----


def rates(options: argparse.Namespace, folder: Path) -> None:
    """Print how many reports a second ours and the plain server take, in turns."""
    people = int(options.seconds * 60_000)
    url = options.database or f"sqlite:///{folder / 'ours.db'}"
    task, plain_url = collection(url, people), f"sqlite:///{folder / 'plain.db'}"
    maker, order = Maker(task), np.random.default_rng(0).permutation(people)
    at = iter(np.array_split(order, 16))
    print("| reports a body | server | ours / plain, reports/s | reports/s | CPU us a report | p50, p99 ms at half |")
    print("| --- | --- | --- | --- | --- | --- |")
    with server("serve", url) as ours, server("plain", plain_url) as plain:
        for size, connections in ((100, 8), (1, 64)):
            figures = {}
            for name, item in (("ours", ours), ("plain", plain)):
                numbers = next(at)[: int(options.seconds * STATED[size]) // size * size]
                fast, cpu = timed(item, requests(maker, numbers, size, plain=name == "plain"), connections)
                half = len(fast.seconds) / fast.wall / 2
                numbers = next(at)[: int(options.seconds * half) * size]
                calm, _ = timed(item, requests(maker, numbers, size, plain=name == "plain"), connections, half)
                figures[name] = fast, cpu, calm
            speeds = {name: item[0].codes["accepted"] / item[0].wall for name, item in figures.items()}
            for name, (fast, cpu, calm) in figures.items():
                share = ratio(speeds["ours"], speeds["plain"]) if name == "ours" else ""
                each = cpu / max(1, fast.codes["accepted"]) * 1e6
                late = f"{calm.percentile(50):.1f}, {calm.percentile(99):.1f}"
                print(f"| {size} | {name} | {share} | {speeds[name]:,.0f} | {each:.0f} | {late} |", flush=True)


def timed(
    item: tuple[int, int], bodies: Iterator[bytes], connections: int, rate: float | None = None
) -> tuple[Seen, float]:
    """Send requests that were made before; return what was seen, and the CPU seconds of the server."""
    bodies_sent = list(bodies)
    before = usage(item[1])[0]
    seen = load(item[0], iter(bodies_sent), connections, rate)
    return seen, usage(item[1])[0] - before


# ---- ten million ----


def large(options: argparse.Namespace, folder: Path) -> None:
    """Print the seconds, memory and disk of each step."""
    people, url = options.reports, f"sqlite:///{folder / 'collection.db'}"
    start = time.perf_counter()
    maker = Maker(collection(url, people))
    print(f"{people:,} people enrolled in {time.perf_counter() - start:.0f} s, {size_of(folder):.2f} GB", flush=True)
    print("| step | seconds | CPU s | of it the client's | CPU us a report | peak MB | files GB |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    whole = 0.0
    with server("serve", url) as (port, process):
        order = np.random.default_rng(0).permutation(people).astype(np.int32)
        size = min(500, people)
        seen = load(port, requests(maker, order[: people // size * size], size), 4)
        assert seen.codes == {"accepted": people // size * size}, seen.codes
        cpu, memory = usage(process)
        print_step("collect", seen.wall, cpu + seen.cpu, seen.cpu, memory, people, folder)
        whole += seen.wall
    for step in ("close", "export", "ready"):
        whole += separately(step, folder, people)
    print(f"all steps: {whole:.0f} s; database {(folder / 'collection.db').stat().st_size / 1e9:.2f} GB", flush=True)


def separately(step: str, folder: Path, people: int) -> float:
    """Run a step in a process of its own, and return its seconds."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen([sys.executable, __file__, "step", "--step", step, "--folder", str(folder)])
    used = os.wait4(process.pid, 0)
    assert used[1] == 0, f"{step} failed"
    del before
    wall, cpu = time.perf_counter() - start, used[2].ru_utime + used[2].ru_stime
    print_step(step, wall, cpu, 0.0, used[2].ru_maxrss / 1024, people, folder)
    return wall


def print_step(step: str, wall: float, cpu: float, client: float, memory: float, people: int, folder: Path) -> None:
    """Print a row."""
    print(
        f"| {step} | {wall:.0f} | {cpu:.1f} | {client:.1f} | {(cpu - client) / people * 1e6:.1f} | {memory:,.0f} "
        f"| {size_of(folder):.2f} |",
        flush=True,
    )


def size_of(folder: Path) -> float:
    """Return the GB of the files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e9


def _store(folder: Path) -> object:
    from graphveil.collection.store.store import Store
    from graphveil.collection.store.tables import opened

    return Store(opened(f"sqlite:///{folder / 'collection.db'}"))


def _close(folder: Path) -> None:
    from graphveil.collection.service.arrival import forget

    store = _store(folder)
    store.close_epoch()  # type: ignore[attr-defined]
    assert forget(store)  # type: ignore[arg-type]


def _export(folder: Path) -> None:
    from graphveil.collection.export.export import export

    export(_store(folder), folder / "out")  # type: ignore[arg-type]


def _ready(folder: Path) -> None:
    from graphveil.collection.export.export import read_export
    from graphveil.collection.export.reports import Received

    received = Received(read_export(folder / "out"))
    assert received.features() is not None and (received.labels() >= 0).all()


# ---- faults ----


def invalid(options: argparse.Namespace, folder: Path) -> None:
    """Half of the requests hold a report that is wrong in one of six ways, at 1.5 times the stated rate."""
    people, url = int(options.seconds * 4_000), f"sqlite:///{folder / 'ours.db'}"
    maker = Maker(collection(url, people))
    bodies = list(requests(maker, range(people), 1))
    numbers = range(people - people % 2)
    mixed = [spoiled(bodies[item], item // 2) if item % 2 else bodies[item] for item in numbers]
    with server("serve", url) as (port, _):
        rate = 1.5 * STATED[1]
        seen = load(port, iter(mixed), 64, rate)
    print(f"{len(mixed) / seen.wall:,.0f} requests/s of {rate:,.0f}; p50 {seen.percentile(50):.1f} ms, ", end="")
    print(f"p99 {seen.percentile(99):.1f} ms; {dict(seen.codes.most_common())}")


def spoiled(request: bytes, which: int) -> bytes:
    """Return a request whose report is wrong."""
    head, _, body = request.partition(b"\r\n\r\n")
    ways: tuple[Callable[[bytes], bytes], ...] = (
        lambda item: item[:-1] + bytes([item[-1] ^ 1]),
        lambda item: item[:-1],
        lambda item: b"\2" + item[1:],
        lambda item: item[:1] + bytes(32) + item[33:],
        lambda item: item[:49] + bytes(16) + item[65:],
        lambda item: item[:65] + b"\0\0\0\2" + item[69:70] + item[69:],
    )
    bad = ways[which % len(ways)](body)
    return head.replace(b"content-length: %d" % len(body), b"content-length: %d" % len(bad)) + b"\r\n\r\n" + bad


def idle(options: argparse.Namespace, folder: Path) -> None:
    """A client that comes while 2,000 others hold connections and say nothing, or a byte a second."""
    people, url = 200, f"sqlite:///{folder / 'ours.db'}"
    maker = Maker(collection(url, people))
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    bodies = requests(maker, range(people), 1)
    with server("serve", url, 256) as (port, _):
        open_sockets: list[socket.socket] = []
        ended = threading.Event()

        def hold() -> None:
            while not ended.is_set():
                for place in range(2000):
                    try:
                        if place < len(open_sockets):
                            open_sockets[place].send(b"x" if place % 2 else b"")
                        else:
                            open_sockets.append(socket.create_connection(("127.0.0.1", port), 5))
                            open_sockets[place].send(b"POST /reports HTTP/1.1\r\nhost: " if place % 2 else b"")
                    except OSError:
                        if place < len(open_sockets):
                            open_sockets[place].close()
                            open_sockets[place] = socket.socket()
                ended.wait(1.0)

        threading.Thread(target=hold, daemon=True).start()
        seconds = []
        for request in bodies:
            start = time.perf_counter()
            with socket.create_connection(("127.0.0.1", port), 30) as item:
                item.sendall(request)
                answer = item.recv(1 << 16)
            assert answer.startswith(b"HTTP/1.1 201"), answer[:60]
            seconds.append(time.perf_counter() - start)
            time.sleep(options.seconds / people)
        ended.set()
    median, worst = (float(np.percentile(seconds, which)) * 1e3 for which in (50, 100))
    print(
        f"{people} live clients beside {len(open_sockets)} connections: median {median:.1f} ms, slowest {worst:.0f} ms"
    )


_LONG = b"POST /reports HTTP/1.1\r\nhost: localhost\r\ncontent-length: 80000\r\n\r\n"
#: What strangers send: how many of them, the head of a request, and what follows as often as it is taken.
STRANGERS: dict[str, tuple[int, bytes, bytes]] = {
    "60 bodies": (60, _LONG, bytes(1 << 16)),
    "60 bodies in chunks": (
        60, b"POST /reports HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\n\0\r\n",
    ),
    "2,000 bodies": (2_000, _LONG, bytes(70_000)),
    "2,000 enrolments": (
        2_000, b"POST /enrolments HTTP/1.1\r\nhost: localhost\r\ncontent-length: 65536\r\n\r\n", bytes(60_000),
    ),
    "2,000 heads": (2_000, b"GET /task HTTP/1.1\r\nhost: localhost\r\na: " + b"a" * 16_000, b""),
    "2,000 readers": (2_000, b"GET /task HTTP/1.1\r\nhost: localhost\r\n\r\n" * 200, b""),
}  # fmt: skip


def memory(options: argparse.Namespace, folder: Path) -> None:
    """By how much a collector grows while strangers press it, and how long others wait meanwhile."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    print("| strangers | MB more | reports of others taken | ms, median / slowest |")
    print("| --- | --- | --- | --- |")
    for place, (name, (count, head, rest)) in enumerate(STRANGERS.items()):
        url, people = f"sqlite:///{folder / f'{place}.db'}", 500
        maker = Maker(collection(url, people))
        with server("serve", url, 4096) as (port, process):
            bodies = requests(maker, range(people), 1)
            alone(port, next(bodies))
            before, ended, seconds = usage(process)[1], threading.Event(), list[float]()
            pressing = threading.Thread(target=press, args=(port, count, head, rest, ended), daemon=True)
            pressing.start()
            end = time.monotonic() + options.seconds
            while time.monotonic() < end:
                seconds.append(alone(port, next(bodies)))
                time.sleep(0.1)
            ended.set()
            pressing.join()
            more = usage(process)[1] - before
        median, worst = (float(np.percentile(seconds, which)) * 1e3 for which in (50, 100))
        print(f"| {name} | {more:.0f} | {len(seconds)} | {median:.0f} / {worst:.0f} |", flush=True)


def alone(port: int, request: bytes) -> float:
    """Send a report over a connection of its own; return the seconds until it was taken."""
    start = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port), 60) as item:
        item.sendall(request)
        assert item.recv(1 << 16).startswith(b"HTTP/1.1 201")
    return time.perf_counter() - start


def press(port: int, count: int, head: bytes, rest: bytes, ended: threading.Event) -> None:
    """Keep so many connections, from many addresses, and send on each what is taken."""
    open_sockets: dict[socket.socket, bytes] = {}
    while not ended.is_set():
        while len(open_sockets) < count and not ended.is_set():
            item = socket.socket()
            item.bind((f"127.0.2.{len(open_sockets) % 250 + 1}", 0))
            item.settimeout(10.0)
            item.connect(("127.0.0.1", port))
            item.setblocking(False)
            open_sockets[item] = head
        for item, left in list(open_sockets.items()):
            try:
                open_sockets[item] = left[item.send(left) :] or rest if left else left
            except BlockingIOError:
                continue
            except OSError:
                del open_sockets[item]
                item.close()
        ended.wait(0.005)
    for item in open_sockets:
        item.close()


PARTS: dict[str, Callable[[argparse.Namespace, Path], None]] = {
    "rates": rates, "large": large, "invalid": invalid, "idle": idle, "memory": memory,
}  # fmt: skip
STEPS: dict[str, Callable[[Path], None]] = {"close": _close, "export": _export, "ready": _ready}

if __name__ == "__main__":
    main()
