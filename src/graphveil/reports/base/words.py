"""The sentences about a run: what is protected, what is not, what the private data bought. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from typing import Any

from graphveil.errors import GraphveilError
from graphveil.methods.base.method import RELEASE
from graphveil.methods.base.network.objectives import SEVERAL_LABELS
from graphveil.methods.registry import tagged
from graphveil.methods.runs.intervals import Interval
from graphveil.methods.runs.result import ESTIMATED
from graphveil.privacy import Guarantee, Ledger, ProtectedUnit, together
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.privacy.statement.observer import RELEASE_READERS
from graphveil.privacy.statement.unit import NODE_WITHOUT_EDGES
from graphveil.reports.base.record import RunRecord
from graphveil.reports.base.text import percent, points, printable

#: A unit, its epsilon and its delta.
Priced = tuple[ProtectedUnit, float, float]

CONTROL_MEANING = {
    "random-features": "random noise instead of the features, same graph, same released labels",
    "label-propagation": "released labels and the graph only: no features, no training",
    "label-pool": "released labels and the graph only, by several label models combined: no features",
    "majority": "the most frequent released class, for everybody",
    "no-edges": "the released features only, without the graph",
    "random-graph": "as many random connections, with the same noise",
    "public-only": "uses no private data at all",
    "public-edges": "the public edges only, without the private ones",
    "random-edges": "as many random edges instead of those generated from private ones",
    "public-part": "public edges, features and labels alone, combined: nothing computed from private data",
}

RIVAL_MEANING = {
    "base": "the same reports: the connections as reported, nothing smoothed",
    "lpgnn": "the same reports: features smoothed over the connections as reported",
    "solitude": "the same reports: weights of the connections learned with the network",
    "link-beliefs": "the same reports: each connection weighted by its likelihood",
    "list-sums": "the same reports: counts of each class in each list, beside the features",
    "links": "the same reports: link-beliefs and list-sums pooled by the labels sent",
    "blink": "its own reports, both ends at half the price each: connections weighted by their posterior",
    "dprr": "its own reports, both ends at half the price each: lists thinned to about their true length",
    "edge-rr": "its own release: edges generated from noisy block counts",
    "edge-rand": "its own release: randomized response on every pair",
    "lap-graph": "its own release: the pairs that are largest after noise",
}

ON_TRUTH = "Measured on the true data: not covered by epsilon."
#: True of every model, whatever it protects.
GROUP = (
    "Facts about groups: a prediction that follows from everybody's data may still reveal something about one person."
)

_PARTS = {"epsilon_x": "features", "epsilon_y": "labels", "epsilon_a": "connections"}

_AS_WELL = {
    "random-features": "random features on the same graph score as well",
    "label-propagation": "the released labels, spread over the graph without any features, score as well",
    "label-pool": "the released labels and the graph, pooled without any features, score as well",
    "majority": "the most frequent released class scores as well",
    "no-edges": "the released features alone, without the graph, score as well",
    "random-graph": "a random graph with as many connections scores as well",
    "public-only": "public data alone scores as well",
    "public-edges": "the public edges alone score as well",
    "random-edges": "as many random edges score as well",
    "public-part": "public edges, features and labels alone, pooled, score as well",
}


def has_interval(score: Interval) -> bool:
    """Whether the interval has a width: that of a degenerate score has none."""
    return score.low < score.high


def interval(score: Interval) -> str:
    """The 95% interval in per cent; "exact", or a dash, where there is none."""
    return f"{percent(score.low)} to {percent(score.high)}" if has_interval(score) else _without(score)


def lift_interval(lift: Interval) -> str:
    """The 95% interval of a lift in signed points; "exact", or a dash, where there is none."""
    return f"{points(lift.low)} to {points(lift.high)}" if has_interval(lift) else _without(lift)


def _without(score: Interval) -> str:
    return "exact" if score.kind == "exact" else "-"


def interval_basis(score: Interval) -> str:
    """What an interval is over: the test nodes of one run, runs, or the wider of both."""
    several = len(score.runs) > 1
    if score.kind in ("t", ""):
        return f"{'t over ' if score.kind else 'over '}{spread_over(score)}"
    name = {"wilson": "Wilson ", "paired": "paired ", "normal": "normal "}.get(score.kind, "")
    wider = f", wider than t over {len(score.runs)} runs" if several else ""
    return f"{name}over the test nodes of one run{wider}"


def score_name(record: RunRecord) -> str:
    """The name of a run's scores: an F1 where nodes have several labels."""
    if SEVERAL_LABELS in record.notes:
        return "micro F1"
    return "estimated accuracy" if ESTIMATED in record.notes else "accuracy"


