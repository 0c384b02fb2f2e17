"""The picture of trust as an SVG of one column: a box for each party, and between boxes a row for each arrow."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Final

from markupsafe import Markup

from graphveil.reports.base.parties import Arrow, Parties, State
from graphveil.reports.base.templating import render

#: In SVG units, each nearly a pixel on a narrow phone.
WIDTH, LINE, _TOP, _RAIL = 320, 17, 6, 14
#: Letters that fit into a line in the widest of the usual fonts: normal, and bold.
_LINE_LETTERS, _BOLD_LETTERS = 43, 36
_COLOURS: Final = {State.NOISY: "accent", State.PLAIN: "alarm"}
_DASHES: Final = {State.SHARES: "2 3", State.PUBLIC: "6 3", State.DERIVED: "6 3"}


@dataclass(frozen=True)
class Shape:
    """A box, or the row of an arrow."""

    key: str
    label: str  # all of it in words, for those who cannot see it
    top: int
    left: int
    lines: tuple[str, ...]
    strong: int  # how many of the lines are bold
    colour: str
    path: str = ""  # of an arrow: its line
    heads: str = ""  # of an arrow: its heads
    dashes: str = ""

    @property
    def height(self) -> int:
        return LINE * len(self.lines) + 2 * _TOP


def picture_svg(picture: Parties, *, live: bool = False) -> Markup:
    """Return the picture as an SVG element that takes the page's colours.

    Args:
        live: whether each party and arrow can be focused, as a button with `data-party` or `data-arrow`.
    """
    lines = [picture.line(arrow) for arrow in picture.arrows]
    boxes, arrows = _layout(picture)
    content: dict[str, Any] = {
        "shapes": sorted([*boxes, *arrows], key=lambda shape: shape.top),
        "void": wrap(picture.void, _LINE_LETTERS),
        "desc": lines,
    }
    banner = LINE * len(content["void"]) + 2 * _TOP if content["void"] else 0
    height = boxes[-1].top + boxes[-1].height + banner + 2
    return Markup(render("parties.html.j2", **content, width=WIDTH, line=LINE, height=height, banner=banner, live=live))


def picture_json(picture: Parties) -> dict[str, Any]:
    """Return the picture as JSON types, with the interactive drawing."""
    return {**picture.to_dict(), "svg": str(picture_svg(picture, live=True))}


def _layout(picture: Parties) -> tuple[list[Shape], list[Shape]]:
    """Return boxes and rows of arrows from top to bottom; an arrow that passes a party runs beside its box."""
    order = [party.key for party in picture.parties]
    spans = [sorted((order.index(arrow.source), order.index(arrow.target))) for arrow in picture.arrows]
    boxes, tops, y = [], {}, 1
    for number, party in enumerate(picture.parties):
        left = _RAIL if any(first < number < last for first, last in spans) else 1
        lines = (party.name, *wrap(party.role, _LINE_LETTERS + 2))
        label, colour = f"{party.name}: {party.role}", "accent" if party.trusted else "soft"
        boxes.append(Shape(party.key, label, y, left, lines, 1, colour))
        y += boxes[-1].height
        # Arrows that pass the next party come last, so that they cross no row.
        starting = [(last - first, index) for index, (first, last) in enumerate(spans) if first == number]
        for span, index in sorted(starting):
            tops[index] = y
            y += LINE * sum(map(len, _texts(picture, picture.arrows[index], passing=span > 1))) + 2 * _TOP
    rows = [
        _row(picture, index, top, boxes[spans[index][1]].top, passing=spans[index][1] - spans[index][0] > 1)
        for index, top in tops.items()
    ]
    return boxes, rows


def _texts(picture: Parties, arrow: Arrow, *, passing: bool) -> tuple[list[str], list[str]]:
    """Return the lines of an arrow's kind and of its price; an arrow that passes a party names both ends."""
    ends = f"{picture.ends(arrow)}: " if passing else ""
    return wrap(ends + arrow.kind, _BOLD_LETTERS), wrap(picture.price(arrow), _LINE_LETTERS)


def _row(picture: Parties, index: int, top: int, end: int, *, passing: bool) -> Shape:
    arrow, order = picture.arrows[index], [party.key for party in picture.parties]
    words, price = _texts(picture, arrow, passing=passing)
    down = order.index(arrow.source) < order.index(arrow.target)
    bottom = end if passing else top + LINE * (len(words) + len(price)) + 2 * _TOP
    x = _RAIL / 2 if passing else _RAIL + 6
    ends = ((bottom - 2, -7),) * (down or arrow.mutual) + ((top + 2, 7),) * (not down or arrow.mutual)
    heads = "".join(f"M{x} {tip}L{x - 4} {tip + back}H{x + 4}Z" for tip, back in ends)
    # Raw data at a trusted party are no alarm.
    colour = "ink" if picture.party_named(arrow.target).trusted else _COLOURS.get(arrow.state, "soft")
    line, dashes = f"M{x} {top + 2}V{bottom - 2}", _DASHES.get(arrow.state, "")
    return Shape(
        f"arrow-{index + 1}",
        picture.line(arrow),
        top,
        _RAIL + 18,
        (*words, *price),
        len(words),
        colour,
        line,
        heads,
        dashes,
    )
