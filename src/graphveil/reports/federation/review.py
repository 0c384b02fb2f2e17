"""An agreement as a person reads it before signing: who sees what, what each party pays, what has changed.

reviewed.json              hash of an agreement -> when it was reviewed in this party's folder; `sign` requires it
agreement.previous.toml    the agreement before the one in the folder
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from graphveil.errors import DataError, InputError
from graphveil.federation.core.agreement import FILE, Agreement, Party, parse_agreement
from graphveil.federation.core.guarantees import guarantee_of
from graphveil.federation.core.messages import KINDS, LABELS
from graphveil.federation.core.setting import Setting
from graphveil.federation.crypto.keys import fingerprint_of
from graphveil.files.reading import LARGEST_TOML, read_bytes, read_json
from graphveil.files.serial import to_json, toml_lines
from graphveil.files.writing import write_text
from graphveil.graphs.declared.column_declaration import declared_columns
from graphveil.reports.federation.plan import price_facts

REVIEWED, PREVIOUS = "reviewed.json", "agreement.previous.toml"
#: A certificate that ends sooner is named: a new one needs a new agreement, which all parties sign.
NEAR_END: Final = timedelta(days=30)
#: How the texts of kinds begin that reveal nothing to their reader.
_NOTHING: Final = "nothing"


def agreement_in(file: Path) -> Agreement:
    """Return the agreement in a file, whoever has signed it; DataError where it is missing, or no agreement."""
    try:
        return parse_agreement(read_bytes(file, largest=LARGEST_TOML), where=str(file))
    except FileNotFoundError as error:
        raise DataError("cannot be read", where=str(file), remedy="name the file with --agreement FILE") from error


def review_of(folder: Path, file: Path | None = None) -> dict[str, Any]:
    """Return an agreement as `--json` prints it, with what has changed since the previous one.

    Args:
        file: the agreement; None is the one in the folder.

    Raises:
        DataError: the folder is not there, or an agreement cannot be read.
    """
    if not folder.is_dir():
        raise DataError("is no folder", where=str(folder), remedy="graphveil federation key makes one")
    agreement = agreement_in(file or folder / FILE)
    setting, ends = agreement.setting, agreement.ends
    earlier = (agreement_in(path) for path in (folder / FILE, folder / PREVIOUS) if path.is_file())
    before = next((other for other in earlier if other.hash != agreement.hash), None)
    return {
        "run": agreement.name,
        "agreement": agreement.hash.hex(),
        "folder": str(folder),
        "option": _option(file),
        "parties": [
            {**_introduced(party), "ends": f"{ends[party.name]:%Y-%m-%d}", "pays": _pays(setting, party.name)}
            for party in agreement.parties
        ],
        "mode": setting.protocol.mode,
        "opens": setting.mode.opens.sentence,
        "opened": setting.protocol.opened,
        "publications": setting.publications,
        "epsilon": setting.privacy.epsilon,
        **price_facts(setting),
        "epsilon_y": setting.privacy.epsilon_y,
        "sees": list(_seen(agreement.parties, setting.mode.sent)),
        "guarantee": guarantee_of(setting).to_dict(),
        "previous": before.hash.hex() if before is not None else None,
        "changes": list(_changes(before, agreement)) if before is not None else [],
        "warnings": ending_soon(agreement),
    }


def note_reviewed(folder: Path, agreement_hash: str) -> None:
    """Note in a party's folder that an agreement was reviewed there.

    Args:
        agreement_hash: hexadecimal.
    """
    notes = {**_notes(folder), agreement_hash: datetime.now(UTC).isoformat(timespec="seconds")}
    write_text(folder / REVIEWED, to_json(notes, indent=1) + "\n")


def require_reviewed(folder: Path, data: bytes, file: Path | None = None) -> None:
    """Refuse an agreement that was not reviewed in a party's folder: InputError.

    Args:
        data: the agreement's bytes.
        file: the file they are from; None: the one in the folder.
    """
    agreement_hash = hashlib.sha256(data).hexdigest()
    if agreement_hash not in _notes(folder):
        what = f"agreement {agreement_hash[:16]} was not reviewed on this machine"
        command = f"graphveil federation review {shlex.quote(str(folder))}{_option(file)}"
        raise InputError(what, where=str(folder), remedy=f"{command} shows it")


def ending_soon(agreement: Agreement) -> list[str]:
    """Return a line for each party whose certificate ends within `NEAR_END`, or has ended."""
    now = datetime.now(UTC)
    return [
        f"the certificate of {name} {'ended' if end < now else 'ends'} on {end:%Y-%m-%d}: "
        "make a new key, and a new agreement that all sign"
        for name, end in agreement.ends.items()
        if end < now + NEAR_END
    ]


def _option(file: Path | None) -> str:
    return f" --agreement {shlex.quote(str(file))}" if file is not None else ""


def _introduced(party: Party) -> dict[str, Any]:
    """Return what an agreement says of a party, except what its columns may hold."""
    facts = {"name": party.name, "role": party.role, "address": party.address, "columns": party.columns}
    return {**facts, "labels": party.labels, "certificate": fingerprint_of(party.certificate.encode())}


def _pays(setting: Setting, name: str) -> dict[str, float]:
    """Return the epsilon of each budget that a party spends; no epsilon, no publication."""
    labels = name == setting.label_holder
    # A label holder that reads what others publish publishes none of its own.
    publishes = name in setting.names and not (labels and setting.mode.reader == "the label holder")
    rows = {"people" if setting.per_person else "rows": setting.privacy.epsilon} if publishes else {}
    return rows | ({"labels": setting.privacy.epsilon_y} if labels else {})


def _seen(parties: Iterable[Party], sent: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the kinds that each party is sent: those that reveal something, and those that reveal nothing."""
    for party in parties:
        own = {kind for kind in sent if party.labels and KINDS[kind].sender == LABELS}
        kinds = [kind for kind in sent if party.plays(KINDS[kind].receiver) and kind not in own]
        telling = [kind for kind in kinds if not KINDS[kind].reveals.startswith(_NOTHING)]
        yield {
            "party": party.name,
            "sees": [{"kind": kind, "from": KINDS[kind].sender, "reveals": KINDS[kind].reveals} for kind in telling],
            "nothing": [kind for kind in kinds if kind not in telling],
        }


def _changes(before: Agreement, now: Agreement) -> Iterator[dict[str, Any]]:
    old, new = _facts(before), _facts(now)
    for fact in {**old, **new}:
        if old.get(fact) != new.get(fact):
            yield {"fact": fact, "before": old.get(fact), "now": new.get(fact)}


def _facts(agreement: Agreement) -> dict[str, str]:
    """Return everything that an agreement says, one text a fact."""
    range_ = f"{agreement.low:g} to {agreement.high:g}"
    facts = {"run": agreement.name, "classes": ", ".join(agreement.classes), "range": range_}
    facts |= {"directed": str(agreement.directed), "parties": ", ".join(party.name for party in agreement.parties)}
    facts |= {name: str(value) for name, value in agreement.settings.items()}
    for party in agreement.parties:
        own = {**_introduced(party), "kinds": "; ".join(toml_lines(declared_columns(party.kinds)))}
        facts |= {f"{party.name}: {name}": str(value) for name, value in own.items() if name != "name"}
    return facts


def _notes(folder: Path) -> dict[str, Any]:
    """Return what was reviewed in a folder; nothing, where the file is missing."""
    try:
        content = read_json(folder / REVIEWED)
    except FileNotFoundError:
        return {}
    if not isinstance(content, dict):
        raise DataError("is not a JSON object", where=str(folder / REVIEWED), remedy="remove it, and review again")
    return content
