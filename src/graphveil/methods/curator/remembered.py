"""The noise of plans, remembered on disk: searching it among privacy losses takes longer than the rest of a plan.

Only plans read what is remembered. A training searches its noise itself, so a file that somebody has altered can
mislead a plan and nothing else. A file holds noise and a digest of it and of all that it follows from: settings, public
facts, versions and our own source. Whatever is not as it was written is searched again, and written over.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import graphveil
from graphveil.errors import WriteError
from graphveil.files.reading import read_json
from graphveil.files.writing import write_text
from graphveil.graphs.named.root import user_cache
from graphveil.methods.curator.privacy import Noise
from graphveil.privacy import ChangedSamples

#: What else decides every bit of a noise.
_LIBRARIES = ("dp-accounting", "numpy", "scipy")
_LARGEST = 1 << 16


def remembered(facts: object, epsilon: float, search: Callable[[], Noise]) -> Noise:
    """Return what `search` finds, from disk where it was found before.

    Args:
        facts: all that the noise follows from; `repr` tells any two of them apart.
        search: looks for it. What it raises is not remembered.
    """
    key = f"{facts!r} {_versions()}"
    place = user_cache() / "plans" / f"{_digest(key)}.json"
    noise = _read(place, key)
    if noise is not None and noise.epsilon <= epsilon:
        return noise
    noise = search()
    # A disk that takes nothing costs the next plan its time.
    with suppress(OSError, WriteError):
        place.parent.mkdir(parents=True, exist_ok=True)
        record = _record(noise)
        write_text(place, json.dumps({"noise": record, "digest": _digest(key, record)}))
    return noise


def _read(place: Path, key: str) -> Noise | None:
    try:
        stored = read_json(place, largest=_LARGEST)
        record = stored["noise"]
        if stored["digest"] != _digest(key, record):
            return None
        changed = record["changed"] and ChangedSamples(**record["changed"])
        return Noise(**{**record, "sigmas": tuple(record["sigmas"]), "changed": changed})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _record(noise: Noise) -> dict[str, Any]:
    """Return the noise as what JSON gives back."""
    record: dict[str, Any] = json.loads(json.dumps(asdict(noise)))
    return record


def _digest(key: str, record: object = None) -> str:
    return hashlib.sha256(f"{key} {json.dumps(record, sort_keys=True)}".encode()).hexdigest()


def _versions() -> str:
    libraries = [(name, version(name)) for name in _LIBRARIES]
    room = Path(graphveil.__file__).parent
    source = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in sorted(room.rglob("*.py"))]
    return f"{graphveil.__version__} {platform.python_version()} {libraries} {_digest(repr(source))}"
