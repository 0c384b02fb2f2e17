"""Mode "all-shares": all layers but the last on shares, as SecureML computes; z alone is opened, to the label holder.

    set-up   who trains and who validates; keys from the server; masked features and means to the other holders
    round    z of those who train, in some rounds of those who validate -> label holder: last layer, loss, dL/dz
             these slopes, all of them as its own share, masked -> back through all layers -> plain descent on shares
    end      z of everybody, by the weights of the round that validated best
    later    z of new people, by the same weights

Nobody knows a weight or an inner layer.  The label holder standardises z as other modes' servers do, drops entries out,
takes Adam's step on its last layer with decay, and shortens slopes, in floating point; shared layers have no dropout,
decay or momentum.  Nothing has noise: against the label holder there is no epsilon.  The server deals masks, is sent
who trains, who validates and which rounds were kept, and colludes with no holder.  The arithmetic is in
`all_shares_arithmetic`, how each party computes in `all_shares_parties`.
Sources: Mohassel, Zhang, "SecureML", IEEE S&P 2017; Chen et al., IJCAI 2022, arXiv 2005.11903, which compares with it.
Shapes: z of those who train [t, h], in rounds in which validation nodes are scored [t + v, h].
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.federation.core.networks import EMBEDDING_LENGTH, standardise
from graphveil.federation.core.rate import SLOPE_BITS
from graphveil.federation.core.rows import Rows, receive_rows
from graphveil.federation.core.setting import Setting
from graphveil.federation.core.states import RunContext, State, under
from graphveil.federation.crypto.ring import decode, encode
from graphveil.federation.crypto.sharing import secret_numbers
from graphveil.federation.effects import Checkpoint, Program, Receive, Send
from graphveil.federation.modes import joined
from graphveil.federation.modes.all_shares_arithmetic import Arithmetic, Network, shapes_of
from graphveil.federation.modes.all_shares_parties import LeftMatrices, SizeArithmetic, deal, join, matrices_of
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.joined import ROUNDS, Prediction
from graphveil.federation.modes.labels import LabelHead
from graphveil.federation.modes.propagation import scaled_rows

#: In states, before the names of present shares and of shares of the round that was kept; the name of that round's z of
#: those who train, at the label holder.
_NOW, BEST, TRAINED = "now/", "best/", "desk/z"
#: How many rounds' z the label holder keeps in memory.
_ROUNDS_KEPT = 32
#: The largest |z|, where a sigmoid gives at most 1: beyond, its polynomial diverges and training does not converge.
_FARTHEST_Z = 4.0
#: The most length of the slopes of z, times the root of how many nodes train or of `_FEWEST_NODES`, if that is more.
_LONGEST_SLOPES, _FEWEST_NODES = 4.0, 64
#: The largest variance of a weight of the first layer when it is drawn.
_MAX_FIRST_VARIANCE = 1 / 16


@dataclass(frozen=True)
class AllSharesHolder:
    """A holder's shares of all layers, at present and in the round that validated best, which its program returns.

    Attributes:
        hidden: at the label holder, z of those who train in the last rounds: (round, z float32 [t, h]).
        trained: at the label holder, in the end, their z by the weights of `best`.
    """

    network: Network
    best: dict[str, Tensor]
    head: LabelHead | None
    hidden: deque[tuple[int, Tensor]] = field(default_factory=lambda: deque(maxlen=_ROUNDS_KEPT))
    trained: dict[str, Tensor] = field(default_factory=dict)

    def state(self) -> dict[str, Tensor]:
        state = {f"{_NOW}{name}": share for name, share in self.network.shares.items()}
        state |= {f"{BEST}{name}": share for name, share in self.best.items()} | self.trained
        return state | (self.head.state() if self.head is not None else {})


def all_shares_holder(run: RunContext, holding: Holding) -> Program[AllSharesHolder]:
    """The program of one holder in mode "all-shares": return its shares, and predictions at the label holder's head.

    Args:
        run: its run; the generator draws dropout, the randomness shares of weights and keys of masks.
    """
    setting, head = run.setting, holding.head
    rows = yield from (head.announce_rows(setting) if head is not None else receive_rows(setting, holding.nodes))
    # Polynomials are near tanh near 0 alone: rows of all holders together have length 1.
    features = scaled_rows(holding.features, len(setting.members))
    own = matrices_of(setting.names.index(run.me), features, holding.edge_index)
    # Anew in every session, also a resumed one: a round that runs again has other masks.
    party = yield from join(
        run.roster, lefts_of(setting, holding.nodes), own, setting.label_holder, randomness=run.randomness
    )
    best: dict[str, Tensor] = {}
    if run.state is None:
        shares = {}
        for name, (rows_in, width) in _shapes(setting).items():
            # Shares add up to W: each is drawn at 1 / sqrt(I) of the range; a row of features has length 1. However
            # narrow the layer is, h begins at a quarter at most in root mean square: the polynomial of tanh turns at 1.
            first = name in lefts_of(setting, 1).by_name
            variance = min(2.0 / (width + 1), _MAX_FIRST_VARIANCE) if first else 2.0 / (width + rows_in)
            scale = 0.0 if rows_in == 1 else (3.0 * variance / len(setting.names)) ** 0.5
            # From the secret source and not the seeded one: nobody knows a weight, from the first round on.
            shares[name] = encode(secret_numbers((rows_in, width), randomness=run.randomness) * scale)
    else:
        shares, best = (under(prefix, run.state) for prefix in (_NOW, BEST))
        if head is not None:
            head.load(run.state)
    result = AllSharesHolder(network_of(setting, shares), best, head)
    yield from train(run, party, result, rows)
    return result


def all_shares_server(run: RunContext, nodes: int, rows: int) -> Program[None]:
    """The server's program in mode "all-shares": it deals masks.

    Args:
        run: its run; the randomness draws keys of masks.
        nodes: n, rows that all holders share.
        rows: how many train; -1 where only the label holder knows.
    """
    setting = run.setting
    announced = yield from receive_rows(setting, nodes, rows)
    party = yield from deal(setting.names, lefts_of(setting, nodes), randomness=run.randomness)
    yield from train(run, party, AllSharesHolder(empty_network(setting), {}, None), announced)


def predicting_holder(
    run: RunContext, before: State, holding: Holding, new: Tensor, old: Tensor
) -> Program[Prediction]:
    """The program of one holder of a prediction: compute z of new people on shares, once, from shares of the round that
    was kept, and from features and connections of everybody there is now; arguments as of `linear_predict`. Raises
    BudgetError: the holders disagree on who is new, or the prediction was made before from other data.
    """
    setting, shares = run.setting, under(BEST, before)
    seal = joined.seal_of(run, holding, {"new": new, **shares})
    if run.done == ROUNDS and run.state is not None:
        return Prediction(new, None, run.state.get("predicted"))
    yield from joined.agree_on_new(run, new)
    features = scaled_rows(holding.features, len(setting.members))
    own = matrices_of(setting.names.index(run.me), features, holding.edge_index)
    lefts = lefts_of(setting, holding.nodes)
    party = yield from join(run.roster, lefts, own, setting.label_holder, randomness=run.randomness)
    yield Checkpoint(1, lambda: seal)
    z = yield from party.open((yield from network_of(setting, shares).forward(party, new)))
    probabilities = None
    if z is not None:
        probabilities = joined.probabilities_of(
            run, before, standardise(decode(z), EMBEDDING_LENGTH, like=before[TRAINED])
        )
    result = Prediction(new, None, probabilities)
    yield Checkpoint(ROUNDS, lambda: {**seal, **result.state()})
    return result


def predicting_server(run: RunContext, before: State, nodes: int) -> Program[None]:
    """The server's program of a prediction: it deals masks; arguments as of `linear_predict`."""
    setting = run.setting
    if run.done == ROUNDS:
        return
    party = yield from deal(setting.names, lefts_of(setting, nodes), randomness=run.randomness)
    new = yield Receive(setting.label_holder, "new-rows", (-1,))
    yield Checkpoint(1, dict)
    yield from party.open((yield from empty_network(setting).forward(party, new)))
    yield Checkpoint(ROUNDS, dict)


