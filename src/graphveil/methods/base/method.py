"""One entry a method: what it is, what it takes and where its parts are; reading it loads none of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from graphveil.errors import InputError

#: Tags of methods.
RELEASE, PAID_TUNING, BASELINE = "release", "paid tuning", "baseline"


@dataclass(frozen=True)
class Option:
    """A setting of a method: its default, its type and one line of help."""

    default: Any
    type: type
    help: str


@dataclass(frozen=True)
class Replay:
    """A run that the audit makes on two graphs that differ in one unit, to compare what comes out.

    Attributes:
        changes: the unit: "person", "label", "edge", "private edge", "node" or "feature vector".
        settings: of the method.
        variant: what tells the run from the method's others.
    """

    changes: str
    settings: Mapping[str, Any]
    variant: str = ""


def _refuse_nothing(given: Mapping[str, Any]) -> None:
    """Most methods take any of their options together."""


@dataclass(frozen=True, eq=False)
class Method:
    """A method by name.  Help texts, tables, tuning and audits are derived from it; calling it builds the estimator.

    Attributes:
        name: as users type it.
        summary: one line.
        trust: "local" (nobody sees raw data), "central" (a curator does), "none" (nothing is protected).
        core: where the class is that does the work, "module:Class".
        family: where the methods of its kind meet runs, plans and tuning, "module:OBJECT"; see `base.family`.
        options: setting -> what it is, in the order in which they are listed; seed and device belong to a run.
        reads: what of a person it reads.
        tags: RELEASE publishes a graph; PAID_TUNING has trials that cost privacy; BASELINE protects nothing.
        fixed: settings of the core that are not for users to choose.
        free: settings that nothing sent or published depends on: trials of them on one collection cost nothing.
        replays: the runs that the audit replays; none where nothing is protected.
        refuse: raises InputError for chosen settings (without defaults) that do not go together.
    """

    name: str
    summary: str
    trust: str
    core: str
    family: str
    options: Mapping[str, Option]
    reads: tuple[str, ...] = ("features", "labels", "edges")
    tags: frozenset[str] = frozenset()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    free: tuple[str, ...] = ()
    replays: tuple[Replay, ...] = ()
    refuse: Callable[[Mapping[str, Any]], None] = _refuse_nothing

    def settle(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings with defaults filled in.

        Raises:
            InputError: for a setting the method does not take, or settings that do not go together.
        """
        for name in settings:
            if name not in self.options:
                raise InputError(f"setting {name!r} is not known", allowed=", ".join(sorted(self.options)))
        # Both together would leave open which of the two a person pays.
        if settings.get("epsilon") is not None and {"epsilon_x", "epsilon_y"} & set(settings):
            raise InputError(
                "epsilon is a total that is split for you",
                allowed="epsilon, or epsilon_x and epsilon_y",
                remedy="leave one of the two out",
            )
        self.refuse(settings)
        return {**{name: option.default for name, option in self.options.items()}, **settings}

    def load_core(self) -> Any:
        """Return the class that does the work."""
        return load_path(self.core)

    def load_family(self) -> Any:
        """Return the family's object, a `base.family.Family`."""
        return load_path(self.family)

    def build(self, **settings: Any) -> Any:
        """Return an unfitted estimator.

        Args:
            settings: of the core; those that the method fixes are not taken from here.

        Raises:
            InputError: for an unknown setting or value.
        """
        # Fixed settings last: what is not for users to choose cannot be chosen by a keyword either.
        return self.load_core()(**{**settings, **self.fixed})

    __call__ = build


def load_path(path: str) -> Any:
    """Return what "module:name" says."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
