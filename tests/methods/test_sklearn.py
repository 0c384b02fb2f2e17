"""scikit-learn's manners of the one estimator, and what a search over settings must not do: ask people again."""

from __future__ import annotations

import copy
import math
import re
import warnings
from functools import partial
from typing import Any

import numpy as np
import pytest
import sklearn
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_val_predict, cross_val_score, cross_validate
from sklearn.utils import estimator_checks as checks
from sklearn.utils.validation import check_is_fitted

from graphveil.errors import BudgetError, InputError
from graphveil.graphs import random_split
from graphveil.methods import (
    DPMLP,
    GAP,
    LPGNN,
    ClassSums,
    HeteroRR,
    LabelPropagation,
    LinkBeliefs,
    NodeSums,
    ProGAP,
    Solitude,
)
from graphveil.methods.runs import experiment
from graphveil.privacy import SeededRandomness
from tests.methods import made
from tests.pages import page

BUILT: dict[str, Any] = {
    "lpgnn": lambda: LPGNN(epsilon_x=1.0, epsilon_y=2.0, epochs=2, hidden=4),
    "label-propagation": lambda: LabelPropagation(epsilon_y=2.0),
    "solitude": lambda: Solitude(epsilon_x=1.0, epsilon_a=4.0, epochs=2, hidden=4),
    "link-beliefs": lambda: LinkBeliefs(epsilon_x=1.0, epsilon_a=4.0, rounds=2),
    "gap": lambda: GAP(epsilon=4.0, epochs=2, hidden=4),
    "progap": lambda: ProGAP(epsilon=4.0, epochs=2, hidden=4),
    "node-sums": lambda: NodeSums(epsilon=8.0, passes=1, hidden=4, batch=1000),
    "dp-mlp": lambda: DPMLP(epsilon=4.0, passes=1, hidden=4),
    "class-sums": lambda: ClassSums(epsilon=4.0, epochs=2, hidden=4),
    "heterorr": lambda: HeteroRR(epsilon_x=2.0, epsilon_a=4.0, epochs=2, hidden=4),
}
ALL = pytest.mark.parametrize("name", BUILT)


@ALL
def test_a_copy_of_any_kind_pays_from_the_same_account(name: str) -> None:
    method = BUILT[name]()
    for other in (clone(method), copy.copy(method), copy.deepcopy(method)):
        assert other.account is method.account
        assert other.get_params() == method.get_params()


def test_a_deep_copy_of_a_fitted_method_has_sparse_rows_of_its_own() -> None:
    """Torch pickles and clones rows of this layout, and refuses to copy them."""
    graph = made.graph()
    method = LPGNN(epsilon_x=math.inf, epsilon_y=2.0, epochs=2, hidden=4).fit(graph, randomness=SeededRandomness(1))
    other = copy.deepcopy([method])[0]
    theirs, own = method.released.features, other.released.features
    assert own.layout == torch.sparse_csr and own is not theirs and torch.equal(own.to_dense(), theirs.to_dense())
    assert torch.equal(other.predict_proba(), method.predict_proba()) and other.account is method.account


def test_fitted_attributes_are_there_after_fitting_alone() -> None:
    method, graph = BUILT["lpgnn"](), made.graph()
    with pytest.raises(NotFittedError):
        check_is_fitted(method)
    assert not any(hasattr(method, name) for name in ("privacy_", "classes_", "n_features_in_"))
    method.fit(graph, randomness=SeededRandomness(1))
    check_is_fitted(method)
    assert method.privacy_ == method.guarantee
    assert np.array_equal(method.classes_, np.arange(len(graph.schema.classes)))
    assert method.n_features_in_ == graph.schema.dimension
    assert set(method.predict().tolist()) <= set(method.classes_.tolist())


def test_noise_comes_from_the_operating_system_unless_said_otherwise() -> None:
    """By default nothing is void; the core itself has no default."""
    graph = made.graph()
    assert BUILT["lpgnn"]().fit(graph).guarantee.void is None
    with pytest.raises(TypeError, match="randomness"):
        BUILT["lpgnn"]().collect(graph, split=random_split(graph, 0))


