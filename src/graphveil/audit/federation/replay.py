"""Record and replay of a federation's programs: messages may depend on one person only where MODES says so.

    run      all parties in one process, on data that differ in one person's features at a holder, or in one label
    frozen   what is published: embeddings, guesses, or in shared-linear what the server opens; noise; reported labels
    equal    number, order, kinds and sizes of all messages; every body but masked and opened ones; predictions
    moved    what is published, by one row, and by no more than 2 C

The person has no connections and does not train, so that one published row is all that changes: the unit of the
guarantee.  Somebody who trains also moves weights, and with them other rows: other units.  Products on shares are
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
from graphveil.audit.hooks import all_taps
from graphveil.audit.replay import Arguments, Evidence, Pipeline, Question, audit_replay
from graphveil.audit.verdict import Audit
from graphveil.federation.core.messages import KINDS, SEALED, UNIFORM
from graphveil.federation.core.programs import simulate
from graphveil.federation.core.publisher import Publisher, clip_rows
from graphveil.federation.core.setting import Member, Setting
from graphveil.federation.core.states import RunContext
from graphveil.federation.crypto import ring
from graphveil.federation.effects import Checkpoint, Effect, Program, Send, with_changed_effects
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.labels import LabelHead
from graphveil.federation.simulation import party_programs
from graphveil.privacy import Randomness, SeededRandomness

T = TypeVar("T")
_NODES, _COLUMNS, _CLASSES = 60, 6, 3
#: Who changes: the last person, who has no connections and tests; or the label of the first, who trains.
PERSON: Final = _NODES - 1
#: What a mode opens: data may show there, and the guarantee says so.
_OPENED: Final[Mapping[str, tuple[str, ...]]] = {"paper": ("opened-share",), "shared-linear": ("noisy-share",)}
_ROUNDING: Final = 2.0**-6  # of the clip
_FALSE_ALARM: Final = 1e-6


def audit_features(mode: str, *, seed: int = 0) -> Audit:
    """Replay a mode on two data sets that differ in one person's features at one holder.

    Args:
        mode: one of MODES. seed: of both runs' randomness.
    """
    setting = made_setting(mode)
    shares = _Shares()
    # Masked bodies differ by their masks alone, and are judged by `audit_shares`: here they would only hide what else
    # moved.
    hidden = {kind for kind, message in KINDS.items() if message.reveals in (UNIFORM, SEALED)} | {
        *_OPENED.get(mode, ())
    }
    # In paper mode h0 is everybody's: each holder publishes a row that depends on the person.
    units = len(setting.members) if mode == "paper" else 1
    verdict = audit_replay(
        Pipeline(
            target=f"federation {mode}, one row",
            run=lambda holdings, randomness: run_parties(setting, holdings, randomness, shares),
            first=made_holdings(),
            second=made_holdings(changed="features"),
            epsilon=units * setting.privacy.epsilon,
            delta=setting.privacy.delta,
            outcome=lambda seen: _outcome(seen, hidden),
            taps=(PublishTap(), NoiseTap(), *all_taps()),
        ),
        seed=seed,
    )
    return _with_opened(verdict, shares.moved(setting))


def audit_label(mode: str, *, seed: int = 0) -> Audit:
    """Replay a mode on two data sets that differ in one training label: not a byte of a message may differ.

    Args:
        mode: one of MODES. seed: of both runs' randomness.
    """
    setting = made_setting(mode)
    return audit_replay(
        Pipeline(
            target=f"federation {mode}, one label",
            run=lambda holdings, randomness: run_parties(setting, holdings, randomness, _Shares()),
            first=made_holdings(),
            second=made_holdings(changed="label"),
            epsilon=setting.privacy.epsilon_y,
            delta=0.0,
            outcome=lambda seen: _outcome(seen, set()),
            taps=(PublishTap(), NoiseTap(), *all_taps()),
        ),
        seed=seed,
    )


def audit_shares(mode: str, *, seed: int = 0) -> Audit:
    """Test that everything masked is uniform to its reader, and so is each holder's share of what the server opens. A
    masked share of something has to be uniform also beside the reader's own share of it: their sum is tested too.

    Args:
        mode: one of MODES. seed: of the run's randomness.
    """
    setting = made_setting(mode)
    seen = run_parties(setting, made_holdings(), SeededRandomness(seed), _Shares())
    words: dict[str, list[Tensor]] = {}
    for sender, sent in seen.messages:
        size = " x ".join(map(str, sent.body.shape))
        if KINDS[sent.kind].reveals == UNIFORM:
            words.setdefault(f"{sent.kind} ({size}) to {sent.to}", []).append(sent.body)
            own = seen.shares.get(sent.to)
            if sent.kind == "masked-left" and own is not None and own.shape == sent.body.shape:
                words.setdefault(f"{sent.kind} beside the share of {sent.to}", []).append(sent.body + own)
        elif sent.kind == "noisy-share":
            words.setdefault(f"{sent.kind} of {sender}", []).append(sent.body)
    return audit_uniform(f"federation {mode}", words, false_alarm=_FALSE_ALARM)


@dataclass(frozen=True)
class PublishTap:
    """`Publisher.publish`: a holder's rows are private."""

    owner: type = Publisher
    attribute: str = "publish"

    def read(self, mechanism: Publisher, arguments: Arguments) -> Question[Tensor]:
        """Round and shape are public, and so are price and noise."""
        x = arguments["x"].detach().clone()
        return Question((mechanism.publication, arguments["round"], tuple(x.shape)), (), x)

    def weigh(self, mechanism: Publisher, answer: Tensor, first: Tensor, second: Tensor) -> Evidence:
        """Measure how far the clipped row moved, in units of 2 C (rows, where several did), and the noise."""
        # The mechanism's own clip is applied again here: rows as they came in may differ by more than is ever
        # published.
        clip = mechanism.publication.clip
        first_rows, second_rows = (clip_rows(x.double(), clip) for x in (first, second))
        lengths = (first_rows - second_rows).norm(dim=1)
        rows, moved = int((lengths > _ROUNDING * clip).sum()), float(lengths.max())
        if rows == 0:
            return Evidence(0.0)
        noise = answer.double() - first_rows
        largest = math.sqrt(float(noise.square().sum()) / float(stats.chi2.ppf(_FALSE_ALARM, noise.numel())))
        return Evidence(float(rows) if rows > 1 else moved / (2 * clip), mu=min(moved / max(largest, 1e-30), 1e6))


