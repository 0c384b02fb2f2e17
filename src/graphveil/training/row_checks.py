"""Refusal of models in which per-sample clipping would not bound what one sample does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from graphveil.errors import InputError
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor, nn


_PROBES = 7


def linear_layers(model: nn.Module) -> list[nn.Linear]:
    """The linear layers that hold all parameters of `model`. Raises InputError: it normalises over the batch, or a
    trainable parameter is outside a plain linear layer or shared by two.
    """
    norms = (torch.nn.modules.batchnorm._BatchNorm, torch.nn.modules.instancenorm._InstanceNorm)
    for name, module in model.named_modules():
        if isinstance(module, norms):
            raise InputError(f"{name or 'the model'} is {type(module).__name__}", remedy="use no batch normalisation")
    # `type` and not `isinstance`: a subclass may compute something else, for which the closed form is wrong.
    layers = [module for module in model.modules() if type(module) is torch.nn.Linear]
    ids = [id(p) for layer in layers for p in layer.parameters(recurse=False)]
    for name, parameter in model.named_parameters():
        if ids.count(id(parameter)) != 1 or not parameter.requires_grad or parameter.dtype != torch.float32:
            raise InputError(
                f"parameter {name!r} cannot be trained privately",
                allowed="float32 parameters of torch.nn.Linear, each in one layer and trainable",
            )
    if not layers:
        raise InputError("the model has no linear layer")
    return layers


def refuse_mixed_rows(model: nn.Module, dimension: int, *, seed: int = 0) -> None:
    """Change one row of a public random batch at a time and refuse a model whose other outputs move, or whose rows are
    not kept apart.

    Args:
        dimension: columns of the model's input.
    """
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(_PROBES, dimension, generator=generator)
    before = _outputs(model, rows, seed)
    if before.ndim != 2 or len(before) != _PROBES:
        raise InputError(
            f"{_PROBES} input rows gave outputs {list(before.shape)}", allowed="one row for each input row"
        )
    for row in range(_PROBES):
        unchanged = torch.arange(_PROBES) != row
        # A large row, a mirrored one and NaN: each gets through layers that the others pass unnoticed.
        for value in (torch.full((dimension,), 1e3), -rows[row], torch.full((dimension,), torch.nan)):
            changed = rows.clone()
            changed[row] = value
            after = _outputs(model, changed, seed)
            if not torch.allclose(after[unchanged], before[unchanged], rtol=1e-5, atol=1e-6):
                raise InputError(
                    "changing one input row moves the outputs of others",
                    where=type(model).__name__,
                    remedy="use layers that treat rows independently: else clipping one gradient protects nothing",
                )


def treats_rows_alike(model: nn.Module, dimension: int, rows: int) -> bool:
    """Whether a row's outputs and gradients have the same bits in public random batches of some times `rows` rows.
    Matrix products of some processors round otherwise in batches of another length, or at their end.

    Args:
        model: a perceptron; dimension: d, columns of its rows.
    """
    generator, training = torch.Generator().manual_seed(0), model.training
    layers = linear_layers(model.eval())
    count = 7 * rows
    x = torch.randn(count, dimension, generator=generator)
    slopes = torch.randn(count, max(layer.out_features for layer in layers), generator=generator)

    def seen(batch: Tensor) -> list[Tensor]:
        with Recorder(layers) as recorder:
            logits = model(x[batch])
            outputs = [output for _, output in recorder.seen]
        tensors = [*outputs, *torch.autograd.grad((logits * slopes[batch, : logits.shape[1]]).sum(), outputs)]
        return [tensor.detach() for tensor in tensors]

    # Bit for bit: a last bit that depends on the company is a trace of who else was in the batch.
    whole, alike = seen(torch.arange(count)), True
    for size in (1, 2, 3, 5, 7):
        batch = torch.randperm(count, generator=generator)[: size * rows]
        alike &= all(torch.equal(part, all_[batch]) for part, all_ in zip(seen(batch), whole, strict=True))
    model.train(training)
    return alike


def _outputs(model: nn.Module, rows: Tensor, seed: int) -> Tensor:
    """The outputs in the model's present mode, dropout frozen, its buffers and the global generator untouched."""
    buffers = {name: value.clone() for name, value in model.named_buffers()}
    # The same dropout masks before and after: else a change of masks would pass for a change of rows.
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed)
        outputs: Tensor = model(rows.to(next(model.parameters()).device))
    for name, value in model.named_buffers():
        value.copy_(buffers[name])
    return outputs


class Recorder:
    """Keeps what every linear layer sees in one forward pass; a context manager that leaves no hook behind."""

    def __init__(self, layers: list[nn.Linear]) -> None:
        self._layers = layers

    def __enter__(self) -> Recorder:
        self._seen: dict[int, tuple[Tensor, Tensor]] = {}
        self._handles = [layer.register_forward_hook(self._hook(number)) for number, layer in enumerate(self._layers)]
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()

    def _hook(self, number: int) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]:
        def keep(_: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            if number in self._seen:
                raise InputError("a linear layer is used twice in one pass", remedy="give each use its own layer")
            if inputs[0].ndim != 2:
                raise InputError(f"a linear layer sees {inputs[0].ndim} axes", allowed="2: rows and columns")
            self._seen[number] = (inputs[0].detach(), output)

        return keep

    @property
    def seen(self) -> list[tuple[Tensor, Tensor]]:
        """(input, output) of every layer, in their order; raises InputError where one was not used."""
        if len(self._seen) != len(self._layers):
            raise InputError("a linear layer of the model is not used", remedy="leave it out of the model")
        return [self._seen[number] for number in range(len(self._layers))]
