"""What each unit pays in a federation, in words: a person first, and the weaker unit with its warning beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from graphveil.privacy.accounting.printed import rounded_up


def unit_line(unit: Mapping[str, Any]) -> str:
    """Return one unit's price and warning, as a plan and an outcome state them, as a sentence."""
    epsilon = float(unit["epsilon"])
    price = (
        "epsilon inf" if math.isinf(epsilon) else f"epsilon {rounded_up(epsilon)}, delta {rounded_up(unit['delta'])}"
    )
    return f"{unit['unit']}: {price}; {str(unit['warning']).rstrip('.')}."
