"""Everything that can be audited, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch

from graphveil.aggregation import ReceiverRows
from graphveil.audit import sampled
from graphveil.audit.canaries import EDGE_CANARIES, audit_edge_canaries, audit_people_canaries
from graphveil.audit.cases import audit_exactly, audit_samples, feature_cases, permanent_cases
from graphveil.audit.edge_cases import edge_cases
from graphveil.audit.federation.cases import (
    audit_noise_in_shares,
    audit_published,
    audit_published_exactly,
    audit_shrunk,
)
from graphveil.audit.federation.matrices import audit_matrix
from graphveil.audit.federation.person import DEGREE, ROLES, audit_person
from graphveil.audit.federation.predictions import (
    audit_predicted_once,
    audit_prediction_holders,
    audit_prediction_server,
)
from graphveil.audit.federation.replay import audit_features, audit_label, audit_shares
from graphveil.audit.federation.views import audit_dealer, audit_holders
from graphveil.audit.pipelines import PIPELINES, pipeline
from graphveil.audit.replay import audit_replay
from graphveil.audit.tree_cases import audit_limit, audit_steps, audit_walks, block_case, tree_cases
from graphveil.audit.verdict import Audit, timed
from graphveil.errors import InputError
from graphveil.federation.core.mode import MODE_OF
from graphveil.federation.crypto.sharing import PARTIES
from graphveil.graphs import GraphSchema
from graphveil.mechanisms.catalogue import current_name
from graphveil.methods import METHODS as CATALOGUE
from graphveil.methods.curator.privacy import CuratorPrivacy
from graphveil.privacy import Randomness
from graphveil.runtime.progress import Progress, ProgressCallback

MECHANISMS: Final = "mechanisms"
METHODS: Final = "methods"
ALL: Final = "all"
#: Groups of targets, which can be named like one.
GROUPS: Final = (MECHANISMS, METHODS, ALL)
#: Modes of a federation that train on shares.
ON_SHARES: Final = tuple(mode.name for mode in MODE_OF.values() if "mask-keys" in mode.sent)
Run = Callable[[int], Audit]


@timed
def audit_sums(
    unit: str = "edge",
    *,
    relationships: int | None = None,
    epsilon: float = 1.0,
    delta: float = 1e-5,
    samples: int = 100_000,
    false_alarm: float = sampled.FALSE_ALARM,
    seed: int = 0,
) -> Audit:
    """Audit one noisy sum, calibrated as the curator's methods calibrate it, on as many separate pairs as samples.

    Every node sends the same unit vector; a pair's score is what both ends received along it ("edge"), or what the end
    of the one entry received ("directed-edge").  For "k-edges" there are stars in place of pairs, and the score is what
    the middle received, k times, and what its contacts did: the sums in proportion to how far they move.

    Args:
        unit: "edge", "directed-edge" or "k-edges".
        relationships: k.
        epsilon, delta: what the noise is made for.
        samples: pairs with the edge, and as many without.
        false_alarm: the probability that a true claim is called broken.
    """
    directed = unit == "directed-edge"
    schema = GraphSchema("pairs", 1, 0.0, 1.0, ("first", "second"), directed=directed, source="made for an audit")
    privacy, columns = CuratorPrivacy(epsilon, delta, unit, relationships=relationships), 4
    mechanism = privacy.sums(schema, privacy.noise(schema, hops=1, columns=columns))
    size = 1 + (relationships or 1)
    sent = torch.zeros(size * samples, columns)
    moves = torch.tensor([0.0 if directed else size - 1.0, *[1.0] * (size - 1)], dtype=torch.float64)
    # The longest message there is, along one axis: any shorter or spread one would move the sum by less than it may.
    sent[:, 0] = 1.0

    def draw(is_first: bool, count: int, randomness: Randomness) -> sampled.Scores:
        # Separate pairs or stars, each with noise of its own: one call gives as many independent samples as there are.
        groups = torch.arange(size * count).view(-1, size)
        entries = torch.stack([groups[:, :1].expand(-1, size - 1).ravel(), groups[:, 1:].ravel()])
        edges = entries if directed else torch.cat([entries, entries.flip(0)], dim=1)
        rows = ReceiverRows.of(edges if is_first else edges[:, :0], size * count)
        sums = mechanism.perturb(rows, sent[: size * count], 1, randomness)[:, 0].double().view(-1, size)
        # Noises are independent and equal, so sums weighed by their shifts are the best test of all shifts together.
        scores: sampled.Scores = np.asarray(sums @ moves)
        return scores

    target = f"noisy sums, {privacy.unit_name(schema)}"
    return sampled.audit_mu(target, epsilon, delta, draw, samples=samples, false_alarm=false_alarm, seed=seed)


@dataclass(frozen=True)
class AuditTarget:
    """Something that can be audited, by a name that a mechanism and the release made of it share.

    Attributes:
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
        mechanisms[name] = (*mechanisms.get(name, ()), _exact(audit_exactly, case), _seeded(audit_samples, case))
    mechanisms["permanent-reports"] = tuple(_seeded(audit_samples, case) for case in permanent_cases())
    for tree in tree_cases():
        name = tree.name.split(",")[0]
        drawn = (_exact(audit_limit, tree), _exact(audit_steps, tree), _seeded(audit_walks, tree))
        mechanisms[name] = (*mechanisms.get(name, ()), *drawn)
    mechanisms["noisy-sums"] = (
        _seeded(audit_sums, "edge"),
        _seeded(audit_sums, "directed-edge"),
        _seeded(audit_sums, "k-edges", relationships=3),
    )
    methods: dict[str, tuple[Run, ...]] = {}
    for setup in PIPELINES:
        name = setup.split(",")[0]
        runs = [_seeded(lambda name, seed: audit_replay(pipeline(name, seed=seed), seed=seed), setup)]
        if setup == "lpgnn":
            runs.append(_seeded(audit_people_canaries))
        elif setup in EDGE_CANARIES:
            runs.append(_seeded(audit_edge_canaries, setup))
        methods[name] = (*methods.get(name, ()), *runs)
    published = (_seeded(audit) for audit in (audit_published, audit_shrunk, audit_noise_in_shares, audit_matrix))
    mechanisms["federation"] = (_exact(audit_published_exactly), *published)
    methods["federation"] = _federation_programs()
    names = dict.fromkeys((*mechanisms, *methods))
    return {name: AuditTarget(name, mechanisms.get(name, ()), methods.get(name, ())) for name in names}


