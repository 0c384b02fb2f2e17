"""Identities: keys that only their owner reads, signatures of one agreement by one party, certificates that fit."""

from __future__ import annotations

import base64
import datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from graphveil.errors import DataError, InputError
from graphveil.federation.crypto.keys import (
    CERTIFICATE,
    KEY,
    fingerprint_of,
    name_of,
    new_identity,
    read_identity,
    require_signature,
    write_identity,
)


def test_an_identity_comes_back_and_is_its_owners_alone(tmp_path: Path) -> None:
    identity = new_identity("holder1")
    write_identity(identity, tmp_path / "h")
    assert read_identity(tmp_path / "h") == identity
    assert (tmp_path / "h" / KEY).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "h").stat().st_mode & 0o777 == 0o700
    assert name_of(identity.certificate) == "holder1" and new_identity("holder1").fingerprint != identity.fingerprint
    with pytest.raises(DataError, match="is not a certificate"):
        fingerprint_of(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    assert "PRIVATE" not in repr(identity) and identity.private_key.decode() not in repr(identity)
    with pytest.raises(InputError, match="exists already"):
        write_identity(identity, tmp_path / "h")


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    write_identity(new_identity("a"), tmp_path / "h")
    (tmp_path / "h" / KEY).chmod(0o644)
    with pytest.raises(DataError, match="other users can read this key; chmod 600"):
        read_identity(tmp_path / "h")


def identity_files(days: int = 1, *, lock: bytes = b"") -> dict[str, bytes]:
    """Key and certificate of "a", which is good until so many days from now."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now - datetime.timedelta(days=9))
    own = builder.not_valid_after(now + datetime.timedelta(days=days)).sign(key, hashes.SHA256())
    locked = serialization.BestAvailableEncryption(lock) if lock else serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
    return {KEY: pem, CERTIFICATE: own.public_bytes(serialization.Encoding.PEM)}


#: P-256 by its number, and a number that stands for no curve.
CURVES = bytes.fromhex("06082a8648ce3d030107"), bytes.fromhex("06082a8648ce3d030166")


def on_no_curve(pem: bytes) -> bytes:
    first, *lines, last = pem.decode().splitlines()
    der = base64.b64decode("".join(lines))
    assert der.count(CURVES[0]) >= 1
    return f"{first}\n{base64.encodebytes(der.replace(*CURVES)).decode()}{last}\n".encode()


def off_the_curve(pem: bytes) -> bytes:
    """With a public key that is no point of the curve: its parts are decoded only when they are asked for."""
    certificate = x509.load_pem_x509_certificate(pem)
    encoding, form = serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    point = certificate.public_key().public_bytes(encoding, form)
    der = certificate.public_bytes(serialization.Encoding.DER).replace(point, point[:-1] + bytes([point[-1] ^ 1]))
    return f"-----BEGIN CERTIFICATE-----\n{base64.encodebytes(der).decode()}-----END CERTIFICATE-----\n".encode()


GOOD = identity_files()
DAMAGED = (b"", b"no key", b"\xff\xfe", None)
#: Files in place of good ones, and what is said.
WRONG: dict[str, tuple[dict[str, bytes | None], str]] = {
    **{f"{file}: {content!r}": ({file: content}, "key|certificate") for file in GOOD for content in DAMAGED},
    "under a password": ({KEY: identity_files(lock=b"secret")[KEY]}, "cannot be read"),
    "of another": ({CERTIFICATE: identity_files()[CERTIFICATE]}, "do not belong together"),
    "past its time": ({**identity_files(-1)}, r"the certificate was for .* to "),
    "key on no curve": ({KEY: on_no_curve(GOOD[KEY])}, "key or certificate cannot be read"),
    "a curve of nobody": ({CERTIFICATE: on_no_curve(GOOD[CERTIFICATE])}, "is not a certificate|cannot be read"),
    "a point of no curve": ({CERTIFICATE: off_the_curve(GOOD[CERTIFICATE])}, "is not a certificate|cannot be read"),
}


@pytest.mark.parametrize("what", WRONG)
def test_files_that_are_no_identity_are_refused_in_one_line(what: str, tmp_path: Path) -> None:
    changed, message = WRONG[what]
    for name, content in {**GOOD, **changed}.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
            (tmp_path / name).chmod(0o600)
    with pytest.raises(DataError, match=message) as caught:
        read_identity(tmp_path)
    assert "\n" not in str(caught.value)
    if what.startswith("a "):  # the certificate alone loads
        odd = (tmp_path / CERTIFICATE).read_bytes()
        assert x509.load_pem_x509_certificate(odd)
        with pytest.raises(DataError):
            name_of(odd)


def test_a_signature_fits_its_text_and_its_party_alone() -> None:
    a, b = new_identity("a"), new_identity("b")
    signed = a.sign(b"text")
    require_signature(a.certificate, b"text", signed)
    for certificate, text, signature in (
        (a.certificate, b"texu", signed),
        (b.certificate, b"text", signed),
        (a.certificate, b"text", signed[:-1] + bytes([signed[-1] ^ 1])),
        (a.certificate, b"text", b""),
    ):
        with pytest.raises(DataError, match=r"the signature of . is invalid"):
            require_signature(certificate, text, signature)
