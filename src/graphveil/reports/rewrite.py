"""Rewrites the pages of a folder, whatever it holds: a run, a released graph, or a party of a federation."""

from __future__ import annotations

from pathlib import Path

from graphveil.reports.base import parts as run_parts
from graphveil.reports.federation import card as federation_card
from graphveil.reports.releases import card as release_card
from graphveil.reports.runs import folder as run_folder

Answer = dict[str, str | None]


def has_pages(folder: Path) -> bool:
    """Whether a folder holds a run, a part of one, a release or a party."""
    # A public part alone has no result, which stays in the private part.
    is_run = (folder / run_parts.RESULT).is_file()
    return (
        is_run
        or run_parts.is_public_part(folder)
        or release_card.is_release(folder)
        or federation_card.is_party(folder)
    )


def rewrite_all(folder: Path) -> None:
    """Rewrite the pages of a folder, or of every party of the federation in it, if there are any."""
    if has_pages(folder):
        rewrite(folder)
        return
    for party in sorted(folder.iterdir()):
        if federation_card.is_party(party):
            rewrite(party)


def rewrite(folder: Path) -> Answer:
    """Rewrite report and cards of a folder; return the output of `graphveil report`.

    Raises:
        ModelFileError or DataError: the folder holds nothing finished, or a file is damaged or was changed.
    """
    if release_card.is_release(folder):
        return release_card.rewrite_card(folder)
    if federation_card.is_party(folder):
        return federation_card.rewrite_party(folder)
    if run_parts.is_public_part(folder):
        about = run_folder.rewrite_public_card(folder)
        facts = {"method": about.method, "data": about.data, "void": about.guarantee.void}
        return {"run": str(folder), "report": None, "card": str(folder / "card.md"), **facts}
    record = run_folder.rewrite_report(folder)
    files: Answer = {"run": str(folder), "report": str(folder / "report.html"), "card": str(folder / "card.md")}
    return {**files, "method": record.method, "data": record.data, "void": record.privacy.guarantee.void}
