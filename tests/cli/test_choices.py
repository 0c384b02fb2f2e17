"""From words typed to settings: types, names, and what is refused."""

from __future__ import annotations

import math
import re

import pytest

from graphveil.cli import choices, near
from graphveil.errors import InputError
from graphveil.methods import METHODS
from graphveil.methods.registry import listing
from graphveil.privacy import SecureRandomness, SeededRandomness
from graphveil.reports.compare.cells import Comparison

LPGNN = METHODS["lpgnn"]


def test_every_named_option_is_a_setting_or_announced() -> None:
    known = set().union(*(info.options for info in METHODS.values()))
    assert {"epsilon_x", "epsilon_y", "model", "epochs"} <= set(choices.NAMED) & known
    assert set(choices.AXES) <= set(choices.NAMED)


def test_help_names_every_method() -> None:
    named = re.findall(r"[a-z][a-z-]+", listing())
    assert [name for name in METHODS if name not in named] == []


def test_only_what_was_typed_is_collected() -> None:
    assert choices.collect("lpgnn", LPGNN, {"epsilon_x": None, "settings": None}) == {}
    typed = {"epsilon_x": "2", "epochs": 3, "settings": ["steps-x=4", " dropout = 0.5 "]}
    assert choices.collect("lpgnn", LPGNN, typed) == {"epsilon_x": 2.0, "epochs": 3, "steps_x": 4, "dropout": 0.5}


@pytest.mark.parametrize(("typed", "value"), [("inf", math.inf), ("INF", math.inf), ("1e-2", 0.01), ("none", None)])
def test_epsilons(typed: str, value: float | None) -> None:
    assert choices.collect("lpgnn", LPGNN, {"epsilon_x": typed}) == {"epsilon_x": value}
    assert choices.collect("lpgnn", LPGNN, {"settings": [f"epsilon_x={typed}"]}) == {"epsilon_x": value}


@pytest.mark.parametrize(("pair", "split"), [("a=b", ("a", "b")), ("a-b=c=d", ("a_b", "c=d")), ("a=", ("a", ""))])
def test_pairs(pair: str, split: tuple[str, str]) -> None:
    assert choices.split_pair(pair) == split


def test_the_nearest_name_is_named_only_when_it_is_near() -> None:
    assert near.nearest("lpgn", METHODS) == "did you mean lpgnn?"
    assert near.nearest("xyzzy", METHODS) is None


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
    found = choices.comparison("lpgnn, mlp,label-propagation", "cora", typed)
    assert found.methods == {
        "lpgnn": {"epochs": 4, "steps_x": 1, "dropout": 0.1},
        "mlp": {"epochs": 4, "dropout": 0.1},
        "label-propagation": {},
    }
    assert found.takes == {"lpgnn": ["epsilon_x", "epsilon_y"], "mlp": [], "label-propagation": ["epsilon_y"]}
    assert (list(found.seeds), found.options) == ([5, 6], {"controls": True, "reproducible_noise": None})


def compared(methods: str, **typed: object) -> Comparison:
    nothing = {"settings": None, "seed": 0, "repeats": 1, "no_controls": False, "reproducible_noise": None}
    return choices.comparison(methods, "cora", {**dict.fromkeys(choices.NAMED), **nothing, "split": "random", **typed})


def test_a_total_goes_to_methods_that_are_given_no_parts() -> None:
    found = compared("lpgnn,label-propagation,gap", epsilon="2,8", epsilon_x="1")
    assert found.takes == {"lpgnn": ["epsilon_x"], "label-propagation": ["epsilon"], "gap": ["epsilon"]}
    assert compared("lpgnn", epsilon="2,8").takes == {"lpgnn": ["epsilon"]}
    with pytest.raises(InputError, match="a total that is split"):
        compared("lpgnn,gcn", epsilon="2,8", epsilon_x="1")


def test_delta_goes_to_methods_that_have_one_in_any_case() -> None:
    found = compared("lpgnn,gap,heterorr,gcn", delta=1e-6)
    assert found.methods == {"lpgnn": {}, "gap": {"delta": 1e-6}, "heterorr": {}, "gcn": {}}
    found = compared("lpgnn,gap", delta=1e-6, settings=["mechanism=gaussian"])
    assert found.methods["lpgnn"] == {"delta": 1e-6, "mechanism": "gaussian"}
    with pytest.raises(InputError, match="gaussian mechanism alone"):
        compared("lpgnn", delta=1e-6)


def test_only_another_split_is_written_down() -> None:
    """So that a folder from before there was a choice is taken up."""
    assert "split" not in compared("gap").options
    assert compared("gap", split="75/10/15").options["split"] == "75/10/15"
