"""The agreement: one file that all parties sign, and from which everything else follows.

    agreement.toml     parties (name, role, address, certificate; columns, labels, entries, kinds), classes, range,
                       ids, settings
    signatures.json    party -> signature of the file's bytes; a run needs all of them

A party whose file differs by a byte is refused at the first greeting: its hash is in every frame.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cryptography.x509 import load_pem_x509_certificate

from graphveil.errors import DataError, InputError
from graphveil.federation.core.id_forms import EXACT, FORMS
from graphveil.federation.core.messages import ANYBODY, LABELS
from graphveil.federation.core.setting import ENTRIES, OPTIONS, Member, Option, Setting, require_options
from graphveil.federation.crypto.keys import NAME, NAMES, Identity, fingerprint_of, name_of, require_signature
from graphveil.files.columns import Column, width_of
from graphveil.files.reading import LARGEST_TOML, parse_toml, read_bytes, read_json
from graphveil.files.serial import toml_lines
from graphveil.graphs.declared.column_declaration import declared_columns, parse_columns
from graphveil.runtime.checks import KINDS, require_choice, require_whole

FILE, SIGNATURES = "agreement.toml", "signatures.json"
_FIELDS: Mapping[str, type] = MappingProxyType(
    {"name": str, "classes": list, "range": list, "directed": bool, "ids": str, "settings": dict, "party": list}
)
_PARTY_FIELDS: Mapping[str, type] = MappingProxyType({"name": str, "role": str, "address": str, "certificate": str})
_HOLDER_FIELDS: Mapping[str, type] = MappingProxyType({"columns": int, "labels": bool, "entries": int})


@dataclass(frozen=True)
class Party:
    """One party.

    Attributes:
        role: "server" or "holder".
        address: "host:port".
        certificate: PEM.
        columns, labels: of a holder, how many feature columns it has, and whether it has the labels.
        entries: for how many connections a node there is room.
        kinds: what each of its columns may hold, where it declares that.
    """

    name: str
    role: str
    address: str
    certificate: str
    columns: int = 0
    labels: bool = False
    entries: int = ENTRIES
    kinds: tuple[Column, ...] = ()

    def plays(self, role: str) -> bool:
        """Return whether the party has a role of `messages.KINDS`; the label holder is a holder too."""
        return role in (self.role, ANYBODY) or (role == LABELS and self.labels)


@dataclass(frozen=True)
class Agreement:
    """A parsed agreement.

    Attributes:
        parties: the server first.
        low, high: range of all features.
        data: the signed bytes.
        ids: the form in which holders compare ids (`id_forms`).
    """

    name: str
    parties: tuple[Party, ...]
    classes: tuple[str, ...]
    low: float
    high: float
    directed: bool
    settings: Mapping[str, Option]
    data: bytes
    ids: str = EXACT

    @property
    def hash(self) -> bytes:
        """SHA-256 of the file."""
        return hashlib.sha256(self.data).digest()

    @property
    def setting(self) -> Setting:
        """The run's setting."""
        members = tuple(Member(p.name, p.columns, p.labels, p.entries) for p in self.parties if p.role == "holder")
        return Setting.of(members, len(self.classes), server=self.parties[0].name, **self.settings)

    @property
    def ends(self) -> Mapping[str, datetime]:
        """When each party's certificate ends, UTC."""
        return {p.name: load_pem_x509_certificate(p.certificate.encode()).not_valid_after_utc for p in self.parties}

    def party(self, name: str) -> Party:
        """Return a party by name; InputError if there is none."""
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
    settings: Mapping[str, Option],
    *,
    directed: bool = False,
    ids: str = EXACT,
) -> str:
    """Return the file's text, TOML: the same arguments give the same bytes, which all parties sign.

    Args:
        parties: the server first, with their certificates.
        low, high: declared range of all features.
        settings: option -> value, in the file's order.
        ids: the form in which holders compare ids, a name in `id_forms.FORMS`.
    """
    lines = [
        "# Signed by all parties: a changed byte is another agreement. `graphveil federation init` wrote it.",
        *toml_lines({"name": name, "classes": list(classes), "range": (low, high), "directed": directed, "ids": ids}),
        "",
        "[settings]",
        *toml_lines(settings),
    ]
    for party in parties:
        lines += ["", "[[party]]"]
        lines += toml_lines({"name": party.name, "role": party.role, "address": party.address})
        if party.role == "holder":
            lines += toml_lines({"columns": party.columns, "labels": party.labels, "entries": party.entries})
        lines += [f'certificate = """\n{party.certificate}"""']
        if party.kinds:
            lines += ["", "[party.kinds]", *toml_lines(declared_columns(party.kinds))]
    return "\n".join(lines) + "\n"


