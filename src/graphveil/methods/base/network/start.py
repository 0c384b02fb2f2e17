"""Readers that were trained on public graphs, as files from which a method may start.

A reader's file names the graphs on which it was trained; its accuracy on those is no evidence.  The shipped readers are
in `methods/pretrained/`, each beside a card in Markdown; `start="public"` takes that of the method.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from graphveil.errors import InputError
from graphveil.methods.base.storage import load_weights, read_method, require_numbers, restoring, save_method
from graphveil.runtime.late import Tensor, torch

if TYPE_CHECKING:
    from graphveil.models.networks.perceptrons import ClassReader

#: The value of `start` that takes the shipped reader, and the folder of those.
PUBLIC: Final = "public"
SHIPPED: Final = Path(__file__).parents[2] / "pretrained"
#: Nodes in one pass: the hidden layer of all nodes of a large graph would not fit in memory.
ROWS_AT_ONCE: Final = 20_000


@dataclass(frozen=True)
class Reader:
    """A reader of clues that was trained elsewhere.

    Attributes:
        network: own clues [n, c, p] and common ones [n, q] -> scores [n, c].
        facts: from its file: the "graphs" that it was trained on, and how.
    """

    network: ClassReader
    facts: Mapping[str, Any]

    def scores(self, own: Tensor, common: Tensor) -> Tensor:
        """Return scores [..., c], centred over the classes.

        Args:
            own: clues [..., c, p] about a node and a class.
            common: clues [..., q] about a node.
        """
        network = self.network.to(own.device)
        parts = zip(torch.split(own, ROWS_AT_ONCE), torch.split(common, ROWS_AT_ONCE), strict=True)
        with torch.no_grad():
            scores = torch.cat([network(*part) for part in parts])
        return scores - scores.mean(dim=-1, keepdim=True)


def require_start(start: str | None) -> None:
    """Refuse what is neither None, "public" nor the name of a safetensors file."""
    if start is not None and start != PUBLIC and not str(start).endswith(".safetensors"):
        raise InputError(f"start is {start!r}", allowed="none, public or a .safetensors file")


def start_name(start: str | None) -> str | None:
    """Return the start that a saved model states: the name of a file, never its folder on the user's machine."""
    return None if start is None else Path(start).name


def read_start(start: str | None, task: str, own: int, common: int) -> Reader | None:
    """Return the reader that a method starts from, or None.

    Args:
        start: "public", a file that `save_start` wrote, or None.
        task: the method whose clues it reads.
        own, common: the numbers of own and common clues, see `Reader.scores`.

    Raises:
        InputError: for another value of `start`.
        ModelFileError: the file is missing, damaged, or was trained for other clues.
    """
    from graphveil.models.networks.perceptrons import ClassReader

    require_start(start)
    if start is None:
        return None
    path = _path(start, task)
    _, facts, tensors = read_method(path, _kind(task))
    with restoring(path):
        # The width comes from the file: users may train wider readers, but no reader of other clues.
        network = ClassReader(own, common, len(tensors["head"]), generator=torch.Generator())
        load_weights(network, {name: require_numbers(name, value) for name, value in tensors.items()})
    return Reader(network, facts)


def start_notes(start: object, task: str, graph: str) -> tuple[str, ...]:
    """Return a warning for a run whose reader was trained on the very graph, else nothing.

    Args:
        graph: the name of the graph of the run.
    """
    # From the file and not from the card: a user's own reader has no card.
    if not isinstance(start, str) or graph not in read_method(_path(start, task), _kind(task))[1]["graphs"]:
        return ()
    return (f"start={start} was itself trained on {graph}: this accuracy says nothing about unseen graphs",)


def save_start(path: str | Path, task: str, network: ClassReader, facts: Mapping[str, Any]) -> Path:
    """Write a reader for `start=PATH`, and return the file written.

    Args:
        path: ends with ".safetensors".
        task: "class-sums" or "label-pool", whose clues it was trained on.
        facts: JSON values, among them "graphs": the names of the graphs it was trained on.
    """
    return save_method(path, _kind(task), facts, network.state_dict())


def _path(start: str, task: str) -> Path:
    return SHIPPED / f"{task}.safetensors" if start == PUBLIC else Path(start)


def _kind(task: str) -> str:
    return f"start of {task}"
