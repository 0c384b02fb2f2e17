"""The run folder: what a run leaves behind, written whole or not at all, in two parts (see `base.parts`).

============================= =============================================================================
``public/``                   may be handed on: nothing in it was measured on true labels
``public/model.safetensors``  the trained model of the first repeat (settings inside as JSON, no pickle)
``public/guarantee.json``     what is protected, as a value; ``about.json``: method, data and settings
``public/ledger.json``        every spend of privacy, and the budget
``public/card.md``, ``.html`` the privacy card; ``report.html``: the same as a page, with a picture if one may be seen
``answers.safetensors``       what people sent or were answered, by person: who is asked again gives that again
``config.toml``               method, data, settings and options: enough to run it again
``result.json``               the object ``--json`` prints: accuracy, controls, lift, guarantee, ledger, cost
``metrics.jsonl``             one line per epoch and repeat
``card.md``, ``.html``        the card with results, and with the attacks that ``attack-<name>.json`` remember
``report.html``               the report, one page that needs no network; ``picture.json`` is the graph in it
============================= =============================================================================
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from graphveil.errors import GraphveilError, InputError, ModelFileError
from graphveil.files.outputs import Output, Say
from graphveil.files.reading import read_json, read_json_lines
from graphveil.files.serial import to_json, toml_value
from graphveil.files.writing import new_folder, room_for, write_text
from graphveil.methods.registry import files_of
from graphveil.methods.runs.result import ESTIMATED
from graphveil.privacy import Guarantee, Ledger
from graphveil.privacy.ledger_file import LedgerFile
from graphveil.reports.attacks.files import read_attacks
from graphveil.reports.base import parts
from graphveil.reports.base.card import pages, read_as_is
from graphveil.reports.base.record import RunRecord
from graphveil.reports.base.text import plain_name
from graphveil.reports.runs.card import About, digest_key, public_card, run_card
from graphveil.reports.runs.page import page_html, shared_html
from graphveil.reports.runs.picture import FILE as PICTURE
from graphveil.reports.runs.picture import Picture

if TYPE_CHECKING:
    from graphveil.graphs import Graph
    from graphveil.methods.base.estimator import Estimator
    from graphveil.methods.runs.result import Result
    from graphveil.privacy.ledger import Account

REPORT: Final = "report.html"
_COVERED = """\
# May be handed on

The model of a run, what it protects (`card.md`, `guarantee.json`) and what was spent (`ledger.json`). Everything here
is covered by that guarantee, or by what it calls open; nothing was measured on true labels.
"""
_VOID = """\
# {word}: not to be handed on

{reason}
Treat everything here like the data it was made from. `card.md`, `guarantee.json` and `ledger.json` say what
it would have protected and what was spent; nothing was measured on true labels.
"""
_ANY_PUBLIC = """\
`graphveil predict` works with this folder alone. Whoever has a copy has a copy of the budget too: predictions that are
paid for from one copy do not show in another, so agree on who predicts.
`graphveil report` checks the files against each other. It notices a file that was edited, not a forger who writes all
of them anew: nothing is signed.
"""
_OWN_README = """\
# For the owner of this run alone

Controls, the ceiling, accuracies and attacks were measured on true data, and `config.toml` names paths: epsilon covers
none of it. Hand on the folder `public/`, nothing else. `model.safetensors` and `ledger.json` here are links into it.
"""
_OWN_COLLECTED = """\
# For the owner of this run alone

Controls and accuracies were estimated from randomized labels that people's own devices sent: epsilon covers them, and
no true label is known. `config.toml` and `result.json` name paths of this machine, which it does not cover. Hand on the
folder `public/`, nothing else. `model.safetensors` and `ledger.json` here are links into it.
"""
_OWN_VOID = """\
# {word}: nothing here is to be handed on

