"""Predictions for people who joined later in mode "all-shares": z of new people alone is opened, to the label holder.

    shares of all layers, of the round that was kept        X', means over neighbours: of everybody there is now
    z = forward on shares, rows of new people        label holder: apart by z of those who trained, its kept last layer

Shapes: z [new, h].
"""

from __future__ import annotations

from torch import Tensor

from graphveil.federation.core import states
from graphveil.federation.core.networks import LENGTH, apart
from graphveil.federation.crypto.ring import decode
from graphveil.federation.effects import Checkpoint, Program, Receive
from graphveil.federation.modes import joined
from graphveil.federation.modes.all_shares import BEST, TRAINED, empty_network, lefts_of, network_of
from graphveil.federation.modes.all_shares_parties import deal, join, matrices_of
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.joined import ROUNDS, Prediction
from graphveil.federation.modes.propagation import scaled_rows


def predicting_holder(
    run: states.RunContext, before: states.State, holding: Holding, new: Tensor
) -> Program[Prediction]:
    """The program of one holder: compute z of new people on shares, once; arguments as of `linear_predict`.

    Raises:
        BudgetError: the holders disagree on who is new, or the prediction was made before from other data.
    """
    setting, shares = run.setting, states.under(BEST, before)
    seal = joined.sealed(run, holding, {"new": new, **shares})
    if run.done == ROUNDS and run.state is not None:
        return Prediction(new, None, run.state.get("predicted"))
    yield from joined.announced(run, new)
    features = scaled_rows(holding.features, len(setting.members))
    own = matrices_of(setting.names.index(run.me), features, holding.edge_index)
    lefts = lefts_of(setting, holding.nodes)
    party = yield from join(run.roster, lefts, own, setting.label_holder, randomness=run.randomness)
    yield Checkpoint(1, lambda: seal)
    z = yield from party.opened((yield from network_of(setting, shares).forward(party, new)))
    probabilities = None
    if z is not None:
        probabilities = joined.labelled(run, before, apart(decode(z), LENGTH, like=before[TRAINED]))
    result = Prediction(new, None, probabilities)
    yield Checkpoint(ROUNDS, lambda: {**seal, **result.state()})
    return result


def predicting_server(run: states.RunContext, before: states.State, nodes: int) -> Program[None]:
    """The server's program: it deals masks; arguments as of `linear_predict`."""
    setting = run.setting
    if run.done == ROUNDS:
        return
    party = yield from deal(setting.names, lefts_of(setting, nodes), randomness=run.randomness)
    new = yield Receive(setting.label_holder, "new-rows", (-1,))
    yield Checkpoint(1, dict)
    yield from party.opened((yield from empty_network(setting).forward(party, new)))
    yield Checkpoint(ROUNDS, dict)
