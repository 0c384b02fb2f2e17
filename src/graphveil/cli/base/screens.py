"""The screens of runs, plans and predictions: at 80 columns, readable without colour."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from graphveil.cli.base.tables import columns, listed, pairs, plain, rows
from graphveil.privacy import Guarantee
from graphveil.privacy.accounting.guessing import adversary
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reports.base import brief, words
from graphveil.reports.base.card import MARKDOWN, read_as_is
from graphveil.reports.base.record import RunRecord
from graphveil.reports.base.text import memory, number, percent, points, printable, seconds
from graphveil.runtime.words import count_of

if TYPE_CHECKING:
    from graphveil.methods.base.family import Plan
    from graphveil.methods.curator.plan import CuratorPlan
    from graphveil.methods.links.family import LinkPlan
    from graphveil.methods.local.plan import LocalPlan
    from graphveil.methods.release.plan import ReleasePlan


def run(record: RunRecord, predictions: Path | None = None, whose: str | None = None) -> RenderableType:
    """A finished run: accuracy, controls, lift, guarantee, cost, folder.

    Args:
        predictions: the file of predictions for its own people, if one was written.
    """
    score = record.scores.accuracy
    head = Text.assemble(
        (f"{record.method} on {printable(record.data)}: {percent(score.mean)} %", "bold"),
        f" {words.score_sentence(record)} (95%: {words.interval(score)}, {words.interval_basis(score)})",
    )
    parts: list[RenderableType] = [head, Text(), _scores(record), Text(), _lift(record), Text()]
    if record.scores.rivals:
        parts += [_lead(record), Text()]
    if alarm := alarm_of(record.privacy.guarantee):
        parts[:0] = [alarm, Text()]
    cost, fit = record.cost, seconds(record.cost.seconds_method)
    facts = [
        ("Split", words.split_of(record)),
        *(("Note", note) for note in record.notes),
        ("Cost", f"{seconds(cost.seconds)} ({fit} a fit), at most {memory(cost.peak_memory_mb)}"),
        ("Run folder", f"{record.run} (open report.html)"),
        *(() if predictions is None else (("Predictions", f"{predictions}: {whose}"),)),
    ]
    return Group(*parts, guarantee_of_run(record), Text(), pairs(facts))


def guarantee_of_run(record: RunRecord) -> RenderableType:
    exposed = words.not_protected(record.privacy.guarantee, record.settings)
    card = Path(record.run or "") / MARKDOWN
    return three_lines(record.privacy.guarantee, exposed, card, record.privacy.epsilon_relationship)


def guarantee_of_model(model: Any, run: Path) -> RenderableType:
    """The guarantee of a model: three lines where its folder has a card, else the whole guarantee.

    Args:
        model: from `open_model`.
    """
    guarantee: Guarantee = model.guarantee
    declared = {name: getattr(model.privacy, name, None) for name in ("epsilon_x", "epsilon_y")}
    relationship = getattr(model, "epsilon_relationship", None)
    lines: RenderableType = pairs(promise(guarantee, declared, relationship))
    if (card := run / MARKDOWN).is_file():
        lines = three_lines(guarantee, words.not_protected(guarantee, declared), card, relationship)
    alarm = alarm_of(guarantee)
    return Group(alarm, lines) if alarm else lines


def three_lines(
    guarantee: Guarantee, exposed: Sequence[str], card: Path, relationship: float | None = None
) -> RenderableType:
    """A guarantee in short: what is hidden from whom, what is not protected, how many facts it assumes.

    Args:
        exposed: what is not protected, as its card lists it.
        card: the file with the whole guarantee.
        relationship: epsilon of one undirected relationship; None where edges are not private.
    """
    summary = brief.brief_of(guarantee, exposed, card=str(card), relationship=relationship)
    lines = (("Guarantee", summary.guarantee), ("Not protected", summary.exposed), ("Assumes", summary.assumes))
    return Group(*(stated(head, line) for head, line in lines))


def stated(head: str, line: str) -> Text:
    """A line with a bold heading.

    Args:
        head: without its colon.
    """
    return Text.assemble((f"{head}: ", "bold"), printable(line))


def promise(
    guarantee: Guarantee, settings: Mapping[str, Any], relationship: float | None = None
) -> list[tuple[str, str]]:
    """The guarantee, its epsilons and what is not protected: heading and text of each line.

    Args:
        settings: of the method; an epsilon of infinity declares a part public.
        relationship: epsilon of one undirected relationship; None where edges are not private.
    """
    exposed = words.not_protected(guarantee, settings)
    return [
        ("Guarantee", guarantee.sentence()),
        ("Epsilon", words.epsilon_line(guarantee, settings)),
        *([] if relationship is None else [("Connections", words.relationship_line(relationship))]),
        *listed("Not protected", exposed),
    ]


def void_alarm(reason: str, subject: str) -> Text:
    """A loud line: the guarantee is void.

    Args:
        subject: "run" or "release".
    """
    return _loud(f"VOID: this {subject} protects nobody ({printable(reason)})")


def alarm_of(guarantee: Guarantee) -> Text | None:
    """A loud line if the guarantee of a run protects nobody, else None."""
    if guarantee.void:
        return void_alarm(guarantee.void, "run")
    return _loud(f"NOT PROTECTED: {read_as_is(guarantee, 'run')}") if guarantee.unprotected else None


def _loud(text: str) -> Text:
    return Text(f" !! {text} !! ", style="bold white on red")


def _scores(record: RunRecord) -> Table:
    table = columns("", f"{words.score_name(record)}, %", "95% interval", "")
    for standing in record.standings:
        best = f"best {standing.kind}" if standing.best else ""
        mark = f"{best or 'rival'}, same price" if standing.kind == "rival" else best
        style = "bold" if standing.kind == "own" else None
        score = standing.score
        table.add_row(standing.name, percent(score.mean), words.interval(score), mark, style=style)
    return table


def _lift(record: RunRecord) -> Text:
    if record.scores.lift is None:
        return Text(words.lift_sentence(record))
    head = f"Lift {points(record.scores.lift.mean)} points over {record.scores.best_control}"
    details = f" ({words.lift_interval(record.scores.lift)}, {words.interval_basis(record.scores.lift)}). "
    return Text.assemble((head, "bold"), details, words.lift_sentence(record))


def _lead(record: RunRecord) -> Text:
    lead = record.lead
    if lead is None:
        return Text()
    head = f"{points(lead.mean)} points against {record.scores.best_rival}"
    details = f" ({words.lift_interval(lead)}, {words.interval_basis(lead)}). "
    return Text.assemble((head, "bold"), details, words.rival_sentence(record))


def planned(plan: Plan, report: str | None = None) -> RenderableType:
    """The guarantee, expected noise and cost of a run.

    Args:
        report: size of a person's report, in words; None: that of the plan.
    """
    head = Text(f"{plan.method} on {printable(plan.data)}: nothing has been trained or collected", style="bold")
    figures: Any = plan.figures
    section = "" if figures is None else figures.section
    tables: dict[str, Callable[[Any], list[RenderableType]]] = {
        "noise_to_signal": _noise,
        "links": _lists,
        "curator": _sums,
        "release": _release,
    }
    parts: list[RenderableType] = [head, Text()]
    if section:
        parts += [*tables[section](figures), Text()]
    list_bytes, relationship = "", None
    if section == "links":
        thinned = figures.mechanism == "degree-preserving"
        list_bytes = f", plus 4 for each {'entry of its noisy degree' if thinned else 'true entry of the list'}"
        relationship = figures.epsilon_relationship
    by_curator = section in ("curator", "release")
    report_facts = [] if by_curator else [("Report", report or f"{plan.report_bytes:,.1f} bytes a person{list_bytes}")]
    rivals = " and rivals" if section != "noise_to_signal" and section else ""
    cost = [
        ("Adversary", adversary(plan.guarantee)),
        ("Time", f"about {seconds(plan.seconds)} for one run, controls{rivals} not counted"),
        ("Memory", f"about {memory(plan.memory_mb)}"),
        *report_facts,
        *listed("Advice", plan.advice),
        *([("Warning", figures.warning)] if section in ("links", "release") and figures.warning else []),
    ]
    return Group(*parts, pairs([*promise(plan.guarantee, plan.settings, relationship), *cost]))


def _noise(plan: LocalPlan) -> list[RenderableType]:
    noise = rows(
        ("people with", "degree", "noise/signal, features", "noise/signal, labels"),
        ((row.band, plain(row.degree), _ratio(row.features), _ratio(row.labels)) for row in plan.noise),
    )
    return [noise, Text("After all hops; above 1 the noise is larger than the largest possible signal.")]


def _sums(plan: CuratorPlan) -> list[RenderableType]:
    """The noise that a curator adds to each sum over neighbours and to each private training."""
    from graphveil.methods.base.cost import ASSUMED_DEGREE

    lines = []
    for hop, (sigma, ratio) in enumerate(zip(plan.noise.sigmas, plan.per_node, strict=True), start=1):
        lines.append((f"sum {hop} over neighbours", plain(sigma), f"{ratio:.2g}"))
    for index, (part, multiplier) in enumerate(plan.noise.multipliers.items(), start=1):
        name = "training of attention" if part == "attention" else f"private training {index}"
        lines.append((name, plain(multiplier), "-"))
    noise = rows(("noise of", "sigma", f"noise/signal at {ASSUMED_DEGREE:g} neighbours"), lines)
    return [
        noise,
        Text("Sigma is in units of the longest row, or of a clipped gradient; above 1 a sum is mostly noise."),
    ]


def _release(plan: ReleasePlan) -> list[RenderableType]:
    facts = [
        ("Nodes", f"{plan.nodes:,}, {plan.private_nodes:,} of them may have private edges"),
        ("Pairs", f"{plan.protected_pairs:,} protected; {count_of(plan.public_edges, 'public edge')}"),
    ]
    if plan.false_edges is not None:
        facts.append(("False edges", f"about {plan.false_edges:,.0f}"))
    if plan.steps is not None:
        facts.append(("Chains", f"{count_of(plan.steps, 'step')} each, fixed in advance"))
    parts: list[RenderableType] = [pairs(facts)]
    if plan.noise:
        order = sorted(plan.noise, key=lambda name: plan.noise[name])
        lines = ((name, _ratio(plan.noise[name]), "least" if name == plan.least_noisy else "") for name in order)
        parts += [Text(), rows(("features by", "noise of one feature, in half-ranges", ""), lines)]
    return [*parts, Text("No private edge or feature has been read: these figures follow from public facts.")]


_REPORTERS = {
    "lower": "of each pair, the person with the lower id, in one list (mode lower)",
    "both": "both ends of a relationship, in two lists (mode both)",
    "directed": "the person where a link starts, in one list (mode directed)",
}


def _lists(links: LinkPlan) -> list[RenderableType]:
    """What an epsilon buys in neighbour lists; the true lists are not read."""
    unit = "directed link" if links.mode == "directed" else "relationship"
    bit, relationship = rounded_up(links.epsilon_bit), rounded_up(links.epsilon_relationship)
    ends = (
        f", {rounded_up(links.epsilon_both_ends)} for whether two people are linked" if unit != "relationship" else ""
    )
    thinned = ", before lists are thinned" if links.mechanism == "degree-preserving" else ""
    facts = pairs(
        [
            ("Who reports", _REPORTERS[links.mode]),
            ("Price", f"epsilon {bit} for one bit of a list, {relationship} for one {unit}{ends}"),
            ("False entries", f"about {links.false_entries:,.0f} in all, {links.list_of} a list{thinned}"),
        ]
    )
    precision = rows(
        (f"people with (assumed) {unit}s", "true among the entries reported, %"),
        ((degree, percent(share)) for degree, share in links.precision.items()),
    )
    return [facts, Text(), precision, Text("No list has been read: these figures follow from public facts.")]


def _ratio(value: float | None) -> str:
    return "-" if value is None else number(float(f"{value:.2g}"))


def predicted(answer: Mapping[str, Any], guarantee: RenderableType) -> RenderableType:
    """How many nodes of each class, and the first rows if no file was written.

    Args:
        guarantee: of the model, with its predictions.
    """
    privacy = Group(guarantee, Text(f"Predicting: {answer['note']}."))
    counts = Group(rows(("class", "nodes"), answer["predicted"].items()), Text(), privacy)
    note = Text(f"All {count_of(answer['nodes'], 'prediction')}: {printable(answer['out'])}.")
    if answer["out"] is None:
        first = answer["predictions"][:10]
        lines = ((row["id"], row["prediction"], f"{row['probability']:.3f}") for row in first)
        note = Text(f"First {len(first)} of {answer['nodes']:,}; write all with --out FILE.csv.")
        return Group(counts, Text(), rows(("id", "prediction", "probability"), lines), Text(), note)
    return Group(counts, Text(), note)
