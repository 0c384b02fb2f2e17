"""The folder that a studio serves: paths confined to it, and what lies in it."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from graphveil.errors import GraphveilError
from graphveil.files.reading import LARGEST, LARGEST_TOML, read_json, read_text
from graphveil.graphs.declared.declaration import FILE as DECLARATION
from graphveil.graphs.declared.declaration import Declaration, read_declaration
from graphveil.graphs.load import is_name
from graphveil.studio.refusals import Refusal

Kind: TypeAlias = Literal["run", "release", "federation", "collection"]
STATE: Final = ".graphveil-studio"
RUNS: Final = "runs"
TABLES: Final = (".csv", ".parquet")
#: Bytes of a table that a page sends, and its name.
_LARGEST_TABLE: Final = 2 << 30
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
#: How deep folders are looked for, and how many are listed.
_DEPTH, _MOST = 5, 2_000
#: Finished work: kind -> the file by which a folder is known; the first that is there counts.
MARKS: Final[Mapping[Kind, str]] = {
    "run": "result.json",
    "release": "release.json",
    "federation": "agreement.toml",
    "collection": "collection.json",
}


@dataclass(frozen=True)
class Finished:
    """A folder with finished work."""

    path: str
    kind: Kind
    method: str
    data: str
    modified: str


@dataclass(frozen=True)
class Source:
    """A folder with data: declared, tables without a declaration, or a declaration that cannot be read."""

    path: str
    state: Literal["declared", "tables", "broken"]
    files: list[str]
    private: list[str] = field(default_factory=list)
    error: str | None = None
    toml: str | None = None


@dataclass(frozen=True)
class Root:
    """Everything that a page may name lies below `folder`, symbolic links resolved."""

    folder: Path

    @property
    def state(self) -> Path:
        return self.folder / STATE

    @property
    def scratch(self) -> Path:
        """The folder for files of no use once the studio ends: answers to queries, incomplete tables."""
        return self.state / "scratch"

    def path(self, relative: str) -> Path:
        """Return the path that a request names; Refusal: it leads out, is hidden, or cannot be a file's name."""
        if relative == ".":
            return self.folder
        parts = relative.split("/")
        if len(relative) > 1_000 or not all(_is_plain(part) for part in parts):
            raise Refusal("bad-path", f"{relative[:80]!r} is no path below the studio's folder")
        path = self.folder.joinpath(*parts)
        if not self._contains(path):
            raise Refusal("bad-path", f"{relative!r} leads out of the studio's folder, or to a hidden one")
        return path

    def _contains(self, path: Path) -> bool:
        try:
            inside = path.resolve().relative_to(self.folder)
        except (ValueError, OSError, RuntimeError):
            return False
        return not any(part.startswith(".") for part in inside.parts)

    def holds(self, file: Path) -> bool:
        """Return whether a file is there and may be read for a page: a link in a folder may lead anywhere."""
        return file.is_file() and self._contains(file)

    @contextmanager
    def descriptor_of(self, folder: Path) -> Iterator[int]:
        """Give a descriptor of a folder below, reached through no link, so that nobody can exchange the folder.
        Raises OSError: a part of the path is no folder now.
        """
        descriptor = os.open(self.folder, os.O_DIRECTORY)
        try:
            for part in folder.relative_to(self.folder).parts:
                descriptor, parent = os.open(part, os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor), descriptor
                os.close(parent)
            yield descriptor
        finally:
            os.close(descriptor)

    def read(self, file: Path) -> bytes:
        """Return the content of a file below, reached through no link."""
        with self.descriptor_of(file.parent) as folder:
            flags = os.O_NOFOLLOW | os.O_NONBLOCK
            with open(file.name, "rb", opener=lambda name, mode: os.open(name, mode | flags, dir_fd=folder)) as stream:
                return stream.read(LARGEST)

    def kind(self, folder: Path) -> Kind | None:
        """Return what kind of finished work a folder holds, None for none."""
        return next((kind for kind, name in MARKS.items() if self.holds(folder / name)), None)

    def existing(self, relative: str) -> Path:
        """Return a path that is there; Refusal as of `path`, or not found."""
        path = self.path(relative)
        if not path.exists():
            raise Refusal("not-found", f"there is no {relative}")
        return path

    def word(self, relative: str) -> str:
        """Return how a command names a path, run in this folder; Refusal as of `existing`."""
        self.existing(relative)
        # A named set wins over a folder of its name.
        return f"./{relative}" if is_name(relative) else relative

    def relative(self, path: Path) -> str:
        """Return how a page names a path below; Refusal: it is not below."""
        try:
            return path.resolve().relative_to(self.folder).as_posix()
        except ValueError:
            raise Refusal("bad-path", "it lies outside the studio's folder") from None

    def sources(self) -> list[Source]:
        return [source for folder in self._folders() if (source := self._source(folder)) is not None]

    def finished(self) -> list[Finished]:
        finished = []
        for folder in self._folders():
            kind = self.kind(folder)
            if kind is not None:
                file = MARKS[kind]
                facts = object_in(folder / file) if file.endswith(".json") else {}
                modified = datetime.fromtimestamp((folder / file).stat().st_mtime, UTC).isoformat(timespec="seconds")
                method, data = (str(facts.get(name, ""))[:200] for name in ("method", "data"))
                finished.append(Finished(self.relative(folder), kind, method, data, modified))
        return finished

    def _folders(self) -> Iterator[Path]:
        """Yield visible folders, without what lies inside of finished work; links are not followed."""
        pending, count = [(self.folder, 0)], 0
        while pending and count < _MOST:
            folder, depth = pending.pop()
            count += 1
            yield folder
            if depth < _DEPTH and self.kind(folder) is None:
                pending += [(path, depth + 1) for path in reversed(_visible_in(folder)) if path.is_dir()]

    def _source(self, folder: Path) -> Source | None:
        if self.kind(folder) is not None and not (folder / "release.json").is_file():
            return None
        files = sorted(path.name for path in _visible_in(folder) if path.is_file() and path.suffix in TABLES)
        if not self.holds(folder / DECLARATION):
            return Source(self.relative(folder), "tables", files) if files else None
        declared, error = declaration_of(folder)
        path, files = self.relative(folder), [DECLARATION, *files]
        if declared is None:
            return Source(path, "broken", files, error=error)
        toml = read_text(folder / DECLARATION, largest=LARGEST_TOML)
        return Source(path, "declared", files, list(declared.private), toml=toml)


