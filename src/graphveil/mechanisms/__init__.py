"""Randomizers: what each user's device sends, and what a server may conclude from it."""

from graphveil.mechanisms.catalogue import MechanismInfo, catalogue
from graphveil.mechanisms.clipping import clip_to_range
from graphveil.mechanisms.gaussian import AnalyticGaussian
from graphveil.mechanisms.labels import Labels, RandomizedResponse
from graphveil.mechanisms.laplace import Laplace
from graphveil.mechanisms.multibit import MultiBit
from graphveil.mechanisms.onebit import OneBit
from graphveil.mechanisms.reports import LabelReports, LatticeReports, MultiBitReports, OneBitReports
from graphveil.mechanisms.values import Values

__all__ = [
    "AnalyticGaussian",
    "LabelReports",
    "Labels",
    "Laplace",
    "LatticeReports",
    "MechanismInfo",
    "MultiBit",
    "MultiBitReports",
    "OneBit",
    "OneBitReports",
    "RandomizedResponse",
    "Values",
    "catalogue",
    "clip_to_range",
]
