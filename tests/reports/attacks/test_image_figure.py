"""The grid of reconstructed images."""

from __future__ import annotations

import numpy as np

from graphveil.attacks import Limit, judge
from graphveil.attacks.limits import nothing
from graphveil.attacks.result import AttackResult, Samples
from graphveil.reports.attacks.files import PLAIN
from graphveil.reports.attacks.image_figure import image_figure
from graphveil.reports.base.figures import svg

ORIGINAL = np.arange(2 * 4 * 4).reshape(2, 4, 4) / 32


def found(limit: Limit, shift: float) -> AttackResult:
    rng = np.random.default_rng(0)
    result = judge("reconstruction", "people", rng.random(50), rng.random(50), limit=limit)
    return result.with_samples(Samples(("a$b", "c"), ORIGINAL, ORIGINAL + shift))


def test_one_line_for_the_truth_the_open_run_and_this_run() -> None:
    results = {"lpgnn": found(Limit(1.0, 0.0, "x"), 9.0), PLAIN: found(nothing("x"), 0.1)}
    figure = image_figure(results)
    assert figure is not None
    lines = [axes.get_ylabel() for axes in figure.axes]
    assert lines == ["original", PLAIN, "lpgnn, epsilon 1"]
    original, opened, veiled = (axes.images[0].get_array() for axes in figure.axes)
    assert original is not None and opened is not None and veiled is not None
    assert original.shape == (4, 9) and original[:, :4].tolist() == ORIGINAL[0].tolist()
    assert (
        np.allclose(opened[:, :4], ORIGINAL[0] + 0.1) and veiled[:, :4].min() == 1.0
    )  # what is beyond the range is cut
    assert "a$b" in svg(figure)


def test_no_images_no_picture() -> None:
    rng = np.random.default_rng(0)
    assert image_figure({PLAIN: judge("x", "y", rng.random(9), rng.random(9), limit=nothing("z"))}) is None
