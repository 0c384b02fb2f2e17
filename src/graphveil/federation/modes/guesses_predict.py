"""Predictions for people who joined later in mode "guesses": each other holder guesses about them, once each.

    other holder   its network of the run, on its present columns and edges -> one randomized guess of each new person
    label holder   its networks and pools of the run, on its present edges, training labels, and the reports of all

With unit "person" the private network guesses from columns alone, and votes count as 0: the lists of who trained were
paid for once, and are not read again.  The server is sent nothing.
Shapes: guesses [new], S [n, n] of everybody at present.
"""

from __future__ import annotations

import torch
from torch import Tensor

from graphveil.federation.core import states
from graphveil.federation.core.setting import Setting
from graphveil.federation.crypto.commitments import name_of
from graphveil.federation.effects import Checkpoint, Program, Receive, Send
from graphveil.federation.modes import guesses, joined
from graphveil.federation.modes.guess_pool import Pool, evidence_of, neighbour_labels, spread_evidence
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.joined import ROUNDS, Prediction
from graphveil.federation.modes.labels import best_round
from graphveil.federation.modes.local_network import LocalNetwork


def predicting_holder(
    run: states.RunContext, before: states.State, holding: Holding, new: Tensor, old: Tensor
) -> Program[Prediction]:
    """The program of one holder: send one guess of each new person, or make predictions of all that arrive.

    Args:
        run: of the prediction; its state is of a prediction that is run again.
        before: the last checkpoint of the finished run.
        holding: features and edges of everybody.
        new: rows that were never guessed about, int64, ascending.
        old: of each row its number in the run, -1 where it was not there, int64 [n].

    Raises:
        BudgetError: the holders disagree on who is new, or the prediction was made before from other data.
    """
    setting, publisher = run.setting, guesses.GuessPublisher(run.setting)
    parts = {name: value for name, value in before.items() if name.startswith(guesses.LEARNED)}
    seal = joined.seal_of(run, holding, {"new": new, "old": old, **parts})
    is_reader = run.me == setting.label_holder
    if run.state is not None:
        publisher.load(run.state)
    if run.done == ROUNDS and run.state is not None:
        return Prediction(new, publisher, run.state.get("predicted"))
    yield from joined.agree_on_new(run, new, server=False)
    network = LocalNetwork(holding.features, holding.edge_index, setting.classes, setting.model.hops)
    if run.state is None and not is_reader:
        # The one place where this holder's data becomes reports that leave.
        publisher.randomize(_guesses(setting, network, before, holding)[new], randomness=run.randomness)
    yield Checkpoint(1, lambda: {**seal, **publisher.state()}, publisher.spent)
    probabilities = None
    if is_reader:
        reports = []
        for name in run.roster.other_holders:
            reports.append((yield Receive(name, "guesses", (len(new),))))
            guesses.require_classes(reports[-1], 0, setting.guessing.channel.shape[1], name)
        scores = _scores(setting, network, before, torch.stack(reports), new, old)
        probabilities = torch.softmax(scores[new], dim=1)
    else:
        own_reports = publisher.publish()
        yield Send(setting.label_holder, "guesses", own_reports, name_of(own_reports))
    result = Prediction(new, publisher, probabilities)
    yield Checkpoint(ROUNDS, lambda: {**seal, **publisher.state(), **result.state()}, publisher.spent)
    return result


def predicting_server(run: states.RunContext, before: states.State, nodes: int) -> Program[None]:
    """The server's program: it sees nothing, and only finishes each round with the other parties."""
    for round in range(run.done + 1, ROUNDS + 1):
        yield Checkpoint(round, dict)


def _learned(before: states.State, part: str) -> dict[str, Tensor]:
    return states.under(f"{guesses.LEARNED}{part}/", before)


def _guesses(setting: Setting, network: LocalNetwork, before: states.State, holding: Holding) -> Tensor:
    """Return a holder's guesses of everybody, int64 [n]."""
    learned = _learned(before, guesses.NETWORK)
    if not setting.per_person:
        return network.logits_of(learned).argmax(dim=1)
    # 0 favours no class: no votes were counted for people who joined later.
    votes = torch.zeros(holding.nodes, learned["weight"].shape[1] - int(holding.features.shape[1]))
    return guesses.private_classes(learned["weight"], learned["bias"], holding.features, votes)


def _scores(
    setting: Setting, network: LocalNetwork, before: states.State, reports: Tensor, new: Tensor, old: Tensor
) -> Tensor:
    """Return log-scores of everybody [n, c], by networks and pools of the run.

    Args:
        reports: of each other holder about new people, int64 [holders, new].
    """
    labels = torch.where(before["desk/split"][0].bool(), before["desk/heard"], -1)
    labels = _in_present_rows(labels, old, default=-1)
    alone = network.logits_of(_learned(before, guesses.ALONE))
    near = neighbour_labels(labels, setting.classes, network.transition)
    scores = Pool.restored(_learned(before, guesses.POOLED_ALONE)).of([alone], near)
    if best_round(before) == 1:  # the run kept the label holder's own predictions
        return scores
    past = _learned(before, guesses.REPORTS)
    has_report = torch.zeros(past["reports"].shape[1], dtype=torch.bool)
    has_report[past["rows"]] = True
    rows = torch.cat([_in_present_rows(has_report, old, default=False).nonzero().squeeze(1), new])
    # Whoever joined in another prediction has no report here: those reports are in that prediction's folder.
    of_all = torch.stack([_in_present_rows(of_holder, old, default=0) for of_holder in past["reports"]])
    of_all[:, new] = reports
    evidence = evidence_of(list(of_all[:, rows]), list(past["chances"]), rows, len(old))
    networks = [guesses.log_of(torch.softmax(scores, dim=1)), network.logits_of(_learned(before, guesses.TAUGHT))]
    return Pool.restored(_learned(before, guesses.POOLED)).of(networks, spread_evidence(evidence, network.transition))


def _in_present_rows(values: Tensor, old: Tensor, *, default: int) -> Tensor:
    """Return values of the run's rows in the present order of rows, `default` for whoever was not in the run."""
    return torch.where(old >= 0, values[old.clamp_min(0)], torch.tensor(default, dtype=values.dtype))
