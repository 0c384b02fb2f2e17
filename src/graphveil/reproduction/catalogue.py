"""The run behind each figure of the five papers, and all their tables and figures by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import inf
from types import MappingProxyType
from typing import Any

from graphveil.errors import InputError
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reproduction.exhibit import Entry, Exhibit, Published, figures_of
from graphveil.runtime.words import nearest

_DATA = ("cora", "pubmed", "facebook", "lastfm")
_EPSILON_X = (0.01, 0.1, 1.0, 2.0, 3.0, inf)
_EPSILON_Y = (1.0, 2.0, 3.0, inf)

_HOPS = (0, 2, 4, 8, 16)
_LPGNN = figures_of("lpgnn")
_STEPS_AT = (0.5, 1.0, 2.0, 3.0, inf)


def _lpgnn_settings(data: str, features: float, labels: float, **changed: Any) -> dict[str, Any]:
    """Return the authors' settings of `lpgnn` at these epsilon_x and epsilon_y, with some of them changed."""
    kinds = "-".join("infinite" if epsilon == inf else "finite" for epsilon in (features, labels))
    rate, decay, dropout = _LPGNN["rates"][data][kinds]
    hops_x, hops_y = _LPGNN["steps"][data][f"{features:g}"].split()[_STEPS_AT.index(labels)].split(",")
    used = {
        "epsilon_x": features,
        "epsilon_y": labels,
        "steps_x": int(hops_x),
        "steps_y": int(hops_y),
        "learning_rate": rate,
        "weight_decay": decay,
        "dropout": dropout,
        # The paper trains on the rectifier's raw output, which costs accuracy at small epsilon.
        "scaling": "published",
        "selection": "published",
        "pooling": "none",
        "patience": 0,
    }
    return {**used, **changed}


def _lpgnn(row: str, data: str, epsilon_x: float, epsilon_y: float, figure: str | None, **changed: Any) -> Entry:
    used = _lpgnn_settings(data, epsilon_x, epsilon_y, **changed)
    claimed = f"{rounded_up(epsilon_x)} + {rounded_up(epsilon_y)}"
    return Entry(row, data, "lpgnn", used, Published.read(figure) if figure else None, claimed)


def _accuracies(data: str, epsilon_y: float) -> Iterator[tuple[float, str]]:
    return zip(_EPSILON_X, _LPGNN["accuracy"][data][rounded_up(epsilon_y)].split(), strict=True)


def _lpgnn_budgets() -> Iterator[Entry]:
    for data in _DATA:
        for epsilon_y in _EPSILON_Y:
            for epsilon_x, figure in _accuracies(data, epsilon_y):
                row = f"sage eps_x={rounded_up(epsilon_x)} eps_y={rounded_up(epsilon_y)}"
                yield _lpgnn(row, data, epsilon_x, epsilon_y, figure)
        for model, published in _LPGNN["backbones"][data].items():
            budgets = ((1.0, 1.0), (1.0, inf), (inf, inf))
            for (epsilon_x, epsilon_y), figure in zip(budgets, published.split(), strict=True):
                row = f"{model} eps_x={rounded_up(epsilon_x)} eps_y={rounded_up(epsilon_y)}"
                yield _lpgnn(row, data, epsilon_x, epsilon_y, figure, model=model)


def _lpgnn_inputs() -> Iterator[Entry]:
    for data in _DATA:
        for epsilon_x, figure in _accuracies(data, 1.0):
            # The table omits epsilon 2 and 3, which are in the figure before it.
            if epsilon_x in (0.01, 0.1, 1.0, inf):
                yield _lpgnn(f"features eps_x={rounded_up(epsilon_x)}", data, epsilon_x, 1.0, figure)
        for kind, figures in _LPGNN["inputs"].items():
            rate, decay, dropout = _LPGNN["input-rates"][kind][data]
            rates = {"learning_rate": rate, "weight_decay": decay, "dropout": dropout}
            # The authors use the hops of public features: none over features, which have no noise.
            used = _lpgnn_settings(data, inf, 1.0, **rates, epsilon_x=None, stand_in=kind)
            yield Entry(kind, data, "lpgnn", used, Published.read(figures[data]), "0 + 1")


def _mechanisms() -> Iterator[Entry]:
    for data in _DATA:
        for mechanism, figures in _LPGNN["mechanisms"].items():
            for epsilon_x, figure in zip((0.01, 0.1, 1.0, 2.0), figures[data].split(), strict=True):
                row = f"{mechanism} eps_x={rounded_up(epsilon_x)}"
                yield _lpgnn(row, data, epsilon_x, inf, figure, mechanism=mechanism)


