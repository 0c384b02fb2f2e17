"""Predictions for people who joined later in modes "individual" and "paper", by the networks of the kept round.

    h0   X' W by the kept weights: own, or on shares and opened to all holders, as in each round of mode "paper"
    h    K hops over own edges of now; rows of new people alone leave, once, with noise for the whole epsilon
    server: shrink, apart by those who trained, the kept network       label holder: its kept last layer

What a holder publishes follows from its own files, and in mode "paper" from what all open; each has sealed its files
before.  Shapes: X' [n, d], h [n, h].
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from graphveil.federation.core import states
from graphveil.federation.core.networks import Combination
from graphveil.federation.core.publisher import Publisher, name_of_rows
from graphveil.federation.core.rows import REST, TRAIN
from graphveil.federation.crypto.masks import MaskKey
from graphveil.federation.crypto.products import Dealer
from graphveil.federation.effects import Checkpoint, Program, Receive, Send
from graphveil.federation.modes import joined
from graphveil.federation.modes.embedding_server import hidden_of, network_of, received
from graphveil.federation.modes.holder import KEPT, Holding, as_kept, lefts_of, products_of
from graphveil.federation.modes.joined import ROUNDS, Prediction
from graphveil.models import structure_for

_STEP = 1


def predicting_holder(
    run: states.RunContext, before: states.State, holding: Holding, new: Tensor, old: Tensor
) -> Program[Prediction]:
    """The program of one holder: publish the rows of new people, once; arguments as of `linear_predict`.

    Raises:
        BudgetError: the holders disagree on who is new, or the prediction was made before from other data.
    """
    setting, publisher = run.setting, Publisher(run.setting.published(1), MaskKey.fresh(run.randomness))
    weights = {name: value for name, value in before.items() if name.startswith(KEPT)}
    seal = joined.sealed(run, holding, {"new": new, **weights})
    if run.state is not None:
        states.load_publisher(publisher, run.state)
    if run.done == ROUNDS and run.state is not None:
        return Prediction(new, publisher, run.state.get("predicted"))

    def state() -> Mapping[str, Tensor]:
        return {**seal, **states.publisher_state(publisher)}

    yield from joined.announced(run, new)
    party = as_kept(run, holding, before)
    yield from party.first.prepare()
    yield Checkpoint(1, state, publisher.spent)
    h0 = yield from party.first.forward(_STEP)
    with torch.no_grad():
        structure = structure_for(setting.model.aggregator, holding.edge_index, holding.nodes)
        rows = party.propagation(h0, structure)[new]
    name = name_of_rows(ROUNDS, [rows])
    if publisher.publication.public:  # where nothing is protected, `publish` counts nothing
        publisher.count(name)
    yield Send(setting.server, "embeddings", publisher.publish(rows, name, REST), name)
    result = Prediction(new, publisher, (yield from joined.hidden_of_new(run, before, len(new))))
    yield Checkpoint(ROUNDS, lambda: {**state(), **result.state()}, publisher.spent)
    return result


def predicting_server(run: states.RunContext, before: states.State, nodes: int) -> Program[Combination]:
    """The server's program: receive the rows of new people, and apply the network that was kept.

    Args:
        run: of the prediction.
        before: the last checkpoint of the finished run.
        nodes: n, rows that all holders share now.
    """
    setting, network = run.setting, network_of(run)
    states.load_module(f"{KEPT}network", network, before)
    if run.done == ROUNDS:
        return network
    dealer = Dealer(lefts_of(setting, nodes), randomness=run.randomness)
    if setting.mode.opens_layer:
        yield from dealer.deal(setting.names)
    count = len((yield Receive(setting.label_holder, "new-rows", (-1,))))
    yield Checkpoint(1, dict)
    yield from dealer.correct(products_of(setting, nodes), f"forward {_STEP}")
    published = {TRAIN: list(before[f"{KEPT}{TRAIN}"]), REST: (yield from received(setting, count))}
    yield Send(setting.label_holder, "hidden", hidden_of(setting, network, published, REST))
    yield Checkpoint(ROUNDS, dict)
    return network
