"""Whatever is typed wrong: one line on stderr, exit code 2, nothing on stdout, no file; a near miss is named.

Here stand all commands, names of every kind, and paths to what is something else; what values mean is refused below.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from graphveil.cli import app
from graphveil.cli.base.console import suggested
from graphveil.cli.train.command import _warn_of_charges
from tests.cli.conftest import Terminal

TRAIN = "train lpgnn digits"
HOLDERS = "federation init --out o --holder a=h:1=2 --holder b=h:2=2 --classes x,y --epsilon 1"
LINKS = "tune lpgnn digits --over"
#: What is typed, and the name that was meant.
NEAR = [
    ("trainn lpgnn digits", "'train'"),
    ("config schma", "'schema'"),
    ("train lpgnnn digits", "lpgnn"),
    ("train class_sums digits", "class-sums"),
    ("train digits lpgnn", "lpgnn digits"),
    ("release hetrorr digits --epsilon-a 1 --out o", "heterorr"),
    ("train lpgnn digitss", "digits"),
    ("data describe facebok", "facebook"),
    ("predict RUN digitss", "digits"),
    (f"{LINKS} steps_x=1,2 --proxy digitss", "digits"),
    (f"{TRAIN} --set mechansim=multi-bit", "mechanism"),
    (f"{HOLDERS} --set widht=4", "width"),
    (f"{LINKS} step_x=1,2", "steps_x"),
    (f"{TRAIN} --set mechanism=multi_bit", "multi-bit"),
    ("train gap digits --unit nod", "node"),
    (f"{TRAIN} --split declaredd", "declared"),
    ("train solitude digits --set mode=boht", "both"),
    (f"{TRAIN} --device cud", "cuda"),
    ("train class-sums digits --engine rai", "ray"),
    (f"{HOLDERS} --mode guesess", "guesses"),
    ("attack RUN --attack linktell", "linkteller"),
    ("audit randomised-response", "randomized-response"),
    ("explain one-user-lable", "one-user-label"),
    ("reproduce lpgnn-table33", "lpgnn-table3"),
    ("reproduce lpgnn-table3 --only corra", "cora"),
    ("advise digits --trust curators", "curator"),
    ("advise digits --trust curator --want lft=0.02", "lift"),
    (f"{TRAIN} --track mlflw", "mlflow"),
]
#: What is typed, and what is said of it.
SAID = [
    # words and options
    ("train", "Missing argument 'METHOD'; see graphveil train --help"),
    (f"{TRAIN} extra", "unexpected extra argument"),
    (f"{TRAIN} --epsilon-x", "requires an argument"),
    (f"{TRAIN} --outt x", "No such option: --outt (Possible options: --out"),
    (f"{TRAIN} --epsilon-a 1", "--epsilon-a does not apply to lpgnn; allowed: --epsilon-x, --epsilon-y"),
    ("train gcn digits --model gat", "--model does not apply to gcn"),
    ("compare lpgnn,sage digits --epsilon-a 1", "--epsilon-a applies to none of lpgnn, sage"),
    ("compare lpgnn,lpgnn digits", "names a method twice"),
    # numbers
    (f"{TRAIN} --epsilon-x abc", "--epsilon-x: 'abc'; allowed: a number, or inf, or none"),
    (
        f"{TRAIN} --epsilon-x 0",
        "epsilon_x is 0.0; allowed: a number in (0, 200], or inf for data declared public; collect no features",
    ),
    (f"{TRAIN} --epsilon 2 --epsilon-x 1", "leave out one of the two"),
    ("mechanisms compare --epsilon 1,1e9", "epsilon is 1000000000.0; allowed: a number in (0, 200]"),
    (HOLDERS.replace("epsilon 1", "epsilon 1e9"), "hides nothing"),
    ("compare lpgnn digits --epsilon-y 1,x", "--epsilon-y: 'x'; allowed: a number"),
    ("plan class-sums digits --epsilon inff", "--epsilon: 'inff'; allowed: a number, or inf\n"),
    ("release heterorr digits --out o", "--epsilon-x is required"),
    (f"{TRAIN} --seed -1", "--seed"),
    (f"{TRAIN} --epochs 0", "--epochs"),
    (f"{TRAIN} --split 75/20/15", "allowed: three shares of 0 or more"),
    (f"{TRAIN} --split 50/25", "split '50/25': two shares make 75%; allowed: training"),
    # engines
    ("train class-sums digits --engine-address auto", "nothing is joined by the local engine; use --engine ray"),
    ("train class-sums digits --engine ray --engine-address a:1 --workers 2", "--workers: a running cluster has its"),
    ("plan dp-mlp digits --workers 2", "dp-mlp does not work by blocks yet; allowed: the local engine with one"),
    # settings
    (f"{TRAIN} --set epochs", "--set: 'epochs' is not a setting; allowed: KEY=VALUE"),
    (f"{TRAIN} --set epochs=x", "--set: epochs is 'x'; allowed: a whole number"),
    (f"{TRAIN} --epochs 3 --set epochs=4", "epochs is given twice"),
    (f"{LINKS} steps_x=1,1", "--over steps_x=1,1: steps_x names a value twice"),
    # data and folders
    ("train lpgnn nodes.csv", "'nodes.csv' is a file; allowed: a folder with graph.toml and tables; give '.'"),
    ("data describe FULL/file", "'FULL/file' is a file; allowed: a folder with graph.toml and tables; give 'FULL'"),
    ("train lpgnn nowhere/data", "no data set or folder 'nowhere/data'"),
    (f"{TRAIN} --out nodes.csv", "nodes.csv is not a folder"),
    (f"{TRAIN} --out FULL", "FULL is not empty"),
    (f"{TRAIN} --out FULL/file/run", "cannot write in"),
    ("federation split digits --out FULL", "FULL is not empty"),
    ("demo --out FULL", "FULL is not empty"),
    ("report EMPTY", "no run in EMPTY"),
    ("compare-runs EMPTY", "nothing finished in EMPTY"),
    ("data describe social-5", "allowed: social-81 and larger"),
    ("train --config EMPTY", "--config EMPTY: is a folder; name its file: EMPTY/config.toml"),
    ("train --config nodes.csv", "nodes.csv: cannot be read as TOML"),
    # runs
    ("predict nowhere digits", "no saved model"),
    ("predict RUN digits --out p.txt", "allowed: a name ending in .csv or .parquet"),
    ("attack RUN --attack gram", "name a folder from graphveil federation init"),
    ("attack nowhere --attack membership", "no run in nowhere"),
    ("attack RUN", "--attack: no attack is named; allowed: linkteller, "),
    ("attack RUN --attack guess", "not known"),
    ("attack RUN --attack label-inference", "on a federation"),
    ("attack RUN --attack membership --truth nowhere", "nowhere"),
    ("attack RUN --attack link-stealing-shadow", "--shadow"),
    ("attack RUN --attack link-stealing --shadow social-200", "is for the attack link-stealing-shadow"),
    # releases, and mechanisms alone
    ("release magic digits -o x", "no release method 'magic'; allowed: class-counts, heterorr, feature-rr"),
    ("release lpgnn digits -o x", "lpgnn publishes no graph, train it: graphveil train lpgnn DATA"),
    ("release edge-rand digits -o x", "--epsilon-a is required: the epsilon of one private edge, spent for good"),
    ("release edge-rand digits --epsilon-a 1", "Missing option"),
    ("release edge-rand digits --epsilon-a 1 -o FULL", "FULL is not empty; name a new folder"),
    ("release edge-rand digits --epsilon-x 1 -o x", "--epsilon-x does not apply to edge-rand"),
    ("release edge-rr digits --epsilon-a 1 --set edges=edge-rand -o x", "allowed: public-tree"),
    ("release edge-rand digits --epsilon-a 1 --set hidden=5 -o x", "has no setting 'hidden'"),
    ("mechanisms compare --epsilon 1,x", "error: --epsilon: 'x'; allowed: a number"),
    ("mechanisms compare --low 2", "--low, --high: the range is 2 to 1"),
    ("mechanisms compare --out FULL", "is not empty"),
    ("mechanisms scores digits", "digits declares its features private"),
    ("mechanisms scores digits --public-share 2", "share is 2.0"),
    ("mechanisms scores digits --public-share 0.3 --sensitive a", "numbers of columns"),
    ("mechanisms scores digits --public-share 0.3 --sensitive 32 --gamma 0", "column 32"),
    ("mechanisms scores digits --public-share 0.3 --gamma 2", "--gamma"),
    # federations, advice and the rest
    ("federation init --epsilon 1 --out o", "--from"),
    (HOLDERS.replace("a=h:1=2", "a"), "NAME=HOST:PORT=COLUMNS"),
    (f"{HOLDERS} --range low", "LOW,HIGH"),
    (f"{HOLDERS} --mode paper", "acknowledge it: --set opened=true"),
    ("federation plan RUN", "agreement.toml: is missing"),
    ("federation init --from EMPTY --out o --epsilon 1", "holds no holder1, holder2"),
    (HOLDERS.replace("x,y", "x"), "classes is ['x']; allowed: two or more"),
    ("advise digits --trust nobody", "say local for private features and labels, links for private connections"),
    ("advise digits --want lift=0.02", "--want, --pilot and --epsilon apply to one trust model"),
    ("advise digits --trust curator --pilot nowhere/pilot", "no data set or folder 'nowhere/pilot'"),
    ("advise digits --trust curator --epsilon inf", "epsilon inf protects nothing"),
    ("plan lpgnn digits --pilot social-200", "--pilot and --degree are for a goal"),
    ("audit", "Missing argument 'TARGET'"),
    ("audit RUN", "is a folder; audit its method by name"),
    ("reproduce x", "graphveil reproduce list shows all"),
    ("reproduce lpgnn-figure1", "a drawing"),
]


@pytest.mark.parametrize(("words", "says"), [*NEAR, *SAID], ids=[words for words, _ in (*NEAR, *SAID)])
def test_what_is_typed_wrong_is_refused_in_one_line_and_near_misses_are_named(
    type_in: Terminal, trained: Path, words: str, says: str
) -> None:
    for folder in ("EMPTY", "FULL"):
        Path(folder).mkdir()
    Path("FULL/file").write_text("1")
    Path("nodes.csv").write_text("id,label\n1,a\n2,b\n")
    before = sorted(Path.cwd().rglob("*"))
    answer = type_in(*(str(trained) if word == "RUN" else word for word in words.split()))
    near = "Did you mean " if says.startswith("'") else "did you mean "
    meant = (words, says) in NEAR
    answer.refused(f"{near}{says}?" if meant else says)
    assert meant or "id you mean" not in answer.err, "nobody meant that"
    assert sorted(Path.cwd().rglob("*")) == before


def test_every_command_is_among_them_and_json_changes_nothing(type_in: Terminal) -> None:
    commands = {words.split()[0] for words, _ in (*NEAR, *SAID)}
    assert commands >= {"train", "tune", "predict", "plan", "compare", "compare-runs", "release", "attack", "report"}
    assert commands >= {"audit", "explain", "federation", "mechanisms", "data", "reproduce", "demo", "advise", "config"}
    for words in ("train lpgnnn digits", f"{TRAIN} --epsilon-x 0", "train", f"{TRAIN} --frobnicate"):
        plain, as_json = type_in(*words.split()), type_in(*words.split(), "--json")
        assert (as_json.code, as_json.out, as_json.err) == (2, "", plain.err)


def test_cuda_that_is_not_there_is_refused(type_in: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing is suggested where nothing is near, or something was.
    for message in (
        "'zzz' is not known; allowed: alpha, beta",
        "mode 'boht'; allowed: lower, both; did you mean both?",
    ):
        assert suggested(message) == message
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    answer = type_in("train", "lpgnn", "digits", "--device", "cuda")
    assert (answer.code, answer.err) == (2, "error: --device: no CUDA device found; use --device cpu\n")


# ---- what is no mistake of whoever types ----


def test_a_fault_of_ours_is_said_to_be_one_and_debug_shows_where(
    type_in: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def describe(graph: object) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("graphveil.graphs.describe", describe)
    for words in (("data", "describe", "digits"), ("data", "describe", "digits", "--json")):
        answer = type_in(*words)
        assert (answer.code, answer.out) == (1, "")
        assert answer.err == "internal error: RuntimeError: two lines; --debug shows the traceback; please report it\n"
    for words in (("--debug", "data", "describe", "digits"), ("data", "describe", "digits", "--debug")):
        answer = type_in(*words)
        assert answer.code == 1 and "Traceback (most recent call last)" in answer.err
        assert answer.err.splitlines()[-1].startswith("internal error: RuntimeError")


def test_a_closed_disk_is_no_fault_of_ours(type_in: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    def describe(graph: object) -> None:
        raise PermissionError(13, "Permission denied", "/x")

    monkeypatch.setattr("graphveil.graphs.describe", describe)
    answer = type_in("data", "describe", "digits")
    assert (answer.code, answer.err) == (2, "error: Permission denied: /x\n")


def test_names_that_no_file_could_hold_are_refused_before_anything_is_computed(
    type_in: Terminal, tmp_path: Path
) -> None:
    train = ("train", "class-sums", "social-100", "--epsilon", "2", "--out")
    type_in(*train, os.fsdecode(b"r\xe9sum\xe9")).refused("is not text in UTF-8; rename it")
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for words in ((*train, "a/run"), ("predict", "a")):
        answer = type_in(*words)
        assert answer.code == 2 and answer.err.startswith(("error: links lead to each other", "error: a")), answer.err
    gone = tmp_path / "gone"
    gone.mkdir()
    with contextlib.chdir(gone):
        gone.rmdir()
        answer = type_in(*train, tmp_path / "run")
        os.chdir(tmp_path)
    assert answer.code == 2 and answer.err.startswith("error: the working folder cannot be used (No such file")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a", "b"]


def test_what_a_library_cannot_have_is_no_fault_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    assert app._report(OSError("a library needs a folder for its cache"), [], debug=False) == app.REFUSED
    assert capsys.readouterr().err == "error: a library needs a folder for its cache\n"
    try:
        try:
            raise OSError("lib.so: failed to map segment from shared object")
        except OSError as error:
            raise OSError("a library cannot be loaded") from error
    except OSError as error:
        assert app._report(error, [], debug=False) == app.REFUSED
    assert capsys.readouterr().err.startswith("error: not enough memory;")


def test_a_prediction_that_is_lost_after_it_was_charged_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    for spends in ([], ["asked"]):
        model = SimpleNamespace(ledger=[])
        with pytest.raises(MemoryError), _warn_of_charges(model):
            model.ledger = spends
            raise MemoryError
        assert ("what it was charged stays charged" in capsys.readouterr().err) == bool(spends)


def test_an_interrupt_is_one_line_and_130(type_in: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("graphveil.methods.runs.experiment.run", stop)
    answer = type_in("train", "lpgnn", "digits", "--json")
    assert (answer.code, answer.out) == (130, "")
    anew = "interrupted; no partial files remain, nothing was released, and the same command begins anew\n"
    assert answer.err == anew and list(Path.cwd().iterdir()) == []
    for more in ((), ("--proxy", "social-100", "--out", "run"), ("--proxy", "social-100", "-o", "x", "--sampler=grid")):
        tuned = type_in("tune", "lpgnn", "digits", "--over", "steps_x=1,2", *more)
        assert "another --out where trials had a price" in tuned.err
    monkeypatch.setattr("graphveil.graphs.describe", stop)
    assert type_in("data", "describe", "digits").err == "interrupted; no partial files remain\n"
    assert "what it was charged stays charged" in app.interrupted(["predict", "run", "digits"])


@pytest.mark.parametrize(
    "words",
    [
        "compare lpgnn digits",
        "--debug reproduce lpgnn-table3",
        "federation join a b",
        "federation serve a",
        "tune gap digits --proxy social-100 --out=run --sampler tpe",
        "tune gap digits --proxy social-100 -o run --sampler=random",
    ],
)
def test_an_interrupt_of_what_goes_on_says_so(words: str) -> None:
    assert app.interrupted(words.split()).endswith("type the same command again, and it goes on where it stopped")
