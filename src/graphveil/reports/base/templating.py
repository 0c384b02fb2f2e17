"""Renders the Jinja templates of reports, with every value escaped: for HTML in pages, for Markdown in cards."""

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
    """Return the text of a template in `reports/templates`, ``NAME.md.j2`` or ``NAME.html.j2``.

    Args:
        content: the values of its names; texts are escaped for the format.
    """
    kind = template.split(".")[-2]
    page = _environment(kind).get_template(template).render(**content)
    # Skipped blocks leave empty lines.
    return re.sub(r"\n{3,}", "\n\n", page).strip() + "\n" if kind == "md" else page


@cache
def _environment(kind: str) -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # late: most commands render no page

    environment = Environment(
        loader=PackageLoader("graphveil.reports"),
        autoescape=kind == "html",
        # A misspelt name must fail in tests and not leave a gap in a privacy card.
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
    # Not escaped again: YAML texts are quoted.
    return Markup("\n".join(yaml_lines(values)))


def _code(command: str) -> Markup:
    """Return text for Markdown code: unescaped, since escapes have no meaning between backticks."""
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
    """Scripts to embed in a page, in this order, and the style that they need beside the page's own."""

    texts: tuple[Markup, ...]
    style: Markup

    @property
    def policy(self) -> str:
        """The page's Content-Security-Policy: inline styles, these scripts, and no network address."""
        digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in self.texts]
        hashes = " ".join(f"'sha256-{digest}'" for digest in digests)
        # Scripts by hash and not 'unsafe-inline': if escaping failed, an injected script would still not run.
        return (
            f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; script-src {hashes}"
        )


def page_scripts(*, graph: bool = False) -> Scripts:
    """Return the chart library, the graph library if needed (it is far larger), and the page's own script."""
    files = (_CHARTS, *((_GRAPHS,) if graph else ()), _PAGE_SCRIPT)
    return Scripts(tuple(_text(file) for file in files), _text(_CHART_STYLE))


def _text(file: Path) -> Markup:
    """Return a file of the package unescaped; it must not contain the end tag of its element."""
    # Stripped, so that the hash is of exactly the text between the tags.
    return Markup(file.read_text(encoding="utf-8").strip())
