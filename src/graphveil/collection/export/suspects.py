"""Reports that no device has drawn by the law of the task, and a collection without them.

    features           ones in a report; in each coordinate, and in all of them together
    label              how often each class is named
    links              names in a list, most links where that is public; differing ends, where both ends report
    degree             beyond the ends by more than noise; beside the same person's list
    copies             reports that are equal where chance makes none equal

Honest reports pass a check whatever people's true values are, see `law`. All checks together suspect an honest
collection with probability `ALARM` at most: each check has an equal share of it, and each of its counts an equal share
of that. No test can find a forger who draws by the law from another value: `collection.export.moved` bounds what such
forgers can do.

Reports of suspects are left out of the training like missing ones: a choice among reports, which costs nobody
anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from graphveil.collection.export import law
from graphveil.collection.export.bodies import Bodies
from graphveil.collection.export.export import Collected
from graphveil.device.reports.degree import Degree
from graphveil.device.reports.features import Features
from graphveil.device.reports.label import Label
from graphveil.device.reports.links import Links
from graphveil.runtime.checks import require_whole
from graphveil.runtime.words import count_of

#: The probability that an honest collection is suspected of anything.
ALARM = 1e-6
_NO_PEOPLE = np.empty(0, np.int64)


@dataclass(frozen=True)
class Check:
    """The result of one comparison with the law.

    Args:
        what: the comparison in words.
        people: int64, the numbers of those whose own report fails.
        amiss: whether the field fails as a whole, which names nobody.
    """

    field: str
    what: str
    people: npt.NDArray[np.int64]
    amiss: bool = False


@dataclass(frozen=True)
class Findings:
    """The results of all checks, in the order of the task's fields, and how many reports were checked."""

    reports: int
    checks: tuple[Check, ...]

    @property
    def suspects(self) -> npt.NDArray[np.int64]:
        """The numbers of people whose report fails a check, ascending."""
        numbers: npt.NDArray[np.int64] = np.unique(
            np.concatenate([_NO_PEOPLE, *(check.people for check in self.checks)])
        )
        return numbers

    @property
    def amiss(self) -> tuple[str, ...]:
        """The fields that fail as a whole, each with its check."""
        return tuple(f"{check.field} ({check.what})" for check in self.checks if check.amiss)

    @property
    def sentence(self) -> str:
        by = ", ".join(
            f"{check.field}: {check.what} {len(check.people):,}" for check in self.checks if len(check.people)
        )
        summary = f"suspects {len(self.suspects):,} of {count_of(self.reports, 'report')}{f' ({by})' if by else ''}"
        whole = f"; not by the law as a whole: {', '.join(self.amiss)}" if self.amiss else ""
        return f"{summary}{whole}; an honest collection is suspected once in {1 / ALARM:,.0f}"

    @property
    def facts(self) -> dict[str, object]:
        by = [{"field": check.field, "check": check.what, "suspects": len(check.people)} for check in self.checks]
        counts = {"reports": self.reports, "suspects": len(self.suspects), "by": by, "amiss": list(self.amiss)}
        return {**counts, "false_alarm": ALARM, "sentence": self.sentence}


def inspect(collected: Collected, most_links: int | None = None) -> Findings:
    """Compare a collection with the law of its task; InputError where `most_links` is below 1.

    Args:
        most_links: of one person, where that is public; None: up to the number of people.
    """
    if most_links is not None:
        require_whole(1, most_links=most_links)
    bodies, fields = collected.bodies, collected.task.fields
    answered = [index for index in range(len(fields)) if bodies.answered(index).any()]
    # Before anything is read: shares that depended on the reports would not bound the false alarms.
    rare = ALARM / (1 + sum(_CHECKS[field.kind] for field in fields))
    checks = [check for index in answered for check in _of_field(collected, _Answers(bodies, index, rare), most_links)]
    if {Links.kind, Degree.kind} <= {fields[index].kind for index in answered}:
        checks.append(_degrees_beside_lists(bodies, rare))
    return Findings(len(bodies.bits), (*checks, _copies(bodies, rare)))


def without(collected: Collected, people: npt.NDArray[np.int64]) -> Collected:
    """Return a collection as if the people of some numbers had never answered."""
    if not len(people):
        return collected
    is_kept = ~np.isin(collected.bodies.numbers, people)
    # Answers are emptied and rows stay: payments are counted by rows, and were made all the same.
    bits = collected.bodies.bits * is_kept[:, None].astype(np.uint8)
    return replace(collected, bodies=replace(collected.bodies, bits=bits))


