"""Predictions for people who joined after a finished run of mode "shared-linear": nothing is trained.

    W                 the holders' shares of the round that was kept, from their last checkpoints
    z = S'^K X' W     on shares, S' and X' of everybody there is now; opened in the rows of new people alone
    h                 the server's kept network, standardised by those who trained; the label holder's kept last layer

A new person's row is published once, with each holder's noise for the whole epsilon; whoever was published before is in
S' and X', and is never opened again.  `linear` bounds rows by public facts for any data, so the same noise is enough.
y = S'^(K-1) X' W is saved before it is opened: a prediction that is run again opens the same sum under the same noise,
and with other data it has another name and is refused, as any publication.
Shapes: X' [n, d], W [d, h], z [new, h].
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from graphveil.federation.core import states
from graphveil.federation.core.publisher import Publisher
from graphveil.federation.core.rows import Rows
from graphveil.federation.crypto.commitments import SALT, Commitment
from graphveil.federation.crypto.masks import MaskKey, as_message
from graphveil.federation.effects import Checkpoint, Program, Receive, Send
from graphveil.federation.modes import joined, propagation
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.joined import ROUNDS, Prediction
from graphveil.federation.modes.linear import last_hops_of, multiply_inputs, open_exchange, publish_rest
from graphveil.federation.modes.linear_server import LinearNetwork, deal_for_inputs, hidden_of, open_rows


def predicting_holder(
    run: states.RunContext, before: states.State, holding: Holding, new: Tensor, old: Tensor
) -> Program[Prediction]:
    """The program of one holder: publish the rows of new people, once.

    Args:
        run: of the prediction; its state is of a prediction that is run again.
        before: the last checkpoint of the finished run.
        holding: features and edges of everybody.
        new: rows that were never published, int64, ascending.
        old: of each row its number in the run, -1 where it was not there, int64 [n].

    Raises:
        BudgetError: the holders disagree on who is new, or the prediction was made before from other data.
    """
    publisher = Publisher(run.setting.publication_of(1), MaskKey.fresh(run.randomness))
    exchange = yield from open_exchange(run, holding, _announced(run, holding.nodes, new), propagates=False)
    if run.state is None:
        y, salt = (yield from multiply_inputs(exchange, before["weights"])), run.randomness.bytes(SALT)
    else:
        states.load_publisher(publisher, run.state)
        y, salt = run.state["y"], run.state["seal/salt"].numpy().tobytes()
    # Also when it runs again: what is opened next belongs to round 2, the only one that may publish.
    yield Checkpoint(1, partial(_state, y, salt, publisher), publisher.spent)
    matrix = exchange.walker.matrix
    fixed = [before["weights"], exchange.x, matrix.data, matrix.indices, matrix.indptr, exchange.rows.rest]
    yield from publish_rest(exchange, Commitment.of(fixed, salt), y, publisher, ROUNDS)
    probabilities = yield from joined.receive_probabilities(run, before, len(new))
    yield Checkpoint(ROUNDS, partial(_state, y, salt, publisher), publisher.spent)
    return Prediction(new, publisher, probabilities)


def _state(y: Tensor, salt: bytes, publisher: Publisher) -> dict[str, Tensor]:
    return {"y": y, "seal/salt": as_message(salt), **states.publisher_state(publisher)}


def _announced(run: states.RunContext, nodes: int, new: Tensor) -> Program[Rows]:
    """Agree on who is new; all rows but these count as published."""
    yield from joined.agree_on_new(run, new)
    return rows_of(nodes, new)


def rows_of(nodes: int, new: Tensor) -> Rows:
    """Return new people's rows as the rest, which a run opens in its end: all others count as opened before.

    Args:
        nodes: n, rows that all holders share now.
        new: rows of new people, int64, ascending.
    """
    old = torch.ones(nodes, dtype=torch.bool)
    old[new] = False
    return Rows(nodes, torch.zeros(0, dtype=torch.int64), old.nonzero().squeeze(1))


def predicting_server(run: states.RunContext, before: states.State, nodes: int) -> Program[LinearNetwork]:
    """The server's program: deal masks, open the rows of new people, and apply the network that was kept.

    Args:
        before: the last checkpoint of the finished run.
        nodes: n, rows that all holders share now.
    """
    setting = run.setting
    keys = yield from propagation.deal_keys(setting.names, randomness=run.randomness)
    rows = rows_of(nodes, (yield Receive(setting.label_holder, "new-rows", (-1,))))
    walks = last_hops_of(setting, rows)
    parts = yield from propagation.serve_walks(setting.names, keys, setting.entries, walks, nodes)
    if run.state is None:
        yield from deal_for_inputs(setting, rows, keys, parts)
    yield Checkpoint(1, dict)
    z = yield from open_rows(setting, parts[walks[-1].name])
    network = LinearNetwork(setting, generator=run.generator)
    states.load_module("kept", network, before)
    trained = before["memory/z"][: len(before["memory/a"])]
    yield Send(setting.label_holder, "hidden", hidden_of(network, z, trained, setting))
    yield Checkpoint(ROUNDS, dict)
    return network
