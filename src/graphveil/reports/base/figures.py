"""Helpers for matplotlib figures of reports: pure functions, no pyplot, no state between calls.

Colours are Okabe and Ito's (readable with every common colour blindness); text is drawn in ``INK``, which
:func:`inline_svg` replaces by the page's colour, so that one picture suits light and dark pages.
"""

from __future__ import annotations

import io
import re
from html import escape
from typing import Literal

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from graphveil.reports.base.text import printable

INK = "#1b1f24"
BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#8a9099"
COLOURS = (BLUE, ORANGE, GREEN, "#cc79a7", "#e69f00", "#56b4e9", GREY)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def drawable(name: str) -> str:
    """A name in letters that matplotlib's own font has; all other letters become question marks."""
    return printable(name).encode("latin-1", "replace").decode("latin-1")


def clean(axes: Axes, *, grid: Literal["x", "y"]) -> None:
    """Remove frame and ticks, and draw a faint grid along one axis.

    Args:
        axes: changed in place, after everything is drawn on it.
    """
    axes.spines[["top", "right"]].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(GREY)
    axes.tick_params(colors=INK, length=0)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)
    axes.set_axisbelow(True)
    axes.grid(axis=grid, color=GREY, alpha=0.25, linewidth=0.8)
    # A name with dollar signs must not be rendered as mathematics.
    for text in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        text.set_parse_math(False)


def png(figure: Figure) -> bytes:
    """The figure as PNG on white, of 160 dots an inch."""
    buffer = io.BytesIO()
    # Without matplotlib's version, so that equal figures give equal bytes.
    figure.savefig(buffer, format="png", dpi=160, facecolor="white", metadata={"Software": None})
    return buffer.getvalue()


def svg(figure: Figure, *, background: str | None = None) -> str:
    """The figure as a stand-alone SVG file with text as text.

    Args:
        background: a colour, for pictures on pages of unknown colour; None: transparent.
    """
    buffer = io.StringIO()
    # No date and a fixed salt: equal figures give equal files.
    no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "graphveil", "font.family": "sans-serif"}):
        page = {"transparent": True} if background is None else {"facecolor": background}
        figure.savefig(buffer, format="svg", metadata=no_metadata, **page)
    return buffer.getvalue()


def inline_svg(figure: Figure, *, name: str, alt: str) -> str:
    """The figure as an ``<svg>`` element for a page: its ink is the colour of the text around it.

    Args:
        name: unique on the page; prefix of all ids.
        alt: what it shows, for those who cannot see it.
    """
    text = svg(figure)
    text = text[text.index("<svg") :]
    text = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", text)
    text = text.replace("xlink:href", "href").replace(INK, "currentColor")
    # matplotlib uses the same ids in every figure, which would clash on one page.
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'href="#', f'href="#{name}-', text)
    text = text.replace("url(#", f"url(#{name}-")
    text = re.sub(r"<svg[^>]*?viewBox", "<svg viewBox", text, count=1)
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(printable(alt))}" ', 1)
