"""Audits of what a party, or several, hold in the end: small runs, each party with its own randomness, compared.

A server keeps everything it dealt and received, in runs that differ in one thing at a time (`audit_dealer`):

    share    what a holder's share of z contains beside what it must (see `dealt`), mask + noise, is uniform
    once     so is the difference of two rounds' or two groups' masks and noise: no mask is used twice
    again    the same keys of the server, other secrets and data of the holders: shares of z, P and G move by uniform
             words, or the server could know them; connections stay hidden; no size or order changes
    sum      all shares together are z + noise, with all the noise there has to be, down to the lowest bits
    resumed  a round that runs again publishes the same bytes under new masks; with other data under new noise

Other modes send the server no shares: only what may be sent is sent, on the noise's grid, and the same after a resume.
All holders but one, the victim, put together what they were dealt, drew and received (`audit_holders`):

    again    the same secrets of all holders and the same keys for the colluders, but new ones for the victim alone: all
             that the victim and the server send the colluders moves by uniform words, or they could unmask it
    beside   so do masked shares of the victim plus the colluders' own shares of the same secret
    once     so do these from one message to the next, or in paper mode from round to round: no mask is used twice
    parts    what the server sends for a truncation is uniform, and never under the same masks twice

The server does not collude with them: together they would hold all masks.  Whether words are uniform is tested on their
highest and their lowest bits.
Shapes: P_k [m, d], G_k [m, t], W_k [d, h].
"""

from __future__ import annotations

import builtins
import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

import torch
from scipy import stats
from torch import Tensor

from graphveil.audit.federation.cases import audit_uniform, uneven
from graphveil.audit.federation.dealt import Dealt
from graphveil.audit.federation.matrices import correction_words
from graphveil.audit.federation.replay import (
    NODES,
    REPEATED_ROUND,
    Run,
    run_by_sources,
    shares_like,
    small_setting,
    sources_of,
)
from graphveil.audit.verdict import Audit
from graphveil.federation.core.messages import ANYBODY, KINDS, SERVER, UNIFORM
from graphveil.federation.core.mode import Mode
from graphveil.federation.core.rows import REST, TRAIN, VALIDATION, publications_by_group
from graphveil.federation.core.setting import Setting
from graphveil.federation.effects import Send
from graphveil.federation.modes.all_shares_arithmetic import features_of
from graphveil.privacy import Randomness, SeededRandomness
from graphveil.privacy.source.randomness import UInt64Array

#: That a right protocol is called broken: half for what has to be uniform, half for noise, in ten tests at most.
FALSE_ALARM: Final = 1e-6
LEVEL: Final = FALSE_ALARM / 2 / 10
_TO_SERVER: Final = (SERVER, ANYBODY)


def kinds_to_server(mode: Mode, kinds: Collection[str]) -> frozenset[str]:
    """Return the kinds that holders may send the server in their programs.

    Args:
        mode: of the run.
        kinds: that its programs send.
    """
    # In mode "guesses" the server is sent nothing, not even what goes to all others.
    return frozenset(
        kind
        for kind in kinds
        if not mode.guesses
        and kind != "aligned"
        and KINDS[kind].sender != SERVER
        and KINDS[kind].receiver in _TO_SERVER
    )


def audit_dealer(mode: str, holders: int = 2, *, seed: int = 0) -> Audit:
    """Give the server of a mode everything that it dealt and received, and say what it could tell.

    Args:
        holders: how many, 2 to 5.
    """
    setting = small_setting(mode, holders)
    run = run_by_sources(setting, sources_of(setting, seed + 1, seed + 1))
    rerun = run_by_sources(setting, sources_of(setting, seed + 1, seed + 2), changed="all")
    resumed = run_by_sources(setting, sources_of(setting, seed + 3, seed + 3), resumed=run)
    other = run_by_sources(setting, sources_of(setting, seed + 4, seed + 4), resumed=run, changed="row")
    words = repeated_words(run, resumed, {REPEATED_ROUND: (0, REPEATED_ROUND)})
    findings = [*unexpected_kinds(run, setting, setting.mode.sent), *sizes_that_differ(run, rerun)]
    if setting.mode.opens_sum:
        last = run_by_sources(setting, sources_of(setting, seed + 5, seed + 5), resumed=run, first_round=setting.rounds)
        first, *rest = (Dealt.read(each, setting) for each in (run, rerun, resumed, other, last))
        words |= _share_words(first, rest[0], rest[1]) | hidden_words(run, rerun, setting)
        findings += [*_opened_again(first, rest[1], REPEATED_ROUND), *_opened_again(first, rest[3], setting.rounds)]
        findings += _noise(first, rest[2])
    else:
        findings += _published_again(run, resumed)
        if "embeddings" in setting.mode.sent:
            findings += _off_grid(run, other, setting)
    target = f"federation {mode}, {holders} holders, server with dealt keys"
    return audit_words_and_noise(target, words, findings)


