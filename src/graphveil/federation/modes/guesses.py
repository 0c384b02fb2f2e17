"""Mode "guesses": every holder learns by itself, and publishes one randomized guess of each node's class, once.

    round 1   the label holder sends the training labels (randomized where epsilon_y is finite) to the other holders;
              each trains a network on its own columns and edges (see `local_network`); the label holder pools its
              network with the labels around each node (see `guess_pool`)
    round 2   each other holder sends the label holder its guess of every node, through randomized response;
              the label holder trains its network again, on its labels and on all guesses, and pools the result with
              each node's own guesses (see `guess_pool`)

A guess has only as many values as there are classes, so little noise hides it: with c classes it is sent unchanged with
probability e^epsilon / (e^epsilon + c - 1), or as a set of classes where that says more (`core.publication`).
The server sees nothing.  With unit "person" a holder trains privately and sends no guess of anybody who trains:

    H_v = sum over u who train and name v of row(label of u) + N(0, sigma^2)     each list cut to its first D names
    z_v = SCALE asinh( (H_v - mean of H_v) / max(sigma, 1) )
    logits = [ x | z ] W + b     x of length 1; W by `training.dp_sgd`, from 0 for features and from TRUST I for votes

A person's features determine their own guess and, where they train, W; label and list change at most D rows of the
votes H, by a row of length 1 each (price, noise and proof are in `core.person`).
Source: ours, after the teachers of Papernot et al., ICLR 2017, arXiv 1610.05755, with randomized response (Kairouz et
al., ICML 2016, arXiv 1602.07387) in place of a trusted sum, and after `methods.curator.node_sums`.
Shapes: X [n, d], H, z [n, c] or [n, 0], W [d + c, c], guesses [n].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from graphveil.aggregation import ReceiverRows
from graphveil.errors import BudgetError, InputError
from graphveil.federation.core.setting import Setting
from graphveil.federation.core.states import RunContext, State
from graphveil.federation.crypto.commitments import name_of
from graphveil.federation.effects import Checkpoint, Program, Receive, Send
from graphveil.federation.modes import local_network
from graphveil.federation.modes.guess_pool import evidence_of, pooled, pooled_alone
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.labels import LabelHead
from graphveil.federation.modes.propagation import Features
from graphveil.graphs.degree_bound import keep_lists
from graphveil.privacy import Randomness
from graphveil.training.dp_sgd import Streamed, train_privately

#: Weights of the loss on guesses beside that on training labels; the label holder takes the one that validates best.
WEIGHTS = (1.0, 3.0, 10.0, 30.0)
_MIN_CHANCE = 1e-12
_NOT_TRAINING = -1


#: The prefix of all learned tensors in a state, and the names of its parts: another holder's network; of the label
#: holder the network without and with guesses, their pools, and the reports with the chances of each given the class.
LEARNED = "learned/"
NETWORK, ALONE, TAUGHT, POOLED_ALONE, POOLED, REPORTS = "network", "alone", "taught", "pool-alone", "pool", "reports"
#: The initial weight of a vote.
TRUST = 5.0


#: The length of a vote beside features of length 1: longer ones would take the clipped gradient from the features.
SCALE = 0.1


def private_votes(
    edge_index: Tensor, nodes: int, rows: Tensor, labels: Tensor, setting: Setting, *, randomness: Randomness
) -> Tensor:
    """Return the votes z of each node's neighbours who train, float32 [n, c]; [n, 0] where connections are not read.
    With unit "person" the one place that reads a holder's connections.

    Args:
        edge_index: of this holder, int64 [2, E]; row 0 owns the edge.
        rows: who train, int64 [m].
        labels: of these rows, as reported, int64 [m].
    """
    sums = setting.person_price.votes
    if sums is None:
        return torch.zeros(nodes, 0)
    lists = keep_lists(edge_index, nodes, setting.privacy.degree_bound)
    label_rows = torch.zeros(nodes, setting.classes)
    label_rows[rows, labels] = 1.0
    noisy = sums.perturb(ReceiverRows.of(lists, nodes), label_rows, 1, randomness)
    # Scaled by the noise and not by the data: standardising would use a statistic of private rows.
    return SCALE * torch.asinh((noisy - noisy.mean(dim=1, keepdim=True)) / max(sums.sigmas[0], 1.0))


def private_classes(weight: Tensor, bias: Tensor, features: Features, votes: Tensor) -> Tensor:
    """Return the guesses of all, int64 [n], each from its own row alone; connections count only through votes.

    Args:
        weight, bias: of a private network.
        features: of all nodes, dense or scipy CSR [n, d].
        votes: of all nodes, float32 [n, c] or [n, 0].
    """
    columns = int(features.shape[1])
    of_features, of_votes = weight[:, :columns].T.contiguous(), weight[:, columns:].T
    by_features = (local_network.operator_of(features) @ of_features) / local_network.row_lengths(features)
    logits: Tensor = by_features + bias + votes @ of_votes
    return logits.argmax(dim=1)


def private_guesses(
    features: Features, votes: Tensor, rows: Tensor, labels: Tensor, setting: Setting, *, randomness: Randomness
) -> tuple[Tensor, dict[str, Tensor]]:
    """Train on some rows, and return the guesses of all, int64 [n], and the network: guesses of `rows` must not leave.

    Args:
        features: of all nodes, dense or scipy CSR [n, d].
        votes: of all nodes, float32 [n, c] or [n, 0].
        rows: who train, int64 [m].
        labels: as reported, int64 [m].
        randomness: of batches, dither and noise.
    """
    columns = int(features.shape[1])
    network = nn.Linear(columns + votes.shape[1], setting.classes)
    # From zero: initial weights are public, and a first step from anywhere else would only be longer.
    nn.init.zeros_(network.weight)
    nn.init.zeros_(network.bias)
    with torch.no_grad():
        network.weight[:, columns:] = TRUST * torch.eye(setting.classes)[:, : votes.shape[1]]
    # Through the channel: otherwise randomized labels would be learnt as true ones.
    channel = setting.label_channel
    train_privately(
        network,
        _training_rows(features, votes, rows),
        labels,
        setting.person_price.schedule(len(rows)),
        randomness=randomness,
        loss=lambda logits, reported: local_network.label_losses(logits, reported, channel),
    )
    learned = {name: value.detach().clone() for name, value in network.state_dict().items()}
    return private_classes(learned["weight"], learned["bias"], features, votes), learned


def _training_rows(features: Features, votes: Tensor, rows: Tensor) -> Streamed:
    """Return features of length 1 beside votes, float32 [m, d + c], made dense batch by batch; rows are independent."""
    dense = isinstance(features, Tensor | np.ndarray)
    selected: Any = torch.as_tensor(features)[rows] if dense else features[rows.numpy()]
    lengths, selected_votes = local_network.row_lengths(selected), votes[rows]

    def batch(positions: Tensor) -> Tensor:
        x = selected[positions] if dense else torch.from_numpy(selected[positions.numpy()].toarray())
        return torch.cat([x.float() / lengths[positions], selected_votes[positions]], dim=1)

    return Streamed((len(rows), selected.shape[1] + votes.shape[1]), batch)


class GuessPublisher:
    """A holder's randomized guesses: the one place from which they leave.

    Attributes:
        reports: int64 [n], drawn once and saved before they leave, so that a round that runs again sends the same.
        times_published: how often they were published, 0 or 1.
        charged: whether a person's epsilon was charged.
    """

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self.reports: Tensor | None = None
        self.times_published = 0
        self.charged = False

    def charge(self) -> None:
        """Charge one person's whole epsilon; saved on disk before training reads anybody's features."""
        self.charged = True

    def require_charged(self) -> None:
        """Raise BudgetError for training that was not paid for."""
        if not self.charged:
            raise BudgetError("training that was not paid for", where="guesses", remedy="make a new agreement")

    def randomize(self, guesses: Tensor, *, randomness: Randomness) -> None:
        """Draw the reports, int64 [n]; BudgetError if they were drawn before.

        Args:
            guesses: of all nodes that are guessed about, int64 [n].
            randomness: of the response.
        """
        # A second draw of the same guesses would be a second report of them: two reports cost twice.
        if self.reports is not None:
            raise BudgetError("publication 2 of 1", where="guesses", remedy="a new agreement is a new run")
        response = self._setting.guessing.response
        if response is None:
            self.reports = guesses
            return
        drawn = response.randomize(guesses, randomness=randomness)
        self.reports = drawn if isinstance(drawn, Tensor) else drawn.labels

    def publish(self) -> Tensor:
        """Return what was drawn."""
        if self.reports is None:
            raise RuntimeError("nothing has been drawn")
        self.times_published = 1
        return self.reports

    def state(self) -> dict[str, Tensor]:
        """Return the count of publications, and what was drawn."""
        drawn = {} if self.reports is None else {"guesses/sent": self.reports}
        return {"guesses/count": torch.tensor([self.times_published]), **drawn}

    def load(self, state: State) -> None:
        # The report itself is saved and not the guess: training again on other hardware could guess differently.
        self.reports = state.get("guesses/sent")
        # Earlier publications still count: a restart is no second budget.
        self.times_published = int(state["guesses/count"])

    @property
    def spent(self) -> float:
        return self._setting.price.spent(self.times_published or int(self.charged))


@dataclass(frozen=True)
class GuessingHolder:
    """One holder's part of a run, as its program returns it; `head` at the label holder alone.

    Attributes:
        learned: tensors by which people who join later are guessed about; they stay with this holder.
    """

    run: RunContext
    holding: Holding
    network: local_network.LocalNetwork
    publisher: GuessPublisher
    learned: dict[str, Tensor] = field(default_factory=dict, repr=False)

    def keep(self, part: str, learned: Mapping[str, Tensor]) -> None:
        """Keep learned tensors under the name of a part."""
        self.learned.update({f"{LEARNED}{part}/{name}": value for name, value in learned.items()})

    @property
    def head(self) -> LabelHead | None:
        return self.holding.head

    def state(self) -> dict[str, Tensor]:
        state = self.publisher.state()
        if self.run.setting.per_person:
            state["guesses/paid"] = torch.tensor([int(self.publisher.charged)])
        state |= self.learned
        return state | (self.head.state() if self.head is not None else {})

    def load(self, state: State) -> None:
        self.publisher.load(state)
        self.publisher.charged = bool(state.get("guesses/paid", torch.zeros(1)).any())
        self.learned.update({name: value for name, value in state.items() if name.startswith(LEARNED)})
        if self.head is not None:
            self.head.load(state)

    def train(self, rows: Tensor, loss: Callable[[Tensor], Tensor]) -> Tensor:
        """Train; return logits of all nodes [n, c].

        Args:
            rows: who trains, int64 [m].
            loss: of the logits of all nodes.
        """
        training = self.run.setting.training
        local_network.train_local(
            self.network, rows, loss, epochs=training.epochs, rate=training.learning_rate, decay=training.weight_decay
        )
        with torch.no_grad():
            logits: Tensor = self.network()
        return logits


def guessing_holder(run: RunContext, holding: Holding) -> Program[GuessingHolder]:
    """The program of one holder in mode "guesses": return what it published, and at the label holder the predictions.

    Args:
        run: its run; the randomness is that of its guesses.
    """
    setting = run.setting
    network = local_network.LocalNetwork(holding.features, holding.edge_index, setting.classes, setting.model.hops)
    party = GuessingHolder(run, holding, network, GuessPublisher(setting))
    if run.state is not None:
        party.load(run.state)
    else:  # so that labels that are sent again are those that were randomized before
        if setting.per_person and holding.head is None:
            # On disk before training reads anybody; a second attempt costs no more, since nothing has left.
            party.publisher.charge()
        yield Checkpoint(0, party.state, party.publisher.spent)
    if holding.head is not None:
        yield from _label_holder(party, holding.head)
    else:
        yield from _other_holder(party)
    return party


def guessing_server(run: RunContext, nodes: int, rows: int) -> Program[None]:
    """The server's program: it sees nothing, and only finishes each round with the other parties."""
    for round in range(0 if run.state is None else run.done + 1, run.setting.rounds + 1):
        yield Checkpoint(round, dict)


