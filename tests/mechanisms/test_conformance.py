"""Every mechanism of the catalogue that runs on a user's device passes every check."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.mechanisms import conformance


@pytest.mark.parametrize("case", conformance.CASES, ids=str)
@pytest.mark.parametrize("check", conformance.CHECKS)
def test_conformance(check: Callable[[conformance.Case], None], case: conformance.Case) -> None:
    check(case)
