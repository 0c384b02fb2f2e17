"""What cores share: what fitting leaves, the devices' half on public and on private links, and what is stored."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from graphveil.errors import InputError
from graphveil.graphs import GraphSchema
from graphveil.methods.base.core import FittedCore, Stored, signature_of, stored_probabilities

FACTS = GraphSchema("made", 8, 0.0, 1.0, ("a", "b"))


@dataclass(frozen=True)
class Left:
    schema: GraphSchema = FACTS


class Plain(FittedCore[Left]):
    name, fits = "plain method", "fit_reports"

    def leave(self) -> None:
        self._fitted = Left()


class Alone(Plain):
    name, fits = "lonely method", ""


def test_before_fitting_there_is_nothing_to_ask() -> None:
    for core, said in ((Plain(), "call fit or fit_reports first"), (Alone(), "call fit first")):
        assert not core.fitted
        for ask in (lambda core=core: core.result, lambda core=core: core.schema):
            with pytest.raises(InputError, match=f"this {core.name} has not been fitted; {said}"):
                ask()


def test_after_fitting_the_public_facts_are_those_of_the_collection() -> None:
    core, other = Plain(), Plain()
    core.leave()
    assert core.fitted and core.schema is FACTS and core.result == Left()
    assert not other.fitted, "what one core has learnt is not another's"


@dataclass(frozen=True)
class Options:
    epochs: int = 5
    hidden: int = 4
    seed: int = 0


class Settled:
    """A core whose settings are fields of a type; one is left out, one follows from others."""

    settings_type = Options
    derived, left_out = ("hidden",), ("seed",)

    def __init__(self, *, epsilon: float, **settings: Any) -> None: ...


def test_a_signature_spells_every_setting_out() -> None:
    found = signature_of(Settled).parameters
    assert list(found) == ["epsilon", "epochs", "hidden"]
    assert found["epsilon"].default is inspect.Parameter.empty
    assert (found["epochs"].default, found["hidden"].default) == (5, None)
    assert all(one.kind is inspect.Parameter.KEYWORD_ONLY for one in found.values())


def stored(probabilities: Any) -> Stored:
    return Stored({}, {"probabilities": probabilities})


@pytest.mark.parametrize(
    ("probabilities", "said"),
    [
        (torch.zeros(3, 4), r"\(3, 4\); allowed: \(nodes, 2\)"),
        (torch.zeros(2), r"\(2,\)"),
        (torch.zeros(3, 2, 1), r"\(3, 2, 1\)"),
        (torch.full((3, 2), torch.nan), "probabilities"),
        (torch.full((3, 2), torch.inf), "probabilities"),
    ],
)
def test_probabilities_of_another_shape_would_answer_for_other_people(probabilities: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        stored_probabilities(stored(probabilities), 2)
