"""Notices of other packages that a user can do nothing about, kept away from users and from strict tests."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet() -> Iterator[None]:
    """Silence deprecation notices inside PyG and SciPy, and what torch says of CSR and of arrays that are only read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
        warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
        yield
