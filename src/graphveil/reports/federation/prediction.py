"""A prediction for people who joined after a run: its plan, and what a party keeps of it in PARTY/predictions/NAME.

status.json                   how far the prediction is, see `status`
guarantee.json, ledger.json   one more publication, of new people's rows alone      card.md, .html   all in words
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
from graphveil.federation.crypto.psi import alignment_bytes, alignment_trips
from graphveil.federation.modes.programs import prediction_traffic, programs_of
from graphveil.federation.predicting import PREDICTIONS, Predicted
from graphveil.federation.transport.line import Line
from graphveil.files.serial import to_json
from graphveil.reports.base.card import HTML, MARKDOWN
from graphveil.reports.base.parts import GUARANTEE, LEDGER, writing_part
from graphveil.reports.federation.card import PREDICTED, rewrite_party
from graphveil.reports.federation.earlier import put_aside
from graphveil.reports.federation.log import TRANSCRIPT, by_kind, read_log
from graphveil.reports.federation.party import OUTCOME, write_predictions
from graphveil.reports.federation.plan import price_facts


def published_once(agreement: Agreement) -> Agreement:
    """Return the agreement with the settings that a prediction is charged by: one publication, and no label spend."""
    return replace(agreement, settings={**agreement.settings, "epochs": 1, "republish": 1, "epsilon_y": math.inf})


def planned_prediction(agreement: Agreement, nodes: int, people: int, line: Line | None = None) -> dict[str, Any]:
    """Return what a prediction would send and cost, as `--json` prints it.

    Args:
        nodes: how many people all holders shared in the run.
        people: how many joined since.
        line: between every two parties, for the seconds that messages take.
    """
    setting, everybody = published_once(agreement).setting, nodes + people
    traffic = prediction_traffic(setting, everybody, people)
    holders = len(setting.names)
    answer = {
        "people": people,
        "nodes": everybody,
        "epsilon": setting.privacy.epsilon,
        **price_facts(setting),
        "bytes_total": traffic.total,
        "bytes_by_kind": traffic.by_kind(),
        "bytes_alignment": alignment_bytes(holders, everybody)[0],
    }
    if line is not None:
        answer["trips"] = trips = programs_of(setting).sizes.trips_later(setting)
        answer["seconds_alignment"] = line.seconds(alignment_bytes(holders, everybody)[1], alignment_trips(holders))
        answer["seconds_prediction"] = line.seconds(max(traffic.by_link().values()), trips)
    return answer


def write_prediction(
    folder: Path, party: str, name: str, agreement: Agreement, predicted: Predicted, *, seconds: float
) -> dict[str, Any]:
    """Write what a finished party keeps of a prediction; return what `--json` prints.

    Args:
        name: of the prediction.
    """
    setting, here = agreement.setting, folder / PREDICTIONS / name
    put_aside(here, agreement)
    # Of every start, as it was logged: a prediction that was resumed sent less in the last one.
    guarantee, transcript = guarantee_of(setting), read_log(here / TRANSCRIPT, agreement).transcript
    entries = transcript.entries
    charged = published_once(agreement).setting
    answer: dict[str, Any] = {
        "run": agreement.name,
        "agreement": agreement.hash.hex(),
        "party": party,
        "prediction": name,
        "publications": 1,
        "people": next((entry.shape[0] for entry in entries if entry.kind == "new-rows"), None),
        "mode": setting.protocol.mode,
        "opens": setting.mode.opens.sentence,
        "epsilon": setting.privacy.epsilon,
        "epsilon_y": setting.privacy.epsilon_y,
        **price_facts(charged),
        "guarantee": guarantee.to_dict(),
        "guarantee_sentence": guarantee.sentence(),
        "messages": by_kind(transcript),
        "bytes_sent": sum(entry.bytes for entry in entries if entry.sender == party),
        "bytes_received": sum(entry.bytes for entry in entries if entry.receiver == party),
        "seconds": seconds,
        "folder": str(here),
        "files": [TRANSCRIPT, GUARANTEE, LEDGER, MARKDOWN, HTML, OUTCOME],
    }
    if predicted.result is not None and predicted.result.probabilities is not None:
        write_predictions(here, agreement, predicted.ids, predicted.result.probabilities)
        answer["files"].append(PREDICTED)
    ledger = ledger_of(charged, charged.publications_of(party))
    contents = {OUTCOME: answer, GUARANTEE: guarantee.to_dict(), LEDGER: ledger.to_dict()}
    with writing_part(here, {file: to_json(content, indent=1) + "\n" for file, content in contents.items()}):
        pass
    rewrite_party(here)
    return answer
