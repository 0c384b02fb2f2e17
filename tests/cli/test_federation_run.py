"""Commands of a whole run: a holder and the server typed at a terminal, the other parties beside them in threads."""

from __future__ import annotations

import math
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from graphveil.federation.core.agreement import read_agreement
from graphveil.federation.core.checkpoints import Checkpoints
from graphveil.federation.core.messages import KINDS
from graphveil.federation.crypto.keys import read_identity
from graphveil.federation.party import run_party
from graphveil.federation.predicting import predict_party
from graphveil.graphs import load_graph
from graphveil.reports.federation.card import check_party
from graphveil.reports.federation.log import TranscriptFile
from tests.cli.conftest import Answer, Terminal
from tests.federation.crypto.test_keys import identity_files as certificate
from tests.federation.parties import NAMES
from tests.federation.ports import free_ports
from tests.federation.test_predicting import without
from tests.pages import page
from tests.waiting import in_threads

#: Seconds that a party waits for another one; a whole run takes two.
PATIENCE = 20.0


@contextmanager
def beside(typed: str, prediction: str = "", parts: str = "parts") -> Iterator[None]:
    """All parties but the one that is typed, each in a thread."""
    failed: list[BaseException] = []

    def work(name: str) -> None:
        here = Path("run") / name
        graph = None if name == "server" else load_graph(str(Path(parts) / name))
        ids = None if graph is None else [str(value) for value in graph.ids]
        agreed, identity = read_agreement(here), read_identity(here)
        quiet: dict[str, Any] = {"note": lambda text: None, "progress": lambda step: None, "patience": PATIENCE}
        log = TranscriptFile(here / "predictions" / prediction if prediction else here, agreed, identity=identity)
        try:
            if prediction:
                predict_party(agreed, identity, here, prediction, graph=graph, ids=ids, log=log.recording, **quiet)
                return
            with log.recording() as record:
                run_party(agreed, identity, here, graph=graph, ids=ids, record=record, **quiet)
        except Exception as error:
            failed.append(error)

    with in_threads(work, [name for name in NAMES if name != typed]):
        yield
    assert failed == []


def create_run(type_in: Terminal, *settings: str, epsilon: str = "4") -> None:
    """Folders of two holders and a server, on ports that are free."""
    assert type_in("federation", "split", "social-100", "--out", "parts").code == 0
    chosen = [word for setting in ("width=4", "hops=1", "epochs=2", *settings) for word in ("--set", setting)]
    where = ("--from", "parts", "--out", "run", "--port", free_ports(3)[0])
    assert type_in("federation", "init", *where, "--epsilon", epsilon, *chosen).code == 0


def join(type_in: Terminal, *more: object) -> Answer:
    """The label holder, typed."""
    with beside("holder1"):
        return type_in("federation", "join", "run/holder1", "parts/holder1", "--patience", PATIENCE, *more)


def test_a_holder_says_each_round_and_what_it_paid(type_in: Terminal) -> None:
    create_run(type_in, "mode=individual")
    answer = join(type_in).good
    lines = answer.err.splitlines()
    assert lines[0].startswith("holder1: waiting for ") and "server" in lines[0] and "holder2" in lines[0]
    assert any(line.startswith("holder1: all ") for line in lines)
    assert any(line.startswith("holder1: round 1 of 3, epsilon ") and line.endswith(" of 4 spent") for line in lines)
    assert "holder1: round 2 of 3, epsilon 4 of 4 spent" in lines
    text = " ".join(answer.out.split())
    assert "test nodes" in text and "round" in text and "predictions.csv" in text
    check_party(Path("run/holder1"))
    status = type_in("federation", "status", "run/holder1", "--json").json
    assert (status["state"], status["round"], status["seconds_left"]) == ("finished", 3, None)
    reveals = {(row["kind"], row["to"]): row["reveals"] for row in status["messages"] if row["from"] == "holder1"}
    assert reveals["embeddings", "server"] == KINDS["embeddings"].reveals and ("hidden", "holder1") not in reveals
    text = " ".join(type_in("federation", "status", "run/holder1").out.split())
    assert "What has left this machine" in text and "server embeddings 4 x," in text
    for other in ("server", "holder2"):
        report = type_in("federation", "verify", "run/holder1", f"run/{other}/transcript.jsonl", "--json")
        assert report.code == 0 and (report.json["faults"], report.json["unread"]) == ([], 0)
        assert report.json["peer"] == other and report.json["equal"] > 2 and report.json["published"]["holder1"] == 3


