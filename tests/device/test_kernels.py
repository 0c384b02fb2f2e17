"""Kernels are compiled for two generations of GPUs, without one, and do no arithmetic that the CPU does not do."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("triton", reason="Triton is not installed")

#: Compiles every kernel and prints its name and the instructions that round, in a process of its own: here kernels
#: are run by the interpreter.
PROGRAM = r"""
import re, sys, warnings
warnings.simplefilter("ignore")
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from graphveil.aggregation import hop_kernel as hop
from graphveil.mechanisms.samplers import normal_kernel as normal
from graphveil.privacy.source import chacha_kernel as words
from graphveil.training import clip_kernel as clip

POINTERS = {
    "keys": "i32", "lists": "i32", "counts": "i32", "starts": "i32", "senders": "i32", "strips": "i16", "ends": "i64",
    "opened": "i64", "firsts": "i64", "stops": "i64", "owners": "i64", "weights": "fp32", "sums": "fp32", "x": "fp32",
    "deltas": "fp32", "dither": "i32", "scales": "fp64", "squares": "fp64", "whole": "fp64",
}
WIDE = {"first", "entries"}
CONSTANTS = {
    "BLOCKS": 64, "TILES": 1, "ROWS": 16, "COLUMNS": 64, "WIDE": 64, "FOLDS": 6, "WEIGHTED": True,
    "BITS": 6, "STEP": 2.0**-12, "CAP": 4096.0, "ROOM": 4048.0,
    "STEPS": 1023.5, "SHORTEST": 0.0, "LONGEST": 1e30, "LARGEST": 3e38,
}

def compiled(kernel, target, constants, **pointers):
    for single in (False, True):
        text = ptx(kernel, target, constants, {**POINTERS, **pointers}, single)
        rounding = sorted(set(re.findall(r"\b(?:fma|div|sqrt|rcp|ex2|lg2)\.[a-z.]*f(?:32|64)", text)))
        print(kernel.__name__, len(text) > 1000, ".local" in text, *rounding)

def ptx(kernel, target, constants, kinds, single):
    # `single`: all numbers are 1, which Triton compiles in, as it does where one of them is.
    signature, values = {}, {}
    for name in kernel.arg_names:
        if name in CONSTANTS:
            signature[name], values[name] = "constexpr", {**CONSTANTS, **constants}[name]
        elif name in kinds:
            signature[name] = "*" + kinds[name]
        elif single and name != "scale":
            signature[name], values[name] = "constexpr", 1
        else:
            signature[name] = "fp32" if name == "scale" else "i64" if name in WIDE else "i32"
    options = {"num_warps": 4, "enable_fp_fusion": False}
    return triton.compile(ASTSource(kernel, signature, values), target=target, options=options).asm["ptx"]

for kind in (80, 90):
    target = GPUTarget("cuda", kind, 32)
    compiled(words._numbers, target, {}, out="i32")
    compiled(normal._add_decided, target, {}, totals="fp32")
    compiled(normal._add_searched, target, {"TILES": 16}, totals="fp32")
    compiled(hop._scaled, target, {}, out="i16")
    compiled(hop._scaled, target, {"STEPS": 0.0}, out="fp32")
    compiled(hop._rows, target, {}, values="i16")
    compiled(hop._pieces, target, {"WEIGHTED": False}, values="fp32", totals="i64")
    compiled(clip._put_on_grids, target, {"WIDE": 2048}, rows="fp32")
    compiled(clip._clip, target, {"WIDE": 256}, owners="i32", out="fp32")
"""
EXACT = [
    ["_numbers"],
    ["_add_decided"],
    ["_add_searched"],
    ["_scaled", "div.rn.f64", "sqrt.rn.f64"],
    ["_scaled", "div.rn.f32", "sqrt.rn.f64"],
    ["_rows"],
    ["_pieces"],
    ["_put_on_grids"],
    ["_clip", "div.rn.f64", "sqrt.rn.f64"],
]


@pytest.mark.slow  # 15 s of a compiler
def test_kernels_are_compiled_and_round_as_the_cpu_does() -> None:
    """No sum is fused with a product, no quotient or root is approximate, nothing is moved out of registers."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, env=environment, timeout=300
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [[name, *rounding] for name, _, _, *rounding in lines] == [row for row in EXACT for _ in range(2)] * 2
    assert {(large, spilled) for _, large, spilled, *_ in lines} == {("True", "False")}
