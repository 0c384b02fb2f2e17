"""The screens of ``graphveil federation``."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from graphveil.cli.base.screens import three_lines
from graphveil.cli.base.tables import listed, pairs, rows
from graphveil.federation.core.mode import MODE_OF
from graphveil.privacy import Guarantee
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.privacy.statement.guarantee import claim
from graphveil.reports.base.card import MARKDOWN
from graphveil.reports.base.text import percent, printable, seconds
from graphveil.runtime.words import count_of


def split(answer: Mapping[str, Any]) -> RenderableType:
    head = Text(f"{count_of(answer['nodes'], 'node')} split among {len(answer['holders'])} holders", style="bold")
    lines = (
        (holder["name"], _columns(holder), f"{holder['edges']:,}", "yes" if holder["labels"] else "")
        for holder in answer["holders"]
    )
    table = rows(("holder", "feature columns", "edge entries", "labels"), lines)
    folder = printable(answer["folder"])
    next_command = f"graphveil federation init --from {shlex.quote(folder)} --out RUN --epsilon E"
    return Group(head, Text(), table, Text(), pairs([("Folder", folder), ("Next", next_command)]))


def _columns(holder: Mapping[str, Any]) -> str:
    """How many features a holder has, and the names of their columns if declared."""
    names = ", ".join(printable(name) for name in holder.get("names", ()))
    return f"{holder['columns']:,}{f' ({names})' if names else ''}"


def created(answer: Mapping[str, Any]) -> RenderableType:
    parties, unsigned = answer["parties"], ", ".join(answer["unsigned"])
    head = f"{printable(answer['run'])}: mode {answer['mode']}, agreement {answer['agreement'][:16]}"
    keys = ("created here" if party["made"] else "its own" for party in parties)
    lines = (
        (party["name"], party["role"], party["address"], party["certificate"][:16], key)
        for party, key in zip(parties, keys, strict=True)
    )
    table = rows(("party", "role", "address", "certificate", "key"), lines)
    created_here = ", ".join(party["name"] for party in parties if party["made"])
    advice = f"{created_here}: created here; give each folder to its party only, over a safe channel"
    to_sign = ("Not signed by", f"{unsigned}: each must run review, then sign")
    facts = [
        ("Folder", answer["folder"]),
        *([("Keys", advice)] if created_here else []),
        to_sign if unsigned else ("Signed by", "all parties"),
        ("Next", "graphveil federation plan " + shlex.quote(f"{answer['folder']}/{parties[0]['name']}")),
    ]
    return Group(Text(head, style="bold"), Text(), table, Text(), pairs(facts))


def keyed(answer: Mapping[str, Any]) -> RenderableType:
    facts = [
        *((name, answer[name.lower()]) for name in ("Party", "Folder", "Fingerprint")),
        ("Hand out", f"{answer['certificate']}; confirm the fingerprint over another channel"),
        ("Keep", f"{answer['key']}: it never leaves this machine"),
    ]
    return pairs(facts)


def signed(answer: Mapping[str, Any]) -> RenderableType:
    missing = ", ".join(answer["unsigned"])
    facts = [
        ("Party", answer["party"]),
        ("Agreement", answer["agreement"][:16]),
        ("Signed by", ", ".join(answer["signed"])),
        ("Missing", f"{missing}; send them {answer['file']}" if missing else "nobody: the run can begin"),
    ]
    return pairs(facts)


def planned(answer: Mapping[str, Any]) -> RenderableType:
    """Threat model, epsilon, noise, bytes, and what every message reveals."""
    from graphveil.reports.federation.card import unit_line  # loads the federation, which no help text needs

    head = Text(f"{printable(answer['run'])}: mode {answer['mode']}; nothing has been sent", style="bold")
    parties = ", ".join(
        f"{party['name']} ({party['role']}, {party['address']}"
        f"{f', columns {_columns(party)}' if party['columns'] else ''})"
        for party in answer["parties"]
    )
    once, each, total, aligned = (size(answer[f"bytes_{part}"]) for part in ("once", "round", "total", "alignment"))
    nodes = f"for {count_of(answer['nodes'], 'node')} (--nodes)"
    counted = f"{nodes}, {answer['training_nodes']:,} of them training (--training)"
    guarantee, mode = answer["guarantee"], MODE_OF[answer["mode"]]
    # Without what the mode opens, which has a line of its own.
    codes = zip(guarantee["assumes"], guarantee["assumes_codes"], strict=True)
    assumed = [sentence for sentence, code in codes if code != mode.opens.code]
    facts = [
        ("Parties", f"{parties}; labels: {answer['label_holder']}"),
        ("Not signed by", ", ".join(answer["unsigned"]) or "nobody: all have signed"),
        ("Ids", f"compared in the form {answer['ids']!r}"),
        ("Threat model", mode.trust),
        *listed("Unit", map(unit_line, answer["units"])),
        ("Mode opens", answer["opens"]),
        *_acknowledged(answer),
        *_price(answer),
        ("Labels", _labels(answer)),
        ("Bytes", f"{once} once, {each} a round, {total} in all, {counted}; before them {aligned} of alignment"),
        *_connections(answer),
        *_line(answer),
        *_joining(answer),
        *listed("Advice", answer["advice"]),
        ("Guarantee", claim(Guarantee.from_dict(guarantee))),
        *listed("Assumes", assumed),
    ]
    parts: list[RenderableType] = [head, Text(), pairs(facts), Text()]
    if answer["republish"]:
        parts += [_republish_table(answer), Text()]
    table = rows(
        ("message", "from", "to", "bytes", "what the receiver learns"),
        (
            (message["kind"], message["from"], message["to"], _bytes_of(answer, message["kind"]), message["reveals"])
            for message in answer["reveals"]
        ),
    )
    return Group(*parts, table)


def _bytes_of(answer: Mapping[str, Any], kind: str) -> str:
    return size(answer["bytes_by_kind"][kind]) if kind in answer["bytes_by_kind"] else "alignment"


def _connections(answer: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How connections are multiplied on shares, and what other ways would send, if they are."""
    if "ways" not in answer:
        return []
    (way, least), *rest = answer["ways"].items()
    listed_ways = ", ".join(f"{other_way} {size(bytes_)}" for other_way, bytes_ in rest)
    return [("Connections", f"{way}: {size(least)}; for comparison: {listed_ways}")]