@pytest.mark.slow  # three sessions over the network
@pytest.mark.parametrize("mode", ["shared-linear", "individual"])
def test_people_who_joined_are_predicted_twice_alike_and_logs_status_and_refusal_say_so(
    mode: str, type_in: Terminal
) -> None:
    create_run(type_in, f"mode={mode}")
    Path("parts").rename("now")
    without(Path("now"), Path("parts"), [str(number) for number in range(0, 100, 10)])
    assert join(type_in).code == 0
    typed, answers = ("federation", "predict", "run/holder1", "now/holder1", "--name", "may"), []
    for _ in range(2):
        with beside("holder1", "may", "now"):
            answers.append(type_in(*typed, "--patience", PATIENCE))
    assert [answer.code for answer in answers] == [0, 0], answers[0].err
    assert "holder1: round 2 of 2, epsilon 4 of 4 spent" in answers[0].err.splitlines()
    assert "prediction may of 10 new people" in answers[0].out
    (prediction,) = type_in("federation", "status", "run/holder1", "--json").json["predictions"]
    assert (prediction["state"], prediction["people"], prediction["finished"]) == ("finished", 10, True)
    text = " ".join(type_in("federation", "status", "run/holder1").out.split())
    assert "Prediction may State finished New people 10 Epsilon 4 of 4 spent, for each of them" in text
    for other in ("server", "holder2"):
        log = f"run/{other}/predictions/may/transcript.jsonl"
        answer = type_in("federation", "verify", "run/holder1", log, "--prediction", "may", "--json")
        assert answer.code == 0 and (answer.json["faults"], answer.json["unread"]) == ([], 0)
        assert answer.json["published"]["holder1"] == 1
    against = type_in("federation", "verify", "run/holder1", "run/server/transcript.jsonl", "--prediction", "may")
    assert against.code == 3 and "the log of prediction may contradicts" in against.out
    assert type_in("report", "run/holder1/predictions/may").code == 0
    # The run publishes nobody twice, whatever the prediction is named.
    with pytest.raises(AssertionError), beside("holder1", "june", "now"):
        refused = type_in(*typed[:-1], "june", "--patience", PATIENCE)
    # By whichever of the holders comes first.
    assert refused.code == 2 and re.search("0 of 100 people are new|: nobody is new", refused.err)
    june = type_in("federation", "status", "run/holder1", "--json").json["predictions"][0]
    assert (june["prediction"], june["finished"], june["epsilon"]) == ("june", False, 0.0)


def test_the_server_pays_nothing_and_predicts_nothing(type_in: Terminal) -> None:
    create_run(type_in, "mode=individual", epsilon="inf")
    with beside("server"):
        answer = type_in("federation", "serve", "run/server", "--patience", PATIENCE).good
    assert "server: round 3 of 3" in answer.err.splitlines() and "epsilon" not in answer.err
    assert answer.out.startswith("server has finished 3 rounds") and "NOT PROTECTED" in answer.out
    assert not Path("run/server/predictions.csv").exists()
    status = type_in("federation", "status", "run/server", "--json").json
    assert (status["state"], status["epsilon"], status["epsilon_total"]) == ("finished", None, None)


def test_who_waits_in_vain_is_told_and_the_status_says_it_too(type_in: Terminal) -> None:
    create_run(type_in, "mode=individual")
    answer = type_in("federation", "join", "run/holder1", "parts/holder1", "--patience", 0.2)
    assert answer.code == 2 and answer.out == ""
    status: dict[str, Any] = type_in("federation", "status", "run/holder1", "--json").json
    assert status["state"].startswith("stopped: ") and status["round"] == 0 and status["epsilon"] == 0.0
    assert answer.err.splitlines()[-1].startswith("error: ")
    assert not Path("run/holder1/outcome.json").exists() and not math.isinf(float(status["epsilon_total"]))


