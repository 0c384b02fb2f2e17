"""How settings are chosen: freely on one collection, at a price on the private graph, or on a public one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphveil.graphs import Graph, Split
from graphveil.methods.registry import METHODS
from graphveil.methods.runs import paid_tuning
from graphveil.methods.runs.paid_tuning import Log, payable, require_payable, tune_at_a_price
from graphveil.methods.runs.proposals import GRID, Range, Values, require_sampler
from graphveil.methods.runs.proxy_tuning import require_free, tune_by_proxy
from graphveil.methods.runs.tuning import TRIALS, Tuned, require_tunable, tune
from graphveil.privacy import Randomness, RepeatAndSelect
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.runtime.progress import ProgressCallback


@dataclass(frozen=True)
class Search:
    """What to try, how often, and where.

    Attributes:
        over: setting -> values to try.
        trials: at most so many; of a paid search the expected number. None: 20, paid 10.
        law: of the number of trials of a paid search.
        proxy: a public graph to choose on; None: the graph that is trained on.
        log: is told the trials of a paid search, for the curator alone.
        sampler: what proposes settings where trials are free, see `proposals`.
        journal: a file that keeps what a sampler heard of a proxy.
    """

    over: Mapping[str, Values]
    trials: int | None = None
    law: str = "logarithmic"
    proxy: Any = None
    log: Log | None = None
    sampler: str = GRID
    journal: Path | None = None

    def paid(self, name: str) -> bool:
        """Whether the trials of a method have a price."""
        # On a public graph trials read nothing private, whatever the method.
        return self.proxy is None and bool(payable(name, {}))

    @property
    def listed(self) -> Mapping[str, Sequence[Any]]:
        """The settings that have a list of values, which all settings of a paid search have."""
        return {key: values for key, values in self.over.items() if not isinstance(values, Range)}

    @property
    def tuning(self) -> RepeatAndSelect:
        """The law of a paid search."""
        return RepeatAndSelect(paid_tuning.MEAN if self.trials is None else self.trials, self.law)

    def summary(self, name: str, settings: Mapping[str, Any]) -> str:
        """Return what is searched, and what that costs, in one line.

        Args:
            name: of the method.
            settings: its other settings.
        """
        tried = "; ".join(f"{key}={','.join(map(str, values))}" for key, values in self.listed.items())
        most = math.prod(len(values) for values in self.listed.values())
        many = min(most, TRIALS if self.trials is None else self.trials)
        if self.paid(name):
            whole = METHODS[name].settle(settings)
            price = f"epsilon {rounded_up(whole['epsilon'])}, delta {rounded_up(whole['delta'])}"
            cost = f"{self.tuning.mean:g} trainings on average, which cost {price} all together"
        elif self.proxy is not None:
            cost = f"{many} trainings on the public {self.proxy}, and the one that is paid for"
        else:
            cost = f"{many} trainings on one collection in each run, which cost what one does"
        return f"Searching {tried}: {cost}"

    def require(self, name: str, settings: Mapping[str, Any]) -> None:
        """Refuse a search that is empty or may not choose what it names, before any data is touched.

        Raises:
            InputError: naming the setting and those that may be tried.
        """
        require_sampler(self.over, self.sampler, paid=self.paid(name))
        if self.paid(name):
            require_payable(name, settings, self.listed, self.tuning)
        else:
            free = require_tunable if self.proxy is None else require_free
            free(name, self.over, TRIALS if self.trials is None else self.trials)


def choose(
    name: str,
    graph: Graph,
    settings: Mapping[str, Any],
    search: Search,
    *,
    split: Split,
    randomness: Randomness,
    seed: int = 0,
    device: str = "cpu",
    progress: ProgressCallback | None = None,
) -> Tuned:
    """Return the method with the best settings, fitted on `graph`; see `tuning`, `paid_tuning` and `proxy_tuning`.

    Raises:
        InputError, BudgetError, DataError: as those do.
    """
    shared: dict[str, Any] = {"split": split, "randomness": randomness, "seed": seed, "device": device}
    shared["progress"] = progress
    if search.paid(name):
        return tune_at_a_price(name, graph, settings, search.listed, tuning=search.tuning, log=search.log, **shared)
    shared |= {"trials": TRIALS if search.trials is None else search.trials, "sampler": search.sampler}
    if search.proxy is not None:
        return tune_by_proxy(name, graph, search.proxy, settings, search.over, journal=search.journal, **shared)
    return tune(name, graph, settings, search.over, **shared)
