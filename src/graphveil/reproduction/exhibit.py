"""A table or figure of a paper as data: its figures, what is trained for each and is missing, and what a run leaves."""

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
#: How many splits the printed durations are for.
SPLITS = 10


@dataclass(frozen=True)
class Published:
    """What a paper printed, in percent; `width` stands behind its ±, None where nothing does."""

    mean: float
    width: float | None = None

    @classmethod
    def read(cls, text: str) -> Published:
        """Return the figure written as "63.0±4.1" or "63.0"."""
        mean, _, width = text.partition("±")
        return cls(float(mean), float(width) if width else None)


@dataclass(frozen=True)
class Entry:
    """One figure of an exhibit."""

    row: str  # what it is called there
    data: str  # the named set that it was found on
    method: str  # with settings: what is trained for it
    settings: Mapping[str, Any] = field(default_factory=dict)
    published: Published | None = None  # what the paper found; None: it gives no number
    claimed: str = ""  # the epsilon as the paper counts it
    split: str = "random"  # who trains, validates and tests, as in `experiment.run`
    private_share: float = 0.0  # of the edges, drawn as private by the split's number; 0: as the data declare
    cpu: float = 0.0  # CPU seconds of one run, roughly; 0: as of all others on its data

    @property
    def name(self) -> str:
        """Data and row as the name of a folder."""
        # Settings are not in it: a folder's name would be longer than some disks take.
        return re.sub(r"[^a-z0-9.=-]+", "_", f"{self.data} {self.row}".lower()).strip("_")

    def to_dict(self) -> dict[str, Any]:
        """Return everything that decides what a run finds."""
        # Neither the row's name nor the published figure: correcting those must not run anything anew.
        about = {"data": self.data, "method": self.method, "settings": dict(self.settings), "split": self.split}
        return about | ({"private_share": self.private_share} if self.private_share else {})


@dataclass(frozen=True)
class Exhibit:
    """A table or figure."""

    paper: str  # with number: such as "lpgnn" and "table3"
    number: str
    caption: str  # what it shows, in our own words
    state: State  # whether it can be run: "yes", "part" or "no"
    why: str = ""  # what is missing, or that nothing was measured
    entries: tuple[Entry, ...] = ()  # its figures, in order
    cpu: Mapping[str, float] = field(default_factory=dict)  # data set -> CPU seconds of one run, roughly
    notes: tuple[str, ...] = ()  # what to mind when reading it: what ± is, whose price is corrected and why
    tested: str = ""  # the method that the paper tests against the best of its rivals, "" for none

    def __post_init__(self) -> None:
        # A state that nobody explains would be a claim that nobody can check.
        if (self.state == "yes") == bool(self.why) or (self.state == "no") == bool(self.entries):
            raise InputError(f"{self.id} is {self.state!r}", allowed="yes; part or no with a reason; entries unless no")
        if len({entry.name for entry in self.entries}) < len(self.entries):
            raise InputError(f"{self.id} names two rows alike")

    @property
    def id(self) -> str:
        return f"{self.paper}-{self.number}"

    @property
    def title(self) -> str:
        """Its number as it is printed: "Table 3"."""
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
    """Return what a paper printed, from the file of that name beside this one."""
    # As a file and not as code: figures are compared with a page of the paper, line by line.
    return tomllib.loads(files(__package__).joinpath(f"{paper}.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Price:
    """The true privacy price of one run: whose data (`unit`), epsilon and delta of all that is published.

    `relationship`: epsilon of one relationship, where that is another unit.
    """

    unit: str
    epsilon: float
    delta: float
    relationship: float | None = None


@dataclass(frozen=True)
class Cost:
    """What a run on shares takes of all parties together: training epochs, CPU seconds, bytes of their messages."""

    epochs: int
    seconds: float
    bytes: int


@dataclass(frozen=True)
class Run:
    """One finished split: accuracy as a fraction, with its interval, price, seconds and the parties' cost."""

    accuracy: Interval
    price: Price
    seconds: float
    cost: Cost | None = None

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
