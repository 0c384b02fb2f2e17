"""Predictions for people who joined later: what is shipped hides them, each weakened copy is found out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.audit.catalogue import ON_SHARES
from graphveil.audit.federation import predictions
from graphveil.audit.federation.predictions import (
    EVERYBODY,
    audit_predicted_once,
    audit_prediction_holders,
    audit_prediction_server,
)
from graphveil.audit.verdict import Audit
from graphveil.federation.core.publisher import Publisher
from graphveil.federation.core.setting import MODES, Setting
from graphveil.federation.effects import Receive, Send
from graphveil.federation.modes import joined, linear_predict
from graphveil.federation.modes.guesses import GuessPublisher
from graphveil.federation.modes.programs import Programs, programs_of
from graphveil.federation.predicting import People
from tests.audit import test_federation_dealer as dealer
from tests.audit.test_federation_holders import relabelled

Patch = pytest.MonkeyPatch


@pytest.mark.parametrize("holders", [2, 3])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("audit", [audit_prediction_server, audit_prediction_holders, audit_predicted_once])
def test_a_prediction_shows_what_its_mode_opens_of_new_people_alone(
    audit: Callable[..., Audit], mode: str, holders: int
) -> None:
    """False-alarm rate 1e-6 each, seeds fixed; refusals involve no chance."""
    if audit is audit_prediction_holders and mode not in ON_SHARES:
        return  # holders are sent nothing masked
    result = audit(holders, mode=mode)
    assert result.holds and "prediction" in result.target, result.notes
    assert result.false_alarm == (0.0 if audit is audit_predicted_once else 1e-6)


def multiplied_anew(patch: Patch) -> None:
    real = linear_predict.publish_rest

    def publish(exchange: Any, commitment: Any, y: Tensor, *rest: Any) -> Any:
        off = exchange.run.state is not None and exchange.run.me == "holder1"
        return real(exchange, commitment, y + int(off), *rest)

    patch.setattr(linear_predict, "publish_rest", publish)


def nothing_counted(patch: Patch) -> None:
    patch.setattr(Publisher, "count", lambda me, name: None)


def the_server_hears_more(patch: Patch) -> None:
    announced, serve = linear_predict._announced, linear_predict.propagation.serve_walks

    def announces(run: Any, *rest: Any) -> Any:
        rows = yield from announced(run, *rest)
        if run.me == "holder1":
            yield Send("server", "kept-round", torch.tensor([1]))
        return rows

    def serves(*rest: Any) -> Any:
        if rest[-1] == EVERYBODY:  # in the prediction alone
            yield Receive("holder1", "kept-round", (1,))
        return (yield from serve(*rest))

    patch.setattr(linear_predict, "_announced", announces)
    patch.setattr(linear_predict.propagation, "serve_walks", serves)


def whoever_was_in_another_prediction_counts_as_new(patch: Patch) -> None:
    real = People.new
    patch.setattr(People, "new", lambda me, order: real(People(me.graph, me.ids, me.before, set()), order))


def whoever_was_in_the_run_counts_as_new(patch: Patch) -> None:
    patch.setattr("graphveil.federation.predicting.digest_rows", lambda digests: set())


def an_announcement_is_believed(patch: Patch) -> None:
    def announced(run: Any, nodes: int, new: Tensor) -> Any:
        if run.me == run.setting.label_holder:
            for name in (run.setting.server, *run.roster.other_holders):
                yield Send(name, "new-rows", new)
        else:
            new = yield Receive(run.setting.label_holder, "new-rows", (-1,))
        return linear_predict.rows_of(nodes, new)

    patch.setattr(linear_predict, "_announced", announced)


def noiseless(patch: Patch) -> None:
    patch.setattr(Publisher, "_noise", lambda me, label, shape: torch.zeros(shape))
    patch.setattr(GuessPublisher, "randomize", lambda me, guesses, randomness: setattr(me, "reports", guesses))


def off_the_grid(patch: Patch) -> None:
    real = Publisher.publish
    patch.setattr(Publisher, "publish", lambda me, *rest: real(me, *rest) + 1e-5)


def seals_are_not_compared(patch: Patch) -> None:
    real = joined.seal_of
    patch.setattr(joined, "seal_of", lambda run, *rest: real(replace(run, state=None), *rest))


def finished_ones_begin_anew(patch: Patch) -> None:
    def begun(real: Any) -> Any:
        return lambda run, *rest: real(replace(run, done=min(run.done, 1)), *rest)

    def anew(setting: Setting) -> Programs:
        real = programs_of(setting)
        return replace(real, later_holder=begun(real.later_holder), later_server=begun(real.later_server))

    patch.setattr(predictions, "programs_of", anew)


SERVER: Callable[[], Audit] = audit_prediction_server
HOLDERS: Callable[[], Audit] = audit_prediction_holders


def of(mode: str, audit: Callable[..., Audit] = audit_prediction_server) -> Callable[[], Audit]:
    return partial(audit, mode=mode)


FIRST_LAYER = of("paper", audit_prediction_holders)


@pytest.mark.parametrize(
    ("audit", "weaken", "note"),
    [
        (SERVER, dealer.unmasked("open"), "less its product"),
        (SERVER, dealer.masks_of_keys_that_the_server_knows, "under other secrets of the holders"),
        (SERVER, dealer.half_the_noise, "less noise than"),
        (SERVER, dealer.low_bits_kept, "below the steps"),
        (SERVER, dealer.noise_repeated_with_other_data, "other data under the same noise"),
        (SERVER, dealer.noise_of_one_holder_repeated_with_other_data, "other data under the same noise"),
        (SERVER, dealer.matrices_in_the_clear, "leaves of the other matrix of holder1"),
        (SERVER, dealer.one_key_for_both_readers, "leaves of the matrix of holder2"),
        (SERVER, multiplied_anew, "opened another sum"),
        (SERVER, nothing_counted, "published again with other data"),
        (SERVER, the_server_hears_more, "kept-round was sent to the server"),
        (HOLDERS, relabelled("V hop 0", None), "follow from what they were dealt"),
        (HOLDERS, relabelled("weights of X", None), "masked share 1 of holder2"),
        (HOLDERS, relabelled("V last hop 1", "V last hop 0"), "masked shares 2 and 3"),
        (HOLDERS, relabelled("weights of X", "V hop 0"), "masked shares 0 and 1"),
        (HOLDERS, relabelled("r' .*", None), "the server's parts"),
        (HOLDERS, relabelled("r' .*", "r' always"), "parts from one to the next"),
        (audit_predicted_once, whoever_was_in_another_prediction_counts_as_new, "again under another name"),
        (audit_predicted_once, whoever_was_in_the_run_counts_as_new, "in the first prediction"),
        (audit_predicted_once, an_announcement_is_believed, "an announcement made"),
        (of("individual"), noiseless, "embeddings of holder2 have less noise"),
        (of("individual"), off_the_grid, "lie off the grid"),
        (of("individual"), seals_are_not_compared, "with other data, after round 1"),
        (of("individual"), finished_ones_begin_anew, "was sent again"),
        (of("paper"), noiseless, "embeddings of holder1 have less noise"),
        (of("paper"), finished_ones_begin_anew, "was sent again"),
        (of("guesses"), noiseless, "guesses of holder2 have less noise"),
        (of("guesses"), seals_are_not_compared, "with other data, after round 2"),
        (of("all-shares"), seals_are_not_compared, "with other data, after round 1"),
        (FIRST_LAYER, relabelled("(V forward|U).*", None), "follow from what they were dealt"),
        (of("individual", audit_predicted_once), whoever_was_in_the_run_counts_as_new, "in the first prediction"),
    ],
)
def test_a_weakened_copy_is_found(
    audit: Callable[[], Audit], weaken: Callable[[Patch], None], note: str, monkeypatch: Patch
) -> None:
    weaken(monkeypatch)
    result = audit()
    assert not result.holds and any(note in line for line in result.notes), result.notes
