"""What every method that collects neighbour lists must do. Inherit `LinkSuite` and give it a fixture `case`.

The contract of `conformance`, without a public topology. "Item" numbers are those of the reviewer's checklist for
private graph learning: 3 no data-dependent control flow, 4 undirected edges counted once, 5 sizes public, 7 label
domain public, 8 no private degree in normalisers, 11 inference is post-processing, 12 validation accounted, 17 fresh
noise, 18 support of outputs, 19 repeated collection.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphveil.errors import BudgetError, InputError, ModelFileError
from graphveil.methods import LPGNN, load_method
from graphveil.methods.links.collection import graph_guarantee
from graphveil.privacy import Guarantee, SecureRandomness, SeededRandomness
from tests.methods import links_made, made
from tests.methods.cases import copied, load_like
from tests.methods.links_made import LinkCase, Sealed, fit_once
from tests.methods.new_people import NewPeopleSuite


class LinkSuite(NewPeopleSuite):
    @pytest.fixture
    def fitted(self, case: LinkCase) -> Any:
        """A method fitted on the case's graph; each test has a copy of its own."""
        return copied(fit_once(case))

    # ---- fitting ----

    def test_fit_is_randomize_and_then_fit_reports(self, case: LinkCase, fitted: Any) -> None:
        graph = case.graph()
        method = case.build(seed=0)
        released = method.randomize(graph, split=made.split_of(graph), randomness=SeededRandomness(1))
        method.fit_reports(released)
        assert torch.equal(method.predict_proba(), fitted.predict_proba())
        assert method.guarantee == fitted.guarantee
        assert method.ledger == fitted.ledger

    def test_another_seed_trains_another_method(self, case: LinkCase, fitted: Any) -> None:
        if case.trains:
            assert not torch.equal(case.fit(seed=1).predict_proba(), fitted.predict_proba())

    def test_fitting_again_on_the_same_reports_is_free_and_gives_the_same(self, case: LinkCase) -> None:
        """And other reports in between leave nothing behind: refused, for they were not paid for, or public."""
        graph, method = case.graph(), case.fit()
        before, ledger, mine = method.predict_proba(), method.ledger, method.released
        other = case.fit(made_changed(graph, y=(graph.y + 1) % 3), noise=2).released
        if case.private:
            with pytest.raises(BudgetError, match="not the collection that was paid for"):
                method.fit_reports(other)
        else:
            assert not torch.equal(method.fit_reports(other).predict_proba(), before)
        assert torch.equal(method.fit_reports(mine).predict_proba(), before)
        assert method.ledger == ledger

    def test_reports_of_other_budgets_are_refused(self, case: LinkCase, fitted: Any) -> None:
        """Whatever differs: both the channel that is inverted and what is booked would be wrong."""
        people, links = fitted.released.people, fitted.released.links
        foreign = [
            replace(fitted.released, people=replace(people, privacy=replace(people.privacy, **change)))
            for change in ({"epsilon_y": 3.25}, {"epsilon_x": 3.25}, {"delta": 1e-7})
        ]
        changes: list[dict[str, Any]] = [{"epsilon_a": 3.25}, {"degree_share": 0.4}, {"mode": "other"}]
        changes[2]["mode"] = "both" if links.mode != "both" else "lower"
        foreign += [replace(fitted.released, links=replace(links, **change)) for change in changes]
        for released in foreign:
            method = case.build()
            with pytest.raises(InputError, match=r"the reports were made with .*; allowed: reports made with "):
                method.fit_reports(released)
            assert method.ledger.spends == ()

    def test_the_server_half_alone_books_the_spend(self, case: LinkCase, fitted: Any) -> None:
        """A server that is handed reports has them in its ledger, once, however often it trains."""
        method = case.build(seed=0)
        assert method.ledger.spends == ()
        for _ in range(2):
            method.fit_reports(fitted.released)
            assert method.ledger == fitted.ledger
        if case.private:
            with pytest.raises(BudgetError):
                method.randomize(Sealed(case.graph()), split=None, randomness=SeededRandomness(2))

    def test_a_collection_that_fails_half_way_stays_paid(self, case: LinkCase, fitted: Any) -> None:
        """Devices may have sent their reports before one refused; what public facts forbid costs nothing."""
        graph = case.graph()
        for wrong in unacceptable(case):
            method = case.build(seed=0)
            with pytest.raises(InputError):
                method.fit(wrong, split=made.split_of(graph), randomness=SeededRandomness(1))
            forbidden = wrong.schema != graph.schema or wrong.y.dim() == 2
            assert method.ledger.spends == (() if forbidden else fitted.ledger.spends)

    def test_progress_reaches_the_end(self, case: LinkCase) -> None:
        told: list[tuple[int, int]] = []
        case.build().fit(
            case.graph(), randomness=SeededRandomness(1), progress=lambda at: told.append((at.done, at.total))
        )
        assert told[-1][0] == told[-1][1]
        assert told == sorted(told)

    def test_nothing_comes_out_before_fitting(self, case: LinkCase, tmp_path: Path) -> None:
        method = case.build()
        for ask in (method.predict_proba, method.predict, lambda: method.guarantee, lambda: method.save(tmp_path)):
            with pytest.raises(InputError, match="has not been fitted; call fit or fit_reports first"):
                ask()

    # ---- what is promised ----

    def test_the_guarantee_is_complete_and_says_what_is_not_protected(self, case: LinkCase, fitted: Any) -> None:
        guarantee = fitted.guarantee
        assert Guarantee.from_dict(guarantee.to_dict()) == guarantee
        assert guarantee.model == "local"
        finite = [epsilon for epsilon in (case.x, case.relationship, case.y) if 0 < epsilon < math.inf]
        assert guarantee.epsilon == pytest.approx(math.fsum(finite) if finite else math.inf)
        said = guarantee.sentence()
        assert "topology" not in said
        assert ("reports once" in said) == case.private
        assert ("features are declared public" in said) == math.isinf(case.x)
        assert ("labels are declared public" in said) == math.isinf(case.y)
        assert ("links are declared public" in said) == math.isinf(case.a)
        assert guarantee.protects is False  # the noise of these tests can be reproduced

    def test_who_reports_a_relationship_and_what_it_costs_is_said(self, case: LinkCase, fitted: Any) -> None:
        """Item 4: in mode "both" a relationship stands in two lists and costs twice the epsilon of a bit."""
        # In mode "directed" of two people who name each other, whose links are two.
        assert fitted.epsilon_relationship == (2 if case.mode == "directed" else 1) * case.relationship
        if math.isinf(case.a):
            return
        text = fitted.guarantee.sentence()
        unit = "one directed link" if case.mode == "directed" else "one relationship"
        people = [epsilon for epsilon in (case.x, case.y) if 0 < epsilon < math.inf]
        if people:  # two parts: "replacing" means other values and the other answer to whether it exists
            assert f"and whether {unit} of that user exists: replacing it" in text
            assert f"whether {unit} exists (epsilon = {case.relationship:g}, delta = 0)" in text
        else:
            assert f"hides {unit}: adding or removing it" in text
            assert f"epsilon = {case.relationship:g}" in text
        assert ("the one with the lower id reports" in text) == (case.mode == "lower")
        assert (f"both ends of a relationship report it, at epsilon {case.a:g} each" in text) == (
            case.mode == "both" and fitted.links.mechanism != "degree-and-lists"
        )
        assert fitted.ledger.total("links")[0] == pytest.approx(case.relationship)

    def test_reproducible_noise_voids_the_guarantee_and_secure_noise_does_not(
        self, case: LinkCase, fitted: Any
    ) -> None:
        graph = case.graph()
        secure = case.build().fit(graph, split=made.split_of(graph), randomness=SecureRandomness()).guarantee
        assert secure.void is None
        assert secure.protects == case.private
        if case.private:
            assert "reproducible (seed 1)" in str(fitted.guarantee.void)
            assert replace(fitted.guarantee, void=None) == secure

    def test_the_ledger_holds_what_the_settings_say(self, case: LinkCase, fitted: Any) -> None:
        for unit, epsilon in (("features", case.x), ("labels", case.y), ("links", case.relationship)):
            private = 0 < epsilon < math.inf
            assert fitted.ledger.total(unit)[0] == pytest.approx(epsilon if private else 0.0)
            if private:
                assert fitted.ledger.remaining(unit)[0] == 0
        assert fitted.guarantee.delta == sum(spend.delta for spend in fitted.ledger.spends)

    def test_a_second_collection_is_refused_before_data_is_read(self, case: LinkCase, fitted: Any) -> None:
        """Item 19: fresh noise on the same lists would average out; the ledger has paid for one report."""
        if not case.private:
            return
        ledger, graph = fitted.ledger, case.graph()
        for collect in (fitted.randomize, fitted.fit):
            with pytest.raises(BudgetError):
                collect(Sealed(graph), split=made.split_of(graph), randomness=SeededRandomness(2))
        assert fitted.ledger == ledger

    def test_fresh_noise_whatever_the_seed(self, case: LinkCase) -> None:
        """Item 17: the user's seed fixes weights and splits, never privacy noise.

        Two collections are equal by chance with probability below 1e-6 in every case: about 1e-7 with blink-hybrid.
        """
        graph = case.graph()
        runs = [case.build(seed=0).fit(graph, randomness=SecureRandomness()).released for _ in range(2)]
        again = links_made.tensors_of(runs[1])
        for name, first in links_made.tensors_of(runs[0]).items():
            private = case.y if name == "labels" else case.a if " " in name else case.x
            assert torch.equal(first, again[name]) != (0 < private < math.inf), name

    def test_post_processing_only(self, case: LinkCase, fitted: Any) -> None:
        """Items 3, 8 and 12: with the reports frozen, no true link, degree or label can change anything.

        The server is handed a graph on which one true link is toggled and every test label is another: it has no
        argument for it, and asked about its people it answers from what it kept, reading nothing.
        """
        graph = case.graph()
        split = made.split_of(graph)
        method = case.build(seed=0).fit_reports(fitted.released)
        other = links_made.toggled(graph, 5, 17)
        other.y = torch.where(split.test, (graph.y + 1) % 3, graph.y)
        assert other.edge_index.shape != graph.edge_index.shape
        found = [method.predict_proba(asked) for asked in (None, graph, other, Sealed(other))]
        for each in found:
            assert torch.equal(each, fitted.predict_proba())
        assert (method.history, method.ledger) == (fitted.history, fitted.ledger)

    def test_labels_of_test_nodes_change_nothing(self, case: LinkCase, fitted: Any) -> None:
        """Item 12: nothing released, selected or recorded depends on labels that nobody sent."""
        graph = case.graph()
        split = made.split_of(graph)
        flipped = made_changed(graph, y=torch.where(split.test, (graph.y + 1) % 3, graph.y))
        method = case.build(seed=0).fit(flipped, split=split, randomness=SeededRandomness(1))
        labels = method.released.people.labels
        assert torch.equal(labels, fitted.released.people.labels)
        assert bool((labels[~(split.train | split.val)] == -1).all())
        assert torch.equal(method.predict_proba(), fitted.predict_proba())
        assert method.history == fitted.history

    def test_reports_of_neighbours_come_from_the_same_finite_set(self, case: LinkCase) -> None:
        """Item 18: whole numbers of one type; lists name whom they may name, whoever is linked to whom."""
        graph = case.graph()
        split, sent = made.split_of(graph), []
        for people in (graph, links_made.neighbour(graph)):
            released = case.build().randomize(people, split=split, randomness=SeededRandomness(1))
            sent.append(links_made.tensors_of(released))
        assert sent[0].keys() == sent[1].keys()
        for name, first in sent[0].items():
            assert not first.is_floating_point()
            assert first.dtype == sent[1][name].dtype
            if not name.endswith("columns"):  # how many are named is what the noise hides
                assert first.shape == sent[1][name].shape

    def test_what_one_person_sends_stays_within_the_guarantee(self, case: LinkCase) -> None:
        """Item 4: log Pr[all reports | D] - log Pr[.. | D'] is at most epsilon, over everyone's reports together.

        Another vector, another label and one relationship more: 100 collections from either side, and half of the
        claimed epsilon is exceeded where it is small enough to be met by chance.
        """
        if not case.private:
            return
        graph, worst = case.graph(), 0.0
        other = links_made.neighbour(graph)
        split = made.split_of(graph)
        for seed in range(100):
            method = case.build()
            people = (graph, other)[seed % 2]
            released = method.randomize(people, split=split, randomness=SeededRandomness(seed))
            ratio = links_made.likelihood(method, released, graph) - links_made.likelihood(method, released, other)
            untouched = torch.ones(made.NODES, dtype=torch.bool)
            untouched[[5, 17]] = False
            assert float(ratio[untouched].abs().max()) == 0
            worst = max(worst, abs(float(ratio.sum())))
        assert worst <= method_guarantee(method, graph).epsilon + 1e-9
        assert worst > case.relationship / 2 or math.isinf(case.a)

    def test_parameters_do_not_depend_on_values(self, case: LinkCase) -> None:
        """Items 5 and 6: everybody at the ends of the range, nobody linked: the same ledger and guarantee."""
        graph = case.graph()
        extreme = np.zeros_like(made.dense(graph.x))
        extreme[0] = 1
        other = made_changed(graph, x=extreme)
        other.edge_index = graph.edge_index[:, :0]
        split = made.split_of(graph)
        methods = [case.build(), case.build()]
        sent = [
            method.randomize(people, split=split, randomness=SeededRandomness(1))
            for method, people in zip(methods, (graph, other), strict=True)
        ]
        assert methods[0].ledger == methods[1].ledger
        assert sent[0].void == sent[1].void
        assert method_guarantee(methods[0], graph) == method_guarantee(methods[1], other)

    def test_an_empty_class_keeps_its_place(self, case: LinkCase) -> None:
        """Item 7: nobody is of class 1, yet there are three columns and the classes keep their order."""
        graph = case.graph()
        method = case.fit(made_changed(graph, y=torch.where(graph.y == 1, 2, graph.y)))
        assert method.predict_proba().shape == (made.NODES, 3)
        assert method.schema.classes == graph.schema.classes

    def test_a_thousand_answers_come_from_one_report(self, case: LinkCase, fitted: Any) -> None:
        """Item 19: whoever averages over fits and answers averages one and the same thing."""
        method = case.build(seed=0)
        before = {name: part.clone() for name, part in links_made.tensors_of(fitted.released).items()}
        for _ in range(3):
            method.fit_reports(fitted.released)
        graph = case.graph()
        answers = [method.predict_proba(graph if ask % 2 else None) for ask in range(1_000)]
        assert all(torch.equal(answer, fitted.predict_proba()) for answer in answers)
        for name, part in links_made.tensors_of(method.released).items():
            assert torch.equal(part, before[name])
        assert method.ledger == fitted.ledger

    # ---- predictions ----

    def test_probabilities_are_probabilities(self, case: LinkCase, fitted: Any) -> None:
        found = fitted.predict_proba()
        assert found.shape == (made.NODES, 3)
        assert bool((found >= 0).all())
        assert torch.allclose(found.sum(dim=1), torch.ones(made.NODES), atol=1e-5)
        assert torch.equal(fitted.predict(), found.argmax(dim=1))

    def test_score_is_the_share_of_known_labels_that_are_met(self, case: LinkCase, fitted: Any) -> None:
        graph = case.graph()
        known = graph.y >= 0
        assert fitted.score(graph) == pytest.approx(float((fitted.predict() == graph.y)[known].float().mean()))
        one = torch.zeros(made.NODES, dtype=torch.bool)
        one[0] = True
        assert fitted.score(graph, one) == float(fitted.predict()[0] == graph.y[0])

    def test_predicting_for_the_people_who_reported_reads_nothing_private(self, case: LinkCase, fitted: Any) -> None:
        """Item 11: inference is post-processing of what was released."""
        graph = Sealed(case.graph())
        assert torch.equal(fitted.predict_proba(graph), fitted.predict_proba())
        assert torch.equal(fitted.predict(graph), fitted.predict())

    # ---- files ----

    def test_a_saved_method_comes_back_the_same(self, case: LinkCase, fitted: Any, tmp_path: Path) -> None:
        fitted.save(tmp_path)
        both: tuple[Any, ...] = (load_method(tmp_path), load_like(fitted, tmp_path))
        for loaded in both:
            assert type(loaded.core) is type(fitted.core)
            assert torch.equal(loaded.predict_proba(), fitted.predict_proba())
            assert torch.equal(loaded.predict(Sealed(case.graph())), fitted.predict())
            assert loaded.guarantee == fitted.guarantee
            assert loaded.ledger == fitted.ledger
            assert [*loaded.history] == [*fitted.history]
            assert loaded.epsilon_relationship == fitted.epsilon_relationship
            assert loaded.schema == replace(fitted.schema, notes=())
            assert (loaded.privacy, loaded.links) == (fitted.privacy, fitted.links)
            if case.inductive != "never":
                new = case.graph(seed=2)
                mine = copied(fitted).predict_proba(new, randomness=SeededRandomness(5))
                assert torch.equal(loaded.predict_proba(new, randomness=SeededRandomness(5)), mine)

    def test_a_loaded_method_cannot_collect_again(self, case: LinkCase, fitted: Any, tmp_path: Path) -> None:
        if case.private:
            loaded = load_like(fitted, fitted.save(tmp_path))
            with pytest.raises(BudgetError):
                loaded.randomize(Sealed(case.graph()), split=None, randomness=SeededRandomness(2))

    def test_a_saved_method_holds_no_reports_links_or_raw_values(
        self, case: LinkCase, fitted: Any, tmp_path: Path
    ) -> None:
        content = fitted.save(tmp_path).read_bytes()
        for name, secret in secrets(case.graph(), fitted).items():
            assert secret not in content, name

    def test_damaged_and_foreign_files_are_refused_in_one_line(
        self, case: LinkCase, fitted: Any, tmp_path: Path
    ) -> None:
        content = fitted.save(tmp_path / "whole").read_bytes()
        for name, damaged in damage(content).items():
            (tmp_path / f"{name}.safetensors").write_bytes(damaged)
        plain = LPGNN(epsilon_x=1.0, epsilon_y=1.0, epochs=1).fit(made.graph(20), randomness=SeededRandomness(1))
        plain.save(tmp_path / "foreign.safetensors")
        for name in (*damage(content), "foreign", "missing"):
            with pytest.raises(ModelFileError) as refused:
                load_like(fitted, tmp_path / f"{name}.safetensors")
            assert "\n" not in str(refused.value)
            assert name in str(refused.value)


