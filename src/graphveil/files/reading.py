"""Small files read safely: settings, declarations, records, cards, keys; their author may mean harm.

A file is read only if it is a regular file, not compressed, and no larger than such a file may be; JSON and TOML only
if they are not nested deeply, name every key once and hold only finite numbers. Everything else is an InputError, of
the class `error`, that names the file (`where`); an absent file is a FileNotFoundError.
"""

from __future__ import annotations

import json
import math
import os
import stat
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from graphveil.errors import DataError, InputError

MIB: Final = 1 << 20
#: The largest file of settings or results that is read, in bytes.
LARGEST: Final = 16 * MIB
#: The largest `graph.toml` or `agreement.toml`: TOML is read more slowly.
LARGEST_TOML: Final = 2 * MIB
#: The largest file of one line an epoch.
LARGEST_HISTORY: Final = 256 * MIB
MOST_LINES: Final = 1_000_000
#: The largest JSON file of a published data set.
LARGEST_DATA: Final = 256 * MIB
DEEPEST: Final = 50
_LARGEST_WHOLE: Final = 10**300
# First bytes of compressed formats, refused because a small file may unpack to any size.
_COMPRESSED: Final = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\x00": "xz",
    b"BZh": "bzip2",
    b"\x04\x22\x4d\x18": "lz4",
    b"x\x01": "zlib",
    b"x\x9c": "zlib",
    b"x\xda": "zlib",
    b"7z\xbc\xaf\x27\x1c": "7z",
}

ErrorClass = type[InputError]


def read_bytes(path: Path, *, largest: int = LARGEST, error: ErrorClass = DataError) -> bytes:
    """Return the content of a small file.

    Args:
        path: may be written by a stranger, as in all functions here.
        largest: the most bytes it may have.
        error: the class of the error.
    """
    # All checks use the descriptor: the path could name another file by then.
    descriptor = _open(path, error)
    with os.fdopen(descriptor, "rb") as file:
        try:
            _require_size(os.fstat(descriptor).st_size, path, largest, error)
            # One byte more than allowed, to notice a file that grows while it is read.
            content = file.read(largest + 1)
        except OSError as fault:
            raise error(f"cannot be read ({fault.strerror})", where=str(path)) from fault
    _require_size(len(content), path, largest, error)
    _refuse_compressed(content[:8], path, error)
    return content


def read_text(path: Path, *, largest: int = LARGEST, error: ErrorClass = DataError) -> str:
    """As `read_bytes`, for text in UTF-8, with or without a byte order mark.

    Args:
        path, largest, error: as there.
    """
    try:
        # "-sig" takes off a byte order mark, which some editors write.
        return read_bytes(path, largest=largest, error=error).decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise error("is not UTF-8 text", where=str(path)) from fault


def read_json(path: Path, *, largest: int = LARGEST, error: ErrorClass = DataError) -> Any:
    """Return the JSON value in a file, as strict as `parse_json`; the caller checks its type.

    Args:
        path, largest, error: as of `read_bytes`.
    """
    return parse_json(read_text(path, largest=largest, error=error), where=str(path), error=error)


