"""``graphveil attack``: what an adversary learns from the model of a run, and what its epsilon allows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from graphveil.cli.base import choices, options
from graphveil.cli.base.console import complain, emit, working
from graphveil.cli.collect.exported import people_of
from graphveil.errors import InputError
from graphveil.reports.base.text import printable

if TYPE_CHECKING:
    from graphveil.attacks import AttackResult


def _screen(results: Mapping[str, AttackResult], picture: Path) -> RenderableType:
    """One block of lines for each attacked model, by its name, and the file of the chart."""
    from graphveil.reports.attacks.figure import summary
    from graphveil.reports.attacks.files import MEASURED

    parts: list[RenderableType] = []
    for label, result in results.items():
        first, *rest = summary(result)
        style = "bold red" if result.beats_limit else "bold"
        parts += [Text(f"{printable(label)}: {printable(first)}", style=style)]
        parts += [*(Text(f"  {printable(line)}") for line in rest), Text()]
    parts.append(Text(f"Chart: {printable(picture)}"))
    if any(result.samples is not None for result in results.values()):
        images = picture.with_stem(f"{picture.stem}-images")
        parts.append(Text(f"Original and reconstructed images, private: {printable(images)}"))
    return Group(*parts, Text(MEASURED))


NAMES = (
    "linkteller, link-stealing, link-stealing-known, link-stealing-shadow, published-edges, membership, lira, "
    "attribute, reconstruction, averaging, averaging-labels; on a federation: label-inference, "
    "label-inference-holder, feature-recovery, feature-recovery-server, gram, gram-server, shares, low-bits"
)
Run = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="Run folder written by graphveil train, a release, or a federation's folder."),
]
Name = Annotated[str | None, typer.Option("--attack", metavar="NAME", help=f"One of {NAMES}.")]
Truth = Annotated[
    str | None,
    typer.Option(
        metavar="DATA",
        help="For a release or a run on one: the original graph; for a federation: its holders' data; for a run on a "
        "collection that was simulated: what it was simulated from.",
    ),
]
Data = Annotated[
    str | None,
    typer.Option(
        "--data", metavar="DATA", help="The run's own graph, if it has moved. Default: where the run read it."
    ),
]
Nodes = Annotated[int, typer.Option("--nodes", min=2, help="Number of nodes to search for edges.")]
Shadows = Annotated[int, typer.Option("--shadows", min=4, help="Shadow models of lira.")]
Shadow = Annotated[
    str | None, typer.Option(metavar="DATA", help="For link-stealing-shadow: the adversary's own data set.")
]
Out = Annotated[Path | None, typer.Option(help="For a release: the curator's own folder. Default: RELEASE.curator.")]
NoPlain = Annotated[bool, typer.Option("--no-plain", help="Do not attack a plain network for comparison.")]


def attack(
    run: Run,
    name: Name = None,
    truth: Truth = None,
    data: Data = None,
    data_root: options.DataRoot = None,
    nodes: Nodes = 500,
    shadows: Shadows = 16,
    shadow: Shadow = None,
    seed: options.Seed = 0,
    no_plain: NoPlain = False,
    out: Out = None,
    as_json: options.Json = False,
) -> None:
    """Attack a run's model and, for comparison, a plain network; save chart and figures in the run folder.

    Results on a release go into a separate folder for its curator: they are computed from private data, without noise.
    On a federation the run is simulated with all holders' data: an experiment that no party could run.
    """
    from graphveil.reports.attacks import federation as attack_federation
    from graphveil.reports.attacks import run as attack_run
    from graphveil.reports.releases.card import is_release

    attack_options: dict[str, Any] = {"truth": truth, "data_root": data_root, "nodes": nodes, "seed": seed}
    if name is None:
        raise InputError("no attack is named", where="--attack", allowed=", ".join(_attacks_on(run)))
    # Attacks on a release use its private truth, so their results never go into the public folder.
    if out is not None and not is_release(run):
        raise InputError("applies to releases only", where="--out", remedy="results on a run go into its folder")
    if shadow is not None and (is_release(run) or attack_federation.is_federation(run)):
        raise InputError("applies to link-stealing-shadow on a run only", where="--shadow")
    if data is not None and (is_release(run) or attack_federation.is_federation(run)):
        raise InputError("applies to runs only", where="--data", remedy="name the true data with --truth")
    with working() as progress:
        attack_options |= {"plain": not no_plain, "progress": progress}
        if is_release(run):
            # Before the attack: minutes of work must not end at a folder that cannot be used.
            folder = attack_run.curator_folder(run, out)
            results = attack_run.attack_release(run, name, **attack_options)
            files = attack_run.save_for_curator(results, run, folder, name, say=complain)
        elif attack_federation.is_federation(run):
            results = attack_federation.attack_folder(run, name, randomness=choices.noise(None), **attack_options)
            files = attack_run.save_results(results, run, name, say=complain)
        else:
            attack_options |= {"people": people_of(run), "data": data, "shadows": shadows, "shadow": shadow}
            results = attack_run.attack_run(run, name, randomness=choices.noise(None), **attack_options)
            files = attack_run.save_results(results, run, name, say=complain)
    figures = {label: result.to_dict() for label, result in results.items()}
    answer = {"attack": name, "run": str(run), "picture": str(files[1]), "results": figures}
    emit(answer, as_json=as_json, screen=lambda: _screen(results, files[1]))


def _attacks_on(run: Path) -> tuple[str, ...]:
    """Return the attacks on what a folder holds: a release, a federation or a run."""
    from graphveil.attacks.catalogue import ATTACKS, PUBLISHED
    from graphveil.attacks.federation.catalogue import FEDERATION_ATTACKS
    from graphveil.reports.attacks.federation import is_federation
    from graphveil.reports.releases.card import is_release

    if is_release(run):
        return (PUBLISHED,)
    return tuple(FEDERATION_ATTACKS) if is_federation(run) else tuple(name for name in ATTACKS if name != PUBLISHED)
