"""People who joined after a finished run: what their predictions have in common in all modes. Nothing is trained.

label holder   announces who is new; each holder decides by its own list of who was published, not by the announcement
seal           of all that a holder's messages follow from, on disk before anything leaves: a prediction that runs
               again repeats what it sent, and with other data it is refused
finished       a finished prediction sends nothing when it runs again: the label holder has its predictions
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from graphveil.errors import BudgetError
from graphveil.federation.core import states
from graphveil.federation.core.networks import OutputLayer
from graphveil.federation.core.publisher import Publisher
from graphveil.federation.crypto.commitments import SALT, Commitment
from graphveil.federation.crypto.masks import as_message
from graphveil.federation.effects import Program, Receive, Send
from graphveil.federation.modes.guesses import GuessPublisher
from graphveil.federation.modes.holder import Holding

#: The first ends when the seal is saved, the second when rows are published.
ROUNDS = 2


@dataclass(frozen=True)
class Prediction:
    """What a holder's program returns.

    Attributes:
        new: rows of new people, int64 [new].
        publisher: None in modes without one.
        probabilities: at the label holder, of their classes, float32 [new, classes].
    """

    new: Tensor
    publisher: Publisher | GuessPublisher | None
    probabilities: Tensor | None

    def state(self) -> dict[str, Tensor]:
        """Return what a finished prediction needs to return the same again."""
        return {} if self.probabilities is None else {"predicted": self.probabilities}


def agree_on_new(run: states.RunContext, new: Tensor, *, server: bool = True) -> Program[None]:
    """Agree on who is new; BudgetError where the holders disagree.

    Args:
        new: who was never published, by this holder's own list, int64 [new].
        server: whether the server is told.
    """
    setting = run.setting
    if run.me == setting.label_holder:
        for name in (*([setting.server] if server else []), *run.roster.other_holders):
            yield Send(name, "new-rows", new)
    # Each holder decides by what it has published itself: an announcement cannot make it publish somebody twice.
    elif not torch.equal((yield Receive(setting.label_holder, "new-rows", (-1,))), new):
        raise BudgetError(
            "the holders disagree on who was published before",
            where=run.me,
            remedy="restore the folders of all parties, with all their predictions",
        )


def seal_of(run: states.RunContext, holding: Holding, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the seal of all that this holder's messages follow from, to be saved before anything leaves.

    Args:
        run: a holder's; its state is of a prediction that is run again.
        holding: features and edges of everybody.
        inputs: who is new, and what was trained, by name.

    Raises:
        BudgetError: the prediction was made before from other data.
    """
    salt = run.randomness.bytes(SALT) if run.state is None else run.state["seal/salt"].numpy().tobytes()
    x = holding.features
    features = [x] if isinstance(x, Tensor | np.ndarray) else [x.tocsr().data, x.tocsr().indices, x.tocsr().indptr]
    # By name: a file gives its tensors back in any order.
    in_order = [inputs[name] for name in sorted(inputs)]
    seal = as_message(Commitment.of([*features, holding.edge_index, *in_order], salt).fixed)
    if run.state is not None and not torch.equal(seal, run.state["seal"]):
        raise BudgetError(
            "other data than at first",
            where=run.me,
            remedy="each is predicted once: give the same files to repeat a prediction",
        )
    return {"seal/salt": as_message(salt), "seal": seal}


def probabilities_of(run: states.RunContext, before: states.State, hidden: Tensor) -> Tensor:
    """Return the class probabilities of new people, float32 [new, classes], by the label holder's kept last layer.

    Args:
        before: the last checkpoint of the finished run.
        hidden: the last hidden layer, float32 [new, h].
    """
    output = OutputLayer(run.setting.model.width, run.setting.classes, generator=run.generator)
    states.load_module("desk/kept", output, before)
    with torch.no_grad():
        return torch.softmax(output(hidden), dim=1)


def receive_probabilities(run: states.RunContext, before: states.State, count: int) -> Program[Tensor | None]:
    """Receive new people's hidden layer at the label holder; return their class probabilities, None at other holders.

    Args:
        before: the last checkpoint of the finished run.
        count: how many are new.
    """
    setting = run.setting
    if run.me != setting.label_holder:
        return None
    return probabilities_of(run, before, (yield Receive(setting.server, "hidden", (count, setting.model.width))))
