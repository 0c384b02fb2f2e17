"""The folder of a demo: `demo.json`, and the picture as `demo.svg` and `demo.png`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphveil.reports.base.figures import png, svg
from graphveil.reports.base.files import new_folder, to_json, write_bytes, write_text
from graphveil.reports.demo.figure import figure
from graphveil.reports.demo.story import Story

#: The most bytes that a folder takes.
ROOM = 2 << 20


def write(story: Story, path: Path) -> Mapping[str, Any]:
    """Write a story whole or not at all.

    Args:
        story: as it was told.
        path: the folder to make; it must not exist, or be empty.

    Returns:
        What `--json` prints: the story, the folder and its picture.

    Raises:
        InputError: the folder is used. WriteError: the disk refuses.
    """
    answer = {**story.to_dict(), "run": str(path), "picture": str(path / "demo.svg")}
    picture = figure(story)
    with new_folder(path) as folder:
        write_text(folder / "demo.json", to_json(answer, indent=2) + "\n")
        # White, since it is shown on pages whose colour nobody knows, where dark ink may stand on black.
        write_text(folder / "demo.svg", svg(picture, background="white"))
        write_bytes(folder / "demo.png", png(picture))
    return answer
