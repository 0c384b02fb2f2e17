"""``graphveil federation``: folders, keys, signatures, the plan, status, and what is refused."""

from __future__ import annotations

import json
import math
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import RenderableType

from graphveil.cli.federation import screens as screens
from graphveil.errors import DataError
from graphveil.federation.core.messages import Entry
from graphveil.federation.core.setting import OPTIONS
from graphveil.federation.modes.programs import traffic_of
from graphveil.federation.party import require_agreed
from graphveil.federation.transport.line import Line
from graphveil.federation.transport.session import Message
from graphveil.graphs import load_graph
from graphveil.graphs.declared.declaration import read_declaration
from graphveil.reports.federation.log import TRANSCRIPT, TranscriptFile, read_log
from graphveil.reports.federation.plan import draft, plan_of
from tests.cli.conftest import Answer, Terminal, text_of
from tests.graphs.made import TOML
from tests.graphs.made import folder as own_folder
from tests.reports.federation.test_party import agreement, finished

TOWN = Path(__file__).parents[2] / "docs" / "examples" / "town"
HOLDERS = ("--holder", "clinic=a.example:7701=6", "--holder", "bank=b.example:7701=4")
TYPED = (*HOLDERS, "--server", "s.example:7700", "--classes", "no,yes")


def split_and_init(type_in: Terminal, *more: str) -> Answer:
    type_in("federation", "split", "social-200", "--out", "parts", "--json")
    return type_in("federation", "init", "--from", "parts", "--out", "run", "--epsilon", "8", *more)


def test_declared_columns_stay_whole_and_travel_into_the_agreement(type_in: Terminal) -> None:
    answer = type_in("federation", "split", TOWN, "--out", "parts", "--json").json
    whole = read_declaration(TOWN / "graph.toml").columns
    assert sorted(name for part in answer["holders"] for name in part["names"]) == sorted(part.name for part in whole)
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


#: Declarations of holders: of another range, of another direction, and of no width.
OTHERS = {
    "wide": "range = [-1, 1]\ndirected = false\ndimension = 4",
    "one-way": "range = [0, 1]\ndirected = true\ndimension = 4",
    "narrow": "range = [0, 1]\ndirected = false",
}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("split", "social-200", "--proportion", "1:2:3"), "2 positive numbers with colons between; or --parties 3"),
        (("split", "social-200", "--proportion", "1:half"), "2 positive numbers"),
        (("init", "--epsilon", "1"), "no holders"),
        (("init", "--epsilon", "1", *HOLDERS), "no classes"),
        (("init", *TYPED), "the total of all publications of one holder"),
        (("init", *TYPED, "--epsilon", "1", "--set", "opened=perhaps"), "opened is 'perhaps'"),
        (("init", *TYPED, "--epsilon", "1", "--set", "hops=few"), "hops is 'few'"),
        (("init", *TYPED, "--epsilon", "1", "--certificate", "clinic=nowhere.pem"), "NAME=FILE"),
        (("init", *TYPED, "--epsilon", "1", "--holder", "shop=c:1=wide"), "--range -1,1, if all holders"),
        (("init", *TYPED, "--epsilon", "1", "--holder", "shop=c:1=one-way"), "add --directed"),
        (("init", *TYPED, "--epsilon", "1", "--directed", "--holder", "shop=c:1=wide", "--range", "-1,1"), "leave out"),
        (("init", *TYPED, "--epsilon", "1", "--holder", "shop=c:1=narrow"), "declare dimension"),
        (("plan", "nowhere"), "init makes it"),
        (("plan", "nowhere", "--line", "fast"), "line 'fast'; allowed: RATE/DELAY"),
    ],
    ids=lambda part: " ".join(part[-2:]) if isinstance(part, tuple) else "",
)
def test_what_cannot_be_agreed_is_refused_in_one_line(type_in: Terminal, words: tuple[str, ...], message: str) -> None:
    for name, declaration in OTHERS.items():
        Path(name).write_text(f'private = ["edges"]\nclasses = ["no", "yes"]\n{declaration}')
    out = ("--out", "made") if words[0] in ("split", "init") else ()
    type_in("federation", *words, *out).refused(message)
    assert not Path("made").exists()