def audit_words_and_noise(target: str, words: Mapping[str, Sequence[Tensor]], findings: Sequence[str]) -> Audit:
    """Return the audit of words at half the rate of false alarms; the tests of noise behind `findings` have the rest.

    Args:
        target, words, findings: as of `cases.audit_uniform`.
    """
    return replace(audit_uniform(target, words, findings, false_alarm=FALSE_ALARM / 2), false_alarm=FALSE_ALARM)


def _share_words(first: Dealt, second: Dealt, third: Dealt) -> dict[str, list[Tensor]]:
    run, rerun, setting = first.run, second.run, first.setting
    added, added_other, added_again = first.added(), second.added(), third.added()
    words: dict[str, list[Tensor]] = {}
    for name in setting.names:
        mine = [key for key in added if key[0] == name]
        words[f"the share of {name} less what was dealt"] = [added[key] for key in mine]
        words[f"what {name} adds, from one to the next"] = [
            word_differences(added[a], added[b]) for a, b in itertools.pairwise(mine)
        ]
        words[f"what {name} adds, from round to round"] = [
            added[name, n, TRAIN] - added[name, n - 1, TRAIN] for n in range(2, setting.publications + 1)
        ]
        words[f"what {name} adds under other secrets of the holders"] = [added[key] - added_other[key] for key in mine]
        words[f"what {name} adds before and after a resume"] = [
            added[key] - added_again[key] for key in mine if key[1] == REPEATED_ROUND
        ]
        for part in ("p", "gram"):
            share, other_share = (each.states[0][name][part] for each in (run, rerun))
            words[f"the share of {part.upper()} that {name} keeps, under other secrets"] = [share - other_share]
    return words


def word_differences(before: Tensor, after: Tensor) -> Tensor:
    """Return the difference word by word, as far as both go: masks of one label begin alike in all shapes.

    Args:
        before, after: int64 of any shapes.
    """
    words = min(before.numel(), after.numel())
    return before.flatten()[:words] - after.flatten()[:words]


def hidden_words(run: Run, rerun: Run, setting: Setting) -> dict[str, list[Tensor]]:
    """Return corrections of every holder's connections, and how far they move with other connections and keys."""
    words: dict[str, list[Tensor]] = {}
    for (sender, to, _), (corrections,) in run.bodies(0, "hidden-matrix").items():
        if to == setting.server:
            (moved,) = rerun.bodies(0, "hidden-matrix")[sender, to, "hidden-matrix"]
            for name, body in (
                (f"matrix of {sender}", corrections),
                (f"other matrix of {sender}", corrections ^ moved),
            ):
                words |= {f"{part} of the {name}": [random] for part, random in correction_words(body).items()}
    return words


def sizes_that_differ(run: Run, rerun: Run) -> list[str]:
    """Return a finding where number, order, kind or size of any message depends on data or secrets."""
    first, second = (
        [(name, sent.to, sent.kind, sent.body.shape) for _, name, sent in each.messages] for each in (run, rerun)
    )
    return [] if first == second else ["number, order or size of messages depend on data"]


def _opened_again(first: Dealt, resumed: Dealt, round: int) -> list[str]:
    before, after = first.opened(), resumed.opened()
    same = all(torch.equal(before[key], after[key]) for key in before if key[0] == round)
    return [] if same else [f"round {round} of {first.setting.rounds} opened another sum when it ran again"]


def _noise(first: Dealt, other: Dealt) -> list[str]:
    """Say what is wrong with the noise of the sums."""
    setting, findings = first.setting, list[str]()
    added, other_added = (_summed(each) for each in (first, other))
    for group, times in publications_by_group(setting).items():
        noise = torch.cat([sums for (_, of_group), sums in added.items() if of_group == group])
        moved = None if group == REST else other_added[REPEATED_ROUND, group] - added[REPEATED_ROUND, group]
        findings += weak_noise(setting, times, noise, moved, f"rows ({group})")
    return findings


