"""The parameters of a method's class, and the refusals of an estimator's calls.

An `__init__` names some parameters and passes the rest on as `**settings: Unpack[Options]`: type checkers read the
typed dictionary, and at run time its keys appear in the signature with the defaults of their final receiver.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import wraps
from html import escape
from textwrap import wrap
from typing import Any

from graphveil.engine import LOCAL, Engine
from graphveil.errors import InputError
from graphveil.graphs import Split, as_graph, require_split
from graphveil.graphs.value.parts import Graph
from graphveil.graphs.value.schema import GraphSchema
from graphveil.privacy import Randomness, require_randomness
from graphveil.runtime.late import LateModule

_ARGS = "    Args:"
#: Parameters of a run, which every method has and commands set by options of their own.
_OF_RUNS = {
    "least_steps": "the least number of private steps, where neither passes nor steps sets it; default: by epsilon",
    "loss": "drop, or cross-entropy, which takes noisy labels for true ones (with steps_y=0)",
    "steps_x": "hops of feature propagation",
    "steps_y": "hops of label propagation",
    "tuning": "the law of the number of trainings that a paid choice of settings makes; None: one training",
    "backbone": "a module of your own in place of the network; copied, and given again to load a saved model",
    "seed": "fixes the default split and initial weights, never privacy noise",
    "device": '"cpu" or "cuda"',
}


def signature_of(kind: type, init: Callable[..., None]) -> inspect.Signature:
    """Return the signature of `init`, an `__init__` of the class `kind`, with each keyword that it passes on.

    Args:
        kind: its `derived` settings have the default None.
        init: as it was written, with `**settings` or without.
    """
    plain = inspect.signature(init)
    namespace: Mapping[str, Any] = inspect.unwrap(init).__globals__
    listed: list[inspect.Parameter] = []
    for parameter in plain.parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            listed += [
                inspect.Parameter(
                    name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=_default(kind, name),
                    annotation=_evaluated(annotation, namespace),
                )
                for name, annotation in _passed_on(kind, init, str(parameter.annotation)).items()
                if name not in plain.parameters
            ]
        else:
            listed.append(parameter.replace(annotation=_evaluated(parameter.annotation, namespace)))
    return plain.replace(parameters=listed, return_annotation=inspect.Signature.empty)


def checked_init(kind: type, init: Callable[..., None]) -> Callable[..., None]:
    """Return an `__init__` that refuses unknown parameters and fills in forced ones."""

    @wraps(init)
    def __init__(self: Any, *args: Any, **settings: Any) -> None:
        built: Any = type(self)
        # A base class's `__init__` gets what its subclass has checked.
        if built.__init__ is __init__:
            require_parameters(built, settings)
            settings = built.entry.with_forced(settings) if hasattr(built, "entry") else settings
            self._unset = frozenset(name for name in built.derived if settings.get(name) is None)
        init(self, *args, **settings)

    __init__.__signature__ = signature_of(kind, init)  # type: ignore[attr-defined]
    return __init__


def require_parameters(kind: type, settings: Mapping[str, object]) -> None:
    """Refuse a parameter that a class does not have."""
    parameters = parameters_of(kind)
    for name in settings:
        if name not in parameters and name == "backbone":
            raise InputError(
                "this method trains no network, or one that reads hops, noisy sums or a release in parts that a "
                "module of plain rows does not take",
                where="backbone",
                allowed="with lpgnn, solitude, class-sums and dp-mlp",
            )
        if name not in parameters:
            raise InputError(f"setting {name!r} is not known", where=kind.__name__, allowed=", ".join(parameters))


def require_call(engine: object, **callbacks: object) -> None:
    """Refuse an engine that is none, and a callback that cannot be called."""
    for name, callback in callbacks.items():
        if callback is not None and not callable(callback):
            raise InputError(f"{name} is {callback!r}", allowed="a function, or None")
    if isinstance(engine, type) or not hasattr(engine, "map_blocks"):
        allowed = "an engine of graphveil.engine: LOCAL, LocalEngine(...) or RayEngine(...)"
        raise InputError(f"engine is {engine!r}", allowed=allowed)


def require_unreleased(graph: Graph, name: str) -> None:
    """Refuse to protect published data: the guarantee would not state the price of the release."""
    if getattr(graph, "release", None) is not None:
        raise InputError(
            f"the graph is a release: {name} would protect data that is already public",
            where=graph.schema.name,
            allowed="fit_released of the method that made it, lpgnn, label-pool, label-propagation, or a network of "
            "methods.baseline",
        )


def as_own_graph(value: Graph) -> Graph:
    """Return the user's graph, name or folder as a graph; a graph of graphveil is returned unread."""
    return value if isinstance(getattr(value, "schema", None), GraphSchema) else as_graph(value)


def checked_graph(value: Graph, split: Split, randomness: Randomness, *, unreleased: str | None = None) -> Graph:
    """Return the graph that a method is to read; refuses what is no split or no source of noise.

    Args:
        value: see `as_own_graph`.
        unreleased: the name of a method that refuses releases, see `require_unreleased`.
    """
    graph = as_own_graph(value)
    if unreleased is not None:
        require_unreleased(graph, unreleased)
    require_split(split, int(graph.num_nodes))
    require_randomness(randomness)
    return graph


def require_published(published: object, kind: type) -> None:
    """Refuse anything but what this family's `publish` returns."""
    if not isinstance(published, kind):
        what = f"the publication is a {type(published).__name__}"
        raise InputError(what, where="fit_published", allowed=f"{kind.__name__}, as this method's publish returns")


