"""Audits of predictions for people who joined after a run: small predictions, compared.

server     in "shared-linear" as `views.audit_dealer`: what a holder's share adds to its product is uniform, also under
           other secrets and after a resume; all shares together are z + noise, with all the noise that holders owe; in
           other modes it is sent rows of new people on the noise's grid, with all their noise, or nothing
resumed    the same bytes are opened under new masks; other data get other noise, or are refused, as always once the
           prediction has finished
holders    as `views.audit_holders`: all but one, with all they were dealt, unmask nothing of that one
people     in a prediction of another name whoever was published is refused, by each holder's own list and not by an
           announcement

    share_k = S_k (Y_k + sum_{j != k} F_j) + sum_{j != k} S_j^0 V_k + mask + noise        F_j = Y_j - V_j
Shapes: Y_k [n, h], share_k [new, h].
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import torch
from scipy import stats
from torch import Tensor

from graphveil.audit.federation.cases import audit_uniform
from graphveil.audit.federation.replay import (
    NODES,
    Run,
    State,
    record_run,
    run_by_sources,
    small_holdings,
    small_setting,
    sources_of,
)
from graphveil.audit.federation.views import (
    FALSE_ALARM,
    LEVEL,
    MASKED,
    RecordingSource,
    audit_words_and_noise,
    hidden_words,
    products_of_pairs,
    repeated_words,
    sizes_that_differ,
    too_small,
    truncation_words,
    unexpected_kinds,
    weak_noise,
    word_differences,
)
from graphveil.audit.verdict import Audit, judge
from graphveil.errors import BudgetError
from graphveil.federation.core.id_forms import digests_of
from graphveil.federation.core.setting import Setting
from graphveil.federation.core.states import RunContext
from graphveil.federation.crypto import ring
from graphveil.federation.crypto.hidden_matrix import HiddenMatrix, Shape
from graphveil.federation.crypto.masks import MaskKey, as_message, unpack_keys
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.joined import ROUNDS
from graphveil.federation.modes.linear import last_hops_of
from graphveil.federation.modes.linear_predict import rows_of
from graphveil.federation.modes.programs import programs_of
from graphveil.federation.modes.propagation import Walk, rounded_down, transition_matrix
from graphveil.federation.predicting import People, digest_rows, predicting_program, predicting_server_program
from graphveil.graphs import GraphSchema, make_graph, normalise_edges
from graphveil.privacy import Randomness, SeededRandomness
from graphveil.runtime.words import count_of

#: How many people there are when predictions are made.
EVERYBODY: Final = NODES + 40
_COLUMNS: Final = 40
_NEW_ROWS: Final = torch.arange(NODES, EVERYBODY)
#: The round in which the rows are opened; all messages before it are of round 0.
_OPENING: Final = 2
#: Rounds of a resumed session, each with those of the first session in which the same was sent.
_SAME_ROUNDS: Final = {0: (0,), _OPENING: (_OPENING,)}
#: The epsilon of a guess, small enough that guesses without noise are noticed.
_GUESS_EPSILON: Final = 1.0


def _joined_holdings(setting: Setting, changed: str = "") -> dict[str, Holding]:
    """Return what holders have when people have joined; `changed`: "row" for other features of the last person at the
    last holder, "all" for other new people."""
    generator = torch.Generator().manual_seed(37 if changed == "all" else 31)
    holdings = {}
    for name, before in small_holdings(setting).items():
        x = torch.rand(EVERYBODY - NODES, setting.blocks[name].stop - setting.blocks[name].start, generator=generator)
        pairs = torch.randint(EVERYBODY, (2, 80), generator=generator)
        if changed == "row" and name == setting.names[-1]:
            x[-1] = 1 - x[-1]
        features = torch.cat([torch.as_tensor(before.features), x])
        holdings[name] = Holding(features, torch.cat([before.edge_index, pairs, pairs.flip(0)], dim=1), 1.0)
    return holdings


@dataclass(frozen=True)
class Finished:
    """A finished run, from which predictions are made."""

    setting: Setting
    run: Run

    @staticmethod
    def of(holders: int, seed: int, mode: str = "shared-linear") -> Finished:
        setting = small_setting(mode, holders)
        if setting.mode.guesses:
            setting = replace(setting, privacy=replace(setting.privacy, epsilon=_GUESS_EPSILON))
        # So many columns that a holder's block of W, too, has enough numbers for a test.
        setting = replace(setting, members=tuple(replace(member, columns=_COLUMNS) for member in setting.members))
        return Finished(setting, run_by_sources(setting, sources_of(setting, seed + 1, seed + 2)))

    @property
    def states(self) -> Mapping[str, State]:
        return self.run.states[self.setting.rounds]

    def predict(
        self,
        sources: Mapping[str, Randomness],
        *,
        resumed: Mapping[str, State] | None = None,
        done: int = 1,
        changed: str = "",
        new: Mapping[str, Tensor] | None = None,
    ) -> Predicted:
        """Make a prediction, each party with its own randomness.

        Args:
            resumed: the states that it resumes from.
            done: the round of these states.
            changed: as of `_joined_holdings`.
            new: holder -> rows that it takes for new, where these are not the true ones.

        Raises:
            BudgetError: somebody would be published a second time.
        """
        setting, holdings = self.setting, _joined_holdings(self.setting, changed)
        programs: dict[str, Any] = {}
        of_mode = programs_of(setting)
        old = torch.where(torch.arange(EVERYBODY) < NODES, torch.arange(EVERYBODY), -1)
        for name in (setting.server, *setting.names):
            context = RunContext(name, setting, sources[name])
            if resumed is not None:
                context = replace(context, state=resumed[name], done=done)
            if name == setting.server:
                programs[name] = of_mode.later_server(context, self.states[name], EVERYBODY)
            else:
                rows = (new or {}).get(name, _NEW_ROWS)
                programs[name] = of_mode.later_holder(context, self.states[name], holdings[name], rows, old)
        return Predicted(setting, holdings, record_run(programs, self.run.head))


@dataclass(frozen=True)
class Predicted:
    """A prediction with all messages and states; methods compute what parties must have sent for its last product."""

    setting: Setting
    holdings: Mapping[str, Holding]
    run: Run

    @property
    def keys(self) -> dict[str, MaskKey]:
        """The keys that the server dealt."""
        return {sent.to: unpack_keys(sent.body)[0] for _, _, sent in self.run.messages if sent.kind == "mask-keys"}

    @property
    def walks(self) -> list[Walk]:
        return last_hops_of(self.setting, rows_of(EVERYBODY, _NEW_ROWS))

    def matrix(self, owner: str, reader: str) -> Tensor:
        """Return a reader's share of a holder's matrix, int64 [n, n]."""
        parts = [self.run.bodies(0, kind)[owner, reader, kind][0] for kind in ("matrix-key", "hidden-matrix")]
        shape = Shape.of(EVERYBODY, self.setting.entries[owner])
        hidden = HiddenMatrix(shape, int(reader == self.setting.server), unpack_keys(parts[0])[0], parts[1])
        return torch.cat([rows for _, rows in hidden.blocks()])

    def added(self) -> dict[str, Tensor]:
        """Return mask and noise by holder: its share of the sum less its part of the product."""
        names, walk, added = self.setting.names, self.walks[-1], {}
        masked = {who: bodies[0] for (who, _, _), bodies in self.run.bodies(_OPENING, "masked-right").items()}
        for name, share in self.shares().items():
            matrix = transition_matrix(self.holdings[name].edge_index, EVERYBODY)
            other_names = [other for other in names if other != name]
            y = torch.stack([self.run.states[1][name]["y"], *(masked[other] for other in other_names)]).sum(dim=0)
            product = ring.matmul(rounded_down(matrix, len(names), self.setting.protocol.bits)[_NEW_ROWS.numpy()], y)
            mask = walk.mask(self.keys[name], EVERYBODY, name)
            of_masks = [ring.matmul(self.matrix(other, name)[_NEW_ROWS], mask) for other in other_names]
            added[name] = share - product - torch.stack(of_masks).sum(dim=0)
        return added

    def masked_right(self, sender: str, to: str) -> list[Tensor]:
        """Return what a holder sent another masked, in order: X, W, and Y before each hop."""
        key = sender, to, "masked-right"
        return [body for round in (0, _OPENING) for body in self.run.bodies(round, "masked-right")[key]]

    def shares(self) -> dict[str, Tensor]:
        """Return what each holder sent to be opened."""
        return {who: bodies[0] for (who, _, _), bodies in self.run.bodies(_OPENING, "noisy-share").items()}

    def part(self, walk: Walk) -> Tensor:
        """Return the server's part of a product, int64 [rows, h]."""
        names, rows = self.setting.names, torch.arange(EVERYBODY) if walk.rows is None else walk.rows
        masks = {name: walk.mask(self.keys[name], EVERYBODY, name) for name in names}
        parts = [
            ring.matmul(self.matrix(name, self.setting.server)[rows], masks[other])
            for name in names
            for other in names
            if other != name
        ]
        return torch.stack(parts).sum(dim=0)

    def opened(self) -> Tensor:
        """Return z with its noise, int64 [new, h]."""
        return torch.stack([*self.shares().values(), self.part(self.walks[-1])]).sum(dim=0)

    def noise(self) -> Tensor:
        """Return the noise of all holders together, int64 [new, h]: masks cancel."""
        return torch.stack([*self.added().values()]).sum(dim=0)


