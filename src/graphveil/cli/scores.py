"""``graphveil mechanisms scores``: which share of a feature budget each feature gets, from public data alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphveil.cli.base import options
from graphveil.cli.base.console import emit, working
from graphveil.errors import InputError

Sensitive = Annotated[
    str | None,
    typer.Option("--sensitive", metavar="I,J,...", help="Columns of the sensitive input, counted from 0."),
]
Gamma = Annotated[
    float, typer.Option("--gamma", min=0.0, max=1.0, help="Weight of importance (SHAP) against sensitivity.")
]
PublicShare = Annotated[
    float | None,
    typer.Option(
        "--public-share",
        metavar="RHO",
        help="For experiments: declare a random share of the nodes (drawn by --seed) public. "
        "Without it all of DATA must be.",
    ),
]
Out = Annotated[Path, typer.Option("--out", help="File to write: one number a line, for --set scores=FILE.")]


def scores(
    data: options.Data,
    out: Out = Path("scores.txt"),
    sensitive: Sensitive = None,
    gamma: Gamma = 0.5,
    public_share: PublicShare = None,
    seed: options.Seed = 0,
    data_root: options.DataRoot = None,
    as_json: options.Json = False,
) -> None:
    """Budget shares of feature-rr from public rows: how much each feature matters, and tells of a sensitive input."""
    columns = () if sensitive is None else _columns(sensitive)
    if out.exists():
        raise InputError(f"{out} is there already", where="--out", remedy="name another file")

    from graphveil.cli.base import tables
    from graphveil.files.writing import write_text
    from graphveil.graphs import load_plain
    from graphveil.methods.release.scores import masked_columns, public_part, public_scores, public_share_of

    with working() as progress:
        graph = load_plain(data, data_root, progress=progress)
        if public_share is None and "features" in graph.schema.private:
            raise InputError(
                f"{graph.schema.name} declares its features private",
                allowed="data whose features are public",
                remedy="for an experiment declare a share of the people public: --public-share 0.1",
            )
        part = public_part(graph, public_share_of(graph, public_share, seed))
        masked = masked_columns(part, columns) if columns else None
        result = public_scores(part, masked=masked, gamma=gamma, seed=seed)
        # The stamp first: whoever collects states it beforehand, and can show later that nothing was changed.
        lines = [f"# {result.note}; stamp {result.stamp}", *(repr(share) for share in result.shares)]
        write_text(out, "\n".join(lines) + "\n")
    answer = {"file": str(out), "note": result.note, "stamp": result.stamp, "shares": list(result.shares)}
    least, most = min(result.shares), max(result.shares)
    facts = {"file": str(out), "from": result.note, "shares": f"{least:.3g} to {most:.3g}", "stamp": result.stamp}
    emit(answer, as_json=as_json, screen=lambda: tables.described(facts))


def _columns(text: str) -> tuple[int, ...]:
    """Return the columns of a list such as "0,3"."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"{text!r}", where="--sensitive", allowed="numbers of columns, such as 0,3") from None
