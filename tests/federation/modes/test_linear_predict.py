"""Predictions for people who joined later: the same network on new rows, each opened once, under noise of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from graphveil.errors import BudgetError
from graphveil.federation.core import states
from graphveil.federation.core.messages import simulate
from graphveil.federation.core.networks import OutputLayer
from graphveil.federation.core.states import RunContext
from graphveil.federation.crypto import ring
from graphveil.federation.modes import linear_predict
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.linear_server import LinearNetwork, hidden_of
from graphveil.federation.modes.propagation import rounded_down, scaled_rows, transition_matrix
from graphveil.privacy import SeededRandomness
from tests.federation.views import FALSE_ALARM, Recorder, holdings, is_uniform, setting_of, watched

Patch = pytest.MonkeyPatch
OLD, EVERYBODY = 40, 160
NEW = torch.arange(OLD, EVERYBODY)
#: Of each row its number in the run.
BEFORE = torch.cat([torch.arange(OLD), torch.full_like(NEW, -1)])


@cache
def trained(epsilon: float) -> Any:
    """A finished run of three holders: its setting, and what each party has kept."""
    by_holder = holdings(3, OLD, 5)
    setting = setting_of(by_holder, epsilon=epsilon)
    with pytest.MonkeyPatch.context() as patch:
        return setting, {name: states[-1] for name, states in watched(setting, by_holder, patch).checkpoints.items()}


def everybody() -> dict[str, Holding]:
    return {name: replace(holding, head=None) for name, holding in holdings(3, EVERYBODY, 5, seed=1).items()}


class Session(Recorder):
    """One session of a prediction: what holders return, all messages, what the server opened, and what is kept."""

    def __init__(
        self, patch: Patch, epsilon: float, *, by_holder: Any = None, new: Mapping[str, Tensor] | None = None,
        states: Mapping[str, Any] | None = None, seed: int = 5,
    ) -> None:  # fmt: skip
        setting, before = trained(epsilon)
        super().__init__()
        by_holder, self.z = by_holder or everybody(), torch.zeros(0)

        def seen(network: Any, z: Tensor, *rest: Any) -> Tensor:
            self.z = z
            return hidden_of(network, z, *rest)

        programs: dict[str, Any] = {}
        for place, name in enumerate((setting.server, *setting.names)):
            done, state = (0, None) if states is None else (1, states[name, 2])
            run = RunContext(name, setting, SeededRandomness(100 * seed + place), done=done, state=state)
            if name == setting.server:
                programs[name] = linear_predict.predicting_server(run, before[name], EVERYBODY)
            else:
                rows = (new or {}).get(name, NEW)
                programs[name] = linear_predict.predicting_holder(run, before[name], by_holder[name], rows, BEFORE)
        with patch.context() as here:
            here.setattr(linear_predict, "hidden_of", seen)
            self.results, _ = simulate(programs, watch=self.watch)

    def bodies(self, kind: str, to: str) -> list[Tensor]:
        return [send.body for _, send in self.sent if send.kind == kind and send.to == to]


def plain(epsilon: float) -> Tensor:
    """S'^K X' W of new people in the clear, float64."""
    setting, before = trained(epsilon)
    by_holder, bits = everybody().values(), setting.protocol.bits
    w = ring.decode(torch.stack([before[name]["weights"] for name in setting.names]).sum(dim=0), bits).double()
    s = sum(rounded_down(transition_matrix(each.edge_index, EVERYBODY), 3, bits) for each in by_holder) * 2.0**-bits
    z = np.hstack([scaled_rows(holding.features, 3).numpy() for holding in by_holder]) @ w.numpy()
    for _ in range(setting.model.hops):
        z = s @ z
    return torch.from_numpy(z)[NEW]


def test_new_people_are_predicted_as_by_the_same_network_in_the_clear(monkeypatch: Patch) -> None:
    setting, before = trained(np.inf)
    seen = Session(monkeypatch, np.inf)
    assert torch.allclose(seen.z.double(), plain(np.inf), atol=1e-4)
    network, output = (
        kind(*size, generator=torch.Generator())
        for kind, size in ((LinearNetwork, (setting,)), (OutputLayer, (setting.model.width, setting.classes)))
    )
    states.load_module("kept", network, before["server"])
    states.load_module("desk/kept", output, before["h1"])
    with torch.no_grad():
        hidden = hidden_of(network, plain(np.inf).float(), before["server"]["memory/z"][: OLD // 2], setting)
        expected = torch.softmax(output(hidden), dim=1)
    assert torch.allclose(seen.results["h1"].probabilities, expected, atol=1e-3)
    assert seen.results["h2"].probabilities is None


def test_each_holder_adds_the_noise_of_one_publication_for_the_whole_epsilon(monkeypatch: Patch) -> None:
    """960 numbers: a chi-square of their squares, false alarm 1e-6; without the noise of one holder it is refused."""
    setting, _ = trained(8.0)
    seen = Session(monkeypatch, 8.0)
    once = setting.publication_of(1)
    variance = 3 * (once.sigma * once.clip) ** 2
    squares = float((seen.z.double() - plain(8.0)).square().sum()) / variance
    low, high = stats.chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], seen.z.numel())
    assert low < squares < high
    assert not low < squares * 2 / 3 < high
    assert {seen.results[name].publisher.spent for name in setting.names} == {once.spent(1)}
    assert once.spent(1) <= 8.0


def test_the_server_reads_the_sum_of_new_rows_and_nothing_else(monkeypatch: Patch) -> None:
    """Rows that are new, keys and corrections of the hidden matrices, and shares of which the sum alone is not uniform;
    false alarm 1e-6.
    """
    seen = Session(monkeypatch, 8.0)
    kinds = {send.kind for _, send in seen.sent if send.to == "server"}
    assert kinds == {"new-rows", "matrix-key", "hidden-matrix", "noisy-share"}
    shares = seen.bodies("noisy-share", "server")
    assert [tuple(share.shape) for share in shares] == [(len(NEW), 8)] * 3
    pairs = [shares[first] + shares[other] for first, other in ((0, 1), (0, 2), (1, 2))]
    assert all(is_uniform(words, 6) for words in [*shares, *pairs])
    assert torch.equal(seen.bodies("new-rows", "server")[0], NEW)


def test_a_prediction_that_runs_again_opens_the_same_rows_and_other_data_is_refused(monkeypatch: Patch) -> None:
    first = Session(monkeypatch, 8.0)
    again = Session(monkeypatch, 8.0, states=first.checkpoints, seed=6)
    assert torch.equal(first.z, again.z)
    assert {send.name for _, send in first.sent if send.name} == {send.name for _, send in again.sent if send.name}
    words = [set(torch.cat(run.bodies("noisy-share", "server")).flatten().tolist()) for run in (first, again)]
    assert not words[0] & words[1]
    for who in ("h1", "h3"):
        other = everybody()
        other[who].features[EVERYBODY - 1] += 0.5
        with pytest.raises(BudgetError, match="publication 2 of 1"):
            Session(monkeypatch, 8.0, states=first.checkpoints, by_holder=other, seed=7)


def test_holders_that_disagree_on_who_was_published_refuse(monkeypatch: Patch) -> None:
    """An announcement makes no holder publish somebody again."""
    with pytest.raises(BudgetError, match="disagree on who was published"):
        Session(monkeypatch, 8.0, new={"h2": NEW[1:]})