def audit_prediction_server(holders: int = 2, *, mode: str = "shared-linear", seed: int = 0) -> Audit:
    """Give the server all that it dealt and received in a prediction, and return what it could learn.

    Args:
        holders: how many, 2 to 5.
        mode: one of MODES.
    """
    finished = Finished.of(holders, seed, mode)
    setting = finished.setting
    if not setting.mode.opens_sum:
        return _audit_rows(finished, seed)
    sources = [sources_of(setting, seed + server, seed + own) for server, own in ((3, 3), (3, 4), (5, 5), (6, 6))]
    first, rerun = finished.predict(sources[0]), finished.predict(sources[1], changed="all")
    saved = first.run.states[1]
    resumed = finished.predict(sources[2], resumed=saved)
    other = finished.predict(sources[3], resumed=saved, changed="row")
    added = [each.added() for each in (first, rerun, resumed)]
    words = repeated_words(first.run, resumed.run, _SAME_ROUNDS) | hidden_words(first.run, rerun.run, setting)
    for name in setting.names:
        words[f"the share of {name} less its product"] = [added[0][name]]
        words[f"what {name} adds under other secrets of the holders"] = [added[0][name] - added[1][name]]
        words[f"what {name} adds before and after a resume"] = [added[0][name] - added[2][name]]
    findings = [
        *unexpected_kinds(first.run, setting, setting.mode.sent_later),
        *sizes_that_differ(first.run, rerun.run),
        *weak_noise(setting, 1, first.noise(), other.noise() - first.noise(), "rows of new people"),
    ]
    if not torch.equal(first.opened(), resumed.opened()):
        findings.append("a prediction that ran again opened another sum")
    if not _is_refused(finished, sources[3], resumed=first.run.states[ROUNDS], done=ROUNDS, changed="row"):
        findings.append("a finished prediction was published again with other data")
    return audit_words_and_noise(_target(setting, "server with dealt keys"), words, findings)


