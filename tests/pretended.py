"""A GPU that is not there: tensors that lie on no device ("meta" in torch's words) and hold their numbers on the CPU.

Under :class:`PretendedGpu` code runs as it would on a GPU: tensors of two devices do not mix, numpy is refused, and a
generator of the CPU draws nothing there. What would make the CPU wait for the GPU is written down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_flatten, tree_map

_CPU, _GPU = torch.device("cpu"), torch.device("meta")
if not torch.cuda.is_available():
    with suppress(ImportError):
        from triton.runtime import interpreter

        # Sums of 32-bit words are meant to overflow: looking for it takes half of the time.
        interpreter.interpreter_builder.options = interpreter.InterpreterOptions(sanitize_overflow=False)
#: What needs a number of the GPU to know what comes next, by torch's names.
WAITS = {
    "aten._local_scalar_dense.default": "a number is read",
    "aten.equal.default": "a number is read",
    "aten.nonzero.default": "entries are counted",
    "aten._unique2.default": "entries are counted",
    "aten.masked_select.default": "entries are counted",
    "aten.repeat_interleave.Tensor": "entries are counted",
}
#: What takes tensors of both devices: copies, and rows of a tensor on the GPU by numbers on the CPU.
MIXES = {"aten.copy_.default", "aten.index.Tensor", "aten.index_put_.default", "aten._index_put_impl_.default"}


class OnGpu(Tensor):
    """A tensor that says it lies on the GPU."""

    on_cpu: Tensor

    @staticmethod
    def __new__(cls, values: Tensor) -> OnGpu:
        wrapper = Tensor._make_wrapper_subclass(
            cls,
            values.shape,
            strides=values.stride(),
            storage_offset=values.storage_offset(),
            dtype=values.dtype,
            device=_GPU,
        )
        wrapper.on_cpu = values
        return wrapper

    # Parameters are let through as they are, too.
    __torch_function__ = torch.nn.Parameter.__torch_function__

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        raise RuntimeError(f"{func} of a tensor on the GPU, after the GPU is gone")


class PretendedGpu(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While entered, device "cuda" is there.

    Attributes:
        waits: how often the CPU had to wait for the GPU, by what for.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.waits: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        flat = tree_flatten((args, kwargs))[0]
        there = any(isinstance(value, OnGpu) for value in flat)
        device = kwargs.get("device")
        if device is not None and torch.device(device) == _GPU:
            kwargs["device"], gives = _CPU, True
        else:
            gives = there and (device is None or torch.device(device).type != "cpu")
        if there:
            self._check(func, flat, kwargs)
            if not gives or str(func) in WAITS or _by_mask(func, flat):
                self.waits[WAITS.get(str(func), "entries are counted" if gives else "a tensor is copied back")] += 1
        out = func(*tree_map(_on_cpu, args), **tree_map(_on_cpu, kwargs))
        if not gives:
            return out
        wrapped = tree_map(lambda value: OnGpu(value) if isinstance(value, Tensor) else value, out)
        return return_and_correct_aliasing(func, args, kwargs, wrapped) if there else wrapped  # type: ignore[no-untyped-call]

    def holds(self, tensor: Tensor) -> bool:
        """Whether a tensor lies here."""
        return isinstance(tensor, OnGpu)

    def _check(self, func: Any, flat: list[Any], kwargs: dict[str, Any]) -> None:
        here = [isinstance(v, Tensor) and not isinstance(v, OnGpu) and v.dim() > 0 for v in flat]
        # What rows are taken from, or put into with what values, is not on two devices.
        ends = here[:1] + here[-2:] * ("put" in str(func))
        if any(here) and str(func) != "aten.copy_.default" and (str(func) not in MIXES or any(ends)):
            raise RuntimeError(f"{func} of tensors on two devices")
        if any(isinstance(value, torch.Generator) for value in flat):
            raise RuntimeError(f"{func} on the GPU, by a generator of the CPU")


def _by_mask(func: Any, flat: list[Any]) -> bool:
    """Whether rows are taken by a mask, of which nobody knows how many they are."""
    return str(func) == "aten.index.Tensor" and any(isinstance(v, Tensor) and v.dtype == torch.bool for v in flat[1:])


class _Renamed(TorchFunctionMode):
    """Takes "cuda" for the device that is pretended: torch without CUDA would ask for a driver."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        there = bool(args) and isinstance(args[0], OnGpu)
        # Both work on numbers behind the back of modes.
        if there and func is Tensor.tolist:
            return args[0].cpu().tolist()
        if there and func is Tensor.new_tensor:
            return torch.tensor(args[1], dtype=args[0].dtype).to(_GPU)
        return func(*map(_renamed, args), **{name: _renamed(value) for name, value in (kwargs or {}).items()})


def _renamed(value: Any) -> Any:
    named = isinstance(value, str | torch.device) and str(value).startswith("cuda")
    return _GPU if named else value


def _on_cpu(value: Any) -> Any:
    return value.on_cpu if isinstance(value, OnGpu) else value


@contextmanager
def pretended_gpu() -> Iterator[PretendedGpu]:
    """Yield a GPU that is not there, and that torch says is there."""
    # What is drawn here is drawn by the generator of the CPU.
    fork = torch.random.fork_rng
    with (
        mock.patch("torch.cuda.is_available", return_value=True),
        mock.patch("torch.random.fork_rng", lambda devices=(): fork(devices=[], device_type="cpu")),
        mock.patch("torch.optim.adam._device_dtype_check_for_fused"),
        # A torch that was built for CUDA would ask for a driver.
        mock.patch("torch.accelerator.current_accelerator", return_value=None),
        _Renamed(),
        PretendedGpu() as gpu,
    ):
        yield gpu