def test_a_clone_cannot_ask_the_same_people_again() -> None:
    method, graph = BUILT["lpgnn"](), made.graph()
    method.fit(graph, randomness=SeededRandomness(1))
    other, ledger = clone(method), method.ledger
    assert not other.fitted
    with pytest.raises(BudgetError):
        other.fit(graph, randomness=SeededRandomness(2))
    assert other.ledger == method.ledger == ledger
    with pytest.raises(InputError, match=r"graphveil tune.*methods\.runs\.tuning"):
        other.set_params(hidden=8)
    with pytest.raises(InputError, match=r"graphveil tune"):
        method.set_params(hidden=8)


@ALL
@pytest.mark.parametrize("search", [GridSearchCV, RandomizedSearchCV])
def test_a_search_is_refused_with_the_accounted_way(name: str, search: Any) -> None:
    """Each candidate and fold would be one collection more; nobody is asked before that is said."""
    method = BUILT[name]()
    over = search(method, {"seed": [1, 2]}, **({"n_iter": 2} if search is RandomizedSearchCV else {}), cv=2)
    with pytest.raises(InputError, match=r"would ask them again; .*graphveil tune.*methods\.runs\.tuning\.tune"):
        over.fit(made.graph())
    assert method.ledger.spends == () and not method.fitted


def test_cross_validation_asks_nobody() -> None:
    """Of rows the estimator says why not; of a graph scikit-learn cuts no folds."""
    method, graph = BUILT["lpgnn"](), made.graph()
    rows = {"X": graph.x.to_dense().numpy(), "y": graph.y.numpy()}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        for validate in (cross_val_score, cross_validate, cross_val_predict):
            options = {} if validate is cross_val_predict else {"error_score": "raise"}
            with pytest.raises(KeyError, match=r"\d"):
                validate(method, graph, cv=2, **options)
            with pytest.raises(InputError, match=r"fit: .* with labels apart.*repeats=5.*`graphveil tune`"):
                validate(method, **rows, cv=2, **options)
    assert method.ledger.spends == () and not method.fitted


def test_a_run_with_controls_leaves_its_lift() -> None:
    """Shown in a notebook, gone with the next fit, and never in a saved file: it was measured against true labels."""
    graph = made.graph()
    settings = {"epsilon_x": 1.0, "epsilon_y": 2.0, "epochs": 2, "hidden": 4}
    result = experiment.run("lpgnn", graph, settings=settings, randomness=SeededRandomness(1))
    lift = result.scores.lift
    assert result.model.lift is lift and lift is not None
    points = [f"{100 * value:+.1f}" for value in (lift.mean, lift.low, lift.high)]
    assert f"{points[0]} points ({points[1]} to {points[2]})" in result.model._repr_html_()
    assert "lift" not in str(result.model.stored().facts).lower() and clone(result.model).lift is None
    bare = experiment.run("lpgnn", graph, settings=settings, randomness=SeededRandomness(1), controls=False)
    assert bare.model.lift is None and "Lift: not measured" in bare.model._repr_html_()

    again = LPGNN(epsilon_x=math.inf, epsilon_y=math.inf, epochs=2, hidden=4).fit(graph)
    again.lift = lift
    assert again.fit(graph).lift is None


# ---- every check that scikit-learn has for a classifier ----


PAGE = page("scikit-learn")
PASS = sorted(set(re.findall(r"`(check_\w+)`", PAGE.split("## Pass, for every method")[1].split("\n## ")[0])))

#: Before scikit-learn 1.7 it ended where weights of samples are not taken.
OLD = tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 7)
END_EARLY = ("check_sample_weight_equivalence_on_sparse_data",)


@ALL
@pytest.mark.parametrize("check", [name for name in PASS if hasattr(checks, name) and not (OLD and name in END_EARLY)])
def test_what_is_said_to_pass_passes(name: str, check: str) -> None:
    run = getattr(checks, check)
    if check.startswith("check_array_api"):
        run = partial(run, array_namespace="numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(name, BUILT[name]())
