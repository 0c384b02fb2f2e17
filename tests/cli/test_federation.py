"""``graphveil federation``: folders, keys, signatures, the plan, status, and what is refused."""

from __future__ import annotations

import json
import math
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from graphveil.errors import DataError
from graphveil.federation.core.messages import KINDS, Entry
from graphveil.federation.core.programs import simulate
from graphveil.federation.core.setting import MODES, OPTIONS, Setting
from graphveil.federation.party import require_agreed
from graphveil.graphs import load_graph
from graphveil.graphs.declaration import read_declaration
from graphveil.privacy import SeededRandomness
from graphveil.reports.federation.party import StatusFile, TranscriptFile, read_transcript
from graphveil.reports.federation.plan import SENT, draft
from tests.cli.conftest import Answer, Terminal

TOWN = Path(__file__).parents[2] / "docs" / "examples" / "town"
HOLDERS = ("--holder", "clinic=a.example:7701=6", "--holder", "bank=b.example:7701=4")
TYPED = (*HOLDERS, "--server", "s.example:7700", "--classes", "no,yes")


def split_and_init(type_in: Terminal, *more: str) -> Answer:
    type_in("federation", "split", "social-200", "--out", "parts", "--json")
    return type_in("federation", "init", "--from", "parts", "--out", "run", "--epsilon", "8", *more)


def one_line(answer: Answer, *parts: str) -> None:
    """Refused, on one line, nothing on stdout."""
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: ") and answer.err.count("\n") == 1
    for part in parts:
        assert part in answer.err, answer.err


def test_split_makes_folders_that_can_be_read_back(type_in: Terminal) -> None:
    found = type_in(
        "federation", "split", "social-200", "--out", "parts", "--parties", 3, "--proportion", "2:1:1", "--json"
    )
    assert [one["labels"] for one in found.json["holders"]] == [True, False, False]
    whole = load_graph("social-200")
    assert sum(one["columns"] for one in found.json["holders"]) == whole.schema.dimension
    assert sum(one["edges"] for one in found.json["holders"]) == whole.edge_index.shape[1]
    first, second = load_graph("parts/holder1"), load_graph("parts/holder2")
    assert set(map(str, first.ids)) == set(map(str, second.ids)) and list(first.ids) != list(second.ids)
    assert bool((first.y >= 0).all()) and bool((second.y < 0).all())


def test_declared_columns_stay_whole_and_travel_into_the_agreement(type_in: Terminal) -> None:
    found = type_in("federation", "split", TOWN, "--out", "parts", "--json").json
    whole = read_declaration(TOWN / "graph.toml").columns
    assert sorted(name for one in found["holders"] for name in one["names"]) == sorted(one.name for one in whole)
    type_in("federation", "init", "--from", "parts", "--out", "run", "--epsilon", "8")
    agreement = draft(Path("run/server"))[0]
    for name in ("holder1", "holder2"):
        graph = load_graph(f"parts/{name}")
        assert agreement.party(name).kinds == graph.schema.columns != ()
        require_agreed(graph, agreement, name)
    with pytest.raises(DataError, match=r"declared columns: .*, as agreed"):
        require_agreed(load_graph("parts/holder2"), agreement, "holder1")
    # Whoever holds data of their own names the file that declares it.
    typed = ["--holder", "a=x:1=parts/holder1/graph.toml", "--holder", "b=x:2=parts/holder2/graph.toml"]
    type_in("federation", "init", *typed, "--classes", "no,yes", "--out", "again", "--epsilon", "8")
    assert draft(Path("again/a"))[0].party("a").kinds == agreement.party("holder1").kinds


def test_init_makes_a_folder_a_party_with_a_key_only_its_owner_reads(type_in: Terminal) -> None:
    answer = split_and_init(type_in)
    assert answer.code == 0 and "Signed by" in answer.out and max(map(len, answer.out.splitlines())) <= 80
    for party in ("server", "holder1", "holder2"):
        folder = Path("run") / party
        assert {file.name for file in folder.iterdir()} == {
            "agreement.toml",
            "certificate.pem",
            "key.pem",
            "signatures.json",
        }
        assert stat.S_IMODE((folder / "key.pem").stat().st_mode) == 0o600
    texts = {(Path("run") / party / "agreement.toml").read_bytes() for party in ("server", "holder1", "holder2")}
    assert len(texts) == 1 and b"PRIVATE KEY" not in texts.pop()


