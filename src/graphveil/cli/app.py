"""All commands, and how an error ends one: one line on stderr and an exit code."""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer

import graphveil
from graphveil.cli.base.console import complain, printing, suggested
from graphveil.errors import GraphveilError, InputError, WriteError

DONE, FAULT, REFUSED, INTERRUPTED = 0, 1, 2, 130
EPILOG = (
    "Exit codes: 0 done; 1 internal error; 2 refused, with the reason on one line of stderr; "
    "3 an audit broke a claim; 130 interrupted. Results go to stdout, everything else to stderr."
)
_LONGEST = 4000
#: New objects after which Python's garbage collector runs: at the default it takes a twentieth of a command's time.
_COLLECT_AFTER = 50_000
#: What torch and the system's loader of libraries write when memory is refused them.
_NO_MEMORY = "DefaultCPUAllocator: can't allocate memory", "failed to map segment from shared object"
#: What `Path.resolve` writes of links that lead to each other, before Python 3.13.
_LOOP = "Symlink loop from "
# Older versions of Typer have no public name for the base class of usage errors.
_UsageError: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


def main(args: Sequence[str] | None = None) -> int:
    """Run one command, ``args`` or the words of the process, and return the exit code; no exception leaves it."""
    gc.set_threshold(_COLLECT_AFTER)
    _open_closed_streams()
    # No arguments: print the help, exit code 0.
    args = list(sys.argv[1:] if args is None else args) or ["--help"]
    debug = "--debug" in args
    if debug:  # an option of every command, at any position
        args = ["--debug", *(arg for arg in args if arg != "--debug")]
    try:
        _refuse_unreadable(args)
        with _terminable():
            code = build(args)(args=args, prog_name="graphveil", standalone_mode=False)
            # Inside the try: a full disk or a closed pipe fails only when the buffer is written.
            with printing():
                sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        if debug:
            traceback.print_exc()
        return _report(error, args, debug=debug)
    # Outside of standalone mode Typer returns this code without a message.
    if code == INTERRUPTED:
        complain(interrupted(args))
    return int(code or DONE)


def _open_closed_streams() -> None:
    """Open the standard streams that the process was started without: else the next file gets their number, and what
    a library prints would be written into it."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open to the end


def _refuse_unreadable(args: Sequence[str]) -> None:
    """Refuse names that none of our files can hold, before anything is computed that would have to be written."""
    try:
        names = [*args, str(Path.cwd())]
    except OSError as error:
        raise WriteError(f"the working folder cannot be used ({error.strerror})", remedy="change to another") from error
    for name in names:
        escaped = name.encode("utf-8", "backslashreplace").decode()
        if escaped != name:
            raise InputError(f"{escaped} is not text in UTF-8", remedy="rename it, or use a locale of UTF-8")


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM, and the end of the terminal, interrupt a command as Ctrl-C does, so that its partial files are
    removed; servers handle both."""
    if threading.current_thread() is not threading.main_thread():  # others cannot handle signals
        yield
        return
    handlers = {signal.SIGTERM: signal.signal(signal.SIGTERM, signal.default_int_handler)}
    # An ignored signal stays ignored: nohup lets a command outlive its terminal.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        # By way of SIGTERM, for which servers have a handler of their own.
        handlers[signal.SIGHUP] = signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


# Each command, a function of its name, and each group of commands, with the module that it is in. A command loads its
# own module alone.
_COMMANDS = {
    "demo": "demo",
    "train": "train.command",
    "tune": "train.tune",
    "predict": "train.command",
    "advise": "advise",
    "plan": "train.plan",
    "compare": "compare.command",
    "compare-runs": "compare.command",
    "release": "release",
    "attack": "attack",
    "report": "report",
    "reproduce": "reproduce",
    "audit": "audit",
    "explain": "explain",
    "studio": "studio",
}
_GROUPS = {
    "config": "train.configured",
    "data": "data.command",
    "mechanisms": "mechanisms",
    "federation": "federation.command",
    "collect": "collect.command",
    "device": "collect.device",
}


def _load(module: str, name: str) -> Any:
    return getattr(import_module(f"graphveil.cli.{module}"), name.replace("-", "_"))