def read_cached_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file that this program wrote and can write again."""
    remedy = "delete it to have it made again"
    try:
        content = read_json(path)
    except ValueError as error:
        raise InputError(f"damaged ({error})", where=str(path), remedy=remedy) from error
    if not isinstance(content, dict):
        raise InputError("damaged (no JSON object)", where=str(path), remedy=remedy)
    return content


def parse_json(text: str | bytes, *, where: str, error: ErrorClass = DataError) -> Any:
    """Return the value of strict JSON: no key twice in one object, no NaN or Infinity, no deep nesting.

    Args:
        text: UTF-8 where it is bytes.
        where: its file or line.
        error: the class of the error.
    """
    try:
        content = json.loads(
            text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant, parse_float=_parse_finite
        )
        _require_shallow(content)
    except RecursionError as fault:
        raise _too_deep(where, error) from fault
    except (ValueError, UnicodeDecodeError) as fault:
        raise error(f"is not JSON ({_reason(fault)})", where=where) from fault
    return content


def read_json_lines(path: Path) -> list[Any]:
    """Return the values of a file with one JSON value a line; empty lines are skipped, too many lines refused."""
    text = read_text(path, largest=LARGEST_HISTORY)
    # Counted before any line is parsed.
    require_lines(text.count("\n"), path)
    lines = ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())
    return [parse_json(line, where=f"{path}, line {number}") for number, line in lines]


def require_lines(count: int, path: Path, *, error: ErrorClass = DataError) -> None:
    """Refuse a file of one JSON value a line that has too many lines.

    Args:
        count: its lines.
        path, error: for the error.
    """
    if count > MOST_LINES:
        raise error(f"has {count:,} lines", where=str(path), allowed=f"at most {MOST_LINES:,} for such a file")


def read_toml(path: Path, *, error: ErrorClass = DataError) -> dict[str, Any]:
    """Return the content of a TOML file, as strict as `parse_toml`.

    Args:
        path, error: as of `read_bytes`.
    """
    return parse_toml(read_text(path, largest=LARGEST_TOML, error=error), where=str(path), error=error)


def parse_toml(text: str, *, where: str, error: ErrorClass = DataError) -> dict[str, Any]:
    """Return the content of TOML that nests no deeper than `DEEPEST`.

    Args:
        text: lines may end as on Windows.
        where: its file.
        error: the class of the error.
    """
    try:
        # Only for the parser: signatures are checked on the bytes of the file.
        content = tomllib.loads(text.replace("\r\n", "\n"))
        _require_shallow(content)
    except RecursionError as fault:
        raise _too_deep(where, error) from fault
    except ValueError as fault:
        raise error(f"cannot be read as TOML ({_reason(fault)})", where=where) from fault
    return content


def read_scores(path: str | Path, dimension: int) -> tuple[float, ...]:
    """Return the numbers of a text file, one a line for each feature; `#` begins a comment.

    Args:
        path: of the file; DataError for a line that is no finite number of at least 0, or another number of lines.
        dimension: d, how many it must hold.
    """
    where = str(path)
    try:
        lines = read_text(Path(path)).splitlines()
    except (FileNotFoundError, DataError) as error:
        raise DataError(f"cannot be read ({error})", where=where, allowed="a text file, one number a line") from error
    scores = []
    for number, line in enumerate(lines, start=1):
        text = line.split("#", 1)[0].strip()
        if text:
            try:
                value = float(text)
            except ValueError:
                value = math.nan
            # A negative share would raise the epsilon of the other features above the agreed one.
            if not (math.isfinite(value) and value >= 0):
                raise DataError(f"line {number} is {text!r}", where=where, allowed="a number of at least 0")
            scores.append(value)
    if len(scores) != dimension:
        raise DataError(f"{len(scores)} scores", where=where, allowed=f"{dimension}, one for each feature")
    return tuple(scores)


def require_file(path: Path, *, error: ErrorClass = DataError, packed: bool = False) -> None:
    """Refuse a large file that cannot be read: a folder, a pipe, a device, compressed content.

    Args:
        path, error: as of `read_bytes`.
        packed: whether the format itself is compressed, or may begin like an archive.
    """
    descriptor = _open(path, error)
    with os.fdopen(descriptor, "rb") as file:
        if not packed:
            _refuse_compressed(file.read(8), path, error)


def _open(path: Path, error: ErrorClass) -> int:
    """Open a regular file without blocking; refuse anything else."""
    try:
        # Opened first, then checked by its descriptor: a check by name could be of another file.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or str(fault)
        raise error(f"cannot be opened ({reason})", where=str(path)) from fault
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe" if stat.S_ISFIFO(mode) else "a device"
        raise error(f"is {kind}, not a file", where=str(path))
    return descriptor


def _refuse_compressed(start: bytes, path: Path, error: ErrorClass) -> None:
    kind = next((kind for magic, kind in _COMPRESSED.items() if start.startswith(magic)), None)
    # "BZh" may begin a text; in bzip2 a block size from 1 to 9 follows.
    if kind == "bzip2" and start[3:4] not in (b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"8", b"9"):
        return
    if kind is not None:
        remedy = "unpack it first: what it unpacks to may be a thousand times as large"
        raise error(f"is compressed ({kind})", where=str(path), remedy=remedy)


def _require_size(size: int, path: Path, largest: int, error: ErrorClass) -> None:
    if size > largest:
        extent = f"{size / MIB:,.1f} MiB" if size > largest + 1 else f"more than {largest / MIB:g} MiB"
        raise error(f"has {extent}", where=str(path), allowed=f"at most {largest / MIB:g} MiB for such a file")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    # Parsers differ in which of two equal keys they take, so a file could have two meanings.
    if len(content) < len(pairs):
        count = Counter(key for key, _ in pairs)
        raise ValueError(f"the key {count.most_common(1)[0][0]!r} appears twice")
    return content


def _refuse_constant(word: str) -> float:
    raise ValueError(f"{word} is not a JSON number")


def _parse_finite(text: str) -> float:
    value = float(text)
    # 1e999 is legal JSON and parses as infinity, which as an epsilon means "not protected".
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is too large a number")
    return value


def _require_shallow(content: object) -> None:
    """Refuse deep nesting, and whole numbers too large for a float."""
    # Level by level and not recursively, which deep nesting would overflow.
    depth = 0
    level: list[Any] = [[content]]
    while level:
        if depth > DEEPEST + 1:
            raise RecursionError
        depth += 1
        next_level: list[Any] = []
        for holder in level:
            for value in holder.values() if isinstance(holder, Mapping) else holder:
                if isinstance(value, Mapping | list):
                    next_level.append(value)
                elif isinstance(value, int) and not -_LARGEST_WHOLE < value < _LARGEST_WHOLE:
                    raise ValueError("a whole number has more than 300 digits")
        level = next_level


def _too_deep(where: str, error: ErrorClass) -> InputError:
    return error("is nested too deeply", where=where, allowed=f"at most {DEEPEST} brackets within each other")


def _reason(fault: Exception) -> str:
    return " ".join(str(fault).split())[:200]
