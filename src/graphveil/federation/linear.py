"""Mode "shared-linear": z_i = P_i W on shares, opened to the server alone, with every holder's noise inside.

    P_i = S_i^K X       on shares, once (see `onceonly`)         W = sum of the holders' shares, trained by descent
    z_i + sum_k noise_k -> server:   h_i = unit( tanh( z_i V_i ) ),  combine, hidden layers, the label holder
    dz_i                shared out by the server, to i and j for each j (its rows in the clear would show the labels)
    dW_j = sum_i P_ij^T dz_i      the pair (i, j) alone, so that two shares are truncated, never more

Nothing is opened between holders.  Each holder adds all the noise that its own guarantee needs.
Source: ours; the opened first layer of Chen et al., IJCAI 2022, gives features away (docs/federation.md).
Shapes: P_ij [n, d_j], W_j [d_j, h], z_i [n, h].
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from graphveil.federation import ring
from graphveil.federation.holder import Holding
from graphveil.federation.labels import LabelDesk
from graphveil.federation.masks import MaskKey
from graphveil.federation.messages import Receive, Send
from graphveil.federation.onceonly import propagate_once, short_rows
from graphveil.federation.products import Left, Product, Talk, multiply, set_up
from graphveil.federation.programs import Checkpoint
from graphveil.federation.publication import Publisher
from graphveil.federation.setting import Setting
from graphveil.federation.sharing import reconstruct, truncate
from graphveil.federation.states import State, load_publisher, publisher_state
from graphveil.privacy import Randomness


def linear_lefts(setting: Setting, nodes: int) -> dict[tuple[str, str], Left]:
    """Return (i, owner) -> the owner's part of P_i: all its columns at i, its own features' columns elsewhere."""
    total = sum(member.columns for member in setting.members)
    found = {}
    for i in setting.names:
        for member in setting.members:
            others = tuple(name for name in setting.names if name != member.name)
            columns = total if i == member.name else member.columns
            found[i, member.name] = Left(f"{i}:{member.name}", member.name, others, nodes, columns)
    return found


def forward_products(setting: Setting, nodes: int) -> list[Product]:
    """Return the products of z_i = P_i W, all parts with everybody's shares of W."""
    lefts = linear_lefts(setting, nodes).values()
    return [Product(left, other, setting.width) for left in lefts for other in left.others]


def backward_products(setting: Setting, nodes: int) -> list[Product]:
    """Return the products of dW_j = P_ij^T dz_i, each within the pair (i, j)."""
    lefts, found = linear_lefts(setting, nodes), []
    for i in setting.names:
        for j in setting.names:
            if i != j:
                found.append(Product(lefts[i, i], j, setting.width, transposed=True))
                found.append(Product(lefts[i, j], i, setting.width, transposed=True))
    return found


def next_of(setting: Setting, name: str) -> str:
    """Return the holder with whom i shares the gradient of its own block P_ii."""
    names = setting.names
    return names[(names.index(name) + 1) % len(names)]


def start_scale(setting: Setting) -> float:
    """Return the largest entry of a holder's initial share of W: the sum's Frobenius norm is at most C / 2."""
    total = sum(member.columns for member in setting.members)
    free = (6.0 / (total + setting.width)) ** 0.5 / len(setting.members) ** 0.5
    bound = setting.clip / 2 / (total * setting.width) ** 0.5 / len(setting.members)
    return float(free if setting.publication.public else min(free, bound))


