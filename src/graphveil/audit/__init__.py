"""Audits: lower bounds on the epsilon of any mechanism, method and release, and what leaks beside them."""

from graphveil.audit.canaries import audit_edge_canaries, audit_people_canaries, one_run_bound
from graphveil.audit.catalogue import AuditTarget, run_audits, targets
from graphveil.audit.exact import audit_table, least_epsilon, worst_ratio
from graphveil.audit.pipelines import PIPELINES, pipeline
from graphveil.audit.replay import Pipeline, audit_replay
from graphveil.audit.sampled import audit_events, audit_mu, epsilon_bound, mu_bound
from graphveil.audit.sums import audit_sums
from graphveil.audit.verdict import Audit

__all__ = [
    "PIPELINES",
    "Audit",
    "AuditTarget",
    "Pipeline",
    "audit_edge_canaries",
    "audit_events",
    "audit_mu",
    "audit_people_canaries",
    "audit_replay",
    "audit_sums",
    "audit_table",
    "epsilon_bound",
    "least_epsilon",
    "mu_bound",
    "one_run_bound",
    "pipeline",
    "run_audits",
    "targets",
    "worst_ratio",
]
