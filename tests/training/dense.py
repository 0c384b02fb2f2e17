"""The scheme of `training.calibration` written out over an n x n array: what the sparse one must agree with."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu, selu

from graphveil.models.networks.layers import dropout
from graphveil.training import Calibration, Schedule


def dense_calibrated(
    model: nn.Module,
    name: str,
    x: Tensor,
    noisy: Tensor,
    objective: Any,
    schedule: Schedule,
    calibration: Calibration,
    *,
    seed: int,
) -> list[tuple[Tensor, Tensor]]:
    """Train in place on features x [n, d] and A [receiver, sender]; return (A, logits) as evaluated in every epoch."""
    outside = 1 - torch.eye(len(noisy))
    a = noisy.clone().requires_grad_()
    network = torch.optim.Adam(model.parameters(), lr=schedule.learning_rate, weight_decay=schedule.weight_decay)
    edges = torch.optim.Adam([a], lr=calibration.learning_rate)
    history = []
    torch.manual_seed(seed)
    for _ in range(schedule.epochs):
        model.train()
        network.zero_grad()
        objective.loss(forward(name, model, x, a.detach())).backward()
        network.step()
        model.eval()
        clean = forward(name, model, x, a)
        history.append((a.detach().clone(), clean.detach()))
        slope = torch.autograd.grad(objective.loss(clean), a)[0]
        if calibration.symmetric:
            slope = (slope + slope.T) / 2
        with torch.no_grad():
            a.grad = (slope + 2 * calibration.lambda1 * (a - noisy) + calibration.lambda2) * outside
            edges.step()
            a.clamp_(0, 1).mul_(outside)
    return history


def forward(name: str, model: Any, x: Tensor, a: Tensor) -> Tensor:
    """The logits of a backbone over the matrix of weights."""
    first = layer(name, model, a, x, 1)
    return layer(name, model, a, dropout(selu(first), model.dropout, model.training), 2)


def layer(name: str, model: nn.Module, a: Tensor, x: Tensor, number: int) -> Tensor:
    """One layer, with no sparse structure at all."""
    bias = model.get_parameter(f"bias{number}")
    h, looped = x @ model.get_parameter(f"weight{number}"), a + torch.eye(len(a))
    if name == "gcn":
        return looped.sum(1).rsqrt()[:, None] * looped * looped.sum(0).rsqrt() @ h + bias
    if name == "sage":
        out, degree = h.shape[1] // 2, a.sum(1, keepdim=True)
        mean = torch.where(degree > 0, a / torch.where(degree > 0, degree, 1.0), 0.0)
        return mean @ h[:, :out] + h[:, out:] + bias
    attention = model.get_parameter(f"attention{number}")
    heads = h.view(len(a), attention.shape[1], -1)
    sender, receiver = (heads * attention[0]).sum(-1), (heads * attention[1]).sum(-1)
    raised = looped[:, :, None] * leaky_relu(sender[None] + receiver[:, None], 0.2).exp()
    return torch.einsum("tsh,shc->thc", raised / raised.sum(1, keepdim=True), heads).reshape(len(a), -1) + bias
