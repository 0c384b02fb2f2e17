"""Record and replay of a federation's programs: messages may depend on one person only where the mode opens something.

    run      all parties in one process, on two data sets that differ in one person's features at a holder or one label
    frozen   what is published: embeddings, guesses, or in shared-linear what the server opens; noise; reported labels
    equal    number, order, kinds and sizes of all messages; every body but masked and opened ones; predictions
    moved    what is published, by one row, and by no more than 2 C

The person has no connections, trains and validates nothing, so that one published row is all that changes: the unit of
the guarantee.  Somebody who trains also moves weights, and with them other rows: other units.  Products on shares are
rounded, which may move any row by a few steps of 2^-bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

import torch
from scipy import stats
from torch import Tensor

from graphveil.audit.federation.cases import audit_uniform
from graphveil.audit.federation.matrices import correction_words
from graphveil.audit.hooks import all_taps
from graphveil.audit.replay import Arguments, Evidence, Pipeline, Question, Tap, audit_replay
from graphveil.audit.verdict import Audit
from graphveil.federation.core.messages import KINDS, SEALED, UNIFORM, simulate
from graphveil.federation.core.mode import MODE_OF
from graphveil.federation.core.publisher import Publisher, clip_rows
from graphveil.federation.core.setting import Member, Setting
from graphveil.federation.core.states import RunContext
from graphveil.federation.crypto import ring
from graphveil.federation.effects import Checkpoint, Effect, Program, Send, with_changed_effects
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.labels import LabelHead
from graphveil.federation.simulation import head_of, party_programs
from graphveil.privacy import Randomness, SeededRandomness

T = TypeVar("T")
_NODES, _COLUMNS, _CLASSES = 60, 6, 3
#: Whose features change: the last person, who has no connections and tests. The label that changes is the first one's.
# In shared-linear the last row of the last opening, which is of all who neither train nor validate.
PERSON: Final = _NODES - 1
#: Kinds in which modes open data, as their guarantees say.
_OPENED_KINDS: Final = frozenset({"opened-share", "noisy-share", "hidden-share"})
_ROUNDING: Final = 2.0**-6  # of the clip
_FALSE_ALARM: Final = 1e-6


def audit_features(mode: str, *, seed: int = 0) -> Audit:
    """Replay a mode on two data sets that differ in one person's features at one holder.

    Args:
        mode: one of MODES.
    """
    setting, shares = replay_setting(mode), _OpenedShares()
    # Masked bodies differ by their masks (see `audit_shares`), and would hide what else moved.
    hidden = {kind for kind, message in KINDS.items() if message.reveals in (UNIFORM, SEALED)}
    # In paper mode h0 is everybody's: each holder publishes a row that depends on the person.
    units = len(setting.members) if setting.mode.opens_layer else 1
    spent = units * setting.privacy.epsilon, setting.privacy.delta
    audit = _replayed(setting, shares, "features", spent, hidden | _OPENED_KINDS.intersection(setting.mode.sent), seed)
    own, rest = shares.moved(setting)
    if own == 0.0:
        return audit
    findings = [f"an opened row moved by {own:.4g} C, more than 2 C"] if own > 2.0 else []
    findings += [f"the opened row of another person moved by {rest:.4g} C"] if rest > _ROUNDING else []
    note = f"the opened row moved by {own:.4f} C of 2 C, others by {rest:.1g} C of rounding"
    verdict = "broken" if findings else audit.verdict
    return replace(audit, verdict=verdict, notes=(*findings, *audit.notes, note))


def audit_label(mode: str, *, seed: int = 0) -> Audit:
    """Replay a mode on two data sets that differ in one training label: not a byte of a message may differ.

    Args:
        mode: one of MODES.
    """
    setting = replay_setting(mode)
    return _replayed(setting, None, "label", (setting.privacy.epsilon_y, 0.0), set(), seed)


def _replayed(
    setting: Setting,
    shares: _OpenedShares | None,
    changed: str,
    claim: tuple[float, float],
    hidden: set[str],
    seed: int,
) -> Audit:
    return audit_replay(
        Pipeline(
            target=f"federation {setting.protocol.mode}, one {'row' if changed == 'features' else changed}",
            run=lambda holdings, randomness: _run_parties(setting, holdings, randomness, shares or _OpenedShares()),
            first=replay_holdings(),
            second=replay_holdings(changed),
            epsilon=claim[0],
            delta=claim[1],
            outcome=lambda run: _outcome(run, hidden),
            taps=_taps(),
        ),
        seed=seed,
    )


def audit_shares(mode: str, *, seed: int = 0) -> Audit:
    """Test that everything masked is uniform to its reader, also beside the reader's own share, and so is each holder's
    share of what the server opens.

    Args:
        mode: one of MODES.
    """
    setting = replay_setting(mode)
    run = _run_parties(setting, replay_holdings(), SeededRandomness(seed), _OpenedShares())
    words: dict[str, list[Tensor]] = {}
    for _, sender, sent in run.messages:
        size = " x ".join(map(str, sent.body.shape))
        if KINDS[sent.kind].reveals == UNIFORM:
            words.setdefault(f"{sent.kind} ({size}) to {sent.to}", []).append(sent.body)
            for own in shares_like(run.states[0].get(sent.to, {}), sent):
                words.setdefault(f"{sent.kind} ({size}) beside the share of {sent.to}", []).append(sent.body + own)
        elif sent.kind == "hidden-matrix":
            for part, random in correction_words(sent.body).items():
                words.setdefault(f"{part} of {sender}'s matrix to {sent.to}", []).append(random)
        elif sent.kind in ("noisy-share", "hidden-share"):
            words.setdefault(f"{sent.kind} of {sender}", []).append(sent.body)
    return audit_uniform(f"federation {mode} (shares)", words, false_alarm=_FALSE_ALARM)


def _read_rows(mechanism: Publisher, arguments: Arguments) -> Question[Tensor]:
    # Who is published and the shape are public, and so are price and noise.
    x = arguments["x"].detach().clone()
    return Question((mechanism.publication, arguments["group"], tuple(x.shape)), (), x)


def _weigh_rows(mechanism: Publisher, answer: Tensor, first: Tensor, second: Tensor) -> Evidence:
    """Measure how far the clipped row moved, in units of 2 C (rows, where several did), and the noise."""
    # Clipped again here: rows as they came in may differ by more than is ever published.
    clip = mechanism.publication.clip
    first_rows, second_rows = (clip_rows(x.double(), clip) for x in (first, second))
    lengths = (first_rows - second_rows).norm(dim=1)
    rows, moved = int((lengths > _ROUNDING * clip).sum()), float(lengths.max())
    if rows == 0:
        return Evidence(0.0)
    noise = answer.double() - first_rows
    largest = math.sqrt(float(noise.square().sum()) / float(stats.chi2.ppf(_FALSE_ALARM, noise.numel())))
    return Evidence(float(rows) if rows > 1 else moved / (2 * clip), mu=min(moved / max(largest, 1e-30), 1e6))


def _taps() -> tuple[Tap, ...]:
    """Return all taps: a holder's rows are private; of noise within shares all is public, and says nothing.

    What noise is added to is measured where the server opens it.
    """
    return (
        Tap(Publisher, "publish", _read_rows, _weigh_rows),
        Tap(
            Publisher,
            "noise_for",
            lambda mechanism, of: Question((mechanism.publication, of["label"], of["shape"]), (), None),
            lambda *_: Evidence(0.0),
        ),
        *all_taps(),
    )


@dataclass
class _OpenedShares:
    """Each holder's shares of what the server opens, by run; those of the first run are sent in all later ones."""

    runs: list[dict[str, list[Tensor]]] = field(default_factory=list)

    def moved(self, setting: Setting) -> tuple[float, float]:
        """Return how far the person's opened row moved between two runs, and any other row at most, in units of C."""
        if len(self.runs) != 2 or not all(self.runs[0].values()):
            return 0.0, 0.0
        moved = []
        for before, after in zip(*(zip(*run.values(), strict=True) for run in self.runs), strict=False):
            change = torch.stack([*after, *(-share for share in before)]).sum(dim=0)
            moved.append(ring.decode(change, 2 * setting.protocol.bits).norm(dim=1) / setting.privacy.clip)
        lengths = torch.cat(moved)
        return float(lengths[-1]), float(lengths[:-1].max())


