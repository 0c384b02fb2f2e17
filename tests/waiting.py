"""What comes about sooner or later, and what is done by several at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

#: Seconds after which what did not come about never will, on a machine however busy.
FOREVER = 600.0


def until(holds: Callable[[], Any], seconds: float = FOREVER) -> Any:
    """What is returned, once it is anything but nothing."""
    end = time.monotonic() + seconds
    while not (answer := holds()):
        assert time.monotonic() < end, "this never comes about"
        time.sleep(0.01)
    return answer


@contextmanager
def in_threads(work: Callable[[Any], object], each: Iterable[Any]) -> Iterator[None]:
    """Do a work for each in a thread of its own, beside what the caller does; wait for all in the end."""
    threads = [threading.Thread(target=work, args=(own,), daemon=True) for own in each]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join(FOREVER)
