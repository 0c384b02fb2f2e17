"""Audits: lower bounds on the epsilon of any mechanism, method and release, and what leaks beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphveil.runtime.late import late_names, lazy_names

if TYPE_CHECKING:
    from graphveil.audit.canaries import audit_edge_canaries as audit_edge_canaries
    from graphveil.audit.canaries import audit_people_canaries as audit_people_canaries
    from graphveil.audit.canaries import one_run_bound as one_run_bound
    from graphveil.audit.catalogue import AuditTarget as AuditTarget
    from graphveil.audit.catalogue import audit_sums as audit_sums
    from graphveil.audit.catalogue import run_audits as run_audits
    from graphveil.audit.catalogue import targets as targets
    from graphveil.audit.exact import audit_table as audit_table
    from graphveil.audit.exact import least_epsilon as least_epsilon
    from graphveil.audit.exact import worst_ratio as worst_ratio
    from graphveil.audit.pipelines import PIPELINES as PIPELINES
    from graphveil.audit.pipelines import pipeline as pipeline
    from graphveil.audit.replay import Pipeline as Pipeline
    from graphveil.audit.replay import audit_replay as audit_replay
    from graphveil.audit.sampled import audit_events as audit_events
    from graphveil.audit.sampled import audit_mu as audit_mu
    from graphveil.audit.sampled import epsilon_bound as epsilon_bound
    from graphveil.audit.sampled import mu_bound as mu_bound
    from graphveil.audit.verdict import Audit as Audit

_HOMES = late_names(__name__, __file__)

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
