"""Option groups, completions, and the one training run that commands share."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest
import typer
import typer.testing

from graphveil.cli import choices, groups, options
from graphveil.cli.app import build
from graphveil.cli.running import run_method
from graphveil.graphs import NAMES, load_graph
from graphveil.methods import METHODS
from graphveil.progress import Progress

GROUPS = (
    groups.Source,
    groups.Epsilons,
    groups.EpsilonLists,
    groups.MethodSettings,
    groups.Repetition,
    groups.Speed,
)
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
        def made(data: options.Data, repetition: groups.Repetition, speed: groups.Speed) -> None:
            """A made command."""
            self.seen.update(data=data, repetition=repetition, speed=speed)

        return made


def test_a_command_gets_its_groups_whole() -> None:
    heard = Heard({})
    assert typed(heard.command(), "digits", "--seed", 3, "--repeats", 2, "--no-controls", "--threads", 1).exit_code == 0
    assert heard.seen["data"] == "digits"
    assert heard.seen["repetition"] == groups.Repetition(seed=3, repeats=2, no_controls=True)
    assert heard.seen["speed"] == groups.Speed(threads=1)


def test_what_was_not_typed_is_the_groups_default_or_the_commands_own() -> None:
    heard = Heard({})
    typed(heard.command(), "digits")
    assert heard.seen["repetition"] == groups.Repetition() and heard.seen["speed"] == groups.Speed()
    typed(heard.command(repeats=10), "digits")
    assert heard.seen["repetition"] == groups.Repetition(repeats=10)
    typed(heard.command(repeats=10), "digits", "--repeats", 4)
    assert heard.seen["repetition"].repeats == 4


@pytest.mark.parametrize("words", [("--seed", -1), ("--repeats", 0), ("--threads", 0), ("--seed", "many"), ("--no",)])
def test_what_no_option_takes_is_refused_before_the_command_runs(words: tuple[Any, ...]) -> None:
    heard = Heard({})
    assert typed(heard.command(), "digits", *words).exit_code == 2 and heard.seen == {}


def test_a_spread_command_keeps_its_name_and_help() -> None:
    made = Heard({}).command()
    assert (made.__name__, made.__doc__) == ("made", "A made command.")
    shown = inspect.signature(made).parameters
    assert set(shown) == {
        "data",
        *(field.name for group in (groups.Repetition, groups.Speed) for field in fields(group)),
    }
    assert set(made.__annotations__) == set(shown)


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_that_is_left_alone_asks_for_nothing(group: Any) -> None:
    """Every option has a default: a command can be typed without any."""
    assert all(getattr(group(), field.name) in (None, 0, 1, "random", False, "cpu") for field in fields(group))
    with pytest.raises(AttributeError):
        group().__setattr__(fields(group)[0].name, 1)


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


def test_folders_inside_folders_are_completed_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("b", "a", "a/two", "a/one"):
        (tmp_path / name).mkdir()
    (tmp_path / "a" / "file").write_text("")
    assert completions("a/", "graphveil train lpgnn ") == ["a/one/", "a/two/"]
    assert completions("a/t", "graphveil train lpgnn ") == ["a/two/"]
    assert completions("nowhere/x", "graphveil train lpgnn ") == []
    every = completions("", "graphveil train lpgnn ")
    assert every[-2:] == ["a/", "b/"] and set(NAMES) < set(every)


def run(chosen: dict[str, Any], tell: Any, *, repetition: groups.Repetition = ONCE) -> Any:
    speed = groups.Speed(threads=1)
    return run_method("label-propagation", load_graph("social-100"), chosen, repetition, speed, tell)


def test_a_run_says_its_defaults_once_and_before_any_progress(capsys: pytest.CaptureFixture[str]) -> None:
    order: list[str] = []

    def tell(event: Progress) -> None:
        order.append(capsys.readouterr().err)

    result, said = run({}, tell)
    default = METHODS["label-propagation"].options["epsilon_y"].default
    assert said == f"Using defaults: --epsilon-y {default:g} for label-propagation."
    assert order[0].strip() == said and not any(order[1:])
    assert result.privacy.guarantee.epsilon == default


def test_a_run_with_everything_typed_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    result, said = run({"epsilon_y": 1.5}, lambda event: None)
    assert said is None and capsys.readouterr().err == "" and result.privacy.guarantee.epsilon == 1.5
    assert run({"epsilon": 1.5}, lambda event: None)[1] is None


def test_a_run_keeps_to_what_was_asked(capsys: pytest.CaptureFixture[str]) -> None:
    twice = groups.Repetition(seed=4, repeats=2, no_controls=True, reproducible_noise=7)
    result, _ = run({"epsilon_y": 1.0}, lambda event: None, repetition=twice)
    assert len(result.scores.accuracy.runs) == 2 and not result.scores.controls
    again, _ = run({"epsilon_y": 1.0}, lambda event: None, repetition=twice)
    assert again.scores.accuracy == result.scores.accuracy and result.privacy.guarantee.void is not None
    other, _ = run({"epsilon_y": 1.0}, lambda event: None, repetition=groups.Repetition(seed=5))
    assert "public-only" in other.scores.controls and other.privacy.guarantee.void is None


def test_defaults_are_said_once_whoever_asks(capsys: pytest.CaptureFixture[str]) -> None:
    told: list[Progress] = []
    defaults = choices.Defaults({"label-propagation": {}, "lpgnn": {"epsilon": 2.0}}, told.append)
    assert capsys.readouterr().err == ""
    defaults(Progress(0, 2))
    first = capsys.readouterr().err
    defaults(Progress(1, 2))
    defaults.say()
    assert first.count("\n") == 1 and "lpgnn" not in first and capsys.readouterr().err == ""
    assert told == [Progress(0, 2), Progress(1, 2)]


def test_several_methods_share_one_sentence() -> None:
    said = choices.taken({"lpgnn": {"epsilon_x": 1.0}, "label-propagation": {}, "gcn": {}}) or ""
    assert said.count(";") == 1 and "--epsilon-x" not in said and said.endswith("for label-propagation.")
