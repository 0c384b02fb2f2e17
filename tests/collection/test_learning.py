"""From an export to a trained model: nobody's truth is there, and everybody is predicted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from graphveil.collection.export.export import read_export
from graphveil.collection.export.learning import Repetition, beyond, collected_graph, estimated, learn, read_edges
from graphveil.collection.export.reports import Received
from graphveil.errors import DataError, InputError
from graphveil.methods.runs.intervals import Interval
from graphveil.methods.runs.result import ESTIMATED, Result
from graphveil.models.labels.label_prior import Channel
from tests.collection.answered import IDS, PEOPLE, exported, graph
from tests.on_device.signing import degree, features, label, links

Exported = tuple[Path, Path]
ALONE = Repetition(controls=False)


@pytest.fixture(scope="module")
def labels(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    return exported(tmp_path_factory.mktemp("labels"), label("3"), silent={"label": 4})


def learned(name: str, out: Path, edges: Path, how: Repetition | None = None, **settings: object) -> Result:
    received = Received(read_export(out))
    graph = collected_graph(received, read_edges(edges, received.collected.ids))
    return learn(name, received, graph, settings=settings, repetition=how or Repetition())


def test_lpgnn_learns_from_those_who_answered(tmp_path: Path) -> None:
    result = learned("lpgnn", *exported(tmp_path, silent={"features": 3, "label": 4}), epochs=3)
    assert tuple(result.model.predict_proba().shape) == (PEOPLE, 3)
    assert result.privacy.guarantee.void is None and result.privacy.guarantee.epsilon == 7.0
    assert {spend.name for spend in result.privacy.ledger.spends} == {"feature report", "label report"}
    assert result.scores.ceiling is None and result.notes[0] == ESTIMATED
    assert "80 sent features (67%), 90 sent label (75%)" in result.notes[1] and "hops: " in result.notes[2]
    controls = {"random-features", "label-propagation", "label-pool", "majority", "no-edges", "public-only"}
    assert set(result.scores.controls) == controls
    assert result.scores.controls["public-only"].mean == pytest.approx(1 / 3)
    # Labels that judge are neither trained on nor chosen by: of 90 half train, and a quarter chooses.
    released = result.model.released
    assert int((released.labels >= 0).sum()) == 68 and torch.equal(released.labels >= 0, released.labelled)


def test_other_fields_and_methods_are_refused(tmp_path: Path, labels: Exported) -> None:
    export = exported(tmp_path, features("4"), label("3"), links(PEOPLE))
    for name, message in (
        # What is sent and not read is not left out of a guarantee.
        ("lpgnn", "lpgnn does not read links"),
        ("gap", "gap trains on no reports of devices"),
        ("blink", "the task asks for features, label, links, and blink needs degree too"),
    ):
        with pytest.raises(InputError, match=f"{message}; allowed: link-beliefs, list-sums, links, solitude"):
            learned(name, *export)
    for name, needs in (("lpgnn", "features"), ("links", "links"), ("dprr", "links and degree")):
        message = f"the task asks for label alone, and {name} needs {needs} too; allowed: label-pool"
        with pytest.raises(InputError, match=message):
            learned(name, *labels)
    with pytest.raises(InputError, match="epsilon_x beside a collection"):
        learned("label-pool", *labels, epsilon_x=9.0)
    with pytest.raises(InputError, match="80/20"):
        learned("label-pool", *labels, Repetition(split="80/20"))


def test_too_few_labels_are_refused_with_how_many_it_takes(tmp_path: Path) -> None:
    silent = exported(tmp_path, silent={"label": 1})
    with pytest.raises(InputError, match="0 people sent a label; allowed: at least 4: half train, a quarter validate;"):
        learned("lpgnn", *silent)


@pytest.mark.parametrize(("name", "mode"), [("blink", "lower"), ("dprr", "both")])
def test_lists_with_degrees_train_what_reads_both(tmp_path: Path, name: str, mode: str) -> None:
    fields = (features("4"), label("3"), links(PEOPLE, "4", mode), degree(PEOPLE, "0.5", mode))
    export = exported(tmp_path, *fields, silent={"links": 3})
    result = learned(name, *export, ALONE, epochs=3)
    price = 4.5 if mode == "lower" else 9.0
    assert price <= result.privacy.epsilon_relationship < price + 1e-9
    assert result.privacy.ledger.total("links")[0] == pytest.approx(price, abs=2e-9)
    sent, received = result.model.released.lists, Received(read_export(export[0]))
    degrees, heard = received.degrees()
    assert heard.tolist() == [number % 3 > 0 for number in range(PEOPLE)]
    thinned = sent["lists"] if name == "dprr" else None
    levels = sent["degrees"].levels if thinned is None else thinned.degrees.levels
    assert torch.equal(levels, degrees.levels)
    if thinned is not None:
        everyone = set(map(tuple, received.lists()[0].to_edge_index().T.tolist()))
        assert set(map(tuple, thinned.to_edge_index().T.tolist())) < everyone


def test_edges_are_those_of_the_ids(tmp_path: Path) -> None:
    _, edges = exported(tmp_path)
    assert np.array_equal(read_edges(edges, tuple(IDS)), graph().edge_index.numpy())
    with pytest.raises(DataError, match="person 7"):
        read_edges(edges, tuple(person.replace("person 7", "nobody") for person in IDS))


def test_an_estimate_beyond_what_an_accuracy_can_be_is_said_to_be_one() -> None:
    """Its lift is of what came out, and would not be the difference of the figures beside it."""
    runs = [{"label-pool": np.zeros(8), "majority": np.ones(8), "public-only": np.full(8, 0.25)}]
    estimate = estimated(Interval(0.95, 0.9, 1.0, (0.95,), "wilson"), Channel(3, 0.6, 0.2))
    assert (estimate.mean, estimate.low, estimate.high) == (1.0, 1.0, 1.0)
    gap = estimated(Interval(0.1, -0.1, 0.3, (0.1,), "paired"), Channel(3, 0.6, 0.2), difference=True)
    assert (gap.mean, gap.low, gap.high) == pytest.approx((0.25, -0.25, 0.75))
    (note,) = beyond(runs, Channel(3, 0.6, 0.2))
    assert note.startswith("label-pool came out below 0 %; majority came out above 100 %: by chance alone, and shown")
    assert not beyond([{"label-pool": np.array([0.0, 0.0, 1.0])}], Channel(3, 0.6, 0.2))
