"""How many columns products on CPU are quickest with."""

from __future__ import annotations


def quick_width(columns: int) -> int:
    """Return the number of columns from `columns` on with which a product on CPU is quickest: 4, 8 or a multiple of 16.

    Rows of such lengths are added up in one pass, and lie in as few lines of the cache as they can.

    Args:
        columns: of the matrix that is multiplied.
    """
    return next((width for width in (4, 8) if columns <= width), -(-columns // 16) * 16)
