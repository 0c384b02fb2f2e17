"""One-time tokens, which an organisation hands out through a channel of its own: a table of ids and tokens.

Whoever has a token can enrol once in a person's place; the collector keeps only its hash.
"""

from __future__ import annotations

import csv
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from graphveil.device.errors import DeviceError
from graphveil.device.remote import Remote
from graphveil.device.wire import NUMBER_BYTES, RANDOM_BYTES, number_of, numbered
from graphveil.errors import InputError
from graphveil.files.writing import sync_folder

if TYPE_CHECKING:
    from graphveil.collection.store.store import Store

#: Random bytes of a token that is drawn here.
DRAWN_BYTES = 20
_ALLOWED = "columns id and token: 42 hexadecimal digits or more, each different"
#: The least number of different bytes in a token drawn at random.
_LEAST_DIFFERENT = 6


def write_tokens(
    path: Path, ids: Iterable[str], link: Callable[[bytes], str] | None = None
) -> Iterator[tuple[str, bytes]]:
    """Make a token for each id, write both to a file, and yield them; InputError where the file exists.

    Args:
        path: of a new csv file, which only its owner may read.
        link: makes the link to a person's page from their token, a third column.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise InputError(f"{path} is there already", remedy="other tokens enrol nobody: take another file") from error
    with os.fdopen(descriptor, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "token", *([] if link is None else ["link"])])
        # One by one, so that no table is ever whole in memory.
        for number, id in enumerate(ids):
            token = numbered(secrets.token_bytes(DRAWN_BYTES), number)
            rows.writerow([id, token.hex(), *([] if link is None else [link(token)])])
            yield id, token
        # Before the database has the hashes: tokens exist only here, and a power cut could lose them.
        file.flush()
        os.fsync(file.fileno())
        sync_folder(path.parent)


def links_at(url: str, task: bytes) -> Callable[[bytes], str]:
    """Return a function from a token to the link of a person's page; InputError where devices refuse the address.

    Args:
        url: of the collector, as people reach it.
        task: its hash.
    """
    try:
        Remote(url)
    except DeviceError as error:
        raise InputError(
            f"{url!r} is not an address that people can open", where="--url", allowed="https://..., http://localhost"
        ) from error
    # Behind "#", which browsers send to nobody: neither servers nor logs on the way see it.
    return lambda token: f"{url.rstrip('/')}/#{token.hex()}.{task.hex()}"


def replace_token(store: Store, id: str) -> dict[str, str]:
    """Replace somebody's lost token; return id and token, which is stored nowhere; errors as `Store.replace_token`.

    Args:
        id: of a person who has not enrolled.
    """
    return {"id": id, "token": store.replace_token(id, secrets.token_bytes(DRAWN_BYTES)).hex()}


def read_tokens(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield ids and tokens of a csv file that somebody else made. Raises InputError: it is not UTF-8, a column is
    missing, an id or a token appears twice, or a token is too short, not hexadecimal, or not drawn at random.
    """
    ids: set[str] = set()
    tokens: set[bytes] = set()
    try:
        # Spreadsheets write a byte-order mark, which would become part of the first column's name.
        with path.open(newline="", encoding="utf-8-sig") as file:
            for line, row in enumerate(csv.DictReader(file), start=2):
                id, token, where = row.get("id"), _token(row.get("token")), f"{path}, line {line}"
                if id is None or token is None or token in tokens:
                    raise InputError("no id with a token of its own", where=where, allowed=_ALLOWED)
                if id in ids:
                    raise InputError(f"a second token for {id!r}", where=where, allowed="one line for each id")
                # 16 random bytes have fewer different ones once in 10^17 tokens.
                if len(set(token)) < _LEAST_DIFFERENT:
                    raise InputError("a token that anybody may guess", where=where, remedy="draw each at random")
                ids.add(id)
                tokens.add(token)
                yield id, token
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError("is no table in UTF-8", where=str(path), remedy="save it as CSV UTF-8") from error


def _token(text: str | None) -> bytes | None:
    try:
        token = bytes.fromhex(text or "")
    except ValueError:
        return None
    return token if len(token) >= RANDOM_BYTES + NUMBER_BYTES else None


def in_order(path: Path, ids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Return ids and tokens of a table that somebody else made, in the order of people's numbers.

    Args:
        path: see `read_tokens`.

    Raises:
        InputError: the file cannot be read, has other ids, or a token does not end with the person's number.
    """
    try:
        tokens = dict(read_tokens(path))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror})") from error
    # A missing id would leave a person without a token; an extra one would be nobody's.
    if set(tokens) != set(ids):
        raise InputError("other ids than those of the task", where=str(path), allowed=f"all {len(ids):,} of ids.txt")
    wrong = next((number for number, id in enumerate(ids) if number_of(tokens[id]) != number), None)
    if wrong is not None:
        raise InputError(
            f"the token of {ids[wrong]!r} does not end with their number",
            where=str(path),
            allowed=f"random digits, then {numbered(b'', wrong).hex()}: line {wrong + 1} of ids.txt is number {wrong}",
        )
    return ((id, tokens[id]) for id in ids)
