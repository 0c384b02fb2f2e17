"""What every method must do. Inherit `MethodSuite` and give it cases through a module-scoped fixture `case`.

"Item" numbers are those of the reviewer's checklist for private graph learning: 3 no data-dependent control flow,
5 sizes public, 7 label domain public, 11 inference is post-processing, 12 validation accounted, 17 fresh noise.
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
from graphveil.methods import LPGNN, LabelPropagation, load_method
from graphveil.methods.base.released import topology_of
from graphveil.methods.local.lpgnn import LPGNNCore
from graphveil.privacy import Guarantee, SecureRandomness, SeededRandomness
from tests.methods import made
from tests.methods.cases import Case, copied, load_like
from tests.methods.new_graphs import NewGraphSuite


class MethodSuite(NewGraphSuite):
    # ---- fitting ----

    def test_fit_is_randomize_and_then_fit_reports(self, case: Case, fitted: Any) -> None:
        graph = case.graph()
        method = case.build(seed=0)
        released = method.randomize(graph, split=made.split_of(graph), randomness=SeededRandomness(1))
        method.fit_reports(released, topology_of(graph))
        assert torch.equal(method.predict_proba(), fitted.predict_proba())
        assert method.guarantee == fitted.guarantee
        assert method.ledger == fitted.ledger

    def test_the_same_seeds_give_the_same_method(self, case: Case, fitted: Any) -> None:
        assert torch.equal(case.fit().predict_proba(), fitted.predict_proba())

    def test_another_seed_trains_another_method_and_0_is_a_seed_too(self, case: Case, fitted: Any) -> None:
        if case.trains:
            assert not torch.equal(case.fit(seed=1).predict_proba(), fitted.predict_proba())

    def test_fitting_again_on_the_same_reports_is_free_and_gives_the_same(self, case: Case) -> None:
        """And other reports in between leave nothing behind: refused, for they were not paid for, or public."""
        graph, method = case.graph(), case.fit()
        before, ledger, mine = method.predict_proba(), method.ledger, method.released
        other = case.fit(made.changed(graph, y=(graph.y + 1) % 3), noise=2).released
        if case.private:
            with pytest.raises(BudgetError, match="not the collection that was paid for"):
                method.fit_reports(other, topology_of(graph))
        else:
            assert not torch.equal(method.fit_reports(other, topology_of(graph)).predict_proba(), before)
        assert torch.equal(method.fit_reports(mine, topology_of(graph)).predict_proba(), before)
        assert method.ledger == ledger

    def test_reports_of_other_people_are_refused(self, case: Case, fitted: Any) -> None:
        topology = replace(topology_of(case.graph()), num_nodes=made.NODES + 1)
        method = case.build()
        with pytest.raises(InputError, match=f"{made.NODES} reports for {made.NODES + 1} nodes"):
            method.fit_reports(fitted.released, topology)
        assert method.ledger.spends == ()

    def test_reports_of_another_epsilon_are_refused(self, case: Case, fitted: Any) -> None:
        """Whatever budget differs: both the channel that is inverted and what is booked would be wrong."""
        privacy = fitted.privacy
        changes: list[dict[str, Any]] = [{"epsilon_y": 3.25}, {"epsilon_x": 3.25}, {"delta": 1e-7}]
        for change in changes:
            foreign = replace(fitted.released, privacy=replace(privacy, **change))
            method = case.build()
            with pytest.raises(InputError, match=r"the reports were made with .*; allowed: reports made with "):
                method.fit_reports(foreign, topology_of(case.graph()))
            assert method.ledger.spends == ()

    def test_the_server_half_alone_books_the_spend(self, case: Case, fitted: Any) -> None:
        """A server that is handed reports has them in its ledger, once, however often it trains."""
        method = case.build(seed=0)
        assert method.ledger.spends == ()
        for _ in range(2):
            method.fit_reports(fitted.released, topology_of(case.graph()))
            assert method.ledger == fitted.ledger
        if case.private:
            with pytest.raises(BudgetError):
                graph = made.Sealed(case.graph())
                method.randomize(graph, split=made.split_of(case.graph()), randomness=SeededRandomness(2))

    def test_a_collection_that_fails_half_way_stays_paid(self, case: Case, fitted: Any) -> None:
        """Devices may have sent their reports before one refused: the next attempt is another collection."""
        if not case.private:
            return
        graph, wrong = case.graph(), case.graph()
        if 0 < case.features < math.inf:
            stored = wrong.x.values() if wrong.x.layout == torch.sparse_csr else wrong.x.view(-1)
            stored[0] = float("nan")
        else:
            wrong.y[made.split_of(graph).train] = 3
        method = case.build(seed=0)
        with pytest.raises(InputError):
            method.fit(wrong, split=made.split_of(graph), randomness=SeededRandomness(1))
        assert method.ledger == fitted.ledger
        with pytest.raises(BudgetError):
            method.fit(made.Sealed(graph), split=made.split_of(graph), randomness=SeededRandomness(1))

    def test_progress_reaches_the_end(self, case: Case) -> None:
        told: list[tuple[int, int]] = []
        graph = case.graph()
        case.build().fit(graph, randomness=SeededRandomness(1), progress=lambda at: told.append((at.done, at.total)))
        assert told[-1][0] == told[-1][1] == len(told)

    def test_nothing_comes_out_before_fitting(self, case: Case, tmp_path: Path) -> None:
        method = case.build()
        for ask in (method.predict_proba, method.predict, lambda: method.guarantee, lambda: method.save(tmp_path)):
            with pytest.raises(InputError, match="has not been fitted; call fit or fit_reports first"):
                ask()

    def test_graphs_with_several_labels_a_node_are_refused_and_nothing_is_spent(self, case: Case) -> None:
        graph = case.graph()
        several = made.changed(graph, y=torch.nn.functional.one_hot(graph.y.clamp_min(0), 3).float())
        method = case.build()
        if math.isinf(case.labels) and isinstance(method.core, LPGNNCore):
            return  # several public labels are what a plain network takes: see test_many_labels
        with pytest.raises(InputError, match="several labels for each node; allowed: graphs with one label a node"):
            method.randomize(several, split=made.split_of(graph), randomness=SeededRandomness(1))
        assert method.ledger.spends == ()

    def test_values_outside_what_was_declared_are_refused(self, case: Case) -> None:
        graph = case.graph()
        split = made.split_of(graph)
        if 0 < case.features < math.inf:
            for bad in (float("nan"), float("inf"), 1.5, -0.5):
                wrong = case.graph()
                stored = wrong.x.values() if wrong.x.layout == torch.sparse_csr else wrong.x.view(-1)
                stored[0] = bad
                with pytest.raises(InputError):
                    case.build().randomize(wrong, split=split, randomness=SeededRandomness(1))
        if case.labels < math.inf:
            wrong = case.graph()
            wrong.y[split.train] = 3
            with pytest.raises(InputError, match="not a declared class"):
                case.build().randomize(wrong, split=split, randomness=SeededRandomness(1))

    # ---- what is promised ----

    def test_the_guarantee_is_complete_and_says_what_is_not_protected(self, case: Case, fitted: Any) -> None:
        guarantee = fitted.guarantee
        assert Guarantee.from_dict(guarantee.to_dict()) == guarantee
        assert (guarantee.relation, guarantee.model) == ("replace", "local")
        finite = [epsilon for epsilon in (case.features, case.labels) if 0 < epsilon < math.inf]
        price = max if case.one_report else sum
        assert guarantee.epsilon == pytest.approx(price(finite) if finite else math.inf)
        said = guarantee.sentence()
        assert "topology" in said and "public" in said
        assert ("reports once" in said) == case.private
        assert ("features are declared public" in said) == math.isinf(case.features)
        assert ("labels are declared public" in said) == math.isinf(case.labels)
        assert guarantee.protects is False

    def test_reproducible_noise_voids_the_guarantee_and_secure_noise_does_not(self, case: Case, fitted: Any) -> None:
        graph = case.graph()
        secure = case.build().fit(graph, split=made.split_of(graph), randomness=SecureRandomness()).guarantee
        assert secure.void is None
        assert secure.protects == case.private
        if case.private:
            assert "reproducible (seed 1)" in str(fitted.guarantee.void)
            assert replace(fitted.guarantee, void=None) == secure

    def test_the_ledger_holds_what_the_settings_say(self, case: Case, fitted: Any) -> None:
        for unit, epsilon in (("features", case.features), ("labels", case.labels)):
            private = 0 < epsilon < math.inf
            assert fitted.ledger.total(unit)[0] == pytest.approx(epsilon if private else 0.0)
            if private:
                assert fitted.ledger.remaining(unit)[0] == 0
        assert fitted.guarantee.delta == sum(spend.delta for spend in fitted.ledger.spends)

    def test_a_second_collection_is_refused_before_data_is_read(self, case: Case) -> None:
        if not case.private:
            return
        graph = case.graph()
        method = case.fit(graph)
        ledger = method.ledger
        with pytest.raises(BudgetError):
            method.randomize(made.Sealed(graph), split=made.split_of(graph), randomness=SeededRandomness(2))
        with pytest.raises(BudgetError):
            method.fit(made.Sealed(graph), split=made.split_of(graph), randomness=SeededRandomness(2))
        assert method.ledger == ledger

    def test_fresh_noise_whatever_the_seed(self, case: Case) -> None:
        """Item 17: the user's seed fixes weights and splits, never privacy noise.

        44 labels at epsilon 2 are the reports of least noise: equal twice by chance with probability 3e-9.
        """
        graph = case.graph()
        runs = [case.build(seed=0).fit(graph, randomness=SecureRandomness()).released for _ in range(2)]
        for name, first in made.tensors_of(runs[0]).items():
            private = case.labels if name == "labels" else case.features
            # Whose codebook is whose depends on no value, nor does who is asked.
            public = name in ("codebooks", "who") or not 0 < private < math.inf
            assert torch.equal(first, made.tensors_of(runs[1])[name]) == public

    def test_the_server_needs_reports_and_topology_only(self, case: Case, fitted: Any) -> None:
        """Item 3: with the reports frozen there is nothing private left for training to depend on."""
        method = case.build(seed=0).fit_reports(fitted.released, topology_of(made.sealed(case.graph())))
        assert torch.equal(method.predict_proba(), fitted.predict_proba())
        assert method.history == fitted.history

    def test_devices_draw_as_much_noise_for_every_data_set(self, case: Case) -> None:
        """Item 3: number, order and size of the calls for noise are those of a neighbouring data set."""
        graph = case.graph()
        asked = []
        for people in (graph, made.neighbour(graph)):
            noise = made.Counted()
            case.build().randomize(people, split=made.split_of(graph), randomness=noise)
            asked.append(noise.asked)
        assert asked[0] == asked[1]
        assert bool(asked[0]) == case.private

    def test_reports_of_neighbours_come_from_the_same_finite_set(self, case: Case) -> None:
        """Item 18: what is sent are whole numbers of one type and shape, whatever the values."""
        graph = case.graph()
        sent = [
            made.tensors_of(case.build().randomize(g, split=made.split_of(graph), randomness=SeededRandomness(1)))
            for g in (graph, made.neighbour(graph))
        ]
        for name, first in sent[0].items():
            assert not first.is_floating_point()
            assert (first.dtype, first.shape) == (sent[1][name].dtype, sent[1][name].shape)

    def test_parameters_do_not_depend_on_values(self, case: Case) -> None:
        """Items 5 and 6: everybody at the ends of the range, one class only: the same ledger and guarantee."""
        graph = case.graph()
        extreme = np.zeros_like(made.dense(graph.x))
        extreme[0] = 1
        other = made.changed(graph, x=extreme, y=torch.where(graph.y >= 0, 0, -1))
        first, second = case.fit(graph), case.fit(other)
        assert first.ledger == second.ledger
        assert first.guarantee == second.guarantee
        assert first.predict_proba().shape == second.predict_proba().shape

    def test_an_empty_class_keeps_its_place(self, case: Case) -> None:
        """Item 7: nobody is of class 1, yet there are three columns and the classes keep their order."""
        graph = case.graph()
        method = case.fit(made.changed(graph, y=torch.where(graph.y == 1, 2, graph.y)))
        assert method.predict_proba().shape == (made.NODES, 3)
        assert method.schema.classes == graph.schema.classes

    def test_the_truth_of_test_nodes_changes_nothing(self, case: Case, fitted: Any) -> None:
        """Item 12: nothing released, selected or recorded depends on labels that nobody sent."""
        graph = case.graph()
        split = made.split_of(graph)
        flipped = made.changed(graph, y=torch.where(split.test, (graph.y + 1) % 3, graph.y))
        method = case.build(seed=0).fit(flipped, split=split, randomness=SeededRandomness(1))
        assert torch.equal(method.released.labels, fitted.released.labels)
        assert bool((method.released.labels[~(split.train | split.val)] == -1).all())
        assert torch.equal(method.predict_proba(), fitted.predict_proba())
        assert method.history == fitted.history

    # ---- predictions ----

    def test_probabilities_are_probabilities(self, case: Case, fitted: Any) -> None:
        found = fitted.predict_proba()
        assert found.shape == (made.NODES, 3)
        assert bool((found >= 0).all())
        assert torch.allclose(found.sum(dim=1), torch.ones(made.NODES), atol=1e-5)
        assert torch.equal(fitted.predict(), found.argmax(dim=1))

    def test_score_is_the_share_of_known_labels_that_are_met(self, case: Case, fitted: Any) -> None:
        graph = case.graph()
        known = graph.y >= 0
        share = float((fitted.predict()[known] == graph.y[known]).float().mean())
        assert fitted.score(graph) == pytest.approx(share)
        one = torch.zeros(made.NODES, dtype=torch.bool)
        one[0] = True
        assert fitted.score(graph, one) == float(fitted.predict()[0] == graph.y[0])
        assert fitted.score(graph, one, randomness=None) == fitted.score(graph, one)

    def test_predicting_on_the_training_graph_reads_nothing_private(self, case: Case, fitted: Any) -> None:
        """Item 11: inference is post-processing of what was released."""
        graph = made.sealed(case.graph())
        assert torch.equal(fitted.predict_proba(graph), fitted.predict_proba())
        assert torch.equal(fitted.predict(graph), fitted.predict())

    # ---- files ----

    def test_a_saved_method_comes_back_the_same(self, case: Case, fitted: Any, tmp_path: Path) -> None:
        fitted.save(tmp_path)
        for loaded in (load_method(tmp_path), load_like(fitted, tmp_path)):
            assert type(loaded.core) is type(fitted.core)
            assert torch.equal(loaded.predict_proba(), fitted.predict_proba())
            assert torch.equal(loaded.predict(made.sealed(case.graph())), fitted.predict())
            assert loaded.guarantee == fitted.guarantee
            assert loaded.ledger == fitted.ledger
            assert loaded.history == fitted.history
            assert loaded.schema == replace(fitted.schema, notes=())
            if case.inductive != "never":
                new = case.graph(seed=2)
                mine = case.ask(copied(fitted), new, SeededRandomness(5))
                assert torch.equal(case.ask(loaded, new, SeededRandomness(5)), mine)

    def test_a_loaded_method_cannot_collect_again(self, case: Case, fitted: Any, tmp_path: Path) -> None:
        if case.private:
            loaded: Any = load_method(fitted.save(tmp_path))
            graph = case.graph()
            with pytest.raises(BudgetError):
                loaded.randomize(made.Sealed(graph), split=made.split_of(graph), randomness=SeededRandomness(2))

    def test_a_saved_method_holds_no_reports_edges_or_raw_values(self, case: Case, fitted: Any, tmp_path: Path) -> None:
        graph = case.graph()
        content = fitted.save(tmp_path).read_bytes()
        for name, secret in secrets(graph, fitted.released).items():
            assert secret not in content, name

    def test_files_that_are_not_this_method_are_refused_in_one_line(
        self, case: Case, fitted: Any, tmp_path: Path
    ) -> None:
        file = fitted.save(tmp_path / "mine")
        file.write_bytes(file.read_bytes()[:-5])
        propagation = fitted.kind == "label-propagation"
        other = LPGNN(epsilon_x=1.0, epsilon_y=1.0, epochs=1) if propagation else LabelPropagation(epsilon_y=1.0)
        other.fit(case.graph(), randomness=SeededRandomness(1)).save(tmp_path / "other")
        for path in ("mine", "other", "missing"):
            with pytest.raises(ModelFileError) as refused:
                load_like(fitted, tmp_path / path)
            assert "\n" not in str(refused.value)
            assert path in str(refused.value)


def secrets(graph: Any, released: Any) -> dict[str, bytes]:
    """What must not stand in a saved file, as the bytes it would be stored in."""
    number = np.float32(made.CANARY)
    found = {
        "canary as float32": number.tobytes(),
        "canary as float64": np.float64(number).tobytes(),
        "canary as text": b"0.73105",
        "notes that count private values": b"made by social_graph",
    }
    arrays = {
        "true labels": graph.y.numpy()[8:40],
        "edges": graph.edge_index.numpy()[1, 8:40],
        "features": made.dense(graph.x).ravel()[: 4 * graph.x.shape[1]],
        **{f"reported {name}": part.numpy().ravel()[8:56] for name, part in made.tensors_of(released).items()},
    }
    for name, array in arrays.items():
        for dtype in (np.int64, np.int32, np.uint8, np.float32):
            found[f"{name} as {dtype.__name__}"] = array.astype(dtype).tobytes()
        found[f"{name} as text"] = ", ".join(str(value) for value in array.tolist()).encode()
    return found
