"""A federation as an estimator: all parties in this process."""

from __future__ import annotations

import math
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import torch

from graphveil.errors import BudgetError, GraphveilError, InputError, ModelFileError
from graphveil.federation import KINDS, MODES, VFGNN
from graphveil.federation.core.setting import OPTIONS, Option
from graphveil.graphs import load_graph, random_split
from graphveil.privacy import SecureRandomness
from graphveil.runtime.progress import Progress

SMALL: dict[str, Option] = {"epochs": 4, "republish": 2, "hops": 1, "width": 8, "opened": True}


# Mode all-shares has no epsilon: see `modes.test_all_shares`.
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "all-shares"])
def test_all_parties_run_and_everything_is_accounted_for(mode: str) -> None:
    graph = load_graph("social-200")
    model = VFGNN(epsilon=8.0, mode=mode, **SMALL).fit(graph, shares=(2, 1, 1), randomness=SecureRandomness())
    probabilities = model.predict_proba()
    assert probabilities.shape == (200, len(graph.schema.classes)) and bool((probabilities.sum(dim=1) - 1 < 1e-5).all())
    assert 0 <= model.score(graph, random_split(graph, 0).test) <= 1
    assert (model.guarantee.epsilon, model.guarantee.model, model.guarantee.void) == (8.0, "vertical", None)
    assert 7.9 < model.ledger.total("rows")[0] <= 8
    assert len(model.history) == (2 if mode == "guesses" else 1)  # the others look in the last of their rounds alone
    entries = model.transcript.entries
    assert {entry.kind for entry in entries} <= set(KINDS)
    guesses, holders = mode == "guesses", {"holder1", "holder2", "holder3"}
    assert {entry.sender for entry in entries} == (holders if guesses else {"server", *holders})
    published = [entry for entry in entries if entry.kind in ("embeddings", "noisy-share", "guesses")]
    assert len(published) == (2 if mode == "guesses" else 3 * 4)
    announced = ("labelled-rows", "validation-rows")
    between = [e for e in entries if "server" not in (e.sender, e.receiver) and e.kind not in announced]
    assert bool(between) == (mode != "individual")


def fitted(**settings: Option) -> VFGNN:
    return VFGNN(epsilon=8.0, mode="individual", **{**SMALL, **settings}).fit(load_graph("social-200"))


def test_a_saved_federation_says_the_same_and_publishes_no_more(tmp_path: Path) -> None:
    from graphveil.methods import load_method

    model = fitted(epsilon_y=math.inf)
    file = model.save(tmp_path / "model")
    for loaded in (VFGNN.load(file), load_method(file)):
        assert torch.equal(loaded.predict_proba(), model.predict_proba())
        assert (loaded.guarantee, loaded.ledger, loaded.history) == (model.guarantee, model.ledger, model.history)
        assert loaded.get_params() == model.get_params() and repr(loaded) == repr(model)
        with pytest.raises(BudgetError, match="has already run"):
            loaded.fit(load_graph("social-200"))
        with pytest.raises(AttributeError, match="no transcript"):
            _ = loaded.transcript
    with pytest.raises(ModelFileError, match="no saved model"):
        VFGNN.load(tmp_path / "nowhere")


def test_settings_change_before_publication_alone_and_clones_publish_once_in_all() -> None:
    from sklearn.base import clone

    model = VFGNN(epsilon=8.0, seed=3)
    assert repr(model) == "VFGNN(epsilon=8.0, seed=3)" and set(model.get_params()) == {*OPTIONS, "seed"}
    model.set_params(mode="individual", **SMALL)
    copied = clone(model)
    assert copied.get_params() == model.get_params()
    with pytest.raises(InputError, match="setting 'hop' is not known"):
        model.set_params(hop=1)
    model.fit(load_graph("social-200"))
    assert model.set_params(seed=3) is model
    with pytest.raises(InputError, match="would publish again"):
        copied.set_params(width=4)
    with pytest.raises(BudgetError, match="has already run"):
        copied.fit(load_graph("social-200"))


def test_what_makes_no_federation_is_refused_before_anybody_publishes() -> None:
    graph, wrong = load_graph("social-200"), "x"
    split = random_split(graph, seed=0)
    calls: tuple[tuple[dict[str, Any], str], ...] = (
        ({"split": wrong}, "split: is a str"),
        ({"split": replace(split, val=split.train)}, "split: a node is in two parts"),
        ({"shares": 3}, "shares are 3; allowed: a number of at least 0 for each holder"),
        ({"shares": (1, -1)}, r"shares are \(1, -1\)"),
        ({"shares": (0, 0)}, r"shares are \(0, 0\)"),
        ({"randomness": 3}, "randomness is 3; allowed: a source"),
        ({"progress": 3}, "progress is 3; allowed: a function"),
    )
    model = VFGNN(epsilon=8.0, mode="individual", **SMALL)
    for how, says in calls:
        with pytest.raises(InputError, match=says):
            model.fit(graph, **how)
    assert model.fit(graph, split=split) is model
    for seed in (-1, "x", None):
        with pytest.raises(InputError, match="seed is"):
            VFGNN(epsilon=8.0, seed=seed)  # type: ignore[arg-type]


def test_what_exists_after_fitting_alone_is_refused_before_and_true_afterwards() -> None:
    unfitted = VFGNN(epsilon=8.0)
    assert "Not fitted: nothing has been published." in unfitted._repr_html_()
    for name in ("privacy_", "classes_", "n_features_in_"):
        with pytest.raises(AttributeError, match=f"{name} exists only after fitting"):
            getattr(unfitted, name)
    with pytest.raises(GraphveilError, match="call fit first"):
        unfitted.predict_proba()
    model, schema = fitted(), load_graph("social-200").schema
    assert model.privacy_ == model.guarantee and model.classes_.tolist() == list(range(len(schema.classes)))
    assert (model.n_features_in_, model.schema.classes) == (schema.dimension, schema.classes)
    assert model.guarantee.sentence() in unescape(model._repr_html_())
    with pytest.raises(InputError, match="its own nodes only"):
        model.predict(load_graph("social-200"))


def test_progress_is_told_after_each_round_with_what_a_holder_has_spent() -> None:
    heard: list[Progress] = []
    model = VFGNN(epsilon=8.0, mode="individual", **SMALL)
    model.fit(load_graph("social-200"), progress=heard.append)
    assert [(at.done, at.total, at.stage) for at in heard] == [(1, 3, "train"), (2, 3, "train"), (3, 3, "train")]
    # Those who validate are published once here, for the whole epsilon; so are all others, in the end.
    assert 0 < float(heard[0].epsilon or 0) < float(heard[1].epsilon or 0) == pytest.approx(8.0, abs=0.1)
    assert heard[1].epsilon == heard[2].epsilon