def _losses() -> Iterator[Entry]:
    # Without hops of labels Drop equals forward correction.
    changes: Mapping[str, Mapping[str, Any]] = {
        "cross-entropy": {"steps_y": 0, "loss": "cross-entropy"},
        "forward correction": {"steps_y": 0},
        "Drop": {},
    }
    for data in _DATA:
        for loss, figures in _LPGNN["labels"].items():
            for epsilon_y, figure in zip((0.5, 1.0, 2.0), figures[data].split(), strict=True):
                yield _lpgnn(f"{loss} eps_y={rounded_up(epsilon_y)}", data, 1.0, epsilon_y, figure, **changes[loss])


def _hops_of_features() -> Iterator[Entry]:
    for data in _DATA:
        for epsilon_x in (0.01, 0.1, 1.0):
            figures = _LPGNN["kprop"].get(data, {}).get(rounded_up(epsilon_x), "").split()
            for index, hops in enumerate(_HOPS):
                figure = figures[index] if figures else None
                yield _lpgnn(f"eps_x={rounded_up(epsilon_x)} K_x={hops}", data, epsilon_x, 1.0, figure, steps_x=hops)


def _hops_of_labels() -> Iterator[Entry]:
    # The paper gives no numbers for this figure.
    for data in _DATA:
        for epsilon_y in (0.5, 1.0, 2.0):
            for hops in _HOPS:
                yield _lpgnn(f"eps_y={rounded_up(epsilon_y)} K_y={hops}", data, 1.0, epsilon_y, None, steps_y=hops)


LPGNN = {
    "figure3": _lpgnn_budgets,
    "table2": _lpgnn_inputs,
    "table3": _mechanisms,
    "figure4": _hops_of_features,
    "figure5": _hops_of_labels,
    "table4": _losses,
}


_SOLITUDE = figures_of("solitude")
_MODELS = ("sage", "gcn")
#: The settings of the three ways to read the same reports.
_READINGS: Mapping[str, Mapping[str, Any]] = {
    "base": {"denoiser": "none", "steps_x": 0},
    "lpgnn": {"denoiser": "none", "steps_x": 4},
    "solitude": {**_SOLITUDE["calibration"], "steps_x": 4},
}


def _solitude(row: str, data: str, model: str, reading: str, epsilons: tuple[float, float], **further: Any) -> Entry:
    """Return an entry at (epsilon_x, epsilon_a); both ends of a relationship report it, as in the paper."""
    epsilon_x, epsilon_a = epsilons
    used = {**_SOLITUDE["settings"], "model": model, **_READINGS[reading]}
    used |= {"epsilon_x": epsilon_x, "epsilon_a": epsilon_a}
    claimed = f"{rounded_up(epsilon_x)} + {rounded_up(epsilon_a)} a list"
    return Entry(row, data, "solitude", used, claimed=claimed, **further)


def _readings() -> Iterator[Entry]:
    for data, epsilons in _SOLITUDE["epsilons"].items():
        for model in _MODELS:
            for reading in _READINGS:
                figures = _SOLITUDE["accuracy"][data][model][reading].split()
                for epsilon_a, figure in zip(epsilons, figures, strict=True):
                    row = f"{model} {reading} eps_a={rounded_up(epsilon_a)}"
                    yield _solitude(row, data, model, reading, (1.0, epsilon_a), published=Published.read(figure))


def _as_reported() -> Iterator[Entry]:
    # The paper prints the rows "base" of GraphSAGE a second time, without the last epsilon.
    for entry in _readings():
        if entry.row.startswith("sage base") and entry.data != "lastfm" and entry.settings["epsilon_a"] < 8:
            yield entry


def _budgets() -> Iterator[Entry]:
    for data, epsilons in _SOLITUDE["epsilons"].items():
        for model in _MODELS:
            for epsilon_x in (0.5, 1.0, 2.0):
                for epsilon_a in epsilons:
                    row = f"{model} eps_x={rounded_up(epsilon_x)} eps_a={rounded_up(epsilon_a)}"
                    yield _solitude(row, data, model, "solitude", (epsilon_x, epsilon_a))


def _label_rates() -> Iterator[Entry]:
    for data, epsilons in _SOLITUDE["epsilons"].items():
        for model in _MODELS:
            for rate in _SOLITUDE["label-rates"]:
                row = f"{model} {rate}% labelled"
                # All nodes stay in the graph: features and lists are collected from everybody.
                yield _solitude(row, data, model, "solitude", (1.0, epsilons[-1]), split=f"{rate}/25/25")


SOLITUDE = {"table2": _as_reported, "table3": _readings, "figure4": _budgets, "figure5": _label_rates}


_HETERORR = figures_of("heterorr")