def test_the_agreement_spells_every_setting_out(type_in: Terminal) -> None:
    split_and_init(type_in)
    text = Path("run/server/agreement.toml").read_text()
    for name in OPTIONS:
        assert f"\n{name} = " in text, name


def test_own_keys_signatures_and_the_plan_before_them(type_in: Terminal) -> None:
    certificates = []
    for name in ("server", "clinic", "bank"):
        made = type_in("federation", "key", name, "--out", f"keys/{name}", "--json").json
        certificates += ["--certificate", f"{name}={made['certificate']}"]
    answer = type_in("federation", "init", *TYPED, *certificates, "--epsilon", "4", "--out", "drafts", "--json")
    assert answer.json["unsigned"] == ["server", "clinic", "bank"]
    assert not list(Path("drafts").rglob("key.pem"))
    assert type_in("federation", "plan", "drafts/bank", "--json").json["unsigned"] == ["server", "clinic", "bank"]
    one_line(type_in("federation", "sign", "keys/bank"), "--agreement")
    one_line(type_in("federation", "sign", "keys/bank", "--agreement", "nowhere"), "cannot be read")
    text = ("--agreement", "drafts/server/agreement.toml")
    assert type_in("federation", "sign", "keys/bank", *text, "--json").json["unsigned"] == ["server", "clinic"]
    one_line(type_in("federation", "join", "keys/bank", "digits"), "has not signed")
    type_in("federation", "sign", "keys/clinic", *text)
    given = ("--with", "keys/bank/signatures.json", "--with", "keys/clinic/signatures.json")
    assert type_in("federation", "sign", "keys/server", *text, *given, "--json").json["unsigned"] == []
    assert "the run can begin" in type_in("federation", "sign", "keys/server").out
    assert type_in("federation", "plan", "keys/server", "--json").json["unsigned"] == []


def test_a_signature_of_another_text_is_refused(type_in: Terminal) -> None:
    split_and_init(type_in)
    file = Path("run/holder1/agreement.toml")
    file.write_text(file.read_text().replace("epochs = 200", "epochs = 201"))
    one_line(type_in("federation", "sign", "run/holder1"), "is invalid")
    assert type_in("federation", "plan", "run/holder1", "--json").json["unsigned"] == ["server", "holder1", "holder2"]
    one_line(type_in("federation", "join", "run/holder1", "parts/holder1"), "is invalid")


def test_epsilon_is_always_stated(type_in: Terminal) -> None:
    type_in("federation", "split", "social-200", "--out", "parts")
    one_line(type_in("federation", "init", "--from", "parts", "--out", "run"), "no epsilon", "inf")
    type_in("federation", "init", "--from", "parts", "--out", "run", "--epsilon", "inf")
    shown = type_in("federation", "plan", "run/server").out
    assert "no privacy against the server" in shown and "NOT PROTECTED" in shown


@pytest.mark.parametrize("mode", list(MODES))
def test_the_plan_says_price_noise_bytes_and_what_is_revealed(type_in: Terminal, mode: str) -> None:
    split_and_init(type_in, "--mode", mode, "--set", "epochs=20", "--set", "opened=true")
    found = type_in("federation", "plan", "run/holder1", "--nodes", 200, "--training", 50, "--json").json
    rounds = 1 if mode == "guesses" else 20
    assert found["epsilon"] == 8 and found["publications"] == rounds
    assert found["bytes_total"] == found["bytes_once"] + rounds * found["bytes_round"]
    assert found["opens"] == MODES[mode]
    answer = type_in("federation", "plan", "run/holder1", "--nodes", 200)
    shown = " ".join(answer.out.split())
    assert max(map(len, answer.out.splitlines())) <= 80
    for words in ("once,", "a round,", "Threat model", "Not signed by", *SENT[mode]):
        assert words in shown, words
    if mode == "guesses":
        assert (found["epsilon_per_publication"], found["delta"]) == (8, 0) and found["republish"] == []
        assert "8 in TOTAL for one guess a node, with no delta" in shown and f"probability {found['keep']:.3g}" in shown
        assert "all holders are given those of training nodes" in shown
        return
    noise = [one["sigma"] for one in found["republish"]]
    assert noise == sorted(noise, reverse=True) and found["sigma"] in noise
    assert found["epsilon_per_publication"] < 8 and "in TOTAL over 20 publications" in shown
    assert "at a finite epsilon use mode guesses" in shown


