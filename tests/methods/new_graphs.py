"""What every method must do when it is asked about people it was not trained on; a part of `conformance`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from graphveil.errors import InputError
from graphveil.graphs import social_graph
from graphveil.methods import load_method
from graphveil.privacy import SecureRandomness, SeededRandomness
from tests.methods import made
from tests.methods.cases import Case, copied, fit_once


class NewGraphSuite:
    @pytest.fixture
    def fitted(self, case: Case) -> Any:
        """A method fitted on the case's graph; each test has a copy of its own."""
        return copied(fit_once(case))

    def test_predicting_on_a_new_graph(self, case: Case, fitted: Any) -> None:
        """Item 11: new people send a report, which takes a source of noise; or their features are public."""
        new = case.graph(seed=2)
        if case.inductive == "never":
            with pytest.raises(InputError):
                fitted.predict_proba(made.Sealed(new), randomness=SeededRandomness(5))
            return
        if case.inductive == "reports":
            with pytest.raises(InputError, match=r"pass randomness=SecureRandomness\(\)"):
                case.ask(fitted, made.Sealed(new))
        noise = made.Counted(5)
        found = case.ask(fitted, new, noise)
        assert bool(noise.asked) == (case.inductive == "reports")
        assert torch.allclose(found.sum(dim=1), torch.ones(made.NODES), atol=1e-5)
        assert not torch.equal(found, fitted.predict_proba())

    def test_people_of_a_new_graph_report_once_and_in_a_row_of_their_own(self, case: Case, fitted: Any) -> None:
        """The same graph is answered from memory; another graph is another row; training's rows stay as they are."""
        if case.inductive != "reports":
            return
        new, before = case.graph(seed=2), fitted.ledger
        found = case.ask(fitted, new, SeededRandomness(5))
        after = fitted.ledger
        (spend,) = after.spends[len(before.spends) :]
        assert after.spends[: len(before.spends)] == before.spends
        assert spend.unit == after.budget[-1].unit and new.schema.name in spend.unit
        assert after.total(spend.unit) == (pytest.approx(case.features), spend.delta)
        assert after.remaining(spend.unit)[0] == 0
        sealed, noise = made.Sealed(new), made.Counted(6)
        for again in (case.ask(fitted, sealed, noise), case.ask(fitted, sealed)):
            assert torch.equal(again, found)
        assert noise.asked == []
        assert fitted.ledger == after
        case.ask(fitted, case.graph(seed=3), SeededRandomness(5))
        assert len(fitted.ledger.spends) == len(after.spends) + 1
        assert len({entry.unit for entry in fitted.ledger.budget}) == len(before.budget) + 2

    def test_public_features_of_a_new_graph_are_read_every_time_and_cost_nothing(self, case: Case, fitted: Any) -> None:
        if case.inductive != "public":
            return
        new, ledger = case.graph(seed=2), fitted.ledger
        other = made.changed(new, x=1 - made.dense(new.x))
        assert not torch.equal(fitted.predict_proba(new), fitted.predict_proba(other))
        assert fitted.ledger == ledger

    def test_a_prediction_that_fails_half_way_stays_paid(self, case: Case, fitted: Any) -> None:
        """What is asked is paid before it is read, and never paid back; without a source of noise none is asked."""
        if case.inductive != "reports":
            return
        ledger, wrong = fitted.ledger, case.graph(seed=2)
        with pytest.raises(InputError):
            case.ask(fitted, made.Sealed(wrong))
        assert fitted.ledger == ledger
        stored = wrong.x.values() if wrong.x.layout == torch.sparse_csr else wrong.x.view(-1)
        stored[0] = float("nan")
        with pytest.raises(InputError):
            case.ask(fitted, wrong, SeededRandomness(5))
        assert len(fitted.ledger.spends) == len(ledger.spends) + 1

    def test_reproducible_noise_in_a_prediction_voids_the_guarantee(self, case: Case) -> None:
        if case.inductive != "reports":
            return
        graph = case.graph()
        method = case.build().fit(graph, split=made.split_of(graph), randomness=SecureRandomness())
        case.ask(method, case.graph(seed=2), SecureRandomness())
        assert method.guarantee.void is None
        case.ask(method, case.graph(seed=3), SeededRandomness(9))
        assert method.guarantee.void == "noise was reproducible (seed 9)"

    def test_a_loaded_method_gives_the_answer_again_and_asks_nobody(
        self, case: Case, fitted: Any, tmp_path: Path
    ) -> None:
        if case.inductive != "reports":
            return
        new = case.graph(seed=2)
        case.ask(fitted, new, SeededRandomness(5))
        loaded = load_method(fitted.save(tmp_path))
        assert loaded.ledger == fitted.ledger
        assert loaded.guarantee == fitted.guarantee
        again = case.ask(loaded, made.Sealed(new), SeededRandomness(6))
        assert torch.equal(again, case.ask(fitted, new))
        assert loaded.ledger == fitted.ledger

    def test_new_graphs_of_other_sizes_are_fine_and_of_other_features_are_refused(
        self, case: Case, fitted: Any
    ) -> None:
        new = case.graph(seed=2)
        other = [replace(new.schema, dimension=case.dimension + 1), replace(new.schema, high=2.0)]
        for schema in other:
            sealed = made.Sealed(new)
            sealed.schema = schema
            with pytest.raises(InputError):
                fitted.predict_proba(sealed, randomness=SeededRandomness(5))
        if case.inductive != "never":
            larger = social_graph(90, 6, case.dimension, 3, apps=4, seed=3)
            assert case.ask(fitted, larger, SeededRandomness(5)).shape == (90, 3)
