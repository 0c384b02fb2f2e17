"""The label holder's desk: the last layer, the loss, and which round was best.

    loss = - mean over training rows of log( softmax(z W_L + b_L) T )_{y'}        dL/dz for the training rows goes back

T is the identity, or the channel of randomized response where the labels were randomized once, before the run: then
everything that leaves the desk is computed from randomized labels: one label costs epsilon_y in all rounds together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.federation.core.messages import Receive, Send
from graphveil.federation.core.networks import Head
from graphveil.federation.core.setting import Setting
from graphveil.federation.core.states import State, adam_state, load_adam, load_module, module_state
from graphveil.federation.crypto.products import Talk
from graphveil.federation.modes.own import guess_chances, label_loss
from graphveil.mechanisms import RandomizedResponse
from graphveil.privacy import Randomness

_ROW = ("epoch", "loss", "val_loss", "val_accuracy")


class LabelDesk:
    """Labels [n] int64 (-1 unknown) and who trains, validates and tests, as masks [n]; all stay with the label holder.

    After a run: `history` (one row a round), `best` (its round), `predictions` [n, classes] of that round, and `alone`,
    those of the label holder's own network before anybody else's guesses, where there is one.
    """

    def __init__(self, labels: Tensor, train: Tensor, val: Tensor, test: Tensor) -> None:
        if not bool((labels[train | val | test] >= 0).all()):
            raise InputError("a node of the split has no label", where="label holder")
        self.labels, self.train, self.val, self.test = labels, train, val, test
        self.history: list[dict[str, float]] = []
        self.best: int | None = None
        self.predictions: Tensor | None = None
        self.alone: Tensor | None = None

    def open(self, setting: Setting, *, randomness: Randomness, generator: torch.Generator) -> None:
        """Draw the last layer and, where agreed, randomize the training labels: the one place that reads them."""
        self._head = Head(setting.width, setting.classes, generator=generator)
        self._optimiser = torch.optim.Adam(
            self._head.parameters(), lr=setting.learning_rate, weight_decay=setting.weight_decay
        )
        self._rows = self.train.nonzero().squeeze(1)
        self._channel = setting.label_channel
        self._heard = torch.where(self.train | self.val, self.labels, -1)  # no other label is ever used
        if math.isfinite(setting.epsilon_y):
            response = RandomizedResponse(epsilon=setting.epsilon_y, classes=setting.classes)
            for mask in (self.train, self.val):
                sent = response.randomize(self.labels[mask], randomness=randomness)
                self._heard[mask] = sent.labels

    def state(self) -> dict[str, Tensor]:
        """Return the last layer, the labels as they were randomized, the history and the best predictions."""
        rows = [list(row.values()) for row in self.history]
        found = module_state("desk/head", self._head) | adam_state("desk/adam", self._optimiser)
        found |= {
            "desk/heard": self._heard,
            "desk/split": torch.stack([self.train, self.val]).to(torch.uint8),
            "desk/history": torch.tensor(rows, dtype=torch.float64).view(-1, len(_ROW)),
        }
        kept = {"desk/best": self.predictions, "desk/alone": self.alone}
        return found | {name: value.clone() for name, value in kept.items() if value is not None}

    def load(self, state: State) -> None:
        """Set all of them from a checkpoint; labels are not randomized a second time.

        Raises:
            InputError: other nodes train or validate now: their labels were not randomized when the run began.
        """
        split = state.get("desk/split")
        if split is None or not torch.equal(split.bool(), torch.stack([self.train, self.val])):
            raise InputError(
                "other nodes train or validate than when the run began, or another version began it",
                where="label holder",
                remedy="restore the folder and give the same --seed, or make a new agreement for a new run",
            )
        load_module("desk/head", self._head, state)
        load_adam("desk/adam", self._optimiser, state)
        self._heard = state["desk/heard"]
        self.history = [dict(zip(_ROW, row, strict=True)) for row in state["desk/history"].tolist()]
        self.predictions, self.alone = state.get("desk/best"), state.get("desk/alone")
        if self.predictions is not None:
            self.best = max(range(len(self.history)), key=lambda place: _rank(self.history[place])) + 1

    def announce(self, setting: Setting) -> Talk:
        """Tell the server which rows train: their gradients would show it anyway."""
        yield Send(setting.server, "labelled-rows", self._rows)

    def steps(self, setting: Setting, nodes: int, round: int) -> Talk:
        """Answer the server's steps of one round, then look at all nodes once."""
        loss = math.nan
        for _ in range(setting.steps(round)):
            z = yield Receive(setting.server, "hidden", (len(self._rows), setting.width))
            z.requires_grad_()
            self._optimiser.zero_grad()
            error = self._loss(z, self._heard[self._rows])
            error.backward()  # type: ignore[no-untyped-call]
            self._optimiser.step()
            loss = float(error.detach())
            yield Send(setting.server, "hidden-gradient", z.grad)
        z = yield Receive(setting.server, "hidden", (nodes, setting.width))
        with torch.no_grad():
            self._note(self._head(z), round, loss)

    def _loss(self, z: Tensor, labels: Tensor) -> Tensor:
        return label_loss(self._head(z), labels, self._channel)

    def given(self, missing: int) -> Tensor:
        """Return the training labels as they are given to other holders, int64 [n], `missing` for all other nodes."""
        return torch.where(self.train, self._heard, missing)

    def loss(self, logits: Tensor) -> Tensor:
        """Return the loss of the training rows under logits of all nodes [n, classes]."""
        return label_loss(logits[self._rows], self._heard[self._rows], self._channel)

    def chances(self, guesses: Tensor, response: Tensor) -> Tensor:
        """Return how often a holder reports what, given the true class [classes, classes], by the validation nodes."""
        return guess_chances(guesses[self.val], self._heard[self.val], response, self._channel)

    def rank(self, logits: Tensor) -> tuple[float, float]:
        """Return how well logits of all nodes validate: the larger, the better."""
        return _rank(self._row(logits, 0, float(self.loss(logits))))

    def look(self, logits: Tensor, round: int) -> None:
        """Note how logits of all nodes [n, classes] do after a round; keep its predictions if they validate best."""
        self._note(logits, round, float(self.loss(logits)))

    def _note(self, logits: Tensor, round: int, loss: float) -> None:
        self.history.append(self._row(logits, round, loss))
        if self.best is None or _rank(self.history[-1]) > _rank(self.history[self.best - 1]):
            self.best, self.predictions = round, torch.softmax(logits, dim=1)

    def _row(self, logits: Tensor, round: int, loss: float) -> dict[str, float]:
        seen = self.val if bool(self.val.any()) else self.train
        val_loss = float(label_loss(logits[seen], self._heard[seen], self._channel)) if seen is self.val else loss
        score = float((logits.argmax(dim=1) == self._heard)[seen].float().mean())
        return dict(zip(_ROW, (round, loss, val_loss, score), strict=True))


def _rank(row: Mapping[str, float]) -> tuple[float, float]:
    return row["val_accuracy"], -row["val_loss"]
