"""Guarantees, budgets, accounting and randomness: what privacy means here, without any machine learning."""

from graphveil.privacy.accountant import compose, epsilon_of, several
from graphveil.privacy.assumption import Assumption, assume
from graphveil.privacy.budget_split import CalibratedPipeline, calibrate_pipeline, default_split
from graphveil.privacy.calibration import analytic_gaussian_sigma, calibrate
from graphveil.privacy.changed_samples import ChangedSamples
from graphveil.privacy.gaussian import gaussian_delta, gaussian_epsilon
from graphveil.privacy.guarantee import Guarantee
from graphveil.privacy.ledger import Account, Budget, Ledger, Spend
from graphveil.privacy.limits import require_budget
from graphveil.privacy.observer import Observer
from graphveil.privacy.permanent import PermanentRandomness
from graphveil.privacy.pipeline import Descent, Hops, pipeline_epsilon, pipeline_event
from graphveil.privacy.randomness import Randomness, SecureRandomness, SeededRandomness
from graphveil.privacy.selection import RepeatAndSelect, repeat_and_select
from graphveil.privacy.unit import ProtectedUnit, together

__all__ = [
    "Account",
    "Assumption",
    "Budget",
    "CalibratedPipeline",
    "ChangedSamples",
    "Descent",
    "Guarantee",
    "Hops",
    "Ledger",
    "Observer",
    "PermanentRandomness",
    "ProtectedUnit",
    "Randomness",
    "RepeatAndSelect",
    "SecureRandomness",
    "SeededRandomness",
    "Spend",
    "analytic_gaussian_sigma",
    "assume",
    "calibrate",
    "calibrate_pipeline",
    "compose",
    "default_split",
    "epsilon_of",
    "gaussian_delta",
    "gaussian_epsilon",
    "pipeline_epsilon",
    "pipeline_event",
    "repeat_and_select",
    "require_budget",
    "several",
    "together",
]
