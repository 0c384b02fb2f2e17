"""What a tracker may receive of a run: a part of its `public/` folder, and figures computed from released labels.

The rule, in one place:

- settings, guarantee, epsilon and version, as in `public/about.json` and `guarantee.json`;
- the name of the data only where it is a public set: a user's own folder may be named after people;
- figures of epochs only where devices randomized everything that was collected: they follow from the reports alone.

Accuracy, controls, lift and ceiling are measured on true labels, so they stay in the run folder, as do time and paths.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import graphveil
from graphveil.files.serial import json_safe
from graphveil.graphs.load import is_name
from graphveil.methods.registry import METHODS
from graphveil.reports.runs.card import About

if TYPE_CHECKING:
    from graphveil.methods.base.estimator import Estimator
    from graphveil.reports.base.record import RunRecord

Fact = str | int | float | bool
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Released:
    """What a tracker receives; it has no access to the run, the model or the graph.

    Attributes:
        facts: name -> text, number or boolean. figures: name -> finite number.
        curves: for each repeat a list of epochs, each a mapping of finite numbers with its "epoch".
    """

    title: str
    facts: Mapping[str, Fact]
    figures: Mapping[str, float]
    curves: Sequence[Sequence[Mapping[str, float]]]

    def points(self) -> Iterable[tuple[int, Mapping[str, float]]]:
        """Each epoch's number and figures; with several repeats, names of figures end in that of the repeat."""
        for repeat, epochs in enumerate(self.curves, start=1):
            suffix = f"/run {repeat}" if len(self.curves) > 1 else ""
            for row in epochs:
                yield int(row["epoch"]), {f"{key}{suffix}": row[key] for key in row if key != "epoch"}


def of_run(record: RunRecord) -> Released:
    """Return what a tracker may receive of a finished run."""
    about = About.of(record)
    data = record.data if is_name(str(record.options.get("source", ""))) else None
    return _released(about, data, record.history)


def of_model(model: Estimator) -> Released:
    """Return what a tracker may receive of a fitted model."""
    entry = model.entry
    options = {key: value for key, value in model.get_params().items() if key in entry.options}
    about = About(
        entry.name, "", options, model.epsilon_relationship, graphveil.__version__, model.guarantee, model.ledger
    )
    # A model does not know whether its data are a public set, so their name is left out.
    return _released(about, None, [[asdict(epoch) for epoch in model.history]])


def _released(about: About, data: str | None, history: Iterable[Sequence[Row]]) -> Released:
    guarantee = about.guarantee
    # Codes and not the sentence, which names the data, which may be named after somebody.
    codes = {key: guarantee.to_dict()[key] for key in ("unit_code", "relation", "model", "against_code")}
    facts: dict[str, Any] = {"method": about.method, "version": about.version, **codes}
    facts |= {
        "assumes_codes": ", ".join(assumption.code for assumption in guarantee.assumes),
        "void": guarantee.void is not None,
    }
    if data is not None:
        facts["data"] = data
    facts |= {f"settings/{key}": value for key, value in about.settings.items() if _is_plain(key, value, about)}
    prices = {"epsilon": guarantee.epsilon, "delta": guarantee.delta, "epsilon_relationship": about.relationship}
    figures = {key: float(value) for key, value in prices.items() if value is not None and math.isfinite(value)}
    # As a text: many back ends cannot store infinity.
    facts |= {key: "inf" for key, value in prices.items() if value is not None and math.isinf(value)}
    # Figures of epochs only where everything that they are computed from was randomized on people's devices.
    local = about.method in METHODS and METHODS[about.method].trust == "local"
    budgets = {key: about.settings.get(key) for key in ("epsilon_x", "epsilon_y", "epsilon_a")}
    # An infinite epsilon leaves one part exact, even if all other epsilons are finite; reproducible noise can be
    # subtracted.
    noisy = budgets["epsilon_y"] is not None and math.inf not in budgets.values()
    covered = local and noisy and about.guarantee.void is None
    curves = [[_finite(row) for row in rows] for rows in history] if covered else []
    return Released(about.method, json_safe(facts), figures, curves)


def _finite(row: Row) -> dict[str, float]:
    numbers = {key: value for key, value in row.items() if isinstance(value, int | float)}
    return {key: float(value) for key, value in numbers.items() if math.isfinite(value)}


def _is_plain(key: str, value: object, about: About) -> bool:
    """Whether a setting is a plain value and no path, as of a file without a checksum."""
    options = METHODS[about.method].options if about.method in METHODS else {}
    is_path = key in options and options[key].file and isinstance(value, str) and "/" in value
    return isinstance(value, str | int | float | bool) and not is_path
