"""The perceptrons of a curator's methods, and a reader of classes that is trained on other graphs.

    encoder     h = W2 s(X W1),                     z = Wz s(unit(h))                             (GAP)
    hops        z = Wz s(unit([X_0 V_0 | ... | X_K V_K]))                                         (GAP)
    stage i     h = unit([h_0 | ... | h_i]),  h_0 = s(X_0 V_0),  h_k = s(s(X_k V_k) U_k),  z = Wz h   (ProGAP)
    votes       z = [ a | b ] W + w,        W = [ I | I ]^T and w = 0 before the first step
    reader      h_vk = selu( a_vk A + b_v B + s ),      z_vk = a_vk w + selu( h_vk C + mean_j h_vj D + t ) u

s is SELU after an optional batch normalisation, unit scales rows to length 1, biases left out. Batch normalisation
mixes samples: it is for training that costs no privacy. So is dropout, on the inputs of the encoder's second layer and
of the heads of encoder and stage, which keeps networks from memorising few people. All weights are in plain linear
layers, each used once, so that the same networks train privately (`training.dp_sgd`). `features` is everything before
the last layer `head`. Votes combine the scores from features and from neighbours' noisy votes: starting with equal
weights, which is public, its 2 c^2 + c weights need few private steps. The reader shares its weights between all
classes, which interact through a mean alone: it reads graphs with other features and another number of classes.
Sources: the published code of GAP (USENIX Security 2023) and ProGAP (WSDM 2024); Zaheer et al., "Deep Sets", NeurIPS
2017, arXiv 1703.06114, equation 4 (equivariant layers).  Shapes: own a [n, c, p], common b [n, q], scores z [n, c].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphveil.aggregation import SparseMatrix
from graphveil.models.networks.layers import dropout as dropped
from graphveil.models.networks.layers import glorot

Columns = Tensor | SparseMatrix
#: What a network reads: blocks of columns, the first of which may be sparse, or dense blocks side by side.
Blocks = Tensor | Sequence[Columns]
_TINY = 1e-12
# Klambauer et al., "Self-Normalizing Neural Networks", NeurIPS 2017.
_ALPHA, _SCALE = 1.6732632423543772, 1.0507009873554805


class Encoder(nn.Module):
    """Two layers and a head; `embed` is what the hops start from."""

    def __init__(self, dimension: int, hidden: int, classes: int, *, batch_norm: bool, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.first = nn.Linear(dimension, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.head = nn.Linear(hidden, classes)
        self.norm1, self.norm2 = _norm(hidden, batch_norm), _norm(hidden, batch_norm)

    def embed(self, x: Blocks) -> Tensor:
        """Return unit rows [n, hidden] of x [n, dimension]."""
        first = x if isinstance(x, Tensor) else x[0]
        h = dropped(selu(self.norm1(times(self.first, first))), self.dropout, self.training)
        return unit(self.second(h))

    def features(self, x: Blocks) -> Tensor:
        """Return what the head reads [n, hidden]."""
        return dropped(selu(self.norm2(self.embed(x))), self.dropout, self.training)

    def forward(self, x: Blocks) -> Tensor:
        return cast(Tensor, self.head(self.features(x)))


class HopClassifier(nn.Module):
    """One layer for each cached hop, and a head over all of them; reads the hops side by side [n, sum of widths]."""

    def __init__(self, widths: Sequence[int], hidden: int, classes: int, *, batch_norm: bool) -> None:
        super().__init__()
        self.widths = list(widths)
        self.bases = nn.ModuleList(nn.Linear(width, hidden) for width in widths)
        self.norm = _norm(hidden * len(self.widths), batch_norm)
        self.head = nn.Linear(hidden * len(self.widths), classes)

    def features(self, x: Tensor) -> Tensor:
        """Return what the head reads [n, hidden * hops]."""
        parts = torch.split(x, self.widths, dim=1)
        joined = torch.cat([base(part) for base, part in zip(self.bases, parts, strict=True)], dim=1)
        return selu(self.norm(unit(joined)))

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.head(self.features(x)))


class Stage(nn.Module):
    """Stage i of a progressive network: a layer for each of X_0..X_i and a head."""

    def __init__(
        self, widths: Sequence[int], hidden: int, classes: int, *, batch_norm: bool, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.widths, self.dropout = list(widths), dropout
        self.bases = nn.ModuleList(
            Base(width, hidden, deep=hop > 0, batch_norm=batch_norm) for hop, width in enumerate(widths)
        )
        self.head = nn.Linear(hidden * len(self.widths), classes)

    def go_on(self, earlier: nn.Module) -> None:
        """Start from the layers of the previous stage, which are trained further here."""
        for base, earlier_base in zip(self.bases, cast(Stage, earlier).bases, strict=False):
            base.load_state_dict(earlier_base.state_dict())

    def features(self, x: Blocks) -> Tensor:
        """Return what the head reads [n, hidden * (i + 1)]: unit rows of X_0..X_i, given as a list or side by side."""
        h = unit(torch.cat([base(part) for base, part in zip(self.bases, self._parts(x), strict=True)], dim=1))
        return dropped(h, self.dropout, self.training)

    def embed(self, x: Blocks) -> Tensor:
        """Return h_i [n, hidden], what the newest layer makes of X_i."""
        return cast(Tensor, self.bases[-1](self._parts(x)[-1]))

    def forward(self, x: Blocks) -> Tensor:
        return cast(Tensor, self.head(self.features(x)))

    def _parts(self, x: Blocks) -> Sequence[Columns]:
        return torch.split(x, self.widths, dim=1) if isinstance(x, Tensor) else x


class Base(nn.Module):
    """Layers over one hop, each s(x V): one over features, where two would memorise them, and two over noisy sums."""

    def __init__(self, width: int, hidden: int, *, deep: bool, batch_norm: bool) -> None:
        super().__init__()
        self.layer, self.norm = nn.Linear(width, hidden), _norm(hidden, batch_norm)
        self.deeper = nn.Sequential(nn.Linear(hidden, hidden), _norm(hidden, batch_norm)) if deep else None

    def forward(self, x: Columns) -> Tensor:
        hidden = selu(self.norm(times(self.layer, x)))
        return hidden if self.deeper is None else selu(self.deeper(hidden))


def times(layer: nn.Linear, x: Columns) -> Tensor:
    """Return a linear layer's output [n, k] for dense or sparse rows [n, d]."""
    if isinstance(x, Tensor):
        return cast(Tensor, layer(x))
    output: Tensor = x @ layer.weight.t().contiguous() + layer.bias
    return output


