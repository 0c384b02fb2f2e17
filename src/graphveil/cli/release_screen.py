"""The answer of ``graphveil release`` as people read it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from graphveil.cli.screens import three_lines, voided
from graphveil.cli.tables import pairs, rows
from graphveil.graphs import Graph
from graphveil.reports.base import words
from graphveil.reports.base.card import MARKDOWN
from graphveil.reports.base.text import printable
from graphveil.reports.releases import card as release_card


def released(graph: Graph, out: Path, curator: Mapping[str, Any] | None) -> RenderableType:
    """What was published, what it promises, what it keeps, and what to do with it.

    Args:
        graph: the published graph.
        out: the folder it was written to.
        curator: figures computed from the truth, for the curator's screen alone; None where there are none.
    """
    release = graph.release
    head = Text(
        f"{release.method} on {printable(graph.schema.name)}: released into {printable(str(out))}", style="bold"
    )
    parts: list[RenderableType] = [head, Text()]
    if release.guarantee.void:
        parts[:0] = [voided(release.guarantee.void, "release"), Text()]
    parts += _structure(graph, curator)
    exposed = words.not_protected(release.guarantee, release.settings)
    facts = [
        ("In it", _content(graph)),
        *(("Note", note) for note in release.notes),
        ("Next", f"graphveil train {release.method} {out} (costs no more privacy; the same guarantee)"),
    ]
    return Group(*parts, three_lines(release.guarantee, exposed, out / MARKDOWN), Text(), pairs(facts))


def _content(graph: Graph) -> str:
    edges = release_card.counts(graph)
    text = f"{int(graph.num_nodes):,} nodes, {edges['edges']:,} edges"
    if edges["made"] is not None:
        text += f": {edges['public']:,} public, {edges['made']:,} generated in place of private ones"
    return text


def _structure(graph: Graph, curator: Mapping[str, Any] | None) -> list[RenderableType]:
    figures = release_card.figures(graph.release.statistics)
    if not figures or curator is None:
        return []
    public = rows(("figure", "released", "public edges alone", "generated edges alone"), figures)
    private = rows(("distance to the truth", "released", "public edges alone"), release_card.curator_figures(curator))
    return [
        public,
        Text(),
        Text("For the curator only, computed from the true edges; NOT in the folder:", style="bold"),
        private,
        Text(release_card.overlap_sentence(curator)),
        Text(),
    ]
