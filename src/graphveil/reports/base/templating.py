"""Our Jinja templates, in which every value is escaped: for HTML in pages, for Markdown in cards."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from graphveil.files.serial import yaml_lines
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reports.base import text, words

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, **content: object) -> str:
    """Return one of our templates in `reports/templates`, ``NAME.md.j2`` or ``NAME.html.j2``, filled in.

    Args:
        content: the names that it uses; texts are escaped for the kind of page.
    """
    kind = template.split(".")[-2]
    page = _environment(kind).get_template(template).render(**content)
    # Blocks that are left out leave their empty lines behind.
    return re.sub(r"\n{3,}", "\n\n", page).strip() + "\n" if kind == "md" else page


@cache
def _environment(kind: str) -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # loads late: most commands fill in no page

    environment = Environment(
        loader=PackageLoader("graphveil.reports"),
        autoescape=kind == "html",
        # A misspelt name must fail in our tests, not leave a hole in a privacy card.
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_literal if kind == "md" else _plain,
    )
    environment.filters.update(_FILTERS)
    return environment


def _literal(value: object) -> object:
    return value if isinstance(value, Markup) else text.markdown(value)


def _plain(value: object) -> object:
    return value if isinstance(value, Markup) or not isinstance(value, str) else text.printable(value)


def _front_matter(values: Mapping[str, Any]) -> Markup:
    # As it is: a text of YAML is escaped by its quotes.
    return Markup("\n".join(yaml_lines(values)))


def _code(command: str) -> Markup:
    """Return what stands between backticks in Markdown: as it is, since nothing is escaped in there."""
    return Markup(text.printable(command).replace("`", "'"))


_FILTERS: Mapping[str, Callable[..., Any]] = {
    "number": text.number,
    "epsilon": lambda value: "none" if value == math.inf else rounded_up(value),
    "rounded_up": rounded_up,
    "percent": text.percent,
    "points": text.points,
    "interval": words.interval,
    "lift_interval": words.lift_interval,
    "moment": text.moment,
    "settings": text.settings,
    "seconds": text.seconds,
    "memory": text.memory,
    "code": _code,
    "front_matter": _front_matter,
}


_ROOM: Final = Path(__file__).parent.parent
VENDOR: Final = _ROOM / "vendor"
_CHARTS: Final = VENDOR / "uPlot.iife.min.js"
_CHART_STYLE: Final = VENDOR / "uPlot.min.css"
_GRAPHS: Final = VENDOR / "cytoscape.min.js"
_PAGE_SCRIPT: Final = _ROOM / "templates" / "report.js"


@dataclass(frozen=True)
class Scripts:
    """Scripts that are written into a page, in this order, and the style they need beside the page's own."""

    texts: tuple[Markup, ...]
    style: Markup

    @property
    def policy(self) -> str:
        """The page's Content-Security-Policy: its own styles, these very scripts, and no address at all."""
        digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in self.texts]
        hashes = " ".join(f"'sha256-{digest}'" for digest in digests)
        # Scripts by hash and not 'unsafe-inline': a name that slipped through the escaping would still not run.
        return (
            f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; script-src {hashes}"
        )


def page_scripts(*, graph: bool = False) -> Scripts:
    """Return the chart library, for a picture of a graph a far larger one, then our own script."""
    files = (_CHARTS, *((_GRAPHS,) if graph else ()), _PAGE_SCRIPT)
    return Scripts(tuple(_text(file) for file in files), _text(_CHART_STYLE))


def _text(file: Path) -> Markup:
    """Return a file of ours as it is; it must not end the element that it is written into."""
    # Stripped, so that what is hashed is what stands between the tags, to the letter.
    return Markup(file.read_text(encoding="utf-8").strip())
