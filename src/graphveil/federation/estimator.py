"""A whole federation as one estimator: all parties in this process, for experiments before organisations run it.

Its surface is that of `methods.base.estimator.Estimator`.  It stands beside that class and not inside it because a
federation has no half that collects and another that trains: holders publish while they train.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from torch import Tensor

from graphveil.engine import LOCAL
from graphveil.errors import BudgetError, GraphveilError, InputError
from graphveil.federation.core.guarantees import guarantee_of, ledger_of
from graphveil.federation.core.messages import Transcript
from graphveil.federation.core.setting import OPTIONS, Member, Option, Setting, require_options
from graphveil.federation.effects import Checkpoint, Effect, Watch
from graphveil.federation.simulation import head_of, partition_graph, simulate_training
from graphveil.graphs import Graph, GraphSchema, Split, random_split, require_split
from graphveil.methods.base import storage
from graphveil.methods.base.network.objectives import true_score
from graphveil.methods.base.parameters import as_own_graph, require_call, require_unreleased
from graphveil.methods.base.people.one_process import OneProcess
from graphveil.methods.base.settings import NUMBERS
from graphveil.methods.base.storage import stored_probabilities
from graphveil.privacy import Guarantee, Ledger, Randomness, SecureRandomness, require_randomness
from graphveil.runtime.progress import Progress, ProgressCallback

if TYPE_CHECKING:
    import numpy as np

#: The name of the simulated server.
SERVER = "server"
KIND = "vfgnn"


class _PublicationState(OneProcess):
    """Whether holders have begun to publish; shared by an estimator and its clones, which have the same holders."""

    begun: bool = False


@dataclass(frozen=True)
class _Run:
    """The result of a finished federation; no transcript where it was loaded from a file."""

    setting: Setting
    schema: GraphSchema
    probabilities: Tensor
    history: Sequence[Mapping[str, float]]
    void: str | None
    transcript: Transcript | None = field(default=None, repr=False)


@final
class VFGNN:
    """A graph neural network of two to five data holders and a server, trained on shares or on noisy embeddings.

    A graph is partitioned among simulated holders "holder1", ..., the first of which has the labels; then all parties
    run the programs that `graphveil federation serve` and `join` run over the network, alignment left out.

    Args:
        epsilon: of all publications of one holder together; inf is no privacy against the server.
        delta: of the same; a guess needs none.
        seed: of the partition, the split, initial weights and dropout; never of shares and noise.
        settings: by the names of `setting.OPTIONS`, such as mode, hops, width, epochs, republish, epsilon_y.

    Raises:
        InputError: a setting that is not known.

    Source: Chen et al., "Vertically Federated Graph Neural Network for Privacy-Preserving Node Classification",
    IJCAI 2022, arXiv 2005.11903, with the corrections of docs/how-to/federation.md.

    Example:
        >>> from graphveil import load_graph
        >>> model = VFGNN(epsilon=8.0, mode="individual", width=8, hops=1, epochs=4, republish=2)
        >>> model
        VFGNN(epsilon=8.0, mode='individual', width=8, hops=1, epochs=4, republish=2)
        >>> _ = model.fit(load_graph("social-200"))
        >>> model.predict_proba().shape, round(model.ledger.total("rows")[0], 3)
        (torch.Size([200, 8]), 8.0)
    """

    kind = KIND

    def __init__(self, *, epsilon: float, delta: float = 1e-4, seed: int = 0, **settings: Option) -> None:
        require_options(settings, "VFGNN")
        NUMBERS["seed"].require(seed=seed)
        self.settings: dict[str, Option] = {"epsilon": epsilon, "delta": delta, **settings}
        self.seed = seed
        self._publication = _PublicationState()
        self._run: _Run | None = None

    def fit(
        self,
        graph: Graph,
        *,
        split: Split | None = None,
        shares: Sequence[float] = (1.0, 1.0),
        randomness: Randomness | None = None,
        progress: ProgressCallback | None = None,
        watch: Watch | None = None,
    ) -> VFGNN:
        """Partition a graph among holders, and run all parties; return the estimator itself.

        Args:
            graph: of all holders together: n nodes, features [n, d], labels and edges.
            split: who trains, validates and tests, masks [n]; default: random, by the seed.
            shares: one number a holder, of columns and edges; 5, 5 gives each half.
            randomness: of shares, keys and noise; default: the operating system's.
            progress: called after each round, with the epsilon that a holder has spent.
            watch: called with a party's name and each of its effects.

        Raises:
            InputError: for settings that make no federation.
            BudgetError: it has run already, perhaps not to its end: publishing again costs.
        """
        self._publication.require_own_process()
        source, graph = SecureRandomness() if randomness is None else randomness, as_own_graph(graph)
        require_unreleased(graph, "vfgnn")
        require_randomness(source)
        require_call(LOCAL, progress=progress, watch=watch)
        split = random_split(graph, self.seed) if split is None else split
        require_split(split, int(graph.num_nodes))
        members, holdings = partition_graph(graph, split, shares, seed=self.seed)
        setting = Setting.of(members, len(graph.schema.classes), server=SERVER, **self.settings)
        with self._publication.lock:
            if self._publication.begun:
                raise BudgetError(
                    "this federation has already run", where="ledger", remedy="make a new VFGNN; it publishes again"
                )
            # Never reset: a run that fails half-way has published half of its rows. Wrong settings were refused above.
            self._publication.begun = True
        on_effect = _watching(setting, progress, watch)
        trained = simulate_training(setting, holdings, randomness=source, seed=self.seed, watch=on_effect)
        head = head_of(holdings)
        if head.predictions is None:
            raise InputError("no round was finished", where="VFGNN")
        history = [dict(row) for row in head.history]
        self._run = _Run(setting, graph.schema, head.predictions, history, source.void, trained.transcript)
        return self

    def predict_proba(self, graph: Graph | None = None) -> Tensor:
        """Return the label holder's final class probabilities of all nodes of the fitted graph, float32 [n, c]. Raises
        InputError for any `graph`: other people would have to take part to be predicted.
        """
        # For other people all holders would have to publish again.
        if graph is not None:
            raise InputError("a federation predicts its own nodes only", where="VFGNN", remedy="leave the graph out")
        return self._fitted().probabilities.clone()

    def predict(self, graph: Graph | None = None) -> Tensor:
        """Return the likeliest class of every node, int64 [n]; `graph` as of `predict_proba`."""
        return self.predict_proba(graph).argmax(dim=1)

    def score(self, graph: Graph, mask: Tensor | None = None) -> float:
        """Return the accuracy, a fraction; for simulations, which know true labels.

        Args:
            graph: the fitted one, with true labels.
            mask: bool [n], the nodes that count; default: all with a label.
        """
        return true_score(self.predict, graph, mask)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one holder's published rows, over all rounds."""
        run = self._fitted()
        return guarantee_of(run.setting, void=run.void)

    @property
    def ledger(self) -> Ledger:
        """What one holder has spent."""
        setting = self._fitted().setting
        return ledger_of(setting, setting.publications)

    @property
    def transcript(self) -> Transcript:
        """Every message: from, to, kind, shape, bytes, what it reveals. Raises AttributeError: where it was loaded."""
        transcript = self._fitted().transcript
        if transcript is None:
            raise AttributeError("a saved federation keeps no transcript")
        return transcript

    @property
    def history(self) -> list[dict[str, float]]:
        """One row a round: loss, validation loss and accuracy as the label holder saw them."""
        return [dict(row) for row in self._fitted().history]

    @property
    def schema(self) -> GraphSchema:
        """The public facts of the graph."""
        return self._fitted().schema

    def save(self, path: str | Path) -> Path:
        """Write the label holder's result to one safetensors file, no weights, messages or raw data; return its path.

        Args:
            path: a file, or a folder that gets `model.safetensors`.

        Raises:
            GraphveilError: nothing was fitted, WriteError if the disk refuses.
        """
        run = self._fitted()
        facts = {
            "settings": {name: _plain(value) for name, value in run.setting.options.items()},
            "seed": self.seed,
            "members": [[m.name, m.columns, m.labels, m.entries] for m in run.setting.members],
            "schema": storage.schema_facts(run.schema),
            "history": [{name: _plain(value) for name, value in row.items()} for row in run.history],
            "void": run.void,
            "guarantee": self.guarantee.to_dict(),
            "ledger": self.ledger.to_dict(),
        }
        return storage.save_method(path, KIND, facts, {"probabilities": run.probabilities})

    @classmethod
    def load(cls, path: str | Path) -> VFGNN:
        """Return a saved federation, which cannot publish again.

        Args:
            path: the file, or the folder that holds `model.safetensors`.

        Raises:
            ModelFileError: for a missing or damaged file.
        """
        _, facts, tensors = storage.read_method(path, KIND)
        with storage.restoring(path):
            # By the default's type: JSON has no infinity and writes 8.0 and 8 alike.
            settings = {name: _number(value, OPTIONS[name]) for name, value in facts["settings"].items()}
            model = cls(seed=int(facts["seed"]), **settings)  # type: ignore[arg-type]
            members = tuple(
                Member(str(name), int(columns), bool(labels), int(entries))
                for name, columns, labels, entries in facts["members"]
            )
            schema = storage.schema_from(facts["schema"])
            setting = Setting.of(members, len(schema.classes), server=SERVER, **model.settings)
            probabilities = stored_probabilities(storage.Stored(facts, tensors), setting.classes)
            history = [{str(name): float(value) for name, value in row.items()} for row in facts["history"]]
            void = None if facts["void"] is None else str(facts["void"])
        model._run = _Run(setting, schema, probabilities, history, void)
        model._publication.begun = True
        return model

    def get_params(self, deep: bool = True) -> dict[str, Option]:
        """Return the settings that build the same federation; `deep` changes nothing."""
        return {**OPTIONS, **self.settings, "seed": self.seed}

    def set_params(self, **changes: Option) -> VFGNN:
        """Change settings before fitting. Raises InputError: for unknown ones, or when holders have published."""
        seed: Any = changes.pop("seed", self.seed)
        NUMBERS["seed"].require(seed=seed)
        require_options(changes, "VFGNN")
        params = self.get_params()
        changed = {name: value for name, value in changes.items() if value != params[name]}
        if self._publication.begun and (changed or seed != self.seed):
            what = "these holders have already published, and each candidate of a search would publish again"
            raise InputError(what, where="VFGNN", remedy="make a new VFGNN; it publishes again, at a price of its own")
        self.seed, self.settings = seed, {**self.settings, **changed}
        return self

    def __sklearn_clone__(self) -> VFGNN:
        copied = VFGNN(**self.settings, seed=self.seed)  # type: ignore[arg-type]
        # Shared and not copied: a grid search would publish the same people's rows once for each candidate.
        copied._publication = self._publication
        return copied

    def __sklearn_is_fitted__(self) -> bool:
        return self._run is not None

    @property
    def privacy_(self) -> Guarantee:
        """The guarantee, under the name of a fitted attribute."""
        self._after_fitting("privacy_")
        return self.guarantee

    @property
    def classes_(self) -> np.ndarray:
        """The classes [c] that `predict` gives: 0 to c - 1; their names are `schema.classes`."""
        import numpy as np

        return np.arange(len(self._after_fitting("classes_").schema.classes))

    @property
    def n_features_in_(self) -> int:
        """The number of features of a node, at all holders together."""
        return self._after_fitting("n_features_in_").schema.dimension

    def __repr__(self) -> str:
        params = {"epsilon": self.settings["epsilon"]}
        settings = {name: self.settings.get(name, default) for name, default in OPTIONS.items()}
        params |= {name: value for name, value in settings.items() if value != OPTIONS[name]}
        # The seed is of splits and weights and not of noise, so printing it reveals nothing.
        params |= {"seed": self.seed} if self.seed else {}
        return f"VFGNN({', '.join(f'{name}={value!r}' for name, value in params.items())})"

    def _repr_html_(self) -> str:
        text = self.guarantee.sentence() if self._run is not None else "Not fitted: nothing has been published."
        return f"<div><p><b>{escape(repr(self))}</b></p><p>{escape(text)}</p></div>"

    def _fitted(self) -> _Run:
        if self._run is None:
            raise GraphveilError("nothing has been fitted", where="VFGNN", remedy="call fit first")
        return self._run

    def _after_fitting(self, name: str) -> _Run:
        if self._run is None:
            raise AttributeError(f"{name} exists only after fitting")
        return self._run


def _watching(setting: Setting, progress: ProgressCallback | None, watch: Watch | None) -> Watch | None:
    """Return a watch that calls `watch`, and `progress` for the last holder, which publishes in every mode."""
    if progress is None:
        return watch

    def on_effect(name: str, effect: Effect) -> None:
        if watch is not None:
            watch(name, effect)
        if name == setting.names[-1] and isinstance(effect, Checkpoint) and effect.round:
            progress(Progress(effect.round, setting.rounds, "train", effect.epsilon))

    return on_effect


def _plain(value: Option) -> Any:
    return storage.number(value) if isinstance(value, float) else value


def _number(value: Any, default: Option) -> Option:
    return float(value) if isinstance(default, float) else type(default)(value)
