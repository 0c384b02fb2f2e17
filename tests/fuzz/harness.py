"""Runs inputs and judges what commands did with them.

The property: exit code 0 or 2 (130 where interrupted); a refusal is one line on stderr that begins with `error:`, with
nothing on stdout; never a traceback, an internal error, a control character on the screen or a partial file; what is
accepted means what it says.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from graphveil.cli import main
from graphveil.cli.base.console import complain
from graphveil.errors import GraphveilError
from tests.fuzz.target import Target, Words

ALLOWED = (0, 2, 130)


@dataclass
class Found:
    """What a series of inputs came to."""

    inputs: int = 0
    accepted: int = 0
    slowest: float = 0.0
    slow: str = ""
    failures: list[str] = field(default_factory=list)
    of: dict[str, list[int]] = field(default_factory=dict)


@contextlib.contextmanager
def quick(work: Path) -> Iterator[None]:
    """Nothing waits for the disk, and commands run in a folder of their own."""
    with mock.patch.object(os, "fsync"), contextlib.chdir(work):
        yield


def run_one(target: Target, seed: int, work: Path) -> tuple[bool, str | None]:
    """Whether the input of this seed was accepted, and what is wrong with the answer, if anything is."""
    rng = random.Random(seed)
    copy = work / "input"
    shutil.rmtree(work)
    work.mkdir()
    shutil.copytree(target.folder, copy, symlinks=True)
    files = sorted(path for pattern in target.files for path in copy.glob(pattern) if path.is_file())
    file = rng.choice(files)
    mode = file.stat().st_mode
    content = target.change(file.read_bytes(), file.name, rng)
    file.unlink()
    file.write_bytes(content)
    file.chmod(mode)
    words = rng.choice(list(target.commands(copy, rng)))
    code, out, err, crashed = _typed(words)
    typed = repr(words) if callable(words) else "graphveil " + " ".join(str(word) for word in words)
    heading = f"{target.name}, seed {seed}, {file.name}: {typed}\n"
    wrong = crashed or judge(code, out, err, work)
    if wrong is None and code == 0:
        try:
            target.accepted(copy)
        except BaseException:
            wrong = "accepted, but " + traceback.format_exc(limit=-3)
    return code == 0, None if wrong is None else f"{heading}{wrong}"


def _typed(words: Words) -> tuple[int, str, str, str | None]:
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = _called(words) if callable(words) else main([str(word) for word in words])
    except BaseException:  # a panic of a library in Rust is no Exception
        return -1, out.getvalue(), err.getvalue(), traceback.format_exc(limit=-5)
    return code, out.getvalue(), err.getvalue(), None


def _called(reader: Callable[[], object]) -> int:
    """The exit code and the line of a command that does nothing but read."""
    try:
        reader()
    except GraphveilError as error:
        complain(f"error: {error}")
        return 2
    return 0


def judge(code: int, out: str, err: str, work: Path) -> str | None:
    """What is wrong with an answer, or None."""
    lines = err.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    if code not in ALLOWED:
        return f"exit code {code}: {err[-600:]}"
    if "Traceback" in err or "internal error" in err:
        return f"traceback: {err[-600:]}"
    if code == 2 and (len(errors) != 1 or lines[-1] != errors[0] or out):
        return f"not one line: {err[-600:]!r}, stdout {out[:200]!r}"
    if len(err) > 20_000:
        return f"{len(err)} characters on stderr"
    bad = next((c for c in out + err if not c.isprintable() and c != "\n"), None)
    if bad is not None:
        return f"control character {bad!r} on the screen"
    left = [path.name for path in work.rglob(".*") if ".partial" in path.name]
    return f"left {left}" if left else None


def fuzz(
    targets: Sequence[Target], inputs: int, seed: int, work: Path, *, keep: Path | None = None, tell: bool = False
) -> Found:
    """Run so many inputs over all targets in turn."""
    result = Found()
    work.mkdir(parents=True, exist_ok=True)
    with quick(work.parent):
        for place in range(inputs):
            target = targets[place % len(targets)]
            start = time.monotonic()
            accepted, wrong = run_one(target, seed + place, work)
            took = time.monotonic() - start
            result.inputs += 1
            result.accepted += accepted
            counts = result.of.setdefault(target.name, [0, 0, 0])
            counts[0] += 1
            counts[1] += accepted
            if took > result.slowest:
                result.slowest, result.slow = took, f"{target.name}, seed {seed + place}"
            if wrong is not None:
                counts[2] += 1
                result.failures.append(wrong)
                if keep is not None:
                    _keep(work, keep / f"{target.name.replace(' ', '-')}-{seed + place}", wrong)
            if tell and place % 50 == 0:
                sys.stderr.write(f"\r{result.inputs:,} of {inputs:,} inputs, {len(result.failures)} failed ")
                sys.stderr.flush()
    shutil.rmtree(work, ignore_errors=True)
    return result


def _keep(work: Path, place: Path, wrong: str) -> None:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(work, place, symlinks=True)
    (place / "what.txt").write_text(wrong, "utf-8", "replace")
