"""What the parties compute together: the same steps as one model on all data, whatever is shared, masked or opened."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from safetensors.torch import save
from torch import Tensor

from graphveil.errors import BudgetError
from graphveil.federation.core.messages import ANYBODY, KINDS
from graphveil.federation.core.mode import MODE_OF
from graphveil.federation.core.networks import EMBEDDING_LENGTH, standardise
from graphveil.federation.core.publisher import Publisher
from graphveil.federation.core.setting import Setting
from graphveil.federation.crypto import ring
from graphveil.federation.effects import Checkpoint, Effect
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.programs import traffic_of
from graphveil.federation.modes.propagation import scaled_rows, transition_matrix
from graphveil.federation.simulation import Trained, simulate_training
from graphveil.models import structure_for
from graphveil.privacy import SeededRandomness
from tests.federation.views import Recorder, holdings, setting_of

N = 40
MODES = ("individual", "paper", "shared-linear")
ALL_MODES = (*MODES, "guesses", "all-shares")


def federation(holders: int = 2, **changes: Any) -> tuple[Setting, dict[str, Holding]]:
    by_holder = holdings(holders, N, 5)
    plain: dict[str, Any] = {"weight_decay": 0.0, "opened": True, "epochs": 1}
    return setting_of(by_holder, **{**plain, **changes}), by_holder


def run(holders: int = 2, **changes: Any) -> tuple[Trained, Setting, dict[str, Holding]]:
    setting, by_holder = federation(holders, **changes)
    return simulate_training(setting, by_holder, randomness=SeededRandomness(3), seed=5), setting, by_holder


def weights(trained: Trained, setting: Setting, pulls: dict[str, Tensor]) -> dict[str, Tensor]:
    """W_j of every block after the first round, as the sum of the holders' shares; `pulls`: their shares of A then."""
    if setting.protocol.mode == "shared-linear":
        w, p = (sum(getattr(trained.holders[name], part) for name in setting.names) for part in ("w", "p"))
        a = ring.decode(sum(pulls.values()), setting.protocol.bits)
        whole = ring.decode(w, setting.protocol.bits) + ring.decode(p, setting.protocol.bits)[: len(a)].T @ a
        blocks = whole.split([member.columns for member in setting.members])
        return {name: block.clone() for name, block in zip(setting.names, blocks, strict=True)}
    parts = [trained.holders[name].first.shares for name in setting.names]
    return {name: ring.decode(sum(part[name] for part in parts), setting.protocol.bits) for name in setting.names}


def one_model(start: Trained, setting: Setting, by_holder: dict[str, Holding], blocks: dict[str, Tensor]) -> Tensor:
    """The loss of one model that sees everything, with the parties' initial weights."""
    head = by_holder["h1"].head
    assert head is not None
    network, kind = start.server, setting.model.aggregator
    if setting.protocol.mode == "paper":
        h0 = sum(by_holder[name].features @ blocks[name] for name in setting.names)
        graphs = {name: structure_for(kind, by_holder[name].edge_index, N) for name in setting.names}
        rows = [start.holders[name].propagation(h0, graph) for name, graph in graphs.items()]
        # What the server makes of published rows before it trains on them passes gradients straight through.
        z = network([h + (standardise(h, EMBEDDING_LENGTH, like=h[head.train]) - h).detach() for h in rows])
    else:
        x = torch.cat([scaled_rows(by_holder[name].features, len(setting.names)) for name in setting.names], dim=1)
        walks = [transition_matrix(by_holder[name].edge_index, N).toarray() for name in setting.names]
        s = sum(walks) / len(walks)
        p = torch.linalg.matrix_power(torch.from_numpy(s), setting.model.hops) @ x
        z = torch.zeros(N, setting.model.width)
        z[head.train] = network(p[head.train].float() @ torch.cat([blocks[name] for name in setting.names]))
    return torch.nn.functional.cross_entropy(head._output(z[head.train]), head.labels[head.train])


