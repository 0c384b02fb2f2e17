"""A party's finished rounds on disk, written beside and renamed, sealed, readable by their owner alone.

    <agreement>-<round>.checkpoint    tensors (safetensors), and SHA-256 of the file
    <agreement>-<n>.kept              a large tensor that stayed the same from round to round, written once
    <agreement>-<name>.aligning       a part of the alignment (`crypto.psi`), until round 1 is saved
    <agreement>.published             the last round for which this party has begun to publish, and what, by its name
    <agreement>.read                  the last round for which it has read what another party publishes

A round that runs again must round its numbers as before, or its rows would be another publication: each checkpoint
notes what computed it, and elsewhere no round that was published is run again.  Two processes of one party would
publish twice: the folder is locked.  Nothing protects from a copy of the folder that runs elsewhere, or from a folder
restored to an earlier state: neither knows what the other has published.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from graphveil.errors import InputError, ModelFileError
from graphveil.federation.crypto.masks import as_message
from graphveil.files.writing import sync_folder, whole_file, writing

# Nobody publishes before all have saved the round before, so parties are one round apart at most: two would do.
_ROUNDS = 3
# Shares of P never change and can be gigabytes: writing them again in each round would cost more than the round.
_LARGE_BYTES = 1 << 20
_SEAL = 32
#: Entries of a checkpoint beside the program's tensors: files of its large ones, and what computed it.
_LARGE_FILES, _PLATFORM = "elsewhere", "platform"


class Checkpoints:
    """The last rounds in a folder.

    Args:
        agreement_hash: hexadecimal; rounds of another agreement are not resumed.

    Raises:
        InputError: if the party runs already with this folder.
    """

    def __init__(self, folder: Path, agreement_hash: str) -> None:
        self._folder, self._agreement_hash = folder, agreement_hash[:16]
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Before any checkpoint is read: a second process would publish the same round under other masks.
            self._lock = _open_lock(folder / "lock")
        self.alignment = _AlignmentParts(self)
        self._large: dict[str, tuple[Tensor, int, str]] = {}  # name -> tensor, its version, file

    def close(self) -> None:
        """Unlock the folder for other processes."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def rounds(self) -> list[int]:
        """Return the finished rounds from which the run can resume."""
        numbers = (file.stem.removeprefix(f"{self._agreement_hash}-") for file in self._files("checkpoint"))
        return sorted(int(round) for round in numbers if round.isdecimal())

    def load(self, round: int, *, resumes: bool = True) -> Mapping[str, Tensor]:
        """Return the state after a round.

        Args:
            resumes: whether the next round is to run from it.

        Raises:
            ModelFileError: for a file missing or damaged, or for a published round that numbers here could round
                otherwise.
        """
        state = _read(self._file(round))
        with _damage_reported(self._file(round)):
            computed_by = bytes(state.pop(_PLATFORM, torch.zeros(0, dtype=torch.uint8)).numpy()).decode()
        # Other rounding makes other rows, and the next round was published: that would be a second answer.
        if resumes and computed_by != platform_facts() and self.published() > round:
            raise ModelFileError(
                f"made by {computed_by}, and this is {platform_facts()}: "
                f"round {round + 1} would be published a second time",
                where=str(self._file(round)),
                remedy="resume there, or make a new agreement for a new run",
            )
        for name, file in self._large_files(round, state.pop(_LARGE_FILES, None)).items():
            content = _read(self._folder / file)
            with _damage_reported(self._folder / file):
                state[name] = content["kept"]
            self._large[name] = (state[name], state[name]._version, file)
        return state

    def save(self, round: int, state: Mapping[str, Tensor]) -> None:
        """Save the state after a round; keep the two rounds before it.

        Args:
            round: its number, 0 before the first.
            state: name -> tensor, of the party's program.
        """
        small, files = {}, {}
        for name, value in state.items():
            if value.numel() * value.element_size() < _LARGE_BYTES:
                small[name] = value.contiguous()
            else:
                files[name] = self._write_large(name, value)
        if files:
            small[_LARGE_FILES] = as_message(json.dumps(files).encode())
        small[_PLATFORM] = as_message(platform_facts().encode())
        self._write(self._file(round), small)
        # Old rounds go only after the new one is whole on disk: a crash between the two leaves one round more.
        for old in self.rounds()[:-_ROUNDS]:
            self._file(old).unlink()
        needed: set[str] = set()
        for number in self.rounds():
            needed |= set(self._large_files(number, _read(self._file(number)).get(_LARGE_FILES)).values())
        for file in self._files("kept"):
            if file.name not in needed:
                file.unlink()
        if round:  # all have saved the state before the first round: nobody aligns again
            self.alignment.clear()

    def remove_after(self, round: int) -> None:
        """Remove all rounds after this one: their shares belong to a session that is over."""
        for later in self.rounds():
            if later > round:
                self._file(later).unlink()

    def published(self) -> int:
        """Return the last round for which this party has begun to publish, or 0; ModelFileError if it is damaged."""
        return int(_read_note(self._published_note)[0])

    def published_name(self) -> str:
        """Return the name of what was published for that round, "" for none; ModelFileError if it is damaged."""
        return _read_note(self._published_note)[1]

    def publish(self, round: int, name: str = "") -> None:
        """Note, before anything leaves, that this party publishes for a round, and what.

        Args:
            name: of the publication, hexadecimal; "" where it has none.
        """
        # Durable before a byte leaves, in one line that is replaced whole: round and name are of one publication.
        self._replace(self._published_note, f"{round} {name}".encode())
        sync_folder(self._folder)

    def last_read(self) -> int:
        """Return the last round for which this party has read a publication of another one, or 0; ModelFileError if it
        is damaged."""
        return int(_read_note(self._last_read_note)[0])

    def note_read(self, round: int) -> None:
        """Note, before it is used, that a publication for a round was read: a second one would be charged again."""
        self._replace(self._last_read_note, str(round).encode())
        sync_folder(self._folder)

    def _write_large(self, name: str, value: Tensor) -> str:
        """Write a large tensor unless it is the one that was written last; return its file's name."""
        previous = self._large.get(name)
        # By identity and torch's version counter, so that gigabytes need not be compared each round.
        same = previous is not None and previous[0] is value and previous[1] == value._version
        if previous is not None and same and (self._folder / previous[2]).exists():
            return previous[2]
        # A new name each time: checkpoints of earlier rounds still refer to the old file.
        file = f"{self._agreement_hash}-{os.urandom(6).hex()}.kept"
        self._write(self._folder / file, {"kept": value.contiguous()})
        self._large[name] = (value, value._version, file)
        return file

    def _large_files(self, round: int, entry: Tensor | None) -> dict[str, str]:
        """Return the files of a checkpoint's large tensors by name, as its entry for them says."""
        if entry is None:
            return {}
        with _damage_reported(self._file(round)):
            file_of: dict[str, str] = json.loads(bytes(entry.numpy()))
            # A path in a garbled checkpoint must not make this party read a file of another folder.
            if not all(re.fullmatch(rf"{self._agreement_hash}-[0-9a-f]+\.kept", file) for file in file_of.values()):
                raise ValueError("it names files of another run")
            return file_of

    def _write(self, file: Path, tensors: Mapping[str, Tensor]) -> None:
        data = save(dict(tensors))
        # The seal catches a full disk or a bad sector: shares off by a bit would train on in silence and open noise.
        self._replace(file, data, hashlib.sha256(data).digest())

    def _replace(self, file: Path, *parts: bytes) -> None:
        with whole_file(file, mode=0o600) as beside, beside.open("r+b") as out:
            for part in parts:
                out.write(part)

    def _files(self, kind: str) -> list[Path]:
        return list(self._folder.glob(f"{self._agreement_hash}-*.{kind}"))

    @property
    def _published_note(self) -> Path:
        return self._folder / f"{self._agreement_hash}.published"

    @property
    def _last_read_note(self) -> Path:
        return self._folder / f"{self._agreement_hash}.read"

    def _file(self, round: int) -> Path:
        return self._folder / f"{self._agreement_hash}-{round}.checkpoint"


