"""Where data sets are stored, and how an absent one is downloaded: whole or not at all.

Downloads use the standard library, not pooch: its check is a hash for each file, and most of the sets here are
published without one; it takes transfers and archives of any size, where these functions set a bound.
"""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from graphveil.errors import InputError, MissingDataError
from graphveil.files.writing import partial_folder
from graphveil.runtime.checks import as_path
from graphveil.runtime.progress import Progress, ProgressCallback

Fetch = Callable[[Path, ProgressCallback], None]
"""Writes a data set's files into the folder it is given."""

VARIABLE = "GRAPHVEIL_DATA"
_TIMEOUT = 30.0  # seconds to wait for an answer
LARGEST_DOWNLOAD = 8 << 30
"""The most bytes that a download may have, and that one may unpack to."""


def data_root(root: str | os.PathLike[str] | None = None) -> Path:
    """Return the data root: the argument, else the environment variable GRAPHVEIL_DATA, else the user cache."""
    if root is not None:
        return _expanded(as_path(root, "root"))
    if os.environ.get(VARIABLE):
        return _expanded(Path(os.environ[VARIABLE]))
    return user_cache()


def user_cache() -> Path:
    """Return the folder of files that can be rebuilt or fetched again; InputError where there is no home folder."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else _expanded(Path("~/.cache"))) / "graphveil"


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:  # a user without an entry, as in many containers, and without HOME
        remedy = f"name the folder of data sets with --data-root or {VARIABLE}"
        raise InputError("the system knows no home folder of this user", where=str(path), remedy=remedy) from error


@dataclass(frozen=True)
class DataRoot:
    """The folder of all named sets."""

    path: Path
    download: bool  # whether an absent set is fetched
    progress: ProgressCallback | None  # called with the bytes fetched so far

    def ensure(self, folder: str, files: tuple[str, ...], *, name: str, fetch: Fetch | None = None) -> Path:
        """Return a folder below, once all files are in it; what is absent is fetched through a temporary sibling.

        Args:
            folder: where the files belong; only read when they are all there, so it may be read-only.
            files: their paths inside the folder.
            fetch: writes the files into the folder it is given; None where no program can download them.

        Raises:
            MissingDataError: a file is absent and could not be fetched. Nothing half-written is left.
        """
        path = self.path / folder
        if not _absent(path, files):
            return path
        if fetch is None or not self.download:
            raise _missing(name, path, files, "absent, and not downloaded")
        try:
            with partial_folder(path) as partial:
                fetch(partial, self.progress or (lambda _: None))
                for file in sorted(partial.rglob("*")):
                    target = path / file.relative_to(partial)
                    # A file that a user put there stays.
                    if file.is_file() and not target.exists():
                        target.parent.mkdir(parents=True, exist_ok=True)
                        file.replace(target)
        except (OSError, zipfile.BadZipFile) as error:
            raise _missing(name, path, files, f"absent, and downloading failed ({_reason(error)})") from error
        if _absent(path, files):
            raise _missing(name, path, files, "absent, also from what was downloaded")
        return path


class FilesPresent(Exception):
    """All files of a data set are present."""


class PresenceCheck(DataRoot):
    """Stops a loader before it reads a file: by FilesPresent, or by MissingDataError."""

    def ensure(self, folder: str, files: tuple[str, ...], *, name: str, fetch: Fetch | None = None) -> Path:
        """Raise Found, or MissingDataError; see `DataRoot.ensure` for the arguments."""
        super().ensure(folder, files, name=name)
        raise FilesPresent


def _absent(folder: Path, files: tuple[str, ...]) -> list[str]:
    return [file for file in files if not (folder / file).is_file()]


def _missing(name: str, folder: Path, files: tuple[str, ...], reason: str) -> MissingDataError:
    absent = _absent(folder, files)
    names = ", ".join(absent[:3]) + (f" and {len(absent) - 3} more" if len(absent) > 3 else "")
    remedy = f"put {', '.join(files)} there, or name another data root with --data-root or {VARIABLE}"
    return MissingDataError(f"data set {name!r}: {names} {reason}", where=str(folder), remedy=remedy)


def download(url: str, target: Path, progress: ProgressCallback) -> Path:
    """Download one file, certificates checked.

    Args:
        url, target: from where, to where.
        progress: called with the bytes fetched so far.

    Raises:
        OSError: no connection, an early end, or over `LARGEST_DOWNLOAD` bytes.
    """
    import urllib.request

    stage = f"downloading {target.name}"
    with urllib.request.urlopen(url, timeout=_TIMEOUT) as source, target.open("wb") as sink:
        total, done = int(source.headers.get("Content-Length") or 0), 0
        while chunk := source.read(1 << 20):
            sink.write(chunk)
            done += len(chunk)
            if done > LARGEST_DOWNLOAD:
                raise OSError(f"{url} has more than {LARGEST_DOWNLOAD:,} bytes")
            progress(Progress(done, total, stage))
    # urllib ends a cut transfer without an error; half a data set would look like a small one.
    if total and done != total:
        raise OSError(f"{url} ended after {done} of {total} bytes")
    return target


def unzip(archive: Path, files: tuple[str, ...], folder: Path) -> None:
    """Move the named files out of an archive; BadZipFile: it is damaged, or unpacks to over `LARGEST_DOWNLOAD` bytes.

    Args:
        archive, folder: from where, to where.
        files: their names, without folders.
    """
    with zipfile.ZipFile(archive) as members:
        # By bare name into the given folder: a path in the archive ("../") leads nowhere.
        selected = [member for member in members.infolist() if Path(member.filename).name in files]
        if sum(member.file_size for member in selected) > LARGEST_DOWNLOAD:
            raise zipfile.BadZipFile("what was downloaded unpacks to more than a published data set takes")
        for member in selected:
            with members.open(member) as source, (folder / Path(member.filename).name).open("wb") as sink:
                shutil.copyfileobj(source, sink)
    archive.unlink()


def _reason(error: Exception) -> str:
    return " ".join(str(getattr(error, "reason", None) or error).split())[:200] or type(error).__name__
