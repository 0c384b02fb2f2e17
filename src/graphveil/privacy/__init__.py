"""Guarantees, budgets, accounting and randomness: what privacy means here, without any machine learning.

The names below load on first use: what a guarantee says can be read without SciPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphveil.exports import lazy_names

if TYPE_CHECKING:
    from graphveil.privacy.accountant import compose as compose
    from graphveil.privacy.accountant import either as either
    from graphveil.privacy.accountant import epsilon_of as epsilon_of
    from graphveil.privacy.accountant import several as several
    from graphveil.privacy.accountant import share_out as share_out
    from graphveil.privacy.assumption import Assumption as Assumption
    from graphveil.privacy.assumption import assume as assume
    from graphveil.privacy.block_noise import BlockKey as BlockKey
    from graphveil.privacy.block_noise import BlockNoise as BlockNoise
    from graphveil.privacy.budget_split import CalibratedPipeline as CalibratedPipeline
    from graphveil.privacy.budget_split import calibrate_pipeline as calibrate_pipeline
    from graphveil.privacy.budget_split import default_split as default_split
    from graphveil.privacy.calibration import analytic_gaussian_sigma as analytic_gaussian_sigma
    from graphveil.privacy.calibration import calibrate as calibrate
    from graphveil.privacy.changed_samples import ChangedSamples as ChangedSamples
    from graphveil.privacy.gaussian import gaussian_delta as gaussian_delta
    from graphveil.privacy.gaussian import gaussian_epsilon as gaussian_epsilon
    from graphveil.privacy.guarantee import Guarantee as Guarantee
    from graphveil.privacy.ledger import Account as Account
    from graphveil.privacy.ledger import Budget as Budget
    from graphveil.privacy.ledger import Ledger as Ledger
    from graphveil.privacy.ledger import Spend as Spend
    from graphveil.privacy.limits import require_budget as require_budget
    from graphveil.privacy.observer import Observer as Observer
    from graphveil.privacy.permanent import PermanentRandomness as PermanentRandomness
    from graphveil.privacy.pipeline import Descent as Descent
    from graphveil.privacy.pipeline import Hops as Hops
    from graphveil.privacy.pipeline import pipeline_epsilon as pipeline_epsilon
    from graphveil.privacy.pipeline import pipeline_event as pipeline_event
    from graphveil.privacy.randomness import Randomness as Randomness
    from graphveil.privacy.randomness import SecureRandomness as SecureRandomness
    from graphveil.privacy.randomness import SeededRandomness as SeededRandomness
    from graphveil.privacy.selection import RepeatAndSelect as RepeatAndSelect
    from graphveil.privacy.selection import repeat_and_select as repeat_and_select
    from graphveil.privacy.unit import ProtectedUnit as ProtectedUnit
    from graphveil.privacy.unit import together as together

_HOMES = {
    "Account": "ledger",
    "Assumption": "assumption",
    "BlockKey": "block_noise",
    "BlockNoise": "block_noise",
    "Budget": "ledger",
    "CalibratedPipeline": "budget_split",
    "ChangedSamples": "changed_samples",
    "Descent": "pipeline",
    "Guarantee": "guarantee",
    "Hops": "pipeline",
    "Ledger": "ledger",
    "Observer": "observer",
    "PermanentRandomness": "permanent",
    "ProtectedUnit": "unit",
    "Randomness": "randomness",
    "RepeatAndSelect": "selection",
    "SecureRandomness": "randomness",
    "SeededRandomness": "randomness",
    "Spend": "ledger",
    "analytic_gaussian_sigma": "calibration",
    "assume": "assumption",
    "calibrate": "calibration",
    "calibrate_pipeline": "budget_split",
    "compose": "accountant",
    "default_split": "budget_split",
    "either": "accountant",
    "epsilon_of": "accountant",
    "gaussian_delta": "gaussian",
    "gaussian_epsilon": "gaussian",
    "pipeline_epsilon": "pipeline",
    "pipeline_event": "pipeline",
    "repeat_and_select": "selection",
    "require_budget": "limits",
    "several": "accountant",
    "share_out": "accountant",
    "together": "unit",
}

__all__ = list(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
