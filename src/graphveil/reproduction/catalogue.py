"""All tables and figures of the five papers by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from graphveil.errors import InputError
from graphveil.reproduction import entries
from graphveil.reproduction.exhibit import Entry, Exhibit, figures_of
from graphveil.runtime.words import nearest

#: Paper -> table or figure -> its entries; those without any have nothing to be run.
_ENTRIES: Mapping[str, Mapping[str, Callable[[], Iterator[Entry]]]] = {
    "lpgnn": entries.LPGNN,
    "solitude": entries.SOLITUDE,
    "heterorr": entries.HETERORR,
    "weighted-gap": entries.WEIGHTED_GAP,
    "vfgnn": entries.VFGNN,
}
_PRINTED = {paper: figures_of(paper) for paper in _ENTRIES}
#: Paper -> what it is called in a heading.
PAPERS: Mapping[str, str] = MappingProxyType({paper: printed["title"] for paper, printed in _PRINTED.items()})


def _exhibits() -> Iterator[Exhibit]:
    for paper, printed in _PRINTED.items():
        for about in printed["exhibit"]:
            listed = tuple(_ENTRIES[paper].get(about["number"], tuple)())
            common = {"cpu": printed["cpu"], "notes": tuple(printed["notes"])} if listed else {}
            yield Exhibit(paper, **about, entries=listed, **common)


EXHIBITS: Mapping[str, Exhibit] = MappingProxyType({exhibit.id: exhibit for exhibit in _exhibits()})


def find_exhibit(name: str) -> Exhibit:
    """Return the table or figure called `name`, ready to be run; InputError says why it cannot be."""
    # Named are those that can be run: the others would be a second refusal.
    if name not in EXHIBITS:
        runnable = ", ".join(exhibit.id for exhibit in EXHIBITS.values() if exhibit.state != "no")
        remedy = nearest(name.lower(), [*EXHIBITS, "list"]) or "graphveil reproduce list shows all"
        raise InputError(f"no table or figure {name!r}", allowed=runnable, remedy=remedy)
    exhibit = EXHIBITS[name]
    if exhibit.state == "no":
        raise InputError(f"{exhibit.id} cannot be run: {exhibit.why}", remedy="graphveil reproduce list shows all")
    return exhibit


def listing() -> str:
    """Return every table and figure with its state, as Markdown: a heading and a table for each paper."""
    parts = []
    for paper, title in PAPERS.items():
        rows = [
            f"| `{exhibit.id}` | {exhibit.caption} | {exhibit.status} | {', '.join(exhibit.data)} | {long(exhibit)} |"
            for exhibit in EXHIBITS.values()
            if exhibit.paper == paper
        ]
        head = "| name | shows | can be run | data | 10 splits take |\n| --- | --- | --- | --- | --- |"
        parts.append("\n".join([f"### {title}", "", head, *rows]))
    return "\n\n".join(parts) + "\n"


def long(exhibit: Exhibit) -> str:
    """Return about how long all figures of an exhibit take, in words; nothing where there is nothing to run."""
    if not exhibit.entries:
        return ""
    # Times are of a busy machine and good to a factor of two, so seconds would say too much.
    minutes = exhibit.seconds() / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.0f} h"
