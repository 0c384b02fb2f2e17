"""From an exported collection to a trained model, without any truth to measure it by.

    people with a label   half train, a quarter validate, a quarter are held out
    held out              a share a of their reports agrees with the prediction;  accuracy = (a - q) / (p - q)

A report names the true class with probability p and each other class with q, independently of a prediction made without
it, so the estimate is unbiased. Reports that trained or validated agree because the model has read them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np

from graphveil.collection.export.export import read_export
from graphveil.collection.export.reports import UNITS, Received
from graphveil.collection.export.suspects import Findings, inspect, without
from graphveil.device.reports.degree import Degree
from graphveil.device.reports.features import Features
from graphveil.device.reports.label import Label
from graphveil.device.reports.links import Links
from graphveil.device.telling import decimal
from graphveil.engine import LOCAL, Engine
from graphveil.errors import InputError
from graphveil.graphs import Graph
from graphveil.graphs.declared.id_lookup import PeopleIds, find_nodes, plain_ids
from graphveil.graphs.tables.tables import open_table
from graphveil.graphs.value.edges import merge_edges
from graphveil.graphs.value.splits import has_two_parts
from graphveil.graphs.value.value import PlainGraph
from graphveil.methods.base.people.released import topology_of
from graphveil.methods.links.collection import people_key
from graphveil.methods.local.controls import hits
from graphveil.methods.registry import build_method, find_method, resolved_choice
from graphveil.methods.runs.experiment import split_of
from graphveil.methods.runs.intervals import Interval, interval
from graphveil.methods.runs.result import ESTIMATED, Cost, Result, RunPrivacy, Scores, peak_memory_mb
from graphveil.models.labels.label_prior import Channel
from graphveil.privacy import SecureRandomness
from graphveil.runtime.late import torch
from graphveil.runtime.progress import ProgressCallback
from graphveil.runtime.words import count_of

#: Settings that the task fixes.
_FIXED_BY_TASK = (
    *("epsilon", "epsilon_x", "epsilon_y", "epsilon_a", "mode", "degree_share", "mechanism", "delta", "sampled"),
    "queries",
)
#: Methods by the fields that they read; all but those with lists read public edges too.
#: The first of each is offered first: of labels alone, the one that forged reports move least.
LABELS_ALONE, WITH_FEATURES = ("label-pool", "label-propagation"), ("lpgnn", "upgnet")
WITH_LISTS = ("link-beliefs", "list-sums", "links", "solitude")
#: The mechanism of lists with degrees beside them, by method.
WITH_DEGREES = {"blink": "degree-and-lists", "dprr": "degree-preserving"}
#: The fields that each method needs; those with lists read features too where there are any.
_NEEDS = {
    **dict.fromkeys(LABELS_ALONE, (Label.kind,)),
    **dict.fromkeys(WITH_FEATURES, (Features.kind, Label.kind)),
    **dict.fromkeys(WITH_LISTS, (Label.kind, Links.kind)),
    **dict.fromkeys(WITH_DEGREES, (Label.kind, Links.kind, Degree.kind)),
}
#: Labels below which one of training, validation and test has none.
_FEWEST = 4
#: From this width on, the interval of an accuracy says next to nothing.
_WIDE = 0.5

_TIMES = {1: "once", 2: "twice"}


@dataclass(frozen=True)
class Repetition:
    """How a run is repeated: each time with another split of the same reports."""

    repeats: int = 1
    seed: int = 0
    split: str = "random"
    controls: bool = True
    device: str = "cpu"


def read_edges(path: Path, ids: tuple[str, ...]) -> np.ndarray:
    """Return public edges in both directions, int64 [2, E]; DataError for a missing column or an unknown id.

    Args:
        path: csv or parquet with the columns source and target.
    """
    import polars

    table = open_table(path)
    lookup = PeopleIds(plain_ids(polars.Series(list(ids)), numbers=False))
    source, target = (find_nodes(table, column, lookup) for column in ("source", "target"))
    return merge_edges(source, target, len(ids), directed=False)[0]


def received_of(folder: Path, *, keep_suspects: bool) -> tuple[Received, Findings]:
    """Return the reports of an export to train on, and the findings of all checks; DataError where they are damaged.

    Args:
        keep_suspects: whether reports that no device draws are used all the same.
    """
    collected = read_export(folder)
    findings = inspect(collected, collected.facts.get("most_links"))
    return Received(collected if keep_suspects else without(collected, findings.suspects)), findings


def collected_graph(received: Received, edges: np.ndarray | None = None) -> Graph:
    """Return the graph of the people: public edges, and as labels what they reported, -1 for no report.

    Args:
        edges: public ones, int64 [2, E]; None: there are none.
    """
    edges = np.empty((2, 0), np.int64) if edges is None else edges
    labels = torch.from_numpy(received.labels())
    parts = {"edge_index": torch.from_numpy(edges), "num_nodes": received.people, "y": labels}
    # Without x, so that no method can read features by mistake.
    graph: Any = PlainGraph({**parts, "schema": received.schema, "ids": np.array(received.collected.ids)})
    return cast("Graph", graph)


def learn(
    name: str,
    received: Received,
    graph: Graph,
    *,
    settings: Mapping[str, Any],
    repetition: Repetition,
    notes: Sequence[str] = (),
    progress: ProgressCallback | None = None,
    engine: Engine = LOCAL,
) -> Result:
    """Train a method and its controls on an exported collection.

    Args:
        graph: see `collected_graph`.
        settings: of the method, without its budgets, which are the task's.
        notes: further ones, for the result.
        progress: called after every epoch of training.
        engine: processes blocks of people before the training.

    Raises:
        InputError: for a method that does not read what was collected, or budgets beside those of the task.
    """
    all_settings = _settings(name, received, settings)
    if has_two_parts(repetition.split):
        raise InputError(f"split {repetition.split}", where=name, allowed="random, or three shares such as 75/10/15")
    labelled = int(np.count_nonzero(received.labels() >= 0))
    if labelled < _FEWEST:
        raise InputError(
            f"{count_of(labelled, 'person')} sent a label",
            where=received.schema.name,
            allowed=f"at least {_FEWEST}: half train, a quarter validate",
            remedy="export again when more have answered",
        )
    choice = resolved_choice(name, all_settings, len(received.schema.classes))
    family = choice.method.load_family()
    start = time.perf_counter()
    runs = [
        _run(name, all_settings, received, graph, repetition, number, progress=progress, engine=engine)
        for number in range(repetition.repeats)
    ]
    first = runs[0].method
    agreed, channel = [run.agreed for run in runs], received.privacy().channel(len(received.schema.classes))
    scores = _scores(name, agreed, channel)
    first.lift = scores.lift
    participation_notes = (participation(received), *repeated_answers(received), *left_out(received))
    # Which of the reports were used: figures alone would not say.
    usage_notes = family.notes(first, graph, choice.settings, controlled=False)
    accuracy_notes = (*_vagueness(scores.accuracy, len(agreed[0][name])), *beyond(agreed, channel))
    return Result(
        method=name,
        built=choice.method.name,
        data=received.schema.name,
        settings=family.used_settings(first, choice.settings),
        scores=scores,
        privacy=RunPrivacy(first.guarantee, first.ledger, getattr(first, "epsilon_relationship", None)),
        cost=Cost(time.perf_counter() - start, float(np.mean([run.seconds for run in runs])), peak_memory_mb()),
        history=tuple(tuple(asdict(epoch) for epoch in run.method.history) for run in runs),
        model=first,
        notes=(ESTIMATED, *participation_notes, *usage_notes, *accuracy_notes, *notes),
    )


@dataclass(frozen=True)
class _Run:
    """One repeat: agreed says whether each held-out report agrees [m], of the method and of each control."""

    method: Any
    agreed: Mapping[str, np.ndarray]
    seconds: float


def _run(
    name: str,
    settings: Mapping[str, Any],
    received: Received,
    graph: Graph,
    repetition: Repetition,
    number: int,
    *,
    progress: ProgressCallback | None,
    engine: Engine,
) -> _Run:
    # Another split of the same reports: nobody reports again, so a repeat costs no more privacy.
    seed = repetition.seed + number
    nodes = split_of(graph, repetition.split, seed)
    method = build_method(name, settings, len(received.schema.classes), seed=seed, device=repetition.device)
    start = time.perf_counter()
    stage_progress = _stage_progress(progress, f"{name} {number + 1}/{repetition.repeats}")
    if reads_lists(name):
        mechanism = WITH_DEGREES.get(name, "lists")
        method.fit_reports(
            received.link_reports(nodes, people_key(graph), mechanism, seed=seed), progress=stage_progress
        )
    else:
        method.fit_reports(received.reports(nodes), topology_of(graph), progress=stage_progress, engine=engine)
    seconds = time.perf_counter() - start
    agreed = {name: hits(method.predict_proba(), graph, nodes)}
    if repetition.controls:
        family = find_method(name).load_family()
        # Controls draw no noise: they read the same reports, or none.
        for control, train in family.controls(method, graph, nodes, randomness=SecureRandomness()).items():
            agreed[control] = train()
    return _Run(method, agreed, seconds)


def participation(received: Received) -> str:
    """Return a sentence on how many people answered each field."""
    people = received.people
    counts = (f"{int(mask.sum()):,} sent {kind}" for kind, mask in received.answered().items())
    shares = (f"{mask.mean():.0%}" for mask in received.answered().values())
    each = ", ".join(f"{count} ({share})" for count, share in zip(counts, shares, strict=True))
    return f"of {count_of(people, 'person')} {each}; who sent nothing counts as no evidence, and is predicted too"


def left_out(received: Received) -> tuple[str, ...]:
    """Return a sentence on the fields that are left out because too few answered them, if any."""
    collected = received.collected
    each = ", ".join(f"{kind}: {count:,}" for kind, count in collected.too_few.items())
    if not each:
        return ()
    return (f"left out, as fewer people answered than the task's least number, {collected.task.least:,} ({each})",)


def _vagueness(accuracy: Interval, held_out: int) -> tuple[str, ...]:
    """Return a sentence on an accuracy whose interval is too wide to say anything, if it is."""
    if accuracy.high - accuracy.low < _WIDE:
        return ()
    labels = f"{count_of(held_out, 'label')} {'was' if held_out == 1 else 'were'}"
    return (
        f"too few have answered: {labels} held out to judge by, which leaves an accuracy of anything from "
        f"{accuracy.low:.0%} to {accuracy.high:.0%}; these figures say next to nothing of the method",
    )


def beyond(runs: Sequence[Mapping[str, np.ndarray]], channel: Channel) -> tuple[str, ...]:
    """Return a sentence on estimates outside 0 to 1, which are shown as the nearer end, if there are any.

    Args:
        runs: agreement with each held-out report, of the method and of each control.
    """
    agreed = {label: float(np.mean([run[label].mean() for run in runs])) for label in runs[0]}
    ends = {"below 0 %": [label for label, share in agreed.items() if share < channel.flip]}
    ends["above 100 %"] = [label for label, share in agreed.items() if share > channel.keep]
    each = "; ".join(f"{', '.join(labels)} came out {end}" for end, labels in ends.items() if labels)
    return (f"{each}: by chance alone, and shown as that end. The lift is of what came out",) if each else ()


def repeated_answers(received: Received) -> tuple[str, ...]:
    """Return a sentence on how often people answered and how that is priced, where some answered more than once."""
    times_answered = received.times_answered()
    if all(times == 1 for counts in times_answered.values() for times in counts):
        return ()
    each = "; ".join(f"{kind}: {_times_in_words(counts)}" for kind, counts in times_answered.items() if counts)
    return (
        f"people answered in several epochs ({each}). Every answer is priced as a changed value, because a server "
        f"cannot tell; a person whose value stayed the same has paid once{_most_of_one_person(received)}",
    )


def _most_of_one_person(received: Received) -> str:
    """Return the most that one person can have paid, where it is less than the sum of each field's largest price."""
    most, paid = received.most_of_one(), received.paid().times
    fields = received.collected.task.fields
    total = sum(field.epsilon * paid[UNITS[field.kind]] for field in fields)
    if most is None or most >= total:
        return ""
    note = f"the sum over fields is of those who answered each most often, epsilon {decimal(Fraction(total))}"
    return f"; {note}: no single person has paid more than {decimal(most)}"