def test_a_certificate_near_its_end_is_named_in_the_review_at_the_start_and_by_the_status(type_in: Terminal) -> None:
    assert type_in("federation", "split", "social-100", "--out", "parts").code == 0
    own = Path("own")
    own.mkdir(mode=0o700)
    for name, content in certificate(days=20).items():
        (own / name).write_bytes(content)
        (own / name).chmod(0o600)
    ports, declared = free_ports(3), ("parts/holder1/graph.toml", "parts/holder2/graph.toml")
    holders = [
        f"--holder={name}=127.0.0.1:{port}={file}=16" for name, port, file in zip("ab", ports, declared, strict=False)
    ]
    classes = ",".join(f"community {number}" for number in range(8))
    given = ("--classes", classes, "--epsilon", 4, "--certificate", "a=own/certificate.pem")
    assert type_in("federation", "init", "--out", "run", *holders, "--server", f"127.0.0.1:{ports[2]}", *given).good
    text = ("--agreement", "run/a/agreement.toml")
    warning = "the certificate of a ends on 20"
    assert warning in " ".join(type_in("federation", "review", "own", *text).out.split())
    assert type_in("federation", "sign", "own", *text, "--with", "run/b/signatures.json").code == 0
    lines = type_in("federation", "join", "own", "parts/holder1", "--patience", 0.2).err.splitlines()
    assert lines[0].startswith(f"warning: {warning}") and lines[-1].startswith("error: ")
    assert warning in type_in("federation", "status", "own", "--json").json["warnings"][0]


def service(language: str) -> str:
    """The text of a service on the page about running a party."""
    (text,) = re.findall(rf"^```{language}\n(.*?)^```", page("federation-operations"), re.DOTALL | re.MULTILINE)
    return str(text)


def test_the_commands_of_both_services_on_the_page_run_a_party(type_in: Terminal) -> None:
    """Paths are those of the page, all else is typed as it stands there."""
    (unit,) = re.findall(r"^ExecStart=(.*)$", service("ini"), re.MULTILINE)
    (bank,) = yaml.safe_load(service("yaml"))["services"].values()
    assert shlex.split(unit)[1:] == bank["command"][1:] and unit.split()[0].endswith("/graphveil")
    mounted = [volume.split(":")[1] for volume in bank["volumes"]]
    assert [word for word in bank["command"] if word.startswith("/")] == mounted and bank["restart"].startswith(
        "on-fai"
    )
    create_run(type_in, "mode=individual")
    here = dict(zip(mounted, ("run/holder1", "parts/holder1"), strict=True))
    with beside("holder1"):
        assert type_in(*(here.get(word, word) for word in bank["command"][1:])).good


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_takes_the_unit_on_the_page(tmp_path: Path) -> None:
    unit = tmp_path / "party.service"
    # A program that is here: systemd looks whether it may be run.
    unit.write_text(service("ini").replace("/opt/graphveil/bin/graphveil", sys.executable))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (done.returncode, "party.service" in done.stderr) == (0, False), done.stderr


def test_a_prediction_that_ends_before_its_first_message_leaves_no_folder(type_in: Terminal) -> None:
    create_run(type_in, "mode=individual")
    agreed = read_agreement(Path("run/holder1"))
    with closing(Checkpoints(Path("run/holder1/checkpoints"), agreed.hash.hex())) as store:
        store.save(agreed.setting.rounds, {"people": torch.zeros(0)})
    typed = ("federation", "predict", "run/holder1", "parts/holder1", "--patience", 0.2)
    assert type_in(*typed).code == 2 and not Path("run/holder1/predictions").exists()
    Path("run/holder1/predictions/new").mkdir(parents=True)
    assert type_in(*typed).code == 2 and Path("run/holder1/predictions/new/status.json").exists()