def weak_noise(setting: Setting, times: int, noise: Tensor, moved: Tensor | None, rows: str) -> list[str]:
    """Say what is wrong with the noise of a sum: too small, with bits that are always the same, or used twice.

    Args:
        times, rows: how often such rows are published, and what findings call them.
        noise: of all holders together.
        moved: how far it is from the noise with other data; None: only the amount of noise is tested.
    """
    to, bits = setting.publication_of(times), 2 * setting.protocol.bits
    scale = 2.0**bits * to.sigma * to.clip * math.sqrt(len(setting.members))
    findings = []
    # Too small and not merely different: masks that do not cancel only add, and what protects is all of them.
    if too_small(noise, scale):
        findings.append(f"the sum of {rows} has less noise than all holders owe it")
    if moved is None:
        return findings
    # The four bits right below the noise's steps: without dither they are those of the data itself.
    step = math.floor(math.log2(to.clip)) + bits - to.bits
    low = (noise & ((1 << step) - 1)) >> (step - 4)
    if uneven(torch.bincount(low.flatten(), minlength=16).numpy(), LEVEL):
        findings.append(f"bits of the sum of {rows} below the steps of the noise are not random")
    # Fresh noise twice has twice the variance; the same noise would leave nothing of it in the difference.
    if too_small(moved, math.sqrt(2.0) * scale):
        findings.append(f"{rows} were published again with other data under the same noise")
    return findings


def _summed(dealt: Dealt) -> dict[tuple[int, str], Tensor]:
    """Return the noise of all holders together by round and group, int64; of the rest to within rounding."""
    sums: dict[tuple[int, str], Tensor] = {}
    for (_, number, group), added in dealt.added().items():
        sums[number, group] = sums.get((number, group), torch.zeros_like(added)) + added
    last = dealt.setting.rounds, REST
    clear = torch.round(dealt.rest() * 2.0 ** (2 * dealt.setting.protocol.bits)).long()
    return sums | {last: dealt.opened()[last] - clear}


def too_small(numbers: Tensor, deviation: float) -> bool:
    """Return whether numbers are smaller than normal numbers of a deviation would be, wrongly with chance `LEVEL`.

    Args:
        numbers: of any shape.
        deviation: which they should have at least.
    """
    squares = float((numbers.double() / deviation).square().sum())
    return squares < float(stats.chi2.ppf(LEVEL, numbers.numel()))


def repeated_words(run: Run, resumed: Run, rounds: Mapping[int, tuple[int, ...]]) -> dict[str, list[Tensor]]:
    """Return how far masked words move when they are sent again.

    Args:
        rounds: of the resumed session, each with those of the first in which the same was sent.
    """
    kinds = (*MASKED, "hidden-matrix")
    words: dict[str, list[Tensor]] = {}
    for again, earlier in rounds.items():
        sent = [run.bodies(round, *kinds) for round in earlier]
        for key, bodies in resumed.bodies(again, *kinds).items():
            before, (sender, to, kind) = [body for of_round in sent for body in of_round.get(key, [])], key
            for body in bodies:
                # In one order in both sessions; what the first one alone sends is of other shapes, or comes later.
                old = before.pop(next(index for index, first in enumerate(before) if first.shape == body.shape))
                moved = correction_words(old ^ body) if kind == "hidden-matrix" else {kind: old - body}
                for part, numbers in moved.items():
                    words.setdefault(f"{part} from {sender} to {to} before and after a resume", []).append(numbers)
    return words


def unexpected_kinds(run: Run, setting: Setting, kinds: Collection[str]) -> list[str]:
    """Return findings for kinds that were sent to the server and may not be.

    Args:
        kinds: of messages that the programs of the run send.
    """
    sent = {message.kind for _, _, message in run.messages if message.to == setting.server}
    return [f"{kind} was sent to the server" for kind in sorted(sent - kinds_to_server(setting.mode, kinds))]


def _published_again(run: Run, resumed: Run) -> list[str]:
    """List what is published with other bytes in a round and in the same round after a resume."""
    before, after = (each.bodies(REPEATED_ROUND, "embeddings", "guesses") for each in (run, resumed))
    return [
        f"a round that ran again after a resume published other {kind} of {sender}"
        for (sender, to, kind), bodies in before.items()
        if not all(map(torch.equal, bodies, after[sender, to, kind]))
    ]