def lefts_of(setting: Setting, nodes: int) -> LeftMatrices:
    """Return the sizes of all holders' own matrices; `nodes` is n."""
    return LeftMatrices.of(setting.names, nodes, [member.columns for member in setting.members])


def network_of(setting: Setting, shares: Mapping[str, Tensor]) -> Network:
    """Return the shared layers.

    Args:
        shares: a party's, by name.
    """
    first, rate = setting.rates
    return Network(shares, len(setting.names), setting.model.hops, first=first, rate=rate)


def train(run: RunContext, party: Arithmetic, result: AllSharesHolder, rows: Rows) -> Program[None]:
    """Train, and open z of everybody in the end: what holders and the server run, each with its arithmetic.

    Args:
        result: the shares to begin from; trained in place.
    """
    setting, head = run.setting, result.head
    # A server has nothing to keep: masks are of one session, and sizes are agreed.
    state = result.state if run.me in setting.names else dict
    if run.state is None:  # so that a first round that runs again has the same weights and randomized labels
        yield Checkpoint(0, state)
    for round in run.rounds_left:
        yield from _step(run, party, result, rows, round)
        yield Checkpoint(round, state)
    if run.done < setting.rounds:
        network = network_of(setting, result.best)
        z = yield from party.open((yield from network.forward(party, torch.arange(rows.nodes))))
        if z is not None and head is not None:
            result.trained[TRAINED] = decode(z)[rows.train]
            head.predict(standardise(decode(z), EMBEDDING_LENGTH, like=result.trained[TRAINED]))
        yield Checkpoint(setting.rounds, state)