def require_identity(identity: Mapping[str, object], says_who: Sequence[str], name: str) -> None:
    """Refuse a keyword about the people to predict that the method does not take, and an unknown value of `people`.

    Args:
        says_who, name: the keywords that the method takes, and its name.
    """
    for key, value in identity.items():
        if key not in says_who:
            allowed = ", ".join(says_who) or "the people of the training alone, or another graph"
            raise InputError(f"{key} does not apply to {name}", where="predict", allowed=allowed)
        if key == "people" and value not in ("same", "other"):
            raise InputError(f"people is {value!r}", where="predict", allowed="same, other, or leave it out")


def parameters_of(kind: type) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(kind).parameters


def documented(kind: type, help_of: Mapping[str, str]) -> str:
    """Return the docstring of a class with a line for each parameter.

    Args:
        kind: the class; a parameter in its docstring is left as it is.
        help_of: a line about each other parameter.
    """
    text = kind.__doc__ or ""
    if _ARGS not in text:
        summary, _, body = text.partition("\n\n")
        text = f"{summary.rstrip()}\n\n{_ARGS}\n\n{body}"
    before, _, after = text.partition(_ARGS)
    written, _, after = after.partition("\n\n")
    heads = [line.partition(":")[0] for line in written.splitlines() if line[:9].strip()]
    lines = [line for line in written.splitlines() if line]
    for name in parameters_of(kind):
        line = help_of.get(name) or _OF_RUNS.get(name)
        if line and not any(name in head.replace(",", " ").split() for head in heads):
            lines += wrap(f"{name}: {line}", 120, initial_indent=" " * 8, subsequent_indent=" " * 12)
    return f"{before}{_ARGS}\n" + "\n".join(lines) + f"\n\n{after}"


def _passed_on(kind: Any, init: Callable[..., None], annotation: str) -> Mapping[str, Any]:
    """Return the annotations of the keywords that `init` takes as `**settings`, by name."""
    if annotation.startswith("Unpack["):
        options = inspect.unwrap(init).__globals__[annotation.removeprefix("Unpack[").removesuffix("]")]
        types = options.__annotations__
        order = [field.name for field in fields(kind.settings_type)] if kind.settings_type else []
        names = sorted(types, key=lambda name: order.index(name) if name in order else -1)
        return {name: getattr(types[name], "__forward_arg__", types[name]) for name in names}
    above = next(base for base in kind.__mro__[1:] if "__init__" in vars(base))
    return {name: parameter.annotation for name, parameter in parameters_of(above).items()}


def _evaluated(annotation: Any, namespace: Mapping[str, Any]) -> Any:
    """Return the type that an annotation names; the annotation itself if that is not loaded."""
    loaded = {name: value for name, value in namespace.items() if not isinstance(value, LateModule)}
    try:
        return eval(annotation, loaded) if isinstance(annotation, str) else annotation
    except NameError:
        return annotation


def _default(kind: Any, name: str) -> Any:
    if name in kind.derived:
        return None
    for field in fields(kind.settings_type) if kind.settings_type is not None else ():
        if field.name == name and field.default is not MISSING:
            return field.default
    bases = (base for base in kind.__mro__[1:] if "__init__" in vars(base))
    return next(parameters_of(base)[name].default for base in bases if name in parameters_of(base))


def not_fitted(refusal: InputError) -> InputError:
    """Return a method's refusal as scikit-learn's NotFittedError as well as an InputError."""
    from sklearn.exceptions import NotFittedError

    class NotFitted(InputError, NotFittedError):  # type: ignore[misc]
        ...

    return NotFitted(refusal.what, where=refusal.where, allowed=refusal.allowed, remedy=refusal.remedy)


def classifier_tags() -> object:
    """Return the tags by which scikit-learn knows a method."""
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


def notebook_page(method: str, guarantee: str, lift: tuple[float, float, float] | None, *, fitted: bool) -> str:
    """Return HTML paragraphs about a method: its `repr`, its guarantee, and its lift (mean, low, high)."""
    rows = [f"<b>{escape(method)}</b>", escape(guarantee)]
    if lift is not None:
        mean, low, high = (100 * value for value in lift)
        rows.append(f"Lift over the best control: {mean:+.1f} points ({low:+.1f} to {high:+.1f}).")
    elif fitted:
        rows.append("Lift: not measured; a run with controls measures it (<code>graphveil train</code>).")
    return "<div>" + "".join(f"<p>{row}</p>" for row in rows) + "</div>"


def labels_apart(rows: object) -> InputError:
    """Return the refusal of labels that are handed over beside the graph."""
    return InputError(
        f"a {type(rows).__name__} with labels apart, as cross-validation hands over: rows, dense or sparse, have no "
        "people, edges or declared range",
        where="fit",
        allowed="one graph",
        remedy="make one with graphveil.from_tables or from_adjacency; folds would ask the same people again: "
        "methods.runs.experiment.run(..., repeats=5) measures on several splits, `graphveil tune` chooses settings on "
        "one collection",
    )


def would_ask_again(name: str, changes: Mapping[str, object]) -> InputError:
    """Return the refusal of changed settings for people who may have been asked."""
    settings = ", ".join(f"{key}={value!r}" for key, value in changes.items())
    return InputError(
        f"{settings} on the account of people who answer once: each candidate of a search would ask them again",
        where=name,
        remedy="choose settings on one collection, which costs nothing more: `graphveil tune`, or "
        "methods.runs.tuning.tune; for other people, build another method",
    )


def not_by_blocks(name: str, work: str = "work by blocks yet") -> InputError:
    """Return the refusal of an engine other than the local one."""
    return InputError(f"{name} does not {work}", where="engine", allowed="the local engine with one worker")


def engine_argument(engine: Engine, supported: bool) -> dict[str, Engine]:
    """Return the keyword that hands an engine on: none for the local one, or where it is not supported."""
    return {"engine": engine} if supported and engine != LOCAL else {}
