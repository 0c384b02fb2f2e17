"""Finished work for the page: figures, guarantee and files; and a picture of what the data does not declare private.

The full report, with everything that its maker may see, stays on the machine; a page gets neither a private edge nor a
private label, nor where nodes lie if that follows from private edges.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from graphveil.errors import GraphveilError, InputError
from graphveil.graphs.load import is_name
from graphveil.graphs.value.schema import PRIVATE_PARTS
from graphveil.privacy import Guarantee
from graphveil.reports.base.drawing import picture_json
from graphveil.reports.base.parties import parties_of, uncovered
from graphveil.reports.base.record import number_of
from graphveil.reports.base.words import meaning
from graphveil.reports.runs.picture import FILE as PICTURE
from graphveil.reports.runs.picture import RELEASED, Picture
from graphveil.studio.models import Edges, Graph, Node
from graphveil.studio.refusals import Refusal
from graphveil.studio.root import MARKS, Kind, Root, declaration_of, object_in

#: What a page may download of a folder: the name, and where it lies, first come.
FILES: Final = (
    *("card.md", "card.html", "config.toml", "guarantee.json", "ledger.json", "result.json", "release.json"),
    *("agreement.toml", "collection.json", "public/card.html", "public/report.html"),
)
#: The file with the facts of each kind of work: of a federation its outcome, not its agreement.
_RECORDS: Final[Mapping[Kind, str]] = {**MARKS, "federation": "outcome.json"}
#: Nodes that are drawn at most.
MOST: Final = 3_000
_SEED: Final = 20_240


@dataclass(frozen=True)
class FinishedWork:
    """A folder of finished work below a root, its path as pages name it."""

    root: Root
    path: str
    kind: Kind

    @property
    def folder(self) -> Path:
        return self.root.existing(self.path)

    def facts(self) -> dict[str, Any]:
        """Return what the folder says of itself, paths of this machine as pages name them."""
        facts = self._object(_RECORDS[self.kind])
        options = facts.get("options")
        if isinstance(options, dict) and isinstance(options.get("source"), str):
            facts["options"] = {**options, "source": self._source_name(options["source"])}
        if self.kind == "collection":
            task = object_in(self.folder / "task.json").get("task")
            promised = task.get("guarantee") if isinstance(task, dict) else None
            facts["guarantee_sentence"] = " ".join(map(str, promised or ()))
        return facts | (meaning(facts) if self.kind == "run" else {})

    def files(self) -> list[str]:
        return [name for name in FILES if self.file(name) is not None]

    def file(self, name: str) -> Path | None:
        """Return a file that a page may download, by its name in `FILES`, its links resolved; None for none."""
        if name not in FILES:
            return None
        paths = (self.folder / name, self.folder / "public" / name)
        return next((path.resolve() for path in paths if self.root.holds(path)), None)

    def attacks(self) -> list[str]:
        return sorted(file.stem.removeprefix("attack-") for file in self.folder.glob("attack-*.json"))

    def private(self) -> tuple[str, ...]:
        """Return what the data of a run declares private: as its model recorded it, and as its folder says now."""
        if self.kind != "run":
            return ()
        options = self._object("result.json").get("options")
        source = str(options.get("source", "")) if isinstance(options, dict) else ""
        if source and is_name(source):
            return ()
        declared, _ = declaration_of(Path(source)) if source else (None, None)
        parts = {*_recorded_as_private(self.folder), *(() if declared is None else declared.private)}
        return tuple(part for part in PRIVATE_PARTS if part in parts)

    def parties(self) -> dict[str, Any] | None:
        """Return the picture of who sees what, None of a collection."""
        if self.kind == "collection":
            return None
        if self.kind == "federation":
            from graphveil.federation.core.agreement import read_agreement
            from graphveil.reports.federation.parties import federation_parties

            return picture_json(federation_parties(read_agreement(self.folder).setting))
        facts = self.facts()
        guarantee, recorded = _guarantee(facts), facts.get("settings")
        if guarantee is None or not isinstance(recorded, dict):
            return None
        method, settings = str(facts.get("method")), {key: number_of(value) for key, value in recorded.items()}
        is_release = self.kind == "release"
        return picture_json(parties_of(guarantee, method, settings, private=self.private(), release=is_release))

    def graph(self) -> Graph:
        """Return a sample of the graph with predictions and errors, as far as the data allows."""
        private = self.private()
        picture = self._picture(private)
        if picture is None:
            return _empty_graph("this run drew no picture that a page may show: no guarantee covers its predictions")
        if private and (reason := _why_hidden(self._object("result.json"), private)) is not None:
            return _empty_graph(reason)
        return _drawing(picture, private)

    def _object(self, name: str) -> dict[str, Any]:
        file = self.folder / name
        return object_in(file) if self.root.holds(file) else {}

    def _picture(self, private: Sequence[str]) -> Picture | None:
        """Return the maker's picture, or the copy for everybody if only that has no private edges."""
        pictures = []
        for file in (folder / PICTURE for folder in (self.folder, self.folder / "public")):
            try:
                pictures += [Picture.from_dict(object_in(file))] if self.root.holds(file) else []
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise InputError("is damaged", where=file.name) from error
        if "edges" in private:
            pictures.sort(key=lambda picture: not set(picture.edges) <= {RELEASED})
        return pictures[0] if pictures else None

    def _source_name(self, source: str) -> str:
        try:
            return self.root.relative(Path(source)) if source.startswith("/") else source
        except Refusal:
            return Path(source).name