#: How many checks a field of each kind has.
_CHECKS = {Features.kind: 3, Label.kind: 1, Links.kind: 2, Degree.kind: 2}


@dataclass(frozen=True)
class _Answers:
    """The answers to one field, by its index, and the probability `rare` of a false alarm in each check."""

    bodies: Bodies
    index: int
    rare: float

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        return np.flatnonzero(self.bodies.answered(self.index))

    @property
    def numbers(self) -> npt.NDArray[np.int64]:
        return self.bodies.numbers[self.rows]

    def failing(self, chances: law.Chances) -> npt.NDArray[np.int64]:
        """Return the numbers of those whose answer is too unlikely, of probabilities [answers]."""
        # Divided by the people and not by the answers: a forger may also choose how many answer.
        return self.numbers[chances < self.rare / self.bodies.task.people]


def _of_field(collected: Collected, answers: _Answers, most_links: int | None) -> Iterator[Check]:
    field = answers.bodies.task.fields[answers.index]
    if isinstance(field, Features):
        yield from _features(answers, field, collected.columns(field, answers.rows))
    elif isinstance(field, Label):
        yield _label(answers, field)
    elif isinstance(field, Links):
        yield from _links(answers, field, most_links)
    else:
        yield _degree(answers, field)


def _features(answers: _Answers, field: Features, columns: npt.NDArray[np.int32]) -> Iterator[Check]:
    least, largest = law.bit_chances(field)
    bits = answers.bodies.answers(answers.index)[answers.rows]
    sums = bits.sum(axis=1, dtype=np.int64)
    of_each = law.either(law.above(sums, field.sampled, largest), law.below(sums, field.sampled, least))
    yield Check(field.kind, "ones of a report", answers.failing(of_each))
    total = sums.sum(keepdims=True)
    of_all = law.either(law.above(total, bits.size, largest), law.below(total, bits.size, least))
    yield Check(field.kind, "ones of all reports", _NO_PEOPLE, bool(of_all[0] < answers.rare))
    coordinates, width = columns.ravel(), len(field.names)
    trials = np.bincount(coordinates, minlength=width)
    counts = np.bincount(coordinates[bits.ravel() == 1], minlength=width)
    many, few = law.above(counts, trials, largest), law.below(counts, trials, least)
    # Some coordinates far off, or all of them a little: the least likely one, and all by Fisher's chi-square.
    chance = 4 * min(width * many.min(), width * few.min(), law.together(many), law.together(few))
    yield Check(field.kind, "ones of each coordinate", _NO_PEOPLE, bool(chance < answers.rare))


def _label(answers: _Answers, field: Label) -> Check:
    other, true = law.class_chances(field)
    counts = np.bincount(answers.bodies.values(answers.index)[answers.rows], minlength=len(field.classes))
    chances = law.either(law.above(counts, len(answers.rows), true), law.below(counts, len(answers.rows), other))
    return Check(field.kind, "how often a class is named", _NO_PEOPLE, bool(chances.min() < answers.rare / len(counts)))


def _links(answers: _Answers, field: Links, most_links: int | None) -> Iterator[Check]:
    flip, numbers = law.flip_chance(field), answers.numbers
    lists = sp.csr_matrix(answers.bodies.answers(answers.index)[answers.rows])
    lengths, trials = np.diff(lists.indptr).astype(np.int64), _trials(field.mode, field.people, numbers)
    long = law.above(lengths, trials, 1 - flip) if most_links is None else law.longer(lengths, trials, flip, most_links)
    named = Check(field.kind, "names in a list", answers.failing(law.either(long, law.below(lengths, trials, flip))))
    yield named
    if field.mode == "both":
        rest = ~np.isin(numbers, named.people)
        pairs = sp.csr_matrix(lists[rest][:, numbers[rest]]).astype(np.int64)
        limit = answers.rare / field.people
        yield Check(field.kind, "ends that differ", numbers[rest][unlike(pairs, 2 * flip * (1 - flip), limit)])


