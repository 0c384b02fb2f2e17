"""What a party keeps of a prediction for people who joined after a run, in PARTY/predictions/NAME.

guarantee.json, ledger.json   one more publication, of new people's rows alone
predictions.csv               at the label holder: id, class, probability of each class, for new people
transcript.jsonl              every message of every start, see `log`
outcome.json                  what the command prints with --json
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphveil.federation.core.agreement import Agreement
from graphveil.federation.core.guarantees import guarantee_of, ledger_of
from graphveil.federation.core.setting import MODES
from graphveil.federation.predicting import PREDICTIONS, Predicted
from graphveil.reports.base.files import to_json
from graphveil.reports.base.parts import GUARANTEE, LEDGER, writing_part
from graphveil.reports.federation.log import TRANSCRIPT, by_kind
from graphveil.reports.federation.party import OUTCOME, write_predictions
from graphveil.reports.federation.plan import priced


def published_once(agreement: Agreement) -> Agreement:
    """Return the agreement as a prediction charges it: one publication, and nothing of the labels."""
    return replace(agreement, settings={**agreement.settings, "epochs": 1, "republish": 1, "epsilon_y": math.inf})


def write_prediction(
    folder: Path, party: str, name: str, agreement: Agreement, predicted: Predicted, *, seconds: float
) -> dict[str, Any]:
    """Write what a finished party keeps of a prediction; return what `--json` prints.

    Args:
        folder: the party's.
        party: its name.
        name: of the prediction.
        agreement: of all parties.
        predicted: the result.
        seconds: how long it took.
    """
    setting, here = agreement.setting, folder / PREDICTIONS / name
    guarantee, entries = guarantee_of(setting), predicted.transcript.entries
    charged = published_once(agreement).setting
    answer: dict[str, Any] = {
        "run": agreement.name,
        "party": party,
        "prediction": name,
        "people": len(predicted.ids) if predicted.result is not None else None,
        "mode": setting.protocol.mode,
        "opens": MODES[setting.protocol.mode],
        "epsilon": setting.privacy.epsilon,
        "epsilon_y": setting.privacy.epsilon_y,
        **priced(charged),
        "guarantee": guarantee.to_dict(),
        "guarantee_sentence": guarantee.sentence(),
        "messages": by_kind(predicted.transcript),
        "bytes_sent": sum(entry.bytes for entry in entries if entry.sender == party),
        "bytes_received": sum(entry.bytes for entry in entries if entry.receiver == party),
        "seconds": seconds,
        "folder": str(here),
        "files": [TRANSCRIPT, GUARANTEE, LEDGER, OUTCOME],
    }
    if predicted.result is not None and predicted.result.probabilities is not None:
        write_predictions(here, agreement, predicted.ids, predicted.result.probabilities)
        answer["files"].append("predictions.csv")
    contents = {OUTCOME: answer, GUARANTEE: guarantee.to_dict(), LEDGER: ledger_of(charged, 1).to_dict()}
    with writing_part(here, {file: to_json(content, indent=1) + "\n" for file, content in contents.items()}):
        pass
    return answer
