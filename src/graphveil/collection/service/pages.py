"""The pages of a collector and their assets: files of the wheel, under a policy that admits nothing else.

GET /              the person's page             GET /organiser     the organiser's
GET /assets/NAME   a style sheet or a script, of the list below and no other
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from fastapi import APIRouter, Request, Response

FOLDER = Path(__file__).parents[1] / "assets"
PAGES: Mapping[str, str] = MappingProxyType({"/": "person.html", "/organiser": "organiser.html"})
#: All files that are served by name. `device.js` and `people.js` are built in `clients/js`.
ASSETS = (
    *("look.css", "icon.svg", "device.js", "people.js", "dom.js", "numbers.js"),
    # Of the person's page.
    *("person.css", "person.js", "answers.js", "collector.js", "outcome.js", "refusals.js", "round.js", "terms.js"),
    "visit.js",
    # Of the organiser's page.
    *("organiser.css", "organiser.js", "admin.js"),
)
_MEDIA_TYPES = {".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".svg": "image/svg+xml"}
HEADERS: Mapping[str, str] = {
    # Neither a foreign script nor one injected into a text runs, and nothing is sent elsewhere.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Revalidated each time, and answered without a body where nothing changed: files of two versions never mix.
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True)
class Asset:
    """A file of a page: its bytes, media type, and a tag of its bytes, quoted as in ETag."""

    data: bytes
    media_type: str
    tag: str

    @classmethod
    def of(cls, path: Path) -> Asset:
        """Return the asset of a file, whose suffix is one of `_MEDIA_TYPES`."""
        data = path.read_bytes()
        return cls(data, f"{_MEDIA_TYPES[path.suffix]}; charset=utf-8", f'"{hashlib.sha256(data).hexdigest()[:32]}"')

    def answer(self, etags: str | None) -> Response:
        """Return the file, or 304 to a client that has it already, by If-None-Match."""
        headers = {**HEADERS, "ETag": self.tag}
        if etags is not None and self.tag in etags:
            return Response(status_code=304, headers=headers)
        return Response(self.data, media_type=self.media_type, headers=headers)


def page_routes() -> APIRouter:
    """Return the routes of the pages; their files are read once."""
    routes = APIRouter(include_in_schema=False)
    addresses = {**PAGES, **{f"/assets/{name}": name for name in ASSETS}}
    for address, name in addresses.items():
        routes.get(address)(_served(Asset.of(FOLDER / name)))
    return routes


def _served(asset: Asset) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        return asset.answer(request.headers.get("if-none-match"))

    return answer