def _heterorr(row: str, budgets: tuple[float, float], share: float, **chosen: Any) -> Entry:
    """Return an entry at (epsilon_x, epsilon_a) with a share of private edges; the paper gives curves, no numbers."""
    epsilon_x, epsilon_a = budgets
    used = {**_HETERORR["settings"], "epsilon_x": epsilon_x, "epsilon_a": epsilon_a, **chosen}
    spent = " + ".join(rounded_up(epsilon) for epsilon in budgets if epsilon < inf)
    return Entry(row, "ppi", "heterorr", used, claimed=spent, private_share=share)


def _features() -> Iterator[Entry]:
    for epsilon in _HETERORR["epsilons"]:
        for mechanism in _HETERORR["mechanisms"]:
            yield _heterorr(f"{mechanism} eps={rounded_up(epsilon)}", (epsilon, inf), 0.0, features=mechanism)


def _edges() -> Iterator[Entry]:
    for share in _HETERORR["shares"]:
        for epsilon in _HETERORR["epsilons"]:
            for method in _HETERORR["edges"]:
                yield _heterorr(
                    f"{method} rho={share:g} eps={rounded_up(epsilon)}", (inf, epsilon), share, edges=method
                )


def _both() -> Iterator[Entry]:
    for share in _HETERORR["shares"]:
        for epsilon in _HETERORR["epsilons"]:
            for features, edges in (("feature-rr", "mcmc"), ("three-outputs", "lap-graph")):
                row = f"{features}+{edges} rho={share:g} eps={rounded_up(epsilon)}"
                yield _heterorr(row, (epsilon, epsilon), share, features=features, edges=edges)


HETERORR = {"figure6": _features, "figure7": _edges, "figure11": _both}


_GAP = figures_of("weighted-gap")
_EPSILONS = (1.0, 2.0, 4.0, 8.0)
#: The paper's training of attention: steps, noise over the clipping norm, and a batch that its machine could run.
STEPS, MULTIPLIER, BATCH = 1000, 1.3, 410
_SPLIT = "80/20"
#: The published settings; the defaults of `gap` differ.
_PUBLISHED = {"dropout": 0.0, "scaling": "published", "pooling": "none", "rows": "published"}


def _weights() -> Iterator[Entry]:
    for data, by_weights in _GAP["accuracy"].items():
        for weights, figures in by_weights.items():
            for epsilon, figure in zip(_EPSILONS, figures.split(), strict=True):
                # The paper's unit, for the paper's noise; the epsilon of a relationship is printed beside it.
                used = {"epsilon": epsilon, "unit": "directed-edge", "hops": 1, "weights": weights, **_PUBLISHED}
                row = f"{weights} eps={rounded_up(epsilon)}"
                yield Entry(row, data, "gap", used, Published.read(figure), rounded_up(epsilon), _SPLIT)
        for claimed, published in _GAP["attention"][data].items():
            used = {
                "epsilon": published["epsilon"],
                "unit": "edge",
                "hops": 1,
                "weights": "attention",
                "steps": STEPS,
                "batch": BATCH,
                "share_hops": published["share"],
                **_PUBLISHED,
            }
            yield Entry(
                f"attention eps={claimed}", data, "gap", used, Published(published["accuracy"]), claimed, _SPLIT
            )


WEIGHTED_GAP = {"figure3": _weights}


_VFGNN = figures_of("vfgnn")
_COMBINES = ("concat", "mean", "regression")
_METHOD = "vfgnn"
#: CPU seconds of one run on shares, roughly.
_SHARES = 300.0
_DELTA = 1e-4


def _vfgnn(row: str, data: str, figure: str | None, split: str, claimed: str = "inf", **settings: Any) -> Entry:
    used = {**_VFGNN["settings"], **settings}
    return Entry(row, data, _METHOD, used, Published.read(figure) if figure else None, claimed, split)


def _together() -> Iterator[Entry]:
    for data, figures in _VFGNN["together"].items():
        first, second, *combined, mixed = figures.split()
        # The paper names both splits; its figures fit the first, so that folds have no published figures.
        for split, kind in (("declared", ""), ("5-fold", ", five folds")):
            separate = None if kind else (first, second, mixed)
            yield _vfgnn(f"first holder alone{kind}", data, separate and separate[0], split, kind="alone", holder=0)
            yield _vfgnn(f"second holder alone{kind}", data, separate and separate[1], split, kind="alone", holder=1)
            for combine, figure in zip(_COMBINES, combined, strict=True):
                yield _vfgnn(f"vfgnn {combine}{kind}", data, None if kind else figure, split, combine=combine)
                if not kind:
                    yield _vfgnn(f"ours: vfgnn {combine}", data, None, split, combine=combine, apart=True)
            yield _vfgnn(f"everything in one place{kind}", data, separate and separate[2], split, kind="mixed")
        # The text mentions no other combination, and the table's figures fit the declared split.
        figure = _VFGNN["secureml"].get(data)
        secured = {"mode": "secureml", "combine": "mean", **_VFGNN["secureml_settings"]}
        yield _vfgnn("secureml mean", data, figure, "declared", **secured)
        if data == "cora":
            # Means over neighbours are masked as n x n matrices, which for PubMed do not fit into memory.
            yield replace(
                _vfgnn("on shares: secureml mean", data, None, "declared", kind="shares", **secured), cpu=_SHARES
            )


