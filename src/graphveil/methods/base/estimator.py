"""The one estimator that users see, around the core of any method; scikit-learn's manners.

    model = LPGNN(epsilon_x=1.0, epsilon_y=2.0).fit(graph)
    model.guarantee, model.score(graph), model.save("model.safetensors")

What is a method's own (`randomize`, `fit_reports`, `publish`, `privacy`, ...) is its core's, and is reached through the
estimator as well: `model.randomize` is `model.core.randomize`.

People are asked once, whoever asks.  A clone therefore shares the account of its original: a second collection from the
same people is refused, or charged where room was declared; and neither a clone nor a fitted estimator takes other
settings, because trying settings on the same people is what `methods.runs.tuning` does at one price.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar, final

from graphveil.engine import LOCAL, Engine
from graphveil.errors import InputError, ModelFileError
from graphveil.graphs import Split, as_graph, random_split
from graphveil.graphs.value.protocol import Graph
from graphveil.graphs.value.schema import GraphSchema
from graphveil.methods.base.core import Core, Stored, collecting, predicting, signature_of, training
from graphveil.methods.base.scores import true_score
from graphveil.methods.base.storage import read_method, restoring, save_method, without_answers
from graphveil.privacy import Guarantee, Ledger, Randomness, SecureRandomness
from graphveil.runtime.progress import ProgressCallback
from graphveil.training import Epoch

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor, nn


# A refusal before fitting that scikit-learn's callers know; scikit-learn is imported when it is raised, not before.


def not_fitted(said: InputError) -> InputError:
    """Return a refusal that is scikit-learn's NotFittedError as well as an InputError.

    Args:
        said: the method's own.
    """
    from sklearn.exceptions import NotFittedError

    class NotFitted(InputError, NotFittedError):  # type: ignore[misc]
        """A method that was asked before it was fitted."""

    return NotFitted(said.what, where=said.where, allowed=said.allowed, remedy=said.remedy)


C = TypeVar("C", bound=Core[Any])
P = ParamSpec("P")
T = TypeVar("T")


class Measured(Protocol):
    """A mean with its 95% interval."""

    @property
    def mean(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


@final
class Estimator(Generic[C]):
    """A method that fits, predicts, says what it protects, and is saved.

    Args:
        core: the method itself.

    Attributes:
        core: the same; the method's own settings, halves and results are its attributes.
        lift: accuracy above the best control, where `methods.runs.experiment.run` measured it with controls, else None;
            never saved, since it is measured against true labels.

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

    __slots__ = ("__weakref__", "_cloned", "core", "lift")  # what is the core's is set there, not hidden here

    core: C
    lift: Measured | None

    def __init__(self, core: C) -> None:
        self.core, self.lift = core, None
        self._cloned = False

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
    ) -> Estimator[C]:
        """Collect from the people of a graph, or publish it, and train on what came out.

        Args:
            graph: with the truth at hand: n nodes, features [n, d], labels and edges; or what `graphs.as_graph` takes.
            y: nothing but the None of scikit-learn's callers: labels are the graph's own.
            split: who trains, validates and tests, masks [n]; default: a random half trains, a quarter validates.
            randomness: the source of noise; default: the operating system's.
            progress: told how far it is.
            engine: where blocks of people are worked on; nothing that comes out depends on it.

        Returns:
            The estimator itself.

        Raises:
            BudgetError: the ledger cannot pay, before anything is read.
            InputError: for data outside what was declared, a graph that the method cannot serve, labels apart, or
                another engine than `LOCAL` for a method that does not work by blocks.
        """
        if y is not None:
            raise _labels_apart(graph)
        # Before the graph is looked at: what an engine cannot do is refused at no price.
        collect = collecting(self.core, engine)
        # The secure source unless another was handed over: no setting, and no `seed`, leads to known noise.
        source, graph = SecureRandomness() if randomness is None else randomness, _as_graph(graph)
        nodes = split or random_split(graph, self.core.seed)
        collected = collect(graph, split=nodes, randomness=source, progress=progress)
        self.lift = None  # it was of the fit before
        training(self.core, engine)(collected, randomness=source, progress=progress)
        return self

    def predict_proba(
        self,
        graph: Graph | None = None,
        *,
        randomness: Randomness | None = None,
        engine: Engine = LOCAL,
        **who: object,
    ) -> Tensor:
        """Return class probabilities.

        Args:
            graph: whose people are to be predicted; default: those of the training, for whom nothing is read.
            randomness: the source of noise of people who have to be asked; none is taken by default, since asking
                costs.
            engine: where blocks are worked on of people who have to be read; no answer depends on it.
            who: `people` ("same" or "other") or `reports`, where the method asks people: see its core's
                `probabilities`.

        Returns:
            Probabilities [n, c].

        Raises:
            BudgetError: people would be asked again, and no room was declared; before data is read.
            InputError: the method has not been fitted (scikit-learn's NotFittedError as well), cannot predict for
                this graph, or is given another engine than `LOCAL` and does not predict by blocks.
        """
        if not self.core.fitted:
            self._refuse_unfitted()
        # None is what a caller passes on who says nothing; only what was said is refused where it says nothing.
        told = {name: value for name, value in who.items() if value is not None}
        for name in told:
            if name not in self.core.says_who:
                raise InputError(
                    f"{name} does not apply to {self.core.name}",
                    where="predict",
                    allowed=", ".join(self.core.says_who) or "the people of the training alone, or another graph",
                )
        probabilities = predicting(self.core, engine)
        return probabilities(None if graph is None else _as_graph(graph), randomness=randomness, **told)

    def predict(
        self,
        graph: Graph | None = None,
        *,
        randomness: Randomness | None = None,
        engine: Engine = LOCAL,
        **who: object,
    ) -> Tensor:
        """Return the most likely class of every node [n]; 0/1 [n, c] where a node has several labels.

        Args:
            graph: see `predict_proba`, as `randomness`, `engine` and `who`.
        """
        probabilities = self.predict_proba(graph, randomness=randomness, engine=engine, **who)
        return (probabilities > 0.5).long() if self.core.several else probabilities.argmax(dim=1)

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
            graph: has the true labels.
            mask: bool [n], the nodes that count; default: all with a label.
            randomness: see `predict_proba`, as `engine` and `who`.

        Returns:
            A fraction.
        """
        graph = _as_graph(graph)
        return true_score(self.predict(graph, randomness=randomness, engine=engine, **who), graph, mask)

    # ---- what it says of itself ----

    @property
    def guarantee(self) -> Guarantee:
        """What all that was collected so far protects."""
        return self.core.guarantee

    @property
    def ledger(self) -> Ledger:
        """Everything that was paid so far."""
        return self.core.account.ledger

    @ledger.setter
    def ledger(self, ledger: Ledger) -> None:
        self.core.account.ledger = ledger

    @property
    def history(self) -> tuple[Epoch, ...]:
        """Every epoch's figures, of released values alone."""
        return self.core.history

    @property
    def schema(self) -> GraphSchema:
        """The public facts of what was collected."""
        return self.core.schema

    @property
    def kind(self) -> str:
        """The name under which the method is saved."""
        return self.core.kind

    @property
    def epsilon_relationship(self) -> float | None:
        """What one relationship costs; None where links are not what is protected."""
        return self.core.epsilon_relationship

    # ---- files ----

    def save(self, path: str | Path) -> Path:
        """Write the fitted method to one safetensors file: no reports, no raw data.

        What people sent or were answered lies in a file of its own beside it, for its owner alone: see
        `storage.save_kept`.

        Args:
            path: a file, or a folder that gets `model.safetensors`.

        Returns:
            The file written.

        Raises:
            InputError: it has not been fitted.
            WriteError: the disk refuses.
        """
        stored = self.core.stored()
        file = save_method(path, self.core.kind, stored.facts, stored.tensors)
        self.core.keep(file)
        return file

    # ---- scikit-learn's manners ----

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings that build the same method once more; `deep` changes nothing."""
        return dict(self.core.parameters())

    def set_params(self, **changes: Any) -> Estimator[C]:
        """Change settings before fitting.

        Raises:
            InputError: for an unknown setting or value; or when people may have been asked for this account: it is
                fitted, or a clone, which shares the account of its original.
        """
        params = self.get_params()
        for name in changes:
            if name not in params:
                raise InputError(f"setting {name!r} is not known", where=self._name, allowed=", ".join(params))
        other = {name: value for name, value in changes.items() if value != params[name]}
        # Judged by what could have been read, not by what was: a ledger with spends has asked people, whatever became
        # of it.
        if other and (self._cloned or self.core.fitted or self.ledger.spends):
            raise _would_ask_again(self._name, other)
        if not self.core.fitted:
            account = self.core.account
            self.core = type(self.core)(**{**params, **changes})
            # Other budgets open another account, which nobody has paid from; the same settings keep what was shared.
            self.core.account = self.core.account if other else account
        return self

    def __sklearn_clone__(self) -> Estimator[C]:
        """Return an unfitted copy with the same account: its people are those of the original."""
        # Built anew from its settings: nothing that was fitted or read goes along.
        core = type(self.core)(**self.get_params())
        # One account for all clones: cross-validation over n clones would else be n collections at the price of one.
        core.account = self.core.account
        copied = Estimator(core)
        copied._cloned = True
        return copied

    def __sklearn_is_fitted__(self) -> bool:
        return self.core.fitted

    def __sklearn_tags__(self) -> object:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=False),
            classifier_tags=ClassifierTags(multi_label=True),
            input_tags=InputTags(two_d_array=False),
            requires_fit=True,
            no_validation=True,
            non_deterministic=True,
        )

    @property
    def privacy_(self) -> Guarantee:
        """The guarantee, as fitted attributes are called; there after fitting."""
        return self._after_fitting("privacy_").guarantee

    @property
    def classes_(self) -> np.ndarray:
        """The classes [c] that `predict` gives, in the order of the columns of `predict_proba`: 0 to c - 1.

        Their names are `schema.classes`.
        """
        import numpy as np

        return np.arange(len(self._after_fitting("classes_").schema.classes))

    @property
    def n_features_in_(self) -> int:
        """The number of features of a node."""
        return self._after_fitting("n_features_in_").schema.dimension

    def _refuse_unfitted(self) -> None:
        """Raise what the core says before fitting, in a form that scikit-learn's callers know as well."""
        try:
            self.core.schema  # noqa: B018
        except InputError as error:
            raise not_fitted(error) from None

    def _after_fitting(self, name: str) -> C:
        if not self.core.fitted:
            raise AttributeError(f"{name} exists only after fitting")
        return self.core

    # ---- the rest ----

    @property
    def _name(self) -> str:
        return type(self.core).__name__.removesuffix("Core")

    def __getattr__(self, name: str) -> Any:
        # Copying and unpickling ask for these before there is a core: answering through it would never end.
        if name.startswith("_") or name == "core":
            raise AttributeError(name)
        try:
            value = getattr(self.core, name)
        except AttributeError as error:
            raise AttributeError(f"{self._name} has no attribute {name!r}") from error
        return _answering(self, value) if inspect.ismethod(value) else value

    def __dir__(self) -> list[str]:
        own = [name for name in dir(self.core) if not name.startswith("_")]
        return sorted({*object.__dir__(self), *own})

    def __repr__(self) -> str:
        defaults = _defaults(type(self.core))
        chosen = {name: value for name, value in self.get_params().items() if defaults.get(name, _NONE) != value}
        return f"{self._name}({', '.join(f'{name}={value!r}' for name, value in chosen.items())})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the method, what it protects, and its lift where a run measured it."""
        from html import escape

        rows = [f"<b>{escape(repr(self))}</b>"]
        rows.append(escape(self.guarantee.sentence()) if self.core.fitted else "Not fitted: nothing has been read.")
        if self.lift is not None:
            mean, low, high = (100 * value for value in (self.lift.mean, self.lift.low, self.lift.high))
            rows.append(f"Lift over the best control: {mean:+.1f} points ({low:+.1f} to {high:+.1f}).")
        elif self.core.fitted:
            rows.append("Lift: not measured; a run with controls measures it (<code>graphveil train</code>).")
        return "<div>" + "".join(f"<p>{row}</p>" for row in rows) + "</div>"


