"""Epsilon and delta as they are printed: short, and never less than they are.

Every sentence, card, table, screen, figure and refusal prints them through these two functions, since 0.0149 shown as
0.01 promises more than holds. A number with few enough digits is printed as it is.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal


def rounded_up(value: float, digits: int = 6) -> str:
    """Return the shortest text, of at most `digits` digits, that is not below `value`: 1, 0.25, 1e-06, inf.

    Args:
        value: an epsilon or delta; rounding to nearest could print less than was spent.
        digits: significant ones.
    """
    short = f"{value:.{digits}g}"
    if not math.isfinite(value) or float(short) >= value:
        return short
    # Through Decimal, which holds a float without rounding it: the ceiling is that of the number itself.
    return f"{float(Context(digits, ROUND_CEILING).create_decimal(Decimal(value))):.{digits}g}"


def rounded_up_to(value: float, places: int = 2) -> str:
    """Return the text with `places` decimals that is not below `value`: 3.00, 0.02.

    Args:
        places: decimals, always printed.
    """
    plain = f"{value:.{places}f}"
    if not math.isfinite(value) or float(plain) >= value:
        return plain
    step = Decimal(1).scaleb(-places)
    # Decimals of a float are exact, so this rounds up the number itself and not a rounding of it.
    return str(Decimal(value).quantize(step, ROUND_CEILING, Context(400)))