@dataclass(frozen=True)
class NoiseTap:
    """`Publisher.noise_for`: noise within shares, keyed by the name of the publication."""

    owner: type = Publisher
    attribute: str = "noise_for"

    def read(self, mechanism: Publisher, arguments: Arguments) -> Question[None]:
        """All but the key is public."""
        return Question((mechanism.publication, arguments["label"], arguments["shape"]), (), None)

    def weigh(self, mechanism: Publisher, answer: Tensor, first: None, second: None) -> Evidence:
        """Noise says nothing; what it is added to is measured where the server opens it."""
        return Evidence(0.0)


@dataclass
class _Shares:
    """Each holder's shares of what the server opens: sent in the first run, and in its place in every later one."""

    runs: list[dict[str, list[Tensor]]] = field(default_factory=list)

    def moved(self, setting: Setting) -> tuple[float, float]:
        """Return how far the person's opened row moved between the two runs, and any other, in units of C."""
        if len(self.runs) != 2 or not all(self.runs[0].values()):
            return 0.0, 0.0
        moved = []
        for before, after in zip(*(zip(*run.values(), strict=True) for run in self.runs), strict=False):
            change = torch.stack([*after, *(-share for share in before)]).sum(dim=0)
            moved.append(ring.decode(change, 2 * setting.protocol.bits).norm(dim=1) / setting.privacy.clip)
        lengths = torch.stack(moved).amax(dim=0)
        return float(lengths[PERSON]), float(lengths[:PERSON].max())


@dataclass(frozen=True)
class Seen:
    """All messages (sender, message) of a run in order, the label holder's head, and holders' shares of P = S^K X."""

    messages: tuple[tuple[str, Send], ...]
    head: LabelHead
    shares: Mapping[str, Tensor]


