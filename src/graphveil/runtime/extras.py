"""Packages of the extras of graphveil, which may be absent."""

from __future__ import annotations

from importlib.util import find_spec

from graphveil.errors import MissingExtraError


def require_packages(extra: str, *packages: str, where: str) -> None:
    """Refuse to go on where packages are missing; they are not loaded, which would take seconds.

    Args:
        where: what needs them, in the message.

    Raises:
        MissingExtraError: a package is not installed; names the first.
    """
    for package in packages:
        if find_spec(package) is None:
            what, remedy = f"the package {package} is not installed", f"run: pip install 'graphveil[{extra}]'"
            raise MissingExtraError(what, where=where, remedy=remedy)
