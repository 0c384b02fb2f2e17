"""Our Jinja templates, in which every value is escaped: for HTML in pages, for Markdown in cards."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from graphveil.files.serial import yaml_lines
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reports.base import text, words


def rendered(template: str, **content: object) -> str:
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
