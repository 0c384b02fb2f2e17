"""Methods by name."""

from __future__ import annotations

import ast
import inspect
import math
import subprocess
import sys
from pathlib import Path

import pytest

from graphveil import methods
from graphveil.errors import InputError
from graphveil.methods import METHODS
from graphveil.methods.local.label_propagation import LabelPropagationCore
from graphveil.methods.local.lpgnn import LPGNNCore
from graphveil.methods.registry import PUBLIC, build_method, chosen_settings


@pytest.mark.parametrize("name", METHODS)
def test_every_setting_has_a_default_of_its_type_and_one_line_of_help(name: str) -> None:
    info = METHODS[name]
    assert info.summary and "\n" not in info.summary
    for option in info.options.values():
        assert option.default is None or isinstance(option.default, option.type)
        assert option.help and "\n" not in option.help


@pytest.mark.parametrize("name", METHODS)
def test_unknown_settings_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="setting 'epsilonx' is not known; allowed: "):
        METHODS[name].settle({"epsilonx": 1.0})


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        *((name, {}) for name in METHODS),
        ("lpgnn", {"epsilon": 1.0}),
        ("lpgnn", {"epsilon": 30.0}),
        ("lpgnn", {"epsilon_x": None, "epsilon_y": 1.0}),
        ("lpgnn", {"mechanism": "gaussian", "delta": 1e-6, "hidden": 8}),
        ("label-propagation", {"epsilon": 2.0}),
        ("solitude", {"denoiser": "blink-hard", "degree_share": 0.3}),
        ("gap", {"epsilon": 2.0, "unit": "node", "epochs": 3}),
    ],
)
def test_a_method_is_built_once_more_from_what_a_run_recorded(name: str, settings: dict[str, object]) -> None:
    first = build_method(name, settings, 5)
    used = METHODS[name].load_family().used_settings(first, METHODS[name].settle(settings))
    second = build_method(name, chosen_settings(name, used), 5)
    assert type(second.core) is type(first.core)
    for part in ("settings", "privacy", "links", "rule", "rounds"):
        assert getattr(second, part, None) == getattr(first, part, None)


def test_a_total_budget_is_split_as_advised() -> None:
    small, large = build_method("lpgnn", {"epsilon": 2.0}, 7), build_method("lpgnn", {"epsilon": 8.0}, 7)
    assert isinstance(small.core, LabelPropagationCore) and (small.rule, small.privacy.epsilon_y) == ("pool", 2.0)
    assert isinstance(large.core, LPGNNCore)
    assert large.privacy.epsilon_x + large.privacy.epsilon_y == pytest.approx(8.0)
    assert build_method("label-propagation", {"epsilon": 3.0}, 7).privacy.epsilon_y == 3.0


def test_a_total_and_its_parts_are_not_given_together() -> None:
    with pytest.raises(InputError, match="epsilon is a total that is split for you"):
        build_method("lpgnn", {"epsilon": 2.0, "epsilon_x": 1.0}, 7)


def test_delta_is_taken_with_the_gaussian_mechanism_alone() -> None:
    with pytest.raises(InputError, match="delta belongs to the gaussian mechanism alone"):
        METHODS["lpgnn"].settle({"delta": 1e-5})
    assert METHODS["lpgnn"].settle({"delta": 1e-5, "mechanism": "gaussian"})["delta"] == 1e-5
    with pytest.raises(InputError, match=r"delta = 5\.0"):
        build_method("lpgnn", {"delta": 5.0, "mechanism": "gaussian"}, 7)


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        (
            "solitude",
            {"degree_share": 0.2},
            "degree_share does not apply to denoiser calibration; allowed: with degree-p",
        ),
        ("solitude", {"denoiser": "none", "degree_share": 0.2}, "degree_share does not apply to denoiser none"),
        (
            "solitude",
            {"denoiser": "none", "lambda1": 0.1},
            "lambda1 does not apply to denoiser none; allowed: with cal",
        ),
        ("solitude", {"denoiser": "blink-hard", "complement": 3}, "complement does not apply to denoiser blink-hard"),
        ("solitude", {"epsilon_a": math.inf, "lambda2": 0.1}, "lambda2 does not apply where links are public"),
        ("blink", {"epsilon_a": math.inf, "degree_share": 0.2}, "degree_share does not apply where links are public"),
        ("blink", {"denoiser": "none"}, "setting 'denoiser' is not known"),
        ("dprr", {"lambda1": 0.1}, "setting 'lambda1' is not known"),
        ("list-sums", {"rounds": 5}, "setting 'rounds' is not known"),
        ("links", {"reading": "sums"}, "setting 'reading' is not known"),
        ("link-beliefs", {"reading": "none"}, "reading 'none' is not known; allowed: beliefs, sums, all"),
        ("link-beliefs", {"epochs": 5}, "setting 'epochs' is not known"),
        ("link-beliefs", {"epsilon_a": math.inf}, "links are public; train lpgnn"),
        ("solitude", {"denoiser": "blink-soft", "steps_x": 2}, "allowed: steps_x = 0, steps_y = 0"),
        ("link-beliefs", {"blocks": "planted", "reading": "sums"}, "blocks 'planted' with reading sums"),
        ("solitude", {"denoiser": "nothing"}, "denoiser 'nothing' is not known; allowed: calibration, none"),
        ("solitude", {"mode": "upper"}, "mode 'upper' is not known; allowed: lower, both, directed"),
    ],
)
def test_settings_that_would_not_be_looked_at_are_refused(name: str, settings: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        build_method(name, settings, 5)


def test_what_methods_there_are_is_read_without_loading_any() -> None:
    script = (
        "import graphveil.methods.registry, sys; "
        "print(sorted({'torch', 'torch_geometric', 'numba', 'scipy', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name", METHODS)
def test_every_entry_finds_its_core_which_takes_its_options(name: str) -> None:
    entry = METHODS[name]
    assert entry.name == name
    assert entry.load_core().__name__ == entry.core.rpartition(":")[2]
    assert not set(entry.fixed) & set(entry.options)
    entry(**{key: value for key, value in entry.settle({}).items() if key != "epsilon" or entry.trust == "central"})


def test_a_public_name_is_the_entry_itself() -> None:
    import graphveil

    assert graphveil.LPGNN is graphveil.methods.LPGNN is METHODS["lpgnn"]
    assert graphveil.ClassSums is METHODS["class-sums"] and METHODS["class-sums"].public_name == "ClassSums"
    assert METHODS["blink"].public_name is None  # Solitude with settings fixed
    assert (graphveil.LPGNN.__doc__ or "").startswith("Locally private graph neural network")
    assert list(inspect.signature(graphveil.LPGNN).parameters)[:2] == ["epsilon_x", "epsilon_y"]


def test_public_names_are_what_type_checkers_are_told() -> None:
    source = ast.parse(Path(methods.__file__).read_text(encoding="utf-8"))
    block = next(node for node in source.body if isinstance(node, ast.If))
    told = {ast.unparse(node.targets[0]) for node in block.body if isinstance(node, ast.Assign)}
    assert told == set(PUBLIC) and told <= set(methods.__all__)
