"""The two parts of a run folder, and the detection of changed files.

    RUN/            for its owner: results measured on true labels, paths, settings of the machine
    RUN/public/     for publication: the model, its guarantee and ledger; enough for predictions

Each part lists the SHA-256 of its files in `digests.json`; the model has a hash of itself, the guarantee and the ledger
that it was saved with. An edit of one file is detected; a forgery of all of them is not, since nothing is signed.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from graphveil.errors import GraphveilError, ModelFileError
from graphveil.files.reading import read_json
from graphveil.files.serial import to_json
from graphveil.files.writing import partial_folder, write_bytes
from graphveil.methods.base.estimator import Estimator
from graphveil.methods.base.storage import DIGESTS, read_method, save_method
from graphveil.methods.base.storage import FILE as MODEL
from graphveil.privacy import Guarantee, Ledger
from graphveil.privacy.ledger_file import LedgerFile

PUBLIC: Final = "public"
LEDGER, GUARANTEE, ABOUT = "ledger.json", "guarantee.json", "about.json"
RESULT, METRICS, CONFIG = "result.json", "metrics.jsonl", "config.toml"
README = "README.md"
#: The mode of the owner's files.
OWN = 0o600
REMEDY: Final = "put the file back as it was written; what was changed has no guarantee"
_LINKED: Final = (MODEL, LEDGER)


def public_part(folder: Path) -> Path:
    """Return the folder of a model: the public part of a run, or the folder itself where that is no whole run."""
    inside = folder / PUBLIC
    return inside if inside.is_dir() or (folder / RESULT).is_file() else folder


def whole_run(folder: Path) -> Path:
    """Return the run around a public part: if the part alone were changed, it would contradict the rest of the run. Any
    other folder is returned as it is.
    """
    parent = folder.resolve().parent
    return parent if folder.resolve() == parent / PUBLIC and (parent / RESULT).is_file() else folder


def is_public_part(folder: Path) -> bool:
    """Whether a folder is the public part of a run, perhaps without the rest."""
    return any((folder / name).is_file() for name in (ABOUT, GUARANTEE, DIGESTS)) and not (folder / RESULT).is_file()


@dataclass(frozen=True)
class CheckedRun:
    """What a run protects and has spent."""

    guarantee: Guarantee
    ledger: Ledger  # as in the file, which may have more spends than the model
    behind: bool  # whether the model lacks spends of the file: a prediction stopped after it had paid


def check_run(run: Path) -> CheckedRun:
    """Check a run, or its public part; ModelFileError where a file is missing or contradicts another."""
    # In the order of trust: the model with its own hash, then its ledger, then the files that repeat both.
    public = public_part(run)
    of_a_run = public != run or is_public_part(run)
    facts = read_method(public)[1]
    ledger = _ledger_of(facts, public)
    # A model on its own may lack a ledger file; a run never does.
    if of_a_run:
        _require(public / LEDGER)
    # The file must continue the model's own ledger: a fresh one would hide what was spent.
    paid = LedgerFile(public / LEDGER).open(ledger).detached()
    guarantee = _guarantee_of(facts, public)
    if of_a_run:
        require_unchanged(public, (ABOUT, GUARANTEE))
        _require_same(read_object(public / GUARANTEE), guarantee, public / GUARANTEE, cut_off=is_cut_off(public))
    if (run / RESULT).is_file():
        require_unchanged(run, (RESULT, METRICS, CONFIG))
        for name in _LINKED:
            if (run / name).is_file() and (run / name).read_bytes() != (public / name).read_bytes():
                raise ModelFileError(f"is not the one in {PUBLIC}", where=str(run / name), remedy="remove it")
        file = run / RESULT
        cut_off = is_cut_off(run)
        content = read_object(file)
        _require_same(content.get("guarantee"), guarantee, file, cut_off=cut_off)
        _require_equal(content.get("ledger"), ledger.to_dict(), file, cut_off=cut_off)
    return CheckedRun(guarantee, paid, paid != ledger)


@contextmanager
def writing_part(folder: Path, texts: Mapping[str, str], *, mode: int = 0o666) -> Iterator[None]:
    """Write files, and their digests after the block; if it is interrupted, old and new files both pass the check.

    Args:
        texts: file name -> content.
        mode: less what the umask takes away.
    """
    # While files are replaced, old and new digests are both listed, so that after a kill no file looks forged.
    new = {name: [_sha256(text.encode())] for name, text in texts.items()}
    old = _digests(folder) if (folder / DIGESTS).is_file() else {}
    listed = {name: [*old.get(name, []), *new[name]] for name in new}
    write_with_mode(folder / DIGESTS, to_json({**old, **listed}), mode)
    for name, text in texts.items():
        write_with_mode(folder / name, text, mode)
    yield
    write_with_mode(folder / DIGESTS, to_json({**old, **new}), mode)


def save_public_model(model: Estimator, public: Path) -> None:
    """Save a model without the history of its training, which is measured on true labels, and without reports.

    Args:
        public: the folder that may be published.
    """
    # Saved elsewhere and read back, so that `history` is never in the public folder.
    with partial_folder(public / MODEL) as temporary:
        kind, facts, tensors = read_method(model.save(temporary))
    public_facts = {**facts, "history": []} if "history" in facts else facts
    model.keep(save_method(public, kind, public_facts, tensors, mode=0o666))


def link_public_files(run: Path) -> None:
    """Link the model and the ledger of the public part into the run folder, where the system has links."""
    for name in _LINKED:
        link = run / name
        if link.is_symlink():
            continue
        # An older regular file of this name.
        link.unlink(missing_ok=True)
        try:
            link.symlink_to(Path(PUBLIC) / name)
        except OSError:
            return


def write_with_mode(file: Path, text: str, mode: int = OWN) -> None:
    """Write a text whole; an older file's mode does not matter.

    Args:
        file: its folder must exist.
        mode: who may read it; by default only its owner.
    """
    write_bytes(file, text.encode("utf-8", "replace"), mode=mode)


def read_object(file: Path) -> Mapping[str, Any]:
    """Return the JSON object in a file; ModelFileError where it is missing, or holds something else."""
    _require(file)
    try:
        content = read_json(file)
    except (OSError, ValueError) as error:
        raise ModelFileError(f"is damaged: {error}", where=str(file), remedy=REMEDY) from error
    if not isinstance(content, dict):
        raise ModelFileError("is damaged: no object", where=str(file), remedy=REMEDY)
    return content


def require_sum(guarantee: Guarantee, file: Path) -> None:
    """Refuse a guarantee below the sum of its parts, or below the largest where only one of several reports is sent.

    Args:
        guarantee: as read from a file, which may have been edited.
        file: for the ModelFileError.
    """
    parts = guarantee.parts
    together = max if guarantee.assumption("one-of-reports") else math.fsum
    if parts and any(
        # The tolerance is for rounding on the way through text; an edit worth making is far larger.
        together([getattr(part, name) for part in parts]) > getattr(guarantee, name) * (1 + 1e-9) + 1e-18
        for name in ("epsilon", "delta")
        if math.isfinite(guarantee.epsilon)
    ):
        raise ModelFileError("claims more than its parts add up to", where=str(file), remedy=REMEDY)


def require_paid(guarantee: Guarantee, ledger: Ledger, file: Path) -> None:
    """Refuse a finite epsilon below what the ledger paid for one unit, or without any spend.

    Args:
        guarantee: as read from a file, which may have been edited.
        file: for the ModelFileError.
    """
    paid = max((ledger.total(entry.unit)[0] for entry in ledger.budget), default=0.0)
    # 0 is refused too: a finite epsilon without a spend means that no noise was added.
    if math.isfinite(guarantee.epsilon) and not 0 < paid <= guarantee.epsilon * (1 + 1e-9) + 1e-8:
        raise ModelFileError("claims more than its ledger paid for", where=str(file), remedy=REMEDY)


def _require_same(stored: Any, guarantee: Guarantee, file: Path, *, cut_off: bool) -> None:
    """Refuse another guarantee than the model's."""
    try:
        content: Any = Guarantee.from_dict(stored).to_dict()
    except (TypeError, ValueError, GraphveilError):
        content = None  # no guarantee: the comparison below refuses it and names the file
    _require_equal(content, guarantee.to_dict(), file, cut_off=cut_off)


