"""The client in JavaScript, for tests: skipped with the reason where what it needs is not there."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.pages import ROOT

CLIENT = ROOT / "clients" / "js"
BUNDLE = CLIENT / "dist" / "device.js"


@functools.cache
def node() -> str:
    """The path of Node 20 or later."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("no node here: apt-get install nodejs npm")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.removeprefix("v").partition(".")[0]) < 20:
        pytest.skip(f"Node 20 or later is needed, and this is {version.strip()}")
    return program


def tools() -> Path:
    """The folder of the compilers that make the client."""
    folder = CLIENT / "node_modules"
    if not (folder / ".package-lock.json").exists():
        pytest.skip("no compilers here: run npm ci in clients/js")
    return folder


def page_said(folder: Path, script: str, arguments: object) -> Any:
    """What a script that stands beside the modules of the person's page says, in Node: of the constant `told`."""
    shutil.copytree(ROOT / "src" / "graphveil" / "collection" / "assets", folder)
    # Else Node takes the files of the page for scripts.
    (folder / "package.json").write_text('{"type": "module"}')
    begin = 'import { readFileSync } from "node:fs";\nconst told = JSON.parse(readFileSync(0, "utf8"));\n'
    (folder / "said.js").write_text(begin + "const say = (one) => console.log(JSON.stringify(one));\n" + script)
    command, put = [node(), str(folder / "said.js")], json.dumps(arguments)
    done = subprocess.run(command, input=put, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def deno() -> list[str]:
    """How Deno is told to run a program that reads its own files."""
    # The program itself: the package's own command starts it through Node.
    program = shutil.which("deno") or next(map(str, CLIENT.glob("node_modules/@deno/*/deno")), None)
    if program is None:
        pytest.skip("no deno here: run npm ci in clients/js")
    return [program, "run", "--quiet", "--allow-read"]


def js_answers(lines: Iterable[dict[str, Any]], *runtime: str) -> list[dict[str, Any]]:
    """What the client answers to lines, in Node or in another runtime."""
    text, program = "\n".join(map(json.dumps, lines)) + "\n", str(CLIENT / "lines.js")
    command = [*(runtime or (node(),)), program]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]
