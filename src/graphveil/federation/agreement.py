"""The agreement: one file that all parties sign, and that everything else follows from.

    agreement.toml     parties (name, role, address, certificate, columns, labels), classes, feature range, settings
    signatures.json    party -> signature of the file's bytes; a run needs all of them

A party whose file differs by a byte is refused at the first greeting: its hash is in every frame.
"""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from graphveil.errors import DataError, InputError
from graphveil.federation.keys import Identity, require_signature
from graphveil.federation.setting import Member, Setting

FILE, SIGNATURES = "agreement.toml", "signatures.json"
_SETTINGS = tuple(f.name for f in fields(Setting) if f.name not in ("members", "classes", "server"))


@dataclass(frozen=True)
class Party:
    """One party: role "server" or "holder", address "host:port", certificate in PEM; columns and labels of a holder."""

    name: str
    role: str
    address: str
    certificate: str
    columns: int = 0
    labels: bool = False


@dataclass(frozen=True)
class Agreement:
    """What was agreed, with the bytes that were signed.

    Attributes:
        name: of the run. parties: the server first. classes: in order. low, high: declared range of all features.
        directed: whether edges have a direction. settings: fields of `Setting`.
    """

    name: str
    parties: tuple[Party, ...]
    classes: tuple[str, ...]
    low: float
    high: float
    directed: bool
    settings: Mapping[str, Any]
    data: bytes

    @property
    def hash(self) -> bytes:
        """SHA-256 of the file."""
        return hashlib.sha256(self.data).digest()

    @property
    def setting(self) -> Setting:
        """The run's setting."""
        members = tuple(Member(p.name, p.columns, p.labels) for p in self.parties if p.role == "holder")
        return Setting(members, len(self.classes), server=self.parties[0].name, **self.settings)

    def party(self, name: str) -> Party:
        """Return a party by name.

        Raises:
            InputError: no such party.
        """
        for party in self.parties:
            if party.name == name:
                return party
        raise InputError(f"party {name!r} is not in the agreement", allowed=", ".join(p.name for p in self.parties))


def agreement_text(
    name: str,
    parties: tuple[Party, ...],
    classes: tuple[str, ...],
    low: float,
    high: float,
    settings: Mapping[str, Any],
    *,
    directed: bool = False,
) -> str:
    """Return the file's text."""
    lines = [
        "# Signed by all parties: a changed byte is another agreement. `graphveil federation init` wrote it.",
        f"name = {_toml(name)}",
        f"classes = {_toml(list(classes))}",
        f"range = {_toml([low, high])}",
        f"directed = {_toml(directed)}",
        "",
        "[settings]",
        *(f"{key} = {_toml(value)}" for key, value in settings.items()),
    ]
    for party in parties:
        lines += ["", "[[party]]", f"name = {_toml(party.name)}", f"role = {_toml(party.role)}"]
        lines += [f"address = {_toml(party.address)}"]
        if party.role == "holder":
            lines += [f"columns = {party.columns}", f"labels = {_toml(party.labels)}"]
        lines += [f'certificate = """\n{party.certificate}"""']
    return "\n".join(lines) + "\n"


def parse_agreement(data: bytes, *, where: str = FILE) -> Agreement:
    """Return the agreement in a file's bytes, checked whole.

    Raises:
        DataError: what is missing, unknown or does not fit.
    """
    try:
        content = tomllib.loads(data.decode())
        parties = tuple(_party(entry) for entry in content["party"])
        low, high = (float(value) for value in content["range"])
        classes = tuple(str(value) for value in content["classes"])
        found = Agreement(
            str(content["name"]),
            parties,
            classes,
            low,
            high,
            bool(content["directed"]),
            dict(content["settings"]),
            data,
        )
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"is no agreement: {error}", where=where) from error
    if [party.role for party in parties] != ["server", *["holder"] * (len(parties) - 1)]:
        raise DataError("parties are not one server and then holders", where=where)
    for key in found.settings:
        if key not in _SETTINGS:
            raise DataError(f"setting {key!r} is not known", where=where, allowed=", ".join(_SETTINGS))
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise DataError(f"range is {low:g} to {high:g}", where=where, allowed="two finite numbers, low < high")
    try:
        _ = found.setting
    except (InputError, TypeError) as error:
        raise DataError(str(error), where=where) from error
    return found


def read_agreement(folder: Path) -> Agreement:
    """Return the agreement in a folder after checking every party's signature.

    Raises:
        DataError: a file is missing or damaged, or a signature is missing or wrong.
    """
    try:
        data = (folder / FILE).read_bytes()
        signatures = json.loads((folder / SIGNATURES).read_text())
    except FileNotFoundError as error:
        raise DataError("is missing", where=str(error.filename), remedy="graphveil federation init makes it") from error
    except ValueError as error:
        raise DataError("is no JSON", where=str(folder / SIGNATURES)) from error
    found = parse_agreement(data, where=str(folder / FILE))
    for party in found.parties:
        signed = signatures.get(party.name)
        if not isinstance(signed, str):
            raise DataError(f"{party.name} has not signed", where=str(folder / SIGNATURES))
        require_signature(party.certificate.encode(), data, bytes.fromhex(signed))
    return found


def sign(data: bytes, identities: tuple[Identity, ...]) -> str:
    """Return the text of `signatures.json` for these parties."""
    return json.dumps({identity.name: identity.sign(data).hex() for identity in identities}, indent=1) + "\n"


def _party(entry: Mapping[str, Any]) -> Party:
    role = str(entry["role"])
    columns, labels = (int(entry["columns"]), bool(entry["labels"])) if role == "holder" else (0, False)
    return Party(str(entry["name"]), role, str(entry["address"]), str(entry["certificate"]), columns, labels)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return "inf" if math.isinf(value) else repr(value)
    if isinstance(value, list):
        return f"[{', '.join(_toml(entry) for entry in value)}]"
    return json.dumps(value)