def hash_prefixes_in(folder: Path) -> list[str]:
    """Return the beginnings of the hashes of all agreements whose rounds lie in a folder."""
    return sorted({file.stem.rpartition("-")[0] for file in folder.glob("*-*.checkpoint")})


def published_in(folder: Path) -> dict[str, int]:
    """Return the last round that was published under each agreement, by the beginning of its hash, from a folder;
    ModelFileError for a note that is damaged."""
    return {file.stem: int(_read_note(file)[0]) for file in sorted(folder.glob("*.published"))}


class _AlignmentParts(MutableMapping[str, Tensor]):
    """The parts of an alignment, each in a file of its own; a damaged one counts as missing."""

    def __init__(self, store: Checkpoints) -> None:
        self._store = store

    def __getitem__(self, name: str) -> Tensor:
        try:
            return _read(self._file(name))["part"]
        except ModelFileError as error:
            raise KeyError(name) from error

    def __setitem__(self, name: str, value: Tensor) -> None:
        self._store._write(self._file(name), {"part": value.contiguous()})

    def __delitem__(self, name: str) -> None:
        self._file(name).unlink(missing_ok=True)

    def __iter__(self) -> Iterator[str]:
        return iter([file.stem.partition("-")[2] for file in self._store._files("aligning")])

    def __len__(self) -> int:
        return len(self._store._files("aligning"))

    def clear(self) -> None:
        """Remove all parts, unread."""
        for name in self:
            del self[name]

    def _file(self, name: str) -> Path:
        return self._store._folder / f"{self._store._agreement_hash}-{name}.aligning"


