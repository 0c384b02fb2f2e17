"""A whole federation as one estimator: all parties in this process, for experiments before organisations run it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from graphveil.errors import BudgetError, GraphveilError, InputError
from graphveil.federation.core.guarantees import guarantee_of, ledger_of
from graphveil.federation.core.messages import Transcript
from graphveil.federation.core.setting import Option, Setting, require_options
from graphveil.federation.effects import Watch
from graphveil.federation.simulation import Trained, simulate_training
from graphveil.federation.vertical import partition_graph
from graphveil.graphs import Graph, Split, random_split
from graphveil.privacy import Guarantee, Ledger, Randomness

#: The name of the simulated server.
SERVER = "server"


class VFGNN:
    """A graph neural network of two to five data holders and a server, trained on shares or on noisy embeddings.

    A graph is dealt out to simulated holders "holder1", ..., the first of which has the labels; then all parties run
    the programs that `graphveil federation serve` and `join` run over the network, alignment left out.

    Args:
        epsilon: of all publications of one holder together; inf is no privacy against the server.
        delta, mode and others: fields of `Setting`, such as hops, width, epochs, republish, epsilon_y.
        seed: of the deal, the split, initial weights and dropout; never of shares and noise.

    Source: Chen et al., "Vertically Federated Graph Neural Network for Privacy-Preserving Node Classification",
    IJCAI 2022, arXiv 2005.11903, with the corrections of docs/federation.md.

    Raises:
        InputError: a setting that is not known.
    """

    def __init__(self, *, epsilon: float, delta: float = 1e-4, seed: int = 0, **settings: Option) -> None:
        require_options(settings, "VFGNN")
        self.settings: dict[str, Option] = {"epsilon": epsilon, "delta": delta, **settings}
        self.seed = seed
        self._began = False
        self._run: tuple[Setting, Trained, str | None] | None = None

    def fit(
        self,
        graph: Graph,
        *,
        split: Split | None = None,
        shares: Sequence[float] = (1.0, 1.0),
        randomness: Randomness,
        watch: Watch | None = None,
    ) -> VFGNN:
        """Deal the graph out by `shares` (one number a holder, of columns and edges) and train.

        Raises:
            InputError: settings that make no federation. BudgetError: it has run already, perhaps not to its end;
                publishing again costs.
        """
        if self._began:
            raise BudgetError("this federation has run", where="ledger", remedy="a new VFGNN is a new publication")
        members, holdings = partition_graph(graph, split or random_split(graph, self.seed), shares, seed=self.seed)
        setting = Setting.of(members, len(graph.schema.classes), server=SERVER, **self.settings)
        self._began = True
        trained = simulate_training(setting, holdings, randomness=randomness, seed=self.seed, watch=watch)
        head = holdings[setting.label_holder].head
        self._probabilities, self._history = head.predictions, head.history  # type: ignore[union-attr]
        self._run = setting, trained, randomness.void
        return self

    def predict_proba(self) -> Tensor:
        """Return the class probabilities of all nodes of the fitted graph, [n, c]: what the label holder ends with."""
        self._fitted()
        if self._probabilities is None:
            raise InputError("no round was finished", where="VFGNN")
        return self._probabilities.clone()

    def predict(self) -> Tensor:
        """Return the likeliest class of every node, int64 [n]."""
        return self.predict_proba().argmax(dim=1)

    def score(self, graph: Graph, mask: Tensor) -> float:
        """Return the share of the nodes in `mask` whose class is right; for simulations, which know true labels."""
        return float((self.predict() == graph.y)[torch.as_tensor(mask)].float().mean())

    @property
    def guarantee(self) -> Guarantee:
        """What one holder's published rows are promised, over all rounds."""
        setting, _, void = self._fitted()
        return guarantee_of(setting, void=void)

    @property
    def ledger(self) -> Ledger:
        """What one holder has spent."""
        setting, _, _ = self._fitted()
        return ledger_of(setting, setting.publications)

    @property
    def transcript(self) -> Transcript:
        """Every message: from, to, kind, shape, bytes, what it reveals."""
        return self._fitted()[1].transcript

    @property
    def history(self) -> list[dict[str, float]]:
        """One row a round: loss, validation loss and accuracy as the label holder saw them."""
        self._fitted()
        return [dict(row) for row in self._history]

    def _fitted(self) -> tuple[Setting, Trained, str | None]:
        if self._run is None:
            raise GraphveilError("nothing has been fitted", where="VFGNN", remedy="call fit first")
        return self._run
