"""VFGNN's tables: which run stands for which figure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from graphveil.reproduction.exhibit import Entry, Published, figures_of

_FIGURES = figures_of("vfgnn")
COMBINES = ("concat", "mean", "regression")
METHOD = "vfgnn"
#: CPU seconds of one run on shares, roughly.
SHARES = 300.0
DELTA = 1e-4


def _entry(row: str, data: str, figure: str | None, split: str, claimed: str = "inf", **settings: Any) -> Entry:
    used = {**_FIGURES["settings"], **settings}
    return Entry(row, data, METHOD, used, Published.read(figure) if figure else None, claimed, split)


def _together() -> Iterator[Entry]:
    for data, figures in _FIGURES["together"].items():
        first, second, *combined, mixed = figures.split()
        # Folds have no published figures of their own: the paper names both protocols, and its figures fit the first.
        for split, kind in (("declared", ""), ("5-fold", ", five folds")):
            separate = None if kind else (first, second, mixed)
            yield _entry(f"first holder alone{kind}", data, separate and separate[0], split, kind="alone", holder=0)
            yield _entry(f"second holder alone{kind}", data, separate and separate[1], split, kind="alone", holder=1)
            for combine, figure in zip(COMBINES, combined, strict=True):
                yield _entry(f"vfgnn {combine}{kind}", data, None if kind else figure, split, combine=combine)
                if not kind:
                    yield _entry(f"ours: vfgnn {combine}", data, None, split, combine=combine, apart=True)
            yield _entry(f"everything in one place{kind}", data, separate and separate[2], split, kind="mixed")
        # The text tells of no other way to combine, and the table's figures fit the declared split.
        figure = _FIGURES["secureml"].get(data)
        secured = {"mode": "secureml", "combine": "mean", **_FIGURES["secureml_settings"]}
        yield _entry("secureml mean", data, figure, "declared", **secured)
        if data == "cora":
            # Means over neighbours are masked as whole n x n matrices: on PubMed they would not fit into memory.
            yield replace(
                _entry("on shares: secureml mean", data, None, "declared", kind="shares", **secured), cpu=SHARES
            )


def _by_shares() -> Iterator[Entry]:
    for shares, figures in _FIGURES["shares"].items():
        for combine, figure in zip(COMBINES, figures.split(), strict=True):
            yield _entry(f"{shares} vfgnn {combine}", "cora", figure, "declared", combine=combine, shares=shares)


def _by_holders() -> Iterator[Entry]:
    for holders, figures in _FIGURES["holders"].items():
        for combine, figure in zip(COMBINES, figures.split(), strict=True):
            shares = ":".join(["1"] * int(holders))
            yield _entry(f"{holders} vfgnn {combine}", "cora", figure, "declared", combine=combine, shares=shares)


def _noise() -> Iterator[Entry]:
    for epsilon, figures in _FIGURES["noise"].items():
        for shrink, figure in zip((False, True), figures.split(), strict=True):
            kind = "james-stein" if shrink else "gaussian"
            # The paper's formula, which is a theorem for epsilon below 1 alone.
            sigma = math.sqrt(2 * math.log(1.25 / DELTA)) / float(epsilon)
            claimed = f"{epsilon} an iteration"
            yield _entry(f"eps={epsilon} {kind}", "cora", figure, "declared", claimed, sigma=sigma, shrink=shrink)
        settings = {"sigma": sigma, "shrink": False, "apart": True}
        yield _entry(f"eps={epsilon} ours", "cora", None, "declared", claimed, **settings)


ENTRIES = {"table2": _together, "table3": _by_shares, "table4": _by_holders, "table5": _noise}
