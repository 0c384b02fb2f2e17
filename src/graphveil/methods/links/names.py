"""How neighbour lists are collected and read, by name."""

from __future__ import annotations

LIST_MECHANISMS = ("lists", "degree-preserving", "degree-and-lists")
#: Who reports a relationship.
MODES = ("lower", "both", "directed")
#: Denoiser -> the list mechanism whose reports it reads.
DENOISERS = {
    "calibration": "lists",
    "none": "lists",
    "beliefs": "lists",
    "degree-preserving": "degree-preserving",
    "blink-hard": "degree-and-lists",
    "blink-hybrid": "degree-and-lists",
    "blink-soft": "degree-and-lists",
}
#: What is made of lists without a graph, see `methods.links.readings`.
READINGS = ("beliefs", "sums", "all")
#: Settings of the calibration alone.
CALIBRATION = ("lambda1", "lambda2", "learning_rate_a", "complement")
