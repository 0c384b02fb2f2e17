"""Adam's step: torch's own, bit for bit, and nothing where there is no gradient."""

from __future__ import annotations

import torch

from graphveil.training.adam import Adam


def parameters() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).requires_grad_() for shape in ((5, 3), (3,), (2,))]


def test_the_steps_of_torchs_own_optimiser() -> None:
    ours, theirs = parameters(), parameters()
    adam = Adam(ours, learning_rate=0.1, weight_decay=0.01)
    other = torch.optim.Adam(theirs, lr=0.1, weight_decay=0.01, fused=True)
    for step in range(4):
        for values in (ours, theirs):
            # The last takes part now and then alone, and must count its own steps.
            loss = (values[0] @ values[1]).square().sum() + (values[2].sum() if step % 2 else 0.0)
            loss.backward()  # type: ignore[no-untyped-call]
        adam.step()
        other.step()
        adam.clear()
        other.zero_grad()
    assert all(torch.equal(one, two) for one, two in zip(ours, theirs, strict=True))
    assert not any(torch.equal(one, start) for one, start in zip(ours, parameters(), strict=True))
    assert all(one.grad is None for one in ours)
