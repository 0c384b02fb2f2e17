"""Identities: keys that only their owner reads, signatures of one agreement by one party, certificates that fit."""

from __future__ import annotations

import base64
import datetime
import os
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
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
    made = new_identity("holder1")
    write_identity(made, tmp_path / "h")
    assert read_identity(tmp_path / "h") == made
    assert (tmp_path / "h" / KEY).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "h").stat().st_mode & 0o777 == 0o700
    assert name_of(made.certificate) == "holder1" and new_identity("holder1").fingerprint != made.fingerprint
    with pytest.raises(DataError, match="is not a certificate"):
        fingerprint_of(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    assert "PRIVATE" not in repr(made) and made.private_key.decode() not in repr(made)
    with pytest.raises(InputError, match="exists already"):
        write_identity(made, tmp_path / "h")


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    write_identity(new_identity("a"), tmp_path / "h")
    (tmp_path / "h" / KEY).chmod(0o644)
    with pytest.raises(DataError, match="other users can read this key; chmod 600"):
        read_identity(tmp_path / "h")


@pytest.mark.parametrize("file", [KEY, CERTIFICATE])
@pytest.mark.parametrize("content", [b"", b"no key", b"\xff\xfe", None])
def test_a_damaged_or_missing_file_is_named(file: str, content: bytes | None, tmp_path: Path) -> None:
    write_identity(new_identity("a"), tmp_path / "h")
    if content is None:
        (tmp_path / "h" / file).unlink()
    else:
        (tmp_path / "h" / file).write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_identity(tmp_path / "h")
    assert "\n" not in str(caught.value)


def test_a_key_under_a_password_and_a_foreign_certificate_are_refused(tmp_path: Path) -> None:
    write_identity(new_identity("a"), tmp_path / "h")
    locked = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    (tmp_path / "h" / KEY).write_bytes(locked)
    with pytest.raises(DataError, match="cannot be read"):
        read_identity(tmp_path / "h")
    write_identity(new_identity("a"), tmp_path / "i")
    (tmp_path / "i" / CERTIFICATE).write_bytes(new_identity("a").certificate)
    with pytest.raises(DataError, match="do not belong together"):
        read_identity(tmp_path / "i")


def test_a_certificate_past_its_time_is_refused(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")])
    then = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=3)
    old = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(then)
        .not_valid_after(then + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    (tmp_path / CERTIFICATE).write_bytes(old.public_bytes(serialization.Encoding.PEM))
    plain = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with os.fdopen(os.open(tmp_path / KEY, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
        file.write(plain)
    with pytest.raises(DataError, match=r"the certificate was for .* to "):
        read_identity(tmp_path)


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


@pytest.mark.parametrize("what", ["curve", "point"])
def test_a_certificate_whose_key_is_none_is_refused(tmp_path: Path, what: str) -> None:
    """Its parts are decoded only when they are asked for: the certificate alone loads."""
    write_identity(new_identity("a"), tmp_path / "h")
    file = tmp_path / "h" / CERTIFICATE
    found = x509.load_pem_x509_certificate(file.read_bytes())
    point = found.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    old, new = {
        "curve": (bytes.fromhex("06082a8648ce3d030107"), bytes.fromhex("06082a8648ce3d030166")),
        "point": (point, point[:-1] + bytes([point[-1] ^ 1])),
    }[what]
    der = found.public_bytes(serialization.Encoding.DER).replace(old, new)
    odd = base64.encodebytes(der).decode()
    file.write_text(f"-----BEGIN CERTIFICATE-----\n{odd}-----END CERTIFICATE-----\n")
    assert x509.load_pem_x509_certificate(file.read_bytes())
    for read in (lambda: read_identity(tmp_path / "h"), lambda: name_of(file.read_bytes())):
        with pytest.raises(DataError, match=r"is not a certificate|cannot be read"):
            read()


def test_a_key_on_a_curve_that_nobody_supports_is_refused(tmp_path: Path) -> None:
    """The curve's number in the key is replaced by one that stands for none."""
    write_identity(new_identity("a"), tmp_path / "h")
    file = tmp_path / "h" / KEY
    der = serialization.load_pem_private_key(file.read_bytes(), None).private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    curve = bytes.fromhex("06082a8648ce3d030107")
    assert der.count(curve) == 1
    odd = base64.encodebytes(der.replace(curve, curve[:-1] + b"\x66")).decode()
    file.write_text(f"-----BEGIN PRIVATE KEY-----\n{odd}-----END PRIVATE KEY-----\n")
    with pytest.raises(UnsupportedAlgorithm):
        serialization.load_pem_private_key(file.read_bytes(), None)
    with pytest.raises(DataError, match="key or certificate cannot be read"):
        read_identity(tmp_path / "h")
