"""What every method that people send reports to must do: with public edges, or with neighbour lists among the reports.

Inherit `MethodSuite` and give it cases through a module-scoped fixture `case`. "Item" numbers are those of the
reviewer's checklist for private graph learning: 3 no data-dependent control flow, 4 undirected edges counted once, 5
sizes public, 7 label domain public, 8 no private degree in normalisers, 11 inference is post-processing, 12 validation
accounted, 17 fresh noise, 18 support of outputs, 19 repeated collection.
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphveil.errors import BudgetError, InputError
from graphveil.graphs import social_graph
from graphveil.methods import load_method
from graphveil.methods.base.people.released import topology_of
from graphveil.privacy import Guarantee, SecureRandomness, SeededRandomness
from tests.methods import links_made, made
from tests.methods.cases import Case, copied, fit_once, load_like


class MethodSuite:
    @pytest.fixture
    def fitted(self, case: Case) -> Any:
        """A method fitted on the case's graph; each test has a copy of its own."""
        return copied(fit_once(case))

    # ---- fitting ----

    def test_fit_is_randomize_and_then_fit_reports(self, case: Case, fitted: Any) -> None:
        graph = case.graph()
        method = case.build(seed=0)
        released = method.randomize(graph, split=made.split_of(graph), randomness=SeededRandomness(1))
        case.server(method, released)
        assert torch.equal(method.predict_proba(), fitted.predict_proba())
        assert (method.guarantee, method.ledger) == (fitted.guarantee, fitted.ledger)
        if case.trains:
            assert not torch.equal(case.fit(seed=1).predict_proba(), fitted.predict_proba()), "another seed"

    def test_reports_of_other_people_or_budgets_are_refused(self, case: Case, fitted: Any) -> None:
        """Whatever differs: both the channel that is inverted and what is booked would be wrong."""
        people, method = case.people(fitted.released), case.build()
        if not case.lists:
            topology = replace(topology_of(case.graph()), num_nodes=made.NODES + 1)
            with pytest.raises(InputError, match=f"{made.NODES} reports for {made.NODES + 1} nodes"):
                method.fit_reports(fitted.released, topology)
        changes: list[dict[str, Any]] = [{"epsilon_y": 3.25}, {"epsilon_x": 3.25}, {"delta": 1e-7}]
        foreign = [replace(people, privacy=replace(people.privacy, **change)) for change in changes]
        if case.lists:
            links = fitted.released.links
            changes = [
                {"epsilon_a": 3.25},
                {"degree_share": 0.4},
                {"mode": "lower" if links.mode == "both" else "both"},
            ]
            foreign = [replace(fitted.released, people=people) for people in foreign]
            foreign += [replace(fitted.released, links=replace(links, **change)) for change in changes]
        for released in foreign:
            with pytest.raises(InputError, match=r"the reports were made with .*; allowed: reports made with "):
                case.server(method, released)
        assert method.ledger.spends == ()

    def test_the_server_half_alone_books_the_spend(self, case: Case, fitted: Any) -> None:
        """A server that is handed reports has them in its ledger, once, however often it trains.

        Item 19: whoever averages over fits and answers averages one and the same thing.
        """
        method = case.build(seed=0)
        assert method.ledger.spends == ()
        before = {name: part.clone() for name, part in case.tensors(fitted.released).items()}
        for _ in range(2):
            case.server(method, fitted.released)
            assert method.ledger == fitted.ledger
            assert torch.equal(method.predict_proba(case.seal(case.graph())), fitted.predict_proba())
        assert all(torch.equal(part, before[name]) for name, part in case.tensors(method.released).items())
        if case.private:
            with pytest.raises(BudgetError):
                method.randomize(
                    case.seal(case.graph()), split=made.split_of(case.graph()), randomness=SeededRandomness(2)
                )

    def test_nothing_comes_out_before_fitting(self, case: Case, tmp_path: Path) -> None:
        method = case.build()
        for ask in (method.predict_proba, method.predict, lambda: method.guarantee, lambda: method.save(tmp_path)):
            with pytest.raises(InputError, match="has not been fitted; call fit or fit_reports first"):
                ask()

    # ---- what is promised ----

    def test_the_guarantee_is_complete_and_says_what_is_not_protected(self, case: Case, fitted: Any) -> None:
        guarantee = fitted.guarantee
        assert Guarantee.from_dict(guarantee.to_dict()) == guarantee
        if fitted.kind == "plain-network":
            return  # which declared nothing public: see baselines/test_family
        assert guarantee.model == "local" and (case.lists or guarantee.relation == "replace")
        finite = [epsilon for epsilon in case.prices.values() if 0 < epsilon < math.inf]
        price = max if case.one_report else math.fsum
        assert guarantee.epsilon == pytest.approx(price(finite) if finite else math.inf)
        sentence = guarantee.sentence()
        assert ("topology" in sentence) == (not case.lists)
        assert ("reports once" in sentence) == case.private
        for part, epsilon in (("features", case.features), ("labels", case.labels), ("links", case.relationship)):
            assert (f"{part} are declared public" in sentence) == math.isinf(epsilon)
        assert guarantee.protects is False  # the noise of these tests can be reproduced

    def test_reproducible_noise_voids_the_guarantee_and_secure_noise_does_not(self, case: Case, fitted: Any) -> None:
        """Item 17: the user's seed fixes weights and splits, never privacy noise.

        Two collections are equal by chance with probability below 1e-6 in every case: about 1e-7 with blink-hybrid.
        """
        graph, runs = case.graph(), []
        for _ in range(2):
            runs.append(case.build(seed=0).fit(graph, split=made.split_of(graph), randomness=SecureRandomness()))
        secure, again = runs[0].guarantee, case.tensors(runs[1].released)
        assert secure.void is None and secure.protects == case.private
        if case.private:
            assert "reproducible (seed 1)" in str(fitted.guarantee.void)
            assert replace(fitted.guarantee, void=None) == secure
        for name, first in case.tensors(runs[0].released).items():
            price = case.labels if name == "labels" else case.relationship if " " in name else case.features
            # Whose codebook is whose depends on no value, nor does who is asked.
            public = name in ("codebooks", "who") or not 0 < price < math.inf
            assert torch.equal(first, again[name]) == public, name

    def test_the_ledger_holds_what_the_settings_say(self, case: Case, fitted: Any) -> None:
        if case.lists:
            # In mode "directed" of two people who name each other, whose links are two.
            assert fitted.epsilon_relationship == (2 if case.mode == "directed" else 1) * case.relationship
        for unit, epsilon in case.prices.items():
            private = 0 < epsilon < math.inf
            assert fitted.ledger.total(unit)[0] == pytest.approx(epsilon if private else 0.0)
            if private:
                assert fitted.ledger.remaining(unit)[0] == 0
        assert fitted.guarantee.delta == sum(spend.delta for spend in fitted.ledger.spends)

    def test_post_processing_only(self, case: Case, fitted: Any) -> None:
        """Items 3, 8, 11 and 12: with the reports frozen, no true link, degree or label can change anything.

        The server is handed a graph on which one true link is toggled and every test label is another: of lists it has
        no argument for it, and asked about its people it answers from what it has, reading nothing.
        """
        graph = case.graph()
        method = case.server(case.build(seed=0), fitted.released, made.sealed(graph))
        graphs = [None, case.seal(graph)]
        if case.lists:
            other = links_made.toggled(graph, 5, 17)
            other.y = torch.where(made.split_of(graph).test, (graph.y + 1) % 3, graph.y)
            graphs += [graph, other, case.seal(other)]
        for each in graphs:
            assert torch.equal(method.predict_proba(each), fitted.predict_proba())
        assert (method.history, method.ledger) == (fitted.history, fitted.ledger)

    def test_devices_draw_as_much_noise_for_every_data_set(self, case: Case) -> None:
        """Item 3: number, order and size of the calls for noise are those of a neighbouring data set.

        Item 18: what is sent are whole numbers of one type and shape, whatever the values; how many are named in a list
        is what its noise hides.
        """
        graph, draws, sent = case.graph(), [], []
        for people in (graph, case.neighbour(graph)):
            noise = made.Counted()
            released = case.build().randomize(people, split=made.split_of(graph), randomness=noise)
            draws.append(noise.counts)
            sent.append(case.tensors(released))
        assert (case.lists or draws[0] == draws[1]) and bool(draws[0]) == case.private
        assert sent[0].keys() == sent[1].keys()
        for name, first in sent[0].items():
            assert not first.is_floating_point() and first.dtype == sent[1][name].dtype
            assert name.endswith("columns") or first.shape == sent[1][name].shape

    def test_what_one_person_sends_stays_within_the_guarantee(self, case: Case, fitted: Any) -> None:
        """Item 4: log Pr[all reports | D] - log Pr[.. | D'] is at most epsilon, over everyone's reports together.

        Another vector, another label and one relationship more: 60 collections from either side, and half of the
        claimed epsilon is exceeded where it is small enough to be met by chance.
        """
        if not case.private or case.one_report:
            return
        graph, worst = case.graph(), 0.0
        other = case.neighbour(graph)
        untouched = torch.ones(made.NODES, dtype=torch.bool)
        untouched[[5, 17] if case.lists else 5] = False
        for seed in range(60):
            method = case.build()
            released = method.randomize(
                (graph, other)[seed % 2], split=made.split_of(graph), randomness=SeededRandomness(seed)
            )
            ratio = links_made.likelihood(method, released, graph) - links_made.likelihood(method, released, other)
            assert float(ratio[untouched].abs().max()) == 0
            worst = max(worst, abs(float(ratio.sum())))
        assert worst <= fitted.guarantee.epsilon + 1e-9
        least = case.relationship if case.lists else case.features
        assert worst > least / 2 or math.isinf(least) or least == 0

    def test_parameters_do_not_depend_on_values(self, case: Case, fitted: Any) -> None:
        """Items 5 and 6: everybody at the ends of the range, nobody linked: the same ledger and guarantee."""
        graph = case.graph()
        extreme = np.zeros_like(made.dense(graph.x))
        extreme[0] = 1
        if case.lists:
            other = case.changed(graph, x=extreme)
            if not math.isinf(case.relationship):
                other.edge_index = graph.edge_index[:, :0]
        else:
            other = case.changed(graph, x=extreme, y=torch.where(graph.y >= 0, 0, -1))
        other_fit = case.fit(other)
        assert (other_fit.ledger, other_fit.guarantee) == (fitted.ledger, fitted.guarantee)
        assert other_fit.predict_proba().shape == fitted.predict_proba().shape

    def test_an_empty_class_keeps_its_place(self, case: Case) -> None:
        """Item 7: nobody is of class 1, yet there are three columns and the classes keep their order."""
        graph = case.graph()
        method = case.fit(case.changed(graph, y=torch.where(graph.y == 1, 2, graph.y)))
        assert method.predict_proba().shape == (made.NODES, 3)
        assert method.schema.classes == graph.schema.classes

    # ---- predictions ----

    def test_probabilities_are_probabilities_and_the_score_is_the_share_that_is_met(
        self, case: Case, fitted: Any
    ) -> None:
        probabilities, graph = fitted.predict_proba(), case.graph()
        assert probabilities.shape == (made.NODES, 3) and bool((probabilities >= 0).all())
        assert torch.allclose(probabilities.sum(dim=1), torch.ones(made.NODES), atol=1e-5)
        assert torch.equal(fitted.predict(), probabilities.argmax(dim=1))
        labelled = graph.y >= 0
        share = float((fitted.predict()[labelled] == graph.y[labelled]).float().mean())
        assert fitted.score(graph) == pytest.approx(share)
        first = torch.arange(made.NODES) == 0
        assert fitted.score(graph, first) == float(fitted.predict()[0] == graph.y[0])
        for wrong, why in ((graph.y, "true labels are read from the graph"), (~first & first, "has a label")):
            with pytest.raises(InputError, match=why):
                fitted.score(graph, wrong)
        other = copy.copy(graph)
        other.schema = replace(graph.schema, classes=graph.schema.classes[::-1])
        with pytest.raises(InputError, match="in this order, as in training"):
            fitted.score(other)

    # ---- files ----

    def test_a_saved_method_comes_back_the_same(self, case: Case, fitted: Any, tmp_path: Path) -> None:
        content = fitted.save(tmp_path).read_bytes()
        for name, secret in secrets(case.graph(), case.tensors(fitted.released), fitted).items():
            assert secret not in content, name
        for name, load in (("", load_method), ("own", partial(load_like, fitted))):
            loaded = load(fitted.save(tmp_path / name))  # copies of one file share an account
            assert isinstance(loaded, type(fitted))
            assert torch.equal(loaded.predict_proba(), fitted.predict_proba())
            assert torch.equal(loaded.predict(case.seal(case.graph())), fitted.predict())
            for part in ("guarantee", "ledger", "history", "privacy", "links", "epsilon_relationship"):
                assert getattr(loaded, part, None) == getattr(fitted, part, None), part
            assert loaded.schema == replace(fitted.schema, notes=())
            if case.inductive != "never":
                new = case.graph(seed=2)
                mine = case.ask(copied(fitted), new, SeededRandomness(5))
                assert torch.equal(case.ask(loaded, new, SeededRandomness(5)), mine)

    # ---- people whom it was not trained on ----

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
        probabilities = case.ask(fitted, new, noise)
        assert bool(noise.counts) == (case.inductive == "reports")
        assert torch.allclose(probabilities.sum(dim=1), torch.ones(made.NODES), atol=1e-5)
        assert not torch.equal(probabilities, fitted.predict_proba())
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
        probabilities = case.ask(fitted, new, SeededRandomness(5))
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
            assert torch.equal(case.ask(method, sealed, noise), probabilities)
            assert torch.equal(case.ask(method, sealed), probabilities)
            assert noise.counts == [] and method.ledger == after
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


