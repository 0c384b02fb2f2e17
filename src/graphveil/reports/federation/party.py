"""What a party of a federation keeps of a finished run: guarantee, ledger, transcript, predictions.

guarantee.json     what is protected from whom      ledger.json   of a holder      card.md, .html   all in words
transcript.jsonl   every message of every start, see `log`
outcome.json       what the command prints with --json: promise, cost, and at the label holder accuracy
predictions.csv    at the label holder: id, class, probability of each class, for all aligned nodes
earlier/           the same of runs under other agreements, see `earlier`
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import polars as pl
from torch import Tensor

from graphveil.errors import WriteError
from graphveil.federation.core.agreement import Agreement
from graphveil.federation.core.guarantees import guarantee_of, ledger_of
from graphveil.federation.modes.labels import LabelHead
from graphveil.federation.party import Outcome
from graphveil.files.outputs import Output, Say
from graphveil.files.serial import to_json
from graphveil.files.writing import new_folder, write_text
from graphveil.methods.runs.intervals import interval
from graphveil.reports.base.card import HTML, MARKDOWN
from graphveil.reports.base.parts import GUARANTEE, LEDGER, METRICS, writing_part
from graphveil.reports.base.predictions import spreadsheet_table
from graphveil.reports.federation.card import OUTCOME as OUTCOME
from graphveil.reports.federation.card import PREDICTED, rewrite_party
from graphveil.reports.federation.earlier import put_aside
from graphveil.reports.federation.log import TRANSCRIPT, by_kind, read_log
from graphveil.reports.federation.plan import price_facts


def write_outcome(
    folder: Path,
    name: str,
    agreement: Agreement,
    outcome: Outcome,
    *,
    ids: Sequence[str] | None = None,
    seconds: float = 0.0,
    say: Say = lambda line: None,
) -> dict[str, Any]:
    """Write what a finished party keeps, in its folder or else beside it; return what `--json` prints.

    Args:
        ids: of the label holder's rows.
        say: hears what went beside the folder.
    """
    run = (name, agreement, outcome, ids, seconds)
    try:
        # A ledger that was written over would forget what the same people have paid before.
        put_aside(folder, agreement)
        answer = _write_outcome(folder, folder, *run)
        rewrite_party(folder)
        return answer
    except WriteError as error:

        def make(path: Path) -> dict[str, Any]:
            with new_folder(path, owner_only=True) as beside:
                return _write_outcome(beside, path, *run)

        with ExitStack() as stack:
            return Output(folder, say, stack).write_beside(error, make)


def _write_outcome(
    folder: Path,
    lasting: Path,
    name: str,
    agreement: Agreement,
    outcome: Outcome,
    ids: Sequence[str] | None,
    seconds: float,
) -> dict[str, Any]:
    """Write all but the card into a folder that will be at `lasting`."""
    setting = agreement.setting
    guarantee, transcript = guarantee_of(setting), read_log(folder / TRANSCRIPT, agreement).transcript
    publisher = outcome.publisher
    published = publisher.times_published if publisher is not None else setting.publications
    answer: dict[str, Any] = {
        "run": agreement.name,
        "agreement": agreement.hash.hex(),
        "party": name,
        "mode": setting.protocol.mode,
        "opens": setting.mode.opens.sentence,
        "opened": setting.protocol.opened,
        "rounds": setting.rounds,
        "publications": setting.publications,
        "epsilon": setting.privacy.epsilon,
        **price_facts(setting),
        "epsilon_y": setting.privacy.epsilon_y,
        "guarantee": guarantee.to_dict(),
        "guarantee_sentence": guarantee.sentence(),
        "messages": by_kind(transcript),
        "bytes_sent": sum(e.bytes for e in transcript.entries if e.sender == name),
        "bytes_received": sum(e.bytes for e in transcript.entries if e.receiver == name),
        "seconds": seconds,
        "folder": str(lasting),
        "files": [TRANSCRIPT, GUARANTEE, LEDGER, MARKDOWN, HTML, OUTCOME],
    }
    if outcome.head is not None and outcome.order is not None:
        answer |= _predicted(folder, agreement, outcome.head, [(ids or [])[row] for row in outcome.order.tolist()])
        answer["files"] += [PREDICTED, METRICS]
    contents = {OUTCOME: answer, GUARANTEE: guarantee.to_dict(), LEDGER: ledger_of(setting, published).to_dict()}
    with writing_part(folder, {name: to_json(content, indent=1) + "\n" for name, content in contents.items()}):
        pass
    return answer


def write_predictions(folder: Path, agreement: Agreement, ids: Sequence[str], probabilities: Tensor) -> None:
    """Write predictions.csv.

    Args:
        agreement: names the classes.
        probabilities: float32 [rows, classes].
    """
    names = [agreement.classes[place] for place in probabilities.argmax(dim=1).tolist()]
    columns = {f"p_{label}": probabilities[:, place].tolist() for place, label in enumerate(agreement.classes)}
    text = spreadsheet_table(pl.DataFrame({"id": list(ids), "class": names, **columns})).write_csv()
    write_text(folder / PREDICTED, text)


def _predicted(folder: Path, agreement: Agreement, head: LabelHead, ids: list[str]) -> dict[str, Any]:
    probabilities = head.predictions
    if probabilities is None:
        return {}
    write_predictions(folder, agreement, ids, probabilities)
    rows = "\n".join(to_json(row) for row in head.history)
    write_text(folder / METRICS, rows + "\n")
    hit = (probabilities.argmax(dim=1) == head.labels)[head.test]
    facts: dict[str, Any] = {"test_nodes": len(hit), "best_round": head.best}
    if len(hit):
        facts["accuracy"] = interval([hit.numpy()]).to_dict()
    if len(hit) and head.alone is not None:
        alone = (head.alone.argmax(dim=1) == head.labels)[head.test]
        facts["accuracy_alone"] = interval([alone.numpy()]).to_dict()
    return facts
