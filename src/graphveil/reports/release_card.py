"""The privacy card of a published graph, and its figures in words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphveil.reports import words
from graphveil.reports.files import write_text
from graphveil.reports.render import Total, markdown
from graphveil.reports.text import number

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from graphveil.graphs import Release

#: Figure -> what it is called.
FIGURES = {
    "edges": "edges",
    "mean_degree": "mean degree",
    "max_degree": "largest degree",
    "isolated": "nodes without an edge",
    "clustering": "clustering (closed wedges)",
    "homophily": "homophily (edges inside a class)",
}
_PARTS = ("released", "public_edges_only", "synthetic_edges_only")
_DISTANCES = ("distance_of_released", "distance_of_public_edges_only")


def release_card(graph: Data) -> str:
    """The card of a released graph: what is protected, what is in it, what it keeps. Markdown."""
    release: Release = graph.release
    made = counts(graph)["made"]
    return markdown(
        "release.md.j2",
        {
            "name": graph.schema.name,
            "release": release,
            "parts": release.guarantee.parts or (release.guarantee,),
            "exposed": words.not_protected(release.guarantee, release.settings),
            "nodes": f"{int(graph.num_nodes):,}",
            **{name: None if value is None else f"{value:,}" for name, value in counts(graph).items()},
            "structure": figures(release.statistics) if made is not None else [],
            "totals": [
                Total(unit, *release.ledger.total(unit))
                for unit in dict.fromkeys(spend.unit for spend in release.ledger.spends)
            ],
        },
    )


def is_release(folder: Path) -> bool:
    """Whether a folder says that it is a released graph."""
    return (folder / "release.json").is_file()


def rewrite_card(folder: Path) -> dict[str, str | None]:
    """Write card.md of a released graph anew; return what the command answers.

    Raises:
        DataError: the release is incomplete or was changed.
    """
    from graphveil.graphs import load_graph

    graph = load_graph(folder)
    write_text(folder / "card.md", release_card(graph))
    about = {"method": graph.release.method, "data": graph.schema.name}
    return {"run": str(folder), "report": None, "card": str(folder / "card.md"), **about}


def counts(graph: Data) -> dict[str, int | None]:
    """How many edges a released graph has, and how many of them are public and made; None where none was made."""
    listed = graph.edge_index.shape[1] // (1 if graph.schema.directed else 2)
    public = graph.get("public_edges")
    if public is None or not graph.release.edges:
        return {"edges": listed, "public": None, "made": None}
    known = int(public.sum()) // 2
    return {"edges": listed, "public": known, "made": listed - known}


def figures(statistics: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The public figures of a release as rows: name, released, public edges alone, made edges alone."""
    if not all(part in statistics for part in _PARTS):
        return []
    parts = [statistics[part] for part in _PARTS]
    return [(meaning, *(_figure(part.get(key)) for part in parts)) for key, meaning in FIGURES.items()]


def curator_figures(kept: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The curator's own figures as rows: distance to the truth of the released graph, and of its public edges alone."""
    ours, theirs = (kept[part] for part in _DISTANCES)
    return [(name, _figure(ours[name]), _figure(theirs.get(name))) for name in ours]


def overlap_sentence(kept: Mapping[str, Any]) -> str:
    """How many made edges are true private ones, beside chance."""
    found = kept["overlap"]
    inside = found["low"] <= found["common"] <= found["high"]
    verdict = "no more than chance" if inside else "other than chance"
    true = f"{found['common']:,} of {found['synthetic']:,} made edges are true private ones (of {found['true']:,})"
    chance = f"{found['chance']:,.1f} ({found['low']:,} to {found['high']:,} in 95%)"
    return f"{true}; as many random pairs would hit {chance}: {verdict}"


def _figure(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else number(float(f"{value:.3g}"))