def parse_agreement(data: bytes, *, where: str = FILE) -> Agreement:
    """Return the agreement in a file's bytes, checked whole; DataError for a field missing, unknown or invalid.

    Args:
        where: the file's name, for messages.
    """
    try:
        content = parse_toml(data.decode(), where=where)
    except (DataError, UnicodeDecodeError) as error:
        raise DataError(f"is not an agreement: {getattr(error, 'what', error)}", where=where) from error
    try:
        _require_fields(content, _FIELDS, "agreement")
        parties = tuple(_party(entry) for entry in content["party"])
        low, high = (float(value) for value in content["range"])
        settings, classes, ids = content["settings"], tuple(content["classes"]), content["ids"]
        require_options(settings)
        for key, option in settings.items():
            kind = type(OPTIONS[key])
            if type(option) is not kind and not (kind is float and type(option) is int):
                raise InputError(f"{key} is {option!r}", allowed=KINDS[kind])
        parsed = Agreement(content["name"], parties, classes, low, high, content["directed"], settings, data, ids)
        require_choice(FORMS, ids=ids)
        _require_parties(parties)
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise InputError(f"range is {low:g} to {high:g}", allowed="two finite numbers, low < high")
        if not all(isinstance(label, str) for label in classes) or len({*classes}) != len(classes):
            raise InputError("class names are not distinct strings")
        if len(classes) < 2:
            raise InputError(f"classes is {list(classes)}", allowed="two or more: one class leaves nothing to predict")
        # Built once for its checks: an agreement that no run can follow is refused before anybody signs it.
        _ = parsed.setting
    # Whatever a foreign file can cause is an error of the file, never a traceback.
    except (InputError, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"is not an agreement: {error}", where=where) from error
    return parsed


def read_agreement(folder: Path) -> Agreement:
    """Return the agreement in a folder; DataError if a file is damaged, or a signature missing or wrong."""
    try:
        data = read_bytes(folder / FILE, largest=LARGEST_TOML)
        signatures = read_json(folder / SIGNATURES)
    except FileNotFoundError as error:
        raise DataError("is missing", where=str(error.filename), remedy="graphveil federation init makes it") from error
    if not isinstance(signatures, dict):
        raise DataError("is not a JSON object", where=str(folder / SIGNATURES))
    parsed = parse_agreement(data, where=str(folder / FILE))
    for party in parsed.parties:
        # All of them, this party's too: a run begins only where everybody signed these very bytes.
        digits = signatures.get(party.name)
        if not isinstance(digits, str):
            remedy = "graphveil federation sign at that party, then pass on its signatures.json"
            raise DataError(f"{party.name} has not signed", where=str(folder / SIGNATURES), remedy=remedy)
        try:
            signature = bytes.fromhex(digits)
        except ValueError as error:
            raise DataError(f"the signature of {party.name} cannot be read", where=str(folder / SIGNATURES)) from error
        require_signature(party.certificate.encode(), data, signature)
    return parsed


def sign(data: bytes, identities: tuple[Identity, ...]) -> str:
    """Return the text of `signatures.json`: party -> signature, hexadecimal.

    Args:
        data: the agreement's bytes.
        identities: of the parties that sign here.
    """
    return json.dumps({identity.name: identity.sign(data).hex() for identity in identities}, indent=1) + "\n"


def _party(entry: Mapping[str, Any]) -> Party:
    is_holder = isinstance(entry, Mapping) and entry.get("role") == "holder"
    declares = is_holder and "kinds" in entry
    types = _PARTY_FIELDS if not is_holder else {**_PARTY_FIELDS, **_HOLDER_FIELDS}
    _require_fields(entry, {**types, "kinds": dict} if declares else types, "party")
    columns = parse_columns(entry["kinds"], str(entry["name"])) if declares else ()
    return Party(**{**entry, "kinds": columns})


def _require_fields(content: Any, types: Mapping[str, type], where: str) -> None:
    if not isinstance(content, Mapping):
        raise InputError("is not a table", where=where)
    for key in types:
        if key not in content:
            raise InputError(f"{key} is missing", where=where)
    for key in content:
        if key not in types:
            raise InputError(f"{key!r} is not known", where=where, allowed=", ".join(types))
        # `type` and not `isinstance`: TOML's true is an int to Python, and would pass as one column.
        if type(content[key]) is not types[key]:
            raise InputError(f"{key} is {content[key]!r}", where=where, allowed=KINDS[types[key]])


def _require_parties(parties: tuple[Party, ...]) -> None:
    if [party.role for party in parties] != ["server", *["holder"] * (len(parties) - 1)]:
        raise InputError("the parties are not one server followed by holders")
    for party in parties:
        if not NAME.fullmatch(party.name):
            raise InputError(f"name is {party.name!r}", allowed=NAMES)
        host, _, port = party.address.rpartition(":")
        if not host or not (port.isdecimal() and 0 < int(port) < 65536):
            raise InputError(f"address is {party.address!r}", where=party.name, allowed="HOST:PORT")
        # TLS checks the name in the certificate: with another name every connection would be refused.
        if name_of(party.certificate.encode()) != party.name:
            raise InputError("its certificate names another party", where=party.name)
        if party.role == "holder":
            require_whole(1, None, party.name, columns=party.columns)
        # A column's block of another width than declared would be read as the next column's.
        if party.kinds and party.columns != width_of(party.kinds):
            allowed = f"{width_of(party.kinds)}, the width of its kinds"
            raise InputError(f"columns is {party.columns}", where=party.name, allowed=allowed)
    # One certificate for two names would let one organisation be two holders, and collude with itself.
    for field, values in (
        ("address", [party.address for party in parties]),
        ("certificate", [fingerprint_of(party.certificate.encode()) for party in parties]),
    ):
        if len({*values}) != len(parties):
            raise InputError(f"two parties share one {field}", allowed=f"a different {field} for every party")
