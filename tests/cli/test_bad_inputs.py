"""Whatever is typed wrong: one line on stderr, exit code 2, nothing on stdout, no file; a near miss is named.

What `test_errors.py` does not have: all commands, names of every kind, and paths to what is something else.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from graphveil.cli.near import suggested
from tests.cli.conftest import Terminal

HOLDERS = "federation init --out o --holder a=h:1=2 --holder b=h:2=2 --classes x,y --epsilon 1"
LINKS = "tune lpgnn digits --over"
#: What is typed, and the name that was meant.
NEAR = [
    ("trainn lpgnn digits", "'train'"),
    ("attck RUN", "'attack'"),
    ("data describ digits", "'describe'"),
    ("federation splt digits --out o", "'split'"),
    ("train lpgnnn digits", "lpgnn"),
    ("train classsums digits", "class-sums"),
    ("train class_sums digits", "class-sums"),
    ("train solitud digits", "solitude"),
    ("compare lpgnn,solitde social-200", "solitude"),
    ("release hetrorr digits --epsilon-a 1 --out o", "heterorr"),
    ("plan progapp digits --epsilon 1", "progap"),
    ("train lpgnn digitss", "digits"),
    ("train lpgnn scial-200", "social"),
    ("data describe facebok", "facebook"),
    ("predict RUN digitss", "digits"),
    ("attack RUN --attack link-stealing --truth digitss", "digits"),
    ("federation split digitss --out o", "digits"),
    (f"{LINKS} steps_x=1,2 --proxy digitss", "digits"),
    ("train lpgnn digits --set mechansim=multi-bit", "mechanism"),
    (f"{HOLDERS} --set widht=4", "width"),
    (f"{LINKS} step_x=1,2", "steps_x"),
    (f"{LINKS} model=sage,sgae", "sage"),
    ("tune gap digits --epsilon 1 --over hops=1,2 --law geometricc", "geometric"),
    ("train lpgnn digits --set mechanism=multibit", "multi-bit"),
    ("train lpgnn digits --set mechanism=multi_bit", "multi-bit"),
    ("train lpgnn digits --set mechanism=lapalce", "laplace"),
    ("release heterorr digits --epsilon-x 1 --epsilon-a 1 --set edges=edge-randd --out o", "edge-rand"),
    ("release heterorr digits --epsilon-a 1 --set features=multibit --out o", "multi-bit"),
    ("train gap digits --unit nod", "node"),
    ("train gap digits --unit node --set rule=declard", "declared"),
    ("train lpgnn digits --split declaredd", "declared"),
    ("train solitude digits --set mode=boht", "both"),
    ("train solitude digits --set denoiser=calibraton", "calibration"),
    ("train lpgnn digits --device cud", "cuda"),
    (f"{HOLDERS} --mode guesess", "guesses"),
    ("predict RUN digits --people smae", "same"),
    ("attack RUN --attack linktell", "linkteller"),
    ("attack RUN --attack link-stealin", "link-stealing"),
    ("attack RUN --attack membershp", "membership"),
    ("audit randomised-response", "randomized-response"),
    ("audit multibit", "multi-bit"),
    ("audit lpgn", "lpgnn"),
    ("explain one-user-lable", "one-user-label"),
    ("explain topology-publick", "topology-public"),
    ("reproduce lpgnn-table33", "lpgnn-table3"),
    ("reproduce LPGNN-table3", "lpgnn-table3"),
    ("reproduce lsit", "list"),
    ("reproduce lpgnn-table3 --only corra", "cora"),
    ("dmeo", "'demo'"),
    ("config schma", "'schema'"),
    ("config schema lpgn", "lpgnn"),
    ("advise digitss", "digits"),
    ("advise digits --trust curators", "curator"),
    ("advise digits --trust lokal", "local"),
    ("advise digits --trust curator --want lft=0.02", "lift"),
    ("advise digits --trust curator --want accuracyy=0.8", "accuracy"),
    ("advise digits --trust curator --pilot digitss", "digits"),
    ("plan lpgnn digits --want lft=0.02", "lift"),
    ("train --config WRONG/key.toml", "options"),
    ("train --config WRONG/setting.toml", "mechanism"),
    ("train --config WRONG/choice.toml", "repeats"),
    ("train --config WRONG/method.toml", "lpgnn"),
    ("train lpgnn digits --track mlflw", "mlflow"),
    (f"{LINKS} steps_x=1,2 --sampler tpee", "tpe"),
    ("train lpgnn digits --set epoch=2", "epochs"),
]
#: What is typed, and what is said of it.
SAID = [
    (f"{LINKS} steps_x", "--over: 'steps_x' is not a setting; allowed: KEY=VALUE,VALUE,..."),
    (f"{LINKS} =1", "--over: '=1' is not a setting"),
    (f"{LINKS} steps_x=", "--over steps_x=: no values of steps_x"),
    (f"{LINKS} steps_x=,", "no values of steps_x"),
    (f"{LINKS} steps_x=1,1", "--over steps_x=1,1: steps_x names a value twice"),
    (f"{LINKS} steps_x=1,a", "--over: steps_x = 'a'; allowed: a whole number"),
    (f"{LINKS} steps_x=1 --over steps_x=2", "--over steps_x=2: steps_x is given twice"),
    (f"{LINKS} steps_x=1 --set steps_x=2", "steps_x is given twice"),
    (f"{LINKS} epsilon_x=1,2", "epsilon_x must be fixed before people report"),
    (f"{LINKS} steps_x=1,2 --trials 0", "--trials"),
    (f"{LINKS} steps_x=1,2 --proxy digits", "the proxy is the private graph itself"),
    ("train lpgnn nodes.csv", "'nodes.csv' is a file; allowed: a folder with graph.toml and tables; give '.'"),
    ("data describe FULL/file", "'FULL/file' is a file; allowed: a folder with graph.toml and tables; give 'FULL'"),
    ("release heterorr nodes.csv --epsilon-x 1 --epsilon-a 1 --out o", "'nodes.csv' is a file"),
    ("federation split nodes.csv --out o", "'nodes.csv' is a file"),
    ("train lpgnn EMPTY", "EMPTY/graph.toml: no graph.toml found"),
    ("plan lpgnn EMPTY --epsilon 1", "no graph.toml found"),
    ("train lpgnn nowhere/data", "no data set or folder 'nowhere/data'"),
    ("train lpgnn digits --out nodes.csv", "nodes.csv is not a folder"),
    ("train lpgnn digits --out FULL", "FULL is not empty"),
    ("federation split digits --out FULL", "FULL is not empty"),
    ("train gap digits --epsilon nan", "epsilon = nan is not a privacy budget"),
    ("train gap digits --epsilon 1 --delta nan", "delta = nan"),
    ("train gap digits --epsilon 1 --delta 0", "delta = 0.0; allowed: a number in (0, 1)"),
    ("train gap digits --epsilon 1 --delta 1", "delta = 1.0; allowed"),
    ("train gap digits --epsilon 1 --delta -1e-5", "delta = -1e-05"),
    ("compare lpgnn digits --epsilon -1", "epsilon = -1.0 is not a total budget; allowed: a finite number above 0"),
    ("compare lpgnn digits --epsilon inf", "epsilon = inf is not a total budget"),
    ("compare lpgnn digits --epsilon-x 1,,", "--epsilon-x: ''"),
    ("plan lpgnn digits --epsilon 0", "epsilon = 0.0 is not a total budget"),
    ("plan class-sums digits --epsilon inff", "--epsilon: 'inff'; allowed: a number, or inf\n"),
    ("release heterorr digits --epsilon-a nan --out o", "epsilon_a = nan is not a privacy budget"),
    ("release heterorr digits --out o", "--epsilon-x is required"),
    ("mechanisms compare --epsilon x", "--epsilon: 'x'; allowed: a number, or inf"),
    ("mechanisms compare --epsilon 1 --dimension 0", "dimension is 0"),
    ("mechanisms compare --epsilon 1 --users -1", "users is -1"),
    ("train lpgnn digits --seed -1", "--seed"),
    ("train lpgnn digits --repeats 1.5", "--repeats"),
    ("train lpgnn digits --split 75/20/15", "allowed: three shares of 0 or more"),
    ("train lpgnn digits --split 50/25", "split '50/25': two shares make 75%; allowed: training"),
    ("train lpgnn digits --reproducible-noise x", "--reproducible-noise"),
    ("train lpgnn digits extra", "unexpected extra argument"),
    ("train lpgnn digits --outt x", "No such option: --outt (Possible options: --out"),
    ("predict nowhere digits", "no saved model"),
    ("predict nodes.csv digits", "no saved model"),
    ("attack RUN --attack gram", "name a folder from graphveil federation init"),
    ("audit", "Missing argument 'TARGET'"),
    (HOLDERS.replace("x,y", "x"), "classes ['x']; allowed: two or more"),
    ("predict RUN digits --out FULL", "allowed: a name ending in .csv or .parquet"),
    ("attack nowhere --attack membership", "no run in nowhere"),
    ("attack nodes.csv --attack membership", "no run in nodes.csv"),
    ("report nowhere", "no run in nowhere"),
    ("report EMPTY", "no run in EMPTY"),
    ("compare-runs nowhere", "nothing finished in nowhere"),
    ("compare-runs EMPTY", "nothing finished in EMPTY"),
    ("federation plan RUN", "agreement.toml: is missing"),
    ("federation serve nowhere", "agreement.toml: is missing"),
    ("federation join RUN digits", "agreement.toml: is missing"),
    ("federation status EMPTY", "no run has started here"),
    ("federation sign nowhere", "is missing"),
    ("federation init --from EMPTY --out o --epsilon 1", "holds no holder1, holder2"),
    ("federation init --from nodes.csv --out o --epsilon 1", "holds no holder1, holder2"),
    ("federation init --out o --epsilon 1", "no holders"),
    ("federation init --out o --holder a=h:x=2 --classes x,y --epsilon 1", "address 'h:x'; allowed: HOST:PORT"),
    ("federation split digits --out o --parties 9", "--parties"),
    ("data describe social-5", "allowed: social-81 and larger"),
    ("mechanisms list extra", "unexpected extra argument"),
    ("demo --sed 1", "No such option: --sed (Possible options: --seed)"),
    ("demo --seed -1", "'--seed'"),
    ("demo extra", "unexpected extra argument"),
    ("demo --out FULL", "FULL is not empty"),
    ("demo --out nodes.csv", "nodes.csv is not a folder"),
    ("advise nodes.csv", "'nodes.csv' is a file"),
    ("advise digits --trust x", "no trust 'x'; allowed: local, links, curator, release, federation"),
    ("advise digits --want lift=0.02", "--want, --pilot and --epsilon are about one trust"),
    ("advise digits --trust curator --want accuracy=2", "a share above 0 and below 1: 0.02 is two points"),
    ("advise digits --trust curator --want accuracy", "'accuracy' is no goal; allowed: accuracy=SHARE"),
    ("advise digits --trust curator --want lift=nan", "'lift=nan' is no goal"),
    ("advise digits --trust curator --pilot nowhere/pilot", "no data set or folder 'nowhere/pilot'"),
    ("advise digits --trust curator --pilot EMPTY", "EMPTY/graph.toml: no graph.toml found"),
    ("advise digits --trust curator --pilot nodes.csv", "'nodes.csv' is a file"),
    ("advise digits --trust curator --epsilon inf", "epsilon inf protects nothing"),
    ("advise digits --degree 0", "--degree: 0.0 contacts"),
    ("plan lpgnn digits --pilot social-200", "--pilot and --degree are for a goal"),
    ("config schema lpgnn extra", "unexpected extra argument"),
    ("train --config nowhere.toml", "--config nowhere.toml: no such file; name a run folder's config.toml"),
    ("train --config EMPTY", "--config EMPTY: is a folder; name its file: EMPTY/config.toml"),
    ("train --config nodes.csv", "nodes.csv: cannot be read as TOML"),
    ("train --config WRONG/kind.toml", "WRONG/kind.toml, options.repeats: 'three'; allowed: a whole number"),
    ("train --config WRONG/table.toml", "WRONG/table.toml, settings: 3; allowed: a table, [settings]"),
    ("train lpgnn digits --track x", "--track: 'x'; allowed: mlflow, tensorboard, wandb"),
    (f"{LINKS} steps_x=1,2 --sampler x", "--sampler: 'x'; allowed: grid, random, tpe"),
    ("reproduce x", "graphveil reproduce list shows all"),
    ("reproduce lpgnn-table3 --splits 0", "'--splits'"),
    ("reproduce lpgnn-table3 --only x", "--only: 'x' is in no row"),
    ("reproduce lpgnn-table3 --out nodes.csv", "nodes.csv is not a folder"),
    ("train lpgnn digits --set epochs", "--set: 'epochs' is not a setting; allowed: KEY=VALUE"),
    ("train lpgnn digits --set =3", "--set: '=3' is not a setting"),
    ("train lpgnn digits --set epochs=", "--set: epochs = ''; allowed: a whole number"),
    ("train lpgnn digits --set epochs=x", "--set: epochs = 'x'; allowed: a whole number"),
    ("train lpgnn digits --set epochs=1 --set epochs=2", "--set epochs=2: epochs is given twice"),
    ("train lpgnn digits --set steps_x=-1", "steps_x = -1; allowed: a whole number in 0..64"),
    ("train --set epochs=3", "Missing argument 'METHOD'"),
]
#: Files for --config with one mistake each.
WRONG = {
    "key": 'optoins = "x"',
    "setting": 'method = "lpgnn"\ndata = "digits"\n[settings]\nmechansim = "laplace"',
    "choice": "[options]\nrepeatss = 3",
    "method": 'method = "lpgnnn"',
    "kind": '[options]\nrepeats = "three"',
    "table": "settings = 3",
}


@pytest.mark.parametrize(("words", "says"), [*NEAR, *SAID], ids=[words for words, _ in (*NEAR, *SAID)])
def test_what_is_typed_wrong_is_refused_in_one_line_and_near_misses_are_named(
    type_in: Terminal, trained: Path, words: str, says: str
) -> None:
    Path("EMPTY").mkdir()
    Path("FULL").mkdir()
    Path("FULL/file").write_text("1")
    Path("WRONG").mkdir()
    for name, content in WRONG.items():
        Path(f"WRONG/{name}.toml").write_text(content)
    Path("nodes.csv").write_text("id,label\n1,a\n2,b\n")
    before = sorted(Path.cwd().rglob("*"))
    answer = type_in(*(str(trained) if word == "RUN" else word for word in words.split()))
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1), answer.err
    assert answer.err.startswith("error: ")
    near = "Did you mean " if says.startswith("'") else "did you mean "
    meant = (words, says) in NEAR
    assert (f"{near}{says}?" if meant else says) in answer.err
    assert meant or "id you mean" not in answer.err, "nobody meant that"
    assert sorted(Path.cwd().rglob("*")) == before


def test_there_are_sixty_of_them_over_all_commands() -> None:
    lines = {words for words, _ in (*NEAR, *SAID)}
    assert len(lines) == len(NEAR) + len(SAID) >= 60
    commands = {words.split()[0] for words in lines}
    assert commands >= {"train", "tune", "predict", "plan", "compare", "compare-runs", "release", "attack", "report"}
    assert commands >= {"audit", "explain", "federation", "mechanisms", "data", "reproduce"}
    assert commands >= {"demo", "advise", "config"}


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser reads every file")
@pytest.mark.parametrize("words", ["train --config shut/run.toml", "data describe shut", "predict shut digits"])
def test_what_may_not_be_read_is_named(type_in: Terminal, words: str) -> None:
    Path("shut").mkdir()
    for name in ("run.toml", "graph.toml", "model.pt"):
        Path("shut", name).write_text("x = 1")
        Path("shut", name).chmod(0)
    answer = type_in(*words.split())
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1), answer.err
    assert answer.err.startswith("error: ")
    assert "shut" in answer.err


@pytest.mark.parametrize(
    "message",
    [
        "delta is 2; allowed: a number in (0, 1)",
        "'zzz' is not known; allowed: alpha, beta",
        "mode 'boht' is not known; allowed: lower, both; did you mean both?",
        "--epsilon: 'inff'; allowed: a number, or inf",
    ],
)
def test_nothing_is_suggested_where_nothing_is_near_or_something_was(message: str) -> None:
    assert suggested(message) == message