def _require_equal(stored: object, expected: object, file: Path, *, cut_off: bool) -> None:
    """Refuse content that differs from the model's, unless the writer of the file was interrupted."""
    # Compared after a JSON round trip, which changes tuples and infinities.
    if stored != json.loads(to_json(expected)) and not cut_off:
        raise ModelFileError("contradicts the model", where=str(file), remedy=REMEDY)


def require_unchanged(folder: Path, names: tuple[str, ...]) -> None:
    """Raise ModelFileError for a file that is missing or not the one whose digest the folder lists.

    Args:
        names: the files to check.
    """
    digests = _digests(folder)
    for name in names:
        _require(folder / name)
        # After an interrupted write two digests are listed, of the old content and of the new.
        if _sha256((folder / name).read_bytes()) not in digests.get(name, []):
            raise ModelFileError("was changed since it was written", where=str(folder / name), remedy=REMEDY)


def _require(file: Path) -> None:
    if not file.is_file():
        raise ModelFileError("is missing", where=str(file), remedy=REMEDY)


def is_cut_off(folder: Path) -> bool:
    """Whether the last writer of a part was interrupted."""
    listed = _digests(folder) if (folder / DIGESTS).is_file() else {}
    return any(len(set(digests)) > 1 for digests in listed.values())


def _digests(folder: Path) -> dict[str, list[str]]:
    digests = read_object(folder / DIGESTS)
    if not all(
        isinstance(listed, list) and all(isinstance(digest, str) for digest in listed) for listed in digests.values()
    ):
        raise ModelFileError("is damaged", where=str(folder / DIGESTS), remedy=REMEDY)
    return dict(digests)


def _ledger_of(facts: Mapping[str, Any], public: Path) -> Ledger:
    try:
        return Ledger.from_dict(facts["ledger"])
    except (KeyError, TypeError, ValueError, GraphveilError) as error:
        raise ModelFileError(f"states no ledger ({error})", where=str(public / MODEL)) from error


def _guarantee_of(facts: Mapping[str, Any], public: Path) -> Guarantee:
    try:
        guarantee = Guarantee.from_dict(facts["guarantee"])
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"states no guarantee ({error})", where=str(public / MODEL)) from error
    require_sum(guarantee, public / MODEL)
    return guarantee


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
