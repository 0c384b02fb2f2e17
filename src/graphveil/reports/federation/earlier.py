"""Runs under other agreements in a party's folder: what they cost stays on record, because the same people paid it.

earlier/HASH/                 outcome, guarantee, ledger and card of the run under the agreement of that hash
checkpoints/HASH.published    the last round it published for: all there is of a run, or prediction, that never finished
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from graphveil.errors import GraphveilError
from graphveil.federation.core.agreement import Agreement
from graphveil.federation.core.checkpoints import published_in
from graphveil.federation.core.guarantees import ledger_of
from graphveil.federation.predicting import PREDICTIONS, prediction_hash
from graphveil.files.reading import read_json
from graphveil.files.writing import sync_folder, writing
from graphveil.methods.base.storage import DIGESTS
from graphveil.privacy import Ledger
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.privacy.ledger_file import read_ledger
from graphveil.reports.base.card import HTML, MARKDOWN
from graphveil.reports.base.parts import GUARANTEE, LEDGER, METRICS
from graphveil.reports.federation.card import OUTCOME, PREDICTED
from graphveil.reports.federation.review import PREVIOUS, agreement_in
from graphveil.runtime.words import count_of

EARLIER: Final = "earlier"
#: The outcome last: while it is there, files that a crash left behind are moved the next time.
_FILES: Final = (LEDGER, GUARANTEE, DIGESTS, MARKDOWN, HTML, PREDICTED, METRICS, OUTCOME)
_DIGITS: Final = 16


def put_aside(folder: Path, agreement: Agreement) -> None:
    """Move what a run under another agreement left in a folder into one of its own; WriteError where the disk refuses.

    Args:
        folder: of a party, or of one of its predictions.
        agreement: the present one.
    """
    hash = _agreement_of(folder)
    if hash is None or hash == agreement.hash.hex():
        return
    target = folder / EARLIER / hash[:_DIGITS]
    with writing(folder):
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in _FILES:
            if (folder / name).is_file():
                (folder / name).replace(target / name)
        sync_folder(target)


def paid_earlier(folder: Path, agreement: Agreement) -> list[str]:
    """Return a line for each run and prediction under another agreement in a folder that cost its people something."""
    lines: list[str] = []
    finished = {agreement.hash.hex()[:_DIGITS]}
    predictions = sorted((folder / PREDICTIONS).glob("*"))
    for place in (folder, *predictions):
        for path in (*sorted((place / EARLIER).glob("*")), place):
            hash, file = _agreement_of(path), path / LEDGER
            if hash is None or hash == agreement.hash.hex() or not file.is_file():
                continue
            finished |= {hash[:_DIGITS]} if place == folder else set()
            lines += _costs(f"under agreement {hash[:_DIGITS]} in {place}", read_ledger(file))
    before = folder / PREVIOUS
    for hash, rounds in published_in(folder / "checkpoints").items():
        what = f"under agreement {hash} in {folder}, which did not finish,"
        if hash in finished:
            continue
        if before.is_file() and (past := agreement_in(before)).hash.hex().startswith(hash):
            lines += _costs(what, ledger_of(past.setting, min(rounds, past.setting.publications)))
        else:
            lines.append(
                f"a run {what} published in {count_of(rounds, 'round')}: of the same people, its epsilon is added"
            )
    for place in predictions:
        hashes = {agreement.hash.hex(), *filter(None, map(_agreement_of, (place, *(place / EARLIER).glob("*"))))}
        ended = {prediction_hash(bytes.fromhex(hash), place.name).hex()[:_DIGITS] for hash in hashes}
        for hash in sorted(published_in(place / "checkpoints").keys() - ended):
            what = f"{hash} in {place}, which did not finish,"
            lines.append(f"a prediction {what} published people who joined: of the same people, its epsilon is added")
    return lines


def _costs(what: str, ledger: Ledger) -> Iterator[str]:
    for unit in dict.fromkeys(spend.unit for spend in ledger.spends):
        paid = f"{unit} epsilon {rounded_up(ledger.total(unit)[0])}"
        yield f"a run {what} cost its {paid}: of the same people, this run's is added to it"


def _agreement_of(folder: Path) -> str | None:
    """Return the hash of the agreement of a folder's outcome; None where there is no outcome, or it states no hash."""
    try:
        outcome: Any = read_json(folder / OUTCOME)
    except (OSError, ValueError, GraphveilError):
        return None
    hash = outcome.get("agreement") if isinstance(outcome, dict) else None
    return hash if isinstance(hash, str) and re.fullmatch("[0-9a-f]{64}", hash) else None
