"""Audits of what a party, or several, hold in the end: small runs, each party with its own randomness, compared.

A server keeps everything it dealt and received, in runs that differ in one thing at a time (`audit_dealer`):

    share    what a holder's share of z holds beside what it must: share - P_k W_k - products = mask + noise
    once     uniform to the server; so is what is left of two rounds' (no mask twice)
    again    the same keys of the server, other secrets of the holders: shares of z, P and W move by uniform words,
             or they were the server's to know
    sum      all shares together: z + noise, with all the noise there has to be, down to the lowest bits
    resumed  a round that runs again publishes the same bytes under new masks; with other data under new noise

Other modes send the server no shares: only what may be sent is sent, on the noise's grid, and the same after a resume.
All holders but one put together what they were dealt, drew and received (`audit_holders`):

    again    the same secrets of all holders and the same keys dealt to the others; new ones, which the server deals
             the one alone: all that the one and the server send them moves by uniform words, or they could unmask it
    beside   so do masked shares of the one plus the others' own shares of the same secret
    rounds   so do these from one round to the next: no mask is used twice
    cuts     so do the masks r of all holders together: the first holder is shown x + r

A correction for two of them is made of their own keys and stays as it was; nothing else may.  The server is not among
them: together they hold all masks.  Whatever is uniform is tested by chi-square of the highest and the lowest bits.
Shapes: P_k [n, d], W_k [d, h].
"""

from __future__ import annotations

import builtins
import itertools
import math
from collections.abc import Mapping
from typing import Final

import torch
from scipy import stats
from torch import Tensor

from graphveil.audit.federation.cases import audit_uniform
from graphveil.audit.federation.replay import AGAIN, NODES, Run, apart_setting, run_apart, sources_of
from graphveil.audit.verdict import Audit
from graphveil.federation.core.messages import KINDS, UNIFORM
from graphveil.federation.core.setting import Setting
from graphveil.federation.modes.propagation import row_blocks
from graphveil.privacy import Randomness, SeededRandomness
from graphveil.privacy.source.randomness import UInt64Array

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
    target = f"federation {mode}, {holders} holders, server with dealt keys"
    return audit_uniform(target, words, findings, false_alarm=_FALSE_ALARM)


def _masked(run: Run, rerun: Run, resumed: Run, setting: Setting) -> dict[str, list[Tensor]]:
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
    squares = float((numbers.double() / deviation).square().sum())
    return squares < float(stats.chi2.ppf(_LEVEL, numbers.numel()))


def _repeated(run: Run, resumed: Run) -> dict[str, list[Tensor]]:
    uniform = [kind for kind, message in KINDS.items() if message.reveals == UNIFORM]
    before, after = (each.bodies(AGAIN, *uniform) for each in (run, resumed))
    return {
        f"{kind} from {sender} to {to} before and after a resume": [
            a - b for a, b in zip(bodies, after[sender, to, kind], strict=True)
        ]
        for (sender, to, kind), bodies in before.items()
    }


def _kinds(run: Run, setting: Setting) -> list[str]:
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
        # What still agrees under the same keys for colluders and new ones for the victim was never the victim's secret.
        if self._earlier is not None and place < len(self._earlier) and self._earlier[place] in self._repeated:
            drawn = self._earlier[place]
        self.drawn.append(drawn)
        return drawn


def audit_holders(mode: str, holders: int = 2, *, victim: int = 1, seed: int = 0) -> Audit:
    """Give all holders but one everything that they were dealt and received, and say what they could unmask.

    Args:
        mode: one with shares.
        holders: how many, 2 to 5.
        victim: the place of the one, from 0.
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
    # Of corrections that stay as they were, those for two colluders are their own: one a block and hop, two a round.
    hops = setting.model.hops * len(row_blocks(NODES)) if mode == "shared-linear" else 0
    unexpected = same - (holders - 1) * (holders - 2) * (hops + 2 * setting.publications)
    findings = [f"{unexpected} corrections more than their own follow from what they were dealt"] if unexpected else []
    named = f"federation {mode}, {holders} holders, all but {victim_name} together"
    return audit_uniform(named, words, findings, false_alarm=_FALSE_ALARM)


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
                # Differences of two runs: a shared constant drops out, and what a fresh mask covers stays uniform.
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