def _line(answer: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How long messages take on the line that was named, if any."""
    if "line" not in answer:
        return []
    line = answer["line"]
    alignment, run = (seconds(line[f"seconds_{part}"]) for part in ("alignment", "run"))
    facts = f"{line['bits_per_second'] / 1e6:g} Mbit/s and {line['delay'] * 1000:g} ms one way"
    waits = f"{line['trips']:,} messages wait for each other"
    return [("Line", f"at most {run} at {facts}, alignment {alignment}; {waits}; plus computation")]


def _joining(answer: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a prediction for people who join later would send, take and cost, if one was planned."""
    if "joining" not in answer:
        return []
    plan = answer["joining"]
    total, aligned = size(plan["bytes_total"]), size(plan["bytes_alignment"])
    kinds = ", ".join(f"{kind} {size(count)}" for kind, count in plan["bytes_by_kind"].items())
    who = f"{count_of(plan['people'], 'person')} who {'joins' if plan['people'] == 1 else 'join'}"
    facts = f"{total} for {who}, before them {aligned} of alignment; {kinds}"
    if "trips" in plan:
        alignment, messages = (seconds(plan[f"seconds_{part}"]) for part in ("alignment", "prediction"))
        facts += f"; at most {messages} on that line, alignment {alignment}"
    price = "epsilon inf: nothing is hidden"
    if math.isfinite(plan["epsilon"]):
        noise = _guess(plan) if "keep" in plan else f"noise sigma {plan['sigma'] * plan['clip']:.3g} a coordinate"
        delta = f"at delta {rounded_up(plan['delta'])}" if plan["delta"] else "with no delta"
        price = f"epsilon {rounded_up(plan['epsilon'])} {delta}, once; {noise}"
    return [("Prediction", facts), ("Each pays", price)]


def reviewed(answer: Mapping[str, Any]) -> RenderableType:
    """An agreement before it is signed: parties, changes, who sees what, what it costs each."""
    from graphveil.reports.federation.card import unit_line

    head = f"{printable(answer['run'])}: mode {answer['mode']}, agreement {answer['agreement'][:16]}"
    parties = rows(
        ("party", "role", "address", "columns", "certificate", "until"),
        (
            (p["name"], role, p["address"], p["columns"] or "", p["certificate"][:16], p["ends"])
            for p in answer["parties"]
            for role in ["holder, labels" if p["labels"] else p["role"]]
        ),
    )
    sees = rows(
        ("party", "sees", "from"),
        (
            (who["party"] if number == 0 else "", message["reveals"], message["from"])
            for who in answer["sees"]
            for number, message in enumerate(who["sees"])
        ),
    )
    nothing = sorted({kind for who in answer["sees"] for kind in who["nothing"]})
    costs = rows(("party", "pays"), ((p["name"], _pays(p["pays"])) for p in answer["parties"]))
    facts = [
        ("Mode opens", answer["opens"]),
        *_acknowledged(answer),
        *_price(answer),
        *listed("Unit", map(unit_line, answer["units"])),
        ("Labels", _labels(answer)),
        ("Guarantee", claim(Guarantee.from_dict(answer["guarantee"]))),
        *listed("Warning", answer["warnings"]),
        ("If you agree", f"graphveil federation sign {shlex.quote(answer['folder'])}{answer['option']}"),
    ]
    tells_nothing = Text(f"Of no use to their readers (masks, keys, hashes): {', '.join(nothing) or 'none'}")
    parts = (Text(head, style="bold"), parties, _changes(answer), sees, tells_nothing, costs, pairs(facts))
    return Group(*(line for part in parts for line in (part, Text())))


def status(answer: Mapping[str, Any]) -> RenderableType:
    paid = "the server publishes no rows"
    if answer["epsilon_total"] is not None:
        paid = spent(float(answer["epsilon"]), float(answer["epsilon_total"]), answer["reader"])
    left = f", about {seconds(answer['seconds_left'])} left" if answer["seconds_left"] else ""
    facts = [
        ("Party", answer["party"]),
        ("State", answer["state"]),
        ("Round", f"{answer['round']} of {answer['rounds']}{left}"),
        ("Epsilon", paid.removeprefix("epsilon ")),
        ("Since", answer["time"]),
        *listed("Warning", [*answer["warnings"], *_dropped_lines(answer)]),
    ]
    outgoing = [message for message in answer["messages"] if message["from"] == answer["party"]]
    incoming = [message for message in answer["messages"] if message["to"] == answer["party"]]
    sent_table = rows(("to", "message", "sent", "from it the reader could conclude"), map(_sent_row, outgoing))
    read_table = rows(("from", "message", "read"), ((m["from"], m["kind"], _count(m)) for m in incoming))
    heads = [Text(text, style="bold") for text in ("What has left this machine", "What has arrived here")]
    nothing = Text("nothing")
    parts: list[RenderableType] = [
        pairs(facts), Text(), heads[0], sent_table if outgoing else nothing, Text(), heads[1],
        read_table if incoming else nothing,
    ]  # fmt: skip
    for prediction in answer["predictions"]:
        parts += _prediction_parts(answer, prediction)
    return Group(*parts)


def _prediction_parts(answer: Mapping[str, Any], prediction: Mapping[str, Any]) -> list[RenderableType]:
    """How far a prediction is, and what has left this machine for it."""
    people = prediction["people"]
    state = f"{prediction['state']}, round {prediction['round']} of {prediction['rounds']}"
    if prediction["finished"]:
        state = "finished" if prediction["state"] == "finished" else f"finished; repeated later: {prediction['state']}"
    facts = [
        ("State", state),
        ("New people", "not known here" if people is None else f"{people:,}"),
        *listed("Warning", _dropped_lines(prediction)),
    ]
    if answer["epsilon_total"] is not None:
        charged = spent(float(prediction["epsilon"]), float(answer["epsilon_total"]), answer["reader"])
        facts.insert(2, ("Epsilon", f"{charged.removeprefix('epsilon ')}, for each of them"))
    outgoing = [message for message in prediction["messages"] if message["from"] == answer["party"]]
    head = Text(f"Prediction {prediction['prediction']}", style="bold")
    table = rows(("to", "message", "sent", "from it the reader could conclude"), map(_sent_row, outgoing))
    parts: list[RenderableType] = [Text(), head, pairs(facts)]
    return [*parts, Text(), table] if outgoing else parts


def verified(answer: Mapping[str, Any]) -> RenderableType:
    faults, counts = answer["faults"], answer["published"].items()
    published = ", ".join(f"by {name} in {count_of(count, 'round')}" for name, count in counts)
    log = "the log" if answer["prediction"] is None else f"the log of prediction {answer['prediction']}"
    head = f"{log} contradicts the agreement" if faults else f"{log} is as agreed"
    rounds = count_of(answer["paid"], "round")
    facts = [
        ("Agreement", answer["agreement"][:16]),
        ("Messages", f"{answer['messages']:,}"),
        ("Published", f"{published or 'nothing'}; paid for: {rounds} each"),
        *listed("Warning", _dropped_lines(answer)),
    ]
    if answer["peer"] is not None:
        unread = f", {answer['unread']:,} sent and not read, as at a restart" if answer["unread"] else ""
        equal = count_of(answer["equal"], "message")
        facts.append((f"With {answer['peer']}", f"{equal} equal at both ends{unread}"))
    return Group(Text(f"{answer['party']}: {head}", style="bold"), pairs([*facts, *listed("Fault", faults)]))


def _pays(budgets: Mapping[str, float]) -> str:
    """What a party spends, in words."""
    texts = [
        f"{name}: epsilon {rounded_up(epsilon)} {'each' if name == 'labels' else 'in TOTAL'}"
        if math.isfinite(epsilon)
        else f"{name}: NOT PROTECTED"
        for name, epsilon in budgets.items()
    ]
    return "; ".join(texts) or "nothing: it publishes nothing of its own"


def _changes(answer: Mapping[str, Any]) -> RenderableType:
    if answer["previous"] is None:
        return Text("No earlier agreement is in this folder.")
    head = Text(f"Changed since agreement {answer['previous'][:16]}:", style="bold")
    absent = "(not there)"
    lines = [
        (change["fact"], *(absent if change[when] is None else change[when] for when in ("before", "now")))
        for change in answer["changes"]
    ]
    return Group(head, rows(("fact", "before", "now"), lines)) if lines else Text(f"{head.plain} comments alone")


def _dropped_lines(answer: Mapping[str, Any]) -> list[str]:
    return [f"lines of the log that a crash cut off, and that are dropped: {answer['torn']}"] if answer["torn"] else []


def _sent_row(message: Mapping[str, Any]) -> tuple[str, str, str, str]:
    return message["to"], message["kind"], _count(message), message["reveals"]


def _count(message: Mapping[str, Any]) -> str:
    return f"{message['count']:,} x, {size(message['bytes'])}"


def finished(answer: Mapping[str, Any]) -> RenderableType:
    """A finished party: accuracy at the label holder, guarantee, messages, files."""
    parts: list[RenderableType] = []
    if "accuracy" in answer:
        score = answer["accuracy"]
        interval = f"95%: {percent(score['low'])} to {percent(score['high'])}"
        best = f"best validation in round {answer['best_round']} of {answer['rounds']}"
        details = f" accuracy on {count_of(answer['test_nodes'], 'test node')} ({interval}); {best}"
        parts.append(Text.assemble((f"{answer['party']}: {percent(score['mean'])} %", "bold"), details))
        if "accuracy_alone" in answer:
            mean = percent(answer["accuracy_alone"]["mean"])
            parts.append(Text(f"By itself, its network and its labels, without the others' guesses: {mean} %"))
    else:
        parts.append(Text(f"{answer['party']} has finished {count_of(answer['rounds'], 'round')}", style="bold"))
    table = rows(("message", "sent", "received"), _by_kind(answer))
    facts = [*_price(answer), ("Labels", _labels(answer)), *_acknowledged(answer)]
    return Group(*parts, Text(), table, Text(), *_closing(answer, facts))


def predicted(answer: Mapping[str, Any]) -> RenderableType:
    """A finished prediction: how many are new, what they paid, guarantee, files."""
    count = "" if answer["people"] is None else f"{answer['people']:,} "
    who = f"of {count}new people, published once"
    head = Text(f"{answer['party']} has finished prediction {answer['prediction']} {who}", style="bold")
    price = spent(answer["epsilon"], answer["epsilon"], answer["reader"]).removeprefix("epsilon ")
    return Group(head, Text(), *_closing(answer, [("Epsilon", price)]))


def _closing(answer: Mapping[str, Any], facts: Sequence[tuple[str, str]]) -> tuple[RenderableType, ...]:
    """The guarantee of what has finished, its facts, and what was sent and written."""
    from graphveil.reports.federation.card import open_lines

    card = Path(answer["folder"]) / MARKDOWN
    guarantee = three_lines(Guarantee.from_dict(answer["guarantee"]), open_lines(answer), card)
    sent, received = size(answer["bytes_sent"]), size(answer["bytes_received"])
    written = [
        ("Sent", f"{sent}, received {received}, in {seconds(answer['seconds'])}"),
        ("Folder", answer["folder"]),
        ("Files", ", ".join(answer["files"])),
    ]
    return guarantee, Text(), pairs([*facts, *written])


def spent(epsilon: float, total: float, reader: str) -> str:
    """The epsilon spent so far, in words.

    Args:
        total: epsilon that may be spent; inf: no privacy was agreed.
        reader: against whom it protects.
    """
    if math.isinf(float(total)):
        return f"no privacy against {reader}"
    return f"epsilon {rounded_up(epsilon, 3)} of {rounded_up(total)} spent"


def size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}" if unit != "B" else f"{count:.0f} B"
        count /= 1000
    return f"{count:,.3g} GB" if count < 1000 else f"{count / 1000:,.3g} TB"