def build(args: Sequence[str] = ()) -> typer.Typer:
    """The application; where the first of ``args`` is a command, that one alone: Typer builds all options it has."""
    only = args[0] if args and args[0] in {*_COMMANDS, *_GROUPS} else None
    app = typer.Typer(epilog=EPILOG, add_completion=True, pretty_exceptions_enable=False)
    app.callback()(_common)
    for name, module in _COMMANDS.items():
        if only in (None, name):
            command = _load(module, name)
            # Typer keeps line breaks in all paragraphs but the first: the terminal shall wrap them.
            paragraphs = (" ".join(paragraph.split()) for paragraph in (command.__doc__ or "").split("\n\n"))
            app.command(name, epilog=EPILOG, help="\n\n".join(paragraphs))(command)
    for name, module in _GROUPS.items():
        if only in (None, name):
            app.add_typer(_load(module, "group")(), name=name)
    return app


def _version(version: bool) -> None:
    if version:
        typer.echo(f"graphveil {graphveil.__version__}")
        raise typer.Exit


def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Train graph neural networks on private graphs; see what is protected, from whom, and what accuracy it leaves."""
    # `_version` and `main` handle both options; they are declared here so that --help lists them.


#: Commands that go on where they stopped when they are typed again, and those that spend epsilon in one piece.
_RESUMED = {"compare", "reproduce", "federation serve", "federation join"}
_IN_ONE_PIECE = {"train", "release"}


def interrupted(args: Sequence[str]) -> str:
    """Return the line on an interrupted command: what is left of it, and whether it goes on."""
    words = [word for word in args if word != "--debug"][:2]
    # The scores of a sampler on a proxy are stored beside the folder of --out; those of a grid are not.
    parts = [part for word in args for part in word.split("=", 1)]
    is_sampled = any(pair in (("--sampler", "random"), ("--sampler", "tpe")) for pair in pairwise(parts))
    is_resumed = words[:1] == ["tune"] and "--proxy" in parts and bool({"--out", "-o"} & set(parts)) and is_sampled
    if is_resumed or _RESUMED & {words[0], " ".join(words)}:
        return "interrupted; type the same command again, and it goes on where it stopped"
    if words[0] == "tune":  # a second search into the same log would hide the trials of the first
        return "interrupted; nothing was released: begin anew, with another --out where trials had a price: a log stays"
    if words[0] in _IN_ONE_PIECE:
        return "interrupted; no partial files remain, nothing was released, and the same command begins anew"
    # A prediction is charged before anybody is asked: one that ends early has paid, and its answer is lost.
    lost = "; what it was charged stays charged (ledger.json of the run)" if words[0] == "predict" else ""
    return f"interrupted; no partial files remain{lost}"


def _report(error: BaseException, args: Sequence[str], *, debug: bool) -> int:
    """Print one line about ``error`` and return its exit code."""
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        complain(interrupted(args))
        return INTERRUPTED
    if (refusal := _refusal(error)) is not None:
        complain(f"error: {_shorten(refusal)}")
        return REFUSED
    remedy = "please report it with the traceback above" if debug else "--debug shows the traceback; please report it"
    complain(f"internal error: {type(error).__name__}: {error}; {remedy}")
    return FAULT


def _refusal(error: BaseException) -> str | None:
    """Return what a user can mend, in one line; None if the error is a fault of ours."""
    if isinstance(error, GraphveilError):
        return suggested(str(error))
    if isinstance(error, _UsageError):
        context: Any = getattr(error, "ctx", None)
        usage = f"; see {context.command_path} --help" if context else ""
        return str(error.format_message()).rstrip(".") + usage
    # After our own errors: one of them is an OSError too.
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    if isinstance(error, RuntimeError) and str(error).startswith(_LOOP):
        return f"links lead to each other: {str(error).removeprefix(_LOOP)}"
    if _out_of_memory(error):
        return "not enough memory; choose smaller settings, or a machine with more memory"
    # An OSError without a number is raised by a library, say for the folder of its cache: in the library's words.
    if isinstance(error, OSError) and not isinstance(error, io.UnsupportedOperation):
        return str(error)
    return None


def _out_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or one that it followed from, is of memory that was refused."""
    if error is None:
        return False
    refused = isinstance(error, MemoryError) or any(text in str(error) for text in _NO_MEMORY)
    return refused or _out_of_memory(error.__cause__ or error.__context__)


def _shorten(message: str) -> str:
    """A message without its middle, where it quotes megabytes of a file."""
    return message if len(message) <= _LONGEST else f"{message[: _LONGEST // 2]} ... {message[-_LONGEST // 2 :]}"
