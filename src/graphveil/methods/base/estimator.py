"""The base class of all methods: scikit-learn's manners around what a method does itself.

    model = LPGNN(epsilon_x=1.0, epsilon_y=2.0).fit(graph)
    model.guarantee, model.score(graph), model.save("model.safetensors")

    collect         pay, then read raw data through mechanisms      the one place of the method that does
    train           post-processing of what was collected; most may do so again and again at no privacy cost
    probabilities   [n, c] about the people of the collection, or about other ones; takes what `says_who` names

People are asked once, whoever asks.  A clone shares the account of its original: a second collection from the same
people is refused, or charged where room was declared. Settings are tried by `methods.runs.tuning` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar, cast

from graphveil.engine import LOCAL, Engine
from graphveil.errors import InputError, ModelFileError
from graphveil.graphs import Split, random_split, require_split, require_taught
from graphveil.graphs.value.features import deep_copy
from graphveil.graphs.value.parts import Graph
from graphveil.graphs.value.schema import GraphSchema
from graphveil.methods.base.method import Method
from graphveil.methods.base.network.objectives import true_score
from graphveil.methods.base.parameters import (
    as_own_graph,
    checked_init,
    classifier_tags,
    documented,
    engine_argument,
    labels_apart,
    not_by_blocks,
    not_fitted,
    notebook_page,
    parameters_of,
    require_call,
    require_identity,
    require_parameters,
    would_ask_again,
)
from graphveil.methods.base.people.account import Account
from graphveil.methods.base.storage import Stored, ledger_of, read_method, restoring, save_method
from graphveil.privacy import Guarantee, Ledger, Randomness, SecureRandomness, require_randomness
from graphveil.runtime.late import Tensor, nn
from graphveil.runtime.progress import ProgressCallback
from graphveil.training import Epoch

if TYPE_CHECKING:
    import numpy as np

    from graphveil.methods.runs.intervals import Interval


class Estimator:
    """A method that fits, predicts, says what it protects, and is saved.

    Attributes:
        entry: what commands know of the method.
        kind: the name under which it is saved, which is that of the class whose settings it fixes.
        derived: parameters that follow from others unless they are set; None by default.
        settings_type: takes the parameters that `__init__` does not name; None: there are none.
        further_help: a line about parameters that commands do not offer.
        says_who: what may be said of the people of a graph to predict: "people", "reports", or nothing.
        by_blocks, trains_by_blocks, predicts_by_blocks: whether `collect`, whether `train`, and whether
            `probabilities` (for people outside the collection) takes an `engine`: they work on blocks of rows.
        account: what was paid so far, and what for.
        lift: accuracy above the best control where a run measured it, else None; never saved: it takes true labels.

    Example:
        >>> from graphveil.graphs import load_graph
        >>> from graphveil.methods import ClassSums
        >>> graph = load_graph("digits")
        >>> model = ClassSums(epsilon=1.0, epochs=2).fit(graph)
        >>> model.guarantee.epsilon <= 1.0, model.guarantee.void
        (True, None)
        >>> tuple(model.predict_proba().shape)
        (1797, 10)
        >>> 0.0 <= model.score(graph) <= 1.0
        True
    """

    entry: ClassVar[Method]
    kind: ClassVar[str]
    derived: ClassVar[tuple[str, ...]] = ()
    settings_type: ClassVar[type[Any] | None] = None
    further_help: ClassVar[Mapping[str, str]] = {}
    says_who: tuple[str, ...] = ()
    by_blocks: ClassVar[bool] = False
    trains_by_blocks: ClassVar[bool] = False
    predicts_by_blocks: ClassVar[bool] = False
    account: Account
    lift: Interval | None = None
    _cloned: bool = False
    _unset: frozenset[str] = frozenset()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        init: Any = vars(cls).get("__init__")
        if init is not None:
            cls.__init__ = checked_init(cls, init)  # type: ignore[method-assign]
        if "entry" in vars(cls):
            options = cls.entry.options.items()
            cls.__doc__ = documented(cls, {**cls.further_help, **{name: option.help for name, option in options}})

    # ---- what each method has of its own ----

    @cached_property
    def seed(self) -> int:
        """What fixes the default split and initial weights, never privacy noise; some methods assign it."""
        return int(cast(Any, self).settings.seed)

    @property
    def fitted(self) -> bool:
        """Whether it can predict."""
        raise NotImplementedError

    @property
    def schema(self) -> GraphSchema:
        """The public declaration of the graph that was fitted; raises InputError before, as the guarantee does."""
        raise NotImplementedError

    def probabilities(self, graph: Graph | None = None, *args: Any, **keywords: Any) -> Tensor:
        """Return class probabilities [n, c], see `predict_proba`."""
        raise NotImplementedError

    def stored(self) -> Stored:
        """Return all that a saved file holds."""
        raise NotImplementedError

    @classmethod
    def restore(cls, stored: Stored) -> Self:
        """Return what `stored` gave; raises KeyError, TypeError or ValueError for anything else."""
        raise NotImplementedError

    def collect(self, graph: Graph, *args: Any, **keywords: Any) -> Any:
        """Return what one payment lets a method read of `graph`, behind its mechanisms."""
        raise NotImplementedError

    def train(self, collected: Any, *args: Any, **keywords: Any) -> None:
        """Train on what was collected."""
        raise NotImplementedError

    def parameters(self) -> dict[str, Any]:
        """Return the settings that build the same estimator; hops chosen from the budgets are None."""
        raise NotImplementedError

    @property
    def mechanism_guarantee(self) -> Guarantee:
        """What all that was paid for protects, by its mechanisms alone."""
        raise NotImplementedError

    @property
    def epsilon_relationship(self) -> float | None:
        """What one relationship costs, both entries of an undirected edge; None where no edge is protected."""
        return None

    @property
    def several(self) -> bool:
        """Whether a node has several labels."""
        return False

    @property
    def history(self) -> tuple[Epoch, ...]:
        """Every epoch's figures, of what was released or is public; none where they would have to be paid for."""
        return ()

    # ---- fitting and predicting ----

    def fit(
        self,
        graph: Graph,
        y: None = None,
        *,
        split: Split | None = None,
        randomness: Randomness | None = None,
        progress: ProgressCallback | None = None,
        engine: Engine = LOCAL,
    ) -> Self:
        """Collect from the people of a graph, or publish it, and train on what came out.

        Args:
            graph: with the truth at hand: n nodes, features [n, d], labels and edges; or what `graphs.as_graph` takes.
            y: nothing but the None of scikit-learn's callers: labels are the graph's own.
            split: who trains, validates and tests, masks [n]; default: a random half trains, a quarter validates.
            randomness: the source of noise; default: the operating system's. progress: told how far it is.
            engine: where blocks of people are worked on; nothing that comes out depends on it.

        Raises:
            BudgetError: the ledger cannot pay, before anything is read.
            InputError: for data outside what was declared, a graph that the method cannot serve, labels apart, or
                another engine than `LOCAL` for a method that does not work by blocks.
        """
        if y is not None:
            raise labels_apart(graph)
        # Before the graph is looked at: what an engine cannot do is refused at no price.
        if engine != LOCAL:
            self.require_block_fitting()
        # The secure source unless another was handed over: no setting, and no `seed`, leads to known noise.
        source, graph = SecureRandomness() if randomness is None else randomness, as_own_graph(graph)
        require_randomness(source)
        require_call(engine, progress=progress)
        keywords: dict[str, Any] = {"randomness": source, "progress": progress}
        nodes = random_split(graph, self.seed) if split is None else split
        require_split(nodes, int(graph.num_nodes))
        # Here and not in the training alone: by then people would have paid.
        require_taught(nodes.train)
        collected = self.collect(graph, split=nodes, **keywords, **engine_argument(engine, self.by_blocks))
        self.lift = None  # it was of the fit before
        self.train(collected, **keywords, **engine_argument(engine, self.trains_by_blocks))
        return self

    def predict_proba(
        self, graph: Graph | None = None, *, randomness: Randomness | None = None, engine: Engine = LOCAL, **who: object
    ) -> Tensor:
        """Return class probabilities [n, c].

        Args:
            graph: whose people are to be predicted; default: those of the training, for whom nothing is read.
            randomness: the source of noise of people who have to be asked; no default, since asking costs.
            engine: where blocks are worked on of people who have to be read; no answer depends on it.
            who: `people` ("same" or "other") or `reports`, where the method asks people: see its `probabilities`.

        Raises:
            BudgetError: people would be asked again, and no room was declared; before data is read.
            InputError: the method has not been fitted (scikit-learn's NotFittedError as well), cannot predict for
                this graph, or is given another engine than `LOCAL` and does not predict by blocks.
        """
        if not self.fitted:
            try:
                self.schema  # noqa: B018
            except InputError as error:
                raise not_fitted(error) from None
        # Callers forward None when unset; refuse only set values.
        identity = {name: value for name, value in who.items() if value is not None}
        require_identity(identity, self.says_who, self.name)
        if randomness is not None:
            require_randomness(randomness)
        if engine != LOCAL:
            self.require_block_prediction()
        keywords = {"randomness": randomness, **identity, **engine_argument(engine, self.predicts_by_blocks)}
        return self.probabilities(None if graph is None else as_own_graph(graph), **keywords)

    def predict(
        self, graph: Graph | None = None, *, randomness: Randomness | None = None, engine: Engine = LOCAL, **who: object
    ) -> Tensor:
        """Return the most likely class of every node [n]; 0/1 [n, c] where a node has several labels. Parameters: see
        `predict_proba`.
        """
        probabilities = self.predict_proba(graph, randomness=randomness, engine=engine, **who)
        return (probabilities > 0.5).long() if self.several else probabilities.argmax(dim=1)

    def score(
        self,
        graph: Graph,
        mask: Tensor | None = None,
        *,
        randomness: Randomness | None = None,
        engine: Engine = LOCAL,
        **who: object,
    ) -> float:
        """Return the accuracy against true labels; the micro-averaged F1 where a node has several labels.

        Args:
            mask: bool [n], the nodes that count; default: all with a label. The others: see `predict_proba`.
        """
        graph = as_own_graph(graph)
        keywords: dict[str, Any] = {"randomness": randomness, "engine": engine, **who}
        return true_score(lambda: self.predict(graph, **keywords), graph, mask, classes=self.schema.classes)

    @classmethod
    def require_block_fitting(cls) -> None:
        """Refuse an engine that can work on nothing here: named and left aside, it would have a user wait for it."""
        if not (cls.by_blocks or cls.trains_by_blocks):
            raise not_by_blocks(cls.entry.name)

    def require_block_prediction(self) -> None:
        """Refuse an engine that can work on nothing in predictions."""
        if not self.predicts_by_blocks:
            raise not_by_blocks(self.name, "predict by blocks")

    # ---- what it says of itself ----

    @property
    def guarantee(self) -> Guarantee:
        """What was paid for protects, and all that this leans on; raises InputError before fitting."""
        return self.account.with_declared_assumptions(self.mechanism_guarantee, self.parameters(), self.schema)

    @property
    def own_rows(self) -> bool:
        """Whether each row of the predictions is for that node's eyes alone."""
        return False

    @property
    def name(self) -> str:
        """The name that users of commands type."""
        return self.entry.name

    @property
    def ledger(self) -> Ledger:
        """Everything that was paid so far."""
        return self.account.ledger

    @ledger.setter
    def ledger(self, ledger: Ledger) -> None:
        self.account.ledger = ledger

    # ---- files ----

    def keep(self, model: Path) -> None:
        """Write what is kept of people beside a saved model, for its owner alone: nothing, unless a method does."""

    def recall(self, model: Path) -> None:
        """Read what `keep` wrote; nothing where the model alone was handed on."""

    def save(self, path: str | Path) -> Path:
        """Write the fitted method to one safetensors file: no reports, no raw data; return the file. Raises InputError
        where it has not been fitted. WriteError: the disk refuses.

        What people sent or were answered lies in a file beside it, for its owner alone: `storage.save_answers`.

        Args:
            path: a file, or a folder that gets `model.safetensors`.
        """
        stored = self.stored()
        file = save_method(path, self.kind, {**stored.facts, "unset": sorted(self._unset)}, stored.tensors)
        self.keep(file)
        return file

    @classmethod
    def load(cls, path: str | Path, *, backbone: nn.Module | None = None) -> Self:
        """Return a saved method, able to predict; what it spends is in the ledger beside its file before data are read.
        Raises ModelFileError for a missing or damaged file, one of another method, or a backbone too many or too few.

        Args:
            path: the file, or the folder that holds `model.safetensors`.
            backbone: the module that was trained, where it was a user's own, whose code is not in the file.
        """
        model = load_estimator(cls, path, backbone=backbone)
        if not isinstance(model, cls):
            raise ModelFileError(f"holds a {model.name!r} model", where=str(path), allowed=f"a {cls.entry.name!r} one")
        return model

    # ---- scikit-learn's manners ----

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings that build the same method once more; `deep` changes nothing."""
        used = self.parameters()
        params = {name: used.get(name, each.default) for name, each in parameters_of(type(self)).items()}
        return params | dict.fromkeys(self._unset)

    def set_params(self, **changes: Any) -> Self:
        """Change settings before fitting. Raises InputError for an unknown setting or value; once fitted; or of a
        clone, whose account is its original's.
        """
        params = self.get_params()
        require_parameters(type(self), changes)
        changed = {name: value for name, value in changes.items() if value != params[name]}
        # Judged by what could have been read: a ledger with spends has asked people, whatever became of it.
        if changed and (self._cloned or self.fitted or self.ledger.spends):
            raise would_ask_again(type(self).__name__, changed)
        if not self.fitted:
            rebuilt = type(self)(**{**params, **changes})
            # Other budgets open another account, which nobody has paid from; the same settings keep what was shared.
            rebuilt.account = rebuilt.account if changed else self.account
            rebuilt._cloned, rebuilt.lift = self._cloned, self.lift
            self.__dict__ = rebuilt.__dict__
        return self

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy with the same account: its people are those of the original."""
        # Built anew from its settings: nothing that was fitted or read goes along.
        copied = type(self)(**self.get_params())
        # One account for all clones: cross-validation over n clones would else be n collections at the price of one.
        copied.account = self.account
        copied._cloned = True
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy that is fitted as this one is, with the same account."""
        copied = memo[id(self)] = copy(self)
        copied.__dict__ = deep_copy(self.__dict__, memo)
        return copied

    def __sklearn_is_fitted__(self) -> bool:
        return self.fitted

    def __sklearn_tags__(self) -> object:
        return classifier_tags()

    @property
    def privacy_(self) -> Guarantee:
        """The guarantee, as fitted attributes are called; there after fitting."""
        return self._after_fitting("privacy_").guarantee

    @property
    def classes_(self) -> np.ndarray:
        """The classes [c] in the order of the columns of `predict_proba`: 0 to c - 1, see `schema.classes`."""
        import numpy as np

        return np.arange(len(self._after_fitting("classes_").schema.classes))

    @property
    def n_features_in_(self) -> int:
        """The number of features of a node."""
        return self._after_fitting("n_features_in_").schema.dimension

    def _after_fitting(self, name: str) -> Self:
        if not self.fitted:
            raise AttributeError(f"{name} exists only after fitting")
        return self

    def __repr__(self) -> str:
        parameters = parameters_of(type(self))
        chosen = {name: value for name, value in self.get_params().items() if parameters[name].default != value}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in chosen.items())})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the method, what it protects, and its lift where a run measured it."""
        sentence = self.guarantee.sentence() if self.fitted else "Not fitted: nothing has been read."
        lift = None if self.lift is None else (self.lift.mean, self.lift.low, self.lift.high)
        return notebook_page(repr(self), sentence, lift, fitted=self.fitted)


