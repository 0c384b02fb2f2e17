"""A long csv in parts: one pass finds where its lines begin, then one part is read at a time.

Read whole, its fields would be texts in memory, several times as large as the numbers that they become.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from graphveil.engine import Block, Blocks
from graphveil.runtime.late import polars

# Lines of a part: a divisor of the rows that callers read at a time, so that no part is read twice.
_LINES: Final = 1 << 17
_CHUNK: Final = 1 << 20


@dataclass(frozen=True)
class LongCsv:
    """A csv on disk, every column as text."""

    path: Path
    header: bytes  # its first line
    starts: tuple[int, ...]  # the byte at which line 0, `lines`, 2 `lines`, ... after the header begins, and the end
    lines: int  # in a part
    rows: int  # lines after the header, without empty ones at the end

    @classmethod
    def of(cls, path: Path, lines: int = _LINES) -> LongCsv | None:
        """Return a csv in parts; None where it must be read whole, to tell rows from lines or to name an error."""
        with path.open("rb") as raw:
            header = raw.readline()
            if not header.strip() or b'"' in header:
                return None
            starts, line_ends, position, last = [len(header)], 0, len(header), b""
            while chunk := raw.read(_CHUNK):
                # In quotation marks a field may hold a line end; the other reader names the line of a NUL.
                if b'"' in chunk or b"\0" in chunk:
                    return None
                ends = np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord("\n"))
                starts.extend((position + 1 + ends[(-line_ends - 1) % lines :: lines]).tolist())
                line_ends, position, last = line_ends + len(ends), position + len(chunk), chunk[-1:]
        rows = line_ends + (last not in (b"\n", b""))
        # Cut to whole parts: where the last part is full, the last entry would begin an empty one.
        return cls(path, header, (*starts[: -(-rows // lines)], position), lines, rows)._without_empty_end()

    @property
    def names(self) -> list[str]:
        return self._read(b"").columns

    def column(self, name: str, block: Block) -> polars.Series:
        """Return a block of rows of a column, fewer where the file has become shorter; PolarsError for odd lines.

        Args:
            name: one of `names`.
        """
        parts = [polars.Series(name, [], polars.String)]
        first = block.start - block.start % self.lines
        for part in Blocks(max(block.stop - first, 0), self.lines):
            start = first + part.start
            parts.append(self._part(start)[name][max(block.start - start, 0) : block.stop - start])
        return polars.concat(parts)

    def _part(self, start: int) -> polars.DataFrame:
        """The lines from `start` on, the first line of a part."""
        begin, end = self.starts[start // self.lines :][:2]
        with self.path.open("rb") as raw:
            raw.seek(begin)
            return self._read(raw.read(end - begin))

    def _read(self, lines: bytes) -> polars.DataFrame:
        # All columns: only then does polars refuse a line with too many fields.
        return polars.read_csv(io.BytesIO(self.header + lines), infer_schema=False)

    def _without_empty_end(self) -> LongCsv:
        rows = self.rows
        while rows:
            start = rows - 1 - (rows - 1) % self.lines
            nonempty = self._part(start)[: rows - start].select(polars.any_horizontal(polars.all().is_not_null()))
            filled = nonempty.to_series().arg_true()
            if len(filled):
                return replace(self, rows=start + int(filled[-1]) + 1)
            rows = start
        return replace(self, rows=0)
