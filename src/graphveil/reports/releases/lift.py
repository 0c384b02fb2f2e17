"""What the private data in a release bought: a plain network trained on the folder several times, beside its controls.

Everything is read from the release, the labels that score it included, so it is post-processing: it costs nothing, may
be repeated by anybody, and is kept in the folder itself as `lift.json`, the record of that run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphveil.errors import DataError, InputError
from graphveil.files.reading import read_json
from graphveil.reports.base.files import to_json, write_text
from graphveil.reports.base.record import RunRecord
from graphveil.runtime.progress import ProgressCallback

FILE = "lift.json"
METHOD, REPEATS = "gcn", 5
SETTINGS: Mapping[str, Any] = {}  # its defaults


def measure_lift(folder: Path, *, progress: ProgressCallback | None = None) -> RunRecord:
    """Train on a release, on several splits with all controls, and keep the record there. Raises DataError if it is
    incomplete or was changed; InputError if it has no labels to score a network with.

    Args:
        folder: of a release; the record is written into it.
    """
    from graphveil.graphs import load_plain
    from graphveil.methods.runs import experiment
    from graphveil.privacy import SecureRandomness

    # Read from the published folder, never from the curator's graph: that is why it costs nothing.
    graph = load_plain(folder)
    options: dict[str, Any] = {
        "settings": SETTINGS,
        "randomness": SecureRandomness(),
        "repeats": REPEATS,
        "progress": progress,
    }
    result = experiment.run(METHOD, graph, **options)
    record = RunRecord.from_result(result, options={"seed": 0, "repeats": REPEATS})
    write_text(folder / FILE, to_json(record.to_dict(), indent=2) + "\n")
    return record


def read_lift(folder: Path) -> RunRecord | None:
    """Return what `measure_lift` kept in a folder, or None. Raises DataError if the file is damaged."""
    file = folder / FILE
    if not file.is_file():
        return None
    try:
        return RunRecord.from_dict(read_json(file))
    except (OSError, ValueError, AttributeError, TypeError, InputError) as error:
        raise DataError(f"damaged: {error}", where=str(file), remedy="remove it and measure again") from error