def made_changed(start: Any, **parts: Any) -> Any:
    """`made.changed` with the ids that tell people apart."""
    changed = made.changed(start, **parts)
    changed.ids = start.get("ids")
    return changed


def unacceptable(case: LinkCase) -> list[Any]:
    """Graphs that a collection must refuse whole: values outside what is declared, links that cannot be."""
    found = []
    several = case.graph()
    several.y = torch.nn.functional.one_hot(several.y.clamp_min(0), 3).float()
    found.append(several)
    if 0 < case.x < math.inf:
        for bad in (math.nan, math.inf, 1.5, -0.5):
            wrong = case.graph()
            wrong.x[0, 0] = bad
            found.append(wrong)
    if case.y < math.inf:
        wrong = case.graph()
        wrong.y[made.split_of(case.graph()).train] = 3
        found.append(wrong)
    if case.a < math.inf:
        for column in ([[3], [3]], [[0], [made.NODES]], [[-1], [0]]):
            wrong = case.graph()
            wrong.edge_index = torch.cat([wrong.edge_index, torch.tensor(column)], dim=1)
            found.append(wrong)
    other = case.graph()
    other.schema = replace(other.schema, directed=not other.schema.directed)
    return [*found, other] if case.build().links.mode is not None else found


def method_guarantee(method: Any, graph: Any) -> Guarantee:
    """What one collection of a graph protects."""
    return graph_guarantee(method.privacy, method.links, graph.schema, made.NODES)


