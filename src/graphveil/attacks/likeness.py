"""How near reconstructed rows come to the true ones, beside rows that say the mean."""

from __future__ import annotations

import numpy as np


def likeness(
    guess: np.ndarray, truth: np.ndarray, centre: np.ndarray, mean: np.ndarray, image: bool
) -> dict[str, float]:
    """Return mean squared error, correlation and (of images) structural similarity, beside those of two guesses.

    Args:
        guess, truth: rows [m, d] over the declared range, in 0..1.
        centre: the mean of each one's class [m, d]; mean: of all [d].
    """
    # A reconstruction that says the mean looks good by squared error, so both means stand beside it.
    guesses = {"": guess, " of the class mean": centre, " of the overall mean": np.broadcast_to(mean, truth.shape)}
    figures = {f"mean squared error{name}": float(((rows - truth) ** 2).mean()) for name, rows in guesses.items()}
    measures = {"correlation": _correlation} | ({"structural similarity": _similarity} if image else {})
    for measure, of in measures.items():
        figures |= {f"{measure}{name}": float(of(rows, truth).mean()) for name, rows in guesses.items()}
    return figures


def _moments(guess: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return both variances and the covariance within each row [m]."""
    a, b = guess - guess.mean(axis=1, keepdims=True), truth - truth.mean(axis=1, keepdims=True)
    return (a**2).mean(axis=1), (b**2).mean(axis=1), (a * b).mean(axis=1)


def _correlation(guess: np.ndarray, truth: np.ndarray) -> np.ndarray:
    first, second, both = _moments(guess, truth)
    sizes = np.sqrt(first * second)
    # A constant row has no direction: it correlates with nothing.
    return np.where(sizes > 1e-12, both / np.maximum(sizes, 1e-12), 0.0)


def _similarity(guess: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Wang, Bovik, Sheikh, Simoncelli, IEEE Trans. Image Processing 2004, eq. 13, with one window over the image."""
    first, second, both = _moments(guess, truth)
    a, b = guess.mean(axis=1), truth.mean(axis=1)
    light, contrast = 0.01**2, 0.03**2
    near = (2 * a * b + light) / (a**2 + b**2 + light)
    similarity: np.ndarray = near * (2 * both + contrast) / (first + second + contrast)
    return similarity
