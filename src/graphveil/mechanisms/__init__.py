"""Randomizers: what each user's device sends, and what a server may conclude from it."""

from graphveil.mechanisms.labels import RandomizedResponse
from graphveil.mechanisms.multibit import MultiBit
from graphveil.mechanisms.reports import LabelReports, LatticeReports, MultiBitReports, OneBitReports
from graphveil.mechanisms.values import Values, clip_to_range

__all__ = [
    "LabelReports",
    "LatticeReports",
    "MultiBit",
    "MultiBitReports",
    "OneBitReports",
    "RandomizedResponse",
    "Values",
    "clip_to_range",
]