def platform_facts() -> str:
    """Return in words what determines how sums of floats are rounded here."""
    vectors = torch.backends.cpu.get_cpu_capability()
    return f"torch {torch.__version__} on {platform.machine()} ({vectors}) with {torch.get_num_threads()} threads"


@contextmanager
def _damage_reported(file: Path) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        remedy = "restore it, or remove it to resume from the previous round"
        raise ModelFileError(f"the checkpoint is damaged: {error}", where=str(file), remedy=remedy) from error


def _read(file: Path) -> dict[str, Tensor]:
    try:
        data = file.read_bytes()
        if hashlib.sha256(data[:-_SEAL]).digest() != data[-_SEAL:]:
            raise SafetensorError("the seal does not match")
        state: dict[str, Tensor] = load(data[:-_SEAL])
    except (OSError, SafetensorError) as error:
        remedy = "restore it, or remove it to resume from the previous round"
        raise ModelFileError(f"the checkpoint cannot be read: {error}", where=str(file), remedy=remedy) from error
    return state


def _read_note(file: Path) -> tuple[str, str]:
    """Return the round that a note names, "0" where there is no note, and the name of what was published for it."""
    try:
        round, _, name = file.read_text().partition(" ")
    except FileNotFoundError:
        return "0", ""
    except UnicodeDecodeError:
        round = ""
    # A damaged note does not mean "nothing published": reading it as 0 would allow a second publication.
    if not re.fullmatch(r"[0-9]{1,18}", round):
        raise ModelFileError("does not name a round", where=str(file), remedy="restore it")
    return round, name.strip()


def _open_lock(file: Path) -> int | None:
    """Return the open lock file, or None on a system without file locks."""
    try:
        import fcntl
    except ImportError:
        return None
    # A lock of the system, not the file's presence: it is released when the process dies, however it dies.
    lock = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        where = str(file.parent)
        raise InputError("this party is already running", where=where, remedy="stop the other run") from error
    return lock
