"""Rows side by side in groups of equal promises, and their labels."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reports.base import brief, trust
from graphveil.reports.base.text import is_price, number, printable
from graphveil.reports.compare.cells import Comparison
from graphveil.reports.compare.rows import Row


@dataclass(frozen=True)
class Group:
    """Rows of one promise."""

    letter: str  # the name of the group in sentences
    promise: trust.Promise
    rows: tuple[Row, ...]

    @property
    def head(self) -> str:
        return f"{self.letter}. {trust.HEADS[self.promise.trust]}"

    @property
    def has_delta(self) -> bool:
        """Whether any row has a delta above 0."""
        return any(row.guarantee.delta for row in self.rows)

    @property
    def needs_settings(self) -> bool:
        """Whether labels need settings, since method, epsilons and delta do not distinguish all rows."""
        keys = {(row.method, *(part.epsilon for part in row.parts), row.guarantee.delta) for row in self.rows}
        return len(keys) < len(self.rows)


@dataclass(frozen=True)
class Sheet:
    """Rows side by side."""

    title: str
    rows: tuple[Row, ...]  # in the order of their groups
    axes: tuple[str, ...] = ()  # the settings that were varied
    notes: tuple[str, ...] = ()  # remarks for readers, beside those on epsilons

    @property
    def groups(self) -> tuple[Group, ...]:
        """The rows by promise: where nobody is trusted first, where nothing is protected last."""
        needs_settings: dict[trust.Promise, list[Row]] = {}
        for row in self.rows:
            needs_settings.setdefault(row.promise, []).append(row)
        order = list(trust.HEADS)
        promises = sorted(needs_settings, key=lambda promise: order.index(promise.trust))
        return tuple(
            Group(trust.letter(i), promise, tuple(needs_settings[promise])) for i, promise in enumerate(promises)
        )

    @property
    def void(self) -> str | None:
        """Why some rows protect nobody; None where all guarantees hold."""
        return next((row.void for row in self.rows if row.void), None)

    @property
    def score(self) -> str:
        return " or ".join(dict.fromkeys(row.score for row in self.rows))

    @property
    def comparable(self) -> list[str]:
        groups = self.groups
        epsilons = [group.rows[0].parts[0].epsilon if group.rows[0].parts else 0.0 for group in groups]
        open_aspects = [group.rows[0].open_aspects for group in groups]
        return trust.comparability([group.promise for group in groups], epsilons, open_aspects)

    @property
    def cautions(self) -> list[str]:
        """Warnings for methods whose guarantee has no finite-time proof."""
        texts = dict.fromkeys(row.caution for row in self.rows if row.caution)
        return [f"{_names([row for row in self.rows if row.caution == text])}: {text}" for text in texts]


def sheet_of(comparison: Comparison, rows: Sequence[Row]) -> Sheet:
    """The sheet of a comparison.

    Args:
        rows: one for each method and point of the axes, over all seeds.
    """
    count = len(comparison.seeds)
    nodes = "the test nodes of one run"
    over = f"95% intervals over {f'{count} runs or {nodes}, the wider' if count > 1 else nodes}"
    split = comparison.options.get("split", "random")
    tested = "" if split == "random" else f", split {split}"
    varied = tuple(axis for axis, values in comparison.axes.items() if len(values) > 1)
    title = f"{printable(comparison.data)}: {over}{tested}"
    ordered = tuple(itertools.chain(*(group.rows for group in Sheet(title, tuple(rows)).groups)))
    return Sheet(title, ordered, varied)


def _names(rows: Iterable[Row]) -> str:
    # Finished runs of one method may differ: each is labelled with its folder, as in the table.
    names = (row.method if row.folder is None else f"{row.method} ({row.folder})" for row in rows)
    return ", ".join(dict.fromkeys(names))


def row_label(group: Group, row: Row) -> str:
    """The label of a row: the method, with the folder for finished runs, with settings where rows need them.

    Args:
        group: of the row.
    """
    name = row.method + (" (VOID)" if row.void else "")
    if row.folder is not None:
        return f"{name} ({row.folder})"
    return f"{name} ({_settings(row)})" if group.needs_settings and row.axes else name


def _settings(row: Row) -> str:
    return ", ".join(
        f"{key} {rounded_up(value) if is_price(key) and isinstance(value, float) else _value(value)}"
        for key, value in row.axes.items()
    )


def _value(value: object) -> str:
    return number(value) if isinstance(value, float) else str(value)


def three_lines(group: Group, where: str) -> tuple[tuple[str, str], ...]:
    """Heading and text of each line; where rows differ, texts are listed by method.

    Args:
        where: the file that states every fact in full.
    """
    return (
        ("Guarantee", "; ".join(_claims(group))),
        ("Not protected", _by_methods(group.rows, lambda row: brief.open_parts(row.exposed))),
        ("Assumes", f"{_by_methods(group.rows, lambda row: brief.assumption_summary(row.guarantee))} -> {where}"),
    )


def assumed_facts(group: Group) -> list[str]:
    """Every assumption of a group, as a sentence; behind the names of the rows that make it, unless all do."""
    everybody = _names(group.rows)
    assumed: dict[str, list[Row]] = {}
    for row in group.rows:
        for fact in row.guarantee.assumes:
            assumed.setdefault(fact.sentence, []).append(row)
    owners = {sentence: _names(rows) for sentence, rows in assumed.items()}
    return [text if of == everybody else f"{of}: {text}" for text, of in owners.items()]


def _claims(group: Group) -> Iterable[str]:
    if group.promise.parts:
        return (brief.claim([row.guarantee for row in group.rows]),)
    # Where nothing is protected, rows may differ in what is readable, and by whom.
    return dict.fromkeys(brief.claim([row.guarantee]) for row in group.rows)


def _by_methods(rows: Iterable[Row], describe: Callable[[Row], str]) -> str:
    same: dict[str, list[Row]] = {}
    for row in rows:
        same.setdefault(describe(row), []).append(row)
    if len(same) == 1:
        return next(iter(same))
    return "; ".join(f"{_names(alike)}: {text}" for text, alike in same.items())