def unit(x: Tensor) -> Tensor:
    """Return rows scaled to length 1, differentiable; zero rows stay zero."""
    return cast(Tensor, _Unit.apply(x))  # type: ignore[no-untyped-call]


def selu(x: Tensor) -> Tensor:
    """Return SELU, whose slope is computed from its value."""
    return cast(Tensor, _Selu.apply(x))  # type: ignore[no-untyped-call]


def _norm(width: int, batch_norm: bool) -> nn.Module:
    return nn.BatchNorm1d(width) if batch_norm else nn.Identity()


class _Unit(torch.autograd.Function):
    """y = x / |x|, dx = (g - y (g . y)) / |x|: half of the time of autograd."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        # A row of zeros stays zero; division by 0 would make it NaN, and every sum that it enters.
        length = torch.linalg.vector_norm(x, dim=1, keepdim=True).clamp_min_(_TINY)
        y: Tensor = x / length
        ctx.save_for_backward(y, length)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        y, length = ctx.saved_tensors
        along = torch.linalg.vecdot(gradient, y).unsqueeze(1)
        return torch.addcmul(gradient, y, along, value=-1).div_(length)


class _Selu(torch.autograd.Function):
    """y = s(x), dx = g (scale, or y + scale alpha where y <= 0): no second exponential."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = torch.selu(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        # Slices of a wider gradient take many times as long.
        slope: Tensor = torch.ops.aten.elu_backward(gradient.contiguous(), _ALPHA, _SCALE, 1, True, y)
        return slope


class VoteHead(nn.Module):
    """Combines two scores for each class, side by side [n, 2 c]."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.head = nn.Linear(2 * classes, classes)
        with torch.no_grad():
            self.head.weight.copy_(torch.eye(classes).repeat(1, 2))
            self.head.bias.zero_()

    def features(self, x: Tensor) -> Tensor:
        """Return what the head reads: x itself."""
        return x

    def forward(self, x: Blocks) -> Tensor:
        return cast(Tensor, self.head(x))


class ClassReader(nn.Module):
    """Scores of every class from `own` p numbers about node and class, and `common` q about the node alone."""

    def __init__(self, own: int, common: int, hidden: int, *, generator: torch.Generator) -> None:
        super().__init__()
        self.own = glorot((own, hidden), generator)
        self.common = glorot((common, hidden), generator)
        self.bias1 = nn.Parameter(torch.zeros(hidden))
        self.alone = glorot((hidden, hidden), generator)
        self.together = glorot((hidden, hidden), generator)
        self.bias2 = nn.Parameter(torch.zeros(hidden))
        # At 0, so that training starts from the mean of the inputs `own`.
        self.head = nn.Parameter(torch.zeros(hidden))
        self.direct = nn.Parameter(torch.full((own,), 1 / own))

    def forward(self, own: Tensor, common: Tensor) -> Tensor:
        """Return scores [..., c], however many nodes and blocks come first.

        Args:
            own: [..., c, p] about a node and a class.
            common: [..., q] about a node.
        """
        h = functional.selu(own @ self.own + (common @ self.common + self.bias1).unsqueeze(-2))
        together = (h.mean(dim=-2) @ self.together + self.bias2).unsqueeze(-2)
        scores: Tensor = own @ self.direct + functional.selu(h @ self.alone + together) @ self.head
        return scores