def linear_holder(
    me: str,
    setting: Setting,
    holding: Holding,
    *,
    randomness: Randomness,
    done: int = 0,
    state: State | None = None,
) -> Talk:
    """The program of one holder; returns its shares of W, its publisher, and at the label holder the predictions.

    Args:
        done: rounds that are finished; state: as of then, of a checkpoint.
    """
    nodes, names, bits = holding.nodes, setting.names, setting.bits
    sizes = {member.name: member.columns for member in setting.members}
    kept = (state or {}).items()
    matrices = {name.removeprefix("p/"): part for name, part in kept if name.startswith("p/")}
    if not matrices:
        matrices = yield from _propagated(me, setting, holding, sizes)
    lefts = linear_lefts(setting, nodes)
    masked = yield from set_up(me, setting.server, list(lefts.values()), matrices, transposes=True)
    turned = {name: matrix.T.contiguous() for name, matrix in matrices.items()}
    scale = start_scale(setting)
    w = {name: ring.encode(_uniform((sizes[name], setting.width), randomness) * scale, bits) for name in names}
    publisher = Publisher(setting.publication, MaskKey.fresh(randomness))
    if state is not None:
        w = {name: state[f"w/{name}"] for name in names}
        load_publisher(publisher, state)
        if holding.desk is not None:
            holding.desk.load(state)
    if holding.desk is not None:
        yield from holding.desk.announce(setting)
    forward, backward = forward_products(setting, nodes), backward_products(setting, nodes)
    for round in range(done + 1, setting.publications + 1):
        whole = torch.cat([w[name] for name in names])
        full = {f"{name}:{name}" for name in names}
        rights = {p: whole if p.left.name in full else w[p.left.owner] for p in forward}
        found = yield from multiply(me, setting.server, masked, forward, rights, f"forward {round}")
        publisher.count(round, whole)
        for i in names:
            local = ring.matmul(matrices[f"{i}:{me}"], whole if i == me else w[me])
            share = reconstruct([local, *(part for p, part in found.items() if p.left.name.startswith(f"{i}:"))])
            noise = publisher.noise_for(f"{i} {round}", whole, (nodes, setting.width))
            yield Send(setting.server, "noisy-share", share + ring.encode(noise, 2 * bits))
        if holding.desk is not None:
            yield from holding.desk.steps(setting, nodes, round)
        slopes: dict[tuple[str, str], Tensor] = {}
        for i in names:
            for j in names:
                if i != j and me in (i, j):
                    slopes[i, j] = yield Receive(setting.server, "gradient-share", (nodes, setting.width))
        yield from _descend(me, setting, masked, turned, backward, slopes, w, round)
        yield Checkpoint(round, partial(_snapshot, matrices, dict(w), publisher, holding.desk), publisher.spent)
    return {"shares": w, "publisher": publisher, "desk": holding.desk}


def _propagated(me: str, setting: Setting, holding: Holding, sizes: dict[str, int]) -> Talk:
    """Return this holder's parts of every P_i: "i:me" -> ring elements."""
    names, x = setting.names, short_rows(holding.features, len(setting.members))
    mine, theirs = yield from propagate_once(
        me, setting.server, names, sizes, holding.edge_index, x, setting.hops, setting.bits
    )
    return {f"{i}:{me}": part for i, part in theirs.items()} | {
        f"{me}:{me}": torch.cat([mine[name] for name in names], dim=1)
    }


def _snapshot(
    matrices: dict[str, Tensor], w: dict[str, Tensor], publisher: Publisher, desk: LabelDesk | None
) -> dict[str, Tensor]:
    found = {f"p/{name}": part for name, part in matrices.items()} | {f"w/{name}": part for name, part in w.items()}
    found |= publisher_state(publisher)
    return found | (desk.state() if desk is not None else {})


def _descend(
    me: str,
    setting: Setting,
    masked: Any,
    turned: dict[str, Tensor],
    products: list[Product],
    slopes: dict[tuple[str, str], Tensor],
    w: dict[str, Tensor],
    round: int,
) -> Talk:
    """Take one step of descent on the shares of W, pair by pair."""
    names, bits = setting.names, setting.bits
    rights = {}
    for product in products:
        i, owner = product.left.name.split(":")
        if product.other == me:
            rights[product] = slopes[i, me] if i == owner else slopes[i, owner]
    found = yield from multiply(me, setting.server, masked, products, rights, f"backward {round}")
    starts = dict(zip(names, torch.tensor([0, *(m.columns for m in setting.members)]).cumsum(0).tolist(), strict=False))
    widths = {member.name: member.columns for member in setting.members}

    def block(rows: Tensor, j: str) -> Tensor:
        return rows[starts[j] : starts[j] + widths[j]]

    for (i, j), slope in slopes.items():
        full, part = f"{i}:{i}", f"{i}:{j}"
        shares = {
            product.left.name: share
            for product, share in found.items()
            if {product.other, product.left.owner} == {i, j}
        }
        local = ring.matmul(turned[full], slope) if me == i else None
        own = block(local, j) if local is not None else ring.matmul(turned[part], slope)
        w[j] = w[j] - truncate(own + block(shares[full], j) + shares[part], bits, first=me == i)
        if next_of(setting, i) == j:
            own = block(shares[full], i) + (block(local, i) if local is not None else 0)
            w[i] = w[i] - truncate(own, bits, first=me == i)


def _uniform(shape: tuple[int, int], randomness: Randomness) -> Tensor:
    words = randomness.uint64(shape[0] * shape[1])
    return torch.from_numpy((words >> 11).astype("float64") * 2.0**-52 - 1.0).reshape(shape)
