"""One party's prediction for people who joined after a finished run: its folder, and who was published before it.

    PARTY/checkpoints                      of the finished run: what was trained, digests of everybody who took part
    PARTY/predictions/NAME/checkpoints     of a prediction: who is new, and what is published of them

Whoever is in a checkpoint of the run or of any prediction counts as published, also if nothing has left yet, because
digests are saved before anything leaves.  So nobody's row is published twice, whatever a prediction is named.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from graphveil.errors import BudgetError, DataError, InputError
from graphveil.federation.core.agreement import Agreement
from graphveil.federation.core.checkpoints import Checkpoints, hash_prefixes_in
from graphveil.federation.core.id_forms import digests_of
from graphveil.federation.core.states import RunContext, State
from graphveil.federation.crypto.keys import NAME, NAMES, Identity
from graphveil.federation.crypto.psi import Memory
from graphveil.federation.effects import Program, Send
from graphveil.federation.modes.joined import ROUNDS, Prediction
from graphveil.federation.modes.programs import programs_of
from graphveil.federation.party import (
    PartyRun,
    agreed_row_count,
    aligned_rows,
    checked_inputs,
    holding_of,
    run_session,
    with_saved,
)
from graphveil.federation.transport.session import Record, Session
from graphveil.graphs import Graph
from graphveil.runtime.progress import ProgressCallback

#: A party's folder of predictions, each a folder of its name.
PREDICTIONS = "predictions"


def folder_of(folder: Path, name: str) -> Path:
    """Return the folder of a prediction in a party's folder; InputError for a name that is none."""
    if not NAME.fullmatch(name):
        raise InputError(f"name is {name!r}", allowed=NAMES)
    return folder / PREDICTIONS / name


def predict_party(
    agreement: Agreement,
    identity: Identity,
    folder: Path,
    name: str,
    *,
    graph: Graph | None = None,
    ids: list[str] | None = None,
    patience: float = 600.0,
    listen: str | None = None,
    note: Callable[[str], None],
    progress: ProgressCallback,
    log: Callable[[], AbstractContextManager[Record]] = lambda: nullcontext(lambda message: None),
) -> Predicted:
    """Run one party of a prediction for people who joined after a finished run.

    Args:
        folder: with the checkpoints of the finished run; the prediction has a folder of its own in it.
        name: of the prediction, the same at all parties.
        graph, ids: a holder's data, of everybody there is now.
        patience: seconds to wait for other parties.
        listen: "host:port" to listen on, where the agreed address leads to another machine or port.
        note: called with a line about connections.
        log: opens a log, a function that is called with each message before it leaves, and when it is read.

    Raises:
        BudgetError: a row would be published a second time.
        GraphveilError: the run has not finished, or as `run_party`.
    """
    ids, setting = checked_inputs(agreement, identity, folder, graph, ids), agreement.setting
    checkpoints = folder_of(folder, name) / "checkpoints"
    # The run's folder stays locked: two predictions at a time could publish one person twice.
    with closing(Checkpoints(folder / "checkpoints", agreement.hash.hex())) as trained:
        if trained.rounds()[-1:] != [setting.rounds]:
            raise DataError("the run has not finished", where=str(folder), remedy="graphveil federation join")
        before = trained.load(setting.rounds)
        published = _published(folder / PREDICTIONS, agreement, name)

        def build(session: Session, run: RunContext) -> Program[Any]:
            if graph is None:
                return predicting_server_program(run, before)
            people = People(graph, ids, before, published)
            return predicting_program(run, people, memory=store.alignment, progress=session.computing)

        run_hash = prediction_hash(agreement.hash, name)
        with closing(Checkpoints(checkpoints, run_hash.hex())) as store, log() as record:
            party_run = PartyRun(agreement, identity, run_hash, patience, listen, note)
            finished = run_session(party_run, build, store, ROUNDS, progress, record)
    if graph is None:
        return Predicted((), None)
    order, result = finished.result
    return Predicted(tuple(ids[row] for row in order[result.new].tolist()), result)


