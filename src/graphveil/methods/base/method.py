"""One entry a method: what it is, what it takes and where its parts are; reading it loads none of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeAlias, TypeVar

from graphveil.errors import InputError

if TYPE_CHECKING:
    from torch import nn

    from graphveil.methods.base.core import Core
    from graphveil.methods.base.estimator import Estimator

P = ParamSpec("P")
C = TypeVar("C", bound="Core[Any]")

#: Tags of methods.
RELEASE, PAID_TUNING, BASELINE, PUBLISHED_RIVAL = "release", "paid tuning", "baseline", "published rival"
#: Everybody sends one of several reports, so that each of them may cost all that a person spends.
ONE_REPORT = "one report"


@dataclass(frozen=True)
class Option:
    """A setting of a method.

    Attributes:
        default, type, help: the last one line.
        file: it may name a file.
        within: the names that it takes, where they are not those that `base.ranges` has for a setting of its name.
    """

    default: Any
    type: type
    help: str
    file: bool = False
    within: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Forced:
    """A setting that leaves another only one value: the other follows, unless it is set as well.

    Attributes:
        by: the setting that forces.
        other, value: what follows, and the value that it is left with.
        where: the values of `by` that force; None: whatever it is set to.
    """

    by: str
    other: str
    value: Any
    where: tuple[Any, ...] | None = None

    def holds(self, settings: Mapping[str, Any]) -> bool:
        """Whether these settings, without defaults, leave the other open and force it."""
        chosen = settings.get(self.by)
        if chosen is None or settings.get(self.other) is not None:
            return False
        return self.where is None or chosen in self.where


@dataclass(frozen=True)
class Replay:
    """A run that the audit makes on two graphs that differ in one unit, to compare what comes out.

    Attributes:
        changes: the unit: "person", "label", "edge", "set of contacts", "private edge", "node" or "feature vector".
        settings: of the method.
        variant: what tells the run from the method's others.
    """

    changes: str
    settings: Mapping[str, Any]
    variant: str = ""


def _refuse_nothing(given: Mapping[str, Any]) -> None:
    """Most methods take any of their options together."""


class _Documented:
    """What `help` shows: of the class its own text, of a method that of its core, which is loaded then."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __get__(self, entry: AnyMethod | None, kind: type) -> str:
        return self._text if entry is None else str(entry.load_core().__doc__)


@dataclass(frozen=True, eq=False)
class Method(Generic[P, C]):
    """A method: what commands call by `name` and the library under `public_name`; calling it builds the estimator.

    Help texts, tables, tuning and audits are derived from it. To type checkers it is `Method[P, C]`: called with P, the
    settings of its core, it gives an `Estimator[C]`.

    Attributes:
        name: as users type it.
        summary: one line.
        trust: "local" (nobody sees raw data), "central" (a curator does), "none" (nothing is protected).
        core: where the class is that does the work, "module:Class"; its name without "Core" is the public one.
        family: where the methods of its kind meet runs, plans and tuning, "module:OBJECT"; see `base.family`.
        options: setting -> what it is, in the order in which they are listed; seed and device belong to a run.
        reads: what of a person it reads.
        tags: RELEASE publishes a graph; PAID_TUNING has trials that cost privacy; BASELINE protects nothing;
            PUBLISHED_RIVAL is here to be compared with, and runs of other methods do not show it;
            ONE_REPORT has everybody send one of several reports.
        fixed: settings of the core that are not for users to choose.
        free: settings that nothing sent or published depends on: trials of them on one collection cost nothing.
        search: the settings that matter, and the values that `tune` tries where nobody names any: at most a dozen
            combinations, with the defaults among them.
        replays: the runs that the audit replays; none where nothing is protected.
        refuse: raises InputError for chosen settings (without defaults) that do not go together.
        forced: settings that follow from others.
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
    search: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    replays: tuple[Replay, ...] = ()
    refuse: Callable[[Mapping[str, Any]], None] = _refuse_nothing
    forced: tuple[Forced, ...] = ()

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
                remedy="leave out one of the two",
            )
        settings = self.followed(settings)
        self.refuse(settings)
        return {**{name: option.default for name, option in self.options.items()}, **settings}

    def followed(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return chosen settings with those that follow from them."""
        return {**settings, **{rule.other: rule.value for rule in self.forced if rule.holds(settings)}}

    @property
    def public_name(self) -> str | None:
        """What the library exports it as; None for another name of the same core with some settings fixed."""
        return None if self.fixed else self.core.rpartition(":")[2].removesuffix("Core")

    @property
    def kind(self) -> str:
        """The name under which models are saved, which is that of all methods with this core."""
        return str(self.load_core().kind)

    def load_core(self) -> type[C]:
        """Return the class that does the work."""
        core: type[C] = load_path(self.core)
        return core

    def load_family(self) -> Any:
        """Return the family's object, a `base.family.Family`."""
        return load_path(self.family)

    def __call__(self, *args: P.args, **settings: P.kwargs) -> Estimator[C]:
        """Return an unfitted estimator.

        Args:
            args: none; settings have names.
            settings: of the core; those that the method fixes are not taken from here.

        Raises:
            InputError: for an unknown setting or value.
        """
        from graphveil.methods.base.estimator import Estimator

        if "backbone" in settings and "backbone" not in self.__signature__.parameters:
            raise InputError(
                "this method trains no network, or one that reads hops, noisy sums or a release in parts that a "
                "module of plain rows does not take",
                where="backbone",
                allowed="with lpgnn, solitude, class-sums and dp-mlp",
            )
        # Fixed settings last: what is not for users to choose cannot be chosen by a keyword either.
        return Estimator(self.load_core()(*args, **{**self.followed(settings), **self.fixed}))

    def load(self, path: str | Path, *, backbone: nn.Module | None = None) -> Estimator[C]:
        """Return a saved estimator, able to predict; what it spent stays spent.

        Args:
            path: the file, or the folder that holds `model.safetensors`.
            backbone: the module that was trained, where it was a user's own.

        Raises:
            ModelFileError: for a file that is missing, damaged or of another method.
        """
        from graphveil.methods.base.estimator import load_estimator

        return load_estimator(self.load_core(), path, backbone=backbone)

    @property
    def __signature__(self) -> inspect.Signature:
        from graphveil.methods.base.core import signature_of

        return signature_of(self.load_core())

    __doc__ = _Documented(str(__doc__))


#: A method of which nothing more is known.
AnyMethod: TypeAlias = Method[..., Any]


def load_path(path: str) -> Any:
    """Return what "module:name" says."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
