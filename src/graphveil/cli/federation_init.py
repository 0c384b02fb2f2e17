"""``graphveil federation split|init|sign``: folders for experiments, keys, and the signed agreement."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphveil.cli import options
from graphveil.cli.console import emit

New = Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="The folder to make.")]
Split = Annotated[
    Path | None,
    typer.Option("--from", metavar="FOLDER", help="A folder of federation split: its holders, all on this machine."),
]
Parties = Annotated[
    list[str] | None,
    typer.Option(
        "--holder",
        metavar="NAME=HOST:PORT=COLUMNS",
        help="A data holder, its address and its number of feature columns; repeatable. The first holds the labels.",
    ),
]
Server = Annotated[str, typer.Option("--server", metavar="HOST:PORT", help="The server's address.")]
Port = Annotated[int, typer.Option("--port", help="With --from: the first of the ports on this machine.")]
Classes = Annotated[str | None, typer.Option("--classes", metavar="A,B,...", help="All class names in order.")]
Range = Annotated[str, typer.Option("--range", metavar="LOW,HIGH", help="Declared range of every feature.")]
Certificates = Annotated[
    list[str] | None,
    typer.Option(
        "--certificate",
        metavar="NAME=FILE",
        help="A party's own certificate, whose key stays with it; repeatable. Others get a key here.",
    ),
]


def split(
    data: options.Data,
    out: New,
    parties: Annotated[int, typer.Option("--parties", min=2, max=5, help="How many holders.")] = 2,
    proportion: Annotated[
        str | None, typer.Option("--proportion", metavar="A:B", help="Shares of columns and edges. Default: equal.")
    ] = None,
    data_root: options.DataRoot = None,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Cut a graph into what several holders would have, one folder each, for experiments."""
    from graphveil.cli import screens
    from graphveil.graphs import load_graph
    from graphveil.reports.federation_files import shares_of, write_split

    shares = shares_of(proportion, parties)
    answer = write_split(load_graph(data, root=data_root), shares, out, seed=seed)
    emit(answer, as_json=as_json, screen=lambda: screens.blocks([answer]))


def init(
    out: New,
    source: Split = None,
    holder: Parties = None,
    server: Server = "127.0.0.1:7700",
    port: Port = 7700,
    classes: Classes = None,
    feature_range: Range = "0,1",
    name: Annotated[str, typer.Option("--name", help="Name of the run.")] = "federation",
    settings: options.Settings = None,
    certificate: Certificates = None,
    as_json: options.Json = False,
) -> None:
    """Make one folder a party: its key, its certificate and the agreement, signed by every key made here."""
    from graphveil.cli import screens
    from graphveil.reports import federation_files as files

    chosen = files.settings_from(settings or [])
    if source is not None:
        facts = files.facts_of(source, port)
    else:
        facts = files.facts_from(server, holder or [], classes, feature_range)
    answer = files.write_parties(out, name, facts, chosen, files.read_certificates(certificate or []))
    emit(answer, as_json=as_json, screen=lambda: screens.blocks([answer]))


def sign(
    folder: Annotated[Path, typer.Argument(metavar="PARTY", help="A folder with a key and an agreement.")],
    as_json: options.Json = False,
) -> None:
    """Add this party's signature to the agreement in its folder, after reading it."""
    from graphveil.cli import screens
    from graphveil.reports.federation_files import add_signature

    answer = add_signature(folder)
    emit(answer, as_json=as_json, screen=lambda: screens.blocks([answer]))
