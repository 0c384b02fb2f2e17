"""What goes to the terminal: results to stdout, everything else to stderr."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphveil.errors import WriteError
from graphveil.files.serial import json_safe
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reports.base.text import printable
from graphveil.runtime.progress import Progress, ProgressCallback
from graphveil.runtime.words import nearest

if TYPE_CHECKING:
    from rich.console import RenderableType

PLAIN_SECONDS = 10.0
#: Names a file to which progress goes as JSON lines, for a program that shows it; and seconds between two of a stage.
PROGRESS, PROGRESS_SECONDS = "GRAPHVEIL_PROGRESS", 0.5


def emit(
    content: Mapping[str, Any], *, as_json: bool, screen: Callable[[], RenderableType], first: str | None = None
) -> None:
    """Print a command's answer on stdout: one JSON object, or a screen.

    Args:
        first: first line of the screen; with ``as_json`` the command prints it on stderr instead.
    """
    if as_json:
        # One write of one line: a reader that takes lines gets all of the object or nothing.
        with printing():
            sys.stdout.write(json.dumps(json_safe(content), allow_nan=False, default=str) + "\n")
        return
    from rich.console import Console

    if isinstance(sys.stdout, io.TextIOWrapper):  # question marks for letters that the terminal lacks
        sys.stdout.reconfigure(errors="replace")
    # Rich prints nothing at all where COLUMNS is 0, as some terminals have it.
    width = 80 if os.environ.get("COLUMNS") == "0" else None
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False, width=width)
    renderable = screen()
    with printing():
        if first is not None:
            console.print(printable(first), style="bold", soft_wrap=True)
        # A hash or an address that is wider than the terminal stays in one piece.
        console.print(renderable, crop=False)


@contextlib.contextmanager
def printing() -> Iterator[None]:
    """Turn what a full disk refuses of stdout into a WriteError that says what is left; a reader may go away."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        remedy = "what the command saved in files, and what it spent, stays"
        raise WriteError(f"cannot be written ({error.strerror})", where="stdout", remedy=remedy) from error


def complain(line: str) -> None:
    """Print one line on stderr."""
    try:
        sys.stderr.write(printable(line) + "\n")
    except BrokenPipeError:
        raise
    except OSError:
        pass  # the full disk of a log, or a terminal that is gone, must not end the work that it is about


@contextlib.contextmanager
def working() -> Iterator[ProgressCallback]:
    """Progress on stderr while the block computes, which gets a function that shows an event: a bar on a terminal, an
    occasional plain line elsewhere. What libraries print meanwhile goes to stderr too.
    """
    # Only the answer goes to stdout: a library that prints must not break `--json`.
    with contextlib.redirect_stdout(sys.stderr):
        if PROGRESS in os.environ:
            yield json_lines(Path(os.environ[PROGRESS]))
        elif sys.stderr.isatty():
            with _bar() as show:
                yield show
        else:
            yield plain_lines()


@contextlib.contextmanager
def _bar() -> Iterator[ProgressCallback]:
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(bar_width=24),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
    )
    with progress.Progress(
        *columns, progress.TextColumn("{task.fields[spent]}"), console=Console(stderr=True), transient=True
    ) as bar:
        task = bar.add_task("", total=None, spent="", start=True)

        def show(event: Progress) -> None:
            bar.update(
                task,
                description=printable(event.stage),
                completed=event.done,
                total=event.total or None,
                spent=_spent(event),
            )

        yield show


def plain_lines(clock: Callable[[], float] = time.monotonic) -> ProgressCallback:
    """A line for each new stage and every ten seconds of a long one, with the epsilon where it has changed."""
    last: dict[str, Any] = {"stage": None, "time": 0.0, "spent": ""}

    def show(event: Progress) -> None:
        stage, now = event.stage, clock()
        # Otherwise logs of batch jobs would fill with lines.
        if stage == last["stage"] and now - last["time"] < PLAIN_SECONDS:
            return
        count, spent = f"{event.done}/{event.total}" if event.total else "", _spent(event)
        changed = "" if spent == last["spent"] else spent
        last.update(stage=stage, time=now, spent=spent)
        complain(", ".join(part for part in (printable(stage), count, changed) if part))

    return show


def json_lines(file: Path, clock: Callable[[], float] = time.monotonic) -> ProgressCallback:
    """A JSON object, a line of a file, for each new stage and twice a second of a long one.

    Args:
        file: to which lines are added.
        clock: seconds.
    """
    last: dict[str, Any] = {"stage": None, "time": 0.0}

    def show(event: Progress) -> None:
        now = clock()
        if event.stage == last["stage"] and event.done != event.total and now - last["time"] < PROGRESS_SECONDS:
            return
        last.update(stage=event.stage, time=now)
        line = json.dumps(json_safe(asdict(event)), allow_nan=False)
        # A full disk must not end the work that it is about.
        with contextlib.suppress(OSError), file.open("a", encoding="utf-8") as lines:
            lines.write(line + "\n")

    return show


def _spent(event: Progress) -> str:
    if event.epsilon is None:
        return ""

    return f"epsilon spent {rounded_up(event.epsilon)}"


def suggested(message: str) -> str:
    """An error's line, with the nearest of the names after "allowed:" added if it refuses a name."""
    problem, allowed, listed = message.partition("; allowed: ")
    if not allowed or "did you mean" in listed:
        return message
    quoted = re.findall(r"'([^']+)'", problem)
    # The allowed values may include phrases such as "or inf"; only names are suggested.
    names = [name for name in listed.partition(";")[0].split(", ") if re.fullmatch(r"[a-z][a-z0-9_-]*", name)]
    question = nearest(quoted[-1].lower().replace("_", "-"), names) if quoted else None
    return f"{message}; {question}" if question else message
