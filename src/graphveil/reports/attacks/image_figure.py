"""The picture of a reconstruction: images as they were, and what an attack made of them without and with protection."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from graphveil.attacks import AttackResult
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reports.attacks.files import PLAIN
from graphveil.reports.base.figures import GREY, INK
from graphveil.reports.base.text import printable

_GAP = 0.25  # of an image, between two


def image_figure(results: Mapping[str, AttackResult]) -> Figure | None:
    """Return the grid of an attack that reconstructs images, what is unprotected first; None for any other attack."""
    several = {label: result.samples for label, result in results.items() if result.samples is not None}
    if not several:
        return None
    samples = next(iter(several.values()))
    rows = [("original", samples.original)]
    for label in sorted(several, key=lambda label: label != PLAIN):
        epsilon = results[label].epsilon
        name = label if math.isinf(epsilon) else f"{label}, epsilon {rounded_up(epsilon, 4)}"
        rows.append((name, several[label].reconstructed))
    return image_grid(
        samples.classes, rows, "The first of those attacked in each class. The top row is true private data."
    )


def image_grid(classes: Sequence[str], rows: Sequence[tuple[str, np.ndarray]], note: str = "") -> Figure:
    """Return one line of images for each of rows, from the top down.

    Args:
        classes: what is written above each image [k]. rows: name, images [k, height, width] in 0..1, dark where high.
    """
    figure = Figure(figsize=(8.6, 0.45 + 0.78 * len(rows)), layout="constrained")
    lines = figure.subplots(len(rows), 1, squeeze=False)[:, 0]
    for axes, (name, images) in zip(lines, rows, strict=True):
        strip, step, width = _strip(np.clip(images, 0.0, 1.0))
        axes.imshow(strip, cmap="gray_r", vmin=0.0, vmax=1.0, interpolation="nearest")
        axes.set_ylabel(
            printable(name).encode("latin-1", "replace").decode("latin-1"),
            rotation=0,
            ha="right",
            va="center",
            color=INK,
            parse_math=False,
        )
        axes.set_xticks([step * place + (width - 1) / 2 for place in range(len(classes))], [])
        axes.set_yticks([])
        axes.tick_params(length=0, labelcolor=INK)
        axes.spines[:].set_visible(False)
    top = lines[0]
    top.xaxis.tick_top()
    top.set_xticks(top.get_xticks(), [printable(name)[:12] for name in classes], fontsize=9)
    for text in top.get_xticklabels():
        text.set_parse_math(False)
    if note:
        figure.supxlabel(note, fontsize=9, color=GREY)
    return figure


def _strip(images: np.ndarray) -> tuple[np.ndarray, int, int]:
    """Return images [k, h, w] beside each other on a faint frame, the step from one to the next, and w."""
    count, height, width = images.shape
    gap = max(1, round(_GAP * width))
    strip = np.zeros((height, count * width + (count - 1) * gap))
    for place, image in enumerate(images):
        start = place * (width + gap)
        strip[:, start : start + width] = image
    return strip, width + gap, width
