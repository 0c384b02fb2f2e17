"""Mode "all-shares": on shares it is the run in the clear, and z goes to the label holder alone."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.federation import VFGNN
from graphveil.federation.core.guarantees import guarantee_of
from graphveil.federation.core.rows import Rows
from graphveil.federation.core.setting import Setting
from graphveil.federation.core.states import RunContext
from graphveil.federation.crypto.ring import FRACTION_BITS
from graphveil.federation.effects import Receive, Send
from graphveil.federation.modes.all_shares import AllSharesHolder, network_of, train
from graphveil.federation.modes.all_shares_parties import matrices_of
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.labels import LabelHead
from graphveil.federation.modes.programs import programs_of
from graphveil.federation.modes.propagation import scaled_rows
from graphveil.federation.simulation import head_of, simulate_training
from graphveil.graphs import load_graph
from graphveil.privacy import SeededRandomness
from graphveil.reproduction.federated import Clear
from tests.federation.views import Recorder, holdings, setting_of

N, UNIT = 40, 2.0**-FRACTION_BITS
#: A cut is off by at most a unit, which later layers, the loss and steps pass on.
ERROR = 32 * UNIT
State = dict[str, Tensor]


def federation(holders: int, **changes: Any) -> tuple[Setting, dict[str, Holding]]:
    by_holder = holdings(holders, N, 5)
    whole: dict[str, Any] = {"mode": "all-shares", "epochs": 4, "validate": 2, "dropout": 0.3, **changes}
    return setting_of(by_holder, **whole), by_holder


def on_shares(setting: Setting, by_holder: dict[str, Holding], noise: int) -> tuple[AllSharesHolder, list[State]]:
    """What the label holder has in the end, and what all shares of weights add up to after each round."""
    seen = Recorder()
    trained = simulate_training(setting, by_holder, randomness=SeededRandomness(noise), seed=5, watch=seen.watch)
    result = trained.holders[setting.label_holder]
    assert isinstance(result, AllSharesHolder)
    rounds = range(1 + max(round for _, round in seen.checkpoints))
    states = [[seen.checkpoints[name, round] for name in setting.names] for round in rounds]
    sums = [{key: sum(state[key] for state in each) for key in each[0] if key.startswith("now/")} for each in states]
    return result, sums


def in_clear(setting: Setting, by_holder: dict[str, Holding], start: State) -> tuple[AllSharesHolder, LabelHead]:
    """The same program with every number in one place; the label holder's word on each round comes back to it."""
    generator, head = torch.Generator().manual_seed(5), head_of(by_holder)
    head = LabelHead(head.labels, head.train, head.val, head.test)
    head.open(setting, randomness=SeededRandomness(0), generator=generator)
    parts = [
        matrices_of(place, scaled_rows(holding.features, len(by_holder)), holding.edge_index)
        for place, holding in enumerate(by_holder.values())
    ]
    party = Clear({name: matrix for each in parts for name, matrix in each.items()})
    network = network_of(setting, {name.removeprefix("now/"): weight for name, weight in start.items()})
    result = AllSharesHolder(network, {}, head)
    rows = Rows(N, *(mask.nonzero().squeeze(1) for mask in (head.train, head.val)))
    run = RunContext(setting.label_holder, setting, SeededRandomness(0), generator)
    program, reply, body = train(run, party, result, rows), None, torch.empty(0)
    while True:
        try:
            effect = program.send(reply)  # type: ignore[arg-type]
        except StopIteration:
            return result, head
        if isinstance(effect, Send):
            body = effect.body
        reply = body if isinstance(effect, Receive) else None


