"""Guarantees, budgets, accounting and randomness: what privacy means here, without any machine learning.

The names below load on first use: what a guarantee says can be read without SciPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphveil.runtime.late import lazy_names

if TYPE_CHECKING:
    from graphveil.privacy.accounting.accountant import compose, either, epsilon_of, several, share_out
    from graphveil.privacy.accounting.budget_split import (
        CalibratedPipeline,
        calibrate,
        calibrate_pipeline,
        default_split,
    )
    from graphveil.privacy.accounting.changed_samples import ChangedSamples
    from graphveil.privacy.accounting.gaussian import analytic_gaussian_sigma, gaussian_delta, gaussian_epsilon
    from graphveil.privacy.accounting.limits import require_budget
    from graphveil.privacy.accounting.pipeline import Descent, Hops, pipeline_epsilon, pipeline_event
    from graphveil.privacy.accounting.selection import RepeatAndSelect, repeat_and_select
    from graphveil.privacy.ledger import Account, Budget, Ledger, Spend
    from graphveil.privacy.source.derived import BlockKey, BlockNoise, PermanentRandomness
    from graphveil.privacy.source.randomness import Randomness, SecureRandomness, SeededRandomness
    from graphveil.privacy.statement.assumption import Assumption, assume
    from graphveil.privacy.statement.guarantee import Guarantee
    from graphveil.privacy.statement.observer import Observer
    from graphveil.privacy.statement.unit import ProtectedUnit, together

#: Modules of this package and the names that they export here.
_NAMES = {
    "accounting.accountant": ("compose", "either", "epsilon_of", "several", "share_out"),
    "accounting.budget_split": ("CalibratedPipeline", "calibrate", "calibrate_pipeline", "default_split"),
    "accounting.changed_samples": ("ChangedSamples",),
    "accounting.gaussian": ("analytic_gaussian_sigma", "gaussian_delta", "gaussian_epsilon"),
    "accounting.limits": ("require_budget",),
    "accounting.pipeline": ("Descent", "Hops", "pipeline_epsilon", "pipeline_event"),
    "accounting.selection": ("RepeatAndSelect", "repeat_and_select"),
    "ledger": ("Account", "Budget", "Ledger", "Spend"),
    "source.derived": ("BlockKey", "BlockNoise", "PermanentRandomness"),
    "source.randomness": ("Randomness", "SecureRandomness", "SeededRandomness"),
    "statement.assumption": ("Assumption", "assume"),
    "statement.guarantee": ("Guarantee",),
    "statement.observer": ("Observer",),
    "statement.unit": ("ProtectedUnit", "together"),
}

__all__ = ["Account", "Assumption", "BlockKey", "BlockNoise", "Budget", "CalibratedPipeline", "ChangedSamples"]
__all__ += ["Descent", "Guarantee", "Hops", "Ledger", "Observer", "PermanentRandomness", "ProtectedUnit"]
__all__ += ["Randomness", "RepeatAndSelect", "SecureRandomness", "SeededRandomness", "Spend"]
__all__ += ["analytic_gaussian_sigma", "assume", "calibrate", "calibrate_pipeline", "compose", "default_split"]
__all__ += ["either", "epsilon_of", "gaussian_delta", "gaussian_epsilon", "pipeline_epsilon", "pipeline_event"]
__all__ += ["repeat_and_select", "require_budget", "several", "share_out", "together"]

__getattr__, __dir__ = lazy_names(__name__, {name: module for module, names in _NAMES.items() for name in names})
