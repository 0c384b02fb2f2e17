"""A network on released data: training, application, and its form as JSON facts and tensors; post-processing alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol, TypeAlias, cast

import numpy as np

from graphveil import models
from graphveil.aggregation import Inputs, SparseMatrix, Support, build_inputs, propagate, standardise
from graphveil.engine import LOCAL, Engine
from graphveil.errors import InputError
from graphveil.graphs import Split, require_taught
from graphveil.methods.base.network.objectives import drop_objective, many_labels, smooth_labels
from graphveil.methods.base.people.released import Topology
from graphveil.methods.base.settings import NetworkSettings
from graphveil.methods.base.storage import require_classes, require_numbers, require_same_shapes
from graphveil.models import Backbone, build_backbone, first_width
from graphveil.models.labels.label_prior import Channel
from graphveil.runtime.late import Tensor, nn, torch
from graphveil.runtime.late import sparse as sp
from graphveil.runtime.progress import ProgressCallback
from graphveil.runtime.words import count_of
from graphveil.training import Calibration, Epoch, Schedule, train, train_calibrated

#: Features [n, d]: sparse rows, an array, or a tensor, dense or sparse.
FeatureMatrix: TypeAlias = "sp.csr_matrix | np.ndarray | torch.Tensor"


class NetworkTopology(Protocol):
    """What a network needs of the edges: a `Topology`, or anything else with a propagation and a structure."""

    @property
    def num_nodes(self) -> int: ...

    def propagation(self) -> Any: ...
    def structure(self, model: str, device: str = "cpu") -> Any: ...


@dataclass(frozen=True)
class LearnedLinks:
    """Edges [2, E], their learned weights [E], and the share of sampled other pairs that would grow, or None."""

    edge_index: Tensor
    weights: Tensor
    violations: float | None


@dataclass(frozen=True)
class Network:
    """A trained network and what is needed to apply it elsewhere.

    Attributes:
        weights: the parameters of the selected epoch by name.
        mean [1, d] (None for published scaling), scale: the shift and scale of the propagated features.
        logits: [n, c] on the training topology, without dropout.
        learned_links: the edges whose weights were learned with it, if any; never saved.
    """

    weights: dict[str, Tensor]
    mean: Tensor | None
    scale: float
    epoch: int
    logits: Tensor
    history: tuple[Epoch, ...]
    learned_links: LearnedLinks | None = None


@dataclass(frozen=True)
class Labels:
    """Released labels [n] (-1 where none), the masks [n] that train and select, and the channel of their noise.

    Several public labels a node are values [n, c] 0/1, with a channel that changes nothing.
    """

    values: Tensor
    train: Tensor
    val: Tensor
    channel: Channel


def train_network(
    features: FeatureMatrix,
    offset: float,
    labels: Labels,
    topology: NetworkTopology,
    settings: NetworkSettings,
    *,
    calibration: Calibration | None = None,
    label_smoothing: bool = False,
    backbone: nn.Module | None = None,
    reported: Tensor | None = None,
    exclude_validation: bool = False,
    progress: ProgressCallback | None = None,
    engine: Engine = LOCAL,
) -> Network:
    """Train on centred features [n, d] (sparse or dense; `offset` is added to every coordinate) and noisy labels.
    Raises InputError when no training node carries a label, or none is reached by label propagation.

    Without validation nodes the last epoch is selected.

    Args:
        calibration: learn the weights of the topology's edges as well (Solitude); None: they stay as they are.
        label_smoothing: steps_y smooths public labels alone (`SmoothLabels`) in place of Drop.
        backbone: a module of a user's own in place of the settings' model, see `models.networks.own`; with it no
            weights of edges are learned.
        reported: mask [n] of people who sent features, if not all did; all other rows are zeros.
        exclude_validation: keep validation labels out of the targets: figures of the training choose between settings.
    """
    require_taught(labels.train)
    device, p = settings.device, _propagation(topology, settings)
    inputs = feature_inputs(features, offset, p, settings, reported=reported, engine=engine)
    generator = torch.Generator().manual_seed(settings.seed)
    if settings.scaling == "standard":
        inputs = standardise(inputs, generator=generator, engine=engine)
    model, model_inputs = _model(inputs, labels.channel.classes, settings, backbone, generator)
    objective = _objective(labels, p, settings, label_smoothing, exclude_validation, engine)
    # Training labels would select the epoch that has learned most of their noise.
    selection = settings.selection if bool(labels.val.any()) else "last"
    rate, decay = settings.learning_rate, settings.weight_decay
    schedule = Schedule(settings.epochs, rate, decay, selection, settings.patience)
    keywords: dict[str, Any] = {"seed": settings.seed, "progress": progress}
    if calibration is None or settings.model == "mlp" or backbone is not None:
        structure = _structure(topology, settings, backbone)
        trained, learned_links = train(model, model_inputs, structure, objective, schedule, **keywords), None
    else:
        support = Support.of(cast(Topology, topology).edge_index, topology.num_nodes).to(device)
        calibrated = train_calibrated(
            model, settings.model, inputs, support, objective, schedule, calibration, **keywords
        )
        trained = calibrated.trained
        learned_links = LearnedLinks(calibrated.edge_index.cpu(), calibrated.weights.cpu(), calibrated.violations)
    # Copies: further training of the model must not change the weights that were validated.
    weights = {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}
    mean = None if inputs.mean is None else inputs.mean.cpu()
    return Network(weights, mean, inputs.scale, trained.epoch, trained.logits.cpu(), trained.history, learned_links)


def _model(
    inputs: Inputs, classes: int, settings: NetworkSettings, backbone: nn.Module | None, generator: torch.Generator
) -> tuple[nn.Module, Inputs]:
    """Return the network, with fresh weights unless it is a user's own, and the features in its input form."""
    if backbone is not None:
        return models.OwnBackbone(backbone).to(settings.device), models.as_rows(inputs)
    hidden, dropout = settings.hidden, settings.dropout
    model = build_backbone(settings.model, inputs.dimension, hidden, classes, dropout, generator=generator)
    return model.to(settings.device), inputs


