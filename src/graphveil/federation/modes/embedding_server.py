"""The server of modes "individual" and "paper": it combines what holders publish, and trains with the label holder.
Predictions of both for people who joined later, by the networks of the kept round.

    round    embeddings of those who train -> (shrink) -> standardise -> combine -> steps with label holder -> gradients
             in some rounds: the hidden layer of those who validate to the label holder, which says whether to keep it
    end      embeddings of all others, as they were in the round that was kept -> the hidden layer of all
    later    h0 as in a round; rows of new people alone leave, once, noise for the whole epsilon -> the kept network

What a holder publishes later follows from its own files, and in mode "paper" from what all holders open; each has
sealed its files before.

Source: Chen et al., IJCAI 2022, arXiv 2005.11903, Algorithm 3.
Shapes: embeddings [t, h] of each holder, their hidden layer [t, h].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphveil.federation.core import states
from graphveil.federation.core.networks import EMBEDDING_LENGTH, Combination, standardise
from graphveil.federation.core.publisher import Publisher, james_stein, name_of_rows
from graphveil.federation.core.rows import GROUPS, REST, TRAIN, VALIDATION, Rows, publications_by_group, receive_rows
from graphveil.federation.core.setting import Setting
from graphveil.federation.crypto.masks import MaskKey
from graphveil.federation.crypto.products import Dealer
from graphveil.federation.effects import Checkpoint, Program, Receive, Send
from graphveil.federation.modes import joined
from graphveil.federation.modes.holder import KEPT, Holding, kept_holder, lefts_of, products_of
from graphveil.federation.modes.joined import ROUNDS, Prediction
from graphveil.models import structure_for

#: The number of a prediction's only step, which is in the labels of its products' masks.
_STEP = 1
#: Every holder's rows of one group, in the order of the agreement.
Embeddings = Sequence[Tensor]


@dataclass(frozen=True)
class _Server:
    """The server in a run; `best` is its network and what was published in the round that was kept."""

    setting: Setting
    rows: Rows
    network: Combination
    optimiser: torch.optim.Optimizer
    best: dict[str, Tensor]

    def state(self) -> dict[str, Tensor]:
        return {**states.network_state(self.network, self.optimiser), **self.best}


def embedding_server(run: states.RunContext, nodes: int, rows: int) -> Program[Combination]:
    """The server's program in modes "individual" and "paper": return its network, as of the round that was kept.

    Args:
        run: its run; the generator draws initial weights, the randomness keys of masks.
        nodes: n, rows that all holders share.
        rows: how many train; -1 where only the label holder knows.
    """
    setting, network = run.setting, network_of(run)
    optimiser = setting.training.optimiser(network.parameters())
    best = {}
    if run.state is not None:
        states.load_network(network, optimiser, run.state)
        best = {name: value for name, value in run.state.items() if name.startswith("kept/")}
    dealer = Dealer(lefts_of(setting, nodes), randomness=run.randomness)
    if setting.mode.opens_layer:
        yield from dealer.deal(setting.names)
    server = _Server(setting, (yield from receive_rows(setting, nodes, rows)), network, optimiser, best)
    if run.state is None:
        yield Checkpoint(0, server.state)
    for round in run.rounds_left:
        yield from dealer.correct(products_of(setting, nodes), f"forward {round}")
        yield from _train(server, round)
        yield from dealer.correct(products_of(setting, nodes, transposed=True), f"backward {round}")
        yield Checkpoint(round, server.state)
    states.load_module("kept/network", network, server.best)
    if run.done < setting.rounds:
        yield from _finish(server)
        yield Checkpoint(setting.rounds, server.state)
    return network


def network_of(run: states.RunContext) -> Combination:
    """Return the server's network with initial weights."""
    model = run.setting.model
    return Combination(
        model.combine, len(run.setting.names), model.width, model.layers, model.dropout, generator=run.generator
    )


def _train(server: _Server, round: int) -> Program[None]:
    """Take the steps of one publication, have validation nodes scored, and send the gradients back."""
    setting, published = server.setting, {}
    for group in server.rows.groups(setting, round):
        published[group] = yield from received(setting, len(server.rows.of(group)))
    leaves = [rows.requires_grad_() for rows in _ready(setting, published, TRAIN)]
    for _ in range(setting.steps(round)):
        for leaf in leaves:
            leaf.grad = None
        server.network.train()
        hidden = server.network(leaves)
        yield Send(setting.label_holder, "hidden", hidden.detach())
        gradient = yield Receive(setting.label_holder, "hidden-gradient", tuple(hidden.shape))
        server.optimiser.zero_grad()
        hidden.backward(gradient)
        server.optimiser.step()
    if setting.validates(round):
        # The round is kept, here and at the holders, if it validates best.
        scored = VALIDATION if VALIDATION in published else TRAIN
        yield Send(setting.label_holder, "hidden", hidden_of(setting, server.network, published, scored))
        keep = yield Receive(setting.label_holder, "kept-round", (1,))
        if int(keep):
            server.best.update(states.module_state("kept/network", server.network))
            server.best.update({f"kept/{name}": torch.stack(list(rows)) for name, rows in published.items()})
        for name in setting.names:
            yield Send(name, "best-round", keep)
    for name, leaf in zip(setting.names, leaves, strict=True):
        # The gradient of the last step alone: earlier steps of a publication were for the server's own layers.
        yield Send(name, "embedding-gradient", leaf.grad if leaf.grad is not None else torch.zeros_like(leaf))