def load_estimator(kind: type[Estimator], path: str | Path, *, backbone: nn.Module | None = None) -> Estimator:
    """Return a saved method, see `Estimator.load`: a `kind` if that takes all settings, else its `class_of`.

    Args:
        kind: a class that saves files of this kind. path, backbone: see `Estimator.load`.
    """
    _, facts, tensors = read_method(path, kind.kind)
    own = facts.get("backbone")
    # Code is never read from a file: a module of the user's own must come from the user.
    if (own is None) != (backbone is None):
        contents = "holds weights of its own network" if own is None else f"holds weights of a module of yours, {own}"
        remedy = "load it with backbone=... as it was trained, or without"
        raise ModelFileError(contents, where=str(path), remedy=remedy)
    # A class that fixes settings of another saves what that one saves.
    base: Any = next(each for each in kind.__mro__ if "kind" in vars(each))
    build = base.restore if backbone is None else partial(base.restore, backbone=backbone)
    with restoring(path):
        restored: Estimator = build(Stored(facts, tensors))
        restored._unset = frozenset(facts.get("unset", ())) & {*restored.derived}
    if kind is not base:
        restored.__class__ = kind if issubclass(kind, named := class_of(restored)) else named
    # From the file and not from the model: copies of a model must not each have the whole budget.
    restored.ledger = ledger_of(path, facts)
    restored.recall(Path(path))
    return restored