def unlike(pairs: sp.csr_matrix, differs: float, limit: float) -> npt.NDArray[np.int64]:
    """Return the indices of people whose bits differ from those of the other ends too often or too rarely.

    Args:
        pairs: 0 or 1 [k, k], who names whom.
        differs: the probability that two ends differ.
        limit: of chances.
    """
    # The two ends of a pair differ equally often with and without a link: this law does not depend on the truth.
    left = np.arange(pairs.shape[0])
    while len(left) > 1:
        among = pairs[left][:, left]
        common = np.asarray(among.multiply(among.T).sum(axis=1)).ravel()
        differ = np.asarray(among.sum(axis=0)).ravel() + np.asarray(among.sum(axis=1)).ravel() - 2 * common
        most = len(left) - 1
        failing = law.either(law.above(differ, most, differs), law.below(differ, most, differs)) < limit
        if not failing.any():
            break
        # The worst first: a person whom many forgers name differs from them, and would be suspected in their place.
        off = np.abs(differ - most * differs)
        left = left[~(failing & (off >= off[failing].max() / 2))]
    return np.setdiff1d(np.arange(pairs.shape[0]), left)


def _degree(answers: _Answers, field: Degree) -> Check:
    levels = answers.bodies.values(answers.index)[answers.rows] + field.lowest
    trials = _trials(field.mode, answers.bodies.task.people, answers.numbers)
    beyond = np.maximum(np.maximum(levels - trials, -levels), 0)
    return Check(field.kind, "beyond its ends", answers.failing(2 * _rate(field) ** beyond.astype(np.float64)))


def _degrees_beside_lists(bodies: Bodies, rare: float) -> Check:
    """Find people for whom no number of links explains both list and degree."""
    index_of = {field.kind: index for index, field in enumerate(bodies.task.fields)}
    links, degree = bodies.task.fields[index_of["links"]], bodies.task.fields[index_of["degree"]]
    assert isinstance(links, Links) and isinstance(degree, Degree)
    rows = np.flatnonzero(bodies.answered(index_of["links"]) & bodies.answered(index_of["degree"]))
    # In different modes, lists and degrees count different links.
    if links.mode != degree.mode or not len(rows):
        return Check(degree.kind, "beside the list", _NO_PEOPLE)
    numbers = bodies.numbers[rows]
    flip, trials = law.flip_chance(links), _trials(links.mode, links.people, numbers)
    lengths = bodies.answers(index_of["links"])[rows].sum(axis=1, dtype=np.int64)
    levels = bodies.values(index_of["degree"])[rows] + degree.lowest
    each = rare / links.people / 4
    wide = law.list_spread(trials, flip, each) / (1 - 2 * flip) + np.log(each) / np.log(_rate(degree))
    apart = np.abs((lengths - trials * flip) / (1 - 2 * flip) - levels) > wide
    return Check(degree.kind, "beside the list", numbers[apart])


def _copies(bodies: Bodies, rare: float) -> Check:
    """Find people whose whole report equals another's where chance makes none equal."""
    rows = np.packbits(bodies.bits, axis=1)
    keys = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1]))).ravel()
    _, first, group, sizes = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    last = np.zeros(len(sizes), np.int64)
    np.maximum.at(last, group, bodies.numbers)
    several = np.flatnonzero(sizes > 1)
    chances = law.copies(
        bodies.task.people, sizes[several], _equal(bodies, first[several], sizes[several], last[several])
    )
    return Check("report", "equal to another", bodies.numbers[np.isin(group, several[chances < np.log(rare)])])


def _equal(
    bodies: Bodies, first: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], last: npt.NDArray[np.int64]
) -> law.Chances:
    """Return the logarithm of the largest probability that the reports of each group are equal, [groups];
    `first` is a report of each, `last` the largest number in it.
    """
    log = np.zeros(len(first))
    for index, field in enumerate(bodies.task.fields):
        is_answered = bodies.answered(index)[first]
        if isinstance(field, Features):
            log += is_answered * field.sampled * law.log_equal(law.bit_chances(field), sizes)
        elif isinstance(field, Label):
            other, true = law.class_chances(field)
            log += is_answered * law.log_equal([true, *[other] * (len(field.classes) - 1)], sizes)
        elif isinstance(field, Links):
            flip = law.flip_chance(field)
            # Bits for which a member of the group does not answer are 0 for all, and are left out.
            shared = field.people - (last + 1 if field.mode == "lower" else sizes)
            log += is_answered * np.maximum(shared, 0) * law.log_equal([flip, 1 - flip], sizes)
    return log


def _trials(mode: str, people: int, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return for how many other people each person answers: the trials of a list's count."""
    return people - 1 - numbers if mode == "lower" else np.full(len(numbers), people - 1, np.int64)


def _rate(field: Degree) -> float:
    return law.degree_rate(field.digits, field.overflow)
