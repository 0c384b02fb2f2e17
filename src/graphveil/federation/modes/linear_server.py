"""The server of mode "shared-linear": it deals masks, opens z, trains the layers above, and moves the weights by A.

    z = sum of the holders' shares + U V + U' A       the server knows the last two: masks of P, W_0 and G that it dealt
    velocity <- momentum velocity + dL/dz             A <- A - rate velocity, shortened to its bound (see `dither`)

Shapes: z [t, h] of those who train, A [t, h].
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor, nn

from graphveil.federation.core import states
from graphveil.federation.core.networks import Combination, standardise
from graphveil.federation.core.rows import REST, TRAIN, VALIDATION, Rows, receive_rows
from graphveil.federation.core.setting import Setting
from graphveil.federation.crypto import ring
from graphveil.federation.crypto.masks import MaskKey
from graphveil.federation.crypto.truncation import deal_truncation
from graphveil.federation.effects import Checkpoint, Program, Receive, Send
from graphveil.federation.modes import propagation
from graphveil.federation.modes.linear import hops_of, last_hops_of
from graphveil.models.networks.layers import glorot


class LinearNetwork(nn.Module):
    """h = tanh(standardise(z) V), then hidden layers; rows of z have length 1 before V."""

    def __init__(self, setting: Setting, *, generator: torch.Generator) -> None:
        super().__init__()
        width = setting.model.width
        self.mixing = glorot((width, width), generator)
        self.rest = Combination("mean", 1, width, setting.model.layers, setting.model.dropout, generator=generator)

    def forward(self, z: Tensor, noise: float = 0.0, like: Tensor | None = None) -> Tensor:
        """Return z_L [n, h].

        Args:
            z: of some nodes, [n, h].
            noise: its root-mean-square length in a row of those who train.
            like: z of those who train; None: z is theirs.
        """
        combined: Tensor = self.rest([torch.tanh(standardise(z, 1.0, noise, like=like) @ self.mixing)])
        return combined


def linear_server(run: states.RunContext, nodes: int, rows: int) -> Program[LinearNetwork]:
    """The server's program in mode "shared-linear": return its network, as of the round that was kept.

    Args:
        run: its run; the generator draws initial weights, the randomness keys of masks and shares of A.
        nodes: n, rows that all holders share.
        rows: how many train; -1 where only the label holder knows.
    """
    setting = run.setting
    network = LinearNetwork(setting, generator=run.generator)
    optimiser = setting.training.optimiser(network.parameters())
    dealt = yield from _open(run, nodes, rows)
    memory = _Memory.start(dealt)
    if run.state is not None:
        states.load_network(network, optimiser, run.state)
        memory = _Memory(**{name: run.state[f"memory/{name}"] for name in _Memory.__dataclass_fields__})
    best = {} if run.state is None else {name: v for name, v in run.state.items() if name.startswith("kept/")}
    training = _Training(dealt, network, optimiser, memory, best)
    state = partial(_snapshot, training)
    if run.state is None:
        yield Checkpoint(0, state)
    for round in run.rounds_left:
        yield from _train(training, round)
        yield Checkpoint(round, state)
    states.load_module("kept", network, training.best)
    if run.done <= setting.publications:
        # The products of W, X W and its hops but the last, with A of the round that was kept.
        weights = ring.matmul(dealt.u.T.contiguous(), _ring_units(memory.best, setting))
        yield from deal_truncation(dealt.keys, weights, setting.protocol.bits, "weights")
        yield from deal_for_inputs(setting, dealt.rows, dealt.keys, dealt.parts)
        yield Checkpoint(setting.publications + 1, state)
    if run.done < setting.rounds:
        yield from _finish(dealt, network, memory)
        yield Checkpoint(setting.rounds, state)
    return network


@dataclass(frozen=True)
class _Dealt:
    """What the server knows of a session's masks.

    Attributes:
        parts: name of a product with the holders' matrices -> its part.
        gram: U' [m, t].
        u: U [t, d] of those who train.
        z: its part U V of Z_0 [m, h]; zeros in a resumed session.
    """

    run: states.RunContext
    rows: Rows
    keys: Mapping[str, MaskKey]
    parts: Mapping[str, Tensor] = field(repr=False)
    gram: Tensor = field(repr=False)
    u: Tensor = field(repr=False)
    z: Tensor = field(repr=False)


def _summed_masks(keys: Mapping[str, MaskKey], label: str, shape: tuple[int, ...]) -> Tensor:
    """Return the sum of all holders' masks of a label, int64 of this shape."""
    return torch.stack([key.expand(label, shape) for key in keys.values()]).sum(dim=0)


