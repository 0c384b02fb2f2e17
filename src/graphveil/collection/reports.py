"""From exported bodies to the reports that methods read: what a person did not send is nowhere in them.

    features   bits of the coordinates that were assigned to each person    multi-bit reports of those who answered
    label      a class, or -1 where none was sent
    links      the lists of those who sent one, and who that was

Mechanisms are built anew from the task and have to draw with its whole numbers: another threshold is another law, and
every estimate would be wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from graphveil.collection.declare import below
from graphveil.collection.export import Collected
from graphveil.device.degree import Degree
from graphveil.device.features import Features
from graphveil.device.label import Label
from graphveil.device.links import Links
from graphveil.device.task import Field
from graphveil.errors import DataError, InputError
from graphveil.graphs import GraphSchema, Split
from graphveil.late import torch
from graphveil.mechanisms import EdgeReports, MultiBitReports
from graphveil.methods.base.epochs import Paid
from graphveil.methods.base.local_privacy import LocalPrivacy
from graphveil.methods.base.released import Answers, LocalReports
from graphveil.methods.links.collection import LinkReports
from graphveil.methods.links.privacy import LinkPrivacy

#: From which budget of a method each kind of field is paid.
_UNITS = {Features.kind: "features", Label.kind: "labels", Links.kind: "links", Degree.kind: "links"}
BoolArray = npt.NDArray[np.bool_]
Kind = TypeVar("Kind", Features, Label, Links)


@dataclass(frozen=True)
class Received:
    """What a server reads of an exported collection of features and labels.

    Args:
        collected: the export.
    """

    collected: Collected

    @property
    def people(self) -> int:
        """n, whoever answered."""
        return self.collected.task.people

    @property
    def schema(self) -> GraphSchema:
        """What the task declares, as of a graph that every method takes; one column where no features are asked.

        Raises:
            InputError: no label is asked, so nothing can be learned.
        """
        task, asked = self.collected.task, self._asked(Features)
        label = self._asked(Label)
        if label is None:
            raise InputError("the task asks for no label", where=task.name, remedy="train on a task that does")
        links = self._asked(Links)
        known = ("features", "labels") if links is None else ("features", "labels", "edges")
        directed = links is not None and links[1].mode == "directed"
        columns = (1, 0.0, 1.0) if asked is None else (len(asked[1].names), asked[1].low, asked[1].high)
        source = f"task {task.hash.hex()}"
        return GraphSchema(task.name, *columns, label[1].classes, directed, known, source)

    def privacy(self) -> LocalPrivacy:
        """Return the budgets of features and labels.

        Raises:
            DataError: our mechanisms draw with other whole numbers than the task.
        """
        schema, features, label = self.schema, self._asked(Features), self._asked(Label)
        assert label is not None  # or there was no schema
        epsilon_x = None if features is None else below(features[1].epsilon)
        made = LocalPrivacy(epsilon_x, below(label[1].epsilon))
        if features is not None:
            usual: Any = made.features(schema)
            # Said only where it is not the default: most tasks leave the best number to us.
            made = replace(made, sampled=None if usual.coordinates == features[1].sampled else features[1].sampled)
        ours = [made.labels(len(schema.classes)).share]  # type: ignore[union-attr]
        theirs = [label[1].share]
        if features is not None:
            bits: Any = made.features(schema)
            ours += [bits.coordinates, bits.law.low]
            theirs += [features[1].sampled, features[1].threshold]
        self._require_law(ours, theirs)
        return made

    def links_privacy(self) -> LinkPrivacy:
        """Return the budget of neighbour lists.

        Raises:
            InputError: no lists are asked. DataError: as `privacy`.
        """
        asked = self._asked(Links)
        if asked is None:
            raise InputError("the task asks for no lists", where=self.schema.name)
        made = LinkPrivacy(below(asked[1].epsilon), asked[1].mode)
        ours = made.parts(self.schema, self.people)["lists"].threshold
        self._require_law([ours], [asked[1].threshold])
        return made

    def answered(self) -> Mapping[str, BoolArray]:
        """Return who answered each field [n], by its kind."""
        bodies = self.collected.bodies
        masks = {}
        for place, field in enumerate(self.collected.task.fields):
            masks[field.kind] = np.zeros(self.people, np.bool_)
            masks[field.kind][bodies.numbers[bodies.answered(place)]] = True
        return masks

    def paid(self) -> Paid:
        """Return what devices have paid at most, see `methods.base.epochs`."""
        task, times = self.collected.task, self.collected.times
        units: dict[str, int] = {}
        for place, field in enumerate(task.fields):
            unit = _UNITS[field.kind]
            units[unit] = max(units.get(unit, 1), _draws(field, times[:, place]))
        return Paid(task.hash.hex(), units)

    def again(self) -> Mapping[str, Mapping[int, int]]:
        """Return for each kind of field how many people answered it how often, of those who did."""
        told = {}
        for place, field in enumerate(self.collected.task.fields):
            often, people = np.unique(self.collected.times[:, place], return_counts=True)
            told[field.kind] = {int(k): int(count) for k, count in zip(often, people, strict=True) if k}
        return told

    def labels(self) -> npt.NDArray[np.int64]:
        """Return everybody's report of a label [n], -1 where none was sent."""
        bodies, asked = self.collected.bodies, self._asked(Label)
        sent = np.full(self.people, -1, np.int64)
        if asked is not None:
            told = bodies.answered(asked[0])
            sent[bodies.numbers[told]] = bodies.values(asked[0])[told]
        return sent

    def features(self) -> MultiBitReports | Answers | None:
        """Return the feature reports: of everybody, of those who answered, or None where none were asked."""
        asked = self._asked(Features)
        if asked is None:
            return None
        place, field = asked
        bodies = self.collected.bodies
        told = np.flatnonzero(bodies.answered(place))
        # Rows of reports have no names: only their order says whose they are.
        told = told[np.argsort(bodies.numbers[told])]
        bits = np.ascontiguousarray(bodies.answers(place)[told])
        reports = MultiBitReports(torch.from_numpy(self.collected.columns(field, told)), torch.from_numpy(bits))
        if len(told) == self.people:
            return reports
        return Answers(torch.from_numpy(self.answered()[field.kind]), reports)

    def lists(self) -> tuple[EdgeReports, BoolArray]:
        """Return everybody's list, empty where none was sent, and who sent one [n]."""
        bodies, asked = self.collected.bodies, self._asked(Links)
        heard, lengths = np.zeros(self.people, np.bool_), np.zeros(self.people + 1, np.int64)
        named = np.empty(0, np.int64)
        if asked is not None:
            told = np.flatnonzero(bodies.answered(asked[0]))
            told = told[np.argsort(bodies.numbers[told])]
            heard[bodies.numbers[told]] = True
            rows, named = bodies.answers(asked[0])[told].nonzero()
            lengths[1:] = np.bincount(bodies.numbers[told][rows], minlength=self.people)
        columns = torch.from_numpy(named.astype(np.int32))
        return EdgeReports(torch.from_numpy(lengths.cumsum()), columns), heard

    def link_reports(self, split: Split, people: str) -> LinkReports:
        """Return what the methods on private lists read.

        Args:
            split: as `reports`. people: who took part, see `methods.links.collection.people_key`.
        """
        lists, heard = self.lists()
        mask = None if heard.all() else torch.from_numpy(heard)
        return LinkReports(self.reports(split), {"lists": lists}, None, self.links_privacy(), people, mask)

    def reports(self, split: Split) -> LocalReports:
        """Return what the methods on a public topology read.

        Args:
            split: whose labels train and choose, of those who sent one; the labels of all others stay out.
        """
        labels = torch.from_numpy(self.labels())
        train, val = split.train & (labels >= 0), split.val & (labels >= 0)
        sent = torch.where(train | val, labels, -1)
        ids = np.array(self.collected.ids)
        return LocalReports(self.features(), sent, train, val, self.schema, self.privacy(), ids=ids, paid=self.paid())

    def _require_law(self, ours: Sequence[int], theirs: Sequence[int]) -> None:
        """Refuse devices that drew with other whole numbers than our mechanisms."""
        if list(ours) != list(theirs):
            raise DataError(
                f"devices drew with {theirs} where {ours} is what the epsilons give here",
                where=self.collected.task.name,
                allowed="tasks that `graphveil collect init` declares",
            )

    def _asked(self, kind: type[Kind]) -> tuple[int, Kind] | None:
        """The place of a field and the field, or None where the task does not ask for it."""
        found = ((place, one) for place, one in enumerate(self.collected.task.fields) if isinstance(one, kind))
        return next(found, None)


def _draws(field: Field, times: npt.NDArray[np.int32]) -> int:
    """Return how many draws of a field the most asked person may have made, 1 at least."""
    sent = int(times.max(initial=1))
    if isinstance(field, Label):
        return min(sent, len(field.classes))
    # Each value of a bit has one answer for good, however often it comes back.
    return sent if field.most is None else min(sent, field.most)