def _other_holder(party: GuessingHolder) -> Program[None]:
    run, setting, label_holder = party.run, party.run.setting, party.run.setting.label_holder
    if run.done < 1:
        labels = yield Receive(label_holder, "training-labels", (party.holding.nodes,))
        # Checked before they index the channel, where an error would not name the sender.
        require_classes(labels, _NOT_TRAINING, setting.classes, label_holder)
        rows = (labels != _NOT_TRAINING).nonzero().squeeze(1)
        if not len(rows):
            raise InputError("no node trains", where=label_holder)
        # The one place where this holder's data becomes reports that leave.
        party.publisher.randomize(_guesses(party, rows, labels[rows]), randomness=run.randomness)
        yield Checkpoint(1, party.state, party.publisher.spent)  # reports are saved before they leave
    if run.done < setting.rounds:
        reports = party.publisher.publish()
        yield Send(label_holder, "guesses", reports, name_of(reports))
        yield Checkpoint(setting.rounds, party.state, party.publisher.spent)


def _guesses(party: GuessingHolder, rows: Tensor, labels: Tensor) -> Tensor:
    """Return the guesses to publish: of all nodes, int64 [n], with unit "person" of those that do not train [n - m]."""
    setting = party.run.setting
    if setting.per_person:
        party.publisher.require_charged()
        holding, randomness = party.holding, party.run.randomness
        votes = private_votes(holding.edge_index, holding.nodes, rows, labels, setting, randomness=randomness)
        guesses, learned = private_guesses(holding.features, votes, rows, labels, setting, randomness=randomness)
        party.keep(NETWORK, learned)
        # Not of those who train: training has cost them their epsilon, and a guess would cost it again.
        return guesses[_all_but(rows, holding.nodes)]
    channel = setting.label_channel
    logits = party.train(rows, lambda logits: local_network.label_loss(logits[rows], labels, channel))
    party.keep(NETWORK, party.network.learned_state())
    return logits.argmax(dim=1)


