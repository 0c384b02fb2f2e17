"""JSON without literals that no reader takes, and TOML that says the same when it is read again."""

from __future__ import annotations

import json
import math
import tomllib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.files.serial import json_safe, number_to_json, to_json, toml_lines, toml_value, yaml_lines

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), TEXT)


def test_infinities_are_words_and_toml_of_arrays_is_that_of_plain_numbers() -> None:
    assert [number_to_json(value) for value in (1.5, math.inf, -math.inf, math.nan)] == [1.5, "inf", "-inf", None]
    assert json_safe({"a": (math.inf, 1), 2: [math.nan]}) == {"a": ["inf", 1], "2": [None]}
    assert json.loads(to_json({"a": math.inf, "b": {"c": (1, 2.5)}})) == {"a": "inf", "b": {"c": [1, 2.5]}}
    assert toml_lines({"low": np.float64(0.5), "names": ("a", 'b"\x7f')}) == [
        "low = 0.5",
        'names = ["a", "b\\"\\u007f"]',
    ]


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.one_of(VALUES, st.lists(VALUES, max_size=4)))
def test_toml_says_the_same_when_it_is_read_again(value: object) -> None:
    assert tomllib.loads(f"key = {toml_value(value)}") == {"key": value}


KEYS = st.from_regex(r"k[a-z_-]{0,5}", fullmatch=True)
NESTED = st.recursive(
    st.one_of(VALUES, st.none(), st.floats(1e-300, 1e-5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=6,
)


@pytest.mark.slow  # hundreds of files
@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.dictionaries(KEYS, NESTED, max_size=4))
def test_yaml_says_the_same_when_it_is_read_again(values: dict[str, object]) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML, which other libraries bring, is what reads it again")
    text = "\n".join(yaml_lines(values))
    assert (yaml.safe_load(text) or {}) == json_safe(values)
    assert "---" not in text.splitlines() and not set("<>&`") & set(text)
