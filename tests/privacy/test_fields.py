"""A guarantee as fields for registries: never less than was spent, and nothing left out that voids it."""

from __future__ import annotations

import json
import math
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.privacy import Guarantee, assume
from graphveil.privacy.statement.guarantee import privacy_fields
from graphveil.privacy.statement.observer import RELEASE_READERS
from graphveil.privacy.statement.unit import PRIVATE_EDGE, USER_LABEL
from tests.reports import made

EDGE = Guarantee(
    unit=PRIVATE_EDGE,
    relation="add/remove",
    model="central",
    epsilon=1.0,
    delta=0.0,
    against=RELEASE_READERS,
    assumes=(assume("released-once"),),
)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.floats(0.0, 1e6), st.floats(0.0, 0.999))
def test_a_registry_never_reads_less_than_was_spent(epsilon: float, delta: float) -> None:
    fields = privacy_fields(replace(EDGE, epsilon=epsilon, delta=delta))
    assert epsilon <= fields["epsilon"] <= epsilon * (1 + 1e-5)
    assert delta <= fields["delta"] <= delta * (1 + 1e-5)


def test_what_is_not_protected_is_infinite_in_words_that_json_has() -> None:
    fields = privacy_fields(replace(EDGE, epsilon=math.inf))
    assert json.loads(json.dumps(fields, allow_nan=False))["epsilon"] == "inf"


def test_every_part_has_a_price_of_its_own() -> None:
    whole = made.guarantee(epsilon_x=1.0, epsilon_y=2.0)
    fields = privacy_fields(whole)
    assert [part["epsilon"] for part in fields["parts"]] == [1.0, 2.0]
    assert fields["parts"][1]["unit_code"] == USER_LABEL.code


def test_what_voids_it_comes_first() -> None:
    for reason in ("noise was reproducible (seed 3)", None):
        fields = privacy_fields(replace(EDGE, void=reason))
        assert next(iter(fields.items())) == ("void", reason)
