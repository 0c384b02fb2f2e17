"""The picture of a graph: a value stored in a run folder, an SVG for print, and numbers for the page's script."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

FILE: Final = "picture.json"
#: Kinds of edges; the last three only in the owner's copy.
LINKED, PUBLIC, RELEASED = "linked", "public", "released"
BOTH, HIDDEN, MADE = "true and released", "true, not released", "released, not true"


@dataclass(frozen=True)
class Picture:
    """Positions, classes and edges of the drawn nodes; labels, parts, covered and names are empty in a public copy."""

    caption: tuple[str, ...]  # what is drawn, and who may see it, a sentence each
    total: int  # nodes of the whole graph, drawn or not
    classes: tuple[str, ...]
    places: tuple[tuple[int, int], ...]  # [n, 2] in [0, 1000]
    predicted: tuple[int, ...]  # class [n]
    edges: Mapping[str, tuple[tuple[int, int], ...]]  # kind -> pairs of nodes
    labels: tuple[int, ...] = ()  # true class [n], -1 where unknown
    parts: tuple[str, ...] = ()  # whether each node trains, validates, tests or takes no part [n]
    covered: tuple[str, ...] = ()  # which of its data are protected [n]
    names: tuple[str, ...] = ()  # row numbers [n]

    def to_dict(self) -> dict[str, Any]:
        content = asdict(self)
        return {"told": content.pop("caption"), **content}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Picture:
        """The inverse of `to_dict`; KeyError, TypeError or ValueError for a field of another kind."""
        nodes = len(content["places"])
        columns = {name: tuple(content[name]) for name in ("predicted", "labels", "parts", "covered", "names")}
        if any(len(column) not in (0, nodes) for column in columns.values()):
            raise ValueError("its columns have other lengths than its places")
        edges = {str(kind): tuple(_pair(pair, nodes) for pair in pairs) for kind, pairs in content["edges"].items()}
        return cls(
            caption=tuple(str(line) for line in content["told"]),
            total=int(content["total"]),
            classes=tuple(str(name) for name in content["classes"]),
            places=tuple(_pair(place, 1001) for place in content["places"]),
            predicted=tuple(int(label) for label in columns["predicted"]),
            edges=edges,
            labels=tuple(int(label) for label in columns["labels"]),
            parts=tuple(str(part) for part in columns["parts"]),
            covered=tuple(str(aspects) for aspects in columns["covered"]),
            names=tuple(str(name) for name in columns["names"]),
        )


def _pair(value: Any, below: int) -> tuple[int, int]:
    first, second = (int(end) for end in value)
    if not (0 <= first < below and 0 <= second < below):
        raise ValueError(f"{value} is no pair of numbers below {below}")
    return first, second


#: The colours of classes, repeated where there are more classes.
COLOURS: Final = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"),
    *("#8c6d31", "#7b5ea7", "#b3261e", "#3a7d44", "#5b6470", "#a3a500"),
)
_STROKES: Final = {**dict.fromkeys((LINKED, PUBLIC, RELEASED, BOTH), "#8a9099"), HIDDEN: "#d55e00", MADE: "#56b4e9"}
_WORDS: Final = {
    LINKED: "linked",
    PUBLIC: "linked, publicly",
    RELEASED: "linked in the release",
    BOTH: "true and released",
    HIDDEN: "true, not in the release",
    MADE: "in the release, not true",
}
#: With more edges than this, lines are thin, or they would hide the nodes.
_THIN_FROM: Final = 2_500


@dataclass(frozen=True)
class Key:
    colour: str
    meaning: str


@dataclass(frozen=True)
class Drawing:
    picture: Picture

    @property
    def nodes(self) -> tuple[Key, ...]:
        """The legend of the nodes: predicted classes and their counts."""
        used = sorted(set(self.picture.predicted))
        counts = {label: self.picture.predicted.count(label) for label in used}
        return tuple(
            Key(_colour(label), f"predicted {self.picture.classes[label]} ({counts[label]:,})")
            for label in used
            if label < len(self.picture.classes)
        )

    @property
    def edges(self) -> tuple[Key, ...]:
        return tuple(
            Key(_stroke(kind), f"{_word(kind)} ({len(pairs):,} drawn)") for kind, pairs in self.picture.edges.items()
        )

    @property
    def wrong(self) -> str:
        """How many of the drawn predictions are wrong, among nodes with a known label; "" without labels."""
        pairs = zip(self.picture.predicted, self.picture.labels, strict=False)
        wrong = [predicted != label for predicted, label in pairs if label >= 0]
        if not wrong:
            return ""
        are = "is wrong: it is a ring" if sum(wrong) == 1 else "are wrong: they are rings"
        return f"{sum(wrong):,} of the {len(wrong):,} predictions drawn {are}."

    @property
    def alt(self) -> str:
        """What the picture shows, for those who cannot see it."""
        lines = (*self.picture.caption, *(key.meaning for key in self.edges), self.wrong)
        return " ".join(line for line in lines if line)

    def svg(self) -> str:
        """The picture as an ``<svg>`` element, small: one path for all dots of a class and all lines of a kind."""
        picture = self.picture
        dots = list(zip(picture.places, picture.predicted, strict=False))
        shapes = [self._path(kind, pairs) for kind, pairs in picture.edges.items()]
        for label in sorted(set(picture.predicted)):
            shapes.append(_dots([place for place, predicted in dots if predicted == label], _colour(label), 5.5))
        # Wrong predictions are rings: a spot of the page's colour inside the dot.
        labelled = zip(dots, picture.labels, strict=False)
        wrong = [place for (place, predicted), label in labelled if label >= 0 and label != predicted]
        shapes.append(_dots(wrong, "var(--page)", 2.75))
        return f'<svg viewBox="-15 -15 1030 1030" aria-hidden="true">{"".join(shapes)}</svg>'

    def numbers(self) -> dict[str, Any]:
        kinds = [
            {"word": _word(kind), "colour": _stroke(kind), "pairs": pairs} for kind, pairs in self.picture.edges.items()
        ]
        colours = [_colour(label) for label in range(len(self.picture.classes))]
        picture = self.picture
        return {
            "places": picture.places,
            "predicted": picture.predicted,
            "classes": picture.classes,
            "labels": picture.labels,
            "parts": picture.parts,
            "covered": picture.covered,
            "names": picture.names,
            "edges": kinds,
            "colours": colours,
        }

    def _path(self, kind: str, pairs: tuple[tuple[int, int], ...]) -> str:
        place = self.picture.places
        # One path: a thousand elements would make the page slow and large.
        steps = "".join("M{} {}L{} {}".format(*place[first], *place[second]) for first, second in pairs)
        width, opacity = (0.8, 0.35) if len(pairs) > _THIN_FROM else (1.2, 0.55)
        stroke = f'stroke="{_stroke(kind)}" stroke-width="{width}" stroke-opacity="{opacity}" fill="none"'
        return f'<path d="{steps}" {stroke}/>' if steps else ""


def _dots(places: Iterable[tuple[int, int]], colour: str, radius: float) -> str:
    # Two half circles for each dot: zero-length lines with round ends are shorter, but missing in browsers' PDFs.
    half = f"a{radius} {radius} 0 1 0"
    dots = "".join(f"M{x - radius:g} {y}{half} {2 * radius:g} 0{half}-{2 * radius:g} 0" for x, y in places)
    return f'<path d="{dots}" fill="{colour}"/>' if dots else ""


def _colour(label: int) -> str:
    return COLOURS[label % len(COLOURS)]


def _stroke(kind: str) -> str:
    return _STROKES.get(kind, _STROKES[LINKED])


def _word(kind: str) -> str:
    # An unknown kind, from an edited file, is shown as the plainest kind.
    return _WORDS.get(kind, _WORDS[LINKED])