def score_sentence(record: RunRecord) -> str:
    """The name of a run's scores, and on which labels they were measured."""
    if SEVERAL_LABELS in record.notes:
        return "micro-averaged F1 on the test nodes"
    if ESTIMATED in record.notes:
        return "accuracy, estimated from randomized labels held out"
    return "accuracy on the test nodes"


def split_of(record: RunRecord) -> str:
    """How the nodes of a run were split into training, validation and test nodes."""
    kind = str(record.options.get("split", "random"))
    if kind == "declared":
        return "declared: the graph's own"
    shares = ": half train, a quarter validate, a quarter test" if kind == "random" else ""
    return f"{kind}, drawn by seed {record.options.get('seed', 0)}{shares}"


def used_settings(settings: Mapping[str, Any], guarantee: Guarantee) -> dict[str, Any]:
    """Settings for readers of a card: defaults are replaced by their values, and an unused delta is marked.

    Args:
        settings: of the run.
    """
    used = dict(settings)
    if used.get("unit", "") is None:
        used["unit"] = f"{guarantee.unit.text} (by default)"
    if used.get("relationships", "") is None:
        del used["relationships"]  # only unit k-edges has it
    if used.get("epsilon", "") is None:
        used["epsilon"] = "no total, one for each part"
    if used.get("delta") and not guarantee.delta and math.isfinite(guarantee.epsilon):
        used["delta"] = f"0 (no mechanism of this run needs one; {rounded_up(used['delta'])} where one does)"
    return used


def spread_over(score: Interval) -> str:
    """What an interval is over: runs, or, for a single run, its test nodes."""
    return f"{len(score.runs)} runs" if len(score.runs) > 1 else "the test nodes of one run"


def intervals_over(score: Interval) -> str:
    """What the intervals of all scores of a run are over."""
    nodes = "the test nodes of one run (Wilson; of differences, paired)"
    return f"{nodes} or over {len(score.runs)} runs (t), whichever is wider" if len(score.runs) > 1 else nodes


def lift_sentence(record: RunRecord) -> str:
    """What the lift means, in one plain sentence that claims no more than the interval does."""
    lift, best = record.scores.lift, record.scores.best_control
    if lift is None or best is None:
        return "No controls were trained, so the lift is unknown."
    single = len(lift.runs) == 1
    where = " in this one run" if single else ""
    more = " To check other splits and other noise, use --repeats 10." if single else ""
    what = _bought(record, best)
    # The interval decides and not the mean, so that the sentence claims no more than was measured.
    if lift.high < 0:
        less = "needs less private data" if what.startswith("the private") else "needs no more"
        return f"It scores measurably below its best control{where}: {best} does better and {less}.{more}"
    if lift.low > 0:
        return f"It scores measurably above its best control{where}: that is what {what} added.{more}"
    as_well = _AS_WELL.get(best, f"{best} scores as well")
    return f"{what[0].upper()}{what[1:]} added nothing measurable{where}: {as_well}."


def free_lift(record: RunRecord) -> str:
    """One line on the lift over the best free control; it says so if there is no free control."""
    lift, best = record.scores.lift, record.scores.best_control
    if lift is None or best is None:
        return "Lift over the free baseline: not measured."
    sign = "" if lift.low > 0 else "; not positive" if lift.mean <= 0 else "; may not be positive"
    line = f"{points(lift.mean)} points (95%: {lift_interval(lift)}){sign}."
    if best == "no-edges" and record.settings.get("unit") == "node" and record.privacy.guarantee.epsilon < math.inf:
        return f"There is no free baseline: no-edges is trained privately at the same price. Lift over it: {line}"
    return f"Lift over the free baseline, {best}: {line}"


def is_on_release(record: RunRecord) -> bool:
    """Whether a run was trained on a graph that another run had released."""
    return record.privacy.guarantee.against == RELEASE_READERS and record.method not in tagged(RELEASE)


def measured_with(record: RunRecord) -> str:
    """What the scores of a run were measured on, and so whether they may be published."""
    if is_on_release(record):
        return "Measured on what the release holds, and covered by its guarantee."
    if ESTIMATED in record.notes:
        return "Estimated from randomized labels of people, and covered by the guarantee: no true label is known."
    return ON_TRUTH