_NONE = object()


def load_estimator(core: type[C], path: str | Path, *, backbone: nn.Module | None = None) -> Estimator[C]:
    """Return a saved estimator, able to predict; what it spent stays spent.

    Args:
        core: the class that its core must be of.
        path: the file, or the folder that holds `model.safetensors`.
        backbone: the module that was trained, where it was a user's own: its weights are in the file, its code is not.

    Raises:
        ModelFileError: for a file that is missing, damaged or of another method, or a backbone too many or too few.
    """
    kind: Any = core.kind
    _, facts, tensors = read_method(path, kind)
    # What older versions kept of people is for nobody who merely has the model.
    tensors = without_answers(path, tensors)
    own = facts.get("backbone")
    # Code is never read from a file: a module of the user's own must come from the user.
    if (own is None) != (backbone is None):
        held = "holds weights of its own network" if own is None else f"holds weights of a module of yours, {own}"
        raise ModelFileError(held, where=str(path), remedy="load it with backbone=... as it was trained, or without")
    restore: Any = core.restore
    build = restore if backbone is None else partial(restore, backbone=backbone)
    with restoring(path):
        restored: C = build(Stored(facts, tensors))
    restored.recall(Path(path))
    return Estimator(restored)


def _as_graph(value: Graph) -> Graph:
    """Return a graph as it is, and what else a user has as a graph."""
    return value if isinstance(getattr(value, "schema", None), GraphSchema) else as_graph(value)