def class_of(model: Estimator) -> type[Estimator]:
    """Return the class whose fixed settings are a model's: most fixed settings, then most set options."""
    # Files hold all settings and no name of a class: several classes fix settings of one.
    base, used = type(model), model.parameters()

    def fit(kind: type[Estimator]) -> tuple[int, int]:
        fixed = [used.get(name) == value for name, value in kind.entry.fixed.items()]
        return len(fixed) if all(fixed) else -1, sum(used.get(name) is not None for name in kind.entry.options)

    below = [*base.__subclasses__(), *(leaf for each in base.__subclasses__() for leaf in each.__subclasses__())]
    kinds = [each for each in (base, *below) if "entry" in vars(each) and each.kind == base.kind]
    return max(kinds, key=fit)


class HasSchema(Protocol):
    @property
    def schema(self) -> GraphSchema: ...


F = TypeVar("F", bound=HasSchema)


class FittedEstimator(Estimator, Generic[F]):
    """An estimator whose fit leaves one value; `fits` is the call that fits beside `fit`, or ""."""

    fits: ClassVar[str]
    _fitted: F | None = None

    @property
    def fitted(self) -> bool:
        """Whether fitting has left its value."""
        return self._fitted is not None

    @property
    def result(self) -> F:
        """What fitting left; raises InputError before."""
        if self._fitted is None:
            calls = f"fit or {self.fits}" if self.fits else "fit"
            raise InputError(f"this {self.name} has not been fitted", remedy=f"call {calls} first")
        return self._fitted

    @property
    def schema(self) -> GraphSchema:
        """The public declaration of the graph that was fitted; raises InputError before."""
        return self.result.schema