@pytest.mark.parametrize(("holders", "noise"), [(2, 2), (3, 6)])
def test_a_run_on_shares_is_the_run_in_the_clear(holders: int, noise: int) -> None:
    """Of 20 seeds 5 lose no entry of a slope in a cut; the test takes two of these."""
    setting, by_holder = federation(holders)
    shared, sums = on_shares(setting, by_holder, noise)
    clear, head = in_clear(setting, by_holder, sums[0])
    last = {name.removeprefix("now/"): weight for name, weight in sums[-1].items()}
    apart = {name: float((weight - clear.network.shares[name]).abs().max()) * UNIT for name, weight in last.items()}
    assert max(apart.values()) <= ERROR, apart
    # Every layer is trained: a weight that stays where it began is told apart.
    assert all(float((weight - sums[0][name]).abs().max()) > 0 for name, weight in sums[-1].items())
    assert max(float((weight - sums[0][name]).abs().max()) * UNIT for name, weight in sums[-1].items()) > 100 * ERROR
    for (round, z), (again, plain) in zip(shared.hidden, clear.hidden, strict=True):
        assert round == again and float((z - plain).abs().max()) <= ERROR
    own = head_of(by_holder)
    assert own.best == head.best and own.predictions is not None and head.predictions is not None
    assert torch.allclose(own.predictions, head.predictions, atol=10 * ERROR)
    assert [row["epoch"] for row in own.history] == [2.0, 4.0]


def test_a_narrow_first_layer_begins_where_polynomials_are_near_their_curves() -> None:
    """Drawn as wide as its shape suggests, one run of width 4 in a hundred was beyond them in the first round."""
    setting, by_holder = federation(2, width=4, epochs=1)
    _, sums = on_shares(setting, by_holder, 1)
    largest = max(float(weight.abs().max()) * UNIT for name, weight in sums[0].items() if "features" in name)
    assert 0.1 < largest <= (3 * 2) ** 0.5 / 4


def test_z_goes_to_the_label_holder_alone_and_the_server_hears_rows_and_rounds() -> None:
    model = VFGNN(epsilon=math.inf, mode="all-shares", width=4, hops=1, epochs=2, validate=1)
    graph = load_graph("social-200")
    model.fit(graph, shares=(2, 1, 1), randomness=SeededRandomness(1))
    entries = model.transcript.entries
    heard = {entry.kind for entry in entries if entry.receiver == "server"}
    assert heard == {"labelled-rows", "validation-rows", "kept-round"}
    opened = [entry for entry in entries if entry.kind == "hidden-share"]
    # Of those who train and validate in both rounds, of everybody in the end; from each other holder.
    assert [entry.shape for entry in opened[::2]] == [(150, 4), (150, 4), (200, 4)] == [e.shape for e in opened[1::2]]
    assert {entry.receiver for entry in opened} == {"holder1"}
    assert "the label holder" in model.guarantee.against.text and "labels" not in model.guarantee.sentence()[:60]
    assert not any("gradients" in fact.sentence for fact in model.guarantee.assumes)
    assert model.predict_proba().shape == (200, len(graph.schema.classes)) and model.ledger.spends == ()


def test_descent_that_leaves_the_polynomials_stops_with_a_word() -> None:
    setting, by_holder = federation(2, epochs=40, shared_rate=2048.0)
    with pytest.raises(InputError, match="does not converge at shared_rate = 2048; make a new agreement with a lower"):
        on_shares(setting, by_holder, 1)


def test_a_plan_says_how_many_messages_wait_for_each_other() -> None:
    """Counted by hand for two holders and one hop: 2 products of features and a cut; 15 for each branch, ...

    Forth 2 + 2, for each branch 1 + 2 + 12, 2 for the mean and 12 for the hidden layer, 1 to open; back 10, 2, for each
    branch 10 + 1 + 2, and 3 for each holder's features. Nobody waits for a save.
    """
    forth, back = 4 + 2 * 15 + 2 + 12 + 1, 10 + 2 + 2 * 13 + 2 * 3
    setting, _ = federation(2, hops=1)
    trips_of = programs_of(setting).sizes.trips
    assert trips_of(setting) == 4 + 4 * (forth + back) + 2 * 2 + forth
    # Who validates takes no trip of its own, but to tell.
    assert trips_of(setting) - trips_of(setting.with_options(validate=4)) == 2
    assert guarantee_of(setting).epsilon == math.inf