def replay_setting(mode: str) -> Setting:
    """Return a small federation in one mode, with everything that protects switched on."""
    members = (Member("holder1", _COLUMNS, True), Member("holder2", _COLUMNS))
    network: dict[str, Any] = {"width": 8, "hops": 2, "epochs": 3, "validate": 2, "opened": True, "clip": 0.5}
    # Without noise, what protects are masks.
    epsilon = 50.0 if MODE_OF[mode].noisy else math.inf
    return Setting.of(members, _CLASSES, mode=mode, epsilon=epsilon, epsilon_y=1.0, **network)


def replay_holdings(changed: str = "") -> dict[str, Holding]:
    """Return what two holders have; `changed` is "features" or "label" of one person."""
    generator = torch.Generator().manual_seed(17)
    labels = torch.randint(0, _CLASSES, (_NODES,), generator=generator)
    if changed == "label":
        labels[0] = (labels[0] + 1) % _CLASSES
    nodes = torch.arange(_NODES)
    train, val = nodes < 20, (nodes >= 20) & (nodes < 30)
    holdings = {}
    for name in ("holder1", "holder2"):
        x = torch.rand(_NODES, _COLUMNS, generator=generator).round(decimals=3)
        # The last person stays without edges, so that one published row is all that their features move.
        pairs = torch.randint(0, PERSON, (2, 120), generator=generator)
        pairs = pairs[:, pairs[0] < pairs[1]]
        if changed == "features" and name == "holder2":
            x[PERSON] = torch.eye(_COLUMNS)[0] * float(x[PERSON, 0] < 0.5)
        head = LabelHead(labels, train, val, ~(train | val)) if name == "holder1" else None
        holdings[name] = Holding(x, torch.cat([pairs, pairs.flip(0)], dim=1), 1.0, head)
    return holdings