def secrets(graph: Any, reported: dict[str, torch.Tensor], fitted: Any) -> dict[str, bytes]:
    """What must not stand in a saved file, as the bytes it would be stored in."""
    number = np.float32(made.CANARY)
    texts = {
        "canary as float32": number.tobytes(),
        "canary as float64": np.float64(number).tobytes(),
        "canary as text": b"0.73105",
        "notes that count private values": b"made by social_graph",
        "an id": b"person 1/7",
    }
    arrays = {
        "true labels": graph.y.numpy()[8:40],
        "senders": graph.edge_index.numpy()[0, 8:40],
        "edges": graph.edge_index.numpy()[1, 8:40],
        "degrees": np.bincount(graph.edge_index[0].numpy(), minlength=made.NODES)[4:44],
        "features": made.dense(graph.x).ravel()[: 4 * graph.x.shape[1]],
        **{f"reported {name}": part.numpy().ravel()[8:56] for name, part in reported.items()},
    }
    edges = getattr(getattr(fitted, "topology", None), "edge_index", None)
    if edges is not None and edges.shape[1] >= 56:
        arrays["denoised links"] = edges.numpy()[1, 8:56]
    for name, array in arrays.items():
        if len(array) < 24:
            continue
        for dtype in (np.int64, np.int32, np.uint8, np.float32):
            texts[f"{name} as {dtype.__name__}"] = array.astype(dtype).tobytes()
        texts[f"{name} as text"] = ", ".join(str(value) for value in array.tolist()).encode()
    return texts
