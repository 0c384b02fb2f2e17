"""Option groups, completions, engines, and the one training run that commands share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
import typer.testing

from graphveil.cli.app import build
from graphveil.cli.base import choices, groups, options
from graphveil.cli.compare.command import comparison_of
from graphveil.cli.train.command import run_method
from graphveil.engine import LOCAL, LocalEngine
from graphveil.errors import InputError
from graphveil.graphs import NAMES, load_graph
from graphveil.methods import LPGNN, METHODS, ClassSums
from graphveil.privacy import SecureRandomness, SeededRandomness
from graphveil.reports.compare.cells import Comparison
from graphveil.runtime.progress import Progress
from graphveil.runtime.words import nearest
from tests.cli.conftest import Terminal

ONCE = groups.Repetition(no_controls=True, reproducible_noise=1)


def typed(command: Any, *words: object) -> typer.testing.Result:
    app = typer.Typer()
    app.command()(command)
    return typer.testing.CliRunner().invoke(app, [str(word) for word in words])


@dataclass
class Heard:
    """What a command was called with."""

    seen: dict[str, Any]

    def command(self, **defaults: Any) -> Any:
        @groups.spread(**defaults)
        def entry(data: options.Data, repetition: groups.Repetition, speed: groups.Speed) -> None:
            """A made command."""
            self.seen.update(data=data, repetition=repetition, speed=speed)

        return entry


def test_a_command_gets_its_groups_whole() -> None:
    heard = Heard({})
    assert typed(heard.command(), "digits", "--seed", 3, "--repeats", 2, "--no-controls", "--threads", 1).exit_code == 0
    assert heard.seen["data"] == "digits"
    assert heard.seen["repetition"] == groups.Repetition(seed=3, repeats=2, no_controls=True)
    assert heard.seen["speed"] == groups.Speed(threads=1)
    # What was not typed is the group's default, or the command's own.
    typed(heard.command(repeats=10), "digits")
    assert heard.seen["repetition"] == groups.Repetition(repeats=10) and heard.seen["speed"] == groups.Speed()
    typed(heard.command(repeats=10), "digits", "--repeats", 4)
    assert heard.seen["repetition"].repeats == 4
    refused = Heard({})
    for words in (("--seed", -1), ("--repeats", 0), ("--no",)):
        assert typed(refused.command(), "digits", *words).exit_code == 2 and refused.seen == {}


def completions(text: str, words: str) -> list[str]:
    """What the shell is offered for the last of some words."""
    result = typer.testing.CliRunner().invoke(
        build(),
        [],
        prog_name="graphveil",
        env={"_GRAPHVEIL_COMPLETE": "complete_bash", "COMP_WORDS": words + text, "COMP_CWORD": str(len(words.split()))},
    )
    return result.stdout.split()


def test_methods_and_data_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits-of-mine").mkdir()
    (tmp_path / "digits.txt").write_text("no folder")
    assert set(completions("", "graphveil train ")) == set(METHODS)
    assert completions("lpgnn", "graphveil train ") == ["lpgnn"]
    offered = completions("digi", "graphveil train lpgnn ")
    assert set(offered) == {*(name for name in NAMES if name.startswith("digi")), "digits-of-mine/"}
    for name in ("two", "one"):
        (tmp_path / "digits-of-mine" / name).mkdir()
    inside = [f"digits-of-mine/{name}/" for name in ("one", "two")]
    assert completions("digits-of-mine/", "graphveil train lpgnn ") == inside
    assert completions("nowhere/x", "graphveil train lpgnn ") == []


def run(chosen: dict[str, Any], tell: Any, *, repetition: groups.Repetition = ONCE) -> Any:
    speed = groups.Speed(threads=1)
    return run_method("label-propagation", load_graph("social-100"), chosen, repetition, speed, tell)


def test_a_run_says_its_defaults_once_and_before_any_progress(capsys: pytest.CaptureFixture[str]) -> None:
    order: list[str] = []

    def tell(event: Progress) -> None:
        order.append(capsys.readouterr().err)

    result, message = run({}, tell)
    default = METHODS["label-propagation"].options["epsilon_y"].default
    assert message == f"Using defaults: --epsilon-y {default:g} for label-propagation."
    assert order[0].strip() == message and not any(order[1:])
    assert result.privacy.guarantee.epsilon == default
    typed_all, nothing = run({"epsilon_y": 1.5}, lambda event: None)
    assert nothing is None and capsys.readouterr().err == "" and typed_all.privacy.guarantee.epsilon == 1.5
    several = choices.defaults_sentence({"lpgnn": {"epsilon_x": 1.0}, "label-propagation": {}, "gcn": {}}) or ""
    assert several.count(";") == 1 and "--epsilon-x" not in several and several.endswith("for label-propagation.")


# ---- which engine a command opens, and for which methods it may be another than one thread here ----


def test_one_thread_here_is_the_default_of_every_method() -> None:
    for info in METHODS.values():
        groups.require_engine(groups.EngineChoice(), info)
    for workers, engine in ((None, LOCAL), (1, LOCAL), (3, LocalEngine(3))):
        with groups.open_engine(groups.EngineChoice(workers=workers)) as chosen:
            assert chosen == engine
    # By the name that was typed, where several methods share a core.
    with pytest.raises(InputError, match="dp-mlp does not work by blocks yet"):
        groups.require_engine(groups.EngineChoice(workers=2), METHODS["dp-mlp"])


def test_a_prediction_takes_an_engine_where_people_are_read_for_it(type_in: Terminal, tmp_path: Path) -> None:
    graph = load_graph("social-200")
    for method in (LPGNN(epsilon_x=4.0, epsilon_y=4.0, epochs=1), ClassSums(epsilon=4.0, epochs=1)):
        method.fit(graph).save(tmp_path / method.kind)
    assert type_in("predict", "lpgnn", "social-300", "--people", "other", "--workers", 2).good
    type_in("predict", "class-sums", "social-200", "--workers", 2).refused("class-sums does not predict by blocks")
    assert "--engine ray" in type_in("predict", "lpgnn", "--engine-address", "auto").err


# ---- from words typed to settings ----


INFO = METHODS["lpgnn"]


def test_only_what_was_typed_is_collected() -> None:
    assert choices.collect("lpgnn", INFO, {"epsilon_x": None, "settings": None}) == {}
    typed = {"epsilon_x": "2", "epochs": 3, "settings": ["steps-x=4", " dropout = 0.5 "]}
    assert choices.collect("lpgnn", INFO, typed) == {"epsilon_x": 2.0, "epochs": 3, "steps_x": 4, "dropout": 0.5}
    for word, value in (("INF", math.inf), ("1e-2", 0.01), ("none", None)):
        assert choices.collect("lpgnn", INFO, {"epsilon_x": word}) == {"epsilon_x": value}
        assert choices.collect("lpgnn", INFO, {"settings": [f"epsilon_x={word}"]}) == {"epsilon_x": value}
    assert choices.split_pair("a-b=c=d") == ("a_b", "c=d")
    assert nearest("lpgn", METHODS) == "did you mean lpgnn?" and nearest("xyzzy", METHODS) is None


def test_several_values() -> None:
    assert choices.several("epsilon_y", "1, 2,inf") == (1.0, 2.0, math.inf)
    assert choices.several("epsilon_x", "none,1") == (None, 1.0)
    with pytest.raises(InputError, match="names a value twice"):
        choices.several("epsilon_y", "1,1.0")


def test_noise_is_secure_unless_asked_otherwise() -> None:
    assert isinstance(choices.noise(None), SecureRandomness)
    assert isinstance(choices.noise(3), SeededRandomness)
    assert isinstance(choices.noise_of_cell(None, 4), SecureRandomness)
    first, second = choices.noise_of_cell(1, 0), choices.noise_of_cell(1, 1)
    assert first.uint64(4).tolist() != second.uint64(4).tolist()
    assert choices.noise_of_cell(1, 1).uint64(4).tolist() == SeededRandomness(2).uint64(4).tolist()


def test_comparison_gives_each_method_its_own() -> None:
    typed = {
        **dict.fromkeys(choices.NAMED),
        "epsilon_x": "1,2",
        "epsilon_y": "3",
        "epochs": 4,
        "settings": ["steps_x=1", "dropout=0.1"],
        "seed": 5,
        "repeats": 2,
        "no_controls": False,
        "reproducible_noise": None,
        "split": "random",
    }
    comparison = comparison_of("lpgnn, mlp,label-propagation", "cora", typed)
    assert comparison.methods == {
        "lpgnn": {"epochs": 4, "steps_x": 1, "dropout": 0.1},
        "mlp": {"epochs": 4, "dropout": 0.1},
        "label-propagation": {},
    }
    assert comparison.takes == {"lpgnn": ["epsilon_x", "epsilon_y"], "mlp": [], "label-propagation": ["epsilon_y"]}
    assert (list(comparison.seeds), comparison.options) == ([5, 6], {"controls": True, "reproducible_noise": None})


def compared(methods: str, **typed: object) -> Comparison:
    nothing = {"settings": None, "seed": 0, "repeats": 1, "no_controls": False, "reproducible_noise": None}
    return comparison_of(methods, "cora", {**dict.fromkeys(choices.NAMED), **nothing, "split": "random", **typed})


def test_a_total_goes_to_methods_that_are_given_no_parts() -> None:
    comparison = compared("lpgnn,label-propagation,gap", epsilon="2,8", epsilon_x="1")
    assert comparison.takes == {"lpgnn": ["epsilon_x"], "label-propagation": ["epsilon"], "gap": ["epsilon"]}
    assert compared("lpgnn", epsilon="2,8").takes == {"lpgnn": ["epsilon"]}
    with pytest.raises(InputError, match="a total that is split"):
        compared("lpgnn,gcn", epsilon="2,8", epsilon_x="1")


def test_delta_goes_to_methods_that_have_one_in_any_case() -> None:
    comparison = compared("lpgnn,gap,heterorr,gcn", delta=1e-6)
    assert comparison.methods == {"lpgnn": {}, "gap": {"delta": 1e-6}, "heterorr": {}, "gcn": {}}
    comparison = compared("lpgnn,gap", delta=1e-6, settings=["mechanism=gaussian"])
    assert comparison.methods["lpgnn"] == {"delta": 1e-6, "mechanism": "gaussian"}
    with pytest.raises(InputError, match="gaussian mechanism alone"):
        compared("lpgnn", delta=1e-6)
