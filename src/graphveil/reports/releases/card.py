"""The privacy card of a published graph, and its figures in words."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphveil.errors import DataError, InputError
from graphveil.files.reading import read_json
from graphveil.files.serial import to_json
from graphveil.files.writing import write_text
from graphveil.graphs import Graph
from graphveil.privacy.statement.guarantee import claim
from graphveil.reports.attacks.files import NONE_RUN, AttackResults, attacks_section
from graphveil.reports.base import card as cards
from graphveil.reports.base import front_matter, text, words
from graphveil.reports.base.card import Card, Command, Paragraph, Points, Row, Section, Table
from graphveil.reports.base.parties import parties_of
from graphveil.reports.base.record import RunRecord
from graphveil.reports.runs.card import results
from graphveil.runtime.progress import ProgressCallback
from graphveil.runtime.words import count_of

if TYPE_CHECKING:
    from graphveil.graphs import Release

#: Key of a figure -> its name.
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
_POSTPROCESSING = (
    "Everything made from this graph (models, figures, other graphs) is covered by the same guarantee at no extra cost."
)
_CURATOR = (
    "For the curator only, NOT TO BE PUBLISHED:",
    "the attacks below were computed from the true data, without noise. The release has a card of its own.",
)
_NO_ATTACKS = (
    "Attacks are never shown here: they need the true edges, which only the curator has, and their figures "
    "are not covered by epsilon. The curator can run them and keep the results outside the release:"
)


def release_card(
    released: Graph, folder: Path, *, lift: RunRecord | None = None, attacks: AttackResults | None = None
) -> Card:
    """Return the card of a released graph: what is protected, what is in it, what it preserves.

    Args:
        folder: only its name is shown, since the card is published.
        lift: the result of a training on it, if there was one.
        attacks: results of attacks, for the curator's own card; None for the card that is published.
    """
    release: Release = released.release
    guarantee = release.guarantee
    # Only the folder's name: a published card must not show a path of the curator's machine.
    attack_command = f"graphveil attack {shlex.quote(folder.name)} --attack published-edges --truth DATA"
    section = attacks_section(attacks or {}, attack_command, none=NONE_RUN if attacks is not None else _NO_ATTACKS)
    origin = f"Made by graphveil {release.version}, {text.moment(release.created)}"
    used = words.used_settings(release.settings, release.guarantee)
    feature_tables = ("features",) if released.x.is_sparse_csr else ()
    count_tables = ("counts",) if release.counts is not None else ()
    return Card(
        title=f"Privacy card: {released.schema.name}, released by {release.method}",
        sentence=f"{claim(guarantee)} {_POSTPROCESSING}",
        alarms=(*((_CURATOR,) if attacks is not None else ()), *cards.alarms(guarantee, "release")),
        sections=(
            cards.protected_section(guarantee, words.trusted_parties(guarantee)),
            cards.exposed_section(words.not_protected(guarantee, release.settings)),
            cards.picture_section(parties_of(guarantee, release.method, release.settings, release=True)),
            _lift(lift, folder),
            section,
            *_content(released),
            cards.spent_section(release.ledger),
            Section("Settings", (Points((text.settings(used), origin)),)),
        ),
        matter=front_matter.of_data(
            front_matter.Subject("release", release.method, released.schema.name, guarantee, release.version),
            nodes=int(released.num_nodes),
            tables=("nodes", "edges", *feature_tables, *count_tables),
        ),
    )


def is_release(folder: Path) -> bool:
    """Whether a folder holds a released graph."""
    return (folder / "release.json").is_file()


def rewrite_card(folder: Path) -> dict[str, str | None]:
    """Rewrite both cards of a release; return the command's output. DataError: a file is missing or was changed."""
    from graphveil.graphs import load_plain

    released = load_plain(folder)
    cards.write_card(release_card(released, folder, lift=read_lift(folder)), folder)
    facts = {"method": released.release.method, "data": released.schema.name, "void": released.release.guarantee.void}
    return {"run": str(folder), "report": None, "card": str(folder / cards.MARKDOWN), **facts}


def _lift(lift: RunRecord | None, folder: Path) -> Section:
    """Return the accuracy of a plain network on the release, beside the best control."""
    if lift is not None:
        return results(lift, f"a plain network ({lift.method}) on this folder")
    sentence = "Not measured yet: the lift of the private data is unknown. To measure it, at no privacy cost:"
    command = f"graphveil report {shlex.quote(folder.name)} --lift"
    return Section("Lift over the free baseline", (Paragraph(sentence), Command(command)))


