"""Each method is a class, of what is built, cloned, unpickled and loaded alike."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path
from typing import Any

import pytest
from sklearn.base import clone

import graphveil
from graphveil import methods
from graphveil.errors import InputError, ModelFileError
from graphveil.graphs import random_split
from graphveil.methods import METHODS, load_method
from graphveil.methods.registry import build_method
from graphveil.privacy import SeededRandomness
from tests.methods import made

#: Short trainings, of those that have any.
QUICK = {"epochs": 2, "passes": 1, "hidden": 4, "rounds": 2, "steps_x": 1, "question": "0>=0.5"}


def built(name: str, **settings: Any) -> Any:
    quick = {key: value for key, value in QUICK.items() if key in METHODS[name].options}
    return build_method(name, {**quick, **settings}, classes=3)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_a_class_with_real_parameters(name: str) -> None:
    method = METHODS[name]
    kind, parameters = method.load_class(), inspect.signature(method.load_class()).parameters
    assert isinstance(kind, type) and kind.entry is method and getattr(methods, kind.__name__) is kind
    assert repr(kind) == f"<class '{kind.__module__}.{kind.__name__}'>"
    model = built(name)
    assert {*parameters} == {*model.get_params()} and not {*method.fixed} & {*parameters}
    for other in (model, clone(model), pickle.loads(pickle.dumps(model))):
        assert type(other) is kind and other.get_params() == model.get_params() and other.name == name
    for key, option in method.options.items():
        assert key == "epsilon" or parameters[key].default in (option.default, inspect.Parameter.empty), key
    assert [key for key in parameters if f" {key}: " not in kind.__doc__ and f" {key}, " not in kind.__doc__] == []
    chosen = [key for key in QUICK if key in method.options]
    assert repr(model).count(", ") < 1 + len(chosen) + sum(each.default is each.empty for each in parameters.values())
    with pytest.raises(InputError, match=rf"^{kind.__name__}: setting 'epsilonx' is not known; allowed: "):
        kind(epsilonx=1.0)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        *(
            (name, {})
            for name in ("lpgnn", "upgnet", "label-pool", "list-sums", "class-sums", "edge-rand", "gap", "mlp")
        ),
        ("lpgnn", {"steps_x": None}),
        ("edge-rand", {"weights": "posterior", "pooling": "none", "steps_x": None}),
    ],
)
def test_a_loaded_model_is_of_the_class_that_was_saved(name: str, settings: dict[str, Any], tmp_path: Path) -> None:
    graph = made.graph()
    model = built(name, **settings).fit(graph, split=random_split(graph, 0), randomness=SeededRandomness(1))
    file, kind = model.save(tmp_path), type(model)
    assert kind.load(file).get_params() == model.get_params(), "what follows from others is not set by a file"
    assert type(load_method(file)) is type(kind.load(file)) is kind
    models = [
        each for each in kind.__mro__[1].__subclasses__() if getattr(each, "kind", "") == kind.kind and each is not kind
    ]
    for other in models:
        with pytest.raises(ModelFileError, match=f"holds a '{name}' model"):
            other.load(file)


def test_the_package_has_what_each_kind_of_trust_is_advised_to_take() -> None:
    classes = {method.class_name for method in METHODS.values()} & {*graphveil.__all__}
    assert {METHODS[name].trust for name in METHODS if METHODS[name].class_name in classes} == {"local", "central"}
    assert all(isinstance(getattr(graphveil, name), type) for name in (*classes, "VFGNN", "Guarantee", "Ledger"))
