"""A refusal before fitting that scikit-learn's callers know; scikit-learn is imported when it is raised, not before."""

from __future__ import annotations

from graphveil.errors import InputError


def not_fitted(said: InputError) -> InputError:
    """Return a refusal that is scikit-learn's NotFittedError as well as an InputError.

    Args:
        said: the method's own.
    """
    from sklearn.exceptions import NotFittedError

    class NotFitted(InputError, NotFittedError):  # type: ignore[misc]
        """A method that was asked before it was fitted."""

    return NotFitted(said.what, where=said.where, allowed=said.allowed, remedy=said.remedy)
