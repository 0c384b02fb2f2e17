"""Whole predictions from parties' folders, for people who joined after a run over the network."""

from __future__ import annotations

import hashlib
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
import torch

from graphveil.errors import BudgetError
from graphveil.federation import predicting
from graphveil.federation.core.agreement import read_agreement
from graphveil.federation.core.checkpoints import Checkpoints
from graphveil.federation.core.id_forms import digests_of
from graphveil.federation.core.setting import MODES
from graphveil.federation.crypto.keys import read_identity
from graphveil.federation.predicting import predict_party
from graphveil.graphs import load_graph
from tests.federation.parties import NAMES
from tests.federation.test_party import folders, run_threads


def without(parts: Path, out: Path, gone: list[str]) -> None:
    """Copy the holders' folders without some people."""
    shutil.copytree(parts, out)
    for file in out.glob("*/*.parquet"):
        table = pl.read_parquet(file)
        columns = [name for name in ("id", "source", "target") if name in table.columns]
        table.filter(~pl.any_horizontal(pl.col(columns).is_in(gone))).write_parquet(file)


def predict(path: Path, parts: str, name: str) -> dict[str, Any]:
    """Run the three parties in threads; return outcomes or errors by name."""

    def work(party: str) -> Any:
        here = path / "run" / party
        graph = None if party == "server" else load_graph(str(path / parts / party))
        ids = None if graph is None else [str(value) for value in graph.ids]
        quiet: dict[str, Any] = {"note": lambda text: None, "progress": lambda step: None}
        try:
            return predict_party(read_agreement(here), read_identity(here), here, name, graph=graph, ids=ids, **quiet)
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(NAMES)) as pool:
        return dict(zip(NAMES, pool.map(work, NAMES), strict=True))


def test_who_was_published_is_known_whatever_the_folder_of_the_prediction_is_called_now(tmp_path: Path) -> None:
    """Renamed, or moved away so that its name is free again, a prediction would be made, and paid for, twice."""
    agreement: Any = SimpleNamespace(hash=hashlib.sha256(b"agreed").digest())
    people = digests_of(["ann", "bob"], bytes(32))
    hash = predicting.prediction_hash(agreement.hash, "may").hex()
    with closing(Checkpoints(tmp_path / "may" / "checkpoints", hash)) as store:
        store.save(1, {"people": people})
    expected = {row.tobytes() for row in people.numpy()}
    assert predicting._published(tmp_path, agreement, "may") == set()
    assert predicting._published(tmp_path, agreement, "june") == expected
    (tmp_path / "may").rename(tmp_path / "june")
    for name in ("may", "june", "july"):
        assert predicting._published(tmp_path, agreement, name) == expected, name


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_each_person_who_joins_is_predicted_once_and_nobody_of_the_run(mode: str, tmp_path: Path) -> None:
    path = folders(tmp_path, "epochs=2", f"mode={mode}", "opened=true", epsilon="inf" if mode == "all-shares" else "8")
    (path / "parts").rename(path / "now")
    joined = {"may": [str(n) for n in range(0, 100, 10)], "june": [str(n) for n in range(5, 100, 10)]}
    without(path / "now", path / "parts", [*joined["may"], *joined["june"]])
    without(path / "now", path / "then", joined["june"])
    run_threads(path)
    may = predict(path, "then", "may")
    assert sorted(may["holder1"].ids) == sorted(may["holder2"].ids) == sorted(joined["may"])
    assert torch.equal(
        predict(path, "then", "may")["holder1"].result.probabilities, may["holder1"].result.probabilities
    )
    for parts, name in (("now", "may"), ("then", "other"), ("parts", "nobody")):
        refused = predict(path, parts, name)
        assert any(isinstance(error, BudgetError) for error in refused.values()), refused
    june = predict(path, "now", "june")
    assert sorted(june["holder1"].ids) == sorted(joined["june"])
    publisher = june["holder2"].result.publisher
    assert publisher is None or publisher.spent == pytest.approx(8)