def _step(run: RunContext, party: Arithmetic, result: AllSharesHolder, rows: Rows, round: int) -> Program[None]:
    setting, network, head = run.setting, result.network, result.head
    before = dict(network.shares)
    opened = rows.train_val if setting.validates(round) else rows.train
    z = yield from party.open((yield from network.forward(party, opened)))
    keep = False
    if z is None or head is None:
        slope = party.public(torch.zeros(len(rows.train), setting.model.width, dtype=torch.int64))
    else:
        slope, keep = _train_head(run, head, decode(z), round)
        result.hidden.append((round, decode(z[: len(rows.train)])))
    if (yield from _relay_whether_kept(run, keep, round)):
        # The weights before the step: the z that was scored is theirs.
        result.best.update(before)
    yield from network.backward(party, slope)


def _train_head(run: RunContext, head: LabelHead, z: Tensor, round: int) -> tuple[Tensor, bool]:
    """Take a step of the last layer; return the slopes of z of those who train and whether the round is kept.

    Args:
        z: of those who train, then of those who validate where they are scored.
    """
    rate, count = run.setting.model.dropout, int(head.train.sum())
    if float(z.abs().max()) > _FARTHEST_Z:
        raise InputError(
            f"round {round}: training with polynomial activations does not converge at shared_rate = "
            f"{run.setting.training.shared_rate:g}",
            where="mode all-shares",
            remedy="make a new agreement with a lower rate",
        )
    leaf, scored = z[:count].requires_grad_(), z[count:] if len(z) > count else z.detach()
    # Dropped out here, where z is known: on shares it would take one more product.
    survives = (torch.rand(leaf.shape, generator=run.generator) >= rate) / (1 - rate)
    inputs = standardise(leaf, EMBEDDING_LENGTH) * survives
    gradient, loss = head.step(inputs.detach())
    (slope,) = torch.autograd.grad(inputs, leaf, gradient)
    keep = run.setting.validates(round) and head.improves(
        standardise(scored.detach(), EMBEDDING_LENGTH, like=leaf.detach()), round, loss
    )
    # So that no sum of slopes times a layer's values, at most 2/3 each, leaves the room of a cut.
    longest = _LONGEST_SLOPES / max(count, _FEWEST_NODES) ** 0.5
    return encode(slope * min(1.0, longest / max(float(slope.norm()), longest)), SLOPE_BITS), keep


def _relay_whether_kept(run: RunContext, keep: bool, round: int) -> Program[bool]:
    """Return at all parties whether a round is kept: the label holder tells the server, and the server all holders.

    Args:
        keep: whether it is, at the label holder.
    """
    setting = run.setting
    if run.me == setting.server:
        # In each round: a dealer that waits for nobody would be rounds ahead of what holders have saved.
        flag = yield Receive(setting.label_holder, "kept-round", (1,))
        for name in setting.names if setting.validates(round) else ():
            yield Send(name, "best-round", flag)
        return bool(int(flag))
    if run.me == setting.label_holder:
        yield Send(setting.server, "kept-round", torch.tensor([int(keep)]))
    return setting.validates(round) and bool(int((yield Receive(setting.server, "best-round", (1,)))))


def _shapes(setting: Setting) -> dict[str, tuple[int, int]]:
    columns = tuple(member.columns for member in setting.members)
    return shapes_of(columns, setting.model.width, setting.model.hops)


def empty_network(setting: Setting) -> Network:
    """Return the shared layers by their sizes alone, as the server has them."""
    shapes = _shapes(setting).items()
    return network_of(setting, {name: torch.empty(shape, dtype=torch.int64, device="meta") for name, shape in shapes})


@dataclass(frozen=True)
class RoundSizes:
    """What the rounds of a run send, (kind, sender, receiver) -> bytes, and how many messages wait for each other.

    Attributes:
        round, trips: in each round.
        validation: in addition in rounds in which validation nodes are scored.
        last, last_trips: in the end.
    """

    round: Counter[tuple[str, str, str]]
    validation: Counter[tuple[str, str, str]]
    last: Counter[tuple[str, str, str]]
    trips: int
    last_trips: int


def round_sizes(setting: Setting, nodes: int, rows: int, validation: int) -> RoundSizes:
    """Count what the parties' own program would send.

    Args:
        rows, validation: how many nodes train, and validate.
    """
    round, with_validation = (
        sizes_of_opening(setting, nodes, opened, back=rows) for opened in (rows, rows + validation)
    )
    last = sizes_of_opening(setting, nodes, nodes)
    of_validation = with_validation.sent - round.sent
    return RoundSizes(round.sent, of_validation, last.sent, len(round.trips), len(last.trips))


def sizes_of_opening(setting: Setting, nodes: int, rows: int, *, back: int | None = None) -> SizeArithmetic:
    """Count what opening z of some rows would send.

    Args:
        rows: how many are opened.
        back: how many train, where a step of descent follows; None: none does.
    """
    sizes = SizeArithmetic(setting.names, setting.server, setting.label_holder, lefts_of(setting, nodes))
    network = empty_network(setting)
    _run(sizes.open(_run(network.forward(sizes, torch.arange(rows)))))
    if back is not None:
        _run(network.backward(sizes, torch.empty(back, setting.model.width, dtype=torch.int64, device="meta")))
    return sizes


def _run(program: Generator[Any, Any, Any]) -> Any:
    try:
        next(program)
    except StopIteration as stop:
        return stop.value
    raise RuntimeError("sizes wait for nobody")