def made_setting(mode: str) -> Setting:
    """Return a small federation in one mode, with everything that protects switched on."""
    members = (Member("holder1", _COLUMNS, True), Member("holder2", _COLUMNS))
    network: dict[str, Any] = {"width": 8, "hops": 2, "epochs": 3, "opened": True, "clip": 0.5}
    return Setting.of(members, _CLASSES, mode=mode, epsilon=50.0, epsilon_y=1.0, **network)


def made_holdings(changed: str = "") -> dict[str, Holding]:
    """Return what two holders have; `changed` is "features" or "label" of one person."""
    generator = torch.Generator().manual_seed(17)
    labels = torch.randint(0, _CLASSES, (_NODES,), generator=generator)
    if changed == "label":
        labels[0] = (labels[0] + 1) % _CLASSES
    place = torch.arange(_NODES)
    train, val = place < 20, (place >= 20) & (place < 30)
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


def run_parties(setting: Setting, holdings: Mapping[str, Holding], randomness: Randomness, shares: _Shares) -> Seen:
    """Run all parties; shares of what the server opens are those of the first run.

    Args:
        setting: the agreed run. holdings: by name, what each holder has. randomness: of all parties.
        shares: those of the first run, or where they are put.
    """
    generator = torch.Generator().manual_seed(1)
    (head,) = (holding.head for holding in holdings.values() if holding.head is not None)
    head.open(setting, randomness=randomness, generator=generator)
    contexts = {name: RunContext(name, setting, randomness, generator) for name in (setting.server, *setting.names)}
    programs = party_programs(contexts, holdings)
    earlier = shares.runs[0] if shares.runs else {}
    shares.runs.append({})
    for name in holdings:
        own = shares.runs[-1].setdefault(name, [])
        programs[name] = _repeated(programs[name], own, earlier.get(name))
    messages: list[tuple[str, Send]] = []
    propagated: dict[str, Tensor] = {}

    def watch(name: str, effect: Effect) -> None:
        if isinstance(effect, Send):
            messages.append((name, replace(effect, body=effect.body.clone())))
        elif isinstance(effect, Checkpoint) and "p" in (state := effect.state()):
            propagated[name] = state["p"]

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        simulate(programs, watch=watch)
    return Seen(tuple(messages), head, propagated)


def _repeated(program: Program[T], own: list[Tensor], earlier: Sequence[Tensor] | None) -> Program[T]:
    """Run a holder; remember its shares of what is opened, and send the earlier ones in their place."""

    def replay(effect: Effect) -> Effect:
        if not isinstance(effect, Send) or effect.kind != "noisy-share":
            return effect
        own.append(effect.body.clone())
        # The first run's share in place of this one's: what the server makes of it is then the same, and whatever still
        # differs came by another way.
        return effect if earlier is None else replace(effect, body=earlier[len(own) - 1])

    return with_changed_effects(program, replay)


def _outcome(seen: Seen, hidden: set[str]) -> dict[str, Any]:
    """What may not differ between neighbours, by name."""
    sizes = tuple((name, s.to, s.kind, str(s.body.dtype), tuple(s.body.shape)) for name, s in seen.messages)
    outcome: dict[str, Any] = {"number, order or size of messages": sizes}
    for name, sent in seen.messages:
        if sent.kind not in hidden:
            outcome.setdefault(f"{sent.kind} from {name} to {sent.to}", []).append(sent.body)
    return outcome | {"predictions": seen.head.predictions, "history": tuple(seen.head.history)}


def _with_opened(audit: Audit, moved: tuple[float, float]) -> Audit:
    """Add how far the rows moved that the server opens; nothing where it opens none."""
    own, rest = moved
    if own == 0.0:
        return audit
    findings = [f"an opened row moved by {own:.4g} C, more than 2 C"] if own > 2.0 else []
    findings += [f"the opened row of another person moved by {rest:.4g} C"] if rest > _ROUNDING else []
    note = f"the opened row moved by {own:.4f} C of 2 C, others by {rest:.1g} C of rounding"
    verdict = "broken" if findings else audit.verdict
    return replace(audit, verdict=verdict, notes=(*findings, *audit.notes, note))