def received(setting: Setting, rows: int) -> Program[list[Tensor]]:
    """Return every holder's rows of one group as they arrive, float32 [rows, h] each.

    Args:
        rows: how many a holder publishes.
    """
    embeddings = []
    for name in setting.names:
        embeddings.append((yield Receive(name, "embeddings", (rows, setting.model.width))))
    return embeddings


def _ready(setting: Setting, published: Mapping[str, Embeddings], group: str) -> list[Tensor]:
    """Return the rows of a group shrunk and standardised, as the server combines them: post-processing, and so free.

    Args:
        published: by group; rows of all groups are standardised by mean and length of those who train.
    """
    trained = _shrunk(setting, published[TRAIN], TRAIN)
    shrunk = trained if group == TRAIN else _shrunk(setting, published[group], group)
    noise = 0.0 if setting.privacy.shrink else setting.publication.noise
    return [standardise(rows, EMBEDDING_LENGTH, noise, like=like) for rows, like in zip(shrunk, trained, strict=True)]


def _shrunk(setting: Setting, published: Embeddings, group: str) -> Embeddings:
    if not setting.privacy.shrink:
        return published
    publication = setting.publication_of(publications_by_group(setting)[group])
    return [james_stein(rows, publication) for rows in published]


def hidden_of(setting: Setting, network: Combination, published: Mapping[str, Embeddings], group: str) -> Tensor:
    """Return the last hidden layer of a group's rows, float32 [., h].

    Args:
        published: by group, with those who train.
    """
    # Without dropout: validation should not depend on which units happened to be dropped.
    network.eval()
    with torch.no_grad():
        hidden: Tensor = network(_ready(setting, published, group))
    return hidden


def _finish(server: _Server) -> Program[None]:
    """Receive the rows of all others once, and predict for all."""
    setting, rows = server.setting, server.rows
    published: dict[str, Embeddings] = {
        group: list(server.best[f"kept/{group}"]) for group in GROUPS if f"kept/{group}" in server.best
    }
    published[REST] = yield from received(setting, len(rows.rest))
    hidden = torch.zeros(rows.nodes, setting.model.width)
    for group in published:
        hidden[rows.of(group)] = hidden_of(setting, server.network, published, group)
    yield Send(setting.label_holder, "hidden", hidden)


def predicting_holder(
    run: states.RunContext, before: states.State, holding: Holding, new: Tensor, old: Tensor
) -> Program[Prediction]:
    """The program of one holder of a prediction: publish the rows of new people, once, by the weights that were kept
    and the connections of now; arguments as of `linear_predict`. Raises BudgetError: the holders disagree on who is
    new, or the prediction was made before from other data.
    """
    setting, publisher = run.setting, Publisher(run.setting.publication_of(1), MaskKey.fresh(run.randomness))
    weights = {name: value for name, value in before.items() if name.startswith(KEPT)}
    seal = joined.seal_of(run, holding, {"new": new, **weights})
    if run.state is not None:
        states.load_publisher(publisher, run.state)
    if run.done == ROUNDS and run.state is not None:
        return Prediction(new, publisher, run.state.get("predicted"))

    def state() -> Mapping[str, Tensor]:
        return {**seal, **states.publisher_state(publisher)}

    yield from joined.agree_on_new(run, new)
    party = kept_holder(run, holding, before)
    yield from party.first.prepare()
    yield Checkpoint(1, state, publisher.spent)
    h0 = yield from party.first.forward(_STEP)
    with torch.no_grad():
        structure = structure_for(setting.model.aggregator, holding.edge_index, holding.nodes)
        rows = party.propagation(h0, structure)[new]
    name = name_of_rows(ROUNDS, [rows])
    if publisher.publication.public:  # where nothing is protected, `publish` counts nothing
        publisher.count(name)
    yield Send(setting.server, "embeddings", publisher.publish(rows, name, REST), name)
    result = Prediction(new, publisher, (yield from joined.receive_probabilities(run, before, len(new))))
    yield Checkpoint(ROUNDS, lambda: {**state(), **result.state()}, publisher.spent)
    return result


def predicting_server(run: states.RunContext, before: states.State, nodes: int) -> Program[Combination]:
    """The server's program of a prediction: receive the rows of new people, and apply the network that was kept.

    Args:
        before: the last checkpoint of the finished run.
        nodes: n, rows that all holders share now.
    """
    setting, network = run.setting, network_of(run)
    states.load_module(f"{KEPT}network", network, before)
    if run.done == ROUNDS:
        return network
    dealer = Dealer(lefts_of(setting, nodes), randomness=run.randomness)
    if setting.mode.opens_layer:
        yield from dealer.deal(setting.names)
    count = len((yield Receive(setting.label_holder, "new-rows", (-1,))))
    yield Checkpoint(1, dict)
    yield from dealer.correct(products_of(setting, nodes), f"forward {_STEP}")
    published = {TRAIN: list(before[f"{KEPT}{TRAIN}"]), REST: (yield from received(setting, count))}
    yield Send(setting.label_holder, "hidden", hidden_of(setting, network, published, REST))
    yield Checkpoint(ROUNDS, dict)
    return network
