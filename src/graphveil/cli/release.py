"""``graphveil release``: publish a private graph, once, as a folder that anybody may train on."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from graphveil.cli.base import choices, groups, options
from graphveil.cli.base.console import complain, emit, working
from graphveil.cli.base.groups import open_engine, require_engine
from graphveil.cli.base.screens import three_lines, void_alarm
from graphveil.cli.base.tables import pairs, rows
from graphveil.cli.train import configured
from graphveil.errors import InputError
from graphveil.methods.base.method import RELEASE
from graphveil.methods.registry import METHODS, build_method, tagged
from graphveil.methods.release.entries import OPTIONS, require_epsilons
from graphveil.reports.base.card import MARKDOWN
from graphveil.reports.base.text import printable
from graphveil.runtime.progress import Progress
from graphveil.runtime.words import nearest

if TYPE_CHECKING:
    from graphveil.graphs import Graph
    from graphveil.methods.base.method import Method as Entry
    from graphveil.methods.release.privacy import ReleasePrivacy


def _release_screen(released: Graph, folder: Path, curator: Mapping[str, Any] | None) -> RenderableType:
    """What was published, its guarantee, how well it preserves the structure (for the curator alone), and what is
    next.
    """
    from graphveil.reports.base import words
    from graphveil.reports.releases import card as release_card

    release = released.release
    head = Text(
        f"{release.method} on {printable(released.schema.name)}: released into {printable(str(folder))}", style="bold"
    )
    parts: list[RenderableType] = [head, Text()]
    if release.guarantee.void:
        parts[:0] = [void_alarm(release.guarantee.void, "release"), Text()]
    parts += _structure(released, curator)
    exposed = words.not_protected(release.guarantee, release.settings)
    facts = [
        ("In it", release_card.size_of(released)),
        *(("Note", note) for note in release.notes),
        (
            "Next",
            f"graphveil train {release.method} {shlex.quote(str(folder))} (costs no more privacy; the same guarantee)",
        ),
    ]
    return Group(*parts, three_lines(release.guarantee, exposed, folder / MARKDOWN), Text(), pairs(facts))


def _structure(released: Graph, curator: Mapping[str, Any] | None) -> list[RenderableType]:
    from graphveil.reports.releases import card as release_card

    figures = release_card.figures(released.release.statistics)
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


Method = Annotated[
    str,
    typer.Argument(
        metavar="METHOD",
        help="Edges: class-counts, edge-rr, edge-rand, lap-graph, priv-hrg; features: feature-rr; both: heterorr.",
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder to create.")]
NoiseSeed = Annotated[
    int | None, typer.Option(metavar="SEED", help="Repeatable noise, for experiments. VOIDS the guarantee.")
]
WithoutLift = Annotated[
    bool,
    typer.Option(
        "--without-lift", help="Publish edges even if no lift is expected: for looking at, not for learning classes."
    ),
]
DrawSeed = Annotated[int, typer.Option("--seed", min=0, help="Fixes the draw of --private-share, never the noise.")]


@groups.spread()
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
    config: configured.Config = None,
    reproducible_noise: NoiseSeed = None,
    without_lift: WithoutLift = False,
    *,
    engine_choice: groups.EngineChoice,
    as_json: options.Json = False,
) -> None:
    """Publish a graph with private features or edges; using it later costs no more privacy.

    Give an epsilon for each part the method protects: a release cannot be undone.
    """
    info = _find_release(method)
    release_settings = configured.collect(context, method, info)
    require_engine(engine_choice, info)

    from graphveil.files.outputs import new_output
    from graphveil.graphs import load_plain, write_release
    from graphveil.methods.release.plan import feature_advice, feature_noise
    from graphveil.methods.release.structure import kept_structure, with_statistics
    from graphveil.reports.base import card as cards
    from graphveil.reports.releases.card import release_card

    # No default epsilon: a run can be repeated, a publication cannot be taken back.
    require_epsilons(info, release_settings)
    with working() as progress, new_output(out, out, say=complain) as output, open_engine(engine_choice) as engine:
        graph = choices.with_private_share(
            load_plain(data, data_root, progress=progress, engine=engine), private_share, seed
        )
        # A release of released data would state its own epsilon and not mention the first.
        if graph.get("release") is not None:
            raise InputError(
                f"is a release already ({graph.release.method})",
                where=graph.schema.name,
                remedy="copy the folder, or release the original graph with a new budget",
            )
        choices.warn_of_size([(method, release_settings)], graph)
        estimator = build_method(method, release_settings, len(graph.schema.classes))
        exposed = [part for part in graph.schema.private if part not in estimator.privacy.protected]
        if exposed:
            parts = f"{' and '.join(exposed)} will be published UNPROTECTED"
            complain(f"warning: {parts}, though {graph.schema.name} declares them private")
        for advice in feature_advice(estimator.privacy, feature_noise(estimator.privacy, graph.schema)):
            complain(f"warning: {advice}")
        if "edges" in estimator.privacy.protected:
            progress(Progress(1, 4, "rehearsing the expected lift"))
            complain(_expectation(method, estimator.privacy, graph, share=private_share, without_lift=without_lift))
        # Space before noise: a release that cannot be written would be paid for and lost.
        output.reserve(choices.room_of(graph))
        noise = choices.noise(reproducible_noise)
        progress(Progress(2, 4, "adding noise"))
        released = estimator.release(graph, randomness=noise, method=method, progress=progress, engine=engine)
        structure = kept_structure(graph, released)
        released = with_statistics(released, structure)

        def write(path: Path) -> None:
            with suppress(OSError):  # an empty folder that the user named
                path.rmdir()
            pages = cards.pages(release_card(released, path))
            write_release(released, path, released.release, card=pages[cards.MARKDOWN], page=pages[cards.HTML])

        progress(Progress(3, 4, "writing the release"))
        output.write(write)
    curator = None if structure is None else dict(structure.curator)
    answer = _answer(released, output.path, curator)

    emit(answer, as_json=as_json, screen=lambda: _release_screen(released, output.path, curator))


def _find_release(name: str) -> Entry:
    """The release method called ``name``, with the settings that apply to publishing; InputError for any other name."""
    names = tagged(RELEASE)
    if name not in names:
        trains = f"{name} publishes no graph, train it: graphveil train {name} DATA"
        remedy = trains if name in METHODS else nearest(name, names)
        raise InputError(f"no release method {name!r}", allowed=", ".join(names), remedy=remedy)
    info = METHODS[name]
    return replace(info, options={key: option for key, option in info.options.items() if key in OPTIONS})


def _expectation(method: str, privacy: ReleasePrivacy, graph: Graph, *, share: float | None, without_lift: bool) -> str:
    """The expected lift of a release of private edges, before anything is spent: rehearsed, or by a rule where it is
    published without a lift. Raises InputError: the interval of the expected lift lies below zero.
    """
    from graphveil.methods.release.controls import rival_name
    from graphveil.methods.release.plan import assumed_neighbours, outlook_of
    from graphveil.methods.release.published import domain_of
    from graphveil.methods.release.rehearsal import alternatives, rehearsable, rehearse

    domain = domain_of(graph)
    if without_lift or not rehearsable(privacy, graph):
        outlook = outlook_of(privacy, domain, len(graph.schema.classes))
        return f"{'' if outlook.lift else 'warning: '}{outlook.sentence}"
    trials = rehearse(privacy, graph, alternatives(privacy, graph), share=share)
    trial_of_method, best_trial = trials[0], max(trials, key=lambda trial: trial.lift.mean)
    assumed = f"{assumed_neighbours(domain, share):.2g} synthetic private edges a person"
    sentence = f"expected lift over the public part alone: {trial_of_method.sentence}, rehearsed with {assumed}"
    advice = "" if best_trial is trial_of_method else f"{rival_name(best_trial.edges)}: {best_trial.sentence}"
    if trial_of_method.lift.high < 0:
        raise InputError(
            sentence,
            where=f"release {method}",
            remedy=f"{f'take {advice}, ' if advice else ''}give a larger --epsilon-a, or go on with --without-lift",
        )
    prefix = "" if trial_of_method.lift.low > 0 else "warning: "
    return f"{prefix}{sentence}{f'; recommended is {advice}' if advice else ''}"


def _answer(released: Graph, folder: Path, curator: dict[str, Any] | None) -> dict[str, Any]:
    """What ``--json`` prints: the release, its folder, and the curator's figures, which must not be passed on."""
    from graphveil.reports.releases.card import edge_counts

    facts = released.release.to_dict()
    fields = {key: facts[key] for key in ("method", "settings", "guarantee", "guarantee_sentence", "labels", "notes")}
    return {
        **fields,
        "data": released.schema.name,
        "nodes": int(released.num_nodes),
        **edge_counts(released),
        "ledger": released.release.ledger.to_dict(),
        "statistics": facts["statistics"],
        "curator": curator,
        "folder": str(folder),
    }