def _price(answer: Mapping[str, Any]) -> list[tuple[str, str]]:
    if math.isinf(answer["epsilon"]):
        return [("Epsilon", f"inf: no privacy against {answer['reader']}, as was agreed")]
    if "keep" in answer:
        other = _guess(answer)
        if "multiplier" in answer:
            total = f"{rounded_up(answer['epsilon'])} in TOTAL for one person at each holder that guesses"
            trained = f"training: {answer['steps']} gradients, noise {answer['multiplier']:.3g} times the clip; {other}"
            if "votes" in answer:
                trained = f"votes: of {answer['degree_bound']} names a list, noise {answer['votes']:.3g}; {trained}"
            return [("Epsilon", f"{total}, at delta {rounded_up(answer['delta'])}"), ("Noise", trained)]
        total = f"{rounded_up(answer['epsilon'])} in TOTAL for one guess a node, with no delta"
        return [("Epsilon", total), ("Noise", other)]
    each = rounded_up(answer["epsilon_per_publication"], 3)
    noise = f"sigma {answer['sigma'] * answer['clip']:.3g} a coordinate, on rows of length at most {answer['clip']:g}"
    total = f"{rounded_up(answer['epsilon'])} in TOTAL over {count_of(answer['publications'], 'publication')}"
    return [
        ("Epsilon", f"{total}, at delta {rounded_up(answer['delta'])} ({each} for one publication alone)"),
        ("Noise", f"{noise}: as long as {answer['sigma'] * answer['width'] ** 0.5:.3g} such rows"),
    ]


