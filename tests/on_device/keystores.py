"""Key stores for tests: of one process, and of several."""

from __future__ import annotations

import os
import time
from functools import cached_property
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked


class Memory(KeyringBackend):
    """A key store that a test may lock or slow down."""

    priority = 5.0
    locked, seconds = False, 0.0

    @cached_property
    def entries(self) -> dict[tuple[str, str], str]:
        return {}

    def get_password(self, service: str, username: str) -> str | None:
        if self.locked:
            raise KeyringLocked(f"{username} of {service}")
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.locked:
            raise KeyringLocked(password)
        time.sleep(self.seconds)
        self.entries[service, username] = password


class Clear(Memory):
    """One that keyring does not recommend: a file in the clear has this priority."""

    priority = 0.5


class Forgetful(Memory):
    """One that keeps nothing and says that it did."""

    def set_password(self, service: str, username: str, password: str) -> None: ...


class Shelf(Memory):
    """One of several processes: a folder, named by the environment."""

    @cached_property
    def folder(self) -> Path:
        return Path(os.environ["TEST_SHELF"])

    def get_password(self, service: str, username: str) -> str | None:
        place = self.folder / f"{service}.{username}"
        return place.read_text() if place.exists() else None

    def set_password(self, service: str, username: str, password: str) -> None:
        (self.folder / f"{service}.{username}").write_text(password)
        time.sleep(0.2)


class Killed(Shelf):
    """Its program is killed as soon as the entry is there."""

    def set_password(self, service: str, username: str, password: str) -> None:
        super().set_password(service, username, password)
        os.kill(os.getpid(), 9)