def _off_grid(run: Run, other: Run, setting: Setting) -> list[str]:
    """Say which rows lie off the noise's grid, or were published with other data under the same noise."""
    findings = []
    # Those who train, then those who validate: the round is one that looks at them.
    publications = [setting.publication_of(publications_by_group(setting)[group]) for group in (TRAIN, VALIDATION)]
    for (sender, to, kind), bodies in run.bodies(REPEATED_ROUND, "embeddings").items():
        changed = other.bodies(REPEATED_ROUND, kind)[sender, to, kind]
        for publication, rows, changed_rows in zip(publications, bodies, changed, strict=True):
            steps = rows.double() / (publication.clip * 2.0**-publication.bits)
            # A number between two steps carries digits that the noise, which has whole steps, does not cover.
            if float((steps - steps.round()).abs().max()) > 1e-3:
                findings.append(f"{kind} of {sender} lie off the grid of their noise")
            moved = changed_rows.double() - rows.double()
            if bool(moved.any()) and too_small(moved, math.sqrt(2.0) * publication.sigma * publication.clip):
                findings.append(f"{kind} of {sender} were published again with other data under the same noise")
    return findings


MASKED: Final = tuple(kind for kind, message in KINDS.items() if message.reveals == UNIFORM)


class RecordingSource:
    """A source that records the bytes it gives, and gives some bytes of an earlier source again.

    Args:
        source: of new bytes.
        earlier: what the earlier source gave, call by call.
        repeated: which of these are given again.
    """

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
        given = self._source.bytes(count)
        call = len(self.drawn)
        # What still agrees under the same keys for colluders and new ones for the victim was never the victim's secret.
        if self._earlier is not None and call < len(self._earlier) and self._earlier[call] in self._repeated:
            given = self._earlier[call]
        self.drawn.append(given)
        return given


def audit_holders(mode: str, holders: int = 2, *, victim: int = 1, seed: int = 0) -> Audit:
    """Give all holders but one everything that they were dealt and received, and say what they could unmask.

    Args:
        mode: one with shares.
        holders: how many, 2 to 5.
        victim: the number of that one, from 0.
    """
    setting = small_setting(mode, holders)
    victim_name = setting.names[victim]
    colluders = frozenset(setting.names) - {victim_name}
    first = RecordingSource(SeededRandomness(seed + 1))
    run = run_by_sources(setting, {**sources_of(setting, 0, seed + 1), setting.server: first})
    keys = (bodies for (_, to, _), bodies in run.bodies(0, "mask-keys").items() if to in colluders)
    dealt = frozenset(row.numpy().tobytes() for bodies in keys for body in bodies for row in body)
    second = RecordingSource(SeededRandomness(seed + 2), first.drawn, dealt)
    rerun = run_by_sources(setting, {**sources_of(setting, 0, seed + 1), setting.server: second})
    words, same = _moved(run, rerun, setting, victim_name)
    if setting.mode.opens_sum:
        words |= _message_to_message(run, setting, victim_name) | truncation_words(run, setting)
    else:
        words |= _round_to_round(run, setting, victim_name)
    # Corrections for two colluders' products of their own matrices are made of their own keys, and stay as they were.
    # Forward and backward in each round; z is opened once more in the end.
    times = 2 * setting.publications + setting.mode.opens_hidden
    own = (holders - 1) * (holders - 2) * products_of_pairs(setting) * times
    findings = [f"{same - own} messages of the server follow from what they were dealt"] if same != own else []
    named = f"federation {mode}, {holders} holders, all but {victim_name} together"
    return audit_uniform(named, words, findings, false_alarm=FALSE_ALARM)


def products_of_pairs(setting: Setting) -> int:
    """Return how many products with own matrices each pair of holders takes forward: of features, and of means."""
    if setting.mode.opens_hidden:
        return 1 + setting.model.hops
    return int(setting.mode.opens_layer)


