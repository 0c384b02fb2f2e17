"""Audit of a server that keeps everything it dealt and received, in runs that differ in one thing at a time.

    share    what a holder's share of z holds beside what it must: share - P_k W_k - products = mask + noise
    once     uniform to the server; so is what is left of two rounds' (no mask twice)
    again    the same keys of the server, other secrets of the holders: shares of z, P and W move by uniform words,
             or they were the server's to know
    sum      all shares together: z + noise, with all the noise there has to be, down to the lowest bits
    resumed  a round that runs again publishes the same bytes under new masks; with other data under new noise

Other modes send the server no shares: only what may be sent is sent, on the noise's grid, and the same after a resume.
Whatever is uniform is tested by chi-square of the highest and the lowest bits.  Shapes: P_k [n, d], W_k [d, h].
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import torch
from scipy import stats
from torch import Tensor

from graphveil.audit.federation.cases import audit_uniform
from graphveil.audit.federation.runs import AGAIN, Run, apart_setting, run_apart, sources_of
from graphveil.audit.verdict import Audit
from graphveil.federation.core.messages import KINDS, UNIFORM
from graphveil.federation.core.setting import Setting

#: That a right protocol is called broken: half for what has to be uniform, half for noise, in five tests at most.
_FALSE_ALARM: Final = 1e-6
_LEVEL: Final = _FALSE_ALARM / 10
#: What holders may send the server.
ALLOWED: Final[Mapping[str, frozenset[str]]] = {
    "shared-linear": frozenset({"noisy-share", "labelled-rows", "hidden-gradient"}),
    "individual": frozenset({"embeddings", "labelled-rows", "hidden-gradient"}),
    "paper": frozenset({"embeddings", "labelled-rows", "hidden-gradient"}),
    "guesses": frozenset(),
}


def audit_dealer(mode: str, holders: int = 2, *, seed: int = 0) -> Audit:
    """Give the server of a mode everything that it dealt and received, and say what it could tell.

    Args:
        holders: how many, 2 to 5.
    """
    setting = apart_setting(mode, holders)
    run = run_apart(setting, sources_of(setting, seed + 1, seed + 1))
    rerun = run_apart(setting, sources_of(setting, seed + 1, seed + 2))
    resumed = run_apart(setting, sources_of(setting, seed + 3, seed + 3), before=run)
    other = run_apart(setting, sources_of(setting, seed + 4, seed + 4), before=run, changed=True)
    words = _repeated(run, resumed)
    findings = [*_kinds(run, setting), *_published_again(run, resumed, setting)]
    if mode == "shared-linear":
        words |= _masked(run, rerun, resumed, setting)
        findings += _noise(run, other, setting)
    elif mode != "guesses":
        findings += _grid(run, other, setting)
    uniform = audit_uniform(
        f"federation {mode}, {holders} holders, server with dealt keys", words, false_alarm=_FALSE_ALARM
    )
    verdict = "broken" if findings else uniform.verdict
    return replace(
        uniform, target=uniform.target.removesuffix(" (shares)"), verdict=verdict, notes=(*findings, *uniform.notes)
    )


# ---- shared-linear: shares ----


def _masked(run: Run, rerun: Run, resumed: Run, setting: Setting) -> dict[str, list[Tensor]]:
    """Return what has to be uniform to the server, by what it is."""
    rounds = range(1, setting.publications + 1)
    first, second, third = (_added(each, setting) for each in (run, rerun, resumed))
    words: dict[str, list[Tensor]] = {}
    for name in setting.names:
        words[f"the share of {name} less what was dealt"] = [first[name, number] for number in rounds]
        words[f"what {name} adds, from round to round"] = [first[name, n] - first[name, n - 1] for n in rounds[1:]]
        words[f"the share of {name} under other secrets of the holders"] = [
            first[name, number] - second[name, number] for number in rounds
        ]
        words[f"what {name} adds before and after a resume"] = [first[name, AGAIN] - third[name, AGAIN]]
        for part, place in (("p", 0), ("w", 1)):
            share, other_share = (each.states[place][name][part] for each in (run, rerun))
            words[f"the share of {part.upper()} that {name} keeps, under other secrets"] = [share - other_share]
    return words


def _added(run: Run, setting: Setting) -> dict[tuple[str, int], Tensor]:
    """Return mask and noise of each holder in each round [n, h]: its share less what it must be."""
    start = min(run.states)
    dealt = run.dealt(setting)
    p = {name: run.states[start][name]["p"] for name in setting.names}
    sums = {}
    for number, sender, sent in run.messages:
        if sent.kind == "noisy-share":
            w = {name: run.states[number - 1][name]["w"] for name in setting.names}
            sums[sender, number] = sent.body - dealt.share_of_z(sender, p, w, number)
    return sums


def _sums(run: Run, setting: Setting) -> dict[int, Tensor]:
    """Return what the server opens in each round, words [n, h]."""
    totals: dict[int, Tensor] = {}
    for number, _, sent in run.messages:
        if sent.kind == "noisy-share":
            totals[number] = totals.get(number, torch.zeros_like(sent.body)) + sent.body
    return totals


def _noise(run: Run, other: Run, setting: Setting) -> list[str]:
    """Say what is wrong with the noise of the sum: too small, with bits that are always the same, or used twice."""
    to, rounds = setting.publication, range(1, setting.publications + 1)
    step = math.floor(math.log2(to.clip)) + 2 * setting.protocol.bits - to.bits
    added, other_added = _added(run, setting), _added(other, setting)
    noise = torch.stack([torch.stack([added[name, n] for name in setting.names]).sum(dim=0) for n in rounds])
    noise_again = torch.stack([other_added[name, AGAIN] for name in setting.names]).sum(dim=0)
    scale = 2.0 ** (2 * setting.protocol.bits) * to.sigma * to.clip * math.sqrt(len(setting.members))
    findings = []
    # Too small and not merely different: masks that do not cancel only add, and what protects is that none is missing.
    if _too_small(noise, scale):
        findings.append("the sum has less noise than all holders owe it")
    # The four bits right below the noise's steps: without dither they are those of the data itself.
    low = (noise & ((1 << step) - 1)) >> (step - 4)
    if stats.chisquare(torch.bincount(low.flatten(), minlength=16).numpy()).pvalue < _LEVEL:
        findings.append("bits of the sum below the steps of the noise are not random")
    # Fresh noise twice has twice the variance; the same noise would leave nothing of it in the difference.
    if _too_small(noise_again - noise[AGAIN - 1], math.sqrt(2.0) * scale):
        findings.append("a round was published again with other data under the same noise")
    return findings


def _too_small(numbers: Tensor, deviation: float) -> bool:
    """Whether numbers are too small to be normal ones of this deviation."""
    squares = float((numbers.double() / deviation).square().sum())
    return squares < float(stats.chi2.ppf(_LEVEL, numbers.numel()))


# ---- all modes ----


def _repeated(run: Run, resumed: Run) -> dict[str, list[Tensor]]:
    """Return how far everything masked moved between a round and the same round after a resume."""
    uniform = [kind for kind, message in KINDS.items() if message.reveals == UNIFORM]
    before, after = (each.bodies(AGAIN, *uniform) for each in (run, resumed))
    return {
        f"{kind} from {sender} to {to} before and after a resume": [
            a - b for a, b in zip(bodies, after[sender, to, kind], strict=True)
        ]
        for (sender, to, kind), bodies in before.items()
    }


def _kinds(run: Run, setting: Setting) -> list[str]:
    """List what was sent to the server and must not be."""
    sent = {message.kind for _, _, message in run.messages if message.to == setting.server}
    return [f"{kind} was sent to the server" for kind in sorted(sent - ALLOWED[setting.protocol.mode])]


def _published_again(run: Run, resumed: Run, setting: Setting) -> list[str]:
    """List what is published with other bytes in a round and in the same round after a resume."""
    if setting.protocol.mode == "shared-linear":
        same = torch.equal(_sums(run, setting)[AGAIN], _sums(resumed, setting)[AGAIN])
        return [] if same else ["a round that ran again after a resume opened another sum"]
    before, after = (each.bodies(AGAIN, "embeddings", "guesses") for each in (run, resumed))
    return [
        f"a round that ran again after a resume published other {kind} of {sender}"
        for (sender, to, kind), bodies in before.items()
        if not all(map(torch.equal, bodies, after[sender, to, kind]))
    ]


def _grid(run: Run, other: Run, setting: Setting) -> list[str]:
    """Say which rows lie off the noise's grid, or were published with other data under the same noise."""
    publication, findings = setting.publication, []
    step = publication.clip * 2.0**-publication.bits
    for (sender, to, kind), (rows,) in run.bodies(AGAIN, "embeddings").items():
        steps = rows.double() / step
        # A number between two steps carries digits that the noise, which has whole steps, does not cover.
        if float((steps - steps.round()).abs().max()) > 1e-3:
            findings.append(f"{kind} of {sender} lie off the grid of their noise")
        (changed,) = other.bodies(AGAIN, kind)[sender, to, kind]
        moved = changed.double() - rows.double()
        if bool(moved.any()) and _too_small(moved, math.sqrt(2.0) * publication.sigma * publication.clip):
            findings.append(f"{kind} of {sender} were published again with other data under the same noise")
    return findings
