"""Guarantees, budgets, accounting and randomness: what privacy means here, without any machine learning.

The names below load on first use: what a guarantee says can be read without SciPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphveil.runtime.late import late_names, lazy_names

if TYPE_CHECKING:
    from graphveil.privacy.accounting.accountant import compose as compose
    from graphveil.privacy.accounting.accountant import either as either
    from graphveil.privacy.accounting.accountant import epsilon_of as epsilon_of
    from graphveil.privacy.accounting.accountant import several as several
    from graphveil.privacy.accounting.accountant import share_out as share_out
    from graphveil.privacy.accounting.budget_split import CalibratedPipeline as CalibratedPipeline
    from graphveil.privacy.accounting.budget_split import calibrate as calibrate
    from graphveil.privacy.accounting.budget_split import calibrate_pipeline as calibrate_pipeline
    from graphveil.privacy.accounting.budget_split import default_split as default_split
    from graphveil.privacy.accounting.changed_samples import ChangedSamples as ChangedSamples
    from graphveil.privacy.accounting.gaussian import analytic_gaussian_sigma as analytic_gaussian_sigma
    from graphveil.privacy.accounting.gaussian import gaussian_delta as gaussian_delta
    from graphveil.privacy.accounting.gaussian import gaussian_epsilon as gaussian_epsilon
    from graphveil.privacy.accounting.limits import require_budget as require_budget
    from graphveil.privacy.accounting.pipeline import Descent as Descent
    from graphveil.privacy.accounting.pipeline import Hops as Hops
    from graphveil.privacy.accounting.pipeline import pipeline_epsilon as pipeline_epsilon
    from graphveil.privacy.accounting.pipeline import pipeline_event as pipeline_event
    from graphveil.privacy.accounting.selection import RepeatAndSelect as RepeatAndSelect
    from graphveil.privacy.accounting.selection import repeat_and_select as repeat_and_select
    from graphveil.privacy.ledger import Account as Account
    from graphveil.privacy.ledger import Budget as Budget
    from graphveil.privacy.ledger import Ledger as Ledger
    from graphveil.privacy.ledger import Spend as Spend
    from graphveil.privacy.source.derived import BlockKey as BlockKey
    from graphveil.privacy.source.derived import BlockNoise as BlockNoise
    from graphveil.privacy.source.derived import PermanentRandomness as PermanentRandomness
    from graphveil.privacy.source.randomness import Randomness as Randomness
    from graphveil.privacy.source.randomness import SecureRandomness as SecureRandomness
    from graphveil.privacy.source.randomness import SeededRandomness as SeededRandomness
    from graphveil.privacy.source.randomness import require_randomness as require_randomness
    from graphveil.privacy.statement.assumption import Assumption as Assumption
    from graphveil.privacy.statement.assumption import assume as assume
    from graphveil.privacy.statement.guarantee import Guarantee as Guarantee
    from graphveil.privacy.statement.observer import Observer as Observer
    from graphveil.privacy.statement.unit import ProtectedUnit as ProtectedUnit
    from graphveil.privacy.statement.unit import together as together

_HOMES = late_names(__name__, __file__)

__all__ = sorted(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
