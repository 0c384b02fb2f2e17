"""A studio on a port: one for each folder, loopback by default, and no log of requests."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from graphveil.errors import InputError, UsedPathError
from graphveil.files.writing import write_bytes, writing
from graphveil.runtime.extras import require_packages
from graphveil.studio.root import STATE, Root

if TYPE_CHECKING:
    from graphveil.collection.service.serving import Place
    from graphveil.studio.jobs import Limits

#: Seconds that open streams of events have when the server ends.
_GRACE = 1


def require_extra() -> None:
    """Raise MissingExtraError where a package that the studio needs is not installed, InputError on Windows."""
    if os.name == "nt":
        raise InputError("jobs need what Windows lacks", where="studio", remedy="use the Linux subsystem (WSL)")
    require_packages("studio", "fastapi", "uvicorn", "pydantic", where="studio")


def serve(
    folder: Path, place: Place, limits: Limits, data_root: Path | None, started: Callable[[dict[str, object]], None]
) -> None:
    """Serve a folder's studio until told to end; its jobs go on.

    Args:
        folder: below which everything lies that a page may name.
        place: where it listens.
        data_root: where named sets lie; None: where commands look by themselves.
        started: called with the address, whose fragment holds the token, the folder, and a page that leads there.

    Raises:
        InputError: the folder, the address or a file of TLS cannot be used.
        UsedPathError: another studio serves this folder.
    """
    import uvicorn

    from graphveil.collection.service.serving import address, ended_by_signals, listening, run
    from graphveil.studio.access import Access, Gate
    from graphveil.studio.jobs import Jobs
    from graphveil.studio.service import Studio
    from graphveil.studio.store import Store

    place.require_files()
    if not place.is_local and place.certificate is None:
        raise InputError(
            f"other machines would reach {place.host} without TLS",
            where="--host",
            remedy="add --certificate and --certificate-key, or forward the port: ssh -L",
        )
    root = Root(folder.resolve())
    with owned(root), listening(place) as listener:
        store = Store(root.state / "studio.sqlite")
        access = Access(store, listener.getsockname()[1], secure=place.certificate is not None)
        studio = Studio(Jobs(root, store, limits), access, data_root)
        config = uvicorn.Config(
            Gate(studio.app, access, place.hosts),
            log_config=None, log_level="warning", access_log=False, ws="none", timeout_graceful_shutdown=_GRACE,
            ssl_certfile=place.certificate, ssl_keyfile=place.key,
        )  # fmt: skip
        # Otherwise it would log that open streams of events are cut when the server ends.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        server = uvicorn.Server(config)
        with ended_by_signals(server):
            url = f"{address(listener, place)}/#token={access.token}"
            # A browser opens this file and not the link: other users of the machine can read command lines.
            page = root.scratch / "open.html"
            link = f'<!doctype html><meta http-equiv="refresh" content="0;url={url}"><a href="{url}">Open</a>'
            write_bytes(page, link.encode(), mode=0o600)
            started({"url": url, "folder": str(root.folder), "opens": str(page)})
            run(server, listener)
        store.close()


@contextmanager
def owned(root: Root) -> Iterator[None]:
    """Lock a root for this process; UsedPathError where another studio serves it."""
    import fcntl

    if not root.folder.is_dir():
        raise InputError(f"{root.folder} is no folder", where="studio", allowed="a folder for data and runs")
    with writing(root.state):
        root.state.mkdir(mode=0o700, exist_ok=True)
        # The folder may have been copied, with the modes of another machine.
        root.state.chmod(0o700)
        # The system releases it, however the process ends.
        lock = os.open(root.state / "lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            remedy = "open the link that it printed, or name another folder"
            raise UsedPathError(f"another studio serves {root.folder}", where=STATE, remedy=remedy) from error
        yield
    finally:
        os.close(lock)