def _times_in_words(counts: Mapping[int, int]) -> str:
    return ", ".join(f"{people:,} {_TIMES.get(times, f'{times} times')}" for times, people in counts.items())


def estimated(agreement: Interval, channel: Channel, *, difference: bool = False) -> Interval:
    """Return the accuracy on true labels behind an agreement with reports, cut to the range of accuracies.

    Args:
        agreement: with reports, or a difference of two.
    """
    start, least = (0.0, -1.0) if difference else (channel.flip, 0.0)

    # The truth lies within the ends, so cutting a figure never takes it further away.
    def accuracy(share: float) -> float:
        return min(max((share - start) / channel.lean, least), 1.0)

    return Interval(
        accuracy(agreement.mean),
        accuracy(agreement.low),
        accuracy(agreement.high),
        tuple(map(accuracy, agreement.runs)),
        agreement.kind,
    )


def _scores(name: str, runs: Sequence[Mapping[str, np.ndarray]], channel: Channel) -> Scores:
    rows = {label: [run[label] for run in runs] for label in runs[0]}
    scores = {label: estimated(interval(agreed), channel) for label, agreed in rows.items()}
    controls = {label: score for label, score in scores.items() if label != name}
    best, lift = max(controls, key=lambda label: controls[label].mean) if controls else None, None
    if best is not None:
        # Paired: both were compared with the same reports, whose noise cancels where the predictions agree.
        differences = [own - control for own, control in zip(rows[name], rows[best], strict=True)]
        lift = estimated(interval(differences, difference=True), channel, difference=True)
    return Scores(scores[name], controls, None, best, lift)


