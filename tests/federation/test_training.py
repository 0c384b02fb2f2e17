"""What the parties compute together: the same steps as one model on all data, whatever is shared, masked or opened."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.errors import BudgetError, InputError
from graphveil.federation.core.messages import KINDS
from graphveil.federation.core.networks import holder_structure
from graphveil.federation.core.publication import Publisher
from graphveil.federation.core.setting import Member, Setting
from graphveil.federation.crypto import ring
from graphveil.federation.effects import Effect, Send
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.labels import LabelHead
from graphveil.federation.modes.propagation import scaled_rows, transition_matrix
from graphveil.federation.modes.traffic import traffic_of
from graphveil.federation.simulation import Trained, simulate_training
from graphveil.privacy import SeededRandomness

N, CLASSES, WIDTH = 40, 3, 8
MODES = ("individual", "paper", "shared-linear")


def holdings(holders: int = 2, seed: int = 0) -> tuple[tuple[Member, ...], dict[str, Holding]]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(N) % CLASSES
    train, val = torch.arange(N) < 20, (torch.arange(N) >= 20) & (torch.arange(N) < 30)
    members, held = [], {}
    for number in range(1, holders + 1):
        d = 4 + number
        features = torch.rand(N, d, generator=generator)
        pairs = torch.randint(0, N, (2, 60), generator=generator)
        pairs = pairs[:, pairs[0] < pairs[1]].unique(dim=1)
        head = LabelHead(labels, train, val, ~(train | val)) if number == 1 else None
        held[f"h{number}"] = Holding(features, torch.cat([pairs, pairs.flip(0)], 1), 1.0, head)
        members.append(Member(f"h{number}", d, number == 1))
    return tuple(members), held


def made(holders: int = 2, **changes: Any) -> tuple[Setting, dict[str, Holding]]:
    members, held = holdings(holders)
    plain: dict[str, Any] = {
        "width": WIDTH,
        "hops": 2,
        "dropout": 0.0,
        "weight_decay": 0.0,
        "opened": True,
        "epochs": 1,
    }
    return Setting.of(members, CLASSES, **{**plain, **changes}), held


def run(holders: int = 2, **changes: Any) -> tuple[Trained, Setting, dict[str, Holding]]:
    setting, held = made(holders, **changes)
    return simulate_training(setting, held, randomness=SeededRandomness(3), seed=5), setting, held


def weights(trained: Trained, setting: Setting) -> dict[str, Tensor]:
    """W_j of every block, as the sum of the holders' shares."""
    if setting.protocol.mode == "shared-linear":
        whole = ring.decode(sum(trained.holders[name].w for name in setting.names), setting.protocol.bits)
        blocks = whole.split([member.columns for member in setting.members])
        return {name: block.clone() for name, block in zip(setting.names, blocks, strict=True)}
    parts = [trained.holders[name].first.shares for name in setting.names]
    return {name: ring.decode(sum(part[name] for part in parts), setting.protocol.bits) for name in setting.names}


def one_model(start: Trained, setting: Setting, held: dict[str, Holding], blocks: dict[str, Tensor]) -> Tensor:
    """The loss of one model that sees everything, with the parties' initial weights."""
    head = held["h1"].head
    assert head is not None
    network, kind = start.server, setting.model.aggregator
    if setting.protocol.mode == "paper":
        h0 = sum(held[name].features @ blocks[name] for name in setting.names)
        z = network(
            [
                start.holders[name].propagation(h0, holder_structure(kind, held[name].edge_index, N))
                for name in setting.names
            ]
        )
    else:
        x = torch.cat([scaled_rows(held[name].features, len(setting.names)) for name in setting.names], dim=1)
        s = sum(transition_matrix(held[name].edge_index, N).toarray() for name in setting.names) / len(setting.names)
        p = torch.linalg.matrix_power(torch.from_numpy(s), setting.model.hops) @ x
        z = network([p.float() @ torch.cat([blocks[name] for name in setting.names])])
    return torch.nn.functional.cross_entropy(head._output(z[head.train]), head.labels[head.train])


