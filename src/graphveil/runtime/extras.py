"""Packages that come with an extra of graphveil, and need not be there."""

from __future__ import annotations

from importlib.util import find_spec

from graphveil.errors import MissingExtraError


def require_packages(extra: str, *packages: str, where: str) -> None:
    """Refuse to go on without some packages; they are looked for and not loaded, which takes seconds.

    Args:
        where: what needs them, in the message.

    Raises:
        MissingExtraError: the first that is not installed.
    """
    for package in packages:
        if find_spec(package) is None:
            what, remedy = f"the package {package} is not installed", f"run: pip install 'graphveil[{extra}]'"
            raise MissingExtraError(what, where=where, remedy=remedy)