def declaration_of(folder: Path) -> tuple[Declaration | None, str | None]:
    """Return what a folder declares, or why that cannot be read; no table is opened."""
    try:
        return read_declaration(folder / DECLARATION), None
    except GraphveilError as error:
        return None, str(error).replace(f"{folder}/", "")


def object_in(file: Path) -> dict[str, Any]:
    """Return the object in a JSON file; empty where the file cannot be read, so that a list shows the others."""
    try:
        content = read_json(file)
        # Fails for halves of characters, which JSON can hold and no answer can.
        json.dumps(content, ensure_ascii=False).encode()
    except (GraphveilError, OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _is_plain(part: str) -> bool:
    # A leading "-" would become an option of a command.
    return bool(part) and part.isprintable() and part[0] not in ".-" and "\\" not in part and len(part) < 200


def _visible_in(folder: Path) -> list[Path]:
    """Return what a page may see of a folder; links are not followed."""
    try:
        return sorted(path for path in folder.iterdir() if _is_plain(path.name) and not path.is_symlink())
    except OSError:
        return []


async def store_table(root: Root, folder: str, name: str, parts: AsyncIterator[bytes]) -> int:
    """Write the parts of a table into a folder, which is made where it is absent, and return how many bytes it has.

    Streamed to a new file, whole or not at all, for its owner alone.

    Raises:
        Refusal: the name is no table's or is used, or the table is too large.
    """
    target = root.path(folder)
    if _NAME.fullmatch(name) is None or Path(name).suffix not in TABLES:
        raise Refusal("bad-path", f"{name[:80]!r} is no table: its name ends in {' or '.join(TABLES)}")
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    size = 0
    # Beside queries, where the next studio removes what a killed one left.
    with tempfile.NamedTemporaryFile(dir=root.scratch) as partial:
        async for part in parts:
            size += len(part)
            if size > _LARGEST_TABLE:
                raise Refusal("too-large", f"more than {_LARGEST_TABLE:,} bytes: copy the file into the folder by hand")
            partial.write(part)
        partial.flush()
        os.fsync(partial.fileno())
        try:
            # A link and no renaming: it fails where the name is used.
            with root.descriptor_of(target) as descriptor:
                os.link(partial.name, name, dst_dir_fd=descriptor)
        except FileExistsError:
            raise Refusal("used", f"{folder}/{name} is there already, and is never overwritten") from None
    return size
