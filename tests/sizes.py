"""Watch how large the tensors get that a block of code builds."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class LargestTensor:
    """`with LargestTensor() as watch:` leaves in `watch.numbers` the size of the largest dense tensor made."""

    def __init__(self) -> None:
        self.numbers = 0
        self._mode = _Mode(self)

    def __enter__(self) -> LargestTensor:
        self._mode.__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._mode.__exit__(kind, error, trace)  # type: ignore[no-untyped-call]


class _Mode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, watch: LargestTensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.watch = watch

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        given = {tensor.untyped_storage().data_ptr() for tensor in args if _is_dense(tensor)}
        for tensor in result if isinstance(result, tuple | list) else (result,):
            # A view, or what is changed in place, is nothing new.
            if _is_dense(tensor) and tensor.untyped_storage().data_ptr() not in given:
                self.watch.numbers = max(self.watch.numbers, tensor.numel())
        return result


def _is_dense(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.layout == torch.strided