def run_audits(name: str, *, seed: int = 0, progress: ProgressCallback | None = None) -> tuple[Audit, ...]:
    """Run every audit of a target, or of a group of targets; raises InputError if there is none.

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
    runs = [(target.name, audit) for target in chosen for audit in target.audits(group)]
    audits: list[Audit] = []
    for done, (of, audit) in enumerate(runs):
        if progress is not None:
            progress(Progress(done, len(runs), f"audit {of}"))
        audits.append(audit(seed))
    return tuple(audits)


def _exact(audit: Callable[..., Audit], *case: object) -> Run:
    return lambda _: audit(*case)


def _seeded(audit: Callable[..., Audit], *case: object, **options: object) -> Run:
    return lambda seed: timed(audit)(*case, seed=seed, **options)


def _federation_programs() -> tuple[Run, ...]:
    """Return the audits of the programs of each mode, and of what parties see who put together all they were dealt."""
    least, most = PARTIES
    counts = range(least, most + 1)
    runs = [_seeded(audit, mode) for mode in MODE_OF for audit in (audit_features, audit_label)]
    runs += [_seeded(audit_shares, mode) for mode in ON_SHARES]
    runs += [_seeded(audit_dealer, mode, holders=n) for mode in MODE_OF for n in counts]
    runs += [
        _seeded(audit_holders, mode, holders=n, victim=victim)
        for mode in ON_SHARES
        for n in counts[:2]
        for victim in range(n)
    ]
    runs += [
        _seeded(audit, holders=n, mode=mode)
        for audit in (audit_prediction_server, audit_predicted_once)
        for mode in MODE_OF
        for n in counts
    ]
    runs += [
        _seeded(audit_prediction_holders, holders=n, mode=mode, victim=victim)
        for mode in ON_SHARES
        for n in counts[:2]
        for victim in range(n)
    ]
    runs += [_seeded(audit_person, role, degree_bound=n) for n in (0, DEGREE) for role in ROLES]
    return tuple(runs)
