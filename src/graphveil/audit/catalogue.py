"""Everything that can be audited, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from graphveil.audit.canaries import EDGE_CANARIES, audit_edge_canaries, audit_people_canaries
from graphveil.audit.cases import Case, audit_exactly, audit_samples, feature_cases, permanent_cases
from graphveil.audit.edge_cases import edge_cases
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
from graphveil.audit.pipelines import PIPELINES, pipeline
from graphveil.audit.replay import audit_replay
from graphveil.audit.sums import audit_sums
from graphveil.audit.tree_cases import TreeCase, audit_limit, audit_steps, audit_walks, block_case, tree_cases
from graphveil.audit.verdict import Audit, timed
from graphveil.errors import InputError
from graphveil.federation.core.setting import MODES
from graphveil.federation.crypto.sharing import PARTIES
from graphveil.mechanisms.catalogue import current_name
from graphveil.methods import METHODS as CATALOGUE
from graphveil.runtime.progress import Progress, ProgressCallback

MECHANISMS: Final = "mechanisms"
METHODS: Final = "methods"
ALL: Final = "all"
#: Groups of targets, which can be named like one.
GROUPS: Final = (MECHANISMS, METHODS, ALL)
#: Modes of a federation that train on shares.
ON_SHARES: Final = ("paper", "shared-linear")
Run = Callable[[int], Audit]


@dataclass(frozen=True)
class AuditTarget:
    """Something that can be audited.

    Attributes:
        name: as `run_audits` takes it; a mechanism and the release made of it share a name.
        mechanism: audits of a mechanism alone, each a function of a seed. method: audits of whole runs.
    """

    name: str
    mechanism: tuple[Run, ...] = ()
    method: tuple[Run, ...] = ()

    def audits(self, group: str = ALL) -> tuple[Run, ...]:
        """Return the audits of one group."""
        return {MECHANISMS: self.mechanism, METHODS: self.method}.get(group, self.mechanism + self.method)


def targets() -> dict[str, AuditTarget]:
    """Return every target by name: the mechanisms of the catalogue, noisy sums, trees, methods and releases."""
    mechanisms: dict[str, tuple[Run, ...]] = {}
    for case in (*feature_cases(), *edge_cases(), block_case()):
        name = case.name.split(",")[0]
        mechanisms[name] = (*mechanisms.get(name, ()), _exactly(case), _samples(case))
    mechanisms["permanent-reports"] = tuple(_samples(case) for case in permanent_cases())
    for tree in tree_cases():
        name = tree.name.split(",")[0]
        mechanisms[name] = (*mechanisms.get(name, ()), *_drawn_trees(tree))
    mechanisms["noisy-sums"] = (
        partial(_sums, "edge"),
        partial(_sums, "directed-edge"),
        partial(_sums, "k-edges", relationships=3),
    )
    methods: dict[str, tuple[Run, ...]] = {}
    for setup in PIPELINES:
        name = setup.split(",")[0]
        methods[name] = (*methods.get(name, ()), partial(_replay, setup), *_canaries(setup))
    mechanisms["federation"], methods["federation"] = publication_audits(), program_audits()
    names = dict.fromkeys((*mechanisms, *methods))
    return {name: AuditTarget(name, mechanisms.get(name, ()), methods.get(name, ())) for name in names}


def run_audits(name: str, *, seed: int = 0, progress: ProgressCallback | None = None) -> tuple[Audit, ...]:
    """Run every audit of a target, or of a group of targets. Raises InputError: no such target.

    Args:
        name: of a target, or one of `GROUPS`.
        seed: fixes the made data and the noise: what is audited is made up, so its noise protects nobody.
    """
    available, name = targets(), current_name(name)
    # Refused rather than passed: "holds" beside a method without a claim would be taken for one.
    if name in CATALOGUE and CATALOGUE[name].trust == "none":
        what = f"{name} promises nothing: there is no claim to audit"
        raise InputError(what, remedy="graphveil attack shows what it leaks")
    if name not in available and name not in GROUPS:
        raise InputError(f"audit target {name!r} is not known", allowed=", ".join((*GROUPS, *available)))
    group = name if name in GROUPS else ALL
    chosen = [target for target in available.values() if name in (target.name, *GROUPS) and target.audits(group)]
    audits: list[Audit] = []
    for done, target in enumerate(chosen):
        if progress is not None:
            progress(Progress(done, len(chosen), f"audit {target.name}"))
        audits += [audit(seed) for audit in target.audits(group)]
    return tuple(audits)


def _exactly(case: Case) -> Run:
    return lambda _: audit_exactly(case)


def _samples(case: Case) -> Run:
    return lambda seed: audit_samples(case, seed=seed)


def _drawn_trees(case: TreeCase) -> tuple[Run, ...]:
    return (lambda _: audit_limit(case), lambda _: audit_steps(case), lambda seed: audit_walks(case, seed=seed))


def _sums(unit: str, seed: int, relationships: int | None = None) -> Audit:
    return audit_sums(unit, relationships=relationships, seed=seed)


def _replay(name: str, seed: int) -> Audit:
    return timed(lambda: audit_replay(pipeline(name, seed=seed), seed=seed))


def _canaries(name: str) -> tuple[Run, ...]:
    if name == "lpgnn":
        return (lambda seed: timed(lambda: audit_people_canaries(seed=seed)),)
    if name in EDGE_CANARIES:
        return (lambda seed: timed(lambda: audit_edge_canaries(name, seed=seed)),)
    return ()


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