def test_every_kind_of_message_is_sent_in_some_mode() -> None:
    assert {kind for kinds in SENT.values() for kind in kinds} == set(KINDS)


@pytest.mark.parametrize("mode", list(MODES))
def test_a_plan_lists_the_kinds_that_are_sent(mode: str) -> None:

    from graphveil.federation.core.context import RunContext
    from graphveil.federation.core.setting import Member
    from graphveil.federation.party import holder_program, server_program
    from graphveil.federation.vertical import vertical_partition
    from graphveil.graphs import make_graph
    from graphveil.graphs.features import features_from_rows

    whole, randomness = load_graph("social-200"), SeededRandomness(1)
    parts = vertical_partition(whole, (1, 1), seed=0)
    members = tuple(Member(f"h{place}", part.shape[1], place == 0) for place, (part, _) in enumerate(parts))
    setting = Setting.of(members, len(whole.schema.classes), mode=mode, width=4, hops=1, epochs=1, opened=True)
    programs = {"server": server_program(RunContext("server", setting, randomness))}
    for member, (part, edges) in zip(members, parts, strict=True):
        graph = make_graph(features_from_rows(part), edges, whole.y, replace(whole.schema, dimension=member.columns))
        ids = [str(row) for row in range(200)]
        programs[member.name] = holder_program(RunContext(member.name, setting, randomness), graph, ids, seed=0)
    _, transcript = simulate(programs)
    assert {entry.kind for entry in transcript.entries} == set(SENT[mode]) <= set(KINDS)


def test_status_says_where_a_party_stands(type_in: Terminal) -> None:
    split_and_init(type_in)
    one_line(type_in("federation", "status", "run/holder1"), "no run has started")
    log = StatusFile(Path("run/holder1"), "holder1", 20, 8.0)
    with pytest.raises(KeyboardInterrupt), log.watched():
        log.write("running", 3, 2.5)
        raise KeyboardInterrupt
    found = type_in("federation", "status", "run/holder1", "--json").json
    assert (found["round"], found["rounds"], found["epsilon"]) == (3, 20, 2.5)
    shown = " ".join(type_in("federation", "status", "run/holder1").out.split())
    assert "2.5 of 8 spent" in shown and "the same command goes on" in shown
    StatusFile(Path("run/holder1"), "holder1", 20, math.inf).write("running", 3, math.inf)
    assert "no privacy against the server" in type_in("federation", "status", "run/holder1").out
    Path("run/holder1/status.json").write_text("{")
    one_line(type_in("federation", "status", "run/holder1"), "is not JSON")


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("split", "social-200", "--proportion", "1:2:3"), ("2 positive numbers",)),
        (("split", "nowhere"), ("nowhere",)),
        (("init",), ("no epsilon",)),
        (("init", "--epsilon", "1"), ("no holders", "--from")),
        (("init", "--epsilon", "1", "--from", "nowhere"), ("nowhere",)),
        (("init", "--epsilon", "0", *TYPED), ("epsilon",)),
        (("init", "--epsilon", "much", *TYPED), ("a number, or inf",)),
        (("init", "--epsilon", "1", "--mode", "secret", *TYPED), ("shared-linear",)),
        (("init", "--epsilon", "1", *HOLDERS), ("no classes",)),
        (("init", "--epsilon", "1", "--holder", "clinic"), ("NAME=HOST:PORT=COLUMNS",)),
        (("init", "--epsilon", "1", *TYPED[:2], "--classes", "a,b"), ("2 to 5",)),
        (("init", "--epsilon", "1", *TYPED, "--range", "low"), ("LOW,HIGH",)),
        (("init", "--epsilon", "1", *TYPED, "--set", "hop=2"), ("hops",)),
        (("init", "--epsilon", "1", *TYPED, "--mode", "paper"), ("opened = true",)),
        (("init", "--epsilon", "1", *TYPED, "--certificate", "clinic=nowhere.pem"), ("NAME=FILE",)),
        (("plan", "nowhere"), ("is missing", "init makes it")),
        (("sign", "nowhere"), ("is missing",)),
        (("serve", "nowhere"), ("is missing",)),
    ],
)
def test_refusals_take_one_line(type_in: Terminal, words: tuple[str, ...], parts: tuple[str, ...]) -> None:
    out = ("--out", "made") if words[0] in ("split", "init") else ()
    one_line(type_in("federation", *words, *out), *parts)
    assert not Path("made").exists()


