"""Tuning on a public graph: the private one is read once, at the price of one training."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from graphveil.errors import InputError
from graphveil.graphs import Split
from graphveil.methods.registry import build_method
from graphveil.methods.runs import proxy_tuning
from graphveil.methods.runs.proxy_tuning import require_free, tune_by_proxy
from graphveil.privacy import SeededRandomness
from tests.methods import curator_made as cm

FAST: dict[str, dict[str, Any]] = {
    "gap": {"epsilon": 4.0, "epochs": 3, "hidden": 4, "bits": 5},
    "dp-mlp": {"epsilon": 4.0, "hidden": 4, "passes": 2, "batch": 1000},
    "class-sums": {"epsilon": 4.0, "epochs": 3},
    "lpgnn": {"epsilon_x": 2.0, "epsilon_y": 2.0, "epochs": 3},
}
OVER = {"learning_rate": (0.01, 0.1)}


def tuned(name: str, graph: Any, proxy: Any, **how: Any) -> Any:
    chosen = {"split": cm.split_of(cm.graph()), "randomness": SeededRandomness(3), "trials": 5, **how}
    return tune_by_proxy(name, graph, proxy, FAST[name], OVER, **chosen)


@pytest.mark.parametrize("name", FAST)
def test_the_guarantee_is_that_of_one_training(name: str) -> None:
    start, proxy = cm.graph(), cm.graph(seed=9)
    found = tuned(name, start, proxy)
    once = build_method(name, {**FAST[name], **found.settings}, 3)
    once.fit(start, split=cm.split_of(start), randomness=SeededRandomness(5))
    assert found.method.ledger == once.ledger
    assert found.method.guarantee.epsilon == once.guarantee.epsilon
    assert len(found.trials) == 2
    assert found.settings == max(found.trials, key=lambda trial: trial.score).settings
    assert "assumes that social-60 is public and was chosen without looking at" in found.how


def test_the_choice_does_not_look_at_the_private_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until all trials are over it cannot be read at all, but for the check that it is another graph."""
    monkeypatch.setattr(proxy_tuning, "fingerprint", lambda graph, key: str(id(graph)))
    done: list[int] = []
    with pytest.raises(AssertionError, match="were read"):
        tuned("gap", cm.Unreadable(cm.graph()), cm.graph(seed=9), progress=lambda at: done.append(at.done))
    assert done == [1, 2]


def test_the_graph_is_no_proxy_of_itself_under_any_name() -> None:
    with pytest.raises(InputError, match="the proxy is the private graph itself"):
        tuned("gap", cm.graph(), cm.graph())


def test_what_is_promised_may_not_be_chosen() -> None:
    for name, key in (("gap", "epsilon"), ("lpgnn", "epsilon_x"), ("gap", "unit"), ("solitude", "mode")):
        with pytest.raises(InputError, match=f"{key} is part of the guarantee and cannot be tuned; allowed: "):
            require_free(name, {key: (1, 2)}, 3)
    with pytest.raises(InputError, match="nothing to try"):
        require_free("gap", {}, 3)
    require_free("gap", {"hops": (1, 2), "weights": ("uniform",)}, 3)
    require_free("lpgnn", {"mechanism": ("laplace",)}, 1)


def test_a_proxy_without_validation_nodes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    split = cm.split_of(cm.graph())
    blind = Split(split.train, torch.zeros_like(split.val), split.test)
    monkeypatch.setattr(proxy_tuning, "random_split", lambda graph, seed: blind)
    with pytest.raises(InputError, match="no validation node is left"):
        tuned("gap", cm.graph(), cm.graph(seed=9))
