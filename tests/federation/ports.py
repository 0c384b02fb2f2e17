"""Ports for tests that listen, below those that the system gives to outgoing connections and to anybody who asks."""

from __future__ import annotations

import itertools
import os
import socket

#: Linux hands out 32768 and up; a port of ours that was free a moment ago is never taken by somebody's connection.
_FIRST, _LAST = 15_000, 32_000
_steps = itertools.count()


def free_ports(count: int) -> list[int]:
    """Return free ports in a row, none of which this process was given before; other processes begin elsewhere."""
    for _ in range(_FIRST, _LAST, count):
        offset = (os.getpid() * 499 + next(_steps) * count) % (_LAST - _FIRST - count)
        ports = [_FIRST + offset + number for number in range(count)]
        if all(map(_free, ports)):
            return ports
    raise OSError("no free ports")


def _free(port: int) -> bool:
    with socket.socket() as listener:
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
