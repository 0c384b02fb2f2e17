"""The numbering of pairs: each pair once, without gaps, block by block."""

from __future__ import annotations

import pytest
import torch

from graphveil.models.pair_cells import pair_cells


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("sizes", [[5], [6], [1, 1, 1], [1, 4, 2, 7], [2, 1, 3]])
def test_every_pair_has_a_number_of_its_own(sizes: list[int], directed: bool) -> None:
    counts = torch.tensor(sizes)
    n = int(counts.sum())
    group = torch.repeat_interleave(torch.arange(len(sizes)), counts)
    group = group[torch.randperm(n, generator=torch.Generator().manual_seed(0))]
    cells = pair_cells(group, counts, directed=directed)
    source, target = torch.cartesian_prod(torch.arange(n), torch.arange(n)).T
    source, target = (ends[source != target] for ends in (source, target))
    numbers = cells.number(source, target)
    total = n * (n - 1) // (1 if directed else 2)
    assert int(cells.starts[-1]) == total
    assert numbers.unique().tolist() == list(range(total))
    block = cells.block(source, target)
    assert ((cells.starts[block] <= numbers) & (numbers < cells.starts[block + 1])).all()
    back = torch.stack(cells.pairs(numbers))
    pairs = torch.stack([source, target])
    if directed:
        assert torch.equal(back, pairs)
    else:
        assert torch.equal(back.sort(dim=0).values, pairs.sort(dim=0).values)
