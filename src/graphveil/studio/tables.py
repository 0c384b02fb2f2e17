"""A table that somebody drops on the page: streamed to a new file, whole or not at all, for its owner alone."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from graphveil.studio.refusals import Refusal
from graphveil.studio.root import TABLES, Root

#: Bytes of a table.
LARGEST: Final = 2 << 30
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


async def store_table(root: Root, folder: str, name: str, parts: AsyncIterator[bytes]) -> int:
    """Write the parts of a table into a folder, which is made where it is absent, and return how many bytes it has.

    Refusal: the name is no table's or is used, or the table is too large.
    """
    place = root.path(folder)
    if _NAME.fullmatch(name) is None or Path(name).suffix not in TABLES:
        raise Refusal("bad-path", f"{name[:80]!r} is no table: its name ends in {' or '.join(TABLES)}")
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    size = 0
    # Beside queries, where the next studio removes what a killed one left.
    with tempfile.NamedTemporaryFile(dir=root.scratch) as partial:
        async for part in parts:
            size += len(part)
            if size > LARGEST:
                raise Refusal("too-large", f"more than {LARGEST:,} bytes: copy the file into the folder by hand")
            partial.write(part)
        partial.flush()
        os.fsync(partial.fileno())
        try:
            # A link and no renaming: it fails where the name is used.
            with root.inside(place) as number:
                os.link(partial.name, name, dst_dir_fd=number)
        except FileExistsError:
            raise Refusal("used", f"{folder}/{name} is there already, and is never overwritten") from None
    return size