def size_of(released: Graph) -> str:
    """How many nodes and edges a release has, and how many of the edges are generated."""
    edges = edge_counts(released)
    size = f"{count_of(int(released.num_nodes), 'node')}, {count_of(edges['edges'], 'undirected edge')}"
    if edges["made"] is not None:
        size += f": {edges['public']:,} public, {edges['made']:,} generated in place of private ones"
    return size


def _content(released: Graph) -> tuple[Section, ...]:
    """Return the size of the release, its notes, and figures of its structure."""
    release: Release = released.release
    inside = Section("What is in it", (Points((size_of(released), *release.notes)),))
    rows = figures(release.statistics) if edge_counts(released)["made"] is not None else []
    if not rows:
        return (inside,)
    sentence = (
        "Figures of the released graph, which anybody can compute, beside those of its public edges alone. How close "
        "they are to the truth is for the curator only, and not shown here."
    )
    table = Table(("", "released", "public edges alone", "generated edges alone"), tuple(Row(row) for row in rows))
    return (inside, Section("What it keeps", (Paragraph(sentence), table)))


def edge_counts(released: Graph) -> dict[str, Any]:
    """How many edges a released graph has, and how many are public and generated; None where none is generated."""
    listed = released.edge_index.shape[1] // (1 if released.schema.directed else 2)
    public = released.get("public_edges")
    if public is None or not released.release.edges:
        return {"edges": listed, "public": None, "made": None}
    public_count = int(public.sum()) // 2
    return {"edges": listed, "public": public_count, "made": listed - public_count}


def figures(statistics: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The public figures of a release as rows: name, released, public edges alone, generated edges alone."""
    if not all(part in statistics for part in _PARTS):
        return []
    parts = [statistics[part] for part in _PARTS]
    return [(meaning, *(_figure(part.get(key)) for part in parts)) for key, meaning in FIGURES.items()]


def curator_figures(private: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The curator's own figures as rows: distances of the released graph, and of its public edges, from the truth."""
    released, public_alone = (private[part] for part in _DISTANCES)
    return [(name, _figure(released[name]), _figure(public_alone.get(name))) for name in released]


def overlap_sentence(private: Mapping[str, Any]) -> str:
    """How many generated edges are true private edges, beside chance."""
    overlap = private["overlap"]
    inside = overlap["low"] <= overlap["common"] <= overlap["high"]
    verdict = "no more than chance" if inside else "other than chance"
    are = "is a true private one" if overlap["common"] == 1 else "are true private ones"
    hits = f"{overlap['common']:,} of {count_of(overlap['synthetic'], 'generated edge')} {are}"
    true = f"{hits} (of {overlap['true']:,})"
    chance = f"{overlap['chance']:,.1f} ({overlap['low']:,} to {overlap['high']:,} in 95%)"
    return f"{true}; as many random pairs would hit {chance}: {verdict}"


def _figure(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else text.number(float(f"{value:.3g}"))


FILE = "lift.json"
METHOD, REPEATS = "gcn", 5
SETTINGS: Mapping[str, Any] = {}  # the defaults of METHOD


def measure_lift(folder: Path, *, progress: ProgressCallback | None = None) -> RunRecord:
    """Train on a release, on several splits with all controls, and write the record into its folder.

    Args:
        folder: of a release; the record is written into it.

    Raises:
        DataError: it is incomplete or was changed; InputError: it has no labels for the score.
    """
    from graphveil.graphs import load_plain
    from graphveil.methods.runs import experiment
    from graphveil.privacy import SecureRandomness

    # From the published folder, never from the curator's graph: so it costs no privacy.
    graph = load_plain(folder)
    result = experiment.run(
        METHOD, graph, settings=SETTINGS, randomness=SecureRandomness(), repeats=REPEATS, progress=progress
    )
    record = RunRecord.from_result(result, options={"seed": 0, "repeats": REPEATS})
    write_text(folder / FILE, to_json(record.to_dict(), indent=2) + "\n")
    return record


def read_lift(folder: Path) -> RunRecord | None:
    """Return the record that `measure_lift` wrote into a folder, or None; DataError where it is damaged."""
    file = folder / FILE
    if not file.is_file():
        return None
    try:
        return RunRecord.from_dict(read_json(file))
    except (OSError, ValueError, AttributeError, TypeError, InputError) as error:
        raise DataError(f"damaged: {error}", where=str(file), remedy="remove it and measure again") from error
