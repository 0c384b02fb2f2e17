"""A party's identity: a private key, a self-signed certificate for TLS, and signatures of the agreement.

Certificates are pinned: every party knows the others' by their SHA-256 fingerprints, from the agreement, and trusts no
authority.  The private key never leaves its folder.
"""

from __future__ import annotations

import datetime
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.x509.oid import NameOID

from graphveil.errors import DataError, InputError, UsedPathError
from graphveil.files.reading import read_bytes
from graphveil.files.writing import new_folder, write_bytes

KEY, CERTIFICATE = "key.pem", "certificate.pem"
#: The names that a party may have.
NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,39}")
NAMES = "up to 40 letters, digits and -, a letter first"
_YEARS = 2
#: The prefix of signed bytes, so that a signature of an agreement is valid for nothing else.
_PURPOSE = b"graphveil/agreement/1\n"
#: The purpose of secrets that two parties share without a message.
_SHARED = b"graphveil/log/1"


@dataclass(frozen=True)
class Identity:
    """A party's name, certificate and private key, both in PEM."""

    name: str
    certificate: bytes
    private_key: bytes = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the certificate, as hexadecimal digits."""
        return fingerprint_of(self.certificate)

    def sign(self, data: bytes) -> bytes:
        return self._key.sign(_PURPOSE + data, ec.ECDSA(hashes.SHA256()))

    def shared_with(self, certificate: bytes) -> bytes:
        """Return 32 secret bytes that only this party and that of a certificate, PEM, can compute; DataError for a
        foreign kind of key.
        """
        key = _load(certificate).public_key()
        if not isinstance(key, ec.EllipticCurvePublicKey):
            raise DataError("is not a key made by graphveil", where=CERTIFICATE)
        shared = self._key.exchange(ec.ECDH(), key)
        return HKDF(hashes.SHA256(), 32, salt=None, info=_SHARED).derive(shared)

    @property
    def _key(self) -> ec.EllipticCurvePrivateKey:
        key = serialization.load_pem_private_key(self.private_key, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise DataError("is not a key made by graphveil", where=KEY)
        return key


def new_identity(name: str) -> Identity:
    """Return a fresh key and certificate for a party; InputError for a name that no agreement can have."""
    if not NAME.fullmatch(name):
        raise InputError(f"name is {name[:80]!r}", allowed=NAMES)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # A day of tolerance for the organisations' clocks.
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=365 * _YEARS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        # Every certificate is its own root of trust, and must say that it may sign one; it can sign no other.
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    return Identity(
        name, certificate.public_bytes(encoding), key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain)
    )


def write_identity(identity: Identity, folder: Path) -> None:
    """Write key and certificate into a folder that its owner alone can read.

    Args:
        folder: a new one, or InputError is raised; WriteError if the disk refuses.
    """
    if os.path.lexists(folder):
        raise UsedPathError("exists already", where=str(folder), remedy="name a new folder")
    # Closed to others before the key is written, so that they can never read it.
    with new_folder(folder, owner_only=True) as inside:
        write_bytes(inside / CERTIFICATE, identity.certificate)
        write_bytes(inside / KEY, identity.private_key, mode=0o600)


def read_identity(folder: Path) -> Identity:
    """Return the identity in a folder; DataError if key or certificate is missing, damaged or expired, they are of two
    parties, or other users can read the key."""
    file = folder / KEY
    try:
        certificate, key = read_bytes(folder / CERTIFICATE), read_bytes(file)
        private = serialization.load_pem_private_key(key, password=None)
    except FileNotFoundError as error:
        raise DataError("is missing", where=str(error.filename), remedy="graphveil federation init makes it") from error
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:  # TypeError: it is under a password
        raise DataError("key or certificate cannot be read", where=str(folder)) from error
    # Whoever reads this key can impersonate the party: refused, since nobody reads a service's warnings.
    if os.name == "posix" and file.stat().st_mode & 0o077:
        raise DataError("other users can read this key", where=str(file), remedy=f"chmod 600 {file}")
    public = _load(certificate)
    # Otherwise TLS would fail at every peer, with messages that blame the wrong party.
    if private.public_key() != public.public_key():
        raise DataError("key and certificate do not belong together", where=str(folder))
    if not public.not_valid_before_utc <= datetime.datetime.now(datetime.UTC) <= public.not_valid_after_utc:
        raise DataError(
            f"the certificate was for {public.not_valid_before_utc:%Y-%m-%d} to {public.not_valid_after_utc:%Y-%m-%d}",
            where=str(folder / CERTIFICATE),
            remedy="check the clock, or make a new key and a new agreement",
        )
    return Identity(name_of(certificate), certificate, key)


def fingerprint_of(certificate: bytes) -> str:
    """Return SHA-256 of a PEM certificate; DataError if it cannot be read."""
    return _load(certificate).fingerprint(hashes.SHA256()).hex()


def require_signature(certificate: bytes, data: bytes, signature: bytes) -> None:
    """Refuse a signature that is not the certificate holder's: DataError.

    Args:
        certificate: PEM, of the signer.
        signature: DER.
    """
    signer = _load(certificate)
    key = signer.public_key()
    try:
        if not isinstance(key, ec.EllipticCurvePublicKey):
            raise InvalidSignature
        key.verify(signature, _PURPOSE + data, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature as error:
        raise DataError(f"the signature of {_name_of(signer)} is invalid", where="agreement") from error


def name_of(certificate: bytes) -> str:
    """Return the name in a PEM certificate; DataError if it cannot be read, or has no name."""
    return _name_of(_load(certificate))


def _load(certificate: bytes) -> x509.Certificate:
    try:
        loaded = x509.load_pem_x509_certificate(certificate)
        # Parts are decoded only when they are accessed.
        _ = loaded.public_key(), loaded.subject, loaded.not_valid_before_utc, loaded.not_valid_after_utc
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise DataError("is not a certificate", where="certificate") from error
    return loaded


def _name_of(certificate: x509.Certificate) -> str:
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if not names:
        raise DataError("has no name", where="certificate")
    return str(names[0].value)
