"""The entry of a method: what it is, its options and the location of its class, which the entry does not load."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from graphveil.errors import InputError

#: Tags of methods.
RELEASE, PAID_TUNING, BASELINE, PUBLISHED_RIVAL = "release", "paid tuning", "baseline", "published rival"
#: Everybody sends one of several reports, so that each of them may cost all that a person spends.
ONE_REPORT = "one report"


@dataclass(frozen=True)
class Option:
    """A setting of a method.

    Attributes:
        help: one line. file: whether it may name a file.
        within: the names that it takes, where they are not those that `base.settings` has for a setting of its name.
    """

    default: Any
    type: type
    help: str
    file: bool = False
    within: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Forced:
    """A setting that leaves another setting only one value, which the other then gets unless it is set.

    Attributes:
        by: the setting that forces. setting, value: the setting that is forced, and its value.
        where: the values of `by` that force; None: all.
    """

    by: str
    setting: str
    value: Any
    where: tuple[Any, ...] | None = None

    def applies(self, settings: Mapping[str, Any]) -> bool:
        """Whether these settings, without defaults, force the setting and do not set it."""
        cause = settings.get(self.by)
        if cause is None or settings.get(self.setting) is not None:
            return False
        return self.where is None or cause in self.where


@dataclass(frozen=True)
class Replay:
    """A run that the audit repeats on two graphs that differ in one unit, to compare the outputs.

    Attributes:
        changes: the unit: "person", "label", "edge", "set of contacts", "private edge", "node" or "feature vector".
        variant: what distinguishes the run from other replays of the method.
    """

    changes: str
    settings: Mapping[str, Any]
    variant: str = ""


def _refuse_nothing(given: Mapping[str, Any]) -> None:
    """Most methods take any of their options together."""


@dataclass(frozen=True, eq=False)
class Method:
    """What commands need to know of a method; help texts, tables, tuning and audits are derived from it.

    The class of the method has it as `entry`.

    Attributes:
        trust: "local" (nobody sees raw data), "central" (a curator does), "none" (nothing is protected).
        location: where the class is, "module:Class"; the library exports it under that name.
        family: the object through which runs, plans and tuning use it, "module:OBJECT"; see `base.family`.
        options: setting -> option, in the order of lists; seed and device belong to a run and are not among them.
        tags: RELEASE publishes a graph; PAID_TUNING has trials that cost privacy; BASELINE protects nothing;
            PUBLISHED_RIVAL is here to be compared with, and runs of other methods do not show it;
            ONE_REPORT has everybody send one of several reports.
        fixed: settings of the class that it extends that users cannot choose.
        free: settings on which nothing sent or published depends: trials of them on one collection cost nothing.
        search: the settings that matter, and the values that `tune` tries by default: at most a dozen combinations,
            the defaults among them.
        replays: the runs that the audit replays; none where nothing is protected.
        refuse: raises InputError for settings (without defaults) that do not go together.
        forced: settings that follow from others.
    """

    name: str
    summary: str
    trust: str
    location: str
    family: str
    options: Mapping[str, Option]
    reads: tuple[str, ...] = ("features", "labels", "edges")
    tags: frozenset[str] = frozenset()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    free: tuple[str, ...] = ()
    search: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    replays: tuple[Replay, ...] = ()
    refuse: Callable[[Mapping[str, Any]], None] = _refuse_nothing
    forced: tuple[Forced, ...] = ()

    def settle(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings with defaults filled in; refuses unknown ones, and some that do not go together."""
        for name in settings:
            if name not in self.options:
                raise InputError(f"setting {name!r} is not known", allowed=", ".join(sorted(self.options)))
        # Together they would leave open what a person pays.
        if settings.get("epsilon") is not None and {"epsilon_x", "epsilon_y"} & set(settings):
            raise InputError(
                "epsilon is a total that is split for you",
                allowed="epsilon, or epsilon_x and epsilon_y",
                remedy="leave out one of the two",
            )
        settings = self.with_forced(settings)
        self.refuse(settings)
        return {**{name: option.default for name, option in self.options.items()}, **settings}

    def with_forced(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return settings, without defaults, and those that they force."""
        return {**settings, **{rule.setting: rule.value for rule in self.forced if rule.applies(settings)}}

    @property
    def class_name(self) -> str:
        """The name of its class."""
        return self.location.rpartition(":")[2]

    def load_class(self) -> Any:
        """Return its class, a `base.estimator.Estimator`."""
        return load_path(self.location)

    def load_family(self) -> Any:
        """Return the family's object, a `base.family.Family`."""
        return load_path(self.family)


def entry_of(name: str, methods: Iterable[Method]) -> Method:
    """Return the entry of this name."""
    return next(method for method in methods if method.name == name)


def load_path(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
