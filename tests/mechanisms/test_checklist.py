"""The reviewer's checklist, as far as mechanisms go, and what is exported."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch

import graphveil.mechanisms
from graphveil.errors import InputError
from graphveil.mechanisms import MechanismInfo, PairDomain, SampledVectors, catalogue
from graphveil.mechanisms.catalogue import current_name, mechanism_named
from graphveil.mechanisms.features.sampled import SamplingKind
from tests.mechanisms import conformance
from tests.methods.made import Counted


def constants(mechanism: Any) -> bytes:
    """Everything an encoder's output law is made of."""
    derived = [getattr(mechanism, name) for name in ("scale", "step", "midpoint") if hasattr(mechanism, name)]
    names = ("law", "noise", "lattice", "domain")
    inner = [repr(getattr(mechanism, name)) for name in names if hasattr(mechanism, name)]
    return pickle.dumps((dataclasses.asdict(mechanism), derived, inner))


@pytest.mark.parametrize("case", conformance.AUDITED.values(), ids=str)
def test_item_6_encoder_constants_do_not_depend_on_data(case: conformance.Case) -> None:
    """Checklist items 3 and 6: constants are byte-identical and as many words are drawn whatever was encoded."""
    mechanism, drawn = case.build(case.epsilon), []
    before = constants(mechanism)
    for row in case.inputs:
        source = Counted(1)
        mechanism.estimate(mechanism.randomize(conformance.repeat(row, 300), randomness=source))
        drawn.append(source.counts)
        assert constants(mechanism) == before
    assert all(sizes == drawn[0] for sizes in drawn)


def mechanisms_defined() -> set[Any]:
    """Whatever the modules of mechanisms define that randomizes and states a guarantee."""
    rooms = [Path(str(graphveil.mechanisms.__file__)).parent / room for room in ("features", "labels", "edges")]
    paths = [f"{file.parent.name}.{file.stem}" for room in rooms for file in room.glob("[!_]*.py")]
    modules = [import_module(f"graphveil.mechanisms.{path}") for path in paths]
    defined = [(value, module.__name__) for module in modules for value in vars(module).values()]
    kinds = {value for value, _ in defined if isinstance(value, SamplingKind)}
    classes = {value for value, home in defined if isinstance(value, type) and value.__module__ == home}
    return kinds | {value for value in classes if {"randomize", "guarantee"} <= set(dir(value))} - {SampledVectors}


def test_catalogue_lists_every_mechanism_once() -> None:
    listed = catalogue()
    kinds = [info.mechanism for info in listed]
    assert len(set(kinds)) == len(kinds)
    assert set(kinds) == mechanisms_defined()
    names = [name for info in listed for name in (info.name, *info.old_names)]
    assert len(set(names)) == len(names)
    for info in listed:
        assert all((info.name, info.source, info.report, info.note, info.options))
        assert info.class_name == info.mechanism.__name__
        assert getattr(graphveil.mechanisms, info.class_name) is info.mechanism


@pytest.mark.parametrize("info", catalogue(), ids=lambda info: info.name)
def test_an_entry_says_how_its_mechanism_is_built(info: MechanismInfo) -> None:
    """Keywords, defaults, what must be given, and what is protected are those of the class."""
    parameters = inspect.signature(info.mechanism).parameters
    assert [option.name for option in info.options if option.name != "delta"] == [n for n in parameters if n != "delta"]
    for option in info.options:
        default = parameters[option.name].default
        assert (default is inspect.Parameter.empty) == option.required
        assert option.required or default == option.default
    needed: dict[str, Any] = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "dimension": 2,
        "classes": 3,
        "nodes": 4,
        "domain": PairDomain(4),
    }
    needed |= {"groups": torch.zeros(4, dtype=torch.int64)}
    mechanism = info.mechanism(**{option.name: needed[option.name] for option in info.options if option.required})
    assert mechanism.guarantee.unit.text == info.unit
    assert (mechanism.guarantee.model == "local") == (info.trust == "local")
    assert (mechanism.guarantee.delta > 0) == info.takes("delta")
    assert info.builds(mechanism) == isinstance(info.mechanism, type)


def test_old_names_are_read_and_never_given_out() -> None:
    assert mechanism_named("analytic-gaussian") is mechanism_named("gaussian")
    assert [current_name(name) for name in ("analytic-gaussian", "nothing")] == ["gaussian", "nothing"]
    assert mechanism_named("gaussian").first_name == "analytic-gaussian"
    with pytest.raises(InputError, match="mechanism 'nothing' is not known"):
        mechanism_named("nothing")
    with pytest.raises(InputError, match="edge-rand makes plain tensors"):
        _ = mechanism_named("edge-rand").report_type
