"""Every method that people send reports to, in the settings that it may have, before the one suite for all of them."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest

from graphveil.methods import LPGNN, LabelPropagation, LinkBeliefs, Solitude, baseline
from tests.methods.cases import Case, Inductive
from tests.methods.conformance import MethodSuite

SHORT: dict[str, Any] = {"epochs": 3, "hidden": 4}
QUICK: dict[str, Any] = {**SHORT, "steps_x": 2, "steps_y": 2}
INF = math.inf


def lpgnn(x: float | None, y: float, dimension: int = 100, **settings: Any) -> Case:
    inductive = "never" if x is None else "public" if math.isinf(x) else "reports"
    build = partial(LPGNN, epsilon_x=x, epsilon_y=y, **{**QUICK, **settings})
    return Case(build, x or 0.0, y, inductive, dimension)


def labels(y: float, dimension: int = 100, **settings: Any) -> Case:
    build = partial(LabelPropagation, epsilon_y=y, **settings)
    return Case(build, 0.0, y, "never", dimension, trains="rule" in settings)


def answers(dimension: int = 100, **settings: Any) -> Case:
    own = {"epsilon_x": 1.0, "epsilon_y": 1.0, "rule": "pool", "question": "0>=0.5", **settings}
    return Case(partial(LabelPropagation, **own), 1.0, 1.0, "never", dimension, one_report=True)


def solitude(x: float | None, a: float, y: float, mode: str, inductive: Inductive = "reports", **settings: Any) -> Case:
    chosen_mode = None if settings.pop("left_open", False) else mode
    build = partial(Solitude, epsilon_x=x, epsilon_a=a, epsilon_y=y, mode=chosen_mode, **{**SHORT, **settings})
    return Case(build, x or 0.0, y, inductive, 20, links=a, mode=mode)


def beliefs(x: float | None, a: float, y: float, mode: str, **settings: Any) -> Case:
    chosen_mode = None if settings.pop("left_open", False) else mode
    build = partial(LinkBeliefs, epsilon_x=x, epsilon_a=a, epsilon_y=y, mode=chosen_mode, rounds=4, **settings)
    # Of 60 people's public features the regression alone is taken, which no seed decides.
    trains = x is None or ("reading" in settings and x < INF)
    return Case(build, x or 0.0, y, "never", 20, trains, links=a, mode=mode)


CASES = {
    # In pairs: every backbone and every combination of budgets once. A core treats all mechanisms alike, but for those
    # with a delta and those whose reports are dense.
    "sage, private labels": lpgnn(INF, 1.0, model="sage"),
    "gcn, both private": lpgnn(1.0, 2.0, model="gcn"),
    "gat, private features": lpgnn(1.0, INF, model="gat"),
    "mlp, no features": lpgnn(None, 1.0, model="mlp"),
    **{mechanism: lpgnn(1.0, 1.0, 20, mechanism=mechanism) for mechanism in ("one-bit", "gaussian")},
    "several bits": lpgnn(8.0, 1.0, steps_x=0, steps_y=0, scaling="published", selection="published"),
    **{
        f"plain {model}": Case(partial(baseline, model, **SHORT), INF, INF, "public", dimension)
        for model, dimension in (("gcn", 100), ("mlp", 20))
    },
    "upgnet, sparse reports": lpgnn(4.0, 1.0, denoising="upgnet"),
    "upgnet, dense reports": lpgnn(4.0, 1.0, 20, denoising="upgnet", mechanism="one-bit"),
    "label-propagation": labels(1.0),
    "label-propagation, public labels": labels(INF),
    "label-pool": labels(1.0, rule="pool"),
    "label-pool, public labels": labels(INF, 20, rule="pool"),
    "answer-pool": answers(),
    "answer-pool, statistics declared": answers(20, statistics="0.9,0.1; 0.1,0.9; 0.5,0.5"),
    "solitude, lower": solitude(1.0, 4.0, INF, "lower", mechanism="gaussian"),
    "solitude, both": solitude(1.0, 3.0, 2.0, "both", model="gcn"),
    "solitude, mode left open": solitude(INF, 4.0, INF, "lower", left_open=True),
    "solitude, links public": solitude(1.0, INF, 1.0, "lower", model="mlp"),
    "solitude, all public": solitude(INF, INF, INF, "lower", "public"),
    "solitude, no features": solitude(None, 4.0, 1.0, "lower", "never"),
    "solitude, complement": solitude(1.0, 4.0, INF, "both", complement=10),
    "solitude, none": solitude(1.0, 4.0, INF, "directed", denoiser="none", steps_y=2),
    "solitude, beliefs": solitude(1.0, 4.0, 1.0, "lower", denoiser="beliefs", model="gat"),
    "dprr": solitude(1.0, 4.0, INF, "both", denoiser="degree-preserving"),
    "blink-hybrid": solitude(INF, 6.0, INF, "lower", denoiser="blink-hybrid", degree_share=1 / 3),
    "blink-soft": solitude(1.0, 4.0, 1.0, "directed", denoiser="blink-soft"),
    "link-beliefs, lower": beliefs(1.0, 4.0, INF, "lower", mechanism="gaussian"),
    "link-beliefs, both": beliefs(1.0, 3.0, 2.0, "both"),
    "link-beliefs, lists alone, mode left open": beliefs(INF, 4.0, INF, "lower", left_open=True),
    "link-beliefs, no features, directed": beliefs(None, 4.0, 1.0, "directed"),
    "link-beliefs, sums, directed": beliefs(INF, 6.0, 2.0, "directed", reading="sums"),
    "link-beliefs, all, no features": beliefs(None, 4.0, 1.0, "lower", reading="all"),
}
#: What networks read beside the lists takes seconds.
SLOW = {"link-beliefs, sums, directed", "link-beliefs, all, no features"}


@pytest.fixture(
    scope="module",
    params=[pytest.param(each, marks=[pytest.mark.slow] * (name in SLOW), id=name) for name, each in CASES.items()],
)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


class TestMethods(MethodSuite):
    pass