def _audit_rows(finished: Finished, seed: int) -> Audit:
    """Audit what reaches the server, and who reads rows or guesses, in modes that open no sum to the server."""
    setting = finished.setting
    sources = [sources_of(setting, seed + number, seed + number) for number in range(3, 7)]
    first, rerun = finished.predict(sources[0]), finished.predict(sources[1], changed="all")
    saved, ended = (first.run.states[round] for round in (1, ROUNDS))
    resumed, fresh = finished.predict(sources[2], resumed=saved), finished.predict(sources[3])
    findings = unexpected_kinds(first.run, setting, setting.mode.sent_later)
    findings += [*sizes_that_differ(first.run, rerun.run), *_publication_faults(first, resumed, fresh)]
    if finished.predict(sources[2], resumed=ended, done=ROUNDS).run.messages:
        findings.append("a finished prediction was sent again")
    for done, states in ((1, saved), (ROUNDS, ended)):
        if not _is_refused(finished, sources[3], resumed=states, done=done, changed="row"):
            findings.append(f"a prediction was made again with other data, after round {done}")
    return audit_words_and_noise(
        _target(setting, "server with dealt keys"), repeated_words(first.run, resumed.run, _SAME_ROUNDS), findings
    )


def _publication_faults(first: Predicted, resumed: Predicted, fresh: Predicted) -> list[str]:
    """Return findings for rows and guesses that change in a resume, or do not change enough under other keys."""
    findings, setting, kinds = [], first.setting, ("embeddings", "guesses")
    to, channel = setting.publication_of(1), setting.guessing.channel
    before, again, other = (each.run.bodies(_OPENING, *kinds) for each in (first, resumed, fresh))
    for key, (rows,) in before.items():
        sender, _, kind = key
        if len(rows) != len(_NEW_ROWS):
            findings.append(f"{kind} of {sender} are of {count_of(len(rows), 'person')}, and {len(_NEW_ROWS)} joined")
            continue
        if not torch.equal(rows, again[key][0]):
            findings.append(f"a prediction that ran again published other {kind} of {sender}")
        moved = other[key][0].double() - rows.double()
        if kind == "embeddings":
            steps = rows.double() / (to.clip * 2.0**-to.bits)
            if float((steps - steps.round()).abs().max()) > 1e-3:
                findings.append(f"{kind} of {sender} lie off the grid of their noise")
            weak = too_small(moved, math.sqrt(2.0) * to.sigma * to.clip)
        else:
            # The same of both keys by chance alone: whatever the guess is, no likelier than this.
            chance = float(channel.square().sum(dim=1).max())
            weak = stats.binom.sf(int((moved == 0).sum()) - 1, len(moved), chance) < LEVEL
        if weak:
            findings.append(f"{kind} of {sender} have less noise than was agreed")
    return findings


