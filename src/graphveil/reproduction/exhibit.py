"""A table or figure of a paper as data: its figures, the training for each, and the results of runs."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from typing import Any, Literal

from graphveil.errors import InputError
from graphveil.methods.runs.intervals import Interval
from graphveil.reports.base.record import interval_from_dict

State = Literal["yes", "part", "no"]
#: The number of splits for which durations are printed.
SPLITS = 10


@dataclass(frozen=True)
class Published:
    """A figure as printed in a paper, in percent."""

    mean: float
    width: float | None = None  # the number behind ±, if there is one

    @classmethod
    def read(cls, text: str) -> Published:
        """Return the figure written as "63.0±4.1" or "63.0"."""
        mean, _, width = text.partition("±")
        return cls(float(mean), float(width) if width else None)


@dataclass(frozen=True)
class Entry:
    """One figure of an exhibit."""

    row: str  # its name in the exhibit
    data: str  # the named data set
    method: str  # with settings: the training
    settings: Mapping[str, Any] = field(default_factory=dict)
    published: Published | None = None  # the paper's figure; None: the paper gives no number
    claimed: str = ""  # the epsilon as the paper counts it
    split: str = "random"  # as in `experiment.run`
    private_share: float = 0.0  # of the edges, drawn as private with the split's number; 0: as the data declare
    cpu: float = 0.0  # CPU seconds of one run, roughly; 0: see `Exhibit.cpu`

    @property
    def name(self) -> str:
        """Data and row as the name of a folder."""
        # Without settings: the name would be too long for some disks.
        return re.sub(r"[^a-z0-9.=-]+", "_", f"{self.data} {self.row}".lower()).strip("_")

    def to_dict(self) -> dict[str, Any]:
        """Return everything that decides the result of a run."""
        # Neither the row's name nor the published figure: a correction of these must not repeat a run.
        about = {"data": self.data, "method": self.method, "settings": dict(self.settings), "split": self.split}
        return about | ({"private_share": self.private_share} if self.private_share else {})


@dataclass(frozen=True)
class Exhibit:
    """A table or figure."""

    paper: str  # such as "lpgnn"
    number: str  # such as "table3"
    caption: str  # what it shows, not in the paper's words
    state: State  # whether it can be run
    why: str = ""  # what is missing, or that nothing was measured
    entries: tuple[Entry, ...] = ()  # its figures, in order
    cpu: Mapping[str, float] = field(default_factory=dict)  # data set -> CPU seconds of one run, roughly
    notes: tuple[str, ...] = ()  # remarks for readers: what ± is, which epsilon is corrected and why
    tested: str = ""  # the method that the paper tests against the best of its rivals, "" for none

    def __post_init__(self) -> None:
        # A state other than "yes" needs a reason.
        if (self.state == "yes") == bool(self.why) or (self.state == "no") == bool(self.entries):
            raise InputError(f"{self.id} is {self.state!r}", allowed="yes; part or no with a reason; entries unless no")
        if len({entry.name for entry in self.entries}) < len(self.entries):
            raise InputError(f"{self.id} names two rows alike")

    @property
    def id(self) -> str:
        return f"{self.paper}-{self.number}"

    @property
    def title(self) -> str:
        """Its number as printed: "Table 3"."""
        return re.sub(r"(\D+)(\d+)", lambda match: f"{match[1].capitalize()} {match[2]}", self.number)

    @property
    def data(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(entry.data for entry in self.entries))

    @property
    def status(self) -> str:
        return self.state if self.state == "yes" else f"{self.state}: {self.why}"

    def seconds(self, splits: int = SPLITS) -> float:
        """Return about how many CPU seconds all entries take."""
        return splits * sum(entry.cpu or self.cpu[entry.data] for entry in self.entries)

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "caption": self.caption,
            "state": self.state,
            "why": self.why,
            "data": list(self.data),
            "figures": len(self.entries),
            "cpu_seconds": self.seconds(),
            "splits": SPLITS,
            "notes": list(self.notes),
        }


def figures_of(paper: str) -> dict[str, Any]:
    """Return the figures of a paper, from the TOML file of that name beside this one."""
    # A file and not code, so that it can be compared with the paper line by line.
    return tomllib.loads(files(__package__).joinpath(f"{paper}.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Price:
    """The true privacy cost of one run, over everything that is published."""

    unit: str
    epsilon: float
    delta: float
    relationship: float | None = None  # the epsilon of one relationship, where that is another unit


@dataclass(frozen=True)
class Cost:
    """The cost of a run on shares, for all parties together."""

    epochs: int
    seconds: float  # of CPU time
    bytes: int  # of all messages


@dataclass(frozen=True)
class Run:
    """One finished split."""

    accuracy: Interval  # a fraction
    price: Price
    seconds: float
    cost: Cost | None = None  # of the parties; None: not on shares

    def to_dict(self) -> dict[str, Any]:
        parties = {} if self.cost is None else {"cost": asdict(self.cost)}
        accuracy, price = self.accuracy.to_dict(), asdict(self.price)
        return {"accuracy": accuracy, "price": price, "seconds": self.seconds, **parties}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Run:
        """Return the inverse of `to_dict`; KeyError, TypeError, ValueError or InputError for anything else."""
        prices, costs = content["price"], content.get("cost")
        relationship = None if prices["relationship"] is None else float(prices["relationship"])
        price = Price(str(prices["unit"]), float(prices["epsilon"]), float(prices["delta"]), relationship)
        cost = None if costs is None else Cost(int(costs["epochs"]), float(costs["seconds"]), int(costs["bytes"]))
        return cls(interval_from_dict(content["accuracy"]), price, float(content["seconds"]), cost)
