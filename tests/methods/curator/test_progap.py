"""Unit "node": GAP, ProGAP and node sums with private training; what all units share: test_training_checklist.py."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from graphveil.aggregation.grid import quantise
from graphveil.errors import BudgetError, InputError
from graphveil.methods.curator.privacy import CuratorPrivacy
from graphveil.methods.curator.recipe import StagedCore
from graphveil.methods.curator.settings import CuratorSettings
from graphveil.methods.curator.training import receiver_rows
from graphveil.privacy import SeededRandomness
from tests.methods import curator_made as cm

EVERY = pytest.mark.parametrize("name", [*cm.KINDS, "node-sums"])
#: A batch of everybody: the noise of plain Gaussian steps is found at once.
NODE: dict[str, Any] = {"unit": "node", "degree_bound": 5, "epsilon": 8.0, "hops": 1, "batch": 1000, "passes": 4}


@EVERY
def test_a_nodes_list_moves_the_sums_of_others_by_at_most_what_is_charged(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Items 2, 3, 9: with noisy answers frozen, only the node's own row of what is summed differs."""
    replay = cm.Replay(monkeypatch)
    start, node, trained, real = cm.graph(), 5, [], StagedCore._train

    def frozen(me: StagedCore, network: nn.Module, *rest: Any) -> Any:
        if replay.replaying:
            network.load_state_dict(trained[len(replay.calls)])
            return ()
        found = real(me, network, *rest)
        trained.append({name: value.clone() for name, value in network.state_dict().items()})
        return found

    monkeypatch.setattr(StagedCore, "_train", frozen)
    cm.fit(name, start, **NODE)
    before = replay.again()
    cm.fit(name, cm.without_node(start, node), **NODE)
    others = torch.arange(60) != node
    (sums, rows, x, hop), (sums2, rows2, x2, hop2) = before[0], replay.calls[0]
    assert (sums, hop) == (sums2, hop2)
    assert torch.allclose(x[others], x2[others], atol=1e-6)
    bits = sums.row_bits()
    moved = (rows.sums(quantise(x, bits=bits)).values - rows2.sums(quantise(x2, bits=bits)).values)[others]
    assert 0 < float(moved.norm()) / 2**bits <= sums.sensitivity == pytest.approx(5**0.5)


@EVERY
def test_the_last_training_is_paid_for_once(name: str) -> None:
    method = cm.fit(name, **NODE)
    with pytest.raises(BudgetError, match="a publication pays for one"):
        method.fit_published(method.published, randomness=SeededRandomness(2))


@EVERY
def test_no_network_mixes_samples(name: str) -> None:
    names = [type(part).__name__ for net in cm.fit(name, **NODE).published.networks for part in net.modules()]
    assert "BatchNorm1d" not in names and "Linear" in names
    freely = cm.fit(name, epsilon=float("inf")).published.networks
    open_names = [type(part).__name__ for net in freely for part in net.modules()]
    assert "BatchNorm1d" in open_names


def test_a_broken_promise_is_refused() -> None:
    privacy = CuratorPrivacy(8.0, unit="node", degree_bound=1, rule="declared")
    with pytest.raises(InputError, match="more than the declared"):
        receiver_rows(cm.graph(), privacy, CuratorSettings(), torch.ones(60, 4))


def test_stages_go_on_from_one_another() -> None:
    """The first layer trains in every stage, from where the stage before left it."""
    stages = cm.fit("progap", hops=2, patience=0).core.result.networks
    assert [len(stage.bases) for stage in stages] == [1, 2, 3]
    first = [stage.bases[0].layer.weight for stage in stages]
    assert not torch.equal(first[0], first[1])
    near, far = (first[0] - first[1]).norm(), first[0].norm()
    assert float(near.detach()) < float(far.detach())