def _answering(estimator: Estimator[C], call: Callable[P, T]) -> Callable[P, Estimator[C] | T]:
    """Return a core's method that gives the estimator where the core gives itself."""

    @wraps(call)
    def answer(*args: P.args, **kwargs: P.kwargs) -> Estimator[C] | T:
        given = call(*args, **kwargs)
        return estimator if given is estimator.core else given

    return answer


def _defaults(core: Callable[..., object]) -> dict[str, Any]:
    return {name: one.default for name, one in signature_of(core).parameters.items()}


def _labels_apart(rows: object) -> InputError:
    return InputError(
        f"a {type(rows).__name__} with labels apart, as cross-validation hands over: rows, dense or sparse, have no "
        "people, edges or declared range",
        where="fit",
        allowed="one graph",
        remedy="make one with graphveil.from_tables or from_adjacency; folds would ask the same people again: "
        "methods.runs.experiment.run(..., repeats=5) measures on several splits, `graphveil tune` chooses settings on "
        "one collection",
    )


def _would_ask_again(name: str, changes: Mapping[str, object]) -> InputError:
    told = ", ".join(f"{key}={value!r}" for key, value in changes.items())
    return InputError(
        f"{told} on the account of people who answer once: each candidate of a search would ask them again",
        where=name,
        remedy="choose settings on one collection, which costs nothing more: `graphveil tune`, or "
        "methods.runs.tuning.tune; for other people, build another method",
    )
