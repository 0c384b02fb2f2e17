"""Which engine a command opens, and for which methods it may be another than one thread here."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphveil.cli.base.groups import EngineChoice, opened, require_engine
from graphveil.engine import LOCAL, LocalEngine
from graphveil.errors import InputError
from graphveil.graphs import load_graph
from graphveil.methods import LPGNN, METHODS, ClassSums
from tests.cli.conftest import Terminal


def test_one_thread_here_is_the_default_of_every_method() -> None:
    for info in METHODS.values():
        require_engine(EngineChoice(), info)
    for workers, engine in ((None, LOCAL), (1, LOCAL), (3, LocalEngine(3))):
        with opened(EngineChoice(workers=workers)) as chosen:
            assert chosen == engine
    # By the name that was typed, where several methods share a core.
    with pytest.raises(InputError, match="dp-mlp does not work by blocks yet"):
        require_engine(EngineChoice(workers=2), METHODS["dp-mlp"])


def test_a_prediction_takes_an_engine_where_people_are_read_for_it(type_in: Terminal, tmp_path: Path) -> None:
    graph = load_graph("social-200")
    for method in (LPGNN(epsilon_x=4.0, epsilon_y=4.0, epochs=1), ClassSums(epsilon=4.0, epochs=1)):
        method.fit(graph).save(tmp_path / method.kind)
    answer = type_in("predict", "lpgnn", "social-300", "--people", "other", "--workers", 2)
    assert answer.code == 0
    refused = type_in("predict", "class-sums", "social-200", "--workers", 2)
    assert refused.code == 2 and "class-sums does not predict by blocks" in refused.err
    assert "--engine ray" in type_in("predict", "lpgnn", "--engine-address", "auto").err