def _moved(run: Run, rerun: Run, setting: Setting, victim: str) -> tuple[dict[str, list[Tensor]], int]:
    """Return how far messages of victim and server to colluders moved, and how many of the server's did not move."""
    words: dict[str, list[Tensor]] = {}
    same = 0
    for round in range(setting.rounds + 1):
        before, after = (each.bodies(round, *MASKED) for each in (run, rerun))
        for (sender, to, kind), bodies in before.items():
            if sender not in (victim, setting.server) or to in (victim, setting.server):
                continue
            for body, other in zip(bodies, after[sender, to, kind], strict=True):
                # Differences of two runs: a shared constant drops out, and what a fresh mask covers stays uniform.
                moved = other - body
                if sender == setting.server and not bool(moved.any()):
                    same += 1
                    continue
                words.setdefault(f"{kind} from {sender} to {to} under other keys", []).append(moved)
                if sender == victim:
                    sent = Send(to, kind, body)
                    shares = [_colluders_share(each, setting, victim, round, sent) for each in (rerun, run)]
                    name = f"{kind} from {sender} to {to} beside the others' shares"
                    words.setdefault(name, []).append(moved + shares[0] - shares[1])
    return words, same


def _colluders_share(run: Run, setting: Setting, victim: str, round: int, sent: Send) -> Tensor:
    """Return the sum of the colluders' shares of what the victim sends a masked share of; zeros if they have none."""
    colluders, states = [name for name in setting.names if name != victim], run.states[max(round - 1, 0)]
    candidates: list[Tensor] = []
    if setting.mode.opens_sum:
        candidates = [share for name in colluders if not round for share in shares_like(states[name], sent)]
    elif setting.mode.opens_hidden:
        part = f"{'best' if round == setting.rounds else 'now'}/{features_of(setting.names.index(sent.to))}"
        candidates = [states[name][part] for name in colluders if round and sent.kind == "masked-right"]
    elif sent.kind == "masked-right" and round:
        # Of W; slopes, which have another shape, are each holder's own.
        candidates = [states[name][f"first/shares/{sent.to}"] for name in colluders]
    shares = [share for share in candidates if share.shape == sent.body.shape]
    return torch.stack(shares).sum(dim=0) if shares else torch.zeros_like(sent.body)


def _message_to_message(run: Run, setting: Setting, victim: str) -> dict[str, list[Tensor]]:
    """Return how far masked shares of the victim, beside the colluders', are from each other: X, P, G and W."""
    features = next(member.columns for member in setting.members if member.name == victim)
    words: dict[str, list[Tensor]] = {}
    for to in setting.names:
        whole = []
        for sent in (sent for number, sender, sent in run.messages if (number, sender, sent.to) == (0, victim, to)):
            share = _colluders_share(run, setting, victim, 0, sent)
            # Nobody else has a share of its features; of other products the others' shares are in no checkpoint.
            if bool(share.any()) or (sent.kind == "masked-right" and sent.body.shape == (NODES, features)):
                whole.append(sent.body + share)
        for (first, before), (second, after) in itertools.combinations(enumerate(whole), 2):
            name = f"masked shares {first} and {second} from {victim} to {to} beside the others'"
            words[name] = [word_differences(before, after)]
    return words


def _round_to_round(run: Run, setting: Setting, victim: str) -> dict[str, list[Tensor]]:
    """Return how far masked shares of the victim, beside the colluders', move from a round to the next."""
    before, after = (run.bodies(round, *MASKED) for round in (REPEATED_ROUND, REPEATED_ROUND + 1))
    words: dict[str, list[Tensor]] = {}
    for (sender, to, kind), bodies in before.items():
        if sender == victim:
            for a, b in zip(bodies, after[sender, to, kind], strict=True):
                sent = Send(to, kind, a)
                shares = [
                    _colluders_share(run, setting, victim, round, sent)
                    for round in (REPEATED_ROUND + 1, REPEATED_ROUND)
                ]
                words.setdefault(f"{kind} from {sender} to {to} from round to round", []).append(
                    b - a + shares[0] - shares[1]
                )
    return words


def truncation_words(run: Run, setting: Setting) -> dict[str, list[Tensor]]:
    """Return the server's parts of truncated masks, by themselves and from one truncation to the next.

    Args:
        run: in mode "shared-linear", or a prediction of it.
    """
    way = setting.server, setting.names[0], "correction"
    sent = [body for round in (0, setting.publications + 1) for body in run.bodies(round, way[2]).get(way, [])]
    again = [word_differences(before, after) for before, after in itertools.pairwise(sent)]
    return {"the server's parts": sent, "the server's parts from one to the next": again}
