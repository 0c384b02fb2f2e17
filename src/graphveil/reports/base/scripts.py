"""The scripts of a page and the policy that allows these and nothing else: no request can leave the page."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from markupsafe import Markup

_ROOM: Final = Path(__file__).parent.parent
VENDOR: Final = _ROOM / "vendor"
_CHARTS: Final = VENDOR / "uPlot.iife.min.js"
_CHART_STYLE: Final = VENDOR / "uPlot.min.css"
_GRAPHS: Final = VENDOR / "cytoscape.min.js"
_OWN: Final = _ROOM / "templates" / "report.js"


@dataclass(frozen=True)
class Scripts:
    """Scripts that are written into a page, in this order, and the style they need beside the page's own."""

    texts: tuple[Markup, ...]
    style: Markup

    @property
    def policy(self) -> str:
        """The page's Content-Security-Policy: its own styles, these very scripts, and no address at all."""
        hashes = " ".join(f"'sha256-{_sha256(text)}'" for text in self.texts)
        # Scripts by hash and not 'unsafe-inline': a name that slipped through the escaping would still not run.
        return (
            f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; script-src {hashes}"
        )


def page_scripts(*, graph: bool = False) -> Scripts:
    """Return what makes a report move: the chart library, for a picture of a graph a far larger one, then our own
    script.
    """
    files = (_CHARTS, *((_GRAPHS,) if graph else ()), _OWN)
    return Scripts(tuple(_text(file) for file in files), _text(_CHART_STYLE))


def _text(file: Path) -> Markup:
    """Return a file of ours as it is; it must not end the element that it is written into."""
    # Stripped, so that what is hashed is what stands between the tags, to the letter.
    return Markup(file.read_text(encoding="utf-8").strip())


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
