"""What every method that collects lists must do when asked about other people; a part of `link_conformance`."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from graphveil.errors import BudgetError, InputError
from graphveil.privacy import SecureRandomness, SeededRandomness
from tests.methods import made
from tests.methods.cases import load_like
from tests.methods.links_made import LinkCase, Sealed


class NewPeopleSuite:
    def test_predicting_for_other_people(self, case: LinkCase, fitted: Any) -> None:
        """Item 11: new people send reports, which takes a source of noise; or everything of theirs is public."""
        new = case.graph(seed=2)
        if case.inductive == "never":
            with pytest.raises(InputError):
                fitted.predict_proba(Sealed(new), randomness=SeededRandomness(5))
            return
        if case.inductive == "reports":
            with pytest.raises(InputError, match=r"pass randomness=SecureRandomness\(\)"):
                fitted.predict_proba(Sealed(new))
        noise = made.Counted(5)
        found = fitted.predict_proba(new, randomness=noise)
        assert bool(noise.asked) == (case.inductive == "reports")
        assert torch.allclose(found.sum(dim=1), torch.ones(made.NODES), atol=1e-5)
        assert not torch.equal(found, fitted.predict_proba())

    def test_other_people_report_once_and_in_rows_of_their_own(self, case: LinkCase, fitted: Any) -> None:
        """Asked again they are answered from memory; other people are other rows; earlier rows stay as they are."""
        if case.inductive != "reports":
            return
        new, before = case.graph(seed=2), fitted.ledger
        found = fitted.predict_proba(new, randomness=SeededRandomness(5))
        after = fitted.ledger
        spends = after.spends[len(before.spends) :]
        assert after.spends[: len(before.spends)] == before.spends
        prices = {spend.unit.split(" of ")[0]: spend for spend in spends}
        wanted = {"features": case.x, "links": case.relationship}
        assert prices.keys() == {unit for unit, epsilon in wanted.items() if 0 < epsilon < math.inf}
        for unit, spend in prices.items():
            assert spend.unit.startswith(f"{unit} of {new.schema.name} (")
            assert after.total(spend.unit)[0] == pytest.approx(wanted[unit])
            assert after.remaining(spend.unit)[0] == 0
        sealed, noise = Sealed(new), made.Counted(6)
        for again in (fitted.predict_proba(sealed, randomness=noise), fitted.predict_proba(sealed)):
            assert torch.equal(again, found)
        assert noise.asked == []
        assert fitted.ledger == after
        fitted.predict(case.graph(seed=3), randomness=SeededRandomness(5))
        assert len(fitted.ledger.spends) == len(after.spends) + len(spends)

    def test_what_is_public_of_other_people_is_read_every_time_and_costs_nothing(
        self, case: LinkCase, fitted: Any
    ) -> None:
        if case.inductive != "public":
            return
        new, ledger = case.graph(seed=2), fitted.ledger
        other = case.graph(seed=2)
        other.x = 1 - new.x
        assert not torch.equal(fitted.predict_proba(new), fitted.predict_proba(other))
        assert fitted.ledger == ledger
        assert not fitted.core.kept.places or len(fitted.core.kept.places) == made.NODES

    def test_a_prediction_that_fails_half_way_stays_paid(self, case: LinkCase, fitted: Any) -> None:
        """What is asked is paid before it is read, and never paid back; without a source of noise none is asked."""
        if case.inductive != "reports":
            return
        ledger, wrong = fitted.ledger, case.graph(seed=2)
        with pytest.raises(InputError):
            fitted.predict_proba(Sealed(wrong))
        assert fitted.ledger == ledger
        wrong.edge_index = torch.cat([wrong.edge_index, torch.tensor([[0], [made.NODES]])], dim=1)
        if math.isinf(case.a):
            wrong.x[0, 0] = math.nan
        with pytest.raises(InputError):
            fitted.predict_proba(wrong, randomness=SeededRandomness(5))
        assert len(fitted.ledger.spends) > len(ledger.spends)

    def test_reproducible_noise_in_a_prediction_voids_the_guarantee(self, case: LinkCase) -> None:
        if case.inductive != "reports":
            return
        graph = case.graph()
        method = case.build().fit(graph, split=made.split_of(graph), randomness=SecureRandomness())
        method.predict(case.graph(seed=2), randomness=SecureRandomness())
        assert method.guarantee.void is None
        method.predict(case.graph(seed=3), randomness=SeededRandomness(9))
        assert method.guarantee.void == "noise was reproducible (seed 9)"

    def test_a_loaded_method_gives_the_answer_again_and_asks_nobody(
        self, case: LinkCase, fitted: Any, tmp_path: Path
    ) -> None:
        if case.inductive != "reports":
            return
        new = case.graph(seed=2)
        fitted.predict(new, randomness=SeededRandomness(5))
        loaded = load_like(fitted, fitted.save(tmp_path))
        assert loaded.guarantee == fitted.guarantee
        again = loaded.predict_proba(Sealed(new), randomness=SeededRandomness(6))
        assert torch.equal(again, fitted.predict_proba(new))
        assert loaded.ledger == fitted.ledger

    def test_people_with_other_features_are_refused(self, case: LinkCase, fitted: Any) -> None:
        new = case.graph(seed=2)
        for schema in (replace(new.schema, dimension=21), replace(new.schema, high=2.0)):
            sealed = Sealed(new)
            sealed.schema = schema
            with pytest.raises(InputError):
                fitted.predict_proba(sealed, randomness=SeededRandomness(5))

    def test_people_are_told_apart_by_their_ids(self, case: LinkCase, fitted: Any) -> None:
        """Never by what is private, nor by the name of their graph: with other links they are the same people."""
        same = Sealed(case.graph())
        assert torch.equal(fitted.predict_proba(same), fitted.predict_proba())
        same.schema = replace(same.schema, name="renamed")
        if case.inductive == "reports":
            assert torch.equal(fitted.predict_proba(same), fitted.predict_proba())
        for change, refused in (({"ids": ["x"] * 60}, AssertionError), ({"ids": None}, BudgetError)):
            other = Sealed(case.graph())
            other.__dict__.update(change)
            asked = refused if case.inductive == "reports" else AssertionError
            with pytest.raises((InputError, asked)):  # reaching for the data of new people; charged to the old ones
                fitted.predict_proba(other, randomness=SeededRandomness(5))