def _by_shares() -> Iterator[Entry]:
    for shares, figures in _VFGNN["shares"].items():
        for combine, figure in zip(_COMBINES, figures.split(), strict=True):
            yield _vfgnn(f"{shares} vfgnn {combine}", "cora", figure, "declared", combine=combine, shares=shares)


def _by_holders() -> Iterator[Entry]:
    for holders, figures in _VFGNN["holders"].items():
        for combine, figure in zip(_COMBINES, figures.split(), strict=True):
            shares = ":".join(["1"] * int(holders))
            yield _vfgnn(f"{holders} vfgnn {combine}", "cora", figure, "declared", combine=combine, shares=shares)


def _noise() -> Iterator[Entry]:
    for epsilon, figures in _VFGNN["noise"].items():
        for shrink, figure in zip((False, True), figures.split(), strict=True):
            kind = "james-stein" if shrink else "gaussian"
            # The paper's formula, which holds only for epsilon below 1.
            sigma = math.sqrt(2 * math.log(1.25 / _DELTA)) / float(epsilon)
            claimed = f"{epsilon} an iteration"
            yield _vfgnn(f"eps={epsilon} {kind}", "cora", figure, "declared", claimed, sigma=sigma, shrink=shrink)
        settings = {"sigma": sigma, "shrink": False, "apart": True}
        yield _vfgnn(f"eps={epsilon} ours", "cora", None, "declared", claimed, **settings)


VFGNN = {"table2": _together, "table3": _by_shares, "table4": _by_holders, "table5": _noise}


#: Paper -> table or figure -> its entries; only those that can be run.
_ENTRIES: Mapping[str, Mapping[str, Callable[[], Iterator[Entry]]]] = {
    "lpgnn": LPGNN,
    "solitude": SOLITUDE,
    "heterorr": HETERORR,
    "weighted-gap": WEIGHTED_GAP,
    "vfgnn": VFGNN,
}
_PRINTED = {paper: figures_of(paper) for paper in _ENTRIES}
#: Paper -> its title.
PAPERS: Mapping[str, str] = MappingProxyType({paper: printed["title"] for paper, printed in _PRINTED.items()})


def _exhibits() -> Iterator[Exhibit]:
    for paper, printed in _PRINTED.items():
        for fields in printed["exhibit"]:
            entries = tuple(_ENTRIES[paper].get(fields["number"], tuple)())
            common = {"cpu": printed["cpu"], "notes": tuple(printed["notes"])} if entries else {}
            yield Exhibit(paper, **fields, entries=entries, **common)


EXHIBITS: Mapping[str, Exhibit] = MappingProxyType({exhibit.id: exhibit for exhibit in _exhibits()})


def find_exhibit(name: str) -> Exhibit:
    """Return the table or figure called `name`; InputError where there is none, or where it cannot be run."""
    # The message lists only exhibits that can be run.
    if name not in EXHIBITS:
        runnable = ", ".join(exhibit.id for exhibit in EXHIBITS.values() if exhibit.state != "no")
        remedy = nearest(name.lower(), [*EXHIBITS, "list"]) or "graphveil reproduce list shows all"
        raise InputError(f"no table or figure {name!r}", allowed=runnable, remedy=remedy)
    exhibit = EXHIBITS[name]
    if exhibit.state == "no":
        raise InputError(f"{exhibit.id} cannot be run: {exhibit.why}", remedy="graphveil reproduce list shows all")
    return exhibit


def listing() -> str:
    """Return every table and figure with its state, as Markdown: a heading and a table for each paper."""
    parts = []
    for paper, title in PAPERS.items():
        rows = [
            f"| `{item.id}` | {item.caption} | {item.status} | {', '.join(item.data)} | {duration(item)} |"
            for item in EXHIBITS.values()
            if item.paper == paper
        ]
        head = "| name | shows | can be run | data | 10 splits take |\n| --- | --- | --- | --- | --- |"
        parts.append("\n".join([f"### {title}", "", head, *rows]))
    return "\n\n".join(parts) + "\n"


def duration(exhibit: Exhibit) -> str:
    """Return about how long all figures of an exhibit take, in words; "" where there is nothing to run."""
    if not exhibit.entries:
        return ""
    # Times were measured on a busy machine, to a factor of two.
    minutes = exhibit.seconds() / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.0f} h"