def _propagation(topology: NetworkTopology, settings: NetworkSettings) -> SparseMatrix | None:
    if settings.steps_x or settings.steps_y:
        p: SparseMatrix = topology.propagation().to(settings.device)
        return p
    return None


def _structure(topology: NetworkTopology, settings: NetworkSettings, backbone: nn.Module | None) -> Any:
    if backbone is None:
        return topology.structure(settings.model, settings.device)
    edges = cast(Topology, topology)
    return models.Links(edges.edge_index, edges.weights).to(settings.device)


def _objective(
    labels: Labels,
    p: SparseMatrix | None,
    settings: NetworkSettings,
    label_smoothing: bool,
    exclude_validation: bool,
    engine: Engine,
) -> Any:
    """Return the objective; refuses several private or propagated labels a node, and labels that reach no node."""
    values, train_mask, val_mask = (t.to(settings.device) for t in (labels.values, labels.train, labels.val))
    if values.dim() == 2:
        # Randomized response reports one label of c: nothing accounts for several private labels.
        if labels.channel.keep < 1 or settings.steps_y:
            raise InputError("several labels a node", where="training", allowed="public labels, and steps_y=0")
        return many_labels(values, train_mask, val_mask)
    if label_smoothing:
        return smooth_labels(values, train_mask, val_mask, p, settings.steps_y, classes=labels.channel.classes)
    objective = drop_objective(
        values,
        train_mask,
        val_mask,
        p,
        settings.steps_y,
        labels.channel,
        corrected=settings.loss == "drop",
        spread=train_mask if exclude_validation else train_mask | val_mask,
        engine=engine,
    )
    _require_targets(objective.fit_nodes.numel() > 0, settings.steps_y)
    return objective


class UnreachedError(InputError):
    """Hops of labels that reach no training node."""


def require_labels_near(topology: Topology, split: Split, hops: int) -> None:
    """Refuse a split without training nodes, and hops of labels that reach none, from the split alone."""
    require_taught(split.train)
    if hops:
        mass = propagate(topology.propagation(), (split.train | split.val)[:, None].float(), hops)
        _require_targets(bool((mass[split.train] > 0).any()), hops)


def _require_targets(reached: bool, hops: int) -> None:
    if not reached:
        raise UnreachedError(
            f"no label reaches a training node in {count_of(hops, 'hop')}: too few edges",
            where=f"steps_y={hops}",
            allowed="0, which learns each node's own label",
            remedy="--set steps_y=0",
        )