def _target(setting: Setting, who: str) -> str:
    return f"federation {setting.protocol.mode}, prediction, {len(setting.names)} holders, {who}"


def _is_refused(finished: Finished, sources: Mapping[str, Randomness], **changes: Any) -> bool:
    try:
        finished.predict(sources, **changes)
    except BudgetError:
        return True
    return False


def audit_prediction_holders(holders: int = 2, *, victim: int = 1, mode: str = "shared-linear", seed: int = 0) -> Audit:
    """Give all holders but one everything that they were dealt and received in a prediction.

    Args:
        holders: how many, 2 to 5.
        mode: one with shares.
        victim: the number of that one, from 0.
    """
    finished = Finished.of(holders, seed, mode)
    setting, name = finished.setting, finished.setting.names[victim]
    colluders = [each for each in setting.names if each != name]
    source = RecordingSource(SeededRandomness(seed + 11))
    first = finished.predict({**sources_of(setting, 0, seed + 9), setting.server: source})
    keys = (sent.body for _, _, sent in first.run.messages if sent.kind == "mask-keys" and sent.to in colluders)
    dealt = frozenset(key.secret for body in keys for key in unpack_keys(body))
    source = RecordingSource(SeededRandomness(seed + 12), source.drawn, dealt)
    rerun = finished.predict({**sources_of(setting, 0, seed + 9), setting.server: source})
    words: dict[str, list[Tensor]] = {}
    same = 0
    for round in (0, _OPENING):
        after = rerun.run.bodies(round, *MASKED)
        for (sender, to, kind), bodies in first.run.bodies(round, *MASKED).items():
            if sender not in (name, setting.server) or to not in colluders:
                continue
            for before, body in zip(bodies, after[sender, to, kind], strict=True):
                if not bool((body - before).any()):
                    same += 1
                    continue
                words.setdefault(f"{kind} from {sender} to {to} under other keys", []).append(body - before)
    for to in colluders if setting.mode.opens_sum else ():
        whole, whole_again = (_with_colluders_shares(each, finished.states, name, to) for each in (first, rerun))
        for number, (before, again) in enumerate(zip(whole, whole_again, strict=True)):
            words[f"masked share {number} of {name} to {to} beside the others'"] = [again - before]
        for a, b in itertools.combinations(range(len(whole)), 2):
            words[f"masked shares {a} and {b} of {name} to {to} beside the others'"] = [
                word_differences(whole[a], whole[b])
            ]
    # Corrections for two colluders' products of their own matrices are made of their own keys.
    own = (holders - 1) * (holders - 2) * products_of_pairs(setting)
    words |= truncation_words(first.run, setting) if setting.mode.opens_sum else {}
    findings = [f"{same - own} messages follow from what they were dealt"] if same != own else []
    return audit_uniform(_target(setting, f"all but {name} together"), words, findings, false_alarm=FALSE_ALARM)