def _all_but(rows: Tensor, nodes: int) -> Tensor:
    is_left = torch.ones(nodes, dtype=torch.bool)
    is_left[rows] = False
    return is_left.nonzero().squeeze(1)


def _label_holder(party: GuessingHolder, head: LabelHead) -> Program[None]:
    run, setting = party.run, party.run.setting
    if not bool(head.val.any()):
        raise InputError("no validation nodes, which show how often guesses are right", where=run.me)
    if setting.per_person and bool((head.val & head.train).any()):
        raise InputError("a node trains and validates, and has no guess", where=run.me)
    if run.done < 1:
        labels = head.training_labels(_NOT_TRAINING)
        for name in run.roster.other_holders:
            # All holders get the same report of a label: one report each would let them average the noise out.
            yield Send(name, "training-labels", labels, name_of(labels))
        logits = party.train(head.train.nonzero().squeeze(1), head.loss)
        party.keep(ALONE, party.network.learned_state())
        scores, pool = pooled_alone(logits, labels, party.network.transition, head.val, head.val_log_likelihood())
        party.keep(POOLED_ALONE, pool.state())
        head.note_predictions(scores, 1)
        # For comparison: it shows, without a further query, what the other holders' guesses add.
        head.alone = head.predictions
        yield Checkpoint(1, party.state)
    if run.done < setting.rounds:
        nodes = party.holding.nodes
        rows = _all_but(head.train.nonzero().squeeze(1), nodes) if setting.per_person else torch.arange(nodes)
        guesses = []
        for name in run.roster.other_holders:
            guesses.append((yield Receive(name, "guesses", (len(rows),))))
            require_classes(guesses[-1], 0, setting.guessing.channel.shape[1], name)
        head.note_predictions(_learned(party, head, rows, guesses), setting.rounds)
        yield Checkpoint(setting.rounds, party.state)


