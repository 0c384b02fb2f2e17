"""Audit of all holders but one, who put together what they were dealt, drew and received: do they learn its data?

    again     the same secrets of all holders and the same keys dealt to the others; new ones, which the server deals
              the one alone: all that the one and the server send them moves by uniform words, or they could unmask it
    beside    so do masked shares of the one plus the others' own shares of the same secret
    rounds    so do these from one round to the next: no mask is used twice
    cuts      so do the masks r of all holders together: the first holder is shown x + r

A correction for two of them is made of their own keys and stays as it was; nothing else may.  The server is not among
them: together they hold all masks.
"""

from __future__ import annotations

import builtins
import itertools
from dataclasses import replace
from typing import Final

import torch
from torch import Tensor

from graphveil.audit.federation.cases import audit_uniform
from graphveil.audit.federation.runs import AGAIN, NODES, Run, apart_setting, run_apart, sources_of
from graphveil.audit.verdict import Audit
from graphveil.federation.core.messages import KINDS, UNIFORM
from graphveil.federation.core.setting import Setting
from graphveil.federation.modes.propagation import row_blocks
from graphveil.privacy import Randomness, SeededRandomness
from graphveil.privacy.source.randomness import UInt64Array

_FALSE_ALARM: Final = 1e-6
_MASKED: Final = tuple(kind for kind, message in KINDS.items() if message.reveals == UNIFORM)


class _RecordingSource:
    """A source that remembers the bytes it gave, or gives those again that `repeated` holds."""

    void = "made data of an audit"

    def __init__(
        self,
        source: Randomness,
        earlier: list[builtins.bytes] | None = None,
        repeated: frozenset[builtins.bytes] = frozenset(),
    ) -> None:
        self._source, self._earlier, self._repeated = source, earlier, repeated
        self.drawn: list[builtins.bytes] = []

    def uint64(self, count: int) -> UInt64Array:
        return self._source.uint64(count)

    def bytes(self, count: int) -> builtins.bytes:
        drawn = self._source.bytes(count)
        place = len(self.drawn)
        # The same keys to the colluders and new ones to the victim: what still agrees between the runs was never the
        # victim's secret.
        if self._earlier is not None and place < len(self._earlier) and self._earlier[place] in self._repeated:
            drawn = self._earlier[place]
        self.drawn.append(drawn)
        return drawn


def audit_holders(mode: str, holders: int = 2, *, victim: int = 1, seed: int = 0) -> Audit:
    """Give all holders but one everything that they were dealt and received, and say what they could unmask.

    Args:
        mode: one with shares. holders: how many, 2 to 5. victim: the place of the one, from 0.
    """
    setting = apart_setting(mode, holders)
    victim_name = setting.names[victim]
    colluders = frozenset(setting.names) - {victim_name}
    first = _RecordingSource(SeededRandomness(seed + 1))
    run = run_apart(setting, {**sources_of(setting, 0, seed + 1), setting.server: first})
    keys = (row for to in colluders for body in _keys(run, setting, to) for row in body)
    dealt = frozenset(row.numpy().tobytes() for row in keys)
    second = _RecordingSource(SeededRandomness(seed + 2), first.drawn, dealt)
    rerun = run_apart(setting, {**sources_of(setting, 0, seed + 1), setting.server: second})
    words, same = _moved(run, rerun, setting, victim_name)
    words |= _by_round(run, setting, victim_name)
    if mode == "shared-linear":
        words |= _cuts(run, rerun, setting)
    named = f"federation {mode}, {holders} holders, all but {victim_name} together"
    uniform = audit_uniform(named, words, false_alarm=_FALSE_ALARM)
    unexpected = same - _own_corrections(setting)
    findings = (f"{unexpected} corrections more than their own follow from what they were dealt",) if unexpected else ()
    verdict = "broken" if findings else uniform.verdict
    return replace(uniform, target=named, verdict=verdict, notes=(*findings, *uniform.notes))


def _keys(run: Run, setting: Setting, to: str) -> list[Tensor]:
    keys: list[Tensor] = []
    for round in range(setting.publications + 1):
        keys += run.bodies(round, "mask-keys").get((setting.server, to, "mask-keys"), [])
    return keys


