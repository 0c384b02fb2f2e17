"""``graphveil attack``: what an adversary learns from the model of a run, beside what its epsilon allows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from graphveil.cli import choices, options
from graphveil.cli.console import emit, working

NAMES = "linkteller, link-stealing, link-stealing-known, membership, lira, attribute, averaging, averaging-labels"
Run = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder that graphveil train wrote.")]
Name = Annotated[str, typer.Option("--attack", metavar="NAME", help=f"One of {NAMES}.")]
Truth = Annotated[
    str | None,
    typer.Option("--truth", metavar="DATA", help="For a run on a published graph: the graph it was made of."),
]
Nodes = Annotated[int, typer.Option("--nodes", min=2, help="Edges are looked for among so many nodes.")]
Shadows = Annotated[int, typer.Option("--shadows", min=4, help="Shadow models of lira.")]
NoPlain = Annotated[bool, typer.Option("--no-plain", help="Do not attack a plain network beside it.")]


def attack(
    run: Run,
    name: Name,
    truth: Truth = None,
    data_root: options.DataRoot = None,
    nodes: Nodes = 500,
    shadows: Shadows = 16,
    seed: options.Seed = 0,
    no_plain: NoPlain = False,
    as_json: options.Json = False,
) -> None:
    """Attack the model of a run, and a plain network beside it; the picture is kept in the run folder."""
    from graphveil.cli.attack_screen import attacked
    from graphveil.reports import attack_run

    with working():
        how: dict[str, Any] = {"nodes": nodes, "shadows": shadows, "seed": seed, "truth": truth, "data_root": data_root}
        found = attack_run.attack_run(run, name, randomness=choices.noise(None), plain=not no_plain, **how)
        files = attack_run.keep(found, run, name)
    answer = {"attack": name, "run": str(run), "picture": str(files[1])}
    results = {label: result.to_dict() for label, result in found.items()}
    emit({**answer, "results": results}, as_json=as_json, screen=lambda: attacked(found, files[1]))
