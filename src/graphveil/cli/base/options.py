"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphveil.methods.registry import METHODS, listing


def _named(incomplete: str) -> list[str]:
    """Return the named data sets that begin with ``incomplete``."""
    from graphveil.graphs import NAMES

    return [name for name in NAMES if name.startswith(incomplete)]


def _folders(incomplete: str) -> list[str]:
    """Return the folders that begin with ``incomplete``."""
    typed = Path(incomplete or ".")
    parent = typed if incomplete.endswith("/") or not incomplete else typed.parent
    if not parent.is_dir():
        return []
    return sorted(f"{folder}/" for folder in parent.iterdir() if folder.is_dir() and str(folder).startswith(incomplete))


def data_like(incomplete: str) -> list[str]:
    """Return the named data sets and folders that begin with ``incomplete``."""
    return [*_named(incomplete), *_folders(incomplete)]


_METHOD, _RUN, _SPEED = "What to train", "The run", "Speed (never changes what is protected)"

Method = Annotated[
    str,
    typer.Argument(metavar="METHOD", help=listing(), autocompletion=lambda: list(METHODS)),
]
Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A named data set, or a folder with your own files.",
        autocompletion=data_like,
    ),
]
Edges = Annotated[
    Path | None,
    typer.Option("--edges", help="Public edges of an exported collection: csv or parquet, columns source and target."),
]
KeepSuspects = Annotated[
    bool,
    typer.Option(
        "--keep-suspects", help="Also use the suspect reports of an exported collection: those that no device draws."
    ),
]
DataRoot = Annotated[
    Path | None,
    typer.Option("--data-root", help="Data-set directory. Default: GRAPHVEIL_DATA, else the user cache."),
]
EpsilonX = Annotated[
    str | None,
    typer.Option(
        "--epsilon-x",
        metavar="E",
        help="Epsilon of one user's features; inf: not protected; none: not collected.",
        rich_help_panel=_METHOD,
    ),
]
EpsilonY = Annotated[
    str | None,
    typer.Option(
        "--epsilon-y",
        metavar="E",
        help="Epsilon of one user's label; inf: not protected.",
        rich_help_panel=_METHOD,
    ),
]
EpsilonA = Annotated[
    str | None,
    typer.Option(
        "--epsilon-a",
        metavar="E",
        help="Epsilon of one bit of one neighbour list. A relationship appears in two lists: it costs E if one end "
        "reports it, 2 E if both do. In a published graph: epsilon of one private edge. inf: not protected.",
        rich_help_panel=_METHOD,
    ),
]
Epsilon = Annotated[
    str | None,
    typer.Option(
        "--epsilon",
        metavar="E",
        help="Total epsilon of one person, split as advised; with --unit, epsilon of one unit.",
        rich_help_panel=_METHOD,
    ),
]
Epsilons = Annotated[
    str | None,
    typer.Option(metavar="E,E,...", help="As in train; several values separated by commas.", rich_help_panel=_METHOD),
]
Delta = Annotated[
    float | None,
    typer.Option("--delta", help="Delta of one --unit, or of mechanism=gaussian.", rich_help_panel=_METHOD),
]
Unit = Annotated[
    str | None,
    typer.Option(
        "--unit", metavar="edge|directed-edge|k-edges|node", help="What --epsilon protects.", rich_help_panel=_METHOD
    ),
]
Model = Annotated[
    str | None,
    typer.Option("--model", metavar="sage|gcn|gat|mlp", help="The network.", rich_help_panel=_METHOD),
]
Epochs = Annotated[
    int | None, typer.Option("--epochs", min=1, help="Maximum number of epochs.", rich_help_panel=_METHOD)
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any other setting; repeatable.", rich_help_panel=_METHOD),
]
PrivateShare = Annotated[
    float | None,
    typer.Option(
        "--private-share",
        metavar="RHO",
        help="For experiments: treat a random share of the edges (drawn by --seed) as private, the rest as public.",
    ),
]
Seed = Annotated[
    int,
    typer.Option("--seed", min=0, help="Fixes splits and weights, never the privacy noise.", rich_help_panel=_RUN),
]
Repeats = Annotated[
    int,
    typer.Option(
        "--repeats", min=1, help="Number of runs, each with a fresh split and fresh noise.", rich_help_panel=_RUN
    ),
]
SplitKind = Annotated[
    str,
    typer.Option(
        "--split",
        help="random (50/25/25), percentages such as 75/10/15, 80/20 (without edges between the two), 5-fold, "
        "or declared: the graph's own split.",
        rich_help_panel=_RUN,
    ),
]
NoControls = Annotated[bool, typer.Option("--no-controls", help="Do not train the controls.", rich_help_panel=_RUN)]
NoiseSeed = Annotated[
    int | None,
    typer.Option(
        "--reproducible-noise",
        metavar="SEED",
        help="Repeatable noise, for experiments. VOIDS the guarantee.",
        rich_help_panel=_RUN,
    ),
]
Device = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="cpu|cuda",
        help="Where to compute; docs/how-to/gpu.md lists what runs on a GPU.",
        rich_help_panel=_SPEED,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads", min=1, help="CPU threads. Default: the number that measures fastest.", rich_help_panel=_SPEED
    ),
]
EngineName = Annotated[
    str,
    typer.Option("--engine", metavar="local|ray", help="Where blocks of people are processed.", rich_help_panel=_SPEED),
]
EngineAddress = Annotated[
    str | None,
    typer.Option(
        "--engine-address",
        metavar="ADDRESS",
        help="A running Ray cluster: auto, HOST:PORT or ray://HOST:PORT. Default: a cluster started on this machine.",
        rich_help_panel=_SPEED,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        help="Blocks processed at once. Default: 1; one per processor on a Ray cluster started here.",
        rich_help_panel=_SPEED,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print exactly one JSON object.")]