def shares_like(state: Mapping[str, Tensor], sent: Send) -> list[Tensor]:
    """Return the share that a holder keeps of what it is sent a masked share of, in a list; none if it keeps none.

    Args:
        state: the holder's in mode "shared-linear".
        sent: to it, int64.
    """
    parts = {"masked-left": ("p", "gram"), "masked-right": ("w",)}.get(sent.kind, ())
    # By shape, in which P, G and W all differ.
    return [state[part] for part in parts if part in state and state[part].shape == sent.body.shape]


def _run_parties(
    setting: Setting, holdings: Mapping[str, Holding], randomness: Randomness, shares: _OpenedShares
) -> Run:
    """Run all parties; in the first run its shares of what the server opens are kept, and in later ones sent again."""
    generator, head = torch.Generator().manual_seed(1), head_of(holdings)
    head.open(setting, randomness=randomness, generator=generator)
    contexts = {name: RunContext(name, setting, randomness, generator) for name in (setting.server, *setting.names)}
    programs = party_programs(contexts, holdings)
    earlier = shares.runs[0] if shares.runs else {}
    shares.runs.append({})
    for name in holdings:
        own = shares.runs[-1].setdefault(name, [])
        programs[name] = _repeated(programs[name], own, earlier.get(name))
    return record_run(programs, head)


def _repeated(program: Program[T], own: list[Tensor], earlier: Sequence[Tensor] | None) -> Program[T]:
    """Run a holder; add its shares of what is opened to `own`, and send the earlier ones, if any, in their place."""

    def replay(effect: Effect) -> Effect:
        if not isinstance(effect, Send) or effect.kind != "noisy-share":
            return effect
        own.append(effect.body.clone())
        # The first run's share: what the server makes of it stays the same, and what differs came by another way.
        return effect if earlier is None else replace(effect, body=earlier[len(own) - 1])

    return with_changed_effects(program, replay)


def _outcome(run: Run, hidden: set[str]) -> dict[str, Any]:
    sizes = tuple((name, s.to, s.kind, str(s.body.dtype), tuple(s.body.shape)) for _, name, s in run.messages)
    outcome: dict[str, Any] = {"number, order or size of messages": sizes}
    for _, name, sent in run.messages:
        if sent.kind not in hidden:
            outcome.setdefault(f"{sent.kind} from {name} to {sent.to}", []).append(sent.body)
    predictions = run.head.predictions
    if predictions is not None and "hidden-share" in hidden:
        # The person's own are made of what the label holder is shown.
        predictions = predictions[:PERSON]
    return outcome | {"predictions": predictions, "history": tuple(run.head.history)}


#: People of the runs below, for audits of what parties hold in the end, and columns of each holder in them.
NODES: Final = 80
COLUMNS: Final = 3
#: The round that runs again after a resume, unless another is given.
REPEATED_ROUND: Final = 2
State = Mapping[str, Tensor]


@dataclass(frozen=True)
class Run:
    """A run: all messages (round, sender, message), round -> party -> its state after it, the label holder's head."""

    messages: tuple[tuple[int, str, Send], ...]
    states: Mapping[int, Mapping[str, State]]
    head: LabelHead

    def bodies(self, round: int, *kinds: str) -> dict[tuple[str, str, str], list[Tensor]]:
        """Return what was sent in a round, by sender, receiver and kind."""
        bodies: dict[tuple[str, str, str], list[Tensor]] = {}
        for number, sender, sent in self.messages:
            if number == round and sent.kind in kinds:
                bodies.setdefault((sender, sent.to, sent.kind), []).append(sent.body)
        return bodies


