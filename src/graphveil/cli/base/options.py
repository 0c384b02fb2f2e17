"""The options that several commands share."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from graphveil.methods.registry import METHODS, listing


def _data_sets(incomplete: str) -> list[str]:
    from graphveil.graphs import NAMES

    return [name for name in NAMES if name.startswith(incomplete)]


def _folders(incomplete: str) -> list[str]:
    typed = Path(incomplete or ".")
    parent = typed if incomplete.endswith("/") or not incomplete else typed.parent
    if not parent.is_dir():
        return []
    return sorted(f"{folder}/" for folder in parent.iterdir() if folder.is_dir() and str(folder).startswith(incomplete))


def data_like(incomplete: str) -> list[str]:
    return [*_data_sets(incomplete), *_folders(incomplete)]


_method = partial(typer.Option, rich_help_panel="What to train")
_run = partial(typer.Option, rich_help_panel="The run")
_speed = partial(typer.Option, rich_help_panel="Speed (never changes what is protected)")

Method = Annotated[str, typer.Argument(metavar="METHOD", help=listing(), autocompletion=lambda: list(METHODS))]
Data = Annotated[
    str,
    typer.Argument(metavar="DATA", help="A named data set, or a folder with your own files.", autocompletion=data_like),
]
Edges = Annotated[
    Path | None, typer.Option(help="Public edges of an exported collection: csv or parquet, columns source and target.")
]
KeepSuspects = Annotated[
    bool,
    typer.Option(
        "--keep-suspects", help="Also use the suspect reports of an exported collection: those that no device draws."
    ),
]
DataRoot = Annotated[
    Path | None, typer.Option(help="Data-set directory. Default: GRAPHVEIL_DATA, else the user cache.")
]
_FEATURES = "Epsilon of one user's features; inf: not protected; none: not collected."
EpsilonX = Annotated[str | None, _method("--epsilon-x", metavar="E", help=_FEATURES)]
EpsilonY = Annotated[str | None, _method(metavar="E", help="Epsilon of one user's label; inf: not protected.")]
_LISTS = (
    "Epsilon of one bit of one neighbour list. A relationship appears in two lists: it costs E if one end "
    "reports it, 2 E if both do. In a published graph: epsilon of one private edge. inf: not protected."
)
EpsilonA = Annotated[str | None, _method("--epsilon-a", metavar="E", help=_LISTS)]
_TOTAL = "Total epsilon of one person, split as advised; with --unit, epsilon of one unit."
Epsilon = Annotated[str | None, _method("--epsilon", metavar="E", help=_TOTAL)]
Epsilons = Annotated[str | None, _method(metavar="E,E,...", help="As in train; several values separated by commas.")]
Delta = Annotated[float | None, _method("--delta", help="Delta of one --unit, or of mechanism=gaussian.")]
Unit = Annotated[str | None, _method(metavar="edge|directed-edge|k-edges|node", help="What --epsilon protects.")]
Model = Annotated[str | None, _method("--model", metavar="sage|gcn|gat|mlp", help="The network.")]
Epochs = Annotated[int | None, _method("--epochs", min=1, help="Maximum number of epochs.")]
Settings = Annotated[list[str] | None, _method("--set", metavar="KEY=VALUE", help="Any other setting; repeatable.")]
PrivateShare = Annotated[
    float | None,
    typer.Option(
        metavar="RHO",
        help="For experiments: treat a random share of the edges (drawn by --seed) as private, the rest as public.",
    ),
]
Seed = Annotated[int, _run("--seed", min=0, help="Fixes splits and weights, never the privacy noise.")]
Repeats = Annotated[int, _run("--repeats", min=1, help="Number of runs, each with a fresh split and fresh noise.")]
_SPLITS = (
    "random (50/25/25), percentages such as 75/10/15, 80/20 (without edges between the two), 5-fold, "
    "or declared: the graph's own split."
)
SplitKind = Annotated[str, _run("--split", help=_SPLITS)]
NoControls = Annotated[bool, _run("--no-controls", help="Do not train the controls.")]
_REPEATABLE = "Repeatable noise, for experiments. VOIDS the guarantee."
NoiseSeed = Annotated[int | None, _run("--reproducible-noise", metavar="SEED", help=_REPEATABLE)]
_WHERE = "Where to compute; docs/how-to/gpu.md lists what runs on a GPU."
Device = Annotated[str, _speed("--device", metavar="cpu|cuda", help=_WHERE)]
_FASTEST = "CPU threads. Default: the number that measures fastest."
Threads = Annotated[int | None, _speed("--threads", min=1, help=_FASTEST)]
EngineName = Annotated[str, _speed("--engine", metavar="local|ray", help="Where blocks of people are processed.")]
_CLUSTER = "A running Ray cluster: auto, HOST:PORT or ray://HOST:PORT. Default: a cluster started on this machine."
EngineAddress = Annotated[str | None, _speed("--engine-address", metavar="ADDRESS", help=_CLUSTER)]
_AT_ONCE = "Blocks processed at once. Default: 1; one per processor on a Ray cluster started here."
Workers = Annotated[int | None, _speed("--workers", min=1, help=_AT_ONCE)]
Json = Annotated[bool, typer.Option("--json", help="Print exactly one JSON object.")]
