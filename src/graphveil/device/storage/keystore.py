"""The platform's key store (Keychain, Secret Service, KWallet), where ``keyring`` is installed and finds one.

An entry is named by a hash of the secret in it: what somebody else put in its place is no secret of ours.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from graphveil.device.errors import DeviceError

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

SERVICE: Final = "graphveil-device"
#: From which priority on keyring recommends a backend; below are files in the clear, and backends that keep nothing.
_RECOMMENDED: Final = 1.0
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Kept:
    """What a device's folder holds in the place of its secret.

    Args:
        name: of the entry. store: what keyring calls the key store.
    """

    name: str
    store: str

    @classmethod
    def of(cls, data: bytes) -> Kept:
        """Read a mark.

        Raises:
            DeviceError: `ledger`, where it is none.
        """
        try:
            return cls(**json.loads(data))
        except (ValueError, TypeError) as error:
            raise DeviceError("ledger", "the file secret holds neither a secret nor where one is") from error

    def to_bytes(self) -> bytes:
        """Return the mark, which is never as long as a secret."""
        return json.dumps(asdict(self)).encode()

    def secret(self) -> bytes:
        """Return the secret.

        Raises:
            DeviceError: `keystore`, where the store is gone or locked, or holds no such secret.
        """
        found = (_asked(one, one.get_password, SERVICE, self.name) for one in _stores())
        secret = next((_bytes(text) for text in found if text is not None), None)
        if secret is None or _name(secret) != self.name:
            raise DeviceError("keystore", f"your secret was put into {self.store}, and is not there")
        return secret


def keep(secret: bytes) -> Kept | None:
    """Put a secret into the key store and read it back; None where there is no key store.

    Args:
        secret: 32 bytes.

    Raises:
        DeviceError: `keystore`, where there is one that is locked or does not keep it.
    """
    store = next(iter(_stores()), None)
    if store is None:
        return None
    kept = Kept(_name(secret), store.name)
    _asked(store, store.set_password, SERVICE, kept.name, secret.hex())
    kept.secret()
    return kept


def _stores() -> list[KeyringBackend]:
    """The key stores that keyring recommends here, the first one first."""
    # Only here: whoever has no need of it does not wait for it, and it need not be installed.
    try:
        import keyring
    except ImportError:
        return []
    try:
        chosen = keyring.get_keyring()
        # Where there are several, keyring answers with a chain of all, those that it does not recommend among them.
        chain: list[KeyringBackend] = getattr(chosen, "backends", [chosen])
        return [one for one in chain if one.priority >= _RECOMMENDED]
    except Exception as error:
        raise _silent("keyring", error) from error


def _asked(store: KeyringBackend, ask: Callable[..., _Found], *words: str) -> _Found:
    try:
        return ask(*words)
    # Stores are programs of others, reached over a bus: each fails in its own way, and none of them may end in a trace.
    except Exception as error:
        raise _silent(store.name, error) from error


def _silent(store: str, error: Exception) -> DeviceError:
    # The kind of the error and not its words: they may hold what the store was asked for.
    return DeviceError("keystore", f"{store} is locked or does not answer ({type(error).__name__})")


def _name(secret: bytes) -> str:
    return hashlib.sha256(b"graphveil/keystore/1" + secret).hexdigest()[:32]


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""
