"""A request of the page as the words of a command, which are shown to be copied and run as a process, never by a shell.

Commands, options and the names of outputs are chosen here; what a user says is a value after an option, or a path that
`Root` has confined, and begins with no "-".
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, TypeVar

from graphveil.files.serial import toml_lines
from graphveil.graphs.load import is_name
from graphveil.methods.base.method import RELEASE, Method, Option
from graphveil.methods.base.settings import OPEN_WORDS
from graphveil.methods.registry import METHODS
from graphveil.methods.release.entries import OPTIONS as RELEASE_OPTIONS
from graphveil.reports.base.text import plain_name
from graphveil.studio.models import Setting, Start, Work
from graphveil.studio.refusals import Refusal
from graphveil.studio.root import RUNS, Root

T = TypeVar("T")
NAMED: Final = "name:"
#: Settings with an option of their own; all others go through --set. A release has fewer.
FLAGS: Final = ("epsilon_x", "epsilon_y", "epsilon_a", "epsilon", "delta", "unit", "model", "epochs")
RELEASE_FLAGS: Final = ("epsilon_x", "epsilon_y", "epsilon_a", "delta")
#: Jobs that spend privacy, and name their price.
SPENDING: Final = ("train", "release")
#: What people would read in a collection that is only rehearsed.
_REHEARSED: Final = ("--organiser", "rehearsal", "--purpose", "rehearsal", "--contact", "rehearsal", "--least", "1")


@dataclass(frozen=True)
class Commands:
    """Makes the words of commands.

    Args:
        root: confines all paths.
        data_root: folder of named data sets; None: that of the command line.
    """

    root: Root
    data_root: Path | None = None

    def words(self, command: str, work: Work, out: str | None = None) -> list[str]:
        """Return the words of a query or a job.

        Args:
            work: the request; Refusal: it is not complete, or names what does not exist.
            out: the folder that it writes, see `out_of`.
        """
        makers: Mapping[str, Callable[[Work], Iterator[str]]] = {
            "describe": lambda work: iter(("data", "describe", *self._data(work))),
            "plan": self._plan,
            "advise": lambda work: iter(("advise", *self._data(work))),
            "train": self._train,
            "release": self._release,
            "attack": self._attack,
            "import": self._import,
            "compare-runs": self._compare_runs,
        }
        return [*makers[command](work), *([] if out is None else ["--out", out])]

    def plan(self, work: Work) -> list[str]:
        """Return the words that plan what a request would train or release."""
        return self.words("plan", work.model_copy(update={"want": None}))

    def run(self, work: Work) -> list[str]:
        """Return the words that train or release what a request plans."""
        if RELEASE in _method(work.method).tags:
            return self.words("release", work, f"{RUNS}/released")
        return self.words("train", work)

    def rehearsal(self, work: Work, today: datetime) -> str | None:
        """Return the commands that rehearse the collection of a local method's reports; None: nothing is collected."""
        method = _method(work.method)
        settings = {key: work.settings.get(key, option.default) for key, option in method.options.items()}
        budgets = {key: settings[key] for key in FLAGS[:3] if settings.get(key) not in (None, "inf", math.inf)}
        if RELEASE in method.tags or not budgets or settings.get("epsilon") is not None:
            return None
        days = [f"{today + timedelta(days=days):%Y-%m-%d}" for days in (-1, 30)]
        wording = [*_REHEARSED, "--opens", days[0], "--closes", days[1], "--out", "task"]
        task = ["collect", "init", *self._data(work), *self._settings(method, budgets, FLAGS), *wording]
        return line_of(task, ["collect", "simulate", "task", self._data(work)[0], "--out", "collected"])

    def declare(self, folder: str, answers: str, *, replace: bool) -> list[str]:
        """Return the words that declare a folder of tables by a file of answers, both as pages name them."""
        flags = ["--replace"] if replace else []
        return ["data", "init", self.root.word(folder), "--answers", self.root.word(answers), *flags]

    def out_of(self, start: Start, now: datetime, used: Callable[[str], bool]) -> str | None:
        """Return a name below `runs`, no other job's, for the folder that a job writes; None: it writes none."""
        if start.job == "import":
            folder = _required(start.folder, "folder")
            if self.root.path(folder).exists() or used(folder):
                raise Refusal("used", f"{folder} is there already, and is never overwritten")
            return folder
        if start.job not in SPENDING:
            return None
        subject = f"{start.method}-release" if start.job == "release" else start.method
        data = _required(start.data, "data").removeprefix(NAMED)
        data = self.root.folder.name if data == "." else data
        first = f"{RUNS}/{plain_name(data)}-{subject}-{now:%Y%m%d-%H%M%S}"
        names = (first if number == 1 else f"{first}-{number}" for number in range(1, 1_000))
        return next(name for name in names if not used(name) and not self.root.path(name).exists())

    def _plan(self, work: Work) -> Iterator[str]:
        method = _method(work.method)
        yield from ("plan", method.name, *self._data(work))
        yield from self._settings(method, work.settings, FLAGS)
        yield from _options(("--want", work.want), ("--degree", work.degree), ("--seed", work.seed))
        yield from _options(("--private-share", work.private_share))

    def _compare_runs(self, work: Work) -> Iterator[str]:
        yield "compare-runs"
        yield from (self.root.word(run) for run in _required(work.runs, "runs"))

    def _train(self, work: Work) -> Iterator[str]:
        method = _method(work.method)
        yield from ("train", method.name, *self._data(work))
        yield from self._settings(method, work.settings, FLAGS)
        yield from _options(("--seed", work.seed), ("--repeats", work.repeats), ("--split", work.split))
        yield from _options(("--no-controls", not work.controls), ("--reproducible-noise", work.reproducible_noise))
        yield from _options(("--private-share", work.private_share))

    def _release(self, work: Work) -> Iterator[str]:
        method = _method(work.method)
        if RELEASE not in method.tags:
            raise Refusal("refused", f"{method.name} publishes no graph")
        yield from ("release", method.name, *self._data(work))
        settings = {key: value for key, value in work.settings.items() if key in RELEASE_OPTIONS}
        if len(settings) < len(work.settings):
            useless = ", ".join(sorted(set(work.settings) - set(settings)))
            raise Refusal("refused", f"{useless} does not apply to a release")
        yield from self._settings(method, settings, RELEASE_FLAGS)
        yield from _options(("--seed", work.seed), ("--reproducible-noise", work.reproducible_noise))
        yield from _options(("--private-share", work.private_share), ("--without-lift", work.without_lift))

    def _attack(self, work: Work) -> Iterator[str]:
        yield from ("attack", self.root.word(_required(work.run, "run")), "--attack", _required(work.attack, "attack"))
        truth = None if work.truth is None else self._source(work.truth)
        yield from _options(("--truth", truth), ("--seed", work.seed), ("--data-root", self.data_root))

    def _import(self, work: Work) -> Iterator[str]:
        yield from ("data", "import", self._address(_required(work.source, "source")))
        for option, text in (("--nodes-query", work.nodes_query), ("--edges-query", work.edges_query)):
            if text is not None and (text.startswith("-") or not "".join(text.split()).isprintable()):
                raise Refusal("refused", f"{option} is no query: one begins with SELECT")
            yield from _options((option, text))

    def _address(self, source: str) -> str:
        """Return a file below the root, or the address of a database, which holds no password."""
        kind, separator, rest = source.partition("://")
        if not separator:
            return self.root.word(source)
        if kind == "sqlite":
            return f"sqlite:///{self.root.word(rest.removeprefix('/'))}"
        if kind != "postgresql" or re.fullmatch(r"(\w+@)?[\w.-]+(:\d+)?/[\w-]+", rest) is None:
            raise Refusal("refused", "no address of a database; allowed: sqlite:///FILE, postgresql://USER@HOST/NAME")
        return source

    def config(self, work: Work) -> str:
        """Return the file that `--config` takes for what a request would train or release."""
        method = _method(work.method)
        texts = {key: self._value(method, key, value) for key, value in work.settings.items() if key in method.options}
        settings = {key: _toml_value(method.options[key], text) for key, text in texts.items() if text is not None}
        options = {
            **{key: getattr(work, key) for key in ("seed", "repeats", "split", "private_share")},
            "controls": None if work.controls else False,
            "data_root": None if self.data_root is None else str(self.data_root),
        }
        set_options = {key: value for key, value in options.items() if value is not None}
        head = {"method": method.name, "data": self._source(_required(work.data, "data"))}
        lines = toml_lines(head)
        for name, table in (("settings", settings), ("options", set_options)):
            lines += ["", f"[{name}]", *toml_lines(table)] if table else []
        return "\n".join(lines) + "\n"

    def _data(self, work: Work) -> list[str]:
        data_root = [] if self.data_root is None else ["--data-root", str(self.data_root)]
        return [self._source(_required(work.data, "data")), *data_root]

    def _source(self, data: str) -> str:
        name = data.removeprefix(NAMED)
        if name == data:
            return self.root.word(data)
        if name.startswith("-") or not is_name(name):
            raise Refusal("not-found", f"no data set is called {name[:80]!r}")
        return name

    def _settings(self, method: Method, settings: Mapping[str, Setting], flags: tuple[str, ...]) -> Iterator[str]:
        for key, value in settings.items():
            if key not in method.options:
                raise Refusal("refused", f"{method.name} has no setting {key[:80]!r}")
            text = self._value(method, key, value)
            if text is None:
                continue
            yield from (f"--{key.replace('_', '-')}", text) if key in flags else ("--set", f"{key}={text}")

    def _value(self, method: Method, key: str, value: Setting) -> str | None:
        """Return a value as a command reads it, None to leave the setting at its default."""
        if value is None:
            return OPEN_WORDS.get(key)
        text = text_of(value)
        if not 0 < len(text) < 200 or text.startswith("-") or not text.isprintable():
            raise Refusal("refused", f"{key} = {text[:80]!r} is no value")
        # A setting that may name a file of this machine names one below the studio's folder.
        is_path = method.options[key].file and re.fullmatch("[a-z-]+", text) is None
        return self.root.word(text) if is_path else text


def text_of(value: Setting) -> str:
    """Return a value as it is typed."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return str(value)


def line_of(*commands: Sequence[str]) -> str:
    """Return the commands to copy, each to be run where the one before went well."""
    return " && ".join(f"graphveil {shlex.join(words)}" for words in commands)


def _toml_value(option: Option, text: str) -> object:
    """Return a value as a file of TOML holds it."""
    try:
        return {"true": True, "false": False}[text] if option.type is bool else option.type(text)
    except (KeyError, ValueError):
        return text


def _options(*options: tuple[str, str | float | Path | None]) -> Iterator[str]:
    """Yield the options that have a value; True stands for itself."""
    for name, value in options:
        if isinstance(value, bool):
            yield from [name] if value else []
        elif value is not None:
            yield from (name, text_of(value) if isinstance(value, float) else str(value))


def _method(name: str | None) -> Method:
    if _required(name, "method") not in METHODS:
        raise Refusal("refused", f"no method {name!r}; allowed: {', '.join(METHODS)}")
    return METHODS[str(name)]


def _required(value: T | None, name: str) -> T:
    if not value:
        raise Refusal("bad-request", f"it names no {name}")
    return value
