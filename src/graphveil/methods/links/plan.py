"""What an epsilon buys in neighbour lists, from public facts alone: people, epsilon and who reports.

A list of b bits is expected to hold b p false entries, p = 1 / (e^epsilon + 1).  Measured on public benchmark graphs
(benchmarks/local_edges.py), of mean degrees 3 to 8: beyond SWAMPED false entries a person, networks on the denoised
graph fall below a model without edges; below CLEAN there is nothing left to denoise.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from graphveil.graphs import GraphSchema
from graphveil.mechanisms import AdjacencyRR
from graphveil.methods.links.privacy import LinkPrivacy
from graphveil.privacy.accounting.printed import rounded_up

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
                "swamped; links weighs and counts the reports, and does without them where they say too little",
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
    return LinkPlan(
        links.epsilon_a,
        links.relationship_epsilon,
        links.epsilon_a * (1 if mode == "lower" else 2),
        mode,
        links.mechanism,
        false,
        false / nodes,
        precision,
        _report_bytes(links.mechanism, rows),
        _relationship_for(SWAMPED, links, nodes, mode),
        _relationship_for(CLEAN, links, nodes, mode),
        parts["lists"].warning,
    )


def _report_bytes(mechanism: str, rows: AdjacencyRR) -> float:
    """Return the bytes of one report with no true entry; thinned lists hold next to no false ones then."""
    every = rows.expected_bytes / rows.nodes
    if mechanism == "degree-preserving":
        # Thinned to about the noisy degree, so what is sent does not grow with the flips.
        every -= ENTRY_BYTES * rows.expected_false / rows.nodes
    return every + (0 if mechanism == "lists" else DEGREE_BYTES)


def _relationship_for(per_person: float, links: LinkPrivacy, nodes: int, mode: str) -> float:
    """Return the epsilon of a relationship at which a list holds so many false entries."""
    bits = (nodes - 1) * (0.5 if mode == "lower" else 1.0)
    # At one half a list is a row of coin tosses; no epsilon gives more false entries than that.
    flip = min(per_person / bits, 0.5) if bits > 0 else 0.5
    bit = math.log(1 / flip - 1) if flip < 0.5 else 0.0
    return bit * (links.relationship_epsilon / links.list_epsilon)