{reason}
That goes for `public/` as well. `model.safetensors` and `ledger.json` here are links into it.
"""


def default_folder(data: str, method: str, now: datetime) -> Path:
    """``runs/<data>-<method>-<time>``, which `outputs.new_output` numbers where it is used.

    Args:
        data: name or path of the graph; of a path, only the last part is kept.
    """
    return Path("runs") / f"{plain_name(data)}-{method}-{now:%Y%m%d-%H%M%S}"


def write_run(result: Result, path: Path, *, options: Mapping[str, Any], graph: Graph | None = None) -> RunRecord:
    """Write the whole run folder and return its record; InputError, and nothing written, where it is used.

    Args:
        options: the choices of the run that are no setting of the method (seed, repeats, device).
        graph: what it was trained on, to be drawn; None: the report has no picture.
    """
    # By checksum: a path would tell a stranger about its maker's machine, and not which file it was.
    files = files_of(result.method, result.settings)
    digests = {digest_key(key): hashlib.sha256(file.read_bytes()).hexdigest() for key, file in files.items()}
    record = RunRecord.from_result(result, options={**options, **digests}).in_folder(str(path))
    # Closed from the start: what was measured on true labels is never readable by others, not even for a moment.
    with new_folder(path, owner_only=True) as folder:
        (folder / parts.PUBLIC).mkdir()
        rows = [{"repeat": repeat, **row} for repeat, epochs in enumerate(record.history, start=1) for row in epochs]
        fixed = {parts.CONFIG: config_toml(record), parts.METRICS: "".join(to_json(row) + "\n" for row in rows)}
        if graph is None:
            _write_parts(record, result.model, folder, fixed)
        else:
            _write_drawn(record, result.model, folder, fixed, graph)
    return record


def open_model(path: Path, *, say: Say = lambda line: None) -> Estimator:
    """The model of a run, its public part or a bare model, whose spends are on disk before it reads any data. A run
    whose prediction was stopped after it had paid is brought up to date, see `keep_spending`. Raises ModelFileError:
    there is no model, or a file of the run was changed.
    """
    from graphveil.methods import load_method

    public = parts.public_part(path)
    # Before the model is loaded: a run whose ledger was edited must not be given another spend.
    behind = parts.check_run(path).behind and (path / parts.RESULT).is_file()
    model: Estimator = load_method(public)
    model.ledger = LedgerFile(public / parts.LEDGER).open(model.ledger)
    if behind:
        keep_spending(model, path, say=say)
    return model


def catch_up(path: Path) -> None:
    """Bring a run up to date whose prediction was stopped after it had paid."""
    if (path / parts.RESULT).is_file() and parts.check_run(path).behind:
        open_model(path)


class _Reserving:
    """An account that reserves disk space before it lets anything be spent, and so before data is read."""

    def __init__(self, account: Account, reserve: Callable[[], object]) -> None:
        self._account, self._reserve = account, reserve

    def settle(self, previous: Ledger, paid: Ledger) -> Ledger:
        """See `Account`; raises WriteError where there is no space, with nothing spent."""
        # First the space, then the spend: a full disk must not cost epsilon for an answer that cannot be kept.
        self._reserve()
        return self._account.settle(previous, paid)


def reserve(model: Estimator, path: Path, answer_bytes: int, stack: ExitStack) -> ExitStack:
    """Let a paid prediction first reserve the space for the run and its answers, to be closed before `keep_spending`.

    Args:
        model: as opened from the run; its ledger is given another account, in place.
        stack: ends it at the latest.
    """
    rooms = stack.enter_context(ExitStack())
    # Twice: files are written beside the old ones before they take their place.
    size = answer_bytes + 2 * sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    place = parts.public_part(path) / parts.LEDGER
    opened = cast("Account", model.ledger.account)  # `open_model` gave it one
    account = _Reserving(opened, lambda: rooms.enter_context(room_for(place, size)))
    model.ledger = replace(model.ledger, account=account)
    return rooms


def keep_spending(model: Estimator, path: Path, *, say: Say = lambda line: None) -> None:
    """Save a model again after a paid prediction, and bring the run up to date; where that may not be written to any
    more, the model with all it remembers goes beside it.

    Args:
        model: what :func:`open_model` gave; its spends are on disk already.
        say: hears of a model that went beside it.
    """
    try:
        # One lock around reading and writing: two predictions at once may not overwrite each other's ledger.
        account = LedgerFile(parts.public_part(path) / parts.LEDGER)
        with account.locked():
            model.ledger = account.open(model.ledger)  # what others spent since belongs to the same people
            if (path / parts.RESULT).is_file():
                # Read inside the lock, so that results of another process's prediction are not written over.
                record = _with_ledger(_read_record(path), model.guarantee, model.ledger)
                privacy = replace(record.privacy, epsilon_relationship=model.epsilon_relationship)
                _write_parts(replace(record, privacy=privacy), model, path)
            elif parts.is_public_part(path):
                _write_public(replace(_read_about(path), relationship=model.epsilon_relationship), model, path)
            else:
                model.save(path)
    except ModelFileError:  # somebody changed the run meanwhile
        raise
    except (OSError, InputError) as error:
        # What people sent is in the model alone: lost, they would be asked, and pay, once more.
        with ExitStack() as stack:
            output = Output(path, say, stack)
            output.write_beside(error, lambda beside: _save_alone(model, beside))


def _save_alone(model: Estimator, path: Path) -> None:
    with new_folder(path, owner_only=True) as folder:
        model.save(folder)


def read_run(path: Path) -> RunRecord:
    """The record of a run, with its model's guarantee and ledger; ModelFileError where it is missing or changed."""
    record = _read_record(path)
    checked = parts.check_run(path)
    return _with_ledger(record, checked.guarantee, checked.ledger)


