"""What a federation would send, cost and reveal, from the agreement alone."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from graphveil.errors import DataError, GraphveilError
from graphveil.federation.core.agreement import FILE, SIGNATURES, Agreement, parse_agreement
from graphveil.federation.core.guarantees import guarantee_of, person_of
from graphveil.federation.core.messages import KINDS
from graphveil.federation.core.setting import Setting
from graphveil.federation.crypto.keys import require_signature
from graphveil.federation.crypto.psi import alignment_bytes, alignment_trips
from graphveil.federation.modes.programs import programs_of, traffic_of
from graphveil.federation.modes.traffic import Traffic, matrix_bytes_by_protocol
from graphveil.federation.transport.line import Line
from graphveil.files.reading import LARGEST_TOML, read_bytes, read_json
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.privacy.statement.guarantee import not_a_person
from graphveil.privacy.statement.unit import GUESS

#: Values of republish for the table that shows the noise with fewer publications.
_REPUBLISH = (1, 10, 50)
#: The epsilon above which the plan states how many guesses are sent unchanged.
_MANY_UNCHANGED = 4.0
_ONE_GUESS = (
    "at a finite epsilon use mode guesses: noise on embeddings leaves little to learn from, one randomized guess a "
    "node leaves much; the other holders are given the training labels"
)
_NO_NOISE = (
    "the label holder sees the last hidden layer without noise, and no epsilon bounds what it tells; mode guesses, "
    "shared-linear or individual with a finite epsilon adds noise"
)
_UNBOUNDED = (
    "no bound, since somebody who trains also moves what is published for everybody; mode guesses with unit=person "
    "bounds it"
)


def draft(folder: Path) -> tuple[Agreement, list[str]]:
    """Return the agreement in a folder, and who has not signed it; DataError where it is missing or damaged."""
    file = folder / FILE
    try:
        agreement = parse_agreement(read_bytes(file, largest=LARGEST_TOML), where=str(file))
        signatures = dict(read_json(folder / SIGNATURES)) if (folder / SIGNATURES).exists() else {}
    except FileNotFoundError as error:
        raise DataError("is missing", where=str(file), remedy="graphveil federation init makes it") from error
    except (ValueError, TypeError) as error:
        raise DataError("is not a JSON object", where=str(folder / SIGNATURES)) from error
    return agreement, [
        p.name for p in agreement.parties if not _signed(p.certificate, agreement.data, signatures.get(p.name))
    ]


def plan_of(
    agreement: Agreement,
    nodes: int,
    rows: int,
    unsigned: list[str],
    line: Line | None = None,
    *,
    validation: int | None = None,
) -> dict[str, Any]:
    """Return the plan of a run over `nodes` aligned nodes, `rows` of which train, as `--json` prints it.

    Args:
        unsigned: parties that have not signed.
        validation: how many nodes validate; None: as many as train.
        line: between every two parties, for the seconds that messages take.
    """
    setting = agreement.setting
    guarantee = guarantee_of(setting)
    traffic = traffic_of(setting, nodes, rows, validation)
    return {
        "run": agreement.name,
        "agreement": agreement.hash.hex(),
        "parties": [
            {
                "name": p.name,
                "role": p.role,
                "address": p.address,
                "columns": p.columns,
                **({"names": [column.name for column in p.kinds]} if p.kinds else {}),
            }
            for p in agreement.parties
        ],
        "label_holder": setting.label_holder,
        "ids": agreement.ids,
        "unsigned": unsigned,
        "mode": setting.protocol.mode,
        "opens": setting.mode.opens.sentence,
        "opened": setting.protocol.opened,
        "nodes": nodes,
        "training_nodes": rows,
        "epochs": setting.training.epochs,
        "publications": setting.publications,
        "epsilon": setting.privacy.epsilon,
        **price_facts(setting),
        "epsilon_y": setting.privacy.epsilon_y,
        "republish": _republished(setting),
        "bytes_once": traffic.once,
        "bytes_round": traffic.round,
        "bytes_total": traffic.total,
        "bytes_by_kind": traffic.by_kind(),
        **({"ways": matrix_bytes_by_protocol(setting, nodes)} if setting.mode.opens_sum else {}),
        "bytes_alignment": alignment_bytes(len(setting.names), nodes)[0],
        **({} if line is None else {"line": _on_line(line, setting, nodes, traffic)}),
        "reveals": [
            {"kind": kind, "from": KINDS[kind].sender, "to": KINDS[kind].receiver, "reveals": KINDS[kind].reveals}
            for kind in setting.mode.sent
        ],
        "advice": _advice(setting, nodes),
        "guarantee": guarantee.to_dict(),
        "guarantee_sentence": guarantee.sentence(),
    }


def _on_line(line: Line, setting: Setting, nodes: int, traffic: Traffic) -> dict[str, float]:
    """Return the seconds that messages take at most, of an alignment of as many ids and of the run after it."""
    busiest = max(traffic.by_link().values())
    holders, trips = len(setting.names), programs_of(setting).sizes.trips(setting)
    return {
        "bits_per_second": line.rate,
        "delay": line.delay,
        "trips": trips,
        "seconds_alignment": line.seconds(alignment_bytes(holders, nodes)[1], alignment_trips(holders)),
        "seconds_run": line.seconds(busiest, trips),
    }


def price_facts(setting: Setting) -> dict[str, Any]:
    """Return what one publication costs, who reads it, how large its noise is, and what each unit pays."""
    facts = {
        "epsilon_per_publication": setting.price.per_round,
        "reader": setting.mode.reader,
        "width": setting.model.width,
        "units": _units(setting),
    }
    if setting.per_person:
        price = setting.person_price
        return facts | {"delta": price.delta, **_report(setting), **price.facts}
    if setting.mode.guesses:
        return facts | {"delta": 0.0, **_report(setting)}
    return facts | {"delta": setting.privacy.delta, "sigma": setting.publication.sigma, "clip": setting.privacy.clip}


def _report(setting: Setting) -> dict[str, Any]:
    """Return how often a report holds the guess, and how many of the classes it names."""
    guess = setting.guessing
    return {"keep": guess.keep, "classes": setting.classes, "size": guess.size}


def _units(setting: Setting) -> list[dict[str, Any]]:
    """Return what a person pays and, beside it, what a weaker unit pays and leaves out."""
    if setting.price.public:
        return []
    guarantee, person = guarantee_of(setting), person_of(setting)
    weaker = GUESS if setting.per_person else guarantee.unit
    delta = 0.0 if setting.per_person else guarantee.delta
    bound = setting.privacy.epsilon if setting.per_person else math.inf
    return [
        {
            "unit": person.text,
            "epsilon": bound,
            "delta": guarantee.delta if setting.per_person else 0.0,
            "warning": person.less if setting.per_person else _UNBOUNDED,
        },
        {"unit": weaker.text, "epsilon": setting.privacy.epsilon, "delta": delta, "warning": not_a_person(weaker)},
    ]


def _signed(certificate: str, data: bytes, signature: object) -> bool:
    try:
        require_signature(certificate.encode(), data, bytes.fromhex(str(signature)))
    except (GraphveilError, ValueError):
        return False
    return True


def _republished(setting: Setting) -> list[dict[str, float]]:
    """The noise at the same total epsilon, if holders published less often."""
    if setting.price.public or setting.mode.guesses:
        return []
    choices = []
    for republish in sorted({*_REPUBLISH, setting.training.republish, setting.training.epochs}):
        if republish <= setting.training.epochs:
            publication = setting.with_options(republish=republish, opened=True).publication
            choices.append({"republish": republish, "publications": publication.rounds, "sigma": publication.sigma})
    return choices


def _advice(setting: Setting, nodes: int) -> list[str]:
    mode = setting.mode
    advice = [mode.too_many_nodes.format(mode.max_nodes)] if nodes > mode.max_nodes else []
    if not mode.noisy:
        return [_NO_NOISE, *advice]
    if setting.price.public:
        rows_text = "guesses as they are" if mode.guesses else "embeddings without noise"
        advice.append(f"epsilon inf: {mode.reader} sees {rows_text}; give --epsilon a number to protect them")
    elif not mode.guesses:
        advice.append(_ONE_GUESS)
        if (
            setting.publication.sigma * setting.model.width**0.5 > 3
            and setting.training.republish < setting.training.epochs
        ):
            advice.append("the noise is longer than a row: raise republish, so that there are fewer publications")
    elif setting.privacy.epsilon > _MANY_UNCHANGED:
        epsilon, keep = rounded_up(setting.privacy.epsilon), setting.guessing.keep
        advice.append(f"at epsilon {epsilon} {keep:.1%} of all guesses are sent as they are")
    if math.isinf(setting.privacy.epsilon_y):
        subject, names = (
            ("all holders are given", "") if mode.guesses else ("the server can learn", ", perhaps without their names")
        )
        advice.append(f"{subject} the training labels{names}; epsilon_y=4 would randomize them")
    return advice
