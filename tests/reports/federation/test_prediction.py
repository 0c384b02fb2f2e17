"""What a party keeps of a prediction, and what plan, status and verify say of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from graphveil.errors import DataError, InputError, ModelFileError
from graphveil.federation.core.agreement import FILE
from graphveil.federation.core.checkpoints import Checkpoints
from graphveil.federation.core.publisher import Publisher
from graphveil.federation.crypto.keys import read_identity
from graphveil.federation.crypto.masks import MaskKey
from graphveil.federation.modes.joined import Prediction
from graphveil.federation.predicting import Predicted, prediction_hash
from graphveil.federation.transport.line import Line
from graphveil.federation.transport.session import Message
from graphveil.privacy import SeededRandomness
from graphveil.privacy.ledger_file import read_ledger
from graphveil.reports.compare.finished import read_finished
from graphveil.reports.federation.card import check_party
from graphveil.reports.federation.earlier import paid_earlier
from graphveil.reports.federation.log import TRANSCRIPT, TranscriptFile
from graphveil.reports.federation.prediction import planned_prediction, published_once, write_prediction
from graphveil.reports.federation.review import agreement_in
from graphveil.reports.federation.status import StatusFile, status_of
from graphveil.reports.federation.verify import verify_log
from graphveil.reports.rewrite import rewrite
from tests.reports.federation.test_operations import message, parties

LOG = [
    message("server", "bank", "mask-keys", 1, publication=""),
    message("clinic", "bank", "new-rows", 1, publication=""),
    message("bank", "server", "noisy-share", 2),
    message("bank", "server", "noisy-share", 2, session=32 * "b", tag=64 * "2"),
]


def federation(path: Path) -> Path:
    return parties(path / "run", mode="shared-linear")


def keep(run: Path, party: str, log: list[Message], name: str = "may") -> Path:
    """Write the log of a prediction; return its folder."""
    here = run / party / "predictions" / name
    here.mkdir(parents=True, exist_ok=True)
    (here / TRANSCRIPT).unlink(missing_ok=True)
    agreement = published_once(agreement_in(run / party / FILE))
    with TranscriptFile(here, agreement, identity=read_identity(run / party)).recording() as record:
        for each in log:
            record(each)
    return here


def test_logs_of_a_prediction_agree_also_when_it_was_repeated(tmp_path: Path) -> None:
    run = federation(tmp_path)
    keep(run, "bank", LOG)
    other = keep(run, "server", [each for each in LOG if "server" in (each.entry.sender, each.entry.receiver)])
    answer = verify_log(run / "bank", other / TRANSCRIPT, prediction="may")
    assert (answer["faults"], answer["paid"], answer["published"], answer["equal"]) == ([], 1, {"bank": 1}, 3)
    assert answer["prediction"] == "may"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda log: [*log, message("bank", "server", "noisy-share", 3)], "in 2 rounds; 1 was paid for"),
        (lambda log: [*log, message("bank", "server", "noisy-share", 2, publication="x")], "was published 2 times"),
        (lambda log: [*log, message("bank", "clinic", "masked-left", 1)], "a prediction has no such message"),
        (lambda log: [*log, message("bank", "server", "new-rows", 1)], "goes from the label holder to the all others"),
    ],
)  # fmt: skip
def test_what_does_not_fit_a_prediction_is_a_fault(
    change: Callable[[list[Message]], list[Message]], fault: str, tmp_path: Path
) -> None:
    run = federation(tmp_path)
    keep(run, "bank", change(LOG))
    faults = verify_log(run / "bank", prediction="may")["faults"]
    assert any(fault in line for line in faults), faults


def test_what_is_no_prediction_is_refused(tmp_path: Path) -> None:
    bank = federation(tmp_path) / "bank"
    with pytest.raises(DataError, match=r"predictions.may: no message has been sent from here"):
        verify_log(bank, prediction="may")
    with pytest.raises(InputError, match=r"name is '\.\./bank'"):
        verify_log(bank, prediction="../bank")


def test_a_status_lists_predictions_with_people_and_price_as_the_log_has_them(tmp_path: Path) -> None:
    run = federation(tmp_path)
    StatusFile(run / "bank", "bank", 5, 4.0).write("finished", 5, 4.0)
    assert status_of(run / "bank")["predictions"] == []
    keep(run, "bank", LOG)
    june = keep(run, "bank", LOG[:1], "june")
    StatusFile(june, "bank", 2, 4.0).write("running", 1, 0.0)
    answer = status_of(run / "bank")
    june_status, may = answer["predictions"]
    assert (answer["state"], answer["messages"]) == ("finished", [])
    assert (may["prediction"], may["state"], may["people"], may["epsilon"]) == ("may", "unknown", 2, pytest.approx(4.0))
    sent = [row for row in may["messages"] if row["from"] == "bank"]
    assert [(row["kind"], row["count"]) for row in sent] == [("noisy-share", 2)] and "sum of all" in sent[0]["reveals"]
    assert (june_status["state"], june_status["round"], june_status["rounds"]) == ("running", 1, 2)
    assert (june_status["people"], june_status["epsilon"], june_status["finished"]) == (None, 0.0, False)


@pytest.mark.parametrize("epsilon", [4.0, math.inf])
def test_a_plan_of_a_prediction_names_its_price_and_its_seconds(epsilon: float, tmp_path: Path) -> None:
    agreement = agreement_in(parties(tmp_path / "run", mode="shared-linear", epsilon=epsilon) / "bank" / FILE)
    plan = planned_prediction(agreement, 1000, 50, Line.parse("100Mbit/50ms"))
    assert (plan["people"], plan["nodes"], plan["epsilon"]) == (50, 1050, epsilon)
    assert plan["epsilon_per_publication"] == pytest.approx(epsilon)
    assert plan["bytes_total"] == sum(plan["bytes_by_kind"].values())
    assert plan["seconds_prediction"] > plan["trips"] * 0.05 and "trips" not in planned_prediction(agreement, 1000, 50)


def test_a_finished_prediction_has_a_card_and_pages_take_its_folder(tmp_path: Path) -> None:
    run = federation(tmp_path)
    here, agreement = keep(run, "clinic", LOG), agreement_in(run / "clinic" / FILE)
    publisher = Publisher(agreement.setting.publication_of(1), MaskKey.fresh(SeededRandomness(1)))
    result = Prediction(torch.tensor([3, 5]), publisher, torch.tensor([[0.9, 0.1], [0.2, 0.8]]))
    answer = write_prediction(run / "clinic", "clinic", "may", agreement, Predicted(("d", "f"), result), seconds=1.0)
    assert answer["people"] == 2 and set(answer["files"]) < {file.name for file in here.iterdir()} | {"predictions.csv"}
    check_party(here)
    text = (here / "card.md").read_text()
    for part in (
        *("Privacy card: run, clinic, prediction may", "one publication of 2 people who joined after the run"),
        *("epsilon 4 each, 4 in total", "Against: the server", "their accuracy is not known", "noisy-share"),
        f"graphveil attack {run / 'clinic'} --attack",
    ):
        assert part in text, part
    assert rewrite(here)["card"] == str(here / "card.md") and len(read_ledger(here / "ledger.json").spends) == 1
    with pytest.raises(ModelFileError, match="nothing finished in"):
        read_finished(here)


def test_a_prediction_that_never_finished_is_said_before_the_next_agreement(tmp_path: Path) -> None:
    """Killed once its people were published, it leaves no outcome: joined anew they pay for the next run alone."""
    bank = federation(tmp_path) / "bank"
    before = agreement_in(bank / FILE)
    here, agreed = keep(bank.parent, "bank", LOG), replace(before, data=before.data + b"# anew")
    with closing(Checkpoints(here / "checkpoints", prediction_hash(before.hash, "may").hex())) as store:
        assert paid_earlier(bank, agreed) == []
        store.publish(2, "ab")
    assert paid_earlier(bank, before) == []
    assert ["may, which did not finish, published people" in line for line in paid_earlier(bank, agreed)] == [True]
    write_prediction(bank, "bank", "may", before, Predicted((), None), seconds=1.0)
    assert ["did not finish" in line for line in paid_earlier(bank, agreed)] == [False]