def _guess(answer: Mapping[str, Any]) -> str:
    """How a guess is sent."""
    rest = answer["classes"] - 1
    if answer.get("size", 1) > 1:
        categories = f"{answer['size']} of the {answer['classes']} classes are sent"
        return f"{categories}, among them the guess with probability {answer['keep']:.3g}"
    else_as = f"one of the {rest} other classes" if rest > 1 else "the other class"
    return f"a guess is sent as it is with probability {answer['keep']:.3g}, else as {else_as}"


def _acknowledged(answer: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [("Acknowledged", fact.sentence) for fact in MODE_OF[answer["mode"]].assumes if answer["opened"]]


def _by_kind(answer: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Messages of each kind, and their bytes, that this party sent and received."""
    kinds: dict[str, dict[bool, tuple[int, int]]] = {}
    for message in answer["messages"]:
        sums, sent = kinds.setdefault(message["kind"], {}), message["from"] == answer["party"]
        count, total = sums.get(sent, (0, 0))
        sums[sent] = count + message["count"], total + message["bytes"]

    def cell(pair: tuple[int, int] | None) -> str:
        return f"{pair[0]:,} x, {size(pair[1])}" if pair else ""

    return [(kind, cell(sums.get(True)), cell(sums.get(False))) for kind, sums in kinds.items()]


def _labels(answer: Mapping[str, Any]) -> str:
    if math.isfinite(answer["epsilon_y"]):
        return f"randomized once at their holder, epsilon {rounded_up(answer['epsilon_y'])} each"
    return MODE_OF[answer["mode"]].labels_open


def _republish_table(answer: Mapping[str, Any]) -> RenderableType:
    longest = answer["width"] ** 0.5
    lines = (
        (choice["republish"], choice["publications"], f"{choice['sigma']:.3g}", f"{choice['sigma'] * longest:.3g}")
        for choice in answer["republish"]
    )
    table = rows(("republish", "publications", "noise (sigma / clip)", "noise / longest row"), lines)
    return Group(Text("Fewer publications need less noise at the same total:", style="bold"), table)
