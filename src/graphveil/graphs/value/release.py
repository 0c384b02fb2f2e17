"""What a published graph says about itself, as values; `graphveil.graphs.releases` reads and writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from graphveil.errors import InputError
from graphveil.runtime.late import Tensor, torch
from graphveil.runtime.words import count_of

if TYPE_CHECKING:
    from graphveil.privacy import Guarantee, Ledger

FORMAT = 1
"""The version of the content of `release.json`."""


@dataclass(frozen=True, eq=False)
class NeighbourCounts:
    """How many private neighbours of each group everybody has, as published; InputError where the two do not fit."""

    groups: Tensor  # int64 [n], everybody's group in 0..c-1; public
    counts: Tensor  # int64 [n, c], with noise; some are negative

    def __post_init__(self) -> None:
        are_int64 = self.groups.dtype == self.counts.dtype == torch.int64
        if not are_int64 or self.counts.dim() != 2 or len(self.groups) != len(self.counts):
            what = f"counts {tuple(self.counts.shape)} of {count_of(len(self.groups), 'group')}"
            raise InputError(what, where="neighbour counts")
        if not bool(((self.groups >= 0) & (self.groups < self.counts.shape[1])).all()):
            raise InputError("a group does not exist", where="neighbour counts")


@dataclass(frozen=True)
class Release:
    """What a published graph says about itself.

    `keep` and `flip` are the probabilities that a published label is the true one, or a given other one.
    """

    method: str  # the release method
    settings: Mapping[str, Any]  # its settings, JSON values
    guarantee: Guarantee  # what everything that is made of the graph protects
    ledger: Ledger  # what was spent
    keep: float = 1.0
    flip: float = 0.0
    edges: bool = False  # whether edges that are not marked public are generated, not real
    notes: tuple[str, ...] = ()  # what to mind when reading the numbers
    statistics: Mapping[str, Any] = field(default_factory=dict)  # JSON values; private ones are never in here
    version: str = ""
    created: str = ""
    counts: NeighbourCounts | None = None  # noisy counts of private neighbours, in place of edges

    def to_dict(self) -> dict[str, Any]:
        """The content of `release.json`, hashes and the table of counts left out."""
        return {
            "format": FORMAT,
            "method": self.method,
            "settings": dict(self.settings),
            "guarantee": self.guarantee.to_dict(),
            "guarantee_sentence": self.guarantee.sentence(),
            "labels": {"keep": self.keep, "flip": self.flip},
            "made_edges": self.edges,
            "notes": list(self.notes),
            "statistics": dict(self.statistics),
            "version": self.version,
            "created": self.created,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], ledger: Ledger) -> Release:
        """The inverse of `to_dict`; KeyError, TypeError or InputError for anything else."""
        from graphveil.privacy import Guarantee

        return cls(
            method=str(content["method"]),
            settings=dict(content["settings"]),
            guarantee=Guarantee.from_dict(content["guarantee"]),
            ledger=ledger,
            keep=float(content["labels"]["keep"]),
            flip=float(content["labels"]["flip"]),
            edges=bool(content["made_edges"]),
            notes=tuple(str(note) for note in content["notes"]),
            statistics=dict(content["statistics"]),
            version=str(content["version"]),
            created=str(content["created"]),
        )