@dataclass(frozen=True)
class Predicted:
    """The result of a finished prediction: ids of new people in the order that all share, and a holder's result."""

    ids: tuple[str, ...]
    result: Prediction | None


def prediction_hash(agreement_hash: bytes, name: str) -> bytes:
    """Return the hash in each frame of a prediction, by which no party takes it for a run or another prediction."""
    return hashlib.sha256(b"graphveil/predict/1 " + agreement_hash + name.encode()).digest()


def _published(folder: Path, agreement: Agreement, name: str) -> set[bytes]:
    """Return who was published in all predictions but this one, by digest, whatever their folders are called now."""
    people: set[bytes] = set()
    own_hash = prediction_hash(agreement.hash, name).hex()
    for other in sorted(folder.iterdir()) if folder.is_dir() else ():
        # By the names of its checkpoints: a folder that was renamed has published all the same.
        for prefix in hash_prefixes_in(other / "checkpoints"):
            if other.name == name and own_hash.startswith(prefix):
                continue
            with closing(Checkpoints(other / "checkpoints", prefix)) as store:
                # Saved before anything leaves: whoever may have been published counts as published.
                for round in store.rounds()[-1:]:
                    people |= digest_rows(store.load(round, resumes=False).get("people"))
    return people


def digest_rows(digests: Tensor | None) -> set[bytes]:
    """Return the digests in the rows of a tensor, one a person."""
    return set() if digests is None else {row.tobytes() for row in digests.numpy()}


@dataclass(frozen=True)
class People:
    """A holder's data for a prediction, the last checkpoint of the run, and who was published in other predictions."""

    graph: Graph
    ids: Sequence[str]
    before: State
    published: set[bytes]

    def new(self, order: Tensor) -> tuple[Tensor, Tensor]:
        """Return which of the rows that all share were never published, int64, and their digests.

        Args:
            order: the rows that all share, in their order.
        """
        digests = self._digests(order)
        published = self.published | digest_rows(self.before["people"])
        new = torch.tensor([row.tobytes() not in published for row in digests.numpy()]).nonzero().squeeze(1)
        return new, digests[new]

    def old(self, order: Tensor) -> Tensor:
        """Return of each row that all share its number in the run, -1 where it was not there, int64 [n]."""
        number_of = {row.tobytes(): number for number, row in enumerate(self.before["people"].numpy())}
        return torch.tensor([number_of.get(row.tobytes(), -1) for row in self._digests(order).numpy()])

    def _digests(self, order: Tensor) -> Tensor:
        return digests_of([self.ids[row] for row in order.tolist()], self.before["people/salt"].numpy().tobytes())


def predicting_program(
    run: RunContext, data: People, *, memory: Memory, progress: ProgressCallback
) -> Program[tuple[Tensor, Prediction]]:
    """Align the ids anew, and publish the rows of new people.

    Args:
        data: its files, and who was published before.

    Raises:
        BudgetError: nobody is new, or others than when this prediction was made before.
    """
    order = yield from aligned_rows(run, data.graph, data.ids, memory, progress)
    new, people = data.new(order)
    if not len(new) or (run.state is not None and not torch.equal(people, run.state["people"])):
        raise BudgetError(
            f"{len(new)} of {len(order)} people are new" if run.state is None else "other people than at first",
            where=run.me,
            remedy="each is predicted once: give the same files to repeat a prediction, other people another --name",
        )
    holding = holding_of(data.graph, order, labels=False, seed=0)
    yield Send(run.setting.server, "aligned", torch.tensor([len(order)]))
    program = programs_of(run.setting).later_holder(run, data.before, holding, new, data.old(order))
    result = yield from with_saved(program, {"order": order, "people": people})
    return order, result


def predicting_server_program(run: RunContext, before: State) -> Program[Any]:
    nodes = yield from agreed_row_count(run)
    return (yield from programs_of(run.setting).later_server(run, before, nodes))