def _open(run: states.RunContext, nodes: int, rows: int) -> Program[_Dealt]:
    """Deal keys, and take part in the products of the set-up."""
    setting, bits, width = run.setting, run.setting.protocol.bits, run.setting.model.width
    keys = yield from propagation.deal_keys(setting.names, randomness=run.randomness)
    announced = yield from receive_rows(setting, nodes, rows)
    hops = hops_of(setting, announced) if run.state is None else []
    parts = yield from propagation.serve_walks(
        setting.names, keys, setting.entries, [*hops, *last_hops_of(setting, announced)], nodes
    )
    m, t = len(announced.train_val), len(announced.train)
    u = _summed_masks(keys, "P", (m, setting.columns))
    z = torch.zeros(m, width, dtype=torch.int64)
    if run.state is None:
        for walk in hops:
            yield from deal_truncation(keys, parts[walk.name], bits, walk.name)
        yield from deal_truncation(keys, ring.matmul(u, u[:t].T.contiguous()), bits, "gram")
        z = ring.matmul(u, _summed_masks(keys, "W", (setting.columns, width)))
    return _Dealt(run, announced, keys, parts, _summed_masks(keys, "G", (m, t)), u[:t], z)


@dataclass
class _Memory:
    """What the server keeps between rounds.

    Attributes:
        part: its part of Z_0, int64 [m, h].
        velocity, a: float32 and float64 [t, h]; a is a whole number of units.
        best, z: A of the round that was kept, and its z of those who train or validate [m, h].
    """

    part: Tensor
    velocity: Tensor
    a: Tensor
    best: Tensor
    z: Tensor

    @staticmethod
    def start(dealt: _Dealt) -> _Memory:
        shape = (len(dealt.rows.train), dealt.run.setting.model.width)
        zeros = torch.zeros(shape, dtype=torch.float64)
        return _Memory(dealt.z, torch.zeros(shape), zeros, zeros, torch.zeros(len(dealt.rows.train_val), shape[1]))


@dataclass(frozen=True)
class _Training:
    """The server in a run; `best`: its network of the round that was kept, as in checkpoints."""

    dealt: _Dealt
    network: LinearNetwork
    optimiser: torch.optim.Optimizer
    memory: _Memory
    best: dict[str, Tensor]


def _train(training: _Training, round: int) -> Program[None]:
    """Open z of one round, take the steps, have validation nodes scored, and share the new A."""
    dealt, memory = training.dealt, training.memory
    setting, rows = dealt.run.setting, dealt.rows
    a = memory.a
    part = ring.matmul(dealt.gram, _ring_units(a, setting)) + memory.part
    opened = {}
    for group in rows.groups(setting, round):
        opened[group] = yield from open_rows(setting, part[rows.slice_of(group)])
    z = opened[TRAIN].requires_grad_()
    yield from _steps(training, z, setting.steps(round))
    if setting.validates(round):
        group = VALIDATION if VALIDATION in opened else TRAIN
        z_of = {name: rows.detach() for name, rows in opened.items()}
        yield Send(setting.label_holder, "hidden", hidden_of(training.network, z_of[group], z_of[TRAIN], setting))
        if int((yield Receive(setting.label_holder, "kept-round", (1,)))):
            memory.best, memory.z = a, torch.cat(list(z_of.values()))
            training.best.update(states.module_state("kept", training.network))
    # Computed from the noisy opening and from labels as reported, so it costs nothing more.
    memory.velocity = setting.training.momentum * memory.velocity + (z.grad if z.grad is not None else 0.0)
    memory.a = bounded(memory.a - setting.training.shared_rate * memory.velocity.double(), setting)
    # After the last round, A of the round that was kept: holders save their shares of it before they publish with it.
    units = _ring_units(memory.best if round == setting.publications else memory.a, setting)
    # In shares: rows of equal labels are alike, and all shares but any one are uniform together.
    second = setting.names[1]
    expanded = [key.expand(f"A {round}", tuple(units.shape)) for name, key in dealt.keys.items() if name != second]
    yield Send(second, "gradient-share", units - torch.stack(expanded).sum(dim=0))


def open_rows(setting: Setting, part: Tensor) -> Program[Tensor]:
    """Return rows of z, float32 [rows, h], the sum of the holders' shares and the server's part.

    Args:
        part: the server's, int64 [rows, h].
    """
    total = part.clone()
    for name in setting.names:
        total += yield Receive(name, "noisy-share", tuple(part.shape))
    return ring.decode(total, 2 * setting.protocol.bits)


