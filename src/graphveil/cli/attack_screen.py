"""What ``graphveil attack`` shows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from graphveil.attacks import AttackResult
from graphveil.reports.attacks.figure import summary
from graphveil.reports.attacks.files import MEASURED
from graphveil.reports.base.text import printable


def attacked(results: Mapping[str, AttackResult], picture: Path) -> RenderableType:
    """One block of lines for each model that was attacked.

    Args:
        results: name of the attacked model -> result.
        picture: where the curve was saved.
    """
    parts: list[RenderableType] = []
    for label, result in results.items():
        first, *rest = summary(result)
        style = "bold red" if result.beats_limit else "bold"
        parts += [Text(f"{printable(label)}: {printable(first)}", style=style)]
        parts += [*(Text(f"  {printable(line)}") for line in rest), Text()]
    parts.append(Text(f"Chart: {printable(picture)}"))
    if any(result.samples is not None for result in results.values()):
        images = picture.with_stem(f"{picture.stem}-images")
        parts.append(Text(f"Original and reconstructed images, private: {printable(images)}"))
    return Group(*parts, Text(MEASURED))
