"""Every refusal: one line on stderr, nothing on stdout, exit code 2; an internal error is told apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Terminal

TRAIN = "train lpgnn digits"
REFUSED = [
    ("train", "Missing argument 'METHOD'; see graphveil train --help"),
    ("trian lpgnn digits", "Did you mean 'train'?"),
    ("data", "Missing command; see graphveil data --help"),
    ("mechanisms", "Missing command"),
    ("data descrbe digits", "Did you mean 'describe'?"),
    ("train lpgn digits", "no method 'lpgn'; allowed: lpgnn, upgnet, label-propagation"),
    ("train lpgn digits", "did you mean lpgnn?"),
    ("train digits lpgnn", "did you mean lpgnn digits?"),
    ("plan digits lpgnn", "did you mean lpgnn digits?"),
    ("advise digits --trust nobody", "say local for private features and labels, links for private connections"),
    ("plan lpgn digits", "did you mean lpgnn?"),
    ("compare sage,lpgn digits", "did you mean lpgnn?"),
    ("train lpgnn digts", "did you mean digits?"),
    ("data describe coraa", "did you mean cora?"),
    (f"{TRAIN} --frobnicate", "No such option: --frobnicate"),
    (f"{TRAIN} --epsilon-x", "requires an argument"),
    (f"{TRAIN} --epsilon-a 1", "--epsilon-a does not apply to lpgnn; allowed: --epsilon-x, --epsilon-y"),
    (f"{TRAIN} --unit edge", "--unit does not apply to lpgnn"),
    ("train gcn digits --epsilon-x 1", "--epsilon-x does not apply to gcn"),
    ("train gcn digits --model gat", "--model does not apply to gcn"),
    ("train label-propagation digits --epochs 3", "--epochs does not apply to label-propagation"),
    ("plan label-propagation digits --epsilon-x 3", "--epsilon-x does not apply to label-propagation"),
    (f"{TRAIN} --epsilon-x abc", "--epsilon-x: 'abc'; allowed: a number, or inf, or none"),
    (f"{TRAIN} --epsilon-y none", "--epsilon-y: 'none'; allowed: a number, or inf"),
    (f"{TRAIN} --epsilon-x 0", "epsilon_x = 0.0 is not a privacy budget"),
    (f"{TRAIN} --epsilon-y -1", "epsilon_y = -1.0 is not a privacy budget"),
    (f"{TRAIN} --epsilon-x nan", "epsilon_x = nan is not a privacy budget"),
    (f"{TRAIN} --epsilon-x 1e9", "epsilon_x = 1000000000 hides nothing, but would look like a guarantee; allowed"),
    (f"{TRAIN} --epsilon-y 1e308", "epsilon_y = 1e+308 hides nothing"),
    (f"{TRAIN} --epsilon 201", "epsilon = 201 hides nothing"),
    (f"{TRAIN} --epsilon-x 1e", "'1e'"),
    (f"{TRAIN} --epsilon-x -inf", "epsilon_x = -inf is not a privacy budget"),
    ("train solitude digits --epsilon-a 1e9", "epsilon_a = 1000000000 hides nothing"),
    ("train gap digits --epsilon 1e9", "epsilon = 1000000000 hides nothing"),
    ("train class-sums digits --epsilon 1e9", "epsilon = 1000000000 hides nothing"),
    ("train dp-mlp digits --epsilon 1e9", "epsilon = 1000000000 hides nothing"),
    ("plan lpgnn digits --epsilon-x 1e9", "epsilon_x = 1000000000 hides nothing"),
    ("tune lpgnn digits --over epsilon_x=1,1e9", "epsilon_x"),
    ("compare lpgnn digits --epsilon-x 1,1e9", "epsilon_x = 1000000000 hides nothing"),
    ("release edge-rand digits --epsilon-a 1e9 -o x", "epsilon_a = 1000000000 hides nothing"),
    ("release heterorr digits --epsilon-a 1 --epsilon-x 1e9 -o x", "epsilon_x = 1000000000 hides nothing"),
    ("mechanisms compare --epsilon 1,1e9", "epsilon = 1000000000 hides nothing"),
    ("federation init -o f --holder a=h:1=2 --holder b=h:2=2 --classes x,y --epsilon 1e9", "hides nothing"),
    (f"{TRAIN} --model sgae", "allowed: sage, gcn, gat, mlp"),
    (f"{TRAIN} --epochs 0", "--epochs"),
    (f"{TRAIN} --repeats 0", "--repeats"),
    (f"{TRAIN} --seed x", "--seed"),
    (f"{TRAIN} --threads 0", "--threads"),
    (f"{TRAIN} --device cud", "--device: 'cud'; allowed: cpu, cuda; did you mean cuda?"),
    ("train class-sums digits --engine rai", "--engine: 'rai'; allowed: local, ray; did you mean ray?"),
    ("train class-sums digits --engine-address auto", "nothing is joined by the local engine; use --engine ray"),
    ("train class-sums digits --engine ray --engine-address a:1 --workers 2", "--workers: a running cluster has its"),
    ("train caribou digits --engine ray", "caribou does not work by blocks yet; allowed: the local engine with one"),
    ("plan dp-mlp digits --workers 2", "dp-mlp does not work by blocks yet"),
    (f"{TRAIN} --workers 0", "--workers"),
    (f"{TRAIN} --set step_x=3", "lpgnn has no setting 'step_x'"),
    (f"{TRAIN} --set step_x=3", "did you mean steps_x?"),
    (f"{TRAIN} --set steps_x", "'steps_x' is not a setting; allowed: KEY=VALUE"),
    (f"{TRAIN} --set =3", "allowed: KEY=VALUE"),
    (f"{TRAIN} --set steps_x=a", "steps_x = 'a'; allowed: a whole number"),
    (f"{TRAIN} --epochs 3 --set epochs=4", "epochs is given twice"),
    (f"{TRAIN} --set dropout=0.1 --set dropout=0.2", "dropout is given twice"),
    (f"{TRAIN} --out FULL", "FULL is not empty"),
    (f"{TRAIN} --out FULL/file", "is not a folder"),
    (f"{TRAIN} --out FULL/file/run", "cannot write in"),
    ("train lpgnn FULL", "no graph.toml found"),
    ("predict FULL digits", "no saved model"),
    ("predict RUN digits --out p.txt", "allowed: a name ending in .csv or .parquet"),
    ("predict RUN digits --out FULL/no/p.csv", "is not a folder"),
    ("predict RUN social-100", "as in training"),
    ("report FULL", "no run in FULL"),
    ("compare lpgnn,lpgnn digits", "names a method twice"),
    ("compare lpgnn digits --epsilon-y 1,1", "names a value twice"),
    ("compare lpgnn digits --epsilon-y 1,x", "--epsilon-y: 'x'; allowed: a number"),
    ("compare lpgnn digits --epsilon-y 1,0", "epsilon_y = 0.0 is not a privacy budget"),
    (f"{TRAIN} --epsilon 2 --epsilon-x 1", "leave out one of the two"),
    ("compare lpgnn,sage digits --epsilon-a 1", "--epsilon-a applies to none of lpgnn, sage"),
    ("train solitude digits --set mode=directed", "mode directed for a graph whose links are undirected; allowed: low"),
    ("plan link-beliefs digits --set mode=directed", "digits: mode directed for a graph whose links are undirected"),
    ("compare solitude,dprr digits --set mode=directed", "digits: mode directed for a graph whose links are undirec"),
    ("train solitude digits --set mode=boht", "mode 'boht' is not known; allowed: lower, both, directed"),
    ("train solitude digits --epsilon-a 0", "epsilon_a = 0.0 is not a privacy budget; allowed: a number above 0"),
    ("train link-beliefs digits --epsilon-a -1", "epsilon_a = -1.0 is not a privacy budget"),
    ("plan dprr digits --epsilon-a nan", "epsilon_a = nan is not a privacy budget"),
    ("plan blink digits --epsilon-a none", "--epsilon-a: 'none'; allowed: a number, or inf"),
    ("plan solitude digits --epsilon-a 1e-300", "too small to carry information"),
    ("train link-beliefs digits --epsilon-a inf", "epsilon_a = inf: links are public; train lpgnn"),
    ("train link-beliefs digits --epochs 3", "--epochs does not apply to link-beliefs"),
    ("train solitude digits --set denoiser=none --set lambda1=2", "lambda1 does not apply to denoiser none"),
    ("train solitude digits --set degree_share=0.2", "degree_share does not apply to denoiser calibration"),
    ("compare solitude digits --epsilon-a 4,0", "epsilon_a = 0.0 is not a privacy budget"),
    ("compare label-propagation digits --set foo=1", "none of label-propagation has a setting 'foo'"),
]


@pytest.mark.parametrize("as_json", [False, True], ids=["", "json"])
@pytest.mark.parametrize(("words", "says"), REFUSED, ids=[words for words, _ in REFUSED])
def test_a_refusal_is_one_line(type_in: Terminal, trained: Path, words: str, says: str, as_json: bool) -> None:
    Path("FULL").mkdir()
    Path("FULL/file").write_text("1")
    typed = [str(trained) if word == "RUN" else word for word in words.split()]
    if as_json and typed[0] not in ("data", "federation", "mechanisms", "trian"):
        typed.insert(1, "--json")
    answer = type_in(*typed)
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1
    assert "Traceback" not in answer.err
    assert says in answer.err
    assert [entry.name for entry in Path.cwd().iterdir()] == ["FULL"]


def test_cuda_that_is_not_there_is_refused(type_in: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    answer = type_in("train", "lpgnn", "digits", "--device", "cuda")
    assert answer.code == 2
    assert answer.err == "error: --device: no CUDA device found; use --device cpu\n"


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault in our own code."""
    from graphveil import graphs

    def describe(graph: object) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(graphs, "describe", describe)