def _recorded_as_private(folder: Path) -> Sequence[str]:
    """Return the parts that a run's model recorded as private; all of them where it cannot be read."""
    from safetensors import SafetensorError, safe_open

    files = [part / "model.safetensors" for part in (folder / "public", folder)]
    file = next((path for path in files if path.is_file()), files[1])
    try:
        with safe_open(file, "np") as model:
            recorded = json.loads(model.metadata()["graphveil"])["facts"]["schema"]["private"]
    except (OSError, SafetensorError, ValueError, KeyError, TypeError):
        return PRIVATE_PARTS
    return [str(part) for part in recorded]


def _guarantee(result: Mapping[str, Any]) -> Guarantee | None:
    try:
        return Guarantee.from_dict(result["guarantee"])
    except (KeyError, TypeError, ValueError, GraphveilError):
        return None


def _why_hidden(facts: Mapping[str, Any], private: Sequence[str]) -> str | None:
    """Return why predictions may not be shown where data is private; None where they may."""
    guarantee, recorded = _guarantee(facts), facts.get("settings")
    is_void = guarantee is None or guarantee.void is not None or math.isinf(guarantee.epsilon)
    if guarantee is None or is_void or not isinstance(recorded, dict):
        return "predictions are left out: no guarantee that holds covers them"
    if "one-node" in guarantee.unit.code:
        return "predictions are left out: with whole nodes protected, each is for that person's eyes alone"
    settings = {key: number_of(value) for key, value in recorded.items()}
    parts = " and ".join(uncovered(guarantee, str(facts.get("method")), settings, private))
    return (
        f"predictions are left out: they follow from private {parts}, which no epsilon covers here" if parts else None
    )


def _empty_graph(reason: str) -> Graph:
    return Graph(total=0, classes=[], nodes=[], edges=[], left_out=[reason])


def _drawing(picture: Picture, private: Sequence[str]) -> Graph:
    hides_edges, hides_labels = "edges" in private, "labels" in private
    kinds = {kind: pairs for kind, pairs in picture.edges.items() if not hides_edges or kind == RELEASED}
    count = len(picture.places)
    # Where the order, the choice and the places of nodes follow from private edges, none of them is shown.
    is_open = bool(kinds) and len(kinds) == len(picture.edges)
    if picture.edges and not is_open and count < picture.total:
        return _empty_graph("predictions are left out: who is in this sample follows from private edges")
    order = (np.arange(count) if is_open else np.random.default_rng(_SEED).permutation(count))[:MOST]
    places = (
        [picture.places[node] for node in order] if is_open else _by_class([picture.predicted[node] for node in order])
    )
    index_of = {int(node): index for index, node in enumerate(order)}
    return Graph(
        total=picture.total,
        classes=list(picture.classes),
        nodes=[
            _node(picture, int(node), place, hides_labels=hides_labels, hides_parts=bool(private))
            for node, place in zip(order, places, strict=True)
        ],
        edges=[
            Edges(kind=kind, pairs=[(index_of[u], index_of[v]) for u, v in pairs if u in index_of and v in index_of])
            for kind, pairs in kinds.items()
        ],
        left_out=_left_out(picture, not is_open, hides_labels, len(order)),
    )


def _node(picture: Picture, node: int, place: tuple[int, int], *, hides_labels: bool, hides_parts: bool) -> Node:
    label = None if hides_labels or not picture.labels or picture.labels[node] < 0 else picture.labels[node]
    return Node(
        x=place[0],
        y=place[1],
        predicted=picture.predicted[node],
        label=label,
        right=None if label is None else label == picture.predicted[node],
        part=None if hides_parts or not picture.parts else picture.parts[node],
    )


def _by_class(predicted: Sequence[int]) -> list[tuple[int, int]]:
    """Return places that show the predicted class and nothing else: random ones in a square for each class."""
    classes = sorted(set(predicted))
    squares = math.ceil(math.sqrt(len(classes)))
    inside = np.random.default_rng(_SEED).uniform(0.06, 0.94, size=(len(predicted), 2))
    corners = np.array([divmod(classes.index(label), squares)[::-1] for label in predicted])
    return [(int(x), int(y)) for x, y in (corners + inside) * 1_000 / squares]


def _left_out(picture: Picture, hides_edges: bool, hides_labels: bool, count: int) -> list[str]:
    sentences = []
    if hides_edges:
        sentences.append(
            "Edges are left out: the data declares them private, or only people themselves know them; nodes stand by "
            "predicted class, in no order."
        )
    if hides_labels:
        sentences.append("True labels and errors are left out, because the data declares labels private.")
    elif not picture.labels:
        sentences.append("True labels and errors are not part of this picture.")
    if count < picture.total:
        sentences.append(f"A sample: {count:,} of {picture.total:,} nodes.")
    return sentences
