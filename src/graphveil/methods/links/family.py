"""The family that collects neighbour lists, and what an epsilon buys there, from public facts: people and who reports.

A list of b bits is expected to hold b p false entries, p = 1 / (e^epsilon + 1).  Measured on public benchmark graphs
(benchmarks/local_edges.py), of mean degrees 3 to 8: beyond SWAMPED false entries a person, networks on the denoised
graph fall below a model without edges; below CLEAN there is nothing left to denoise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from graphveil.graphs import Graph, GraphSchema, Split
from graphveil.graphs.value.checks import require_one_label
from graphveil.graphs.value.parts import GraphParts
from graphveil.mechanisms import AdjacencyRR
from graphveil.methods.base.cost import (
    ASSUMED_DEGREE,
    BASE_MEMORY_MB,
    MOST_TIMED,
    assumed_propagation,
    network_cost,
    report_bytes,
    spreading_cost,
)
from graphveil.methods.base.family import Controls, Family, Plan
from graphveil.methods.links.collection import LinkReports
from graphveil.methods.links.privacy import LinkPrivacy
from graphveil.privacy import Randomness
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.privacy.statement.unit import RELATIONSHIP
from graphveil.runtime.late import Tensor, torch

if TYPE_CHECKING:
    from graphveil.methods.links.controls import LinkMethod

#: Seconds of one round of beliefs for one entry and one pair of classes (measured).
BELIEF_SECONDS = 3e-9
SWAMPED, CLEAN = 6.0, 0.02
#: Relationships a person that `precision` is stated for.
DEGREES = (5.0, 20.0, 80.0)
ENTRY_BYTES = DEGREE_BYTES = 4


@dataclass(frozen=True)
class LinkPlan:
    """Public figures of a collection of lists.

    Attributes:
        epsilon_bit, epsilon_relationship: the price of one bit, and of one relationship (or directed link).
        epsilon_both_ends: of all reports that may tell whether two people are linked: two where both ends report, also
            in mode "directed", where friends name each other.
        false_entries: expected in all lists; per_person: of one; of "degree-preserving" lists before they are thinned.
        precision: share of true entries among those reported, for people with so many relationships (assumed).
        report_bytes: of one list without its true entries (thinned: without any), and of its noisy degree.
        swamped_below, clean_above: epsilon of a relationship where the regimes of this module begin.
        warning: what the mechanism says of its size, or None.
    """

    epsilon_bit: float
    epsilon_relationship: float
    epsilon_both_ends: float
    mode: str
    mechanism: str
    false_entries: float
    per_person: float
    precision: dict[str, float]
    report_bytes: float
    swamped_below: float
    clean_above: float
    warning: str | None
    section = "links"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def list_of(self) -> str:
        """`per_person` in short, without exponents where it is large."""
        return f"{self.per_person:,.0f}" if self.per_person >= 100 else f"{self.per_person:.3g}"

    @property
    def advice(self) -> tuple[str, ...]:
        """What the figures mean, one sentence each."""
        unit = "directed link" if self.mode == "directed" else "relationship"
        holds = "draws, before it is thinned," if self.mechanism == "degree-preserving" else "is expected to hold"
        price = rounded_up(self.epsilon_relationship)
        expected = f"at epsilon {price} a {unit} each list {holds} {self.list_of} false entries"
        if self.per_person > SWAMPED:
            return (
                f"{expected}: below epsilon {self.swamped_below:.1f} a {unit}, networks on the lists as reported are "
                "swamped; links weighs and counts the reports, and leaves them out where they say too little",
            )
        if self.per_person < CLEAN:
            return (f"{expected}: above epsilon {self.clean_above:.1f} a {unit} there is nothing left to denoise",)
        return (
            f"{expected}: denoising pays, as it does from epsilon {self.swamped_below:.1f} to {self.clean_above:.1f} "
            f"a {unit}",
        )


def link_plan(links: LinkPrivacy, schema: GraphSchema, nodes: int) -> LinkPlan | None:
    """Return the figures for `nodes` people, or None where links are public."""
    if links.public:
        return None
    mode = links.mode_for(schema)
    rows = AdjacencyRR(epsilon=links.list_epsilon, nodes=nodes, mode=mode)
    parts = links.parts(schema, nodes)
    false = rows.expected_false
    # On average: who has the lower id of a pair is a matter of chance.
    share = 0.5 if mode == "lower" else 1.0  # of a person's relationships that its own list holds
    precision = {}
    for degree in DEGREES:
        true = degree * share * (1 - rows.flip)
        precision[f"{degree:g}"] = true / (true + false / nodes)
    # Of one report with no true entry: thinned to about the noisy degree, it does not grow with the flips.
    thinned = ENTRY_BYTES * false / nodes if links.mechanism == "degree-preserving" else 0.0
    sent = rows.expected_bytes / rows.nodes - thinned + (0 if links.mechanism == "lists" else DEGREE_BYTES)
    return LinkPlan(
        links.epsilon_a,
        links.relationship_epsilon,
        links.epsilon_a * (1 if mode == "lower" else 2),
        mode,
        links.mechanism,
        false,
        false / nodes,
        precision,
        sent,
        _relationship_for(SWAMPED, links, nodes, mode),
        _relationship_for(CLEAN, links, nodes, mode),
        parts["lists"].warning,
    )


def _relationship_for(per_person: float, links: LinkPrivacy, nodes: int, mode: str) -> float:
    """Return the epsilon of a relationship at which a list holds so many false entries."""
    bits = (nodes - 1) * (0.5 if mode == "lower" else 1.0)
    # At one half a list is a row of coin tosses; no epsilon gives more false entries than that.
    flip = min(per_person / bits, 0.5) if bits > 0 else 0.5
    bit = math.log(1 / flip - 1) if flip < 0.5 else 0.0
    return bit * (links.relationship_epsilon / links.list_epsilon)


class LinkFamily(Family[Any, LinkReports]):
    """See `base.family.Family`; what trains networks to compare with is imported late: a plan trains none."""

    serves_releases = False

    def used_settings(self, estimator: LinkMethod, settled: Mapping[str, object]) -> dict[str, Any]:
        if not estimator.trains_network:
            return dict(settled)
        used = {
            "epsilon_x": estimator.privacy.epsilon_x,
            "epsilon_y": estimator.privacy.epsilon_y,
            "steps_x": estimator.settings.steps_x,
            "steps_y": estimator.settings.steps_y,
        }
        return {**settled, **{name: value for name, value in used.items() if name in settled}}

    def plan(self, name: str, estimator: LinkMethod, graph: Graph | GraphParts, settled: Mapping[str, object]) -> Plan:
        """Return the plan; the links of `graph` are private and are not looked at."""
        schema, nodes, privacy = graph.schema, int(graph.num_nodes), estimator.privacy
        require_one_label(graph)
        lists = link_plan(estimator.links, schema, nodes)
        seconds, memory = _cost(estimator, graph, lists)
        return Plan(
            method=name,
            data=schema.name,
            settings=settled,
            guarantee=estimator.links.guarantee(privacy.guarantee(schema), schema, nodes),
            epsilon={
                "features": privacy.epsilon_x or 0.0,
                "labels": privacy.epsilon_y,
                "one bit of a list": math.inf if lists is None else lists.epsilon_bit,
                # Both ends of a directed link may name each other.
                RELATIONSHIP.text: math.inf if lists is None else lists.epsilon_both_ends,
            },
            seconds=seconds,
            memory_mb=memory,
            report_bytes=report_bytes(privacy, schema) + (0.0 if lists is None else lists.report_bytes),
            advice=() if lists is None else lists.advice,
            figures=lists,
        )

    def warning(self, estimator: LinkMethod, graph: Graph) -> str | None:
        lists = link_plan(estimator.links, graph.schema, int(graph.num_nodes))
        return None if lists is None else lists.warning

    def controls(self, estimator: LinkMethod, graph: Graph, split: Split, *, randomness: Randomness) -> Controls:
        from graphveil.methods.links.controls import link_controls_of

        return link_controls_of(estimator, graph, split)

    def ceiling(self, estimator: LinkMethod, graph: Graph, split: Split, *, randomness: Randomness) -> np.ndarray:
        from graphveil.methods.links.controls import settings_of
        from graphveil.methods.local.controls import ceiling_of

        return ceiling_of(settings_of(estimator), graph, split)

    def rivals(self, estimator: LinkMethod, graph: Graph, split: Split, *, randomness: Randomness) -> Controls:
        from graphveil.methods.links.controls import rivals_of

        return rivals_of(estimator, graph, split)

    def notes(
        self, estimator: LinkMethod, graph: Graph, settled: Mapping[str, object], *, controlled: bool
    ) -> tuple[str, ...]:
        """Return what the epsilon of the lists buys, whether they were used at all, and how to see other methods."""
        if estimator.released is None:
            return ()
        lists = link_plan(estimator.links, estimator.schema, estimator.released.nodes)
        hops = estimator.hops if estimator.trains_network else None
        used = () if estimator.trains_network else (f"used: {estimator.variant}",)
        used += () if hops is None else (hops.sentence,)
        beside = (comparison_of(estimator),) if controlled and lists is not None else ()
        return (*used, *(() if lists is None else lists.advice), *beside)

    def train(self, estimator: LinkMethod, collected: LinkReports, *, exclude_validation: bool = False) -> Tensor:
        keywords = {"exclude_validation": exclude_validation} if estimator.trains_network else {}
        estimator.fit_reports(collected, **keywords)
        return torch.as_tensor(collected.people.labels)


def comparison_of(estimator: LinkMethod) -> str:
    """Return the command that holds a method against the published ones, all by their own defaults and at one price."""
    privacy, mine = estimator.privacy, estimator.name
    names = ",".join(dict.fromkeys((mine, "links", "solitude", "blink")))
    budgets = {"x": privacy.epsilon_x, "y": privacy.epsilon_y, "a": estimator.links.epsilon_a}
    sentence = " ".join(f"--epsilon-{of} {'none' if value is None else f'{value:g}'}" for of, value in budgets.items())
    mode = estimator.links.mode_for(estimator.schema)
    return f"published methods at this price: graphveil compare {names} DATA {sentence} --set mode={mode}"


def _cost(estimator: LinkMethod, graph: Graph | GraphParts, lists: LinkPlan | None) -> tuple[float, float]:
    """Return (seconds, MB) on made lists, as long as the reported ones are expected to be."""
    nodes, classes = int(graph.num_nodes), len(graph.schema.classes)
    thinned = lists is not None and lists.mechanism == "degree-preserving"  # to about as many as there are true ones
    per_list = ASSUMED_DEGREE + (0.0 if lists is None or thinned else lists.per_person)
    entries = int(nodes * per_list * (2 if lists is not None and lists.mode == "lower" else 1))
    p = assumed_propagation(nodes, entries)
    if estimator.trains_network:
        seconds, memory = network_cost(p, graph, estimator.settings, estimator.privacy)
    else:
        seconds, memory = spreading_cost(p, classes)
        rounds = 0 if estimator.reading == "sums" else estimator.rounds
        seconds += 2 * rounds * entries * classes**2 * BELIEF_SECONDS
        memory += entries * (4 * classes + 48) / 1e6
    scale = max(1.0, entries / MOST_TIMED)
    return seconds * scale, BASE_MEMORY_MB + (memory - BASE_MEMORY_MB) * scale


LINKS = LinkFamily()
