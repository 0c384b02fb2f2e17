"""An exported collection of a made-up graph, whose devices answered for real."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars

from graphveil.device.people.people import ids_hash
from graphveil.device.wire import report
from graphveil.graphs import Graph, social_graph
from tests.collection.collections import begun, key, secret, url_of
from tests.on_device.signing import MOODS, features, label

PEOPLE = 120
IDS = [f"person {number}" for number in range(PEOPLE)]


def graph() -> Graph:
    return social_graph(PEOPLE, average_degree=8, dimension=6, classes=3, apps=2, seed=1)


def exported(
    folder: Path,
    *fields: dict[str, Any],
    silent: Mapping[str, int] | None = None,
    forged: Callable[[int, bytes], bytes] | None = None,
) -> tuple[Path, Path]:
    """The folder of a collection and the file of its edges; of each kind every k-th person keeps silent."""
    people, left_out = graph(), silent or {}
    task_fields = fields or (features("4"), label("3"))
    running = begun(url_of(folder), *task_fields, people=PEOPLE, enrolled=PEOPLE, ids=ids_hash(IDS), least=3)
    moods = [MOODS[label] for label in people.y.tolist()]
    truth: dict[str, Any] = {"features": people.x.to_dense().tolist(), "label": moods}
    source, target = people.edge_index.numpy()
    truth["links"] = [target[source == number].tolist() for number in range(PEOPLE)]
    kinds = [field.kind for field in running.task.fields if field.kind != "degree"]
    reports = []
    for number in range(PEOPLE):
        answered_kinds = [kind for kind in kinds if kind not in left_out or number % left_out[kind]]
        if answered_kinds:
            sent = running.report(number, {kind: truth[kind][number] for kind in answered_kinds})
            if forged is not None:
                sent = report(sent.task, 1, forged(number, sent.body), secret(number), key(number))
            reports.append(sent)
    assert set(running.intake.take(reports)) == {"accepted"}
    pairs = people.edge_index[:, people.edge_index[0] < people.edge_index[1]].tolist()
    table = {end: [IDS[end] for end in row] for end, row in zip(("source", "target"), pairs, strict=True)}
    polars.DataFrame(table).write_parquet(folder / "edges.parquet")
    return running.exported(folder / "out"), folder / "edges.parquet"