def _with_ledger(record: RunRecord, guarantee: Guarantee, ledger: Ledger) -> RunRecord:
    return replace(record, privacy=replace(record.privacy, guarantee=guarantee, ledger=ledger))


def _read_record(path: Path) -> RunRecord:
    file = path / parts.RESULT
    if not file.is_file():
        raise ModelFileError(f"no run in {path}", allowed="a folder written by graphveil train")
    try:
        content = read_json(file)
        repeats: dict[int, list[dict[str, Any]]] = {}
        for row in read_json_lines(path / parts.METRICS):
            repeats.setdefault(int(row.pop("repeat")), []).append(row)
        history = [repeats[number] for number in sorted(repeats)]
        return RunRecord.from_dict(content, history=history).in_folder(str(path))
    except (OSError, ValueError, KeyError, TypeError, GraphveilError) as error:
        raise ModelFileError(f"damaged run: {error}", where=str(path)) from error


def rewrite_report(path: Path) -> RunRecord:
    """Write the cards and ``report.html`` of a run anew from what the folder holds, with the errors of `read_run`."""
    record = read_run(path)
    _write_pages(record, path)
    return record


def rewrite_public_card(path: Path) -> About:
    """Write the card of a public part anew; ModelFileError where a file is missing, damaged or was changed."""
    checked, about = parts.check_run(path), _read_about(path)
    _write_public_card(replace(about, guarantee=checked.guarantee, ledger=checked.ledger), path)
    return about


def config_toml(record: RunRecord) -> str:
    lines = [f"method = {toml_value(record.method)}", f"data = {toml_value(record.data)}"]
    settings = dict(record.settings)
    # Of a total that was split, the total alone.
    if settings.get("epsilon") is not None:
        settings = {key: value for key, value in settings.items() if key not in ("epsilon_x", "epsilon_y")}
    # Left out, it would be the default: one feature report where none was sent.
    elif "epsilon_x" in settings and settings["epsilon_x"] is None:
        settings["epsilon_x"] = "none"
    for table, values in (("settings", settings), ("options", record.options)):
        lines += ["", f"[{table}]"]
        lines += [f"{_key(key)} = {toml_value(value)}" for key, value in values.items() if value is not None]
    text = "\n".join(lines) + "\n"
    tomllib.loads(text)  # an internal error shows here, not when somebody reads the file
    return text


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_value(name)


def _write_parts(record: RunRecord, model: Estimator, folder: Path, fixed: Mapping[str, str] | None = None) -> None:
    """Write both parts; `fixed` are the files that never change again."""
    public = parts.public_part(folder)
    result = {**(fixed or {}), parts.RESULT: to_json(record.to_dict(), indent=2) + "\n"}
    # The inner part is written inside the outer block, so an interrupted run is recognised from either side.
    with parts.writing_part(folder, result, mode=parts.OWN):
        _write_public(About.of(record), model, public)
    own = _OWN_COLLECTED if ESTIMATED in record.notes else _OWN_README
    parts.write_with_mode(folder / parts.README, _readme(record.privacy.guarantee, own, _OWN_VOID))
    parts.link_public_files(folder)
    _write_pages(record, folder)