def test_a_certificate_of_nobody_and_a_key_that_was_not_agreed_are_refused(type_in: Terminal) -> None:
    for name, folder in (("shop", "shop"), ("clinic", "agreed"), ("clinic", "other")):
        type_in("federation", "key", name, "--out", folder)
    given = (*TYPED, "--epsilon", "1", "--out", "run", "--certificate")
    type_in("federation", "init", *given, "shop=shop/certificate.pem").refused("allowed: server, clinic, bank")
    assert type_in("federation", "init", *given, "clinic=agreed/certificate.pem").code == 0
    text = ("--agreement", "run/server/agreement.toml")
    for folder in ("other", "agreed"):
        assert type_in("federation", "review", folder, *text).code == 0
    type_in("federation", "sign", "other", *text).refused("the key is not the agreed one of clinic")
    assert type_in("federation", "sign", "agreed", *text, "--json").json["signed"] == ["clinic"]
    # The same agreement once more keeps what was signed.
    assert type_in("federation", "sign", "agreed", *text, "--json").json["unsigned"] == ["server", "bank"]
    Path("others.json").write_text('{"bank": "no number"}')
    type_in("federation", "sign", "agreed", "--with", "others.json").refused("others.json: holds no signatures")


def test_holders_that_declare_different_ranges_or_directions_are_no_federation(type_in: Terminal) -> None:
    for name, directed in (("holder1", "false"), ("holder2", "true")):
        toml = TOML.replace("directed = false", f'directed = {directed}\nname = "{name}"')
        own_folder(Path("parts") / name, graph__toml=toml)
    answer = type_in("federation", "init", "--from", "parts", "--out", "run", "--epsilon", "8")
    answer.refused("parts/holder2: directed is True; allowed: False, as holder1 declares")


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
    assert all(f"\n{name} = " in Path("run/server/agreement.toml").read_text() for name in OPTIONS)
    texts = {(Path("run") / party / "agreement.toml").read_bytes() for party in ("server", "holder1", "holder2")}
    assert len(texts) == 1 and b"PRIVATE KEY" not in texts.pop()


def test_own_keys_signatures_and_the_plan_before_them(type_in: Terminal) -> None:
    certificates = []
    for name in ("server", "clinic", "bank"):
        key = type_in("federation", "key", name, "--out", f"keys/{name}", "--json").json
        certificates += ["--certificate", f"{name}={key['certificate']}"]
    answer = type_in("federation", "init", *TYPED, *certificates, "--epsilon", "4", "--out", "drafts", "--json")
    assert answer.json["unsigned"] == ["server", "clinic", "bank"]
    assert not list(Path("drafts").rglob("key.pem"))
    assert type_in("federation", "plan", "drafts/bank", "--json").json["unsigned"] == ["server", "clinic", "bank"]
    for name in ("bank", "shop"):
        typed = (*TYPED, "--certificate", f"{name}=keys/clinic/certificate.pem", "--out", "other")
        type_in("federation", "init", "--epsilon", "1", *typed).refused("clinic")
    type_in("federation", "key", "clinic", "--out", "keys/clinic").refused("is not empty")
    type_in("federation", "sign", "keys/bank").refused("--agreement")
    type_in("federation", "sign", "keys/bank", "--agreement", "nowhere").refused("cannot be read")
    text = ("--agreement", "drafts/server/agreement.toml")
    type_in("federation", "sign", "keys/bank", *text).refused("was not reviewed on this machine", "review keys/bank")
    for name in ("server", "clinic", "bank"):
        assert type_in("federation", "review", f"keys/{name}", *text).code == 0
    assert type_in("federation", "sign", "keys/bank", *text, "--json").json["unsigned"] == ["server", "clinic"]
    type_in("federation", "join", "keys/bank", "digits").refused("has not signed")
    type_in("federation", "sign", "keys/clinic", *text)
    given = ("--with", "keys/bank/signatures.json", "--with", "keys/clinic/signatures.json")
    assert type_in("federation", "sign", "keys/server", *text, *given, "--json").json["unsigned"] == []
    assert "the run can begin" in type_in("federation", "sign", "keys/server").out
    assert type_in("federation", "plan", "keys/server", "--json").json["unsigned"] == []


