"""Mode "guesses": every holder learns by itself, and publishes one randomized guess of each node's class, once.

    round 1   the label holder gives the training labels (randomized where epsilon_y is finite) to the other holders;
              each trains a network of its own on its own columns and edges (see `own`)
    round 2   each other holder sends the label holder its guess of every node, through randomized response;
              the label holder trains its own network on its labels and on all guesses

A guess has only as many values as there are classes, so little noise hides it: with c classes it is sent as it is with
probability e^epsilon / (e^epsilon + c - 1).  Nothing is shared, masked or combined elsewhere: the server sees nothing.
The label holder's own rows go nowhere.  Source: ours, after the teachers of Papernot et al., ICLR 2017, arXiv
1610.05755, with randomized response (Kairouz et al., ICML 2016, arXiv 1602.07387) in place of a trusted sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphveil.errors import BudgetError, InputError
from graphveil.federation.core.messages import Receive, Send
from graphveil.federation.core.programs import Checkpoint
from graphveil.federation.core.setting import Setting
from graphveil.federation.core.states import State
from graphveil.federation.crypto.products import Talk
from graphveil.federation.crypto.seals import name_of
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.labels import LabelDesk
from graphveil.federation.modes.own import OwnNetwork, guess_loss, label_loss, train_own
from graphveil.privacy import Randomness

#: How much all guesses count beside all training labels; the label holder keeps the weight that validates best.
WEIGHTS = (1.0, 3.0, 10.0, 30.0)
_NOT_TRAINING = -1


class Guesser:
    """A holder's guesses as they were randomized, once: the one place where they leave.

    Attributes:
        sent: int64 [n], drawn once and kept before it leaves, so that a round that runs again sends the same.
        seen: one entry for each publication.
    """

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self.sent: Tensor | None = None
        self.seen: tuple[str, ...] = ()

    def randomize(self, guesses: Tensor, *, randomness: Randomness) -> None:
        """Draw the reports of guesses, int64 [n].

        Raises:
            BudgetError: they were drawn before.
        """
        if self.sent is not None:
            raise BudgetError("publication 2 of 1", where="guesses", remedy="a new agreement is a new run")
        response = self._setting.guessing.response
        self.sent = guesses if response is None else response.randomize(guesses, randomness=randomness).labels

    def publish(self) -> Tensor:
        """Return what was drawn."""
        if self.sent is None:
            raise RuntimeError("nothing has been drawn")
        self.seen = ("guesses",)
        return self.sent

    @property
    def spent(self) -> float:
        """The epsilon paid so far."""
        return self._setting.guessing.spent(len(self.seen))


@dataclass(frozen=True)
class _Holder:
    """One holder's part of a run."""

    me: str
    setting: Setting
    holding: Holding
    network: OwnNetwork
    guesser: Guesser

    def state(self) -> dict[str, Tensor]:
        desk, sent = self.holding.desk, self.guesser.sent
        found = {"guesses/count": torch.tensor([len(self.guesser.seen)])}
        return found | ({} if sent is None else {"guesses/sent": sent}) | (desk.state() if desk is not None else {})

    def load(self, state: State) -> None:
        self.guesser.sent = state.get("guesses/sent")
        self.guesser.seen = ("guesses",) * int(state["guesses/count"])
        if self.holding.desk is not None:
            self.holding.desk.load(state)

    def trained(self, loss: Callable[[Tensor], Tensor]) -> Tensor:
        """Return logits of all nodes after training on a loss of them."""
        to = self.setting
        train_own(self.network, loss, epochs=to.epochs, rate=to.learning_rate, decay=to.weight_decay)
        with torch.no_grad():
            logits: Tensor = self.network()
        return logits


def guessing_holder(
    me: str,
    setting: Setting,
    holding: Holding,
    *,
    randomness: Randomness,
    done: int = 0,
    state: State | None = None,
) -> Talk:
    """The program of one holder; returns what it published, and at the label holder the predictions.

    Args:
        done: rounds that are finished; state: as of then, of a checkpoint.
    """
    network = OwnNetwork(holding.features, holding.edge_index, setting.classes, setting.hops)
    part = _Holder(me, setting, holding, network, Guesser(setting))
    if state is not None:
        part.load(state)
    else:  # so that labels that are given again are those that were randomized before
        yield Checkpoint(0, part.state)
    if holding.desk is not None:
        yield from _label_holder(part, holding.desk, done)
    else:
        yield from _other_holder(part, randomness, done)
    return {"publisher": part.guesser, "desk": holding.desk}


def guessing_server(
    setting: Setting,
    nodes: int,
    rows: int,
    *,
    randomness: Randomness,
    generator: torch.Generator,
    done: int = 0,
    state: State | None = None,
) -> Talk:
    """The server's program: it sees nothing, and keeps the rounds in which others go on. Arguments as of `server`."""
    for round in range(0 if state is None else done + 1, setting.rounds + 1):
        yield Checkpoint(round, dict)


def _other_holder(part: _Holder, randomness: Randomness, done: int) -> Talk:
    setting, teller = part.setting, part.setting.label_holder
    if done < 1:
        heard = yield Receive(teller, "training-labels", (part.holding.nodes,))
        _require_classes(heard, _NOT_TRAINING, setting.classes, teller)
        rows = (heard != _NOT_TRAINING).nonzero().squeeze(1)
        if not len(rows):
            raise InputError("no node trains", where=teller)
        channel = setting.label_channel
        logits = part.trained(lambda found: label_loss(found[rows], heard[rows], channel))
        part.guesser.randomize(logits.argmax(dim=1), randomness=randomness)
        yield Checkpoint(1, part.state)  # what is drawn is kept before it leaves
    if done < setting.rounds:
        sent = part.guesser.publish()
        yield Send(teller, "guesses", sent, name_of(sent))
        yield Checkpoint(setting.rounds, part.state, part.guesser.spent)


def _label_holder(part: _Holder, desk: LabelDesk, done: int) -> Talk:
    setting, others = part.setting, [name for name in part.setting.names if name != part.me]
    if not bool(desk.val.any()):
        raise InputError("no validation nodes, which show how often guesses are right", where=part.me)
    if done < 1:
        given = desk.given(_NOT_TRAINING)
        for name in others:
            yield Send(name, "training-labels", given, name_of(given))
        desk.look(part.trained(desk.loss), 1)
        desk.alone = desk.predictions
        yield Checkpoint(1, part.state)
    if done < setting.rounds:
        guesses = []
        for name in others:
            guesses.append((yield Receive(name, "guesses", (part.holding.nodes,))))
            _require_classes(guesses[-1], 0, setting.classes, name)
        desk.look(_learned(part, desk, guesses), setting.rounds)
        yield Checkpoint(setting.rounds, part.state)


def _learned(part: _Holder, desk: LabelDesk, guesses: Sequence[Tensor]) -> Tensor:
    """Return logits of all nodes after training on labels and guesses, with the weight that validates best."""
    chances = [desk.chances(guess, part.setting.guessing.channel) for guess in guesses]

    def with_weight(weight: float) -> Tensor:
        return part.trained(lambda logits: desk.loss(logits) + weight * guess_loss(logits, guesses, chances))

    return max(map(with_weight, WEIGHTS), key=desk.rank)


def _require_classes(values: Tensor, low: int, classes: int, where: str) -> None:
    if not (low <= int(values.min()) and int(values.max()) < classes):
        raise InputError("a number that is no class", where=where, allowed=f"{low} to {classes - 1}")