def small_setting(mode: str, holders: int) -> Setting:
    """Return a small federation.

    Args:
        mode: one of MODES.
        holders: how many.
    """
    members = tuple(Member(f"holder{number + 1}", COLUMNS, number == 0) for number in range(holders))
    return replace(replay_setting(mode), members=members)


def small_holdings(setting: Setting, changed: str = "") -> dict[str, Holding]:
    """Return what holders have.

    Args:
        changed: "row" for other features of one person at the last holder, "all" for other data of everybody.
    """
    # Data with a seed of their own: they stay the same whatever secrets the parties of a run draw.
    generator = torch.Generator().manual_seed(29 if changed == "all" else 23)
    labels, nodes = torch.randint(setting.classes, (NODES,), generator=generator), torch.arange(NODES)
    train, val = nodes < 20, (nodes >= 20) & (nodes < 30)
    holdings = {}
    for member in setting.members:
        x = torch.rand(NODES, member.columns, generator=generator)
        pairs = torch.randint(NODES, (2, 80), generator=generator)
        if changed == "row" and member is setting.members[-1]:
            x[0] = 1 - x[0]
        head = LabelHead(labels, train, val, ~(train | val)) if member.labels else None
        holdings[member.name] = Holding(x, torch.cat([pairs, pairs.flip(0)], dim=1), 1.0, head)
    return holdings


def run_by_sources(
    setting: Setting,
    sources: Mapping[str, Randomness],
    *,
    resumed: Run | None = None,
    first_round: int = REPEATED_ROUND,
    changed: str = "",
) -> Run:
    """Run all parties, each with its own randomness.

    Args:
        sources: party -> its randomness.
        resumed: an earlier run, from whose states this one resumes.
        first_round: the round that runs again first.
        changed: as of `small_holdings`; a run that resumes has another share too, as of an older checkpoint.
    """
    holdings = small_holdings(setting, changed)
    done = 0 if resumed is None else first_round - 1
    states: Mapping[str, State] = {} if resumed is None else _checkpoint(resumed.states[done], setting, bool(changed))
    generator, head = torch.Generator().manual_seed(1), head_of(holdings)
    head.open(setting, randomness=sources[setting.label_holder], generator=generator)
    contexts = {
        name: RunContext(name, setting, sources[name], generator, done, states.get(name))
        for name in (setting.server, *setting.names)
    }
    run = record_run(party_programs(contexts, holdings), head, 0 if resumed is None else done + 1)
    return run if resumed is None else replace(run, states={**run.states, done: states})


def record_run(programs: Mapping[str, Program[Any]], head: LabelHead, first_round: int = 0) -> Run:
    """Run all parties, and record their messages and states.

    Args:
        first_round: the round of the first messages.
    """
    round_of = dict.fromkeys(programs, first_round)
    messages: list[tuple[int, str, Send]] = []
    states: dict[int, dict[str, State]] = {}

    def watch(name: str, effect: Effect) -> None:
        if isinstance(effect, Send):
            messages.append((round_of[name], name, replace(effect, body=effect.body.clone())))
        elif isinstance(effect, Checkpoint):
            round_of[name] = effect.round + 1
            state = {key: value.clone() for key, value in effect.state().items()}
            states.setdefault(effect.round, {})[name] = state

    # Weights start alike in all runs: what differs between two of them is the one thing that was changed.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        simulate(programs, watch=watch)
    return Run(tuple(messages), states, head)


def _checkpoint(saved: Mapping[str, State], setting: Setting, changed: bool) -> dict[str, State]:
    """Return what each party saved; with `changed` another share of Z_0, as after an older checkpoint."""
    states, last = dict(saved), setting.names[-1]
    if changed and "z" in states[last]:
        # One unit in the last place is enough: under the same masks it would show as a difference of exactly 1.
        states[last] = {**states[last], "z": states[last]["z"] + 1}
    return states


def sources_of(setting: Setting, server: int, holders: int) -> dict[str, Randomness]:
    """Return each party's randomness by name, from one seed for the server and one for the holders.

    Args:
        server, holders: seeds.
    """
    # Seeds a thousand apart, so that no two parties of any run draw the same words.
    sources: dict[str, Randomness] = {setting.server: SeededRandomness(1_000 * server)}
    return sources | {name: SeededRandomness(1_000 * holders + n) for n, name in enumerate(setting.names, start=1)}
