"""What an estimator refuses of scikit-learn's manners."""

from __future__ import annotations

from collections.abc import Mapping

from graphveil.errors import InputError


def not_fitted(refusal: InputError) -> InputError:
    """Return a refusal that is scikit-learn's NotFittedError as well as an InputError.

    Args:
        refusal: the method's own.
    """
    from sklearn.exceptions import NotFittedError

    class NotFitted(InputError, NotFittedError):  # type: ignore[misc]
        """A method that was asked before it was fitted."""

    return NotFitted(refusal.what, where=refusal.where, allowed=refusal.allowed, remedy=refusal.remedy)


def labels_apart(rows: object) -> InputError:
    """Return the refusal of labels beside a graph."""
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
    """Return the refusal of other settings for people who may have been asked.

    Args:
        name: of the class.
        changes: the settings that would be others.
    """
    settings = ", ".join(f"{key}={value!r}" for key, value in changes.items())
    return InputError(
        f"{settings} on the account of people who answer once: each candidate of a search would ask them again",
        where=name,
        remedy="choose settings on one collection, which costs nothing more: `graphveil tune`, or "
        "methods.runs.tuning.tune; for other people, build another method",
    )
