"""What every method must do when it is asked about people it was not trained on; a part of `conformance`."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from graphveil.errors import InputError
from graphveil.graphs import social_graph
from graphveil.privacy import SecureRandomness, SeededRandomness
from tests.methods import made
from tests.methods.cases import Case, load_like


class NewGraphSuite:
    def test_predicting_on_a_new_graph(self, case: Case, fitted: Any) -> None:
        """Item 11: new people send reports, which takes a source of noise; or everything of theirs is public."""
        new = case.graph(seed=2)
        if case.inductive == "never":
            with pytest.raises(InputError):
                fitted.predict_proba(case.seal(new), randomness=SeededRandomness(5))
            return
        if case.inductive == "reports":
            with pytest.raises(InputError, match=r"pass randomness=SecureRandomness\(\)"):
                case.ask(fitted, case.seal(new))
        noise = made.Counted(5)
        found = case.ask(fitted, new, noise)
        assert bool(noise.asked) == (case.inductive == "reports")
        assert torch.allclose(found.sum(dim=1), torch.ones(made.NODES), atol=1e-5)
        assert not torch.equal(found, fitted.predict_proba())
        if not case.lists:
            larger = social_graph(90, 6, case.dimension, 3, apps=4, seed=3)
            assert case.ask(fitted, larger, SeededRandomness(5)).shape == (90, 3)

    def test_people_of_a_new_graph_report_once_and_in_rows_of_their_own(
        self, case: Case, fitted: Any, tmp_path: Path
    ) -> None:
        """Asked again, saved or not, they are answered from memory; others are other rows; earlier rows stay."""
        if case.inductive != "reports":
            return
        new, before = case.graph(seed=2), fitted.ledger
        found = case.ask(fitted, new, SeededRandomness(5))
        after = fitted.ledger
        spends = after.spends[len(before.spends) :]
        assert after.spends[: len(before.spends)] == before.spends
        prices = {spend.unit.split(" of ")[0]: spend for spend in spends}
        assert prices.keys() == {unit for unit in ("features", "links") if 0 < case.prices.get(unit, 0) < math.inf}
        for unit, spend in prices.items():
            assert spend.unit.startswith(f"{unit} of {new.schema.name} (")
            assert after.total(spend.unit) == (pytest.approx(case.prices[unit]), spend.delta)
            assert after.remaining(spend.unit)[0] == 0
        loaded = load_like(fitted, fitted.save(tmp_path))
        assert loaded.guarantee == fitted.guarantee
        sealed, noise = case.seal(new), made.Counted(6)
        for method in (fitted, loaded):
            assert torch.equal(case.ask(method, sealed, noise), found)
            assert torch.equal(case.ask(method, sealed), found)
            assert noise.asked == [] and method.ledger == after
        case.ask(fitted, case.graph(seed=3), SeededRandomness(5))
        assert len(fitted.ledger.spends) == len(after.spends) + len(spends)
        assert len({entry.unit for entry in fitted.ledger.budget}) == len(before.budget) + 2 * len(spends)

    def test_what_is_public_of_a_new_graph_is_read_every_time_and_costs_nothing(self, case: Case, fitted: Any) -> None:
        if case.inductive != "public":
            return
        new, ledger = case.graph(seed=2), fitted.ledger
        other = case.changed(new, x=1 - made.dense(new.x))
        assert not torch.equal(fitted.predict_proba(new), fitted.predict_proba(other))
        assert fitted.ledger == ledger

    def test_reproducible_noise_in_a_prediction_voids_the_guarantee(self, case: Case) -> None:
        if case.inductive != "reports":
            return
        graph = case.graph()
        method = case.build().fit(graph, split=made.split_of(graph), randomness=SecureRandomness())
        case.ask(method, case.graph(seed=2), SecureRandomness())
        assert method.guarantee.void is None
        case.ask(method, case.graph(seed=3), SeededRandomness(9))
        assert method.guarantee.void == "noise was reproducible (seed 9)"

    def test_people_with_other_features_are_refused(self, case: Case, fitted: Any) -> None:
        new = case.graph(seed=2)
        for schema in (replace(new.schema, dimension=case.dimension + 1), replace(new.schema, high=2.0)):
            sealed = case.seal(new)
            sealed.schema = schema
            with pytest.raises(InputError):
                fitted.predict_proba(sealed, randomness=SeededRandomness(5))
