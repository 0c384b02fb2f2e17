"""The run folder: what a run leaves behind, written whole or not at all.

====================== ==================================================================================
``config.toml``        method, data, settings and options: enough to run it again
``result.json``        the object ``--json`` prints: accuracy, controls, lift, guarantee, ledger, cost
``ledger.json``        every spend of privacy, and the budget
``metrics.jsonl``      one line per epoch and repeat
``model.safetensors``  the trained model of the first repeat (settings inside as JSON, no pickle)
``card.md``, ``.html`` the privacy card, with the attacks that ``attack-<name>.json`` remember
``report.html``        the report, one page that needs no network
====================== ==================================================================================
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphveil.errors import InputError, ModelFileError
from graphveil.reading import read_json, read_json_lines
from graphveil.reports.attack_files import kept
from graphveil.reports.card import pages
from graphveil.reports.files import new_folder, to_json, write_text
from graphveil.reports.ledger_file import LedgerFile
from graphveil.reports.record import RunRecord
from graphveil.reports.render import page_html
from graphveil.reports.run_card import run_card
from graphveil.reports.text import plain_name

if TYPE_CHECKING:
    from graphveil.methods.experiment import Result


LEDGER = "ledger.json"


def default_folder(data: str, method: str, now: datetime, *, root: Path = Path("runs")) -> Path:
    """``runs/<data>-<method>-<time>``, with a number behind it when that name is taken."""
    name = f"{plain_name(data)}-{method}-{now:%Y%m%d-%H%M%S}"
    taken = next(count for count in range(1, 10_000) if not _numbered(root, name, count).exists())
    return _numbered(root, name, taken)


def _numbered(root: Path, name: str, count: int) -> Path:
    return root / (name if count == 1 else f"{name}-{count}")


def write_run(result: Result, path: Path, *, options: Mapping[str, Any]) -> RunRecord:
    """Write the whole run folder of ``result`` to ``path``.

    Args:
        result: what an experiment returned.
        path: the folder to make; it must not exist, or be empty.
        options: the choices of the run that are no setting of the method (seed, repeats, device).

    Returns:
        The record written, which says in ``run`` where it lies.

    Raises:
        InputError: ``path`` is already used. Nothing is written then, nor after any other exception.
    """
    record = RunRecord.from_result(result, options=options).in_folder(str(path))
    with new_folder(path) as folder:
        write_text(folder / "config.toml", config_toml(record))
        write_text(folder / "metrics.jsonl", _metrics(record))
        result.model.save(folder)
        _write_ledger(record, folder)
    return record


def open_model(path: Path) -> Any:
    """The model of a run, whose spends are on disk before it reads any data.

    Args:
        path: the run folder, or a folder that holds a saved model alone.

    Raises:
        ModelFileError: there is no model, or the ledger beside it is not its own.
    """
    from graphveil.methods import load_method

    model = load_method(path)
    model.ledger = LedgerFile(path / LEDGER).open(model.ledger)
    return model


def keep_spending(model: Any, path: Path) -> None:
    """Save ``model`` again after a prediction that cost something, and bring the run's result and pages up to date.

    Args:
        model: what :func:`open_model` gave; it remembers the answer it gave. Its spends are on disk already.
        path: the run folder, or a folder that holds a saved model alone.
    """
    account = LedgerFile(path / LEDGER)
    with account.locked():
        model.ledger = account.open(model.ledger)  # what others spent since belongs to the same people
        model.save(path)
        if (path / "result.json").is_file():
            _write_ledger(replace(read_run(path), ledger=model.ledger, guarantee=model.guarantee), path)


def read_run(path: Path) -> RunRecord:
    """The record of the run in folder ``path``.

    Raises:
        ModelFileError: there is no run there, or a file of it is damaged.
    """
    file = path / "result.json"
    if not file.is_file():
        raise ModelFileError(f"no run in {path}", allowed="a folder that graphveil train wrote")
    try:
        content = read_json(file)
        history = _history(read_json_lines(path / "metrics.jsonl"))
        return RunRecord.from_dict(content, history=history).in_folder(str(path))
    except (OSError, ValueError, KeyError, TypeError, InputError) as error:
        raise ModelFileError(f"damaged run: {error}", where=str(path)) from error


def rewrite_report(path: Path) -> RunRecord:
    """Write the cards and ``report.html`` of the run in ``path`` anew from what the folder holds.

    Raises:
        ModelFileError: there is no run there, or a file of it is damaged.
    """
    record = read_run(path)
    _write_pages(record, path)
    return record


def config_toml(record: RunRecord) -> str:
    """Method, data, settings and options of a run as TOML."""
    lines = [f"method = {_toml(record.method)}", f"data = {_toml(record.data)}"]
    for table, values in (("settings", record.settings), ("options", record.options)):
        lines += ["", f"[{table}]"]
        lines += [f"{_key(key)} = {_toml(value)}" for key, value in values.items() if value is not None]
    text = "\n".join(lines) + "\n"
    tomllib.loads(text)  # a mistake of ours is found here, not by the reader
    return text


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _toml(value: Any) -> str:
    """One TOML value: a number, a truth value, a list of them, or a quoted string."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _metrics(record: RunRecord) -> str:
    rows = [{"repeat": repeat, **row} for repeat, epochs in enumerate(record.history, start=1) for row in epochs]
    return "".join(to_json(row) + "\n" for row in rows)


def _history(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    repeats: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        repeats.setdefault(int(row.pop("repeat")), []).append(row)
    return [repeats[number] for number in sorted(repeats)]


def _write_ledger(record: RunRecord, folder: Path) -> None:
    write_text(folder / "result.json", to_json(record.to_dict(), indent=2) + "\n")
    write_text(folder / LEDGER, to_json(record.ledger.to_dict(), indent=2) + "\n")
    _write_pages(record, folder)


def _write_pages(record: RunRecord, folder: Path) -> None:
    made = {**pages(run_card(record, kept(folder))), "report.html": page_html(record)}
    for name, content in made.items():
        write_text(folder / name, content)