def require_able(name: str, received: Received) -> None:
    """Raise InputError for a method that does not read exactly the fields of the task, with those that do.

    Args:
        name: of the method.
    """
    field_kinds = [field.kind for field in received.collected.task.fields]
    kinds = set(field_kinds)
    lists = {Degree.kind: tuple(WITH_DEGREES), Links.kind: WITH_LISTS}
    methods = {**lists, Features.kind: WITH_FEATURES, Label.kind: LABELS_ALONE}
    able = next((names for kind, names in methods.items() if kind in kinds), ())
    # People sent the fields that a method does not read, too: its guarantee would leave them out.
    if name not in able or kinds - set(methods):
        raise InputError(_inability(name, field_kinds), where=received.schema.name, allowed=", ".join(able))


def _inability(name: str, field_kinds: Sequence[str]) -> str:
    """Return why a method does not train on these fields: one that it needs is missing, or it does not read all."""
    needs = _NEEDS.get(name)
    if needs is None:
        return f"{name} trains on no reports of devices"
    missing = [kind for kind in needs if kind not in field_kinds]
    if missing:
        listed = f"{field_kinds[0]} alone" if len(field_kinds) == 1 else ", ".join(field_kinds)
        return f"the task asks for {listed}, and {name} needs {' and '.join(missing)} too"
    return f"{name} does not read {', '.join(kind for kind in field_kinds if kind not in needs)}"