def require_shapes(
    network: Network, settings: NetworkSettings, *, dimension: int, classes: int, backbone: nn.Module | None = None
) -> None:
    """Refuse a stored network whose tensors are not those of its settings, or of a user's own module."""
    if backbone is not None:
        models.require_weights(models.OwnBackbone(backbone), network.weights)
    else:
        tensors = network.weights if network.mean is None else {**network.weights, "mean": network.mean}
        shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        wide = (dimension, first_width(settings.model, settings.hidden))
        # First, so that the network built below is no larger than the stored one.
        if shapes.get("weight1") != wide:
            raise InputError(f"weight1 is {shapes.get('weight1')}", allowed=str(wide))
        model = build_backbone(settings.model, dimension, settings.hidden, classes, 0.0, generator=torch.Generator())
        expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
        if settings.scaling == "standard":
            expected["mean"] = (1, dimension)
        require_same_shapes(shapes, expected)
    require_classes("logits", network.logits, classes)


def apply_network(
    network: Network,
    features: FeatureMatrix,
    offset: float,
    topology: NetworkTopology,
    settings: NetworkSettings,
    *,
    classes: int,
    backbone: nn.Module | None = None,
    reported: Tensor | None = None,
    engine: Engine = LOCAL,
) -> Tensor:
    """Return logits [n, c] of a trained network on (other) features and another topology.

    Args:
        reported, backbone: as in training.
    """
    p = _propagation(topology, settings)
    inputs = feature_inputs(features, offset, p, settings, reported=reported, engine=engine)
    dimension = inputs.dimension if backbone is not None else network.weights["weight1"].shape[0]
    if inputs.dimension != dimension:
        raise InputError(f"features have {inputs.dimension} columns", allowed=f"{dimension}, as in training")
    mean = None if network.mean is None else network.mean.to(settings.device)
    # Shift and scale of the training: statistics of the new graph would be another function of people's data.
    inputs = replace(inputs, mean=mean, scale=network.scale).on(engine)
    model, model_inputs = _model(inputs, classes, settings, backbone, torch.Generator())
    model.load_state_dict(network.weights)
    model.eval()
    structure, trained = _structure(topology, settings, backbone), cast(Backbone, model)
    structure = structure.on(engine) if isinstance(structure, SparseMatrix) else structure
    with torch.no_grad():
        return trained.rest(trained.first(model_inputs, structure), structure).cpu()


def feature_inputs(
    features: FeatureMatrix,
    offset: float,
    p: SparseMatrix | None,
    settings: NetworkSettings,
    *,
    reported: Tensor | None = None,
    engine: Engine = LOCAL,
) -> Inputs:
    """Return features as the operator P^Kx (features + offset), over the rows in `reported`."""
    width = first_width(settings.model, settings.hidden)
    keywords: dict[str, Any] = {"offset": offset, "reported": reported, "device": settings.device, "engine": engine}
    return build_inputs(as_matrix(features), p, settings.steps_x, width=width, **keywords)


def as_matrix(features: FeatureMatrix) -> FeatureMatrix:
    """Return features [n, d] as scipy CSR when they are a sparse tensor, else unchanged."""
    if isinstance(features, torch.Tensor) and features.layout == torch.sparse_csr:
        parts = (features.values().numpy(), features.col_indices().numpy(), features.crow_indices().numpy())
        return sp.csr_matrix(parts, shape=tuple(features.shape))
    return features


_WEIGHTS = "weights."


def network_facts(network: Network) -> dict[str, Any]:
    return {"scale": network.scale, "epoch": network.epoch, "history": [asdict(epoch) for epoch in network.history]}


def backbone_facts(backbone: nn.Module | None) -> dict[str, str]:
    """Return the class of a user's own module, which a file states because loading needs the module; else nothing."""
    return {} if backbone is None else {"backbone": type(backbone).__name__}


def network_tensors(network: Network) -> dict[str, Tensor]:
    tensors = {f"{_WEIGHTS}{name}": value for name, value in network.weights.items()}
    tensors["logits"] = network.logits
    if network.mean is not None:
        tensors["mean"] = network.mean
    return tensors


def restored_network(facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Network:
    """Return the network of facts and tensors, with unchecked shapes.

    Args:
        facts: with "backbone" if the weights are those of a user's own module, whose types are not checked.
    """
    for name, tensor in tensors.items():
        # The types of a user's own module are those that it has.
        own = name.startswith(_WEIGHTS) and "backbone" in facts
        if not own and (name in ("logits", "mean") or name.startswith(_WEIGHTS)):
            require_numbers(name, tensor)
    return Network(
        {name.removeprefix(_WEIGHTS): t for name, t in tensors.items() if name.startswith(_WEIGHTS)},
        tensors.get("mean"),
        float(facts["scale"]),
        int(facts["epoch"]),
        tensors["logits"],
        tuple(Epoch(**row) for row in facts["history"]),
    )
