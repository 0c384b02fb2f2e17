"""A party's finished rounds on disk, written beside and renamed, readable by their owner alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from graphveil.errors import ModelFileError

_KEPT = 3


class Checkpoints:
    """The last rounds in a folder.

    Args:
        agreement: hash of the agreement; rounds of another are not gone on from.
    """

    def __init__(self, folder: Path, agreement: str) -> None:
        self._folder, self._agreement = folder, agreement
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def rounds(self) -> list[int]:
        """Return the finished rounds that can be gone on from."""
        return sorted(
            int(file.stem.split("-")[1]) for file in self._folder.glob(f"{self._agreement[:16]}-*.safetensors")
        )

    def load(self, round: int) -> Mapping[str, Tensor]:
        """Return the state after a round.

        Raises:
            ModelFileError: the file is missing or damaged.
        """
        file = self._file(round)
        try:
            state: dict[str, Tensor] = load_file(file)
        except (OSError, SafetensorError) as error:
            raise ModelFileError("the checkpoint cannot be read", where=str(file), remedy="remove it") from error
        return state

    def save(self, round: int, state: Mapping[str, Tensor]) -> None:
        """Keep the state after a round, and the two before it."""
        beside = self._folder / f".{round}.partial"
        data = save({name: value.contiguous() for name, value in state.items()})
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.rename(self._file(round))
        for old in self.rounds()[:-_KEPT]:
            self._file(old).unlink()

    def _file(self, round: int) -> Path:
        return self._folder / f"{self._agreement[:16]}-{round}.safetensors"
