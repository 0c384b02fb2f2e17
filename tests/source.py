"""Files of Python parsed once in a process, for all rules that read the source."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path


@cache
def tree(path: Path) -> ast.Module:
    # Trees are kept: a collector of circles that walks them again and again takes longer than parsing.
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        gc.enable()


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a file, from the outside in."""
    return tuple(ast.walk(tree(path)))