def test_a_party_is_refused_before_anything_is_sent(type_in: Terminal) -> None:
    split_and_init(type_in)
    one_line(type_in("federation", "serve", "run/holder1"), "holder1 is a holder", "join for holders")
    one_line(type_in("federation", "join", "run/server", "parts/holder1"), "server is a server")
    one_line(type_in("federation", "join", "run/holder1", "digits"), "feature columns", "as agreed")
    signatures = Path("run/holder1/signatures.json")
    kept = json.loads(signatures.read_text())
    signatures.write_text(json.dumps({name: text for name, text in kept.items() if name != "holder2"}))
    one_line(type_in("federation", "join", "run/holder1", "parts/holder1"), "holder2 has not signed")


def test_certificates_must_be_of_their_parties(type_in: Terminal) -> None:
    made = type_in("federation", "key", "clinic", "--out", "key", "--json").json
    for name in ("bank", "shop"):
        typed = (*TYPED, "--certificate", f"{name}={made['certificate']}")
        one_line(type_in("federation", "init", "--epsilon", "1", *typed, "--out", "run"), "clinic")
    one_line(type_in("federation", "key", "clinic", "--out", "key"), "is not empty")


def test_a_transcript_goes_on_over_starts_and_keeps_runs_apart(type_in: Terminal) -> None:
    split_and_init(type_in)
    folder, agreement = Path("run/holder1"), draft(Path("run/holder1"))[0]
    other = replace(agreement, data=b"another")
    entry = Entry(1, "holder1", "server", "embeddings", (200, 64), 51200, "rows")
    for written in (agreement, other, agreement):
        with TranscriptFile(folder, written).recording() as record:
            record(entry)
        with (folder / "transcript.jsonl").open("a") as file:
            file.write('{"cut')  # a crash in the middle of a line
    found = read_transcript(folder, agreement)
    assert [one.kind for one in found.entries] == ["embeddings"] * 2 and found.bytes == 2 * 51200
    assert found.entries[0].epsilon == pytest.approx(agreement.setting.publication.per_round)
    assert len(read_transcript(folder, other).entries) == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"agreement": "x", "reveals": "' + 4096 * "x" + '"}', "characters"),
        ("[1]", "is no message"),
        ('{"agreement": 1}', "is no message"),
        ('{"agreement": "OURS", "round": 1}', "is no message"),
        (
            '{"agreement": "OURS", "round": 1, "sender": "a", "receiver": "b", "kind": "gossip", "shape": [1], '
            '"bytes": 8, "reveals": "all", "epsilon": 0}',
            "is no message",
        ),
        (1_000_001 * "\n", "at most 1,000,000"),
    ],
)
def test_a_transcript_that_nobody_wrote_is_refused(type_in: Terminal, line: str, said: str) -> None:
    split_and_init(type_in)
    folder, agreement = Path("run/holder1"), draft(Path("run/holder1"))[0]
    (folder / "transcript.jsonl").write_text(line.replace("OURS", agreement.hash.hex()[:16]) + "\n")
    with pytest.raises(DataError, match=said):
        read_transcript(folder, agreement)
