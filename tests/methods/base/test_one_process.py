"""An unspent account is not multiplied: by pickle, by fork, by threads, or by loading a model again."""

from __future__ import annotations

import contextlib
import copy
import os
import pickle
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphveil.errors import BudgetError
from graphveil.graphs import Graph, social_graph
from graphveil.methods import LPGNN, ClassSums, load_method
from graphveil.privacy import Ledger, SecureRandomness
from tests.methods.base.test_account_order import Sent, account, on_disk, spend, unread
from tests.waiting import in_threads


def test_a_pickled_account_pays_for_nothing_and_a_copy_is_the_account() -> None:
    payer = account()
    assert copy.copy(payer) is payer and copy.deepcopy(payer) is payer
    for _ in range(2):
        again = pickle.loads(pickle.dumps(payer))
        with pytest.raises(BudgetError, match="copy from another process or a pickle"):
            again.buy([spend()], unread)
        payer = again
    assert again.ledger == account().ledger and not again.ledger.spends


def test_a_pickled_account_knows_what_was_paid() -> None:
    payer = account()
    payer.collect([spend()], lambda: Sent("a"))
    again = pickle.loads(pickle.dumps(payer))
    again.book_collection("a", [spend()])
    assert again.ledger == payer.ledger
    with pytest.raises(BudgetError):
        again.book_collection("b", [spend()])


def test_a_ledger_on_disk_serves_every_process(tmp_path: Path) -> None:
    payer = on_disk(tmp_path)
    pickle.loads(pickle.dumps(payer)).pay(spend())
    with pytest.raises(BudgetError, match="spent already"):
        payer.buy([spend()], unread)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_pays_for_nothing() -> None:
    payer, (reader, writer) = account(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            payer.buy([spend()], lambda: os.write(writer, b"read"))
        except BudgetError:
            os.write(writer, b"refused")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 10) == b"refused"


def test_threads_are_paid_after_each_other() -> None:
    """Both see a full budget before either has paid: without the lock both would read."""
    payer, both = account(), threading.Barrier(2, timeout=0.3)

    class Slow:
        def settle(self, previous: Ledger, paid: Ledger) -> Ledger:
            with contextlib.suppress(threading.BrokenBarrierError):
                both.wait()
            return replace(paid, account=None)

    payer.ledger, reads = replace(payer.ledger, account=Slow()), []

    def ask(_: int) -> None:
        try:
            payer.buy([spend()], lambda: reads.append(1))
        except BudgetError:
            return

    with in_threads(ask, range(2)):
        pass
    assert reads == [1] and len(payer.ledger.spends) == 1


def test_a_pickled_estimator_predicts_and_collects_nothing(graph: Graph) -> None:
    model = ClassSums(epsilon=1.0, epochs=1)
    with pytest.raises(BudgetError, match="copy from another process"):
        pickle.loads(pickle.dumps(model)).fit(graph)
    fitted = pickle.loads(pickle.dumps(model.fit(graph)))
    assert (fitted.predict() == model.predict()).all()


@pytest.mark.parametrize("load", [LPGNN.load, load_method])
@pytest.mark.parametrize("name", ["", "model.safetensors", "of-mine.safetensors"])
def test_whoever_loads_a_model_shares_its_ledger(
    load: Callable[..., Any], name: str, graph: Graph, tmp_path: Path
) -> None:
    file = LPGNN(epsilon_x=1.0, epsilon_y=1.0, epochs=1, pooling="none").fit(graph).save(tmp_path / name)
    new = social_graph(60, average_degree=4, dimension=24, classes=3, seed=2)
    first, second = load(file), load(file)
    first.predict_proba(new, people="other", randomness=SecureRandomness())
    with pytest.raises(BudgetError):
        second.predict_proba(new, people="other", randomness=SecureRandomness())
    assert load(file).ledger == first.ledger


@pytest.fixture(scope="module")
def graph() -> Graph:
    return social_graph(80, average_degree=4, dimension=24, classes=3, seed=1)
