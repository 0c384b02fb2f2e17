"""From exported bodies to the reports that methods read; they hold nothing that a person did not send.

    features   bits of each person's assigned coordinates: multi-bit reports of those who answered
    label      a class, or -1 where none was sent
    links      the lists of those who sent one, and who they are

Mechanisms are rebuilt from the task and must have its whole numbers: another threshold is another law, and every
estimate would be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from graphveil.collection.export.export import Collected
from graphveil.collection.task.declare import below
from graphveil.device.reports.answer import NANO
from graphveil.device.reports.degree import Degree
from graphveil.device.reports.features import Features
from graphveil.device.reports.label import Label
from graphveil.device.reports.links import Links
from graphveil.device.task import Field
from graphveil.errors import DataError, InputError
from graphveil.graphs import GraphSchema, Split
from graphveil.mechanisms import AdjacencyRR, EdgeReports, MultiBitReports, NoisyDegree
from graphveil.mechanisms.edges.neighbour_lists import DegreeReports
from graphveil.methods.base.people.account import TaskPayment
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.methods.base.people.released import Answers, LocalReports
from graphveil.methods.links.collection import LinkReports
from graphveil.methods.links.privacy import LinkPrivacy
from graphveil.methods.links.silent_lists import of_heard
from graphveil.privacy import SeededRandomness
from graphveil.runtime.late import torch

#: The unit of a method's ledger for each kind of field.
UNITS = {Features.kind: "features", Label.kind: "labels", Links.kind: "links", Degree.kind: "links"}
BoolArray = npt.NDArray[np.bool_]
Kind = TypeVar("Kind", Features, Label, Links, Degree)


@dataclass(frozen=True)
class Received:
    """The reports of an exported collection, as methods read them."""

    collected: Collected

    @property
    def people(self) -> int:
        """n, all people of the task."""
        return self.collected.task.people

    @property
    def schema(self) -> GraphSchema:
        """The declaration as a graph's schema; one column without. Raises InputError: where there is no label."""
        task, features = self.collected.task, self._field_of(Features)
        label = self._field_of(Label)
        if label is None:
            raise InputError("the task asks for no label", where=task.name, remedy="train on a task that does")
        links = self._field_of(Links)
        private = ("features", "labels") if links is None else ("features", "labels", "edges")
        directed = links is not None and links.mode == "directed"
        columns = (1, 0.0, 1.0) if features is None else (len(features.names), features.low, features.high)
        source = f"task {task.hash.hex()}"
        return GraphSchema(task.name, *columns, label.classes, directed, private, source)

    def privacy(self) -> LocalPrivacy:
        """The budgets of features and labels; DataError where our mechanisms' whole numbers are not the task's."""
        schema, features, label = self.schema, self._field_of(Features), self._field_of(Label)
        assert label is not None  # or there was no schema
        epsilon_x = None if features is None else below(features.epsilon)
        privacy = LocalPrivacy(epsilon_x, below(label.epsilon))
        if features is not None:
            default: Any = privacy.features(schema)
            # Set only where it is not the default: most tasks use the best number.
            privacy = replace(privacy, sampled=None if default.coordinates == features.sampled else features.sampled)
        ours = [privacy.labels(len(schema.classes)).share]  # type: ignore[union-attr]
        theirs = [label.share]
        if features is not None:
            bits: Any = privacy.features(schema)
            ours += [bits.coordinates, bits.law.low]
            theirs += [features.sampled, features.threshold]
        self._require_law(ours, theirs)
        return privacy

    def links_privacy(self, mechanism: str = "lists") -> LinkPrivacy:
        """Return the budget of neighbour lists, and, of all mechanisms but "lists", of degrees beside them.

        Raises:
            InputError: no lists are asked, or degrees are missing or of other lists; DataError as `privacy`.
        """
        links, degree = self._field_of(Links), self._field_of(Degree)
        if links is None:
            raise InputError("the task asks for no lists", where=self.schema.name)
        epsilon = below(links.epsilon)
        ours = AdjacencyRR(epsilon=epsilon, nodes=self.people, mode=links.mode)
        self._require_law([ours.threshold], [links.threshold])
        if mechanism == "lists":
            return LinkPrivacy(epsilon, links.mode)
        if degree is None or degree.mode != links.mode:
            raise InputError("the task asks for no degree of these lists", where=self.schema.name)
        counts = NoisyDegree(epsilon=below(degree.epsilon), nodes=self.people, mode=links.mode)
        digits, overflow = counts.thresholds
        theirs = [*degree.digits, degree.overflow, degree.lowest, degree.highest]
        self._require_law([*digits, overflow, *counts.ends], theirs)
        share = counts.epsilon / (epsilon + counts.epsilon)
        total = max(epsilon / (1 - share), counts.epsilon / share)
        # Never below what devices have paid: a product of floats may fall short of its exact value.
        while total * share < counts.epsilon or total * (1 - share) < epsilon:
            total = math.nextafter(total, math.inf)
        return LinkPrivacy(total, links.mode, mechanism, share)

    def answered(self) -> Mapping[str, BoolArray]:
        """Return who answered each field [n], by its kind."""
        bodies = self.collected.bodies
        masks = {}
        for index, field in enumerate(self.collected.task.fields):
            masks[field.kind] = np.zeros(self.people, np.bool_)
            masks[field.kind][bodies.numbers[bodies.answered(index)]] = True
        return masks

    def paid(self) -> TaskPayment:
        """Return the most that devices have paid, see `methods.base.people.account`."""
        task, times = self.collected.task, self.collected.times
        units: dict[str, int] = {}
        for index, field in enumerate(task.fields):
            unit = UNITS[field.kind]
            units[unit] = max(units.get(unit, 1), int(_draws(field, times[:, index]).max(initial=1)))
        return TaskPayment(task.hash.hex(), units)

    def most_of_one(self) -> Fraction | None:
        """Return the most epsilon that any single person has paid for all fields and epochs, at most the total of
        `paid`. None where relationships are asked: they belong to two people.
        """
        task, times = self.collected.task, self.collected.times
        if any(isinstance(field, Links | Degree) for field in task.fields):
            return None
        # In billionths, as devices book them: whole numbers add up exactly.
        nano = np.zeros(len(times), np.int64)
        for index, field in enumerate(task.fields):
            nano += _draws(field, times[:, index]).astype(np.int64) * int(field.epsilon * NANO)
        return Fraction(int(nano.max(initial=0)), NANO)

    def times_answered(self) -> Mapping[str, Mapping[int, int]]:
        """Return for each field how many people answered it once, twice and so on."""
        counts = {}
        for index, field in enumerate(self.collected.task.fields):
            times, people = np.unique(self.collected.times[:, index], return_counts=True)
            counts[field.kind] = {int(k): int(count) for k, count in zip(times, people, strict=True) if k}
        return counts

    def labels(self) -> npt.NDArray[np.int64]:
        """Return everybody's report of a label [n], -1 where none was sent."""
        bodies, label = self.collected.bodies, self._field_of(Label)
        labels = np.full(self.people, -1, np.int64)
        if label is not None:
            index = self._index_of(label)
            is_sent = bodies.answered(index)
            labels[bodies.numbers[is_sent]] = bodies.values(index)[is_sent]
        return labels

    def features(self) -> MultiBitReports | Answers | None:
        """Return the feature reports of everybody, or of those who answered; None where no features are asked."""
        features = self._field_of(Features)
        if features is None:
            return None
        rows, index = self._rows_of(features), self._index_of(features)
        bits = np.ascontiguousarray(self.collected.bodies.answers(index)[rows])
        reports = MultiBitReports(torch.from_numpy(self.collected.columns(features, rows)), torch.from_numpy(bits))
        if len(rows) == self.people:
            return reports
        return Answers(torch.from_numpy(self.answered()[features.kind]), reports)

    def lists(self) -> tuple[EdgeReports, BoolArray]:
        """Return everybody's list, empty where none was sent, and who sent one [n]."""
        bodies, links = self.collected.bodies, self._field_of(Links)
        has_sent, lengths = np.zeros(self.people, np.bool_), np.zeros(self.people + 1, np.int64)
        named = np.empty(0, np.int64)
        if links is not None:
            rows = self._rows_of(links)
            has_sent[bodies.numbers[rows]] = True
            list_rows, named = bodies.answers(self._index_of(links))[rows].nonzero()
            lengths[1:] = np.bincount(bodies.numbers[rows][list_rows], minlength=self.people)
        columns = torch.from_numpy(named.astype(np.int32))
        return EdgeReports(torch.from_numpy(lengths.cumsum()), columns), has_sent

    def degrees(self) -> tuple[DegreeReports, BoolArray]:
        """Return everybody's noisy degree, 0 where none was sent, and who sent one [n]."""
        bodies, degree = self.collected.bodies, self._field_of(Degree)
        levels, has_sent = np.zeros(self.people, np.int32), np.zeros(self.people, np.bool_)
        if degree is not None:
            index = self._index_of(degree)
            is_sent = bodies.answered(index)
            has_sent[bodies.numbers[is_sent]] = True
            levels[bodies.numbers[is_sent]] = bodies.values(index)[is_sent] + degree.lowest
        return DegreeReports(torch.from_numpy(levels)), has_sent

    def link_reports(self, split: Split, people: str, mechanism: str = "lists", *, seed: int = 0) -> LinkReports:
        """Return the reports for methods on private lists.

        Args:
            split: as `reports`.
            people: see `methods.links.collection.people_key`.
            mechanism: as `links_privacy`.
            seed: of the thinning of "degree-preserving", which is no privacy noise.
        """
        lists, has_sent = self.lists()
        privacy = self.links_privacy(mechanism)
        parts: dict[str, Any] = {"lists": lists}
        if mechanism != "lists":
            degrees, has_degree = self.degrees()
            has_sent = has_sent & has_degree  # both or neither: one of them alone has no law here
            parts = {"degrees": degrees, "lists": of_heard(lists, torch.from_numpy(has_sent))}
        if mechanism == "degree-preserving":
            whole = privacy.parts(self.schema, self.people)["lists"]
            thinned = whole.thinned(parts["degrees"], parts["lists"], randomness=SeededRandomness(seed))
            parts = {"lists": thinned}
        mask = None if has_sent.all() else torch.from_numpy(has_sent)
        return LinkReports(self.reports(split), parts, None, privacy, people, mask)

    def reports(self, split: Split) -> LocalReports:
        """Return the reports for methods on a public topology; of labels, those the split trains and validates on."""
        labels = torch.from_numpy(self.labels())
        train, val = split.train & (labels >= 0), split.val & (labels >= 0)
        read_labels = torch.where(train | val, labels, -1)
        ids = np.array(self.collected.ids)
        return LocalReports(
            self.features(), read_labels, train, val, self.schema, self.privacy(), ids=ids, paid=self.paid()
        )

    def _require_law(self, ours: Sequence[int], theirs: Sequence[int]) -> None:
        """Refuse a task whose whole numbers differ from those of our mechanisms."""
        if list(ours) != list(theirs):
            raise DataError(
                f"devices drew with {theirs} where {ours} is what the epsilons give here",
                where=self.collected.task.name,
                allowed="tasks that `graphveil collect init` declares",
            )

    def _field_of(self, kind: type[Kind]) -> Kind | None:
        """Return the field of a kind, or None where the task does not ask for it."""
        return next((field for field in self.collected.task.fields if isinstance(field, kind)), None)

    def _index_of(self, field: Field) -> int:
        return self.collected.task.fields.index(field)

    def _rows_of(self, field: Field) -> npt.NDArray[np.int64]:
        """Return the rows of bodies that answer a field, by person: reports name nobody, their order does."""
        bodies = self.collected.bodies
        rows = np.flatnonzero(bodies.answered(self._index_of(field)))
        return rows[np.argsort(bodies.numbers[rows])]


def _draws(field: Field, times: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return how many draws of a field each person may have made [n], who answered it in so many epochs, int32 [n]."""
    # Each value of a bit has one permanent answer, however often the value returns.
    most = len(field.classes) if isinstance(field, Label) else field.most_draws
    return times if most is None else np.minimum(times, most)