def damage(content: bytes) -> dict[str, bytes]:
    """The ways in which a file arrives broken."""
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 1
    return {
        "short": content[:-5],
        "shorter": content[: len(content) // 2],
        "longer": content + b"\0",
        "empty": b"",
        "flipped": bytes(flipped),
        "cheaper": content.replace(b'\\"epsilon_y\\":', b'\\"epsilon_z\\":'),
    }


def secrets(graph: Any, fitted: Any) -> dict[str, bytes]:
    """What must not stand in a saved file, as the bytes it would be stored in."""
    number = np.float32(made.CANARY)
    found = {
        "canary as float32": number.tobytes(),
        "canary as text": b"0.73105",
        "notes": b"made by social_graph",
        "an id": b"person 1/7",
    }
    arrays = {
        "true labels": graph.y.numpy()[8:40],
        "senders": graph.edge_index.numpy()[0, 8:40],
        "links": graph.edge_index.numpy()[1, 8:40],
        "degrees": np.bincount(graph.edge_index[0].numpy(), minlength=made.NODES)[4:44],
        "features": made.dense(graph.x).ravel()[: 4 * graph.x.shape[1]],
    }
    for name, part in links_made.tensors_of(fitted.released).items():
        arrays[f"reported {name}"] = part.numpy().ravel()[8:56]
    edges = getattr(getattr(fitted, "topology", None), "edge_index", None)
    if edges is not None and edges.shape[1] >= 56:
        arrays["denoised links"] = edges.numpy()[1, 8:56]
    for name, array in arrays.items():
        if len(array) < 24:
            continue
        for dtype in (np.int64, np.int32, np.uint8, np.float32):
            found[f"{name} as {dtype.__name__}"] = array.astype(dtype).tobytes()
        found[f"{name} as text"] = ", ".join(str(value) for value in array.tolist()).encode()
    return found