def _settings(name: str, received: Received, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with the task's budgets. Raises InputError for other budgets, or a method of other fields."""
    require_able(name, received)
    privacy = received.privacy()
    budgets: dict[str, Any] = {"epsilon_y": privacy.epsilon_y}
    if name not in LABELS_ALONE:
        budgets |= {"epsilon_x": privacy.epsilon_x, **({} if privacy.sampled is None else {"sampled": privacy.sampled})}
    if reads_lists(name):
        links = received.links_privacy(WITH_DEGREES.get(name, "lists"))
        budgets |= {"epsilon_a": links.epsilon_a, "mode": links.mode}
        budgets |= {"degree_share": links.degree_share} if name in WITH_DEGREES else {}
    # The file of an earlier run may repeat the task's budgets.
    conflicts = [
        key for key in _FIXED_BY_TASK if key in settings and (key not in budgets or settings[key] != budgets[key])
    ]
    if conflicts:
        raise InputError(
            f"{', '.join(conflicts)} beside a collection", where=name, remedy="leave it out: the task says it"
        )
    return {**settings, **budgets}


def reads_lists(name: str) -> bool:
    """Return whether a method reads neighbour lists, and so no public edges."""
    return name in WITH_LISTS or name in WITH_DEGREES


def _stage_progress(progress: ProgressCallback | None, stage: str) -> ProgressCallback | None:
    if progress is None:
        return None
    report = progress
    return lambda event: report(event.named(stage, None))
