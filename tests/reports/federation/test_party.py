"""What a party keeps while it runs and when it has finished: status, and outcome with its files."""

from __future__ import annotations

import csv
import json
import math
import shutil
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.errors import DataError, ModelFileError
from graphveil.federation.core.agreement import Agreement, Party, read_agreement
from graphveil.federation.core.guarantees import guarantee_of, ledger_of
from graphveil.federation.core.messages import KINDS, Entry, Transcript
from graphveil.federation.core.setting import Setting
from graphveil.federation.modes.labels import LabelHead
from graphveil.federation.party import Outcome
from graphveil.federation.transport.session import Message
from graphveil.files.serial import to_json
from graphveil.privacy import SeededRandomness
from graphveil.reports.base.parts import writing_part
from graphveil.reports.federation.card import check_party
from graphveil.reports.federation.earlier import paid_earlier
from graphveil.reports.federation.log import TRANSCRIPT, TranscriptFile, by_kind, read_log
from graphveil.reports.federation.party import write_outcome
from graphveil.reports.federation.status import STATUS, StatusFile, read_status
from graphveil.reports.rewrite import rewrite
from tests.cli.conftest import Terminal, type_in  # noqa: F401
from tests.reports.base.test_parts import accepted
from tests.reports.federation.test_card import MEMBERS, party

CLASSES = ("healthy", "=ill", "unknown")
N = 12
LABELS = torch.arange(N) % 3
TRAIN, VAL, TEST = torch.arange(N) < 4, (torch.arange(N) >= 4) & (torch.arange(N) < 6), torch.arange(N) >= 6
IDS = [f"person-{row}" for row in range(N)]


def agreement(**options: Any) -> Agreement:
    """An agreement of a clinic with the labels and a bank, whose text is of no matter here."""
    settings = {"epsilon": 8.0, "width": 4, "epochs": 3, **options}
    parties = [Party("server", "server", "s.example:1", "")]
    parties += [Party(member.name, "holder", "h.example:1", "", member.columns, member.labels) for member in MEMBERS]
    return Agreement("clinic-and-bank", tuple(parties), CLASSES, 0.0, 1.0, False, settings, b"agreed")


def head(setting: Setting, logits: Tensor | None = None) -> LabelHead:
    label_head = LabelHead(LABELS, TRAIN, VAL, TEST)
    label_head.open(setting, randomness=SeededRandomness(1), generator=torch.Generator().manual_seed(0))
    if logits is not None:
        label_head.note_predictions(logits, 1)
    return label_head


def logits(right: Tensor) -> Tensor:
    """Scores by which the nodes of `right` are answered rightly and all others wrongly."""
    answer = torch.where(right, LABELS, (LABELS + 1) % 3)
    return torch.nn.functional.one_hot(answer, 3).float() * 4


def outcome(head: LabelHead | None, order: Tensor | None) -> Outcome:
    nobody: Any = object()
    return Outcome(order, head, nobody, Transcript(()))


def finished(folder: Path, **options: Any) -> dict[str, Any]:
    """What the label holder keeps of a run whose best round was right at four of six test nodes."""
    agreed = agreement(**options)
    right = TRAIN | VAL | (torch.arange(N) >= 8)
    folder.mkdir()
    with TranscriptFile(folder, agreed).recording() as record:
        for sender, receiver, kind, size in SAID:
            record(Message(Entry(1, sender, receiver, kind, (size,), size, KINDS[kind].reveals)))
    order = torch.arange(N).flip(0)
    done = outcome(head(agreed.setting, logits(right)), order)
    return write_outcome(folder, "clinic", agreed, done, ids=IDS, seconds=2.5)


SAID = (
    ("clinic", "server", "noisy-share", 100),
    ("bank", "server", "noisy-share", 50),
    ("clinic", "server", "noisy-share", 100),
    ("server", "clinic", "hidden", 7),
    ("clinic", "server", "hidden-gradient", 9),
)


