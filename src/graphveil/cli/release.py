"""``graphveil release``: publish one private graph, once, as a folder that anybody may train on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphveil.cli import choices, options
from graphveil.cli.console import complain, emit, working
from graphveil.errors import InputError
from graphveil.graphs import Graph

if TYPE_CHECKING:
    from graphveil.methods.base.estimator import Estimator
    from graphveil.methods.base.method import AnyMethod

Method = Annotated[
    str,
    typer.Argument(
        metavar="METHOD",
        help="Edges: class-counts, edge-rr, edge-rand, lap-graph, priv-hrg; features: feature-rr; both: heterorr.",
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder to create.")]
NoiseSeed = Annotated[
    int | None,
    typer.Option(
        "--reproducible-noise", metavar="SEED", help="Repeatable noise, for experiments. VOIDS the guarantee."
    ),
]
DrawSeed = Annotated[int, typer.Option("--seed", min=0, help="Fixes the draw of --private-share, never the noise.")]


def release(
    context: typer.Context,
    method: Method,
    data: options.Data,
    out: Out,
    data_root: options.DataRoot = None,
    epsilon_x: options.EpsilonX = None,
    epsilon_a: options.EpsilonA = None,
    epsilon_y: options.EpsilonY = None,
    delta: options.Delta = None,
    settings: options.Settings = None,
    private_share: options.PrivateShare = None,
    seed: DrawSeed = 0,
    reproducible_noise: NoiseSeed = None,
    as_json: options.Json = False,
) -> None:
    """Publish a graph with private features or edges; using it later costs no more privacy.

    Give an epsilon for each part the method protects: a release cannot be taken back.
    """
    info = find_release(method)
    chosen = choices.collect(method, info, context.params)

    from graphveil.graphs import load_plain, write_release
    from graphveil.methods.registry import build_method
    from graphveil.methods.release import report as release_report
    from graphveil.methods.release.entries import require_epsilons
    from graphveil.reports.base import card as cards
    from graphveil.reports.base import files
    from graphveil.reports.releases.card import release_card
    from graphveil.writing import room_for, writing

    # No default here: for training a forgotten epsilon can be paid again, a publication cannot be taken back.
    require_epsilons(info, chosen)
    files.refuse_used_folder(out)
    with working() as tell:
        graph = choices.drawn(load_plain(data, data_root, progress=tell), private_share, seed)
        # A second release of released data would state an epsilon of its own, on top of one that it does not mention.
        refuse_release(graph, method)
        choices.warn_of_size([(method, chosen)], graph)
        maker = build_method(method, chosen, len(graph.schema.classes))
        warn_of_open_parts(maker, graph)
        tell_outlook(maker, graph)
        # Space before noise: a release that was paid for and cannot be written is lost.
        with room_for(out, choices.room_of(graph)):
            released = maker.release(graph, randomness=choices.noise(reproducible_noise), method=method, progress=tell)
            kept = release_report.kept_structure(graph, released)
        released = release_report.with_statistics(released, kept)
        if out.is_dir():  # empty, as was seen above
            with writing(out):
                out.rmdir()
        pages = cards.pages(release_card(released, out))
        write_release(released, out, released.release, card=pages[cards.MARKDOWN], page=pages[cards.HTML])
    curator = None if kept is None else dict(kept.curator)
    answer = answered(released, out, curator)
    from graphveil.cli import release_screen

    emit(answer, as_json=as_json, screen=lambda: release_screen.released(released, out, curator))


def find_release(name: str) -> AnyMethod:
    """The way to publish called ``name``, with the settings that publishing takes.

    Raises:
        InputError: there is none.
    """
    from dataclasses import replace

    from graphveil.methods import METHODS
    from graphveil.methods.base.method import RELEASE
    from graphveil.methods.registry import tagged
    from graphveil.methods.release.entries import OPTIONS

    known = tagged(RELEASE)
    if name not in known:
        raise InputError(f"no release method {name!r}", allowed=", ".join(known), remedy=choices.nearest(name, known))
    info = METHODS[name]
    return replace(info, options={key: option for key, option in info.options.items() if key in OPTIONS})


def refuse_release(graph: Graph, method: str) -> None:
    """Refuse to publish a release again.

    Args:
        graph: what is to be published.
        method: the name of the method that would publish it.

    Raises:
        InputError: the graph is one.
    """
    if graph.get("release") is not None:
        raise InputError(
            f"is a release already ({graph.release.method})",
            where=graph.schema.name,
            remedy="copy the folder, or release the original graph with a new budget",
        )


def warn_of_open_parts(maker: Estimator[Any], graph: Graph) -> None:
    """Warn on stderr of parts that are published as they are although the owner declares them private.

    Args:
        maker: the release method, not yet run; says what it protects.
        graph: its schema declares what is private.
    """
    exposed = [part for part in graph.schema.private if part not in maker.privacy.protected]
    if exposed:
        what = " and ".join(exposed)
        complain(f"warning: {what} will be published UNPROTECTED, though {graph.schema.name} declares them private")


def tell_outlook(maker: Estimator[Any], graph: Graph) -> None:
    """Say on stderr what a release of private edges may be expected to buy, before anything is spent.

    Args:
        maker: the release method, not yet run.
        graph: of which schema, nodes and public edges are looked at.
    """
    from graphveil.methods.release.heterorr import domain_of
    from graphveil.methods.release.outlook import outlook_of

    if "edges" in maker.privacy.protected:
        outlook = outlook_of(maker.privacy, domain_of(graph), len(graph.schema.classes))
        complain(f"{'' if outlook.lift else 'warning: '}{outlook.sentence}")


def answered(released: Graph, out: Path, curator: dict[str, Any] | None) -> dict[str, Any]:
    """What ``--json`` prints: the release, its folder, and what only the curator may see.

    Args:
        released: the published graph.
        out: the folder it was written to.
        curator: figures computed from the truth; None where there are none. They must not be handed on.

    Returns:
        Fields with JSON values.
    """
    from graphveil.reports.releases.card import counts

    about = released.release.to_dict()
    told = {key: about[key] for key in ("method", "settings", "guarantee", "guarantee_sentence", "labels", "notes")}
    return {
        **told,
        "data": released.schema.name,
        "nodes": int(released.num_nodes),
        **counts(released),
        "ledger": released.release.ledger.to_dict(),
        "statistics": about["statistics"],
        "curator": curator,
        "folder": str(out),
    }
