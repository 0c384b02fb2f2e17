"""``graphveil audit``: does anything that is claimed turn out to be wrong?"""

from __future__ import annotations

from typing import Annotated, Final

import typer

from graphveil.cli import options
from graphveil.cli.console import emit, working

#: The exit code after an audit that found a broken claim.
BROKEN: Final = 3

Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET", help="A mechanism, method or release, or: mechanisms, methods, all.", show_default=False
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Fixes synthetic data and noise; no real data is read.")]


def audit(target: Target, seed: Seed = 0, as_json: options.Json = False) -> None:
    """Prove lower bounds on a target's epsilon and look for leaks past its mechanisms; exit code 3 if one fails."""
    from graphveil.audit import run_audits
    from graphveil.cli import audit_screens

    with working() as tell:
        audits = run_audits(target, seed=seed, progress=tell)
    verdict = "holds" if all(one.holds for one in audits) else "broken"
    answer = {
        "target": target,
        "verdict": verdict,
        "seconds": sum(one.seconds for one in audits),
        "audits": [one.to_dict() for one in audits],
    }
    emit(answer, as_json=as_json, screen=lambda: audit_screens.audited(audits))
    if verdict == "broken":
        raise typer.Exit(BROKEN)