def _write_drawn(record: RunRecord, model: Estimator, folder: Path, fixed: Mapping[str, str], graph: Graph) -> None:
    """Write both parts with their pictures: the maker's own copy, and the one that the guarantee covers, if any."""
    from graphveil.methods.runs.experiment import split_of  # all of training, which no rewriting needs
    from graphveil.reports.runs.copies import copies

    split = split_of(graph, str(record.options.get("split", "random")), int(record.options.get("seed", 0)))
    # Two pictures, so that no private part can slip into the one that is handed on.
    own_copy, shared = copies(model, graph, split)
    shared_json = None if shared is None else _picture_json(shared)
    if shared_json is not None:
        write_text(folder / parts.PUBLIC / PICTURE, shared_json)
    own = shared_json if own_copy is shared or own_copy is None else _picture_json(own_copy)
    _write_parts(record, model, folder, {**fixed, **({} if own is None else {PICTURE: own})})


def _picture_json(picture: Picture) -> str:
    return to_json(picture.to_dict()) + "\n"


def _picture(folder: Path) -> Picture | None:
    """Return the picture that a part of a run holds, if any; ModelFileError where it is damaged, or was changed."""
    file = folder / PICTURE
    if not file.is_file():
        return None
    parts.require_unchanged(folder, (PICTURE,))
    try:
        return Picture.from_dict(parts.read_object(file))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"is damaged: {error}", where=str(file), remedy=parts.REMEDY) from error


def _write_public(about: About, model: Estimator, public: Path) -> None:
    about = replace(about, ledger=model.ledger, guarantee=model.guarantee)
    guarantee = to_json(about.guarantee.to_dict(), indent=2) + "\n"
    texts = {parts.ABOUT: to_json(about.to_dict(), indent=2) + "\n", parts.GUARANTEE: guarantee}
    # Digests are listed anew with each write: the picture stays vouched for when a prediction is paid.
    if (public / PICTURE).is_file():
        texts[PICTURE] = (public / PICTURE).read_text(encoding="utf-8")
    with parts.writing_part(public, texts):
        parts.save_public_model(model, public)
        ledger = replace(about.ledger, void=about.guarantee.void)
        write_text(public / parts.LEDGER, to_json(ledger.to_dict(), indent=2) + "\n")
    # Written with each spend: a prediction may void what held before.
    write_text(public / parts.README, _readme(about.guarantee, _COVERED, _VOID) + _ANY_PUBLIC)
    _write_public_card(about, public)


def _readme(guarantee: Guarantee, covered: str, nobody: str) -> str:
    """Return `covered`, or `nobody` with the reason where the guarantee protects nobody."""
    if guarantee.void is not None:
        return nobody.format(word="VOID", reason=f"This run protects nobody: {guarantee.void}.")
    if guarantee.unprotected:
        return nobody.format(word="NOT PROTECTED", reason=read_as_is(guarantee, "run"))
    return covered


def _read_about(public: Path) -> About:
    checked = parts.check_run(public)
    try:
        content = parts.read_object(public / parts.ABOUT)
        return About.from_dict(content, guarantee=checked.guarantee, ledger=checked.ledger)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"is damaged: {error}", where=str(public / parts.ABOUT)) from error


def _write_pages(record: RunRecord, folder: Path) -> None:
    attacks = read_attacks(folder)
    contents = {**pages(run_card(record, attacks)), REPORT: page_html(record, attacks, _picture(folder))}
    for name, content in contents.items():
        parts.write_with_mode(folder / name, content)
    _write_public_card(About.of(record), parts.public_part(folder))


def _write_public_card(about: About, public: Path) -> None:
    for name, content in {**pages(public_card(about)), REPORT: shared_html(about, _picture(public))}.items():
        write_text(public / name, content)