def test_a_party_is_refused_before_anything_is_sent(type_in: Terminal) -> None:
    split_and_init(type_in)
    type_in("federation", "serve", "run/holder1").refused("holder1 is a holder", "join for holders")
    type_in("federation", "join", "run/server", "parts/holder1").refused("server is a server")
    type_in("federation", "join", "run/holder1", "digits").refused("feature columns", "as agreed")
    signatures = Path("run/holder1/signatures.json")
    signed = json.loads(signatures.read_text())
    signatures.write_text(json.dumps({name: text for name, text in signed.items() if name != "holder2"}))
    type_in("federation", "join", "run/holder1", "parts/holder1").refused("holder2 has not signed")
    signatures.write_text(json.dumps(signed))
    file = Path("run/holder1/agreement.toml")
    file.write_text(file.read_text().replace("epochs = 200", "epochs = 201"))
    type_in("federation", "sign", "run/holder1").refused("is invalid")
    unsigned = type_in("federation", "plan", "run/holder1", "--json").json["unsigned"]
    assert unsigned == ["server", "holder1", "holder2"]
    type_in("federation", "join", "run/holder1", "parts/holder1").refused("is invalid")


def test_a_transcript_goes_on_over_starts_and_keeps_runs_apart(type_in: Terminal) -> None:
    split_and_init(type_in)
    folder, agreement = Path("run/holder1"), draft(Path("run/holder1"))[0]
    other = replace(agreement, data=b"another")
    entry = Entry(1, "holder1", "server", "embeddings", (200, 64), 51200, "rows")
    for written in (agreement, other, agreement):
        with TranscriptFile(folder, written).recording() as record:
            record(Message(entry))
        with (folder / "transcript.jsonl").open("a") as file:
            file.write('{"cut')  # a crash in the middle of a line
    log = read_log(folder / TRANSCRIPT, agreement)
    transcript = log.transcript
    assert [entry.kind for entry in transcript.entries] == ["embeddings"] * 2 and transcript.bytes == 2 * 51200
    assert log.torn == 3 and transcript.entries[0].epsilon == pytest.approx(agreement.setting.publication.per_round)
    assert len(read_log(folder / TRANSCRIPT, other).messages) == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"agreement": "x", "reveals": "' + 4096 * "x" + '"}', "characters"),
        ('{"agreement": "OURS", "round": 1}', "is no message"),
        (
            '{"agreement": "OURS", "round": 1, "sender": "a", "receiver": "b", "kind": "gossip", "shape": [1], '
            '"bytes": 8, "reveals": "all", "epsilon": 0}',
            "is no message",
        ),
        (1_000_001 * "\n", "at most 1,000,000"),
    ],
)
def test_a_transcript_that_nobody_wrote_is_refused(type_in: Terminal, line: str, message: str) -> None:
    split_and_init(type_in)
    folder, agreement = Path("run/holder1"), draft(Path("run/holder1"))[0]
    (folder / "transcript.jsonl").write_text(line.replace("OURS", agreement.hash.hex()[:16]) + "\n")
    with pytest.raises(DataError, match=message):
        read_log(folder / TRANSCRIPT, agreement)


# ---- what people read of a federation ----