def meaning(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the sentences on the lift of a run and on what it was measured on, from its `result.json`."""
    try:
        record = RunRecord.from_dict(facts)
    except GraphveilError:
        return {}
    return {"lift_sentence": lift_sentence(record), "measured_with": measured_with(record)}


def private_content(record: RunRecord) -> str:
    """What the owner's copy of a run contains that must not be published."""
    if ESTIMATED in record.notes:
        return "estimates from people's randomized labels, and paths of this machine"
    return "what was measured on true data"


def has_noisy_labels(guarantee: Guarantee) -> bool:
    """Whether a model was trained and selected on randomized labels."""
    randomized = guarantee.model == "local" or guarantee.against == RELEASE_READERS
    return randomized and any(
        "label" in unit.covers and epsilon < math.inf for unit, epsilon, _ in unit_epsilons(guarantee)
    )


def protected_lines(guarantee: Guarantee, relationship: float | None = None) -> tuple[str, ...]:
    """What is protected, at which epsilon and against whom, a line each.

    Args:
        relationship: epsilon of one undirected relationship; None where edges are not private.
    """
    parts = [part for part in guarantee.parts or (guarantee,) if part.epsilon < math.inf]
    if not parts:
        return ("Nothing.",)
    lines = [f"{part.unit.text}: epsilon {_price(part)} ({part.relation}, {part.model})" for part in parts]
    lines += [f"connections: {line}" for line in connections(relationship)]
    return (*lines, f"against {guarantee.against.text}")


def _price(part: Guarantee) -> str:
    return rounded_up(part.epsilon) + (f", delta {rounded_up(part.delta)}" if part.delta else "")


def connections(relationship: float | None) -> tuple[str, ...]:
    """The line on one relationship; none where it is not protected (infinity) or edges are not private (None)."""
    return () if relationship is None or relationship == math.inf else (relationship_line(relationship),)


def trusted_parties(guarantee: Guarantee) -> str:
    """Who must be trusted, and with what."""
    if guarantee.unprotected:
        return "everybody who sees the data or the model: nothing is protected."
    if all(epsilon == math.inf for _, epsilon, _ in unit_epsilons(guarantee)):
        return "everybody who sees the data or the model: labels alone are protected."
    if guarantee.model == "local":
        return "only the person's own device, which adds the noise before anything is sent."
    if guarantee.model == "vertical":
        if guarantee.assumption("server-colludes-not") is None:
            return "only each holder's own program, which adds the noise before anything is sent."
        return (
            "nobody with exact rows; all parties to follow the protocol, and the server not to collude with any holder."
        )
    once = ", to release the graph once" if guarantee.against == RELEASE_READERS else ""
    return f"the curator only: with the exact data, to add the noise and keep it secret{once}."


def rival_sentence(record: RunRecord) -> str:
    """How a run compares with other methods at the same privacy cost, in one sentence; "" without rivals."""
    lead = record.lead
    if lead is None:
        return ""
    best = record.scores.best_rival
    where = " in this one run" if len(lead.runs) == 1 else ""
    if lead.low > 0:
        return f"At the same privacy price it scores measurably above its best rival{where}, {best}."
    if lead.high < 0:
        return f"At the same privacy price its best rival, {best}, scores measurably better{where}: prefer that one."
    return f"At the same privacy price it does not differ measurably from its best rival{where}, {best}."


def asymptotic(guarantee: Guarantee) -> str | None:
    """The assumption that a guarantee is asymptotic, or None: its epsilon must not be quoted without it."""
    fact = guarantee.assumption("asymptotic")
    return None if fact is None else fact.sentence


def relationship_line(epsilon: float) -> str:
    """The epsilon of one relationship, over everything that is released about it."""
    if epsilon == math.inf:
        return "not protected"
    return f"epsilon {rounded_up(epsilon)} for one relationship, everything released about it included"


def _bought(record: RunRecord, control: str) -> str:
    """What a run uses and a control does not, to which a lift over the control is due."""
    units = unit_epsilons(record.privacy.guarantee)
    links = any(unit.covers_connections and epsilon < math.inf for unit, epsilon, _ in units)
    if control in ("public-edges", "random-edges"):
        return "the private edges"
    if control in ("no-edges", "random-graph"):
        return "the private connections" if links else "the graph"
    if control == "public-part" or (control in ("public-only", "majority") and links):
        return "the private data"
    labels_are_public = record.privacy.guarantee.epsilon == math.inf or record.settings.get("epsilon_y") == math.inf
    if control == "public-only" and not labels_are_public:
        return "the private data"
    return _features(record) or "the method's own use of the labels"


def _features(record: RunRecord) -> str:
    """The features that a run used, in words; "" where it used none."""
    guarantee = record.privacy.guarantee
    if any("features" in unit.covers and epsilon < math.inf for unit, epsilon, _ in unit_epsilons(guarantee)):
        return "the private features"
    public = guarantee.epsilon == math.inf or guarantee.against == RELEASE_READERS
    return "the features" if public or record.settings.get("epsilon_x") == math.inf else ""


def unit_epsilons(guarantee: Guarantee) -> tuple[Priced, ...]:
    """``(unit, epsilon, delta)`` of every part of a guarantee, or of the guarantee itself if it has none."""
    parts = guarantee.parts or (guarantee,)
    return tuple((part.unit, part.epsilon, part.delta) for part in parts)


def epsilon_line(guarantee: Guarantee, settings: Mapping[str, Any]) -> str:
    """The epsilon of each unit, and of all together: ``label: 2, features: 1; for one person together: 3``.

    Args:
        settings: of the method; an infinite epsilon declares a part public.
    """
    units = unit_epsilons(guarantee)
    entries = [f"{unit.text}: {rounded_up(e)}" + (f" (delta {rounded_up(d)})" if d else "") for unit, e, d in units]
    if guarantee.epsilon < math.inf:
        entries += [f"{part}: not protected" for part in _declared_public(settings)]
    together = f"; {_together(units)} together: {rounded_up(guarantee.epsilon)}" if len(units) > 1 else ""
    return ", ".join(entries) + together


def _together(units: tuple[Priced, ...]) -> str:
    """What the total is of: all data of one person, or the person's features, label and ONE connection."""
    combined = together(unit for unit, _, _ in units)
    if not combined.covers_connections:
        return "for one person"
    # ONE in capitals, so that nobody reads the total as one for all connections of a person.
    own = [part for part in ("features", "label") if part in combined.covers]
    link = "directed link" if any(part.kind == "directed link" for part in combined.parts) else "relationship"
    return "for one person's " + " and ".join((*([", ".join(own)] if own else []), f"ONE {link}"))


def spent_line(ledger: Ledger, settings: Mapping[str, Any]) -> str:
    """What was spent on each unit of the ledger, in short: ``features 1, labels 2``.

    Args:
        settings: of the method; an infinite epsilon declares a part public.
    """
    units = dict.fromkeys(spend.unit for spend in ledger.spends)
    entries = [f"{unit} {rounded_up(ledger.total(unit)[0])}" for unit in units]
    return ", ".join([*entries, *(f"{part} not protected" for part in _declared_public(settings))])


def _declared_public(settings: Mapping[str, Any]) -> list[str]:
    """The parts of a person's data with an infinite epsilon, which are sent without noise."""
    return [part for key, part in _PARTS.items() if settings.get(key) == math.inf]


def not_protected(guarantee: Guarantee, settings: Mapping[str, Any]) -> tuple[str, ...]:
    """What a reader might wrongly think is protected, most important first.

    Args:
        settings: of the method; an ``epsilon_...`` of infinity declares that part public.
    """
    units = [unit for unit, epsilon, _ in unit_epsilons(guarantee) if epsilon < math.inf]
    node, connected = any(unit.is_node for unit in units), any(unit.covers_connections for unit in units)
    words = {"features": "feature", "edges": "edge", "entry": "edge"}
    covered = {words.get(aspect, aspect) for unit in units for aspect in unit.covers}
    lines = [f"Anything, in this run: {printable(guarantee.void)}."] if guarantee.void else []
    if guarantee.epsilon == math.inf:
        reads_edges = guarantee.unit != NODE_WITHOUT_EDGES
        used = "Features, labels and connections: all" if reads_edges else "Features and labels: both"
        return (*lines, f"{used} are used as they are.")
    if guarantee.against == RELEASE_READERS:
        return (*lines, *_open_in_release(guarantee, covered))
    if not (connected or node):
        lines.append("Who is connected to whom: the server sees the whole graph.")
    elif guarantee.model == "local" and connected:
        lines.append("Several connections at once: k of one person's together cost up to k times the epsilon of one.")
    elif any(unit.kind == "node and own list" for unit in units):
        lines.append("That others list a node: this is in their lists, not in the node's own.")
    elif guarantee.model == "central" and connected and max(unit.count for unit in units) > 1:
        lines.append(f"More of one person's relationships at once than {max(unit.count for unit in units)}.")
    elif guarantee.model == "central" and connected:
        lines.append("Several edges at once: k of one person's together cost up to k times epsilon, at a larger delta.")
    if guarantee.model == "local":
        exposed = [part for part in _declared_public(settings) if part != "connections"]  # said above
    else:
        exposed = [f"{part}s" for part in ("feature", "label") if part not in covered and not node]
    why = "declared public and used as they are" if guarantee.model == "local" else "used as they are"
    lines += [f"The {part}: {why}." for part in exposed]
    return (*lines, GROUP)


def _open_in_release(guarantee: Guarantee, covered: Set[str]) -> list[str]:
    lines = [f"The {part}s: published as they are." for part in ("feature", "label", "edge") if part not in covered]
    if "edge" in covered:
        slip = ", at a larger delta" if guarantee.delta else ""
        lines.append(f"Several edges at once: k of one node's together cost up to k times the epsilon of one{slip}.")
        lines.append("Public edges, which nodes exist, and which may have private edges: all of it is in the release.")
    lines.append("Facts about groups: what follows from everybody's data may still reveal something about one node.")
    return lines
