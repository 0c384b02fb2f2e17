"""The options that several commands share, spelt once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphveil.methods.registry import listing

_METHOD, _RUN, _SPEED = "What to train", "The run", "Speed (never changes what is protected)"

Method = Annotated[
    str,
    typer.Argument(metavar="METHOD", help=listing()),
]
Data = Annotated[str, typer.Argument(metavar="DATA", help="A named data set, or a folder with your own files.")]
DataRoot = Annotated[
    Path | None,
    typer.Option("--data-root", help="Where data sets lie. Default: GRAPHVEIL_DATA, else the user cache."),
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
        help="Epsilon of one bit of one neighbour list. A relationship stands in two: it costs E where one end "
        "reports it, 2 E where both do. In a published graph: of one private edge. inf: not protected.",
        rich_help_panel=_METHOD,
    ),
]
Epsilon = Annotated[
    str | None,
    typer.Option(
        "--epsilon",
        metavar="E",
        help="The total for one person, split as advised; with --unit, that of one unit.",
        rich_help_panel=_METHOD,
    ),
]
Epsilons = Annotated[
    str | None,
    typer.Option(metavar="E,E,...", help="As in train; one or more, with commas between.", rich_help_panel=_METHOD),
]
Delta = Annotated[
    float | None,
    typer.Option("--delta", help="Delta of one --unit, or of mechanism=gaussian.", rich_help_panel=_METHOD),
]
Unit = Annotated[
    str | None,
    typer.Option("--unit", metavar="edge|directed-edge|node", help="What --epsilon protects.", rich_help_panel=_METHOD),
]
Model = Annotated[
    str | None,
    typer.Option("--model", metavar="sage|gcn|gat|mlp", help="The network.", rich_help_panel=_METHOD),
]
Epochs = Annotated[int | None, typer.Option("--epochs", min=1, help="At most so many.", rich_help_panel=_METHOD)]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any other setting; repeatable.", rich_help_panel=_METHOD),
]
PrivateShare = Annotated[
    float | None,
    typer.Option(
        "--private-share",
        metavar="RHO",
        help="For experiments: draw this share of the edges (by --seed) as private, the rest as public.",
    ),
]
Seed = Annotated[
    int,
    typer.Option("--seed", min=0, help="Fixes splits and weights, never the privacy noise.", rich_help_panel=_RUN),
]
Repeats = Annotated[
    int, typer.Option("--repeats", min=1, help="Runs with fresh splits and noise.", rich_help_panel=_RUN)
]
SplitKind = Annotated[
    str,
    typer.Option(
        "--split",
        help="random (50/25/25), shares in % such as 75/10/15, or declared: the graph's own.",
        rich_help_panel=_RUN,
    ),
]
NoControls = Annotated[bool, typer.Option("--no-controls", help="Do not train the controls.", rich_help_panel=_RUN)]
NoiseSeed = Annotated[
    int | None,
    typer.Option(
        "--reproducible-noise",
        metavar="SEED",
        help="Repeatable noise, for experiments. It VOIDS the guarantee.",
        rich_help_panel=_RUN,
    ),
]
Device = Annotated[str, typer.Option("--device", metavar="cpu|cuda", help="Where to compute.", rich_help_panel=_SPEED)]
Threads = Annotated[
    int | None,
    typer.Option("--threads", min=1, help="CPU threads. Default: what measures fastest.", rich_help_panel=_SPEED),
]
Json = Annotated[bool, typer.Option("--json", help="Print exactly one JSON object.")]
