"""What is a privacy budget, for every estimator alike."""

from __future__ import annotations

import math

import pytest

from graphveil.errors import InputError
from graphveil.federation.core.publication import Guessing
from graphveil.federation.estimator import VFGNN
from graphveil.methods import DPMLP, GAP, LPGNN, ClassSums, HeteroRR, LinkBeliefs, Solitude
from graphveil.privacy import require_budget
from graphveil.privacy.accounting.limits import LARGEST_EPSILON

BUILT = [
    (LPGNN, {"epsilon_x": 1.0, "epsilon_y": 1.0}),
    (Solitude, {"epsilon_x": 1.0, "epsilon_y": 1.0, "epsilon_a": 1.0}),
    (LinkBeliefs, {"epsilon_x": 1.0, "epsilon_y": 1.0, "epsilon_a": 1.0}),
    (HeteroRR, {"epsilon_x": 1.0, "epsilon_y": 1.0, "epsilon_a": 1.0}),
    (GAP, {"epsilon": 1.0}),
    (ClassSums, {"epsilon": 1.0}),
    (DPMLP, {"epsilon": 1.0}),
    (VFGNN, {"epsilon": 1.0, "mode": "guesses"}),
]


@pytest.mark.parametrize("kind, fields", BUILT, ids=lambda kind: getattr(kind, "__name__", ""))
def test_no_estimator_takes_an_epsilon_that_hides_nothing(kind, fields):
    for name in fields:
        if name.startswith("epsilon"):
            for value in (201.0, 1e308, 10**400):
                with pytest.raises(InputError, match=rf"{name} is .* more hides nothing"):
                    built(kind, {**fields, name: value})
            built(kind, {**fields, name: LARGEST_EPSILON})


def built(kind, fields):
    if kind is VFGNN:  # what it promises depends on who holds what
        Guessing(fields["epsilon"], 2)
    return kind(**fields)


def test_a_budget_is_a_number_above_0():
    for value in (1e-9, 1, 12.0, 200, math.inf):
        require_budget("epsilon", value, "x")
    for value in (0, -1.0, math.nan, -math.inf, "1", True, None):
        with pytest.raises(InputError, match=r"epsilon is .*; allowed: a number in \(0, 200\]"):
            require_budget("epsilon", value, "x")