def read(screen: RenderableType) -> str:
    """A screen as one line of text."""
    return " ".join(text_of(screen, 100).split())


def plan(unsigned: tuple[str, ...] = (), **options: Any) -> str:
    return read(screens.planned(plan_of(agreement(**options), 1000, 100, list(unsigned))))


def test_sizes_are_short_and_what_was_spent_is_rounded_up() -> None:
    sizes = [screens.size(count) for count in (0, 999, 1234, 2_500_000, 7.5e12)]
    assert sizes == ["0 B", "999 B", "1.23 kB", "2.5 MB", "7.5 TB"]
    assert screens.spent(2.50001, 8.0, "the server") == "epsilon 2.51 of 8 spent"
    assert screens.spent(3.0, math.inf, "the label holder") == "no privacy against the label holder"


def test_a_plan_without_noise_says_so_in_both_places_and_what_is_open_once() -> None:
    text = plan(("clinic", "bank"), epsilon=math.inf, epsilon_y=1.5, mode="individual")
    assert "inf: no privacy against the server, as was agreed" in text
    assert "NOT PROTECTED: the server can learn those of training nodes" in plan(epsilon=math.inf)
    assert "sigma" not in text and "randomized once at their holder, epsilon 1.5 each" in text
    assert text.count(plan_of(agreement(mode="individual"), 10, 1, [])["opens"][:40]) == 1
    assert "Not signed by clinic, bank" in text and "Not signed by clinic" not in plan()
    assert "for 1,000 nodes (--nodes), 100 of them training (--training); before them 192 kB of alignment" in text


def test_a_plan_names_the_seconds_on_a_line() -> None:
    """96 kB and 3 trips of alignment; 4 trips and one of saving in each of 3 rounds, 6 around them, and the busiest."""
    agreed = agreement(mode="individual", epochs=3, republish=1)
    answer = plan_of(agreed, 1000, 100, [], Line.parse("100Mbit/50ms"))
    links = traffic_of(agreed.setting, 1000, 100).by_link()
    assert answer["line"]["seconds_alignment"] == pytest.approx(0.15 + 96_000 * 8 / 1e8)
    assert answer["line"]["seconds_run"] == pytest.approx(21 * 0.05 + max(links.values()) * 8 / 1e8)
    text = read(screens.planned(answer))
    assert "at 100 Mbit/s and 50 ms one way, alignment 0.2 s; 21 messages wait for each other" in text


@pytest.mark.parametrize(
    ("settings", "price"),
    [
        (("--mode", "shared-linear"), "at delta 0.0001, once; noise sigma 1.09 a coordinate"),
        (("--mode", "guesses"), "with no delta, once; a guess is sent as it is with probability 0.998, else"),
        (("--mode", "guesses", "--set", "unit=person"), "at delta 0.0001, once; a guess is sent as it is"),
    ],
)
def test_a_plan_of_a_prediction_names_bytes_seconds_and_price(
    type_in: Terminal, settings: tuple[str, ...], price: str
) -> None:
    split_and_init(type_in, *settings)
    typed = ("federation", "plan", "run/holder1", "--nodes", "180", "--joining", "20")
    text = " ".join(type_in(*typed, "--line", "100Mbit/50ms").out.split())
    assert "for 20 people who join, before them 38.4 kB of alignment; " in text
    assert f"on that line, alignment 0.2 s Each pays epsilon 8 {price}" in text
    assert type_in(*typed, "--json").json["joining"]["people"] == 20
    assert "joining" not in type_in(*typed[:-2], "--json").json


def test_a_plan_with_noise_states_the_total_the_part_and_the_noise() -> None:
    text = plan(epsilon=8.0, republish=1, epochs=3)
    assert "8 in TOTAL over 3 publications, at delta 0.0001" in text
    assert "sigma" in text and "on rows of length at most 1" in text
    sigmas = [agreement(republish=every, epochs=3).setting.publication.sigma for every in (1, 3)]
    assert f"1 3 {sigmas[0]:.3g} {2 * sigmas[0]:.3g} 3 1 {sigmas[1]:.3g} {2 * sigmas[1]:.3g}" in text