def _noise(setting: Setting) -> float:
    """Return the length of the noise in a row of those who train: every holder adds all of its own."""
    return setting.publication.noise * math.sqrt(len(setting.names))


def _steps(training: _Training, z: Tensor, steps: int) -> Program[None]:
    """Take the steps of one publication with the label holder; z's gradient of the last one stays on it."""
    setting, network = training.dealt.run.setting, training.network
    noise = _noise(setting)
    network.train()
    for _ in range(steps):
        z.grad = None
        hidden = network(z, noise)
        yield Send(setting.label_holder, "hidden", hidden.detach())
        gradient = yield Receive(setting.label_holder, "hidden-gradient", tuple(hidden.shape))
        training.optimiser.zero_grad()
        hidden.backward(gradient)
        training.optimiser.step()


def hidden_of(network: LinearNetwork, z: Tensor, trained: Tensor, setting: Setting) -> Tensor:
    """Return the last hidden layer of some rows, float32 [., h].

    Args:
        z: of these rows, float32 [., h].
        trained: z of those who train, float32 [t, h].
    """
    # Standardised by those who train: another group's own mean and length would give its rows another meaning.
    # Without dropout: validation should not depend on which units happened to be dropped.
    network.eval()
    with torch.no_grad():
        hidden: Tensor = network(z, _noise(setting), trained)
    return hidden


def _ring_units(a: Tensor, setting: Setting) -> Tensor:
    """Return A, which is a whole number of units, as ring elements."""
    return ring.encode(a, setting.protocol.bits)


def bounded(a: Tensor, setting: Setting) -> Tensor:
    """Return A in whole units, shortened so that |W| never passes C' where epsilon is finite.

    Args:
        a: float64 [t, h].
    """
    unit = 2.0**-setting.protocol.bits
    if setting.publication.public:
        return torch.round(a / unit) * unit
    # Rounded towards 0: rounding to the nearest would lengthen A by up to sqrt(t h) / 2 units.
    # A margin of 2^-30: the bound must hold after rounding, or W could pass C'.
    longest = setting.bounds.longest_a(len(a)) * (1 - 2.0**-30)
    return torch.trunc(a * min(1.0, longest / max(float(a.norm()), 1e-300)) / unit) * unit


def deal_for_inputs(
    setting: Setting, rows: Rows, keys: Mapping[str, MaskKey], parts: Mapping[str, Tensor]
) -> Program[None]:
    """Take part in the products of X W and its hops but the last.

    Args:
        rows: which are opened.
        parts: of each product, by name.
    """
    # sum_k U_k sum_{j != k} V_j of the blocks of X and W.
    first = hops_of(setting, rows)[0]
    shape = (setting.columns, setting.model.width)
    weights = {name: keys[name].expand("weights of X", shape) for name in setting.names}
    product = torch.zeros(rows.nodes, setting.model.width, dtype=torch.int64)
    for name in setting.names:
        block = setting.blocks[name]
        other_masks = torch.stack([weights[other][block] for other in setting.names if other != name]).sum(dim=0)
        product += ring.matmul(first.mask(keys[name], rows.nodes, name)[:, block].contiguous(), other_masks)
    yield from deal_truncation(keys, product, setting.protocol.bits, "inputs")
    for walk in last_hops_of(setting, rows)[:-1]:
        yield from deal_truncation(keys, parts[walk.name], setting.protocol.bits, walk.name)


def _finish(dealt: _Dealt, network: LinearNetwork, memory: _Memory) -> Program[None]:
    """Open the rows that were never opened; send the label holder the hidden layer of all."""
    setting, rows = dealt.run.setting, dealt.rows
    last = last_hops_of(setting, rows)[-1]
    z = {REST: (yield from open_rows(setting, dealt.parts[last.name]))}
    z |= {group: memory.z[rows.slice_of(group)] for group in (TRAIN, VALIDATION)}
    hidden = torch.zeros(rows.nodes, setting.model.width)
    for group in (TRAIN, VALIDATION, REST):
        if len(nodes := rows.of(group)):
            hidden[nodes] = hidden_of(network, z[group], z[TRAIN], setting)
    yield Send(setting.label_holder, "hidden", hidden)


def _snapshot(training: _Training) -> dict[str, Tensor]:
    # Copies: A of the round that was kept may be A itself, and a file holds no tensor under two names.
    memory = training.memory
    return {
        **states.network_state(training.network, training.optimiser),
        **{f"memory/{name}": getattr(memory, name).clone() for name in _Memory.__dataclass_fields__},
        **training.best,
    }
