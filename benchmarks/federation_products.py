"""Secure X W and X^T G of two holders: ours over mutual TLS, and SPU with its cached variable, same shapes and machine.

    python benchmarks/federation_products.py ours --nodes 2708 --columns 1433
    python benchmarks/federation_products.py spu --nodes 2708 --columns 1433       where spu==0.9.5 is installed

Beside either stands the plain product of the same numbers in one process: SciPy's sparse X and float32.  "times_plain"
are CPU milliseconds of one holder next to it.

Ours: a server that deals and two holders with half of the columns each; W and G are shared by both; the mask of X is
reused.  SPU: semi2k with its default dealer (the first party knows all masks: no protection), brpc without
TLS, X a cached variable.  Loopback, one thread a process; the mean of --steps products, after two that are left out.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import socket
import time
from typing import Any

import numpy as np
import scipy.sparse

from timing import in_turns, processor


def main() -> None:
    """Run the processes of one engine and print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=("ours", "spu"))
    parser.add_argument("--nodes", type=int, default=2708)
    parser.add_argument("--columns", type=int, default=1433)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--density", type=float, default=0.0127)
    parser.add_argument("--steps", type=int, default=5)
    chosen = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    rng = np.random.default_rng(0)
    x = (rng.random((chosen.nodes, chosen.columns)) < chosen.density).astype(np.float32)
    figures = {"ours": _ours, "spu": _spu}[chosen.engine](x, chosen.width, chosen.steps)
    plain = _plain(x, chosen.width, chosen.steps)
    times = {kind: round(figures[f"{kind}_cpu_ms"] / each, 1) for kind, each in plain.items()}
    head = {"processor": processor(), "engine": chosen.engine, "nodes": chosen.nodes, "columns": chosen.columns}
    print(json.dumps(head | {"times_plain": times, "plain_cpu_ms": plain} | figures))


def _plain(x: np.ndarray, width: int, steps: int) -> dict[str, float]:
    """CPU milliseconds of X W and X^T G without protection."""
    rows, rng = scipy.sparse.csr_array(x), np.random.default_rng(1)
    turned = rows.T.tocsr()
    w, g = (rng.standard_normal((size, width), np.float32) for size in (x.shape[1], x.shape[0]))
    seconds = in_turns(lambda: rows @ w, lambda: turned @ g, repeats=steps)
    return {kind: round(1e3 * each, 2) for kind, each in zip(("forward", "backward"), seconds, strict=True)}


def _ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for item in sockets:
        item.bind(("127.0.0.1", 0))
    figures = [int(item.getsockname()[1]) for item in sockets]
    for item in sockets:
        item.close()
    return figures


# ---- ours ----


def _ours(x: np.ndarray, width: int, steps: int) -> dict[str, Any]:
    from graphveil.federation.crypto.keys import new_identity

    names = ("server", "a", "b")
    identities = {name: new_identity(name) for name in names}
    addresses = dict(zip(names, (f"127.0.0.1:{port}" for port in _ports(3)), strict=True))
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    stage = (identities, addresses, x, width, steps + 2, answers)
    processes = [context.Process(target=_our_party, args=(name, *stage)) for name in names]
    for process in processes:
        process.start()
    figures = dict(answers.get() for _ in names)
    for process in processes:
        process.join()
    return _mean(figures["a"], steps)


def _our_party(name: str, identities: Any, addresses: Any, x: np.ndarray, width: int, steps: int, answers: Any) -> None:
    import tempfile
    from pathlib import Path

    import torch

    from graphveil.federation.core.checkpoints import Checkpoints
    from graphveil.federation.transport.links import Links, Peer
    from graphveil.federation.transport.session import Session

    torch.set_num_threads(1)
    names = list(identities)
    peers = tuple(
        Peer(place, other, addresses[other], identities[other].certificate)
        for place, other in enumerate(names)
        if other != name
    )
    with tempfile.TemporaryDirectory() as folder:
        store = Checkpoints(Path(folder) / name, "ab" * 32)
        other_names = tuple(peer.name for peer in peers)
        program = _dealer if name == "server" else _owner
        session = Session(
            name,
            "server",
            other_names,
            lambda done, state: program(name, x, width, steps),
            store,
            patience=120.0,
            progress=lambda step: None,
        )
        session.links = links = Links(
            identities[name],
            names.index(name),
            addresses[name],
            peers,
            b"0" * 32,
            largest=1 << 30,
            patience=120.0,
            on_control=session.on_control,
            on_restart=session.on_restart,
            note=lambda text: None,
        )
        links.open()
        answers.put((name, session.run().result))
        links.close()
        store.close()


def _plan(x: np.ndarray, width: int) -> Any:
    from graphveil.federation.crypto.products import LeftMatrix, Product

    half = x.shape[1] // 2
    lefts = [LeftMatrix("a", "a", ("b",), len(x), half), LeftMatrix("b", "b", ("a",), len(x), x.shape[1] - half)]
    forward = [Product(left, left.partners[0], width) for left in lefts]
    return lefts, forward, [Product(left, left.partners[0], width, True) for left in lefts]