SCORE = {"accuracy": {"mean": 0.75, "low": 0.7, "high": 0.801}, "test_nodes": 1500, "best_round": 2}


@pytest.mark.parametrize("alone", [{}, {"accuracy_alone": {"mean": 0.6}}])
def test_a_finished_label_holder_says_how_often_it_was_right(alone: dict[str, Any], tmp_path: Path) -> None:
    text = read(screens.finished({**finished(tmp_path / "clinic"), **SCORE, **alone}))
    assert text.startswith("clinic: 75.0 % accuracy on 1,500 test nodes (95%: 70.0 to 80.1)")
    assert "round 2 of 5" in text
    assert ("By itself, its network and its labels, without the others' guesses: 60.0 %" in text) == bool(alone)


def test_messages_are_summed_by_who_sent_them(tmp_path: Path) -> None:
    messages = [
        {"kind": "noisy-share", "from": "clinic", "to": "server", "count": 3, "bytes": 30_000},
        {"kind": "seal", "from": "bank", "to": "clinic", "count": 1, "bytes": 32},
        {"kind": "seal", "from": "clinic", "to": "bank", "count": 1, "bytes": 32},
        {"kind": "seal", "from": "clinic", "to": "shop", "count": 1, "bytes": 32},
    ]
    text = read(screens.finished({**finished(tmp_path / "clinic"), "messages": messages}))
    assert "noisy-share 3 x, 30 kB seal 2 x, 64 B 1 x, 32 B" in text


@pytest.mark.parametrize(
    ("epsilon", "total", "spent"),
    [
        (None, None, "the server publishes no rows"),
        (2.5, 8.0, "Epsilon 2.5 of 8 spent"),
        ("inf", "inf", "no privacy against the server"),
    ],
)
def test_a_status_says_what_was_paid(epsilon: Any, total: Any, spent: str) -> None:
    status = {"party": "clinic", "state": "running", "round": 3, "rounds": 20, "time": "now", "reader": "the server"}
    status |= {"seconds_left": 125.0, "messages": [], "torn": 0, "warnings": [], "predictions": []}
    text = read(screens.status({**status, "epsilon": epsilon, "epsilon_total": total}))
    assert spent in text and "Round 3 of 20, about 2 min 5 s left" in text


@pytest.mark.parametrize(
    ("keys", "unsigned", "parts", "unsaid"),
    [
        (True, [], ("Keys server, clinic: created here", "Signed by all parties"), "Not signed"),
        (False, ["clinic"], ("Not signed by clinic: each must run review, then sign",), "Keys"),
    ],
)
def test_keys_made_here_are_handed_on_safely_and_who_has_not_signed_is_named(
    keys: bool, unsigned: list[str], parts: tuple[str, ...], unsaid: str
) -> None:
    parties = [
        {"name": name, "role": role, "address": "s:1", "certificate": 40 * "a", "made": keys}
        for name, role in (("server", "server"), ("clinic", "holder"))
    ]
    creation = {"run": "ours", "mode": "individual", "agreement": 64 * "b", "folder": "run"}
    text = read(screens.created({**creation, "parties": parties, "unsigned": unsigned}))
    assert all(part in text for part in parts) and unsaid not in text
    assert "graphveil federation plan run/server" in text


def test_a_new_key_says_what_never_leaves_and_what_is_handed_out() -> None:
    answer = {"party": "clinic", "folder": "k", "fingerprint": "ab:cd", "certificate": "k/c.pem", "key": "k/key.pem"}
    text = read(screens.keyed(answer))
    assert "k/key.pem: it never leaves this machine" in text
    assert "Hand out k/c.pem;" in text and "Fingerprint ab:cd" in text