def _moved(run: Run, rerun: Run, setting: Setting, victim: str) -> tuple[dict[str, list[Tensor]], int]:
    """Return how far all moved that victim and server sent the colluders, and how many corrections did not move."""
    words: dict[str, list[Tensor]] = {}
    same = 0
    for round in range(setting.publications + 1):
        before, after = (each.bodies(round, *_MASKED) for each in (run, rerun))
        for (sender, to, kind), bodies in before.items():
            if sender not in (victim, setting.server) or to in (victim, setting.server):
                continue
            for body, other in zip(bodies, after[sender, to, kind], strict=True):
                # Differences of two runs: a constant that both share drops out, and what a fresh mask covers stays
                # uniform.
                moved = other - body
                if sender == setting.server and not bool(moved.any()):
                    same += 1
                else:
                    words.setdefault(f"{kind} from {sender} to {to} under other keys", []).append(moved)
                if sender == victim:
                    shares = [_colluders_share(each, setting, victim, round, to, kind, body) for each in (rerun, run)]
                    name = f"{kind} from {sender} to {to} beside the others' shares"
                    words.setdefault(name, []).append(moved + shares[0] - shares[1])
    return words, same


def _colluders_share(run: Run, setting: Setting, victim: str, round: int, to: str, kind: str, like: Tensor) -> Tensor:
    """Return the sum of the colluders' shares of what the victim sends a masked share of; zeros if they have none."""
    colluders, before = [name for name in setting.names if name != victim], max(round - 1, 0)
    states = run.states[before]
    candidates: list[Tensor] = []
    if kind == "masked-left" and setting.protocol.mode == "shared-linear":
        candidates = [states[name]["p"] for name in colluders]
    elif kind == "masked-right" and round:
        part = "w" if setting.protocol.mode == "shared-linear" else f"first/shares/{to}"
        slopes = [sent for (_, name, _), (sent,) in run.bodies(round, "gradient-share").items() if name != victim]
        candidates = [states[name][part] for name in colluders] if len(like) < NODES else slopes
    shares = [share for share in candidates if share.shape == like.shape]
    return torch.stack(shares).sum(dim=0) if shares else torch.zeros_like(like)


def _by_round(run: Run, setting: Setting, victim: str) -> dict[str, list[Tensor]]:
    """Return how far masked shares of the victim, beside the colluders', move from a round to the next."""
    before, after = (run.bodies(round, *_MASKED) for round in (AGAIN, AGAIN + 1))
    words: dict[str, list[Tensor]] = {}
    for (sender, to, kind), bodies in before.items():
        if sender == victim:
            for a, b in zip(bodies, after[sender, to, kind], strict=True):
                shares = [_colluders_share(run, setting, victim, round, to, kind, a) for round in (AGAIN + 1, AGAIN)]
                words.setdefault(f"{kind} from {sender} to {to} from round to round", []).append(
                    b - a + shares[0] - shares[1]
                )
    return words


def _cuts(run: Run, rerun: Run, setting: Setting) -> dict[str, list[Tensor]]:
    """Return how far the masks of cuts move with other keys, and from a round to the next."""
    features, weights = (NODES, setting.columns), (setting.columns, setting.model.width)
    steps = [(f"hop {hop}", features) for hop in range(setting.model.hops)]
    steps += [(f"step {round}", weights) for round in range(1, setting.publications + 1)]
    first, second = ([each.dealt(setting).cut_mask(*step) for step in steps] for each in (run, rerun))
    again_used = [b - a for a, b in itertools.pairwise(first) if a.shape == b.shape]
    moved = [b - a for a, b in zip(first, second, strict=True)]
    return {"masks of cuts under other keys": moved, "masks of cuts from one to the next": again_used}


def _own_corrections(setting: Setting) -> int:
    """How many corrections concern two colluders alone: one a block and hop, and two a round."""
    colluders = len(setting.names) - 1
    hops = setting.model.hops * len(row_blocks(NODES)) if setting.protocol.mode == "shared-linear" else 0
    return colluders * (colluders - 1) * (hops + 2 * setting.publications)
