"""Saved methods: one safetensors file whose metadata holds everything else as JSON.  Nothing is ever unpickled.

The metadata carries the kind of method, its settings, the public schema, the guarantee, the ledger and a hash of
these and the tensors; reading checks all of it before a number is used.  The hash finds damage, not forgery.

What is not for everybody who has the model (people's reports, each node's own answer) lies in a second file beside it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphveil.errors import InputError, ModelFileError
from graphveil.files.reading import MIB, parse_json, require_file
from graphveil.files.serial import number_to_json
from graphveil.files.writing import write_bytes, writing
from graphveil.graphs.value.schema import schema_facts as schema_facts
from graphveil.graphs.value.schema import schema_from as schema_from
from graphveil.privacy import Ledger
from graphveil.privacy.ledger_file import LedgerFile
from graphveil.runtime.checks import as_path
from graphveil.runtime.late import Tensor, nn, torch

KEY = "graphveil"
FORMAT = 1
FILE = "model.safetensors"
#: What is kept beside a model and not handed on with it.
ANSWERS = "answers.safetensors"
#: What lists the files of a run's parts.
DIGESTS = "digests.json"
_LARGEST_HEADER = 32 * MIB


@dataclass(frozen=True)
class Stored:
    """What a method is restored from: JSON facts, and tensors by name."""

    facts: Mapping[str, Any]
    tensors: Mapping[str, Tensor]


def save_method(
    path: str | Path, kind: str, facts: Mapping[str, Any], tensors: Mapping[str, Tensor], *, mode: int = 0o600
) -> Path:
    """Write tensors and JSON facts to a file (or a folder's `model.safetensors`), whole or not at all; return it.

    Args:
        mode: who may read it, less what the umask takes away: its owner alone by default.
    """
    from safetensors.torch import save

    target = _file(path)
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in sorted(tensors.items())}
    # `allow_nan=False` below: NaN is no JSON, and another reader would refuse the file or, worse, guess.
    header = {"format": FORMAT, "kind": kind, "sha256": digest_of(kind, facts, plain), "facts": dict(facts)}
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    content = save(plain, metadata={KEY: json.dumps(header, sort_keys=True, allow_nan=False)})
    write_bytes(target, content, mode=mode)
    return target


def read_method(path: str | Path, kind: str | None = None) -> tuple[str, dict[str, Any], dict[str, Tensor]]:
    """Return (kind, facts, tensors) of a saved method. Raises ModelFileError when the file is missing, damaged, not
    ours, of another kind or of a newer format.

    Args:
        path: the file or its folder.
        kind: the kind expected, or None for any.
    """
    target = _file(path)
    if not target.is_file():
        raise ModelFileError(
            "no saved model", where=str(target), remedy="give the run folder or the file that save wrote"
        )
    header, tensors = _read(target)
    # Before the hash: a newer format may well be hashed in another way.
    if header.get("format") != FORMAT:
        raise ModelFileError(f"format {header.get('format')!r}", where=str(target), allowed=f"format {FORMAT}")
    stored, facts = header.get("kind"), header.get("facts")
    if not isinstance(stored, str) or not isinstance(facts, dict):
        raise ModelFileError("the header lacks the method's kind or facts", where=str(target))
    if header.get("sha256") != digest_of(stored, facts, tensors):
        raise ModelFileError("the content does not match its recorded hash", where=str(target), remedy="save it again")
    if kind is not None and stored != kind:
        raise ModelFileError(f"holds a {stored!r} model", where=str(target), allowed=f"a {kind!r} model")
    return stored, facts, tensors


def save_answers(
    model: Path, kind: str, facts: Mapping[str, Any], tensors: Mapping[str, Tensor], *, empty: bool = True
) -> None:
    """Write what is not for everybody who has the model (reports, answers) beside it, for its owner's eyes alone.

    Nothing to write: no file, and an older one goes.

    Args:
        model, kind, facts, tensors: as of `save_method`.
        empty: whether nothing is to be written where there are no tensors.
    """
    target = answers_file(model)
    if tensors or not empty:
        save_method(target, _answers_kind(kind), facts, tensors)
    else:
        target.unlink(missing_ok=True)


def read_answers(path: str | Path, kind: str) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
    """Return what was written beside a saved method, or None: the model alone was handed on."""
    target = answers_file(_file(path))
    if not target.is_file():
        return None
    _, facts, tensors = read_method(target, _answers_kind(kind))
    return facts, tensors


def ledger_of(path: str | Path, facts: Mapping[str, Any]) -> Ledger:
    """Return what a saved method has spent, tied to the ledger beside it, the account of all who use the file: its
    `ledger.json`, or `NAME.ledger.json` of a model NAME, which the first spend makes.
    """
    # Links are followed, so that two names of one model share one ledger and one budget.
    file = _file(path).resolve()
    place = file.with_name("ledger.json" if file.name == FILE else f"{file.stem}.ledger.json")
    return LedgerFile(place).open(Ledger.from_dict(facts["ledger"]))


def answers_file(model: Path) -> Path:
    """Return where reports and answers lie: beside the model, but outside a folder that may be handed on.

    `answers.safetensors`, or `NAME.answers.safetensors` for a model NAME, or a folder NAME, that is called otherwise.
    """
    file = model.resolve()
    folder = file.parent
    # The public part of a run may be zipped and sent as it is: what people sent must not lie in it.
    if (folder / DIGESTS).is_file() and not (folder / "result.json").is_file():  # the public part of a run
        return folder.parent / (ANSWERS if folder.name == "public" else f"{folder.name}.{ANSWERS}")
    return file.with_name(ANSWERS if file.name == FILE else f"{file.stem}.{ANSWERS}")


def _answers_kind(kind: str) -> str:
    return f"answers of {kind}"


@contextmanager
def restoring(path: str | Path) -> Iterator[None]:
    """Turn whatever a garbled header causes into a ModelFileError that names the file."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError, ArithmeticError) as error:
        raise ModelFileError(f"has a missing or damaged field ({error})", where=str(path)) from error


def require_numbers(name: str, tensor: Tensor) -> Tensor:
    """Return a tensor of a file that holds finite 32-bit numbers; refuses others."""
    if tensor.dtype != torch.float32 or not bool(torch.isfinite(tensor).all()):
        raise InputError(f"{name} holds {tensor.dtype}, or values that are not finite", allowed="finite float32")
    return tensor


def stored_probabilities(stored: Stored, classes: int) -> Tensor:
    """Return the probabilities [n, c] that were stored; refuses another shape, and numbers that are not finite."""
    # A file of another shape would answer for other people by their row.
    probabilities = require_numbers("probabilities", stored.tensors["probabilities"])
    require_classes("probabilities", probabilities, classes)
    return probabilities


def require_classes(name: str, scores: Tensor, classes: int) -> None:
    """Refuse stored scores that are not one a node and class."""
    if scores.dim() != 2 or scores.shape[1] != classes:
        raise InputError(f"{name} are {tuple(scores.shape)}", allowed=f"(nodes, {classes})")


def require_same_shapes(stored: Mapping[str, tuple[int, ...]], expected: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse stored tensors that are missing, left over or of another shape; names the first."""
    for name in sorted({*stored, *expected}):
        if stored.get(name) != expected.get(name):
            raise InputError(f"{name} is {stored.get(name)}", allowed=str(expected.get(name)))


def restored(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Load stored weights into a network, which may be on the device "meta"; refuses those of another network."""
    expected = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    require_same_shapes({name: tuple(value.shape) for name, value in tensors.items()}, expected)
    # Assigned and not copied: on the device "meta" there is nothing to copy into.
    model.load_state_dict(dict(tensors), assign=True)
    model.eval()


def prefixed(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": value for name, value in tensors.items()}


def without_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    start = f"{prefix}."
    return {name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)}


def number(value: float | None) -> float | str | None:
    """Return a number as a JSON value, None as it is."""
    return None if value is None else number_to_json(value)


def number_from(stored: object) -> float | None:
    """Return a number as `number` wrote it: infinity is a word, None stays None."""
    return None if stored is None else float(stored)  # type: ignore[arg-type]


def _read(target: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    from safetensors import SafetensorError, safe_open

    require_file(target, error=ModelFileError, packed=True)
    with target.open("rb") as start:
        size = int.from_bytes(start.read(8), "little")
    # Checked by hand first: the library would read a header of any announced size into memory.
    if size > _LARGEST_HEADER:
        allowed = f"at most {_LARGEST_HEADER / MIB:g} MiB"
        raise ModelFileError(f"has a header of {size / MIB:,.0f} MiB", where=str(target), allowed=allowed)
    try:
        # safetensors holds plain arrays: loading a model runs nothing that is in the file.
        with safe_open(target, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelFileError(f"cannot be read ({error})", where=str(target), remedy="save it again") from error
    if KEY not in metadata:
        raise ModelFileError("is a safetensors file that graphveil did not write", where=str(target))
    try:
        header = parse_json(metadata[KEY], where=str(target), error=ModelFileError)
    except ModelFileError as error:
        raise ModelFileError(f"has a damaged header ({error.what})", where=str(target)) from error
    if not isinstance(header, dict):
        raise ModelFileError("has a damaged header", where=str(target))
    return header, tensors


def _file(path: str | Path) -> Path:
    path = as_path(path)
    return path if path.suffix == ".safetensors" else path / FILE


def digest_of(kind: str, facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """Hash everything a method is restored from: a flipped digit of epsilon is as bad as a flipped weight."""
    digest = hashlib.sha256(json.dumps([kind, dict(facts)], sort_keys=True).encode())
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"{name}{tuple(value.shape)}{value.dtype}".encode())
        digest.update(value.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
