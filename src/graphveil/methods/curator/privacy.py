"""What a trusted curator's training costs one edge or one node, and what it guarantees.

    directed-edge  one entry of A                                      noisy sums, w_max (attention: and training)
    edge           one undirected edge, two entries of A               noisy sums, sqrt(2) w_max (the same)
    k-edges        up to k relationships of one person, both entries   noisy sums, sqrt(k (k + 1)) w_max
    node           a node's features, label and list of neighbours     noisy sums, sqrt(D) w_max, and private training

The curator holds the graph and adds the noise; everybody else sees the output. For edges only the noisy sums read what
is protected: training on them is free; attention trains on edges before them, and its steps are charged. A node is in
every step, so every step is charged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, get_args

from graphveil.aggregation import CountedSum, PerturbedSum, Unit, sensitivity_of
from graphveil.errors import InputError, NoiseError
from graphveil.graphs import GraphSchema
from graphveil.methods.base.settings import require_ranges
from graphveil.privacy import (
    Assumption,
    ChangedSamples,
    Descent,
    Guarantee,
    Hops,
    Ledger,
    ProtectedUnit,
    RepeatAndSelect,
    Spend,
    assume,
    calibrate_pipeline,
    default_split,
    gaussian_epsilon,
    pipeline_epsilon,
    repeat_and_select,
    require_budget,
)
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.privacy.ledger import ONE_COPY
from graphveil.privacy.statement.observer import ALL_BUT_CURATOR
from graphveil.privacy.statement.unit import (
    DIRECTED_EDGE,
    EDGE_ENTRY,
    NODE,
    NODE_AND_OWN_LIST,
    NODE_WITHOUT_EDGES,
    RELATIONSHIP_OF_ONE,
    UNDIRECTED_EDGE,
)
from graphveil.runtime.checks import require_number
from graphveil.training.noisy_updates import PrivateSchedule

DEFAULT_DEGREE = 100
# The shares of epsilon and delta that are reserved for the rounding of noise tables, which is checked afterwards.
_RESERVED = (1e-7, 1e-5)
# The price of tables grows a little with the noise that is found later: a tenth more is reserved than at first.
_MARGIN = 1.1
# A trial's score where nodes are protected: its number of validation hits, and its share of the budget (of mu^2).
_SCORE, _SCORE_SHARE = Hops(count=1, name="score"), 0.05


@dataclass(frozen=True)
class Noise:
    """The noise of one training: of the hops, in units of a row's length, and of each private descent; and its price.

    Attributes:
        sigmas, multipliers: one a hop, 0 where nothing is protected; private descent -> noise multiplier.
        epsilon, delta: what everything together costs one unit, rounding included.
        changed: the training on edges, or None.
        score: the noise of a trial's number of validation hits, where that is private, else 0.
        trial: the epsilon of a single trial of a tuning; else 0.
    """

    sigmas: tuple[float, ...]
    multipliers: Mapping[str, float] = field(default_factory=dict, hash=False)
    epsilon: float = math.inf
    delta: float = 0.0
    changed: ChangedSamples | None = None
    score: float = 0.0
    trial: float = 0.0

    @property
    def sums_only(self) -> Noise:
        """The noise of the sums alone, for a query, which trains nothing; still at the whole price."""
        return replace(self, multipliers={}, changed=None, score=0.0, trial=0.0)

    @staticmethod
    def from_dict(facts: Mapping[str, Any]) -> Noise:
        changed = None if facts.get("changed") is None else ChangedSamples(**facts["changed"])
        return Noise(tuple(facts["sigmas"]), facts["multipliers"], float(facts["epsilon"]), facts["delta"], changed)


@dataclass(frozen=True)
class CuratorPrivacy:
    """The privacy settings of a curator's training; public, and all that a guarantee depends on.

    Attributes:
        epsilon: what one training costs one unit; inf protects nothing.
        delta: the probability of a larger loss; choose it below one over the number of protected units, from public
            facts: it is never computed from private counts.
        unit: one of `aggregation.names.UNITS`; None: "edge", in a directed graph "directed-edge".
        degree_bound, rule: D for unit "node", 100 by default; how D is enforced, see `graphs.degree_bound`: each node's
            own list is cut ("lists"), or D is promised ("declared").
        queries: how many times another graph may be predicted later, at the same price each.
        tuning: the law of the number of trials, of which epsilon is the total price, see `runs.search`.
        relationships: k for unit "k-edges": any k of one person may be added or removed; None for the others.
    """

    epsilon: float
    delta: float = 1e-5
    unit: str | None = None
    degree_bound: int | None = None
    rule: str = "lists"
    queries: int = 0
    tuning: RepeatAndSelect | None = None
    relationships: int | None = None

    def __post_init__(self) -> None:
        require_budget("epsilon", self.epsilon, "no privacy")
        require_number("(0, 1)", None, ", below 1 / the number of protected units", delta=self.delta)
        require_ranges(self)
        if self.degree_bound is not None and not self.protects_nodes:
            raise InputError(f"degree_bound does not apply to unit {self.unit or 'edge'}", allowed="with unit node")
        # A default would be promised by nobody.
        if self.protects_nodes and self.rule == "declared" and self.degree_bound is None:
            raise InputError("rule declared without a degree_bound", remedy="say what was promised: degree_bound=20")
        # k is a promise as well.
        if self.unit == "k-edges" and self.relationships is None:
            raise InputError("unit k-edges without a number", remedy="say how many: relationships=5")
        if self.relationships is not None and self.unit != "k-edges":
            raise InputError(f"relationships does not apply to unit {self.unit or 'edge'}", allowed="with unit k-edges")
        if not isinstance(self.tuning, RepeatAndSelect | None):
            raise InputError(
                f"tuning is {self.tuning!r}",
                allowed="a graphveil.privacy.accounting.selection.RepeatAndSelect, or None",
            )
        if self.tuning is not None and self.unprotected:
            raise InputError("nothing is protected at epsilon inf, so trials cost nothing", where="tuning")

    @property
    def protects_nodes(self) -> bool:
        """Whether the unit is a whole node, not edges."""
        return self.unit == "node"

    @property
    def unprotected(self) -> bool:
        """Whether nothing is protected."""
        return math.isinf(self.epsilon)

    @property
    def degree(self) -> int | None:
        """D, or None where edges are protected."""
        return (self.degree_bound or DEFAULT_DEGREE) if self.protects_nodes else None

    @property
    def unit_settings(self) -> dict[str, Any]:
        """The unit as settings of another method."""
        relationships = {} if self.relationships is None else {"relationships": self.relationships}
        return {"unit": self.unit, **relationships}

    @property
    def ledger_unit(self) -> str:
        """The unit of spends in the ledger."""
        return "nodes" if self.protects_nodes else "edges"

    def unit_for(self, schema: GraphSchema) -> Unit:
        """Return the unit in a graph of this kind. Raises InputError for "edge" in a directed graph, where an edge is
        one entry.
        """
        # In a directed graph one edge is one entry: the sqrt(2) of both would be noise for nothing.
        if self.unit == "edge" and schema.directed:
            raise InputError(
                "unit edge is for undirected graphs", where=schema.name, allowed="directed-edge, k-edges, node, or none"
            )
        if self.unit is None:
            return "directed-edge" if schema.directed else "edge"
        return next(unit for unit in get_args(Unit) if unit == self.unit)

    def unit_name(self, schema: GraphSchema) -> str:
        """Return the protected unit in a few words."""
        if self.relationships is not None:
            return str(self._protected(schema, edges=True))
        return f"one {self.unit_for(schema)}"

    def price_of(self, queries: int) -> str:
        """Return the price of one training and so many predictions of other graphs, in a few words."""
        readings = 1 + queries
        # As decimals, as the ledger sums: three times 1e-05 is 3e-05.
        epsilon, delta = (float(readings * Fraction(repr(float(part)))) for part in (self.epsilon, self.delta))
        return f"epsilon {rounded_up(epsilon)}, delta {rounded_up(delta)}"

    def open_ledger(self) -> Ledger:
        """Return an empty ledger with the budget of one training and of the declared queries."""
        readings = 1 + self.queries
        return Ledger.open({self.ledger_unit: (self.epsilon * readings, min(self.delta * readings, 1 - 2**-50))})

    def sums(self, schema: GraphSchema, noise: Noise, *, w_max: float = 1.0, bits: int | None = None) -> PerturbedSum:
        """Return the noisy sums with `noise`; without protection they need no bounded degrees."""
        # At infinite epsilon sums without noise take the same path, so that only the noise differs.
        if self.unprotected:
            return PerturbedSum(unit="directed-edge", sigmas=noise.sigmas, w_max=w_max, bits=bits)
        return replace(self._perturbed_sum(schema, noise.sigmas, w_max), bits=bits)

    def noise(
        self,
        schema: GraphSchema,
        *,
        hops: int,
        w_max: float = 1.0,
        columns: int = 16,
        trained: Mapping[str, tuple[Descent | ChangedSamples, int]] | None = None,
        share_hops: float | None = None,
        portions: Sequence[float] | None = None,
        hop_ratio: float = 1.0,
    ) -> Noise:
        """Return the least noise with which everything that reads protected data costs at most (epsilon, delta).
        Raises NoiseError where no noise reaches the target.

        Args:
            schema, w_max: the public facts, and the largest weight of a message.
            hops, columns: the number of noisy sums, maybe 0 if training is charged; the most columns of a row.
            trained: name -> private training and number of parameters; a `Descent` is charged for unit "node", whose
                samples are protected, `ChangedSamples` (training on edges) for the others.
            share_hops: the share of the budget (of mu^2) for the sums; default a half.
            portions: the shares of each training in the rest, in the order of `trained`; default: equal shares.
            hop_ratio: noise of each sum over that of the sum before.
        """
        charged = {
            name: part for name, part in (trained or {}).items() if isinstance(part[0], Descent) == self.protects_nodes
        }
        if self.unprotected or not (hops or charged):
            return Noise((0.0,) * hops)
        unit, descents = self.unit_for(schema), [descent for descent, _ in charged.values()]
        sensitivity = sensitivity_of(unit, w_max, self.degree, self.relationships)
        steps: list[Hops | Descent | ChangedSamples] = [
            *([_hops(hops, sensitivity, hop_ratio)] if hops else []),
            *descents,
        ]
        # Each trial draws from the tables anew, so it pays for their rounding.
        trials = 1 if self.tuning is None else self.tuning.trials_charged
        # Priced at noise of a tenth of the sensitivity: rounding and cutting off larger noise costs no more.
        sums_at_first = self._perturbed_sum(schema, (sensitivity / 10,) * hops, w_max) if hops else None
        target, reserved = self._target_and_reserve(
            [(part, trials * parameters) for part, parameters in charged.values()],
            sums_at_first,
            columns=trials * (columns + 1),
            trials=trials,
        )
        split = None if share_hops is None or not (hops and descents) else _split(share_hops, descents, portions)
        # Where nodes are protected even a trial's number of validation hits is a query.
        if self.tuning is not None and self.protects_nodes:
            split = _with_score_share(split or default_split(steps))
            steps.append(_SCORE)
        calibrated = calibrate_pipeline(target, self.delta, steps, split=split, reserved=reserved, tuning=self.tuning)
        sigmas = calibrated.sigmas("hops") if hops else ()
        epsilon, delta = calibrated.epsilon, calibrated.delta - calibrated.reserved
        # Calibration assumes ideal normals: each mechanism adds the price of drawing them from tables.
        for descent, parameters in charged.values():
            epsilon, delta = _schedule(descent, calibrated.sigmas(descent.name)[0]).price(
                epsilon, delta, trials * (parameters + 1)
            )
        if hops:
            sums = self._perturbed_sum(schema, sigmas, w_max)
            epsilon, delta = sums.price(epsilon, delta, trials * (columns + 1))
        if self.tuning is not None:
            delta += self.tuning.law_slack(epsilon)
        # Checked on the noise that will really be drawn: never above what was declared.
        if epsilon > self.epsilon or delta > self.delta:
            raise self._rounding_error()
        multipliers = {name: calibrated.sigmas(descent.name)[0] for name, (descent, _) in charged.items()}
        changed = next((part for part in descents if isinstance(part, ChangedSamples)), None)
        if self.tuning is None:
            return Noise(sigmas, multipliers, epsilon, self.delta, changed)
        # A single trial costs less than the search; its epsilon is stated beside that of the search.
        accountant: Any = "pld" if all(part.exact for part in steps) else "rdp"
        trial = pipeline_epsilon(calibrated.parts, calibrated.noise, self.delta, accountant=accountant)
        score = calibrated.sigmas(_SCORE.name)[0] if self.protects_nodes else 0.0
        return Noise(sigmas, multipliers, epsilon, self.delta, changed, score, trial)

    def counted_sum(self, schema: GraphSchema, *, hops: int = 1, bits: int = 0) -> CountedSum:
        """Return the sums with two-sided geometric noise that protect the unit at epsilon; they need no delta, and are
        not available for a tuning or unit "node".
        """
        if self.tuning is not None:
            raise InputError("sums with geometric noise have no price for trials", where="tuning")
        unit: Unit = "directed-edge" if self.unprotected else self.unit_for(schema)
        relationships = None if self.unprotected else self.relationships
        return CountedSum(unit=unit, epsilon=self.epsilon, hops=hops, relationships=relationships, bits=bits)

    def noise_of_counts(self, counted_sum: CountedSum) -> Noise:
        return Noise((counted_sum.sigma,) * counted_sum.hops, {}, self.epsilon, self.delta)

    def relationship_by_counts(self, schema: GraphSchema, counted_sum: CountedSum) -> float:
        """Return the epsilon of one relationship in such sums: its share of the change that epsilon covers."""
        entries = 1 if schema.directed and self.unit_for(schema) == "directed-edge" else 2
        return self.epsilon * entries / counted_sum.change

    def _perturbed_sum(self, schema: GraphSchema, sigmas: tuple[float, ...], w_max: float) -> PerturbedSum:
        """Return the sums that protect the unit with this noise."""
        return PerturbedSum(
            unit=self.unit_for(schema), sigmas=sigmas, w_max=w_max, degree=self.degree, relationships=self.relationships
        )

    def _target_and_reserve(
        self,
        charged: Sequence[tuple[Descent | ChangedSamples, int]],
        sums: PerturbedSum | None,
        *,
        columns: int,
        trials: int,
    ) -> tuple[float, float]:
        """Return the epsilon to aim at and the delta to reserve, so that the rounding of noise tables fits as well."""
        epsilon, delta = self.epsilon * (1 - _RESERVED[0] * trials), self.delta * _RESERVED[1]
        if sums is not None:
            with_rounding, delta_with_rounding = sums.price(self.epsilon, self.delta, columns)
            # `_RESERVED` covers the rounding, unless epsilon or delta is very small.
            epsilon = min(epsilon, self.epsilon - _MARGIN * (with_rounding - self.epsilon))
            delta = max(delta, _MARGIN * (delta_with_rounding - self.delta))
        for descent, parameters in charged:
            with_rounding, delta_with_rounding = _schedule(descent, 1.0).price(self.epsilon, self.delta, parameters)
            epsilon -= _MARGIN * (with_rounding - self.epsilon)
            delta += _MARGIN * (delta_with_rounding - self.delta)
        if epsilon <= 0.0 or delta >= self.delta:
            raise self._rounding_error()
        return epsilon, delta

    def _rounding_error(self) -> NoiseError:
        return NoiseError(
            "rounding so many numbers of noise costs more than "
            f"epsilon {rounded_up(self.epsilon)}, delta {rounded_up(self.delta)}"
        )

    def spend(self, name: str, schema: GraphSchema, noise: Noise, **facts: float | int | str) -> tuple[Spend, ...]:
        """Return the spend of one training or one query: one row, or none where nothing is protected."""
        if self.unprotected or math.isinf(noise.epsilon):
            return ()
        parameters: dict[str, float | int | str] = {"unit": self.unit_for(schema), "hops": len(noise.sigmas), **facts}
        parameters |= {f"sigma_{hop}": sigma for hop, sigma in enumerate(noise.sigmas, start=1)}
        parameters |= {f"multiplier_{part}": value for part, value in noise.multipliers.items()}
        if self.protects_nodes and noise.sigmas:
            parameters |= {"degree": self.degree or 0, "rule": self.rule}
        if self.relationships is not None:
            parameters |= {"relationships": self.relationships}
        if self.tuning is not None and noise.trial:
            parameters |= {"law": self.tuning.law, "mean_trials": self.tuning.mean, "epsilon_of_one_trial": noise.trial}
            parameters |= {"sigma_score": noise.score} if noise.score else {}
        mechanism = "noisy sums" if noise.sigmas else "dp-sgd"
        if noise.changed is not None:
            mechanism, part = "noisy sums and dp-sgd on edges", noise.changed
            parameters |= {"steps": part.steps, "rate": part.rate, "targets_of_an_edge": part.samples}
        # The declared values, not the slightly smaller ones of the calibration: a ledger's sums must not depend on the
        # last digits of a search.
        return (Spend(name, self.ledger_unit, mechanism, parameters, self.epsilon, self.delta),)

    def guarantee(
        self, schema: GraphSchema, ledger: Ledger | None = None, *, void: str | None = None, edges: bool = True
    ) -> Guarantee:
        """Return the guarantee of one training, or of everything that `ledger` has paid for.

        Args:
            edges: whether edges are read at all.
        """
        epsilon, delta = self.epsilon, 0.0 if self.unprotected else self.delta
        if ledger is not None and ledger.spends and not self.unprotected:
            epsilon, delta = ledger.total(self.ledger_unit)
            # Never below the declared price of one training, whatever the ledger's rounding.
            epsilon, delta = max(epsilon, self.epsilon), max(delta, self.delta)
        return Guarantee(
            unit=self._protected(schema, edges),
            relation="add/remove",
            model="central",
            epsilon=epsilon,
            delta=delta,
            against=ALL_BUT_CURATOR,
            assumes=self._assumes(schema, edges),
            void=None if self.unprotected else void,
        )

    def epsilon_relationship(self, schema: GraphSchema, noise: Noise, *, w_max: float = 1.0) -> float | None:
        """Return the epsilon of one relationship: both entries of an undirected edge, the one entry of a directed edge;
        less than epsilon if the unit is several relationships. None for unit "node", whose epsilon covers a node's
        whole list.
        """
        if self.protects_nodes:
            return None
        single = self.relationships in (None, 1)
        if self.unprotected or (single and (schema.directed or self.unit_for(schema) != "directed-edge")):
            return self.epsilon
        # The noise for one entry, priced for two: about 1.46 at epsilon 1.
        both = PerturbedSum(unit="edge", sigmas=noise.sigmas, w_max=w_max)
        if self.tuning is not None:
            return repeat_and_select(both.event(), self.delta, self.tuning)
        if noise.changed is None:
            return gaussian_epsilon(1.0 / both.mu, self.delta)
        # An undirected edge is in the sums of both its ends, and so in the gradients of two targets.
        hops, changed = Hops(count=both.hops, sensitivity=both.sensitivity), replace(noise.changed, samples=2)
        noise_by_part = {hops.name: noise.sigmas, changed.name: (noise.multipliers[changed.name],)}
        return pipeline_epsilon((hops, changed), noise_by_part, self.delta)

    def unprotected_parts(self, schema: GraphSchema) -> str:
        """Return the parts that are declared private and not protected, such as "features and labels"; else ""."""
        return "" if self.protects_nodes else " and ".join(part for part in schema.private if part != "edges")

    def _protected(self, schema: GraphSchema, edges: bool) -> ProtectedUnit:
        unit = self.unit_for(schema)
        if unit == "edge":
            return UNDIRECTED_EDGE
        if self.relationships is not None:
            return RELATIONSHIP_OF_ONE.times(self.relationships)
        if unit == "directed-edge":
            return DIRECTED_EDGE if schema.directed else EDGE_ENTRY
        if not edges:
            return NODE_WITHOUT_EDGES
        return NODE_AND_OWN_LIST if self.rule == "lists" else NODE

    def _assumes(self, schema: GraphSchema, edges: bool) -> tuple[Assumption, ...]:
        assumes = [assume("node-set-public"), assume("trained-once")]
        if self.protects_nodes:
            assumes.append(assume("joint-privacy"))
            if edges:
                bound = "degree-promised" if self.rule == "declared" else "lists-cut"
                assumes.append(assume(bound, degree=str(self.degree)))
        else:
            private = self.unprotected_parts(schema)
            declared = f", though {schema.name} declares {private} private" if private else ""
            assumes.append(assume("features-and-labels-open", declared=declared))
        if self.tuning is not None:
            assumes.append(assume("trials-covered", law=self.tuning.law, mean=f"{self.tuning.mean:g}"))
        if self.queries:
            assumes.append(ONE_COPY)
        return tuple(assumes)


def budget_from(facts: Mapping[str, Any]) -> dict[str, Any]:
    tuning = facts.get("tuning")
    return {
        **facts,
        "epsilon": float(facts["epsilon"]),
        "tuning": None if tuning is None else RepeatAndSelect(**tuning),
    }


def _schedule(descent: Descent | ChangedSamples, multiplier: float) -> PrivateSchedule:
    return PrivateSchedule(steps=descent.steps, rate=descent.rate, expected_batch=1.0, noise_multiplier=multiplier)


def _hops(count: int, sensitivity: float, ratio: float) -> Hops:
    sizes = () if ratio == 1.0 else tuple(ratio**hop for hop in range(count))
    return Hops(count=count, sensitivity=sensitivity, sizes=sizes)


def _with_score_share(split: Mapping[str, float]) -> dict[str, float]:
    total = math.fsum(split.values())
    return {**split, _SCORE.name: total * _SCORE_SHARE / (1 - _SCORE_SHARE)}


def _split(share_hops: float, parts: list[Any], portions: Sequence[float] | None) -> dict[str, float]:
    require_number("(0, 1)", share_hops=share_hops)
    shares = portions or [1 / len(parts)] * len(parts)
    return {
        "hops": share_hops,
        **{part.name: (1 - share_hops) * share for part, share in zip(parts, shares, strict=True)},
    }
