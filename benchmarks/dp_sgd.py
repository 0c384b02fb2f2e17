"""CPU milliseconds of one private training step beside the plain step of the same network in the same run.

    python benchmarks/dp_sgd.py          (expected batch 256, layers 1433-64-64-7, ten batches of samples)

Steps alternate, so that other work on the machine slows both alike. Building the noise's table, once a run, is timed
apart. Also per-sample gradients by `torch.func.vmap`: what a step costs without closed-form norms; and, where it is
installed, a step of Opacus with its usual float noise.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional

from graphveil.privacy import SecureRandomness
from graphveil.training import PrivateDescent, PrivateSchedule
from timing import processor


def main() -> None:
    """Time the steps and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, nargs="+", default=[1433, 64, 64, 7])
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--noise", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=300)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    count = 10 * chosen.batch
    x, y = torch.randn(count, chosen.layers[0]), torch.randint(0, chosen.layers[-1], (count,))
    steps = {"plain": plain(chosen, x, y), "private": private(chosen, x, y)}
    times: dict[str, list[float]] = {name: [] for name in steps}
    first = {name: seconds(step) for name, step in steps.items()}
    for _ in range(chosen.repeats):
        for name, step in steps.items():
            times[name].append(seconds(step))
    programs = {"vmap gradients": vmap(chosen, x, y)}
    if find_spec("opacus") is not None:
        programs["opacus"] = opacus(chosen, x, y)
    for name, step in programs.items():
        times[name] = [seconds(step) for _ in range(6)][1:]
    base = statistics.fmean(times["plain"])
    print(f"layers {chosen.layers}, expected batch {chosen.batch}, noise multiplier {chosen.noise:g}; CPU ms")
    print(f"first private step, the noise's table included: {1e3 * first['private']:.0f}")
    print(f"{processor()}; ratios of means: noise is drawn for some steps at a time")
    print(f"{'step':>16}{'mean':>9}{'median':>9}{'least':>9}{'ratio':>8}")
    for name, measured in times.items():
        figures = statistics.fmean(measured), statistics.median(measured), min(measured)
        print(f"{name:>16}" + "".join(f"{1e3 * t:>9.2f}" for t in figures) + f"{figures[0] / base:>8.2f}")


def network(layers: list[int]) -> nn.Sequential:
    """A perceptron with SELU between its layers."""
    parts: list[nn.Module] = []
    for before, after in pairwise(layers):
        parts += [nn.Linear(before, after), nn.SELU()]
    return nn.Sequential(*parts[:-1])


def plain(chosen: argparse.Namespace, x: torch.Tensor, y: torch.Tensor) -> Callable[[], object]:
    """An ordinary Adam step on a random batch, where the samples lie."""
    model = network(chosen.layers).to(x.device)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)

    def step() -> None:
        rows = torch.randint(0, len(x), (chosen.batch,), device=x.device)
        optimiser.zero_grad(set_to_none=True)
        functional.cross_entropy(model(x.index_select(0, rows)), y[rows]).backward()
        optimiser.step()

    return step


def private(chosen: argparse.Namespace, x: torch.Tensor, y: torch.Tensor) -> Callable[[], object]:
    """Our step, noise from the secure source, where the samples lie."""
    schedule = PrivateSchedule(steps=10**9, rate=0.1, expected_batch=chosen.batch, noise_multiplier=chosen.noise)
    descent, randomness = PrivateDescent(network(chosen.layers).to(x.device), x, y, schedule), SecureRandomness()
    return lambda: descent.step(randomness)


def vmap(chosen: argparse.Namespace, x: torch.Tensor, y: torch.Tensor) -> Callable[[], object]:
    """Per-sample gradients of one batch, written out: no clipping, no noise, no update."""
    model = network(chosen.layers)
    parameters = {name: value.detach() for name, value in model.named_parameters()}

    def loss(values: dict[str, torch.Tensor], row: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(torch.func.functional_call(model, values, (row[None],)), label[None])

    gradients = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
    return lambda: gradients(parameters, x[: chosen.batch], y[: chosen.batch])


def opacus(chosen: argparse.Namespace, x: torch.Tensor, y: torch.Tensor) -> Callable[[], object]:
    """A step of Opacus: a Poisson batch, gradients of every sample, clipping, float noise, Adam."""
    from opacus.grad_sample import GradSampleModule
    from opacus.optimizers import DPOptimizer

    model = GradSampleModule(network(chosen.layers))
    optimiser = DPOptimizer(
        torch.optim.Adam(model.parameters(), lr=0.01, fused=True),
        noise_multiplier=chosen.noise,
        max_grad_norm=1.0,
        expected_batch_size=chosen.batch,
    )

    def step() -> None:
        rows = (torch.rand(len(x)) < 0.1).nonzero()[:, 0]
        optimiser.zero_grad(set_to_none=True)
        functional.cross_entropy(model(x.index_select(0, rows)), y[rows]).backward()
        optimiser.step()

    return step


def seconds(run: Callable[[], object]) -> float:
    """CPU seconds of one run of `run`."""
    start = time.process_time()
    run()
    return time.process_time() - start


if __name__ == "__main__":
    main()
