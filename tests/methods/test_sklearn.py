"""scikit-learn's manners of the one estimator, and what a search over settings must not do: ask people again."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.utils import estimator_checks as checks
from sklearn.utils.validation import check_is_fitted

from graphveil.errors import BudgetError, InputError
from graphveil.graphs import random_split
from graphveil.methods import DPMLP, GAP, LPGNN, ClassSums, HeteroRR, LabelPropagation, LinkBeliefs, ProGAP, Solitude
from graphveil.privacy import SeededRandomness
from tests.methods import made

BUILT: dict[str, Any] = {
    "lpgnn": lambda: LPGNN(epsilon_x=1.0, epsilon_y=2.0, epochs=2, hidden=4),
    "label-propagation": lambda: LabelPropagation(epsilon_y=2.0),
    "solitude": lambda: Solitude(epsilon_x=1.0, epsilon_a=4.0, epochs=2, hidden=4),
    "link-beliefs": lambda: LinkBeliefs(epsilon_x=1.0, epsilon_a=4.0, rounds=2),
    "gap": lambda: GAP(epsilon=4.0, epochs=2, hidden=4),
    "progap": lambda: ProGAP(epsilon=4.0, epochs=2, hidden=4),
    "dp-mlp": lambda: DPMLP(epsilon=4.0, passes=1, hidden=4),
    "class-sums": lambda: ClassSums(epsilon=4.0, epochs=2, hidden=4),
    "heterorr": lambda: HeteroRR(epsilon_x=2.0, epsilon_a=4.0, epochs=2, hidden=4),
}
#: Checks of `check_estimator` that ask for nothing but settings. The others hand in arrays of rows without people,
#: edges or a declared range (`fit(X, y)` with X [n, d]), fit the same rows several times, which is refused or charged
#: here, or build an estimator without arguments: no epsilon has a default that is right for everybody.
APPLICABLE = (
    checks.check_estimator_cloneable,
    checks.check_estimator_repr,
    checks.check_valid_tag_types,
    checks.check_estimator_tags_renamed,
    checks.check_get_params_invariance,
    checks.check_set_params,
)
ALL = pytest.mark.parametrize("name", BUILT)


@ALL
@pytest.mark.parametrize("check", APPLICABLE, ids=lambda check: str(check.__name__))
def test_the_checks_that_apply_pass(name: str, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(name, BUILT[name]())


@ALL
def test_settings_come_back_and_build_the_same_once_more(name: str) -> None:
    method = BUILT[name]()
    params = method.get_params()
    again = type(method)(type(method.core)(**params))
    assert again.get_params() == params and repr(again) == repr(method)
    assert is_classifier(method)
    seed = params["seed"] + 1
    assert method.set_params(seed=seed).get_params()["seed"] == seed
    with pytest.raises(InputError, match="setting 'epsilonx' is not known"):
        method.set_params(epsilonx=1.0)


@ALL
def test_a_copy_of_any_kind_pays_from_the_same_account(name: str) -> None:
    method = BUILT[name]()
    for other in (clone(method), copy.copy(method), copy.deepcopy(method)):
        assert other.core.account is method.core.account
        assert other.get_params() == method.get_params()


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
        BUILT["lpgnn"]().core.collect(graph, split=random_split(graph, 0))


def test_a_clone_cannot_ask_the_same_people_again() -> None:
    method, graph = BUILT["lpgnn"](), made.graph()
    method.fit(graph, randomness=SeededRandomness(1))
    other, ledger = clone(method), method.ledger
    assert not other.core.fitted
    with pytest.raises(BudgetError):
        other.fit(graph, randomness=SeededRandomness(2))
    assert other.ledger == method.ledger == ledger
    with pytest.raises(InputError, match=r"graphveil tune.*methods\.runs\.tuning"):
        other.set_params(hidden=8)
    with pytest.raises(InputError, match=r"graphveil tune"):
        method.set_params(hidden=8)


@ALL
@pytest.mark.parametrize("search", [GridSearchCV, RandomizedSearchCV])
@pytest.mark.parametrize("jobs", [None, 1])
def test_a_search_is_refused_with_the_accounted_way(name: str, search: Any, jobs: int | None) -> None:
    """Each candidate and fold would be one collection more; nobody is asked before that is said."""
    method = BUILT[name]()
    over = search(
        method, {"seed": [1, 2]}, **({"n_iter": 2} if search is RandomizedSearchCV else {}), n_jobs=jobs, cv=2
    )
    with pytest.raises(InputError, match=r"would ask them again; .*graphveil tune.*methods\.runs\.tuning\.tune"):
        over.fit(made.graph())
    assert method.ledger.spends == () and not method.core.fitted


def test_nothing_of_the_core_is_hidden_by_setting_it_on_the_estimator() -> None:
    method = BUILT["lpgnn"]()
    with pytest.raises(AttributeError):
        method.privacy = None
    with pytest.raises(AttributeError, match="LPGNN has no attribute 'nothing'"):
        method.nothing  # noqa: B018
    assert "randomize" in dir(method) and "core" in dir(method)
    fitted = method.fit(made.graph(), randomness=SeededRandomness(1))
    back = pickle.loads(pickle.dumps(fitted))
    assert torch.equal(back.predict_proba(), method.predict_proba())


def test_what_says_who_is_refused_where_nobody_is_asked() -> None:
    method = BUILT["label-propagation"]().fit(made.graph(), randomness=SeededRandomness(1))
    with pytest.raises(InputError, match="people says nothing to label-propagation"):
        method.predict(made.graph(), people="same")


def test_a_notebook_shows_the_guarantee_and_the_lift_escaped() -> None:
    method = BUILT["lpgnn"]()
    assert "Not fitted" in method._repr_html_()
    method.fit(made.graph(), randomness=SeededRandomness(1))
    shown = method._repr_html_()
    assert "NO GUARANTEE: noise was reproducible" in shown and "Lift: not measured" in shown
    assert "&#x27;" in shown and "'" not in shown

    class Lift:
        mean, low, high = 0.123, -0.01, 0.25

    method.lift = Lift()
    assert "+12.3 points (-1.0 to +25.0)" in method._repr_html_()


def test_what_users_have_is_taken_as_a_graph() -> None:
    from torch_geometric.data import Data

    graph = made.graph()
    plain = Data(x=graph.x, y=graph.y, edge_index=graph.edge_index)
    method = BUILT["lpgnn"]()
    with pytest.raises(InputError, match="range and classes are not declared"):
        method.fit(plain)
    assert method.ledger.spends == ()
