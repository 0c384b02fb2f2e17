"""All audits of a federation, each a function of a seed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from graphveil.audit.federation.cases import (
    audit_noise_in_shares,
    audit_published,
    audit_published_exactly,
    audit_shrunk,
)
from graphveil.audit.federation.dealer import audit_dealer
from graphveil.audit.federation.holders import audit_holders
from graphveil.audit.federation.person import DEGREE, ROLES, audit_person
from graphveil.audit.federation.replay import audit_features, audit_label, audit_shares
from graphveil.audit.verdict import Audit, timed
from graphveil.federation.core.setting import MODES
from graphveil.federation.crypto.sharing import PARTIES

Run = Callable[[int], Audit]
ON_SHARES = ("paper", "shared-linear")


def publication_audits() -> tuple[Run, ...]:
    """Return the audits of what holders publish."""
    return (
        lambda _: audit_published_exactly(),
        lambda seed: audit_published(seed=seed),
        lambda seed: audit_shrunk(seed=seed),
        lambda seed: audit_noise_in_shares(seed=seed),
    )


def program_audits() -> tuple[Run, ...]:
    """Return the audits of the programs of each mode, and of what parties see who put together all they were dealt."""
    replays = [partial(_timed, audit, mode) for mode in MODES for audit in (audit_features, audit_label)]
    shares = [partial(_timed, audit_shares, mode) for mode in ON_SHARES]
    least, most = PARTIES
    counts = range(least, most + 1)
    dealers = [partial(_timed, partial(audit_dealer, holders=n), mode) for mode in MODES for n in counts]
    together = [
        partial(_timed, partial(audit_holders, holders=n, victim=victim), mode)
        for mode in ON_SHARES
        for n in counts[:2]
        for victim in range(n)
    ]
    people = [partial(_timed, partial(audit_person, degree_bound=n), role) for n in (0, DEGREE) for role in ROLES]
    return (*replays, *shares, *dealers, *together, *people)


def _timed(audit: Callable[..., Audit], mode: str, seed: int) -> Audit:
    return timed(lambda: audit(mode, seed=seed))
