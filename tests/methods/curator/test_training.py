"""What private training of a curator reads: every node's own row as it is, and no more than that.

Clipping bounds what one node adds to a step only if its row says nothing of others: a mean or a deviation of private
rows would tie them together before anything is clipped.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from safetensors import safe_open
from torch import Tensor

from graphveil.methods import load_method
from graphveil.methods.curator.settings import CuratorSettings
from graphveil.methods.curator.training import build_seeded, dense_blocks, train_with_noise, training_rows
from graphveil.models.perceptrons import Encoder
from graphveil.privacy import SeededRandomness
from graphveil.training import dp_sgd
from graphveil.training.full_batch import Rows
from tests.methods import curator_audits as audits
from tests.methods import curator_made as cm
from tests.methods import made

NODES = pytest.mark.parametrize("name", ["gap", "progap", "dp-mlp"])
#: On a coarse grid, whose noise tables are small.
SMALL: dict[str, Any] = {**audits.NODE, "bits": 5}


class Trained:
    """Writes down the rows, and the labels, that every private training was given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows: list[Tensor] = []
        self.labels: list[Tensor] = []
        real = dp_sgd.PrivateDescent.__init__

        def watched(me: Any, model: Any, inputs: Tensor, targets: Tensor, *rest: Any, **more: Any) -> None:
            self.rows.append(inputs.clone())
            self.labels.append(targets.clone())
            real(me, model, inputs, targets, *rest, **more)

        monkeypatch.setattr(dp_sgd.PrivateDescent, "__init__", watched)


@NODES
def test_the_first_private_training_reads_every_nodes_features_as_they_are(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another row of one node leaves the rows of all others what they were, bit for bit."""
    trained, start = Trained(monkeypatch), cm.graph()
    nodes = cm.split_of(start).train.nonzero()[:, 0]
    x = made.dense(start.x)
    x[nodes[4]] = 1 - x[nodes[4]]
    audits.fit(name, start, **SMALL)
    first, labels = trained.rows[0], trained.labels[0]
    assert np.array_equal(first.numpy(), made.dense(start.x)[nodes])
    assert torch.equal(labels, start.y[nodes])
    trained.rows.clear()
    audits.fit(name, made.changed(start, x=x), **SMALL)
    same = (first == trained.rows[0]).all(dim=1)
    assert same.tolist() == [place != 4 for place in range(len(nodes))]


def test_rows_of_several_parts_stand_side_by_side_as_they_are() -> None:
    """What later trainings read: parts of released sums, or sparse features, of the chosen nodes."""
    generator = torch.Generator().manual_seed(0)
    dense = torch.randn(9, 4, generator=generator)
    sparse = sp.random_array((9, 5), density=0.4, rng=np.random.default_rng(0), format="csr")
    nodes = torch.tensor([7, 0, 3])
    wanted = np.concatenate([dense.numpy(), sparse.toarray().astype(np.float32)], axis=1)[nodes.numpy()]
    assert np.array_equal(dense_blocks([dense, sparse], nodes).numpy(), wanted)


@pytest.mark.parametrize("form", ["dense", "sparse", "both"])
def test_rows_made_for_each_batch_train_the_same_network(form: str) -> None:
    """More numbers than are made dense at once: rows are made when a batch has them, and no weight differs by a bit."""
    generator = torch.Generator().manual_seed(0)
    dense = torch.randn(400, 6, generator=generator)
    sparse = sp.random_array((400, 30), density=0.2, rng=np.random.default_rng(0), format="csr")
    parts = {"dense": [dense], "sparse": [sparse], "both": [dense, sparse]}[form]
    nodes, classes = torch.randperm(400, generator=generator)[:300], torch.arange(300) % 3
    start, weights = build_seeded(lambda: Encoder(sum(part.shape[1] for part in parts), 8, 3, batch_norm=False), 1), []
    for rows in (training_rows(start, parts, nodes), training_rows(start, parts, nodes, most=1000)):
        network = copy.deepcopy(start)
        settings = CuratorSettings(batch=64, passes=3)
        train_with_noise(network, Rows(rows, classes), settings, 1.0, randomness=SeededRandomness(5))
        weights.append(torch.cat([parameter.detach().flatten() for parameter in network.parameters()]))
    assert isinstance(training_rows(start, parts, nodes), torch.Tensor) and not isinstance(rows, torch.Tensor)
    assert torch.equal(*weights)


def test_private_training_is_given_the_rows_it_was_called_with(monkeypatch: pytest.MonkeyPatch) -> None:
    trained, x = Trained(monkeypatch), torch.randn(30, 5, generator=torch.Generator().manual_seed(1))
    rows, settings = Rows(x.clone(), torch.arange(30) % 3), CuratorSettings(batch=30, passes=1)
    network = Encoder(5, 4, 3, batch_norm=False)
    train_with_noise(network, rows, settings, 1.0, randomness=SeededRandomness(0))
    assert torch.equal(trained.rows[0], x) and torch.equal(trained.labels[0], rows.classes)


def test_rows_of_nodes_are_in_no_file(tmp_path: Path) -> None:
    """For unit node a prediction is for its node alone; where edges are hidden it is for everybody."""
    for settings, kept in ((SMALL, False), ({}, True)):
        path = audits.fit("gap", cm.graph(), **settings).save(tmp_path / str(kept))
        with safe_open(path, framework="pt") as file:
            assert ("logits" in set(file.keys())) == kept


@NODES
def test_no_figure_of_a_private_training_is_kept(name: str, tmp_path: Path) -> None:
    """Losses and accuracies of private rows would have to be paid for: neither the method nor its file has any."""
    method = audits.fit(name, cm.graph(), **SMALL)
    assert method.history == ()
    method.save(tmp_path)
    assert load_method(tmp_path).history == ()