@pytest.mark.parametrize("holders", [2, 3, 4])
@pytest.mark.parametrize("mode", ["paper", "shared-linear"])
def test_a_step_on_shares_is_the_step_of_one_model_that_sees_everything(mode: str, holders: int) -> None:
    """Two runs from the same start, one of which does not learn: their difference is the gradient, to 1e-4."""
    rate, epochs = 4.0, 2 if mode == "shared-linear" else 1  # whose last round shares A of the round that was kept
    pulls: dict[float, dict[str, Tensor]] = {0.0: {}, rate: {}}

    def stepped(rate: float) -> tuple[Trained, Setting, dict[str, Holding]]:
        def watch(name: str, effect: Effect) -> None:
            if isinstance(effect, Checkpoint) and effect.round == 1 and "a" in (state := effect.state()):
                pulls[rate][name] = state["a"].clone()

        setting, by_holder = federation(holders, mode=mode, shared_rate=rate, learning_rate=0.0, epochs=epochs)
        trained = simulate_training(setting, by_holder, randomness=SeededRandomness(3), seed=5, watch=watch)
        return trained, setting, by_holder

    (still, setting, by_holder), (moved, _, _) = stepped(0.0), stepped(rate)
    before = {name: block.requires_grad_() for name, block in weights(still, setting, pulls[0.0]).items()}
    after = weights(moved, setting, pulls[rate])
    loss = one_model(still, setting, by_holder, before)
    slopes = dict(zip(before, torch.autograd.grad(loss, list(before.values())), strict=True))
    assert max(float(slope.abs().max()) for slope in slopes.values()) > 1e-4
    for name, slope in slopes.items():
        assert torch.allclose(
            (before[name] - after[name]) / rate, slope, atol=1e-4 * max(1.0, float(slope.abs().max()))
        )


@pytest.mark.parametrize("mode", ALL_MODES)
def test_only_what_is_listed_crosses_the_wire_and_only_between_its_roles(mode: str) -> None:
    trained, setting, _ = run(3, mode=mode, epochs=2)
    roles = {name: {"holder"} for name in setting.names} | {setting.server: {"server"}}
    roles[setting.label_holder] = {"holder", "label holder"}
    aligning = {"blinded-ids", "blinded-set", "aligned"}
    assert {entry.kind for entry in trained.transcript.entries} | aligning == set(MODE_OF[mode].sent)
    for entry in trained.transcript.entries:
        assert KINDS[entry.kind].sender in roles[entry.sender]
        assert KINDS[entry.kind].receiver in {*roles[entry.receiver], ANYBODY}


@pytest.mark.parametrize("mode", MODES)
def test_nothing_that_is_paid_for_leaves_before_it_is_counted(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def spent(me: Publisher, digest: str) -> None:
        raise BudgetError("nothing is left", where="embeddings")

    monkeypatch.setattr(Publisher, "count", spent)
    setting, by_holder = federation(mode=mode, epsilon=8.0)
    seen = Recorder()
    with pytest.raises(BudgetError, match="nothing is left"):
        simulate_training(setting, by_holder, randomness=SeededRandomness(3), watch=seen.watch)
    assert seen.sent and not any(KINDS[send.kind].priced for _, send in seen.sent)


@pytest.mark.parametrize("mode", MODES)
def test_all_rows_that_are_paid_for_are_named_so_that_they_can_be_noted(mode: str) -> None:
    """Without a name they could leave a second time with other data, see `session`."""
    setting, by_holder = federation(mode=mode, epsilon=8.0, epochs=2)
    seen = Recorder()
    simulate_training(setting, by_holder, randomness=SeededRandomness(3), watch=seen.watch)
    names = [send.name for _, send in seen.sent if send.kind in ("embeddings", "noisy-share")]
    # The second of three is of validation rows too, under one name; in shared-linear both holders have the same.
    assert all(names) and len(names) == 8
    assert len(set(names)) == (3 if mode == "shared-linear" else 6)


@pytest.mark.parametrize("mode", ALL_MODES)
@pytest.mark.parametrize("holders", [2, 3])
def test_the_bytes_that_a_plan_prints_are_those_that_are_sent(mode: str, holders: int) -> None:
    # Two steps a publication, but on shares, where each opens all anew; each of two rounds looks at who validates.
    republish = 1 if mode == "all-shares" else 2
    short, setting, by_holder = run(holders, mode=mode, epochs=2 * republish, republish=republish, validate=1)
    head = by_holder["h1"].head
    assert head is not None
    plan = traffic_of(setting, N, int(head.train.sum()), int(head.val.sum())).by_kind()
    del plan["aligned"]  # sent to the server by `holder_program`, which this run leaves out
    sent: dict[str, int] = {}
    for entry in short.transcript.entries:
        sent[entry.kind] = sent.get(entry.kind, 0) + entry.bytes
    assert sent == plan


@pytest.mark.parametrize("mode", ALL_MODES)
def test_what_parties_keep_fits_into_files(mode: str) -> None:
    """A file holds no tensor under two names, also where one begins as another."""
    setting, by_holder = federation(mode=mode, epochs=2)

    def watch(_: str, effect: Effect) -> None:
        if isinstance(effect, Checkpoint):
            assert save({name: tensor.contiguous() for name, tensor in effect.state().items()})

    simulate_training(setting, by_holder, randomness=SeededRandomness(3), watch=watch)
