"""Run folders, published graphs and parties of a federation as rows to compare. Nothing is trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphveil.errors import InputError, ModelFileError
from graphveil.files.reading import read_json
from graphveil.privacy import Guarantee, Ledger
from graphveil.reports.attacks.files import PLAIN, read_attacks
from graphveil.reports.attacks.run import CURATOR_ENDING
from graphveil.reports.base.record import difference, interval_from_dict
from graphveil.reports.compare.rows import AttackScores, Row, facts, row_of
from graphveil.reports.compare.sheet import Sheet
from graphveil.reports.federation.card import check_party, open_lines
from graphveil.reports.federation.party import OUTCOME
from graphveil.reports.releases.card import is_release, read_lift
from graphveil.reports.runs.folder import read_run

_AGREEMENT = "agreement.toml"
_FEDERATED = "vfgnn"


def finished_sheet(folders: Sequence[Path]) -> Sheet:
    """The content of folders side by side; InputError where one is named twice, else errors as of `read_finished`."""
    resolved = [folder.resolve() for folder in folders]
    repeated = next((folder for folder, path in zip(folders, resolved, strict=True) if resolved.count(path) > 1), None)
    if repeated is not None:
        raise InputError(f"{repeated} is named twice")
    results = [read_finished(folder) for folder in folders]
    rows = tuple(row for row, _ in results)
    data = list(dict.fromkeys(row.data for row in rows))
    notes = []
    if len(data) > 1:
        notes.append(f"Accuracies on different data say nothing about each other: here are {', '.join(data)}.")
    # Different test nodes alone can make scores differ.
    if len({tested for row, tested in results if row.accuracy is not None}) > 1:
        notes.append("Not all were tested on the same nodes: split, seed or repeats differ.")
    if any(row.accuracy is None for row in rows):
        notes.append(
            "A published graph has no accuracy until report --lift trains on it, a party without labels never."
        )
    if any(row.accuracy is not None and row.promise.trust == "release" for row in rows):
        notes.append("What was trained on a published graph may be scored by the labels in it, noise included.")
    if any(row.attacks for row in rows):
        notes.append("An attack that finds nothing proves nothing: others may find more.")
    return Sheet(f"{', '.join(data)}: finished runs side by side, 95% intervals", rows, notes=tuple(notes))


def read_finished(folder: Path) -> tuple[Row, str]:
    """The row of a folder, and a description of its test nodes; ModelFileError or DataError: damaged or unfinished."""
    if is_release(folder):
        row, tested, attacked = _release(folder), f"on {folder}", [_curator_folder(folder)]
    elif (folder / "result.json").is_file():
        record = read_run(folder)
        row, attacked = row_of(record.method, {}, [record]), [folder]
        options = {key: record.options.get(key) for key in ("source", "seed", "repeats")}
        tested = f"{options}, {record.options.get('split', 'random')}"
    elif (party := _party_of(folder)) is not None:
        row, tested, attacked = _party(party), f"by {party}", [party, folder]
    else:
        allowed = "a folder that graphveil train, release or federation join wrote"
        raise ModelFileError(f"nothing finished in {folder}", allowed=allowed)
    attacks = {name: result for place in attacked for name, result in _attacks(place, row.method).items()}
    return replace(row, folder=str(folder), attacks=attacks), tested


def _release(folder: Path) -> Row:
    """A published graph, with the accuracy of a plain network on it, if that was measured."""
    from graphveil.graphs import load_plain

    graph = load_plain(folder)
    release, lift = graph.release, read_lift(folder)
    fields = facts(release.method, release.guarantee, release.ledger, release.settings)
    if lift is not None:
        return replace(row_of(release.method, {}, [lift]), **fields)
    return Row(method=release.method, axes={}, data=graph.schema.name, **fields, accuracy=None)


def _curator_folder(release: Path) -> Path:
    """The curator's folder of attack results: beside the release, never inside."""
    path = release.resolve()
    return path.with_name(path.name + CURATOR_ENDING)


def _party_of(folder: Path) -> Path | None:
    """The folder of a party: this one, or, in a folder of several parties, the one with an accuracy, else finished."""
    folders = [path for path in (folder, *sorted(folder.glob("*"))) if (path / _AGREEMENT).is_file()]
    scored = [path for path in folders if "accuracy" in _outcome(path)]
    complete = [path for path in folders if (path / "guarantee.json").is_file()]
    return next(iter([*scored, *complete]), None)


def _party(folder: Path) -> Row:
    from graphveil.federation.core.agreement import read_agreement

    try:
        guarantee = Guarantee.from_dict(read_json(folder / "guarantee.json"))
        ledger = Ledger.from_dict(read_json(folder / "ledger.json"))
        outcome = _outcome(folder)
        accuracy, alone = (
            interval_from_dict(outcome[key]) if key in outcome else None for key in ("accuracy", "accuracy_alone")
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelFileError(f"damaged party: {error}", where=str(folder)) from error
    if (folder / OUTCOME).is_file():
        check_party(folder)
    agreement = read_agreement(folder)
    # From the agreement and not from the card, which exists only after a run has finished.
    mode, privacy = agreement.setting.mode, agreement.setting.privacy
    agreed = {
        "mode": mode.name,
        "opens": mode.opens.sentence,
        "epsilon": privacy.epsilon,
        "epsilon_y": privacy.epsilon_y,
    }
    fields = facts(_FEDERATED, guarantee, ledger, {})
    fields["exposed"] = open_lines({**agreed, "guarantee": guarantee.to_dict()})
    row = Row(_FEDERATED, {}, agreement.name, **fields, accuracy=accuracy, seconds=outcome.get("seconds"))
    if accuracy is None or alone is None:
        return row
    lift = difference(accuracy, alone)
    return replace(row, best_control="label holder alone", control=alone, lift=lift)


def _outcome(folder: Path) -> dict[str, Any]:
    """The output of a party's command; empty where it has not finished."""
    try:
        outcome = read_json(folder / OUTCOME)
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ModelFileError("is not JSON", where=str(folder / OUTCOME)) from error
    return outcome if isinstance(outcome, dict) else {}


def _attacks(folder: Path, method: str) -> dict[str, AttackScores]:
    attacks = {}
    for name, results in read_attacks(folder).items():
        result = results.get(method) or next((other for label, other in results.items() if label != PLAIN), None)
        if result is not None:
            attacks[name] = AttackScores.of(result, results.get(PLAIN))
    return attacks
