"""Saved methods: one safetensors file whose metadata holds everything else as JSON.  Nothing is ever unpickled.

The metadata holds the kind of method, its settings, the public schema, the guarantee, the ledger and a hash of these
and the tensors; reading checks all of it before a number is used.  The hash detects damage, not forgery.

What is not for everybody who has the model (people's reports, each node's own answer) is in a second file beside it.
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
#: The file beside a model that is not handed on with it.
ANSWERS = "answers.safetensors"
#: The file that lists the files in the public part of a run.
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
    # `allow_nan=False` below: NaN is no JSON, and another reader would refuse the file.
    header = {"format": FORMAT, "kind": kind, "sha256": content_hash(kind, facts, plain), "facts": dict(facts)}
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
    # Before the hash: a newer format may be hashed in another way.
    if header.get("format") != FORMAT:
        raise ModelFileError(f"format {header.get('format')!r}", where=str(target), allowed=f"format {FORMAT}")
    stored, facts = header.get("kind"), header.get("facts")
    if not isinstance(stored, str) or not isinstance(facts, dict):
        raise ModelFileError("the header lacks the method's kind or facts", where=str(target))
    if header.get("sha256") != content_hash(stored, facts, tensors):
        raise ModelFileError("the content does not match its recorded hash", where=str(target), remedy="save it again")
    if kind is not None and stored != kind:
        raise ModelFileError(f"holds a {stored!r} model", where=str(target), allowed=f"a {kind!r} model")
    return stored, facts, tensors


def save_answers(
    model: Path, kind: str, facts: Mapping[str, Any], tensors: Mapping[str, Tensor], *, facts_alone: bool = False
) -> None:
    """Write what is not for everybody who has the model (reports, answers) beside it, readable by its owner alone.

    Where there is nothing to write, an older file is removed.

    Args:
        model, kind, facts, tensors: as in `save_method`.
        facts_alone: whether facts are written even if there are no tensors.
    """
    target = answers_file(model)
    if tensors or facts_alone:
        save_method(target, _answers_kind(kind), facts, tensors)
    else:
        target.unlink(missing_ok=True)


def read_answers(path: str | Path, kind: str) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
    """Return (facts, tensors) that were written beside a saved method, or None if the model came without them."""
    target = answers_file(_file(path))
    if not target.is_file():
        return None
    _, facts, tensors = read_method(target, _answers_kind(kind))
    return facts, tensors


def ledger_of(path: str | Path, facts: Mapping[str, Any]) -> Ledger:
    """Return the ledger of a saved method, tied to the file that all users of the model share: `ledger.json` beside it,
    or `NAME.ledger.json` of a model NAME, which the first spend creates.
    """
    # Links are followed, so that two names of one model share one ledger and one budget.
    file = _file(path).resolve()
    ledger_file = file.with_name("ledger.json" if file.name == FILE else f"{file.stem}.ledger.json")
    return LedgerFile(ledger_file).open(Ledger.from_dict(facts["ledger"]))


def answers_file(model: Path) -> Path:
    """Return the file of reports and answers: beside the model, but outside a folder that may be handed on.

    `answers.safetensors`; `NAME.answers.safetensors` for a model file NAME or a public folder NAME.
    """
    file = model.resolve()
    folder = file.parent
    # The public part of a run may be zipped and sent as it is: what people sent must not be in it.
    if (folder / DIGESTS).is_file() and not (folder / "result.json").is_file():
        return folder.parent / (ANSWERS if folder.name == "public" else f"{folder.name}.{ANSWERS}")
    return file.with_name(ANSWERS if file.name == FILE else f"{file.stem}.{ANSWERS}")


def _answers_kind(kind: str) -> str:
    return f"answers of {kind}"


@contextmanager
def restoring(path: str | Path) -> Iterator[None]:
    """Turn any error that a damaged header causes into a ModelFileError that names the file."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError, ArithmeticError) as error:
        raise ModelFileError(f"has a missing or damaged field ({error})", where=str(path)) from error


def require_numbers(name: str, tensor: Tensor) -> Tensor:
    """Return a tensor of a file; refuses any but finite 32-bit numbers."""
    if tensor.dtype != torch.float32 or not bool(torch.isfinite(tensor).all()):
        raise InputError(f"{name} holds {tensor.dtype}, or values that are not finite", allowed="finite float32")
    return tensor


def stored_probabilities(stored: Stored, classes: int) -> Tensor:
    """Return the stored probabilities [n, c]; refuses another shape, and numbers that are not finite."""
    probabilities = require_numbers("probabilities", stored.tensors["probabilities"])
    require_classes("probabilities", probabilities, classes)
    return probabilities


def require_classes(name: str, scores: Tensor, classes: int) -> None:
    """Refuse stored scores that are not [n, classes]."""
    if scores.dim() != 2 or scores.shape[1] != classes:
        raise InputError(f"{name} are {tuple(scores.shape)}", allowed=f"(nodes, {classes})")


def require_same_shapes(stored: Mapping[str, tuple[int, ...]], expected: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse stored tensors that are missing, unexpected or of another shape; the error names the first."""
    for name in sorted({*stored, *expected}):
        if stored.get(name) != expected.get(name):
            raise InputError(f"{name} is {stored.get(name)}", allowed=str(expected.get(name)))


def load_weights(network: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Load stored weights into a network, which may be on the device "meta"; refuses those of another network."""
    expected = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    require_same_shapes({name: tuple(value.shape) for name, value in tensors.items()}, expected)
    # Assigned and not copied: on the device "meta" there is nothing to copy into.
    network.load_state_dict(dict(tensors), assign=True)
    network.eval()


def prefixed(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": value for name, value in tensors.items()}


def without_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    prefix = f"{prefix}."
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def number(value: float | None) -> float | str | None:
    """Return a number as a JSON value, infinity as a text; None stays None."""
    return None if value is None else number_to_json(value)


def stored_number(stored: object) -> float | None:
    """Return the number that `number` wrote."""
    return None if stored is None else float(stored)  # type: ignore[arg-type]


def _read(target: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    from safetensors import SafetensorError, safe_open

    require_file(target, error=ModelFileError, packed=True)
    with target.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
    # Checked by hand first: the library would read a header of any declared size into memory.
    if size > _LARGEST_HEADER:
        allowed = f"at most {_LARGEST_HEADER / MIB:g} MiB"
        raise ModelFileError(f"has a header of {size / MIB:,.0f} MiB", where=str(target), allowed=allowed)
    try:
        # safetensors holds plain arrays: loading a model executes nothing in the file.
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


def content_hash(kind: str, facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """Hash everything from which a method is restored: a flipped digit of epsilon is as bad as a flipped weight."""
    digest = hashlib.sha256(json.dumps([kind, dict(facts)], sort_keys=True).encode())
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"{name}{tuple(value.shape)}{value.dtype}".encode())
        digest.update(value.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