@pytest.mark.usefixtures("faulty")
@pytest.mark.parametrize("words", ["data describe digits", "data describe digits --json"])
def test_a_fault_of_ours_is_said_to_be_one(type_in: Terminal, words: str) -> None:
    answer = type_in(*words.split())
    assert answer.code == 1
    assert answer.out == ""
    assert answer.err == "internal error: RuntimeError: two lines; --debug shows the traceback; please report it\n"


@pytest.mark.usefixtures("faulty")
@pytest.mark.parametrize("words", ["--debug data describe digits", "data describe digits --debug"])
def test_debug_shows_the_traceback_wherever_it_stands(type_in: Terminal, words: str) -> None:
    answer = type_in(*words.split())
    assert answer.code == 1
    assert "Traceback (most recent call last)" in answer.err
    assert answer.err.splitlines()[-1].startswith("internal error: RuntimeError")


def test_a_closed_disk_is_no_fault_of_ours(type_in: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    from graphveil import graphs

    def describe(graph: object) -> None:
        raise PermissionError(13, "Permission denied", "/x")

    monkeypatch.setattr(graphs, "describe", describe)
    answer = type_in("data", "describe", "digits")
    assert (answer.code, answer.err) == (2, "error: Permission denied: /x\n")


def test_an_interrupt_is_one_line_and_130(type_in: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    from graphveil.methods.runs import experiment

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(experiment, "run", stop)
    answer = type_in("train", "lpgnn", "digits", "--json")
    assert (answer.code, answer.out) == (130, "")
    assert answer.err == "interrupted; no partial files remain\n"
    assert list(Path.cwd().iterdir()) == []
