"""Blocks on a Ray cluster, for graphs larger than one machine: an adapter, with Ray's own sharing and retries.

A Ray cluster is one trust domain: each of its workers can read every array that is put, and objects may be spilled to
the disks of its machines. A cluster must never span several parties. Ray of 2.55 and later, `pip install
'graphveil[ray]'`.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

from graphveil.engine.contract import Blocks, Engine, Mapped, Shared, open_shared
from graphveil.engine.local import calls_of
from graphveil.errors import InputError
from graphveil.runtime.extras import require_packages

Result = TypeVar("Result")

# How many blocks are submitted ahead for each worker.
_BLOCKS_PER_WORKER: Final = 2


class RayEngine(Engine):
    """An `Engine` of Ray tasks.

    Args:
        address: of a running cluster ("auto", "ray://host:port", "host:port"); None starts one on this machine.
        workers: processors of a cluster that is started here; twice as many blocks are submitted at once.

    Raises:
        MissingExtraError: Ray is not installed.
        InputError: no cluster there accepts our token, or Ray was loaded before without token authentication.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        require_ray()
        if "ray" in sys.modules and os.environ.get("RAY_AUTH_MODE") != "token":
            raise InputError(
                "Ray was loaded without its token", where="--engine ray", remedy="set RAY_AUTH_MODE=token before it is"
            )
        # Before Ray is loaded, which reads them once: without a token whoever reaches a port can run code as this user.
        os.environ.update(RAY_AUTH_MODE="token", RAY_USAGE_STATS_ENABLED="0")
        import ray

        self._ray: Any = ray
        self._joined = not ray.is_initialized()
        if self._joined:
            _start(ray, address, workers)
        self.workers = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self._run = ray.remote(_run)

    def put(self, *arrays: Shared) -> tuple[Any, ...]:
        """Store the arrays once; workers on one machine read them without a copy."""
        # A mapped array stays where it is: each machine reads it from its own disk.
        return tuple(array if isinstance(array, Mapped | None) else self._ray.put(array) for array in arrays)

    def map_blocks(
        self, task: Callable[..., Result], blocks: Blocks, shared: Any = (), own: Iterable[Any] | None = None
    ) -> Iterator[Result]:
        """As :meth:`Engine.map_blocks`; the blocks of a lost worker run again on another."""
        # Stored once and not sent with each block, since a task may hold tables.
        stored, waiting = self._ray.put(task), deque()  # type: ignore[var-annotated]
        for call in calls_of(blocks, shared, own):
            if len(waiting) == _BLOCKS_PER_WORKER * self.workers:
                yield self._ray.get(waiting.popleft())
            waiting.append(self._run.remote(stored, *call))
        while waiting:
            yield self._ray.get(waiting.popleft())

    def close(self) -> None:
        """Leave a cluster that this engine joined, and stop it if it was started here."""
        # A connection that existed before is still in use.
        if self._joined:
            self._ray.shutdown()


def require_ray() -> None:
    """Raise MissingExtraError where Ray is not installed, without loading it."""
    require_packages("ray", "ray", where="--engine ray")


def _run(task: Callable[..., Result], *call: Any) -> Result:
    return task(*(open_shared(part) if isinstance(part, Mapped) else part for part in call))


def _start(ray: Any, address: str | None, workers: int | None) -> None:
    try:
        ray.init(
            address=address or "local",
            **({} if address else {"num_cpus": workers, "_node_ip_address": "127.0.0.1", "include_dashboard": False}),
            log_to_driver=False,
            logging_level="error",
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InputError(f"no Ray cluster could be joined ({error})", where=f"address {address!r}") from error