def _learned(party: GuessingHolder, head: LabelHead, rows: Tensor, guesses: Sequence[Tensor]) -> Tensor:
    """Return logits of all nodes after training on labels and guesses, and pooling, with the best weight."""
    # 0 where there is no guess, which is never read: no node trains and validates.
    of_all = torch.zeros(len(guesses), party.holding.nodes, dtype=torch.int64)
    of_all[:, rows] = torch.stack(list(guesses))
    # On validation nodes only, all of which have guesses.
    chances = [head.chances(of_holder, party.run.setting.guessing.channel) for of_holder in of_all]

    def with_weight(weight: float) -> tuple[Tensor, dict[str, Tensor]]:
        logits = party.train(
            head.train.nonzero().squeeze(1),
            lambda logits: head.loss(logits) + weight * local_network.guess_loss(logits[rows], guesses, chances),
        )
        return logits, party.network.learned_state()

    # On reports that have arrived: trying four weights is post-processing and costs nothing more.
    taught, learned = max(map(with_weight, WEIGHTS), key=lambda result: head.rank(result[0]))
    alone = taught if head.alone is None else log_of(head.alone)
    evidence = evidence_of(guesses, chances, rows, party.holding.nodes)
    scores, pool = pooled(alone, taught, evidence, party.network.transition, head.val, head.val_log_likelihood())
    party.keep(TAUGHT, learned)
    party.keep(POOLED, pool.state())
    party.keep(REPORTS, {"chances": torch.stack(chances), "reports": of_all, "rows": rows})
    return scores


def log_of(probabilities: Tensor) -> Tensor:
    """Return finite logarithms of probabilities, float32 [n, c]."""
    return probabilities.clamp_min(_MIN_CHANCE).log()


def require_classes(values: Tensor, low: int, classes: int, where: str) -> None:
    """Refuse a message with a number that is no class, by InputError.

    Args:
        values: of the message.
        low: the least number, 0 or a mark for nodes without a class.
        classes: how many classes, or sets of classes, there are, numbered from 0.
        where: the sender.
    """
    if not (low <= int(values.min()) and int(values.max()) < classes):
        raise InputError("a number that is not a class", where=where, allowed=f"{low} to {classes - 1}")