def _with_colluders_shares(predicted: Predicted, before: Mapping[str, State], victim: str, to: str) -> list[Tensor]:
    """Return the masked shares of one holder to another, plus the colluders' shares: of X, where they have none, of W,
    and of Y before each hop.
    """
    setting = predicted.setting
    colluders = [name for name in setting.names if name != victim]
    x, w, *y = predicted.masked_right(victim, to)
    w = torch.stack([w, *(before[name]["weights"][setting.blocks[to]] for name in colluders)]).sum(dim=0)
    for name in colluders:
        # Only the last is in a checkpoint: they follow from what colluders sent, whose masks they know.
        own = predicted.masked_right(name, next(each for each in setting.names if each != name))[2:]
        for hop, walk in enumerate(predicted.walks):
            y[hop] = y[hop] + own[hop] + walk.mask(predicted.keys[name], EVERYBODY, name)
    return [x, w, *y]


def audit_predicted_once(holders: int = 2, *, mode: str = "shared-linear", seed: int = 0) -> Audit:
    """Predict under two names, with alignment and lists of who was published, and return who was published twice.

    Args:
        holders: how many, 2 to 5.
        mode: one of MODES.
    """
    finished = Finished.of(holders, seed, mode)
    setting, joined = finished.setting, [str(number) for number in range(EVERYBODY)]
    first = _predict_by_ids(finished, joined[:-10], {}, seed + 21)
    published = {name: digest_rows(first.states[1][name]["people"]) for name in setting.names}
    second = _predict_by_ids(finished, joined, published, seed + 22)
    findings = [
        f"{len(bodies[0])} people were published of the {expected} who are new in the {which} prediction"
        for which, run, expected in (("first", first, EVERYBODY - NODES - 10), ("second", second, 10))
        for bodies in run.bodies(0, "new-rows").values()
        if len(bodies[0]) != expected
    ]
    try:
        _predict_by_ids(finished, joined[:-10], published, seed + 23)
        findings.append("whoever was published is published again under another name")
    except BudgetError:
        pass
    # The label holder announces everybody, as after it has lost its list; its own rows are its own to give away.
    everybody = {setting.label_holder: torch.arange(EVERYBODY)}
    if not _is_refused(finished, sources_of(setting, seed + 24, seed + 24), new=everybody):
        findings.append("an announcement made a holder publish whoever was published before")
    notes = ("programs that refuse draw nothing: no chance is involved",)
    return judge(_target(setting, "each person once"), 0.0, 0.0, 0.0, 0.0, notes=notes, findings=tuple(findings))


def _predict_by_ids(finished: Finished, ids: list[str], published: Mapping[str, set[bytes]], seed: int) -> Run:
    """Make a prediction for whoever is new among these ids, given who was published in other predictions."""
    setting, sources, nodes = finished.setting, sources_of(finished.setting, seed, seed), len(ids)
    server, programs = setting.server, dict[str, Any]()
    programs[server] = predicting_server_program(RunContext(server, setting, sources[server]), finished.states[server])
    for name, holding in _joined_holdings(setting).items():
        salt = name.encode().ljust(32)
        state = {"people": digests_of([str(n) for n in range(NODES)], salt), "people/salt": as_message(salt)}
        x = torch.as_tensor(holding.features)[:nodes].float()
        pairs = holding.edge_index[:, (holding.edge_index < nodes).all(dim=0)]
        edges, _ = normalise_edges(pairs[0].numpy(), pairs[1].numpy(), nodes, directed=False)
        schema = GraphSchema("people", x.shape[1], 0.0, 1.0, ("a", "b"), directed=False, source="made for an audit")
        graph = make_graph(x, edges, torch.zeros(nodes, dtype=torch.int64), schema)
        people = People(graph, ids, {**finished.states[name], **state}, published.get(name, set()))
        context = RunContext(name, setting, sources[name])
        programs[name] = predicting_program(context, people, memory={}, progress=lambda step: None)
    return record_run(programs, finished.run.head)
