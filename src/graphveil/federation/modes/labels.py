"""The label holder's head: the last layer, the loss, and which round is best; all of it stays with the label holder.

    loss = - mean over training rows of log( softmax(z W_L + b_L) T )_{y'}        dL/dz for the training rows goes back

T is the identity, or the channel of randomized response where the labels were randomized once, before the run: then
all that leaves this class is computed from randomized labels, and one label costs epsilon_y in all rounds together.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping

import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.federation.core.networks import OutputLayer
from graphveil.federation.core.rows import Rows
from graphveil.federation.core.setting import Setting
from graphveil.federation.core.states import State, adam_state, load_adam, load_module, module_state
from graphveil.federation.effects import Program, Receive, Send
from graphveil.federation.modes.local_network import guess_chances, label_loss
from graphveil.mechanisms import RandomizedResponse
from graphveil.privacy import Randomness

_MIN_CHANCE = 1e-12
_HISTORY_COLUMNS = ("epoch", "loss", "val_loss", "val_accuracy")


class LabelHead:
    """The last layer and the labels.

    Args:
        labels: int64 [n], -1 unknown.
        train, val, test: who trains, validates and tests, bool [n].

    After a run: `history` (one row a round), `best` (its round), `predictions` [n, classes] of that round, and `alone`,
    those of the label holder's own network before anybody else's guesses, where there is one.
    """

    def __init__(self, labels: Tensor, train: Tensor, val: Tensor, test: Tensor) -> None:
        # An unknown label can be neither randomized nor scored: refused here, where the holder is known.
        if not bool((labels[train | val | test] >= 0).all()):
            raise InputError("a node of the split has no label", where="label holder")
        self.labels, self.train, self.val, self.test = labels, train, val, test
        self.history: list[dict[str, float]] = []
        self.best: int | None = None
        self.predictions: Tensor | None = None
        self.alone: Tensor | None = None

    def open(self, setting: Setting, *, randomness: Randomness, generator: torch.Generator) -> None:
        """Draw the last layer and, where agreed, randomize the training labels: the one place that reads them.

        Args:
            randomness: of randomized response.
            generator: of initial weights.
        """
        self._output = OutputLayer(setting.model.width, setting.classes, generator=generator)
        self._best_output = copy.deepcopy(self._output)
        self._optimiser = setting.training.optimiser(self._output.parameters())
        self._rows = self.train.nonzero().squeeze(1)
        self._channel = setting.label_channel
        self.reported = torch.where(self.train | self.val, self.labels, -1)  # no other label is ever used
        if math.isfinite(setting.privacy.epsilon_y):
            response = RandomizedResponse(epsilon=setting.privacy.epsilon_y, classes=setting.classes)
            # Validation labels too: which round is kept is shown in the predictions, and is computed from them.
            for mask in (self.train, self.val):
                reports = response.randomize(self.labels[mask], randomness=randomness)
                self.reported[mask] = reports.labels

    def state(self) -> dict[str, Tensor]:
        rows = [list(row.values()) for row in self.history]
        state = module_state("desk/head", self._output) | adam_state("desk/adam", self._optimiser)
        state |= module_state("desk/kept", self._best_output)
        state |= {
            "desk/heard": self.reported,
            "desk/split": torch.stack([self.train, self.val]).to(torch.uint8),
            "desk/history": torch.tensor(rows, dtype=torch.float64).view(-1, len(_HISTORY_COLUMNS)),
        }
        predictions = {"desk/best": self.predictions, "desk/alone": self.alone}
        return state | {name: value.clone() for name, value in predictions.items() if value is not None}

    def load(self, state: State) -> None:
        """Set all of `state` from a checkpoint; labels are not randomized a second time. Raises InputError: other nodes
        train or validate now: their labels were not randomized when the run began.
        """
        # A node that did not train when labels were randomized would now be reported as it is.
        if not torch.equal(state["desk/split"].bool(), torch.stack([self.train, self.val])):
            raise InputError(
                "the training or validation nodes changed since the run began",
                where="label holder",
                remedy="restore the folder and give the same --seed, or make a new agreement for a new run",
            )
        load_module("desk/head", self._output, state)
        load_module("desk/kept", self._best_output, state)
        load_adam("desk/adam", self._optimiser, state)
        self.reported = state["desk/heard"]
        self.history = [dict(zip(_HISTORY_COLUMNS, row, strict=True)) for row in state["desk/history"].tolist()]
        self.predictions, self.alone = state.get("desk/best"), state.get("desk/alone")
        # Ranked again from the history: the best round is not stored, so it cannot contradict the history.
        if self.history:
            self.best = int(max(self.history, key=_rank)["epoch"])

    def announce_rows(self, setting: Setting) -> Program[Rows]:
        """Tell all parties which rows train and which validate; return them."""
        rows = Rows(len(self.labels), self._rows, self.val.nonzero().squeeze(1))
        for name in (setting.server, *setting.names):
            if name != setting.label_holder:
                yield Send(name, "labelled-rows", rows.train)
                yield Send(name, "validation-rows", rows.validation)
        return rows

    def answer_steps(self, setting: Setting, round: int) -> Program[None]:
        """Answer the server's steps of one round, and score the validation nodes where that is agreed.

        Args:
            round: its number, from 1.
        """
        loss = math.nan
        for _ in range(setting.steps(round)):
            # With a stated shape: further rows would be trained on as if they were those of labelled nodes.
            z = yield Receive(setting.server, "hidden", (len(self._rows), setting.model.width))
            # The last step's loss alone is noted: it stays with the label holder, who knows the labels.
            gradient, loss = self.step(z)
            yield Send(setting.server, "hidden-gradient", gradient)
        if setting.validates(round):
            yield from self.validate(setting, round, loss)

    def validate(self, setting: Setting, round: int, loss: float) -> Program[None]:
        """Score the validation nodes, or those who train where nobody validates; tell the server whether the round is
        kept.

        Args:
            round: its number, from 1.
            loss: of the round's last step.
        """
        z = yield Receive(setting.server, "hidden", (int(self._scored_mask.sum()), setting.model.width))
        yield Send(setting.server, "kept-round", torch.tensor([int(self.improves(z, round, loss))]))

    def improves(self, z: Tensor, round: int, loss: float) -> bool:
        """Add a round to the history; return whether it validates best so far, in which case its last layer is kept.

        Args:
            z: hidden layer of those who validate, or of those who train where nobody validates, [m, h].
            round: its number, from 1.
            loss: of its last step.
        """
        with torch.no_grad():
            scored = self._output(z)
            logits = torch.zeros(len(self.labels), scored.shape[1])
            logits[self._scored_mask] = scored
        keep = self._note_round(logits, round, loss)
        if keep:
            self._best_output = copy.deepcopy(self._output)
        return keep

    def _note_round(self, logits: Tensor, round: int, loss: float) -> bool:
        """Add a round to the history; return whether it validates best so far."""
        best = max((_rank(row) for row in self.history), default=(-1.0, 0.0))
        self.history.append(self._row(logits, round, loss))
        is_best = _rank(self.history[-1]) > best
        if is_best:
            self.best = round
        return is_best

    @property
    def _scored_mask(self) -> Tensor:
        """Those who validate, or those who train where nobody validates, bool [n]."""
        return self.val if bool(self.val.any()) else self.train

    def finish(self, setting: Setting) -> Program[None]:
        """Predict for all nodes, with the last layer of the round that was kept."""
        self.predict((yield Receive(setting.server, "hidden", (len(self.labels), setting.model.width))))

    def predict(self, z: Tensor) -> None:
        """Predict for all nodes from their hidden layer [n, h], with the last layer of the round that was kept."""
        with torch.no_grad():
            self.predictions = torch.softmax(self._best_output(z), dim=1)

    def step(self, z: Tensor) -> tuple[Tensor, float]:
        """Train the last layer by one step on z [t, h] of those who train; return dL/dz [t, h] and the loss."""
        z.requires_grad_()
        self._optimiser.zero_grad()
        loss = label_loss(self._output(z), self.reported[self._rows], self._channel)
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()
        if z.grad is None:
            raise RuntimeError("the loss does not depend on the hidden layer")
        return z.grad, float(loss.detach())

    def training_labels(self, missing: int) -> Tensor:
        """Return the training labels as sent to other holders, int64 [n], `missing` for all other nodes."""
        return torch.where(self.train, self.reported, missing)

    def loss(self, logits: Tensor) -> Tensor:
        return label_loss(logits[self._rows], self.reported[self._rows], self._channel)

    def chances(self, guesses: Tensor, response: Tensor) -> Tensor:
        """Estimate Pr[a holder's report | true class] on validation nodes, float32 [classes, reports].

        Args:
            guesses: the holder's, int64 [n].
            response: Pr[report | guess], float [classes, reports].
        """
        return guess_chances(guesses[self.val], self.reported[self.val], response, self._channel)

    def val_log_likelihood(self) -> Tensor:
        """Return log Pr[label as reported | class] of those who validate, float32 [m, classes]."""
        return self._channel.clamp_min(_MIN_CHANCE).log()[:, self.reported[self.val]].T

    def rank(self, logits: Tensor) -> tuple[float, float]:
        """Return how well logits of all nodes validate: larger is better."""
        return _rank(self._row(logits, 0, float(self.loss(logits))))

    def note_predictions(self, logits: Tensor, round: int) -> None:
        """Add a round to the history; keep its predictions if they validate best so far.

        Args:
            logits: of all nodes, float32 [n, classes].
            round: its number, from 1.
        """
        if self._note_round(logits, round, float(self.loss(logits))):
            self.predictions = torch.softmax(logits, dim=1)

    def _row(self, logits: Tensor, round: int, loss: float) -> dict[str, float]:
        mask = self._scored_mask
        on_val = mask is self.val
        val_loss = float(label_loss(logits[mask], self.reported[mask], self._channel)) if on_val else loss
        # Against labels as reported: a score on true ones would be a query that `epsilon_y` does not pay for.
        score = float((logits.argmax(dim=1) == self.reported)[mask].float().mean())
        return dict(zip(_HISTORY_COLUMNS, (round, loss, val_loss, score), strict=True))


def best_round(state: State) -> int:
    """Return the number of the round that validated best, from the checkpoint of a finished run."""
    rows = [dict(zip(_HISTORY_COLUMNS, row, strict=True)) for row in state["desk/history"].tolist()]
    return int(max(rows, key=_rank)["epoch"])


def _rank(row: Mapping[str, float]) -> tuple[float, float]:
    return row["val_accuracy"], -row["val_loss"]
