"""The platform's key store (Keychain, Secret Service, KWallet), where ``keyring`` is installed and finds one.

An entry is named by a hash of the secret in it, so that what somebody else puts in its place is recognised.
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
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class KeystoreEntry:
    """Where the key store keeps a secret; a device's folder holds this in the secret's place.

    Args:
        name: of the entry. store: what keyring calls the key store.
    """

    name: str
    store: str

    @classmethod
    def of(cls, data: bytes) -> KeystoreEntry:
        """Read it from the file that holds it.

        Raises:
            DeviceError: `ledger`, where the file holds something else.
        """
        try:
            return cls(**json.loads(data))
        except (ValueError, TypeError) as error:
            raise DeviceError("ledger", "the file secret holds neither a secret nor where one is") from error

    def to_bytes(self) -> bytes:
        """Return it as the file holds it, which is never as long as a secret."""
        return json.dumps(asdict(self)).encode()

    def secret(self) -> bytes:
        """Return the secret.

        Raises:
            DeviceError: `keystore`, where the store is gone or locked, or does not hold that secret.
        """
        texts = (_call(store, store.get_password, SERVICE, self.name) for store in _stores())
        secret = next((_bytes(text) for text in texts if text is not None), None)
        if secret is None or _name(secret) != self.name:
            raise DeviceError("keystore", f"your secret was put into {self.store}, and is not there")
        return secret


def keep(secret: bytes) -> KeystoreEntry | None:
    """Put a secret, 32 bytes, into the key store and read it back; None where there is no key store.

    Raises:
        DeviceError: `keystore`, where the key store is locked or does not keep the secret.
    """
    store = next(iter(_stores()), None)
    if store is None:
        return None
    entry = KeystoreEntry(_name(secret), store.name)
    _call(store, store.set_password, SERVICE, entry.name, secret.hex())
    entry.secret()
    return entry


def _stores() -> list[KeyringBackend]:
    """Return the key stores that keyring recommends here, the best first."""
    # Imported here: whoever does not need keyring does not wait for it, and it need not be installed.
    try:
        import keyring
    except ImportError:
        return []
    try:
        chosen = keyring.get_keyring()
        # Where there are several, keyring answers with a chain of all, those that it does not recommend among them.
        chain: list[KeyringBackend] = getattr(chosen, "backends", [chosen])
        return [store for store in chain if store.priority >= _RECOMMENDED]
    except Exception as error:
        raise _silent("keyring", error) from error


def _call(store: KeyringBackend, call: Callable[..., _Result], *args: str) -> _Result:
    try:
        return call(*args)
    # Stores are other programs, reached over a bus: each fails in its own way, and none may end in a traceback.
    except Exception as error:
        raise _silent(store.name, error) from error


def _silent(store: str, error: Exception) -> DeviceError:
    # The kind of the error and not its message, which may hold what the store was asked for.
    return DeviceError("keystore", f"{store} is locked or does not answer ({type(error).__name__})")


def _name(secret: bytes) -> str:
    return hashlib.sha256(b"graphveil/keystore/1" + secret).hexdigest()[:32]


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""