def test_the_label_holder_keeps_what_it_measured(tmp_path: Path) -> None:
    answer = finished(tmp_path / "clinic")
    assert (answer["test_nodes"], answer["best_round"]) == (6, 1)
    assert answer["accuracy"]["mean"] == pytest.approx(4 / 6) and "accuracy_alone" not in answer
    assert (answer["bytes_sent"], answer["bytes_received"], answer["seconds"]) == (209, 7, 2.5)
    messages = by_kind(Transcript(tuple(Entry(1, *ends, kind, (size,), size, "") for *ends, kind, size in SAID)))
    counted = [(message["kind"], message["from"], message["count"], message["bytes"]) for message in messages]
    assert counted[:2] == [("noisy-share", "clinic", 2, 200), ("noisy-share", "bank", 1, 50)] and len(counted) == 4
    assert (answer["run"], answer["party"], answer["mode"]) == ("clinic-and-bank", "clinic", "shared-linear")
    for name in answer["files"]:
        assert (tmp_path / "clinic" / name).is_file(), name
    check_party(tmp_path / "clinic")
    lines = (tmp_path / "clinic" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == [1]


def test_the_holders_own_network_is_measured_on_the_same_nodes(tmp_path: Path) -> None:
    agreed = agreement(mode="guesses")
    label_head = head(agreed.setting, logits(TEST))
    label_head.alone = logits(torch.arange(N) == 6)
    answer = write_outcome(tmp_path, "clinic", agreed, outcome(label_head, torch.arange(N)), ids=IDS)
    assert (answer["accuracy"]["mean"], answer["accuracy_alone"]["mean"]) == (1.0, pytest.approx(1 / 6))


def test_without_test_nodes_there_is_no_accuracy(tmp_path: Path) -> None:
    agreed = agreement()
    label_head = LabelHead(LABELS, TRAIN, VAL, torch.zeros(N, dtype=torch.bool))
    label_head.open(agreed.setting, randomness=SeededRandomness(1), generator=torch.Generator().manual_seed(0))
    label_head.note_predictions(logits(VAL), 1)
    label_head.alone = logits(VAL)
    answer = write_outcome(tmp_path, "clinic", agreed, outcome(label_head, torch.arange(N)), ids=IDS)
    assert answer["test_nodes"] == 0 and not {"accuracy", "accuracy_alone"} & set(answer)


def test_predictions_stand_in_the_order_of_all_by_the_holders_own_ids(tmp_path: Path) -> None:
    """Row i of all parties is row order[i] of the holder's own folder."""
    finished(tmp_path / "clinic")
    with (tmp_path / "clinic" / "predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == IDS[::-1]
    # The second class would be a formula in a spreadsheet, so its cells are quoted and still tell the class.
    assert [row["class"].lstrip("'") for row in rows[8:]] == [CLASSES[int(LABELS[place])] for place in range(8, N)]
    probabilities = [[float(row[name]) for name in row if name.startswith("p_")] for row in rows]
    assert all(sum(row) == pytest.approx(1) and len(row) == 3 for row in probabilities)
    assert "=ill" not in {row["class"] for row in rows}


def test_what_an_earlier_agreement_cost_stays_on_record_and_is_said(tmp_path: Path) -> None:
    """Its ledger written over, the folder would say that the same people paid for the last run alone."""
    folder = tmp_path / "clinic"
    first = finished(folder, epsilon_y=3.0)
    paid = json.loads((folder / "ledger.json").read_text())
    agreed, nobody = replace(agreement(epsilon=2.0), data=b"agreed anew"), outcome(None, None)
    assert first["agreement"] == agreement(epsilon_y=3.0).hash.hex() != agreed.hash.hex()
    assert paid_earlier(folder, agreement(epsilon_y=3.0)) == []
    warnings = paid_earlier(folder, agreed)
    assert [line.partition(":")[0].rpartition(" cost its ")[2] for line in warnings] == [
        "rows epsilon 8",
        "labels epsilon 3",
    ]
    write_outcome(folder, "clinic", agreed, nobody)
    write_outcome(folder, "clinic", agreed, nobody)  # run again, it is the same run
    aside = folder / "earlier" / first["agreement"][:16]
    assert json.loads((aside / "ledger.json").read_text()) == paid and (aside / "predictions.csv").is_file()
    assert json.loads((folder / "outcome.json").read_text())["epsilon"] == 2.0
    assert [path.name for path in (folder / "earlier").iterdir()] == [aside.name]
    assert paid_earlier(folder, agreed) == warnings


def test_the_server_keeps_a_promise_and_no_predictions(tmp_path: Path) -> None:
    answer = write_outcome(tmp_path, "server", agreement(), outcome(None, None))
    assert "predictions.csv" not in answer["files"] and not (tmp_path / "predictions.csv").exists()
    assert not {"accuracy", "test_nodes", "best_round"} & set(answer)
    guarantee = json.loads((tmp_path / "guarantee.json").read_text())
    assert guarantee == answer["guarantee"] and guarantee["epsilon"] == pytest.approx(8.0, rel=1e-3)
    for epsilon, epsilon_y in ((math.inf, math.inf), (math.inf, 2.0), (8.0, 2.0)):
        agreed = agreement(epsilon=epsilon, epsilon_y=epsilon_y)
        place = tmp_path / f"{epsilon}-{epsilon_y}"
        write_outcome(place, "server", agreed, outcome(None, None))
        stored = json.loads((place / "outcome.json").read_text(), parse_constant=pytest.fail)
        assert [float(stored[name]) for name in ("epsilon", "epsilon_y")] == [epsilon, epsilon_y]


def test_a_transcript_prices_what_publishes_rows_and_not_what_labels_pay_for(tmp_path: Path) -> None:
    agreed = agreement()
    with TranscriptFile(tmp_path, agreed).recording() as record:
        for kind in KINDS:
            record(Message(Entry(1, "clinic", "server", kind, (2, 0), 0, KINDS[kind].reveals)))
    priced = {entry.kind: entry.epsilon for entry in read_log(tmp_path / TRANSCRIPT, agreed).transcript.entries}
    each = agreed.setting.publication.per_round
    assert {kind for kind, epsilon in priced.items() if epsilon} == {"noisy-share", "embeddings", "guesses"}
    assert priced["noisy-share"] == pytest.approx(each) and set(priced) == set(KINDS)
    bare = agreement(epsilon=math.inf)
    entry = Entry(1, "clinic", "server", "embeddings", (2, 4), 32, "rows")
    assert read_log(tmp_path / "bare" / TRANSCRIPT, bare).transcript.entries == ()
    (tmp_path / "bare").mkdir()
    with TranscriptFile(tmp_path / "bare", bare).recording() as record:
        record(Message(entry))
    assert read_log(tmp_path / "bare" / TRANSCRIPT, bare).transcript.entries == (replace(entry, epsilon=math.inf),)


def status(folder: Path, price: float | None = 8.0) -> StatusFile:
    return StatusFile(folder, "clinic", 20, price)


def test_a_party_waits_runs_and_finishes(tmp_path: Path) -> None:
    log = status(tmp_path)
    with log.watched():
        stored = read_status(tmp_path)
        assert (stored["state"], stored["round"], stored["epsilon"]) == ("waiting for the others", 0, 0.0)
        log.write("running", 20, 8.0)
    stored = read_status(tmp_path)
    assert (stored["state"], stored["round"], stored["epsilon"]) == ("finished", 20, 8.0)
    assert datetime.fromisoformat(stored["time"]).tzinfo is not None
    with pytest.raises(ZeroDivisionError), log.watched():
        raise ZeroDivisionError
    assert read_status(tmp_path)["state"] == "interrupted; the same command goes on"
    status(tmp_path, math.inf).write("running", 3, math.inf)
    assert read_status(tmp_path)["epsilon_total"] == "inf"
    status(tmp_path, None).write("running", 3, 0.0)
    stored = read_status(tmp_path)
    assert stored["epsilon"] is None and stored["epsilon_total"] is None


def test_a_refusal_stays_readable_beside_what_was_spent(tmp_path: Path) -> None:
    log = status(tmp_path)
    with pytest.raises(DataError), log.watched():
        log.write("running", 3, 2.5)
        raise DataError("has fewer rows", where="bank")
    stored = read_status(tmp_path)
    assert stored["state"] == "stopped: bank: has fewer rows"
    assert (stored["round"], stored["epsilon"], stored["epsilon_total"]) == (3, 2.5, 8.0)


@pytest.mark.parametrize(
    "change",
    [
        {"party": 3},
        {"state": None},
        {"round": True},
        {"reader": None},
        {"epsilon": None},
        {"epsilon": "much"},
        {"epsilon_total": "-inf"},
    ],
)
def test_a_status_that_nobody_wrote_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="no run has started here"):
        read_status(tmp_path)
    status(tmp_path).write("running", 3, 2.5)
    whole = read_status(tmp_path)
    for content in ({**whole, **change}, [], {key: value for key, value in whole.items() if key not in change}):
        (tmp_path / STATUS).write_text(json.dumps(content))
        with pytest.raises(DataError, match=r"status\.json: .*run the party again"):
            read_status(tmp_path)


def test_what_a_party_paid_for_lies_beside_a_folder_that_takes_nothing(tmp_path: Path) -> None:
    folder, agreed, messages = tmp_path / "clinic", agreement(), list[str]()
    folder.touch()
    done = outcome(head(agreed.setting), torch.arange(N))
    answer = write_outcome(folder, "clinic", agreed, done, ids=IDS, say=messages.append)
    assert answer["folder"] == str(tmp_path / "clinic-2") and len(messages) == 1
    names = {file.name for file in (tmp_path / "clinic-2").iterdir()}
    assert names >= {"outcome.json", "guarantee.json", "ledger.json"}


# ---- files are checked against each other and against the agreement ----


@pytest.fixture
def party_folder(tmp_path: Path) -> Path:
    """A finished party, with digests."""
    folder = party(tmp_path / "run" / "clinic")
    outcome = json.loads((folder / "outcome.json").read_text())
    texts = {"outcome.json": to_json(outcome), "guarantee.json": to_json(outcome["guarantee"])}
    with writing_part(folder, {**texts, "ledger.json": (folder / "ledger.json").read_text()}):
        pass
    return folder


@pytest.mark.parametrize("name", ["outcome.json", "guarantee.json", "ledger.json"])
def test_every_edited_field_is_refused(party_folder: Path, name: str) -> None:
    check_party(party_folder)
    assert accepted(party_folder, party_folder / name, check=check_party) == []
    if name == "ledger.json":
        rewrite(party_folder)
        ledger = json.loads((party_folder / name).read_text())
        (party_folder / name).write_text(json.dumps({**ledger, "spends": []}))
        with pytest.raises(ModelFileError, match=r"ledger\.json: was changed since it was written"):
            rewrite(party_folder)
    (party_folder / name).unlink()
    with pytest.raises(ModelFileError):
        check_party(party_folder)


def test_a_party_without_digests_is_held_against_the_agreement(type_in: Terminal) -> None:  # noqa: F811
    """What older versions wrote: epsilon, delta and which spends there must be follow from what all have signed."""
    assert type_in("federation", "split", "social-200", "--out", "parts").code == 0
    assert type_in("federation", "init", "--from", "parts", "--out", "fed", "--epsilon", 8).code == 0
    folder = Path("fed/holder1")
    setting = read_agreement(folder).setting
    (folder / "ledger.json").write_text(to_json(ledger_of(setting, setting.publications).to_dict()))
    guarantee = guarantee_of(setting).to_dict()
    outcome = {"epsilon": 8.0, "guarantee": guarantee, "mode": setting.protocol.mode}
    for name, content in (("guarantee.json", guarantee), ("outcome.json", outcome)):
        (folder / name).write_text(to_json(content))
    check_party(folder)
    ledger = json.loads((folder / "ledger.json").read_text())
    lower, lowered = {**guarantee, "epsilon": 0.001}, {**outcome, "epsilon": 0.001}
    raised = {**ledger, "budget": [{**ledger["budget"][0], "epsilon": 9.0}, *ledger["budget"][1:]]}
    for change in (
        {"outcome": lowered},
        {"guarantee": lower},
        {"guarantee": lower, "outcome": {**lowered, "guarantee": lower}},
        {"ledger": {**ledger, "spends": []}},
        {"ledger": raised},
    ):
        forged = Path(shutil.copytree(folder, "forged"))
        for name, content in change.items():
            (forged / f"{name}.json").write_text(to_json(content))
        with pytest.raises(ModelFileError):
            check_party(forged)
        answer = type_in("compare-runs", forged)
        assert (answer.code, answer.out) == (2, "")
        shutil.rmtree(forged)
