"""Messages between the ends of pairs: renewed in place, as the formula over all of them at once has it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from graphveil.models.pair_messages import DAMPING, PIECE, PairMessages
from graphveil.models.shares import class_softmax
from tests.sizes import LargestTensor

CASES = [(3, 40, 25, torch.float64), (2, 3, 300, torch.float32), (11, 500, 2 * PIECE + 5, torch.float32)]


def drawn(classes: int, nodes: int, pairs: int, kind: torch.dtype) -> tuple[PairMessages, Tensor, Tensor, Tensor]:
    """Who tells whom, beliefs, old messages and ratios, some of which leave no doubt."""
    generator = torch.Generator().manual_seed(classes)
    source, target = torch.randint(nodes, (2, pairs), generator=generator)
    cells = torch.randint(4, (pairs,), generator=generator)
    beliefs, messages, ratios = (
        torch.randn(*shape, generator=generator, dtype=kind)
        for shape in ((nodes, classes), (2, pairs, classes), (4, classes, classes))
    )
    told = PairMessages.between(source, target, cells)
    scale = torch.tensor([0.1, 1.0, 5.0, 20.0], dtype=kind)[:, None, None]
    return told, 30 * beliefs, 5 * messages, (scale * ratios).exp()


def ends_without_answers(told: PairMessages, messages: Tensor, beliefs: Tensor) -> tuple[Tensor, Tensor]:
    source, target = beliefs[told.source] - messages[0], beliefs[told.target] - messages[1]
    return torch.softmax(source, dim=1), torch.softmax(target, dim=1)


def renewed(told: PairMessages, messages: Tensor, beliefs: Tensor, ratios: Tensor) -> Tensor:
    """The formula, over all pairs at once."""
    source, target = ends_without_answers(told, messages, beliefs)
    table = ratios[told.cell.long()]
    said = torch.stack([torch.einsum("sab,sb->sa", table, target), torch.einsum("sab,sa->sb", table, source)])
    return messages.lerp(said.clamp_min(1e-30).log(), 1 - DAMPING)


def tolerance(kind: torch.dtype) -> float:
    """Thirty roundings at numbers of the size of messages."""
    return 30 * 30 * torch.finfo(kind).eps


@pytest.mark.slow  # seconds
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_messages_are_those_of_the_formula_on_all_pairs_at_once(
    case: tuple[int, int, int, torch.dtype], compiled: bool
) -> None:
    told, beliefs, messages, ratios = drawn(*case)
    told = replace(told, compiled=compiled)
    expected = renewed(told, messages, beliefs, ratios)
    other = renewed(told, messages.flip(0), beliefs, ratios)
    received = told.renew(messages, beliefs, ratios)
    assert torch.allclose(messages, expected, rtol=0, atol=tolerance(case[3]))
    assert not torch.allclose(messages, other, rtol=0, atol=1.0)
    sums = torch.zeros_like(beliefs).index_add(0, torch.cat([told.source, told.target]), messages.flatten(0, 1))
    assert torch.allclose(received, sums, rtol=1e-4, atol=tolerance(case[3]))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_classes_of_both_ends_are_those_of_the_formula(case: tuple[int, int, int, torch.dtype], compiled: bool) -> None:
    told, beliefs, messages, ratios = drawn(*case)
    source, target = ends_without_answers(told, messages, beliefs)
    both = source[:, :, None] * target[:, None]
    both /= (both * ratios[told.cell.long()]).sum(dim=(1, 2), keepdim=True)
    expected = torch.zeros_like(ratios).index_add(0, told.cell.long(), both)
    found = replace(told, compiled=compiled).joint(messages, beliefs, ratios)
    assert torch.allclose(found, expected, rtol=1e-3 if case[3] == torch.float32 else 1e-9)
    assert float((found * ratios).sum()) == pytest.approx(len(told.source), rel=1e-4)


def test_a_round_builds_nothing_larger_than_beliefs_or_a_piece() -> None:
    told, beliefs, messages, ratios = drawn(3, 1_000, 10 * PIECE, torch.float32)
    with LargestTensor() as watch:
        told.renew(messages, beliefs, ratios)
        told.joint(messages, beliefs, ratios)
    assert watch.numbers == 2 * PIECE * 3


@pytest.mark.parametrize("shape", [(1, 1), (5, 2), (200, 7), (0, 3)])
def test_values_and_slopes_of_torchs_own(shape: tuple[int, int]) -> None:
    logits = 100 * torch.randn(shape, generator=torch.Generator().manual_seed(0))
    weights = torch.rand(shape, generator=torch.Generator().manual_seed(1))
    slopes = []
    for softmax in (class_softmax, lambda x: torch.softmax(x, dim=1)):
        x = logits.clone().requires_grad_()
        (softmax(x) * weights).sum().backward()  # type: ignore[no-untyped-call]
        slopes.append(x.grad)
    assert torch.allclose(class_softmax(logits), torch.softmax(logits, dim=1), atol=1e-6)
    assert torch.allclose(slopes[0], slopes[1], atol=1e-6)


def test_scores_that_overflow_alone_stay_shares() -> None:
    found = class_softmax(torch.tensor([[1e4, 1e4, -1e4]]))
    assert found.tolist() == [[0.5, 0.5, 0.0]]