@pytest.mark.parametrize("holders", [2, 3, 4])
@pytest.mark.parametrize("mode", ["paper", "shared-linear"])
def test_a_step_on_shares_is_the_step_of_one_model_that_sees_everything(mode: str, holders: int) -> None:
    """Two runs from the same start, one of which does not learn: their difference is the gradient, to 1e-4."""
    rate = 4.0
    still, setting, held = run(holders, mode=mode, shared_rate=0.0, learning_rate=0.0)
    moved, _, _ = run(holders, mode=mode, shared_rate=rate, learning_rate=0.0)
    before = {name: block.requires_grad_() for name, block in weights(still, setting).items()}
    after = weights(moved, setting)
    loss = one_model(still, setting, held, before)
    slopes = dict(zip(before, torch.autograd.grad(loss, list(before.values())), strict=True))
    assert max(float(slope.abs().max()) for slope in slopes.values()) > 1e-4
    for name, slope in slopes.items():
        assert torch.allclose(
            (before[name] - after[name]) / rate, slope, atol=1e-4 * max(1.0, float(slope.abs().max()))
        )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("combine", ["mean", "concat", "regression"])
def test_every_mode_learns_with_every_combination(mode: str, combine: str) -> None:
    _, _, held = run(mode=mode, combine=combine, epochs=30)
    head = held["h1"].head
    assert head is not None
    assert head.history[-1]["loss"] < head.history[0]["loss"]
    assert head.predictions is not None
    assert head.predictions.shape == (N, CLASSES)


@pytest.mark.parametrize("aggregator", ["sage", "gcn", "gat"])
def test_every_aggregator_learns(aggregator: str) -> None:
    _, _, held = run(mode="individual", aggregator=aggregator, epochs=30)
    head = held["h1"].head
    assert head is not None
    assert head.history[-1]["loss"] < head.history[0]["loss"]


@pytest.mark.parametrize("mode", MODES)
def test_only_what_is_listed_crosses_the_wire_and_only_between_its_roles(mode: str) -> None:
    trained, setting, _ = run(3, mode=mode, epochs=2)
    roles = {name: {"holder"} for name in setting.names} | {setting.server: {"server"}}
    roles[setting.label_holder] = {"holder", "label holder"}
    for entry in trained.transcript.entries:
        assert KINDS[entry.kind].sender in roles[entry.sender]
        assert KINDS[entry.kind].receiver in roles[entry.receiver]
    between = {
        entry.kind for entry in trained.transcript.entries if setting.server not in (entry.sender, entry.receiver)
    }
    assert (
        between
        <= {
            "individual": set(),
            "paper": {"masked-left", "masked-right", "opened-share"},
            "shared-linear": {"masked-left", "masked-right", "masked-sum", "safe-bits", "holder-key", "seal"},
        }[mode]
    )


def test_the_server_sees_no_masked_matrix_and_no_gradient_leaves_it_in_the_clear_in_the_default_mode() -> None:
    trained, setting, _ = run(mode="shared-linear", epochs=2)
    seen = {entry.kind for entry in trained.transcript.entries if entry.receiver == setting.server}
    assert seen == {"noisy-share", "hidden-gradient", "labelled-rows"}
    sent = {entry.kind for entry in trained.transcript.entries if entry.sender == setting.server}
    assert sent == {"mask-keys", "correction", "hidden", "gradient-share"}


def test_paper_mode_is_refused_where_openings_give_features_away() -> None:
    with pytest.raises(InputError, match="acknowledge with opened = true"):
        made(mode="paper", opened=False)


@pytest.mark.parametrize("mode", MODES)
def test_noise_costs_what_was_agreed_and_every_publication_counts(mode: str) -> None:
    trained, setting, _ = run(mode=mode, epochs=6, republish=2, epsilon=8.0, delta=1e-5)
    assert setting.publications == 3
    for name in setting.names:
        publisher = trained.holders[name].publisher
        assert len(publisher.seen) == 3
        assert 7.9 < publisher.spent <= 8.0
    assert setting.publication.spent(1) < setting.publication.spent(3)


