"""The YAML block at the start of a card, which model hubs and registries read.

The names outside `graphveil:` are those of Hugging Face's model and data set cards. The block says no more than the
card: neither that of a card for publication has a figure that was measured on true data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from graphveil.methods.runs.intervals import Interval
from graphveil.privacy import Guarantee
from graphveil.privacy.statement.guarantee import privacy_fields
from graphveil.reports.base.text import printable

TASK: Final = "graph-ml"
_DIGITS: Final = 6
#: Trust model of a guarantee -> the tag that people search for.
_TAGS: Final[Mapping[str, tuple[str, ...]]] = {
    "local": ("differential-privacy", "local-differential-privacy"),
    "central": ("differential-privacy",),
    "vertical": ("differential-privacy", "vertical-federated-learning"),
}
_SIZES: Final = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


@dataclass(frozen=True)
class Subject:
    """What a card is about."""

    kind: str  # "run", "release" or "federation"
    method: str
    data: str
    guarantee: Guarantee
    version: str = ""  # of graphveil; "": unknown


@dataclass(frozen=True)
class Metric:
    """A measured score."""

    kind: str  # the hubs' name of the metric
    name: str  # what was measured
    score: Interval


def of_model(subject: Subject, metrics: Iterable[Metric] = (), *, covered: bool = False) -> dict[str, Any]:
    """Return the front matter of a model's card.

    Args:
        metrics: the scores on the card, if it has any.
        covered: whether epsilon covers those scores.
    """
    values = [_metric(metric) for metric in metrics]
    results = {
        "task": {"type": TASK, "name": "node classification"},
        "dataset": {"type": printable(subject.data), "name": printable(subject.data)},
        "metrics": values,
    }
    name = printable(f"{subject.method} on {subject.data}")
    kinds = [value["type"] for value in values]
    index = {"metrics": kinds, "model-index": [{"name": name, "results": [results]}]} if values else {}
    return {
        "library_name": "graphveil",
        "pipeline_tag": TASK,
        "tags": _tags(subject),
        "datasets": [printable(subject.data)],
        **index,
        "graphveil": _about(subject) | ({"results_covered_by_epsilon": covered} if values else {}),
    }


def of_data(subject: Subject, *, nodes: int, tables: Iterable[str]) -> dict[str, Any]:
    """Return the front matter of a released graph's card.

    Args:
        tables: the names of its parquet files, without the ending; hubs show each.
    """
    # The hub accepts only these words.
    size = next((name for limit, name in _SIZES if nodes < limit), "n>1M")
    return {
        "pretty_name": printable(f"{subject.data}, released by {subject.method}"),
        "task_categories": [TASK],
        "size_categories": [size],
        "tags": _tags(subject),
        "configs": [{"config_name": stem, "data_files": f"{stem}.parquet"} for stem in tables],
        "graphveil": _about(subject),
    }


def _about(subject: Subject) -> dict[str, Any]:
    version = {"version": subject.version} if subject.version else {}
    privacy = privacy_fields(subject.guarantee)
    return {"kind": subject.kind, "method": printable(subject.method), **version, "privacy": privacy}


def _tags(subject: Subject) -> list[str]:
    # A void or infinite guarantee protects nothing, so a search for privacy must not find it.
    private = _TAGS[subject.guarantee.model] if subject.guarantee.protects else ()
    return ["graphveil", "graphs", "graph-neural-network", printable(subject.method), *private]


def _metric(metric: Metric) -> dict[str, Any]:
    score = metric.score
    spread = {"interval": [round(score.low, _DIGITS), round(score.high, _DIGITS)], "confidence": 0.95}
    value = {"type": metric.kind, "name": metric.name, "value": round(score.mean, _DIGITS)}
    return {**value, "args": {**spread, "runs": len(score.runs)}}
