"""Predictions for people who joined later, in each mode: as the run would have had them, once, of sealed files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from graphveil.errors import BudgetError
from graphveil.federation.core.messages import simulate
from graphveil.federation.core.setting import MODES
from graphveil.federation.core.states import RunContext
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.joined import ROUNDS
from graphveil.federation.modes.programs import programs_of
from graphveil.privacy import SeededRandomness
from tests.federation.views import Recorder, holdings, setting_of, watched

OLD, COPIES, EVERYBODY = 120, 30, 150
NEW = torch.arange(OLD, EVERYBODY)
#: Who neither trains nor validates: each of the new people has the columns and the neighbours of somebody here.
LIKE = torch.arange(OLD // 2, OLD // 2 + COPIES)


@cache
def trained(mode: str, options: tuple[tuple[str, Any], ...] = ()) -> Any:
    """A finished run of three holders: its setting, data, and what each party has kept."""
    by_holder = holdings(3, OLD, 5)
    if mode != "guesses":  # there many nodes validate, so that opinions are pooled
        options = (("epochs", 4), ("validate", 2), *options)
    setting = setting_of(by_holder, mode=mode, opened=True, **dict(options))
    with pytest.MonkeyPatch.context() as patch:
        checkpoints = watched(setting, by_holder, patch).checkpoints
    return setting, by_holder, {name: states[-1] for name, states in checkpoints.items()}


def everybody(by_holder: Mapping[str, Holding]) -> dict[str, Holding]:
    """All, with new people who have the neighbours of their like and are nobody's, so that nobody's row moves."""
    place = torch.full((OLD,), -1, dtype=torch.int64)
    place[LIKE] = NEW
    now = {}
    for name, holding in by_holder.items():
        near = holding.edge_index[:, place[holding.edge_index[1]] >= 0]
        edges = torch.cat([holding.edge_index, torch.stack([near[0], place[near[1]]])], dim=1)
        features = torch.as_tensor(holding.features)
        now[name] = Holding(torch.cat([features, features[LIKE]]), edges, 1.0)
    return now


class Session(Recorder):
    """One session of a prediction: results, messages, and what is kept by party and round."""

    def __init__(
        self, mode: str, *, done: int = 0, checkpoints: Any = None, data: Any = None, new: Any = None, **options: Any
    ):
        self.setting, before, self.states = trained(mode, tuple(options.items()))
        if done:  # as a file may give them back
            self.states = {name: dict(reversed(state.items())) for name, state in self.states.items()}
        super().__init__()
        data, old = data or everybody(before), torch.arange(EVERYBODY).where(torch.arange(EVERYBODY) < OLD, -1)

        programs: dict[str, Any] = {}
        of_mode = programs_of(self.setting)
        for place, name in enumerate(("server", *self.setting.names)):
            state = None if checkpoints is None else checkpoints[name, done]
            run = RunContext(name, self.setting, SeededRandomness(place + 10 * done), done=done, state=state)
            if name == "server":
                programs[name] = of_mode.later_server(run, self.states[name], EVERYBODY)
            else:
                rows = (new or {}).get(name, NEW)
                programs[name] = of_mode.later_holder(run, self.states[name], data[name], rows, old)
        self.results, _ = simulate(programs, watch=self.watch)

    @property
    def probabilities(self) -> Tensor:
        return self.results["h1"].probabilities


@pytest.mark.parametrize("mode", MODES)
def test_new_people_are_told_what_their_like_were_told_in_the_run(mode: str) -> None:
    """Shares are rounded; elsewhere but for the order of sums."""
    seen = Session(mode)
    expected = seen.states["h1"]["desk/best"][LIKE]
    assert torch.allclose(seen.probabilities, expected, atol=0.02 if mode in ("shared-linear", "all-shares") else 1e-4)
    assert float((expected - expected.flip(0)).abs().max()) > 0.002  # not all alike
    assert all(seen.results[name].probabilities is None for name in ("h2", "h3"))


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "shared-linear"])
def test_a_prediction_that_runs_again_sends_the_same_and_a_finished_one_sends_nothing(mode: str) -> None:
    epsilon = np.inf if mode == "all-shares" else 4.0
    first = Session(mode, epsilon=epsilon)
    again = Session(mode, epsilon=epsilon, done=1, checkpoints=first.checkpoints)
    published = [[send for _, send in each.sent if send.kind in ("embeddings", "guesses")] for each in (first, again)]
    assert all(torch.equal(a.body, b.body) and a.name == b.name for a, b in zip(*published, strict=True))
    assert all(len(send.body) == COPIES and send.name for send in published[0])
    ended = Session(mode, epsilon=epsilon, done=ROUNDS, checkpoints=first.checkpoints)
    assert not ended.sent and torch.equal(ended.probabilities, first.probabilities)


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "shared-linear"])
@pytest.mark.parametrize("done", [1, ROUNDS])
def test_other_files_are_refused_before_anything_leaves(mode: str, done: int) -> None:
    """Also without noise, and where only an edge differs."""
    first = Session(mode)
    for who in ("h1", "h3"):
        for change in ("features", "edges"):
            by_holder = everybody(trained(mode)[1])
            holding = by_holder[who]
            if change == "features":
                holding.features[-1] += 0.5
            else:
                by_holder[who] = replace(holding, edge_index=holding.edge_index[:, 1:])
            with pytest.raises(BudgetError, match=f"{who}: other data than at first"):
                Session(mode, done=done, checkpoints=first.checkpoints, data=by_holder)


@pytest.mark.parametrize("mode", MODES)
def test_no_announcement_makes_a_holder_publish_somebody_again(mode: str) -> None:
    with pytest.raises(BudgetError, match="disagree on who was published"):
        Session(mode, new={"h2": NEW[1:]})


def test_with_unit_person_a_guess_reads_columns_alone() -> None:
    """Lists of who trained were paid for once: other connections of everybody change no guess."""
    options = {"unit": "person", "epsilon": 8.0, "degree_bound": 3}
    first = Session("guesses", **options)
    by_holder = everybody(trained("guesses", tuple(options.items()))[1])
    for name in ("h2", "h3"):
        by_holder[name] = replace(by_holder[name], edge_index=by_holder[name].edge_index[:, ::3])
    other = Session("guesses", data=by_holder, **options)
    sent = [[send.body for _, send in each.sent if send.kind == "guesses"] for each in (first, other)]
    assert all(map(torch.equal, *sent)) and len(sent[0]) == 2
    assert {first.results[name].publisher.spent for name in ("h2", "h3")} == {8.0}