@pytest.mark.parametrize("mode", MODES)
def test_nothing_that_is_paid_for_leaves_before_it_is_counted(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def spent(me: Publisher, digest: str) -> None:
        raise BudgetError("nothing is left", where="embeddings")

    monkeypatch.setattr(Publisher, "_count", spent)
    setting, held = made(mode=mode, epsilon=8.0)
    left: list[str] = []

    def watch(name: str, effect: Effect) -> None:
        if isinstance(effect, Send):
            left.append(effect.kind)

    with pytest.raises(BudgetError, match="nothing is left"):
        simulate_training(setting, held, randomness=SeededRandomness(3), watch=watch)
    assert left and not any(KINDS[kind].priced for kind in left)


@pytest.mark.parametrize("mode", MODES)
def test_all_rows_that_are_paid_for_are_named_so_that_they_can_be_noted(mode: str) -> None:
    """Without a name they could leave a second time with other data, see `session`."""
    setting, held = made(mode=mode, epsilon=8.0, epochs=2)
    names: list[str] = []

    def watch(name: str, effect: Effect) -> None:
        if isinstance(effect, Send) and effect.kind in ("embeddings", "noisy-share"):
            names.append(effect.name)

    simulate_training(setting, held, randomness=SeededRandomness(3), watch=watch)
    assert names and all(names) and len(set(names)) == len(names) // (2 if mode == "shared-linear" else 1)


def test_fewer_publications_need_less_noise() -> None:
    often, seldom = made(epochs=100, epsilon=4.0)[0], made(epochs=100, republish=20, epsilon=4.0)[0]
    assert often.publication.sigma == pytest.approx(math.sqrt(20) * seldom.publication.sigma, rel=1e-6)


def test_a_round_that_is_run_again_sends_the_same_bytes_and_other_rows_are_refused_beyond_the_budget() -> None:
    from graphveil.federation.core.publication import Publication, Publisher
    from graphveil.federation.crypto.masks import MaskKey

    publisher = Publisher(Publication(4.0, 1e-5, 1, 4), MaskKey.fresh(SeededRandomness(1)))
    rows = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    first = publisher.publish(rows, 1)
    assert torch.equal(publisher.publish(rows, 1), first)
    with pytest.raises(BudgetError, match="publication 2 of 1"):
        publisher.publish(rows + 1, 1)


@pytest.mark.parametrize("mode", ["individual", "shared-linear"])
def test_weights_stay_inside_the_bound_that_the_noise_is_made_for(mode: str) -> None:
    """Rows published are never longer than C: clipped at the holder, or bounded by |W| <= C on shares."""
    trained, setting, _ = run(mode=mode, epochs=20, epsilon=50.0, shared_rate=1e3)
    if mode == "shared-linear":
        w = torch.cat(list(weights(trained, setting).values()))
        assert float(torch.linalg.matrix_norm(w, 2)) <= setting.privacy.clip


def test_randomized_labels_are_all_that_leaves_the_head() -> None:
    """With randomized labels the history is computed from them, and the guarantee of the label is epsilon_y."""
    _, _, held = run(mode="individual", epsilon_y=0.1)
    head = held["h1"].head
    assert head is not None
    assert not torch.equal(head.reported[head.train], head.labels[head.train])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"mode": "secret"}, "mode 'secret' is not known"),
        ({"combine": "max"}, "combine 'max' is not known"),
        ({"width": 0}, "width = 0"),
        ({"epsilon": -1.0}, "epsilon = -1.0"),
        ({"server": "h1"}, "a different name for every party"),
    ],
)
def test_settings_outside_their_range_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said.replace("(", r"\(")):
        made(**changes)


def test_two_label_holders_are_refused() -> None:
    setting, _ = made()
    with pytest.raises(InputError, match="exactly one label holder"):
        replace(setting, members=tuple(replace(member, labels=True) for member in setting.members))


def test_a_message_of_another_shape_is_refused() -> None:
    from graphveil.federation.core.messages import Receive
    from graphveil.federation.core.programs import simulate

    def sends() -> Any:
        yield Send("b", "embeddings", torch.zeros(2, 3))

    def waits() -> Any:
        yield Receive("a", "embeddings", (2, 4))

    with pytest.raises(InputError, match=r"\(2, 4\)"):
        simulate({"a": sends(), "b": waits()})


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("holders", [2, 3])
def test_the_bytes_that_a_plan_prints_are_those_that_are_sent(mode: str, holders: int) -> None:
    short, setting, held = run(holders, mode=mode, epochs=4, republish=2)
    head = held["h1"].head
    assert head is not None
    plan = traffic_of(setting, N, int(head.train.sum()))
    aligned = 8 * holders  # told to the server by `holder_program`, which this run leaves out
    assert short.transcript.bytes == plan.total(setting.publications) - aligned