def _dealer(name: str, x: np.ndarray, width: int, steps: int) -> Any:
    from graphveil.federation.crypto.products import Dealer
    from graphveil.privacy import SecureRandomness

    lefts, forward, backward = _plan(x, width)
    dealer = Dealer(lefts, randomness=SecureRandomness())
    yield from dealer.deal(("a", "b"))
    for step in range(steps):
        yield from dealer.correct(forward, f"forward {step}")
    for step in range(steps):
        yield from dealer.correct(backward, f"backward {step}")
    return {}


def _owner(name: str, x: np.ndarray, width: int, steps: int) -> Any:
    import torch

    from graphveil.federation.crypto import ring
    from graphveil.federation.crypto.products import multiply, set_up
    from graphveil.federation.effects import Roster
    from graphveil.federation.modes.holder import ring_matrix

    lefts, forward, backward = _plan(x, width)
    half, bits = x.shape[1] // 2, ring.FRACTION_BITS
    own = ring_matrix(scipy.sparse.csr_array(x[:, :half] if name == "a" else x[:, half:]), bits)
    masked = yield from set_up(Roster(name, ("a", "b")), lefts, {name: own})
    turned = own.T.tocsr()
    generator = torch.Generator().manual_seed(1)
    w = {left.name: ring.encode(torch.randn(left.columns, width, generator=generator) / 8, bits) for left in lefts}
    g = ring.encode(torch.randn(len(x), width, generator=generator) / 8, bits)
    answer: dict[str, Any] = {"forward": [], "backward": [], "cpu": []}
    for kind, products in (("forward", forward), ("backward", backward)):
        for step in range(steps):
            start, cpu = time.perf_counter(), time.process_time()
            rights = {product: w[product.left.name] if kind == "forward" else g for product in products}
            figures = yield from multiply(masked, products, rights, f"{kind} {step}")
            local = ring.matmul(own, w[name]) if kind == "forward" else ring.matmul(turned, g)
            for product, share in figures.items():
                if kind == "forward" or product.left.owner == name:
                    local = local + share
            answer[kind].append(time.perf_counter() - start)
            answer["cpu"].append((kind, time.process_time() - cpu))
    return answer


# ---- SPU ----


def _spu(x: np.ndarray, width: int, steps: int) -> dict[str, Any]:
    ports = _ports(2)
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    processes = [
        context.Process(target=_spu_party, args=(rank, ports, x, width, steps + 2, answers)) for rank in range(2)
    ]
    for process in processes:
        process.start()
    figures = dict(answers.get() for _ in processes)
    for process in processes:
        process.join()
    return _mean(figures[0], steps)


def _spu_party(rank: int, ports: list[int], x: np.ndarray, width: int, steps: int, answers: Any) -> None:
    import spu
    from spu.experimental.make_cached_var_impl import make_cached_var
    from spu.utils import frontend

    config = spu.RuntimeConfig(protocol=spu.ProtocolKind.SEMI2K, field=spu.FieldType.FM64, fxp_fraction_bits=18)
    desc = spu.link.Desc()
    for place, port in enumerate(ports):
        desc.add_party(f"p{place}", f"127.0.0.1:{port}")
    runtime = spu.Runtime(spu.link.create_brpc(desc, rank), config)
    rng, io = np.random.default_rng(1), spu.Io(2, config)
    w = (rng.standard_normal((x.shape[1], width)) / 8).astype(np.float32)
    g = (rng.standard_normal((x.shape[0], width)) / 8).astype(np.float32)
    # both processes make the same shares of public test data: only the products are timed
    for name, value in {"x": x, "w": w, "g": g}.items():
        shares = io.make_shares(value, spu.Visibility.VIS_SECRET)
        runtime.set_var(name, shares[rank])
    secret = spu.Visibility.VIS_SECRET

    def compiled(function: Any, names: list[str], values: list[np.ndarray], out: str) -> Any:
        figures, _ = frontend.compile(
            frontend.Kind.JAX, function, values, {}, names, [secret] * len(names), lambda flat: [out]
        )
        return figures

    runtime.run(compiled(make_cached_var, ["x"], [x], "kept"))
    runs = {
        "forward": compiled(lambda a, b: a @ b, ["kept", "w"], [x, w], "h"),
        "backward": compiled(lambda a, b: a.T @ b, ["kept", "g"], [x, g], "dw"),
    }
    answer: dict[str, Any] = {"forward": [], "backward": [], "cpu": []}
    for kind, executable in runs.items():
        for _ in range(steps):
            start, cpu = time.perf_counter(), time.process_time()
            runtime.run(executable)
            answer[kind].append(time.perf_counter() - start)
            answer["cpu"].append((kind, time.process_time() - cpu))
    answers.put((rank, answer))


def _mean(figures: dict[str, Any], steps: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for kind in ("forward", "backward"):
        cpu = [seconds for name, seconds in figures["cpu"] if name == kind]
        result[f"{kind}_ms"] = round(1e3 * float(np.mean(figures[kind][2:])), 1)
        result[f"{kind}_least_ms"] = round(1e3 * min(figures[kind][2:]), 1)
        result[f"{kind}_cpu_ms"] = round(1e3 * float(np.mean(cpu[2:])), 1)
    return result


if __name__ == "__main__":
    main()
