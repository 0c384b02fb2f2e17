"""Reports that can be made again (checklist item 19): the same for ever, redrawn in part, paid once a value."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from graphveil.audit.cases import feature_cases
from graphveil.errors import BudgetError, InputError
from graphveil.mechanisms import (
    AdjacencyRR,
    AnalyticGaussian,
    MultiBit,
    NoisyCounts,
    PrivUnit,
    RandomizedResponse,
    catalogue,
    permanent_guarantee,
    permanent_list,
    permanent_report,
    permanent_reports,
)
from graphveil.privacy import Ledger, PermanentRandomness, SeededRandomness
from tests.mechanisms.conformance import FALSE_ALARM, fits

SECRET = bytes(range(32))
LABEL = RandomizedResponse(epsilon=1.0, classes=4)
VECTOR = MultiBit(epsilon=6.0, dimension=12, low=0.0, high=1.0, sampled=4)
LISTS = AdjacencyRR(epsilon=2.0, nodes=400)
LABELS = {info.name for info in catalogue() if info.kind == "labels"}
FEATURES = {case.name: case.large(case.epsilon) for case in feature_cases() if case.name not in LABELS}


def device(secret: bytes = SECRET) -> PermanentRandomness:
    return PermanentRandomness(secret, "survey")


def purse(epsilon: float = 100.0, delta: float = 0.0) -> Ledger:
    return Ledger.open({"unit": (epsilon, delta)})


def send(
    mechanism: Any, value: Any, ledger: Ledger | None = None, secret: bytes = SECRET, field: str = "field"
) -> tuple[Any, Ledger]:
    paid = purse(delta=0.1) if ledger is None else ledger
    user = 5 if isinstance(mechanism, PrivUnit) else None
    how: dict[str, Any] = {"device": device(secret), "field": field, "user": user}
    return permanent_report(mechanism, value, ledger=paid, unit="unit", **how)


def send_list(
    named: list[int],
    *,
    user: int = 0,
    lists: AdjacencyRR = LISTS,
    ledger: Ledger | None = None,
    secret: bytes = SECRET,
    field: str = "field",
) -> tuple[set[int], Ledger]:
    paid = purse() if ledger is None else ledger
    how: dict[str, Any] = {"device": device(secret), "field": field, "unit": "unit"}
    report, paid = permanent_list(lists, user, torch.tensor(named, dtype=torch.int64), ledger=paid, **how)
    assert report.dtype == torch.int32 and bool((report[1:] > report[:-1]).all())
    return set(report.tolist()), paid


def equal(left: Any, right: Any) -> bool:
    return all(torch.equal(part, right.to_tensors()[name]) for name, part in left.to_tensors().items())


@pytest.mark.parametrize("name", FEATURES)
def test_every_feature_mechanism_has_permanent_reports(name: str) -> None:
    """What a mechanism is told apart by shows no place in memory, which would not be the same tomorrow."""
    mechanism = FEATURES[name]
    assert " at 0x" not in repr(mechanism)
    value = torch.full((mechanism.dimension,), 0.25)
    first, ledger = send(mechanism, value)
    again, ledger = send(mechanism, value.double().numpy(), ledger)
    assert equal(first, again) and len(ledger.spends) == 1
    assert ledger.total("unit")[0] == mechanism.guarantee.epsilon
    other = [send(mechanism, value, secret=secret)[0] for secret in secrets(20)]
    assert not all(equal(first, second) for second in other)
    zeros = torch.zeros(mechanism.dimension)
    assert equal(send(mechanism, zeros)[0], send(mechanism, -zeros)[0])


def test_reports_are_the_same_in_every_version() -> None:
    """Pinned: a device that is updated must not draw anew."""
    assert [int(send(LABEL, value)[0].labels) for value in range(4)] == [0, 1, 2, 1]
    sent = send(VECTOR, torch.linspace(0, 1, 12))[0]
    assert (sent.indices[0].tolist(), sent.bits[0].tolist()) == ([1, 5, 6, 7], [0, 0, 1, 1])
    assert sorted(send_list([3, 70])[0])[:6] == [3, 29, 34, 57, 60, 75]


def test_item_19_one_changed_edge_redraws_no_other_bit() -> None:
    before, after = send_list([3, 70])[0], send_list([3, 70, 200])[0]
    assert before ^ after <= {200}
    changed = [before ^ send_list([3, 70, other])[0] for other in range(100, 160)]
    assert all(bits <= {other} for bits, other in zip(changed, range(100, 160), strict=True))


def test_a_changed_bit_has_a_coin_of_its_own() -> None:
    """Under one coin for both values a changed list would turn every answer over, for certain.

    399 places at epsilon 2: p = 0.119 of being flipped, so 2 p (1 - p) = 0.21 of the answers stay; 30 or fewer, or 140
    or more, would by chance 1e-8.
    """
    nobody, everybody = send_list([])[0], send_list(list(range(1, 400)))[0]
    assert 30 < 399 - len(nobody ^ everybody) < 140


def test_lists_go_on_when_users_join_and_leave_out_the_user_and_those_before() -> None:
    more = AdjacencyRR(epsilon=2.0, nodes=500)
    old, new = send_list([3, 70])[0], send_list([3, 70], lists=more)[0]
    assert {named for named in new if named < 400} == old
    assert max(new) >= 400
    assert min(send_list([5, 70], user=50)[0]) > 50
    both = AdjacencyRR(epsilon=2.0, nodes=400, mode="both")
    named, ledger = send_list([5, 70], user=50, lists=both)
    assert 50 not in named and min(named) < 50
    assert ledger.total("unit")[0] == both.guarantee.epsilon == 4.0
    # A link of which another user's list tells is no change of this one.
    _, ledger = send_list([5, 70], user=50)
    assert send_list([70], user=50, ledger=ledger)[1] == ledger


def test_item_19_a_changed_entry_redraws_its_own_bit_alone() -> None:
    value = torch.linspace(0, 1, 12)
    sent, ledger = send(VECTOR, value)
    columns = sent.indices[0].tolist()
    for column in range(12):
        changed = value.clone()
        changed[column] = 1.0 - changed[column]
        again, paid = send(VECTOR, changed, ledger)
        assert torch.equal(again.indices, sent.indices)
        unchanged = [place for place, own in enumerate(columns) if own != column]
        assert torch.equal(again.bits[0, unchanged], sent.bits[0, unchanged])
        # A sampled entry costs its share, one that is not sampled is not even noticed.
        assert paid.total("unit")[0] == pytest.approx(6.0 + (1.5 if column in columns else 0.0))


def test_item_19_distinct_values_are_counted_and_refused_beyond_the_cap() -> None:
    """A hundred equal reports are one."""
    ledger, first = purse(2.0), [send(LABEL, value)[0] for value in (0, 1)]
    for value in [0, 1, 1] * 40:
        again, ledger = send(LABEL, value, ledger)
        assert equal(again, first[value])
    assert ledger.total("unit") == (2.0, 0.0)
    with pytest.raises(BudgetError, match="permanent report"):
        send(LABEL, 2, ledger)
    assert equal(send(LABEL, 1, ledger)[0], first[1]), "what was paid for goes on"
    ledger = purse()
    for round_ in range(10):
        _, ledger = send_list([3] if round_ % 2 else [3, 70], ledger=ledger)
    assert ledger.total("unit") == (4.0, 0.0)


def test_other_tasks_laws_and_fields_pay_for_themselves_and_the_ledger_shows_no_value() -> None:
    _, ledger = send(LABEL, 2)
    again = Ledger.from_dict(ledger.to_dict())
    assert send(LABEL, 2, again)[1] is again
    parameters = str(ledger.spends[0].parameters)
    assert SECRET.hex() not in parameters and " 2" not in parameters
    ledger = purse()
    for mechanism in (LABEL, RandomizedResponse(epsilon=2.0, classes=4)):
        for task in ("spring", "autumn"):
            source = PermanentRandomness(SECRET, task)
            _, ledger = permanent_report(mechanism, 2, device=source, field="field", ledger=ledger, unit="unit")
    assert ledger.total("unit") == (6.0, 0.0)
    for user in (1, 2, 3):
        _, ledger = send_list([9], user=user, ledger=ledger)
    assert ledger.total("unit") == (12.0, 0.0)
    ledger = purse()
    for field in ("left", "right", "left"):
        _, ledger = send(LABEL, 1, ledger, field=field)
    assert ledger.total("unit") == (2.0, 0.0)
    assert [spend.parameters["field"] for spend in ledger.spends] == ["left", "right"]


def test_the_guarantee_counts_values_and_says_what_is_not_hidden() -> None:
    once, thrice = permanent_guarantee(LABEL), permanent_guarantee(LABEL, 3)
    assert (once.epsilon, thrice.epsilon) == (1.0, 3.0)
    assert once.assumption("changes-open")
    assert not once.assumption("reports-once") and LABEL.guarantee.assumption("reports-once")
    gaussian = AnalyticGaussian(epsilon=1.0, delta=1e-6, dimension=2)
    assert permanent_guarantee(gaussian, 2).delta == 2e-6
    with pytest.raises(InputError, match="values"):
        permanent_guarantee(LABEL, 0)


def secrets(count: int) -> list[bytes]:
    """Secrets from a fixed seed, so that what a test says of chance is said once and for all."""
    source = SeededRandomness(19)
    return [source.bytes(32) for _ in range(count)]


def test_lists_under_random_secrets_follow_the_mechanism() -> None:
    """Flips of 199 true and 200 false bits, 40 secrets; half the flips are refused. And the pairs' coins are apart."""
    true = list(range(1, 200))
    rows = []
    for secret in secrets(40):
        named, _ = send_list(true, secret=secret)
        rows.append([(k in named) != (k < 200) for k in range(1, 400)])
    flips = np.array(rows)
    for part in (flips[:, :199], flips[:, 199:]):
        wrong, total = int(part.sum()), part.size
        assert stats.binomtest(wrong, total, LISTS.flip).pvalue > FALSE_ALARM
        assert stats.binomtest(wrong, total, LISTS.flip / 2).pvalue < FALSE_ALARM
    together = int((flips[:, :-1] & flips[:, 1:]).sum())
    assert stats.binomtest(together, flips[:, 1:].size, LISTS.flip**2).pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    ("other", "fields", "tasks"),
    [
        (2, ("left", "right"), ("a", "a")),
        (3, ("left", "right"), ("a", "a")),
        (2, ("left", "left"), ("a", "b")),
        (3, ("left", "left"), ("a", "a")),
    ],
    ids=["two fields", "two values of two fields", "two tasks", "two values of one field"],
)
def test_labels_follow_their_law_and_share_no_noise(
    other: int, fields: tuple[str, str], tasks: tuple[str, str]
) -> None:
    """Sixteen cells of a product law, 1,000 devices, one false alarm in 10^6.

    A coin that both would share is refused, and so is the law of epsilon 1.8.
    """
    law, more = (RandomizedResponse(epsilon=e, classes=4).transition().numpy() for e in (1.0, 1.8))
    first, second = (
        permanent_reports(
            LABEL, torch.full((1000,), value), [PermanentRandomness(each, task) for each in secrets(1000)], field=field
        ).labels.numpy()
        for value, field, task in zip((2, other), fields, tasks, strict=True)
    )
    chances = np.outer(law[2], law[other]).ravel()
    seen = np.bincount(4 * first + second, minlength=16)
    assert fits(seen, np.log(chances)) > FALSE_ALARM > fits(seen, np.log(np.outer(more[2], more[other]).ravel()))
    shared = np.bincount(4 * first + (first + other - 2) % 4, minlength=16)
    assert fits(shared, np.log(chances)) < FALSE_ALARM


def test_two_fields_of_lists_share_no_noise() -> None:
    """Which places are flipped: as two draws agree, one false alarm in 10^6."""
    friends, colleagues = (send_list([3, 70], field=field)[0] for field in ("friends", "colleagues"))
    same = 399 - len(friends ^ colleagues)
    assert stats.binomtest(same, 399, (1 - LISTS.flip) ** 2 + LISTS.flip**2).pvalue > FALSE_ALARM
    assert same < 399


@pytest.mark.parametrize("field", ["", " ", None, True, 1.5])
def test_a_field_is_a_name_or_a_number(field: Any) -> None:
    with pytest.raises(InputError, match="field is"):
        send(LABEL, 2, field=field)
    assert equal(send(LABEL, 2, field=7)[0], send(LABEL, 2, field=7)[0])  # type: ignore[arg-type]


def test_every_device_has_the_codebook_that_randomize_gives_it() -> None:
    """All in codebook 0, as once, the estimates share the codewords of one book and lean where it leans."""
    mechanism = PrivUnit(epsilon=4.0, dimension=3)
    values = torch.full((50, 3), 0.5)
    devices = [device(secret) for secret in secrets(50)]
    sent = permanent_reports(mechanism, values, devices, field="field")
    fresh = mechanism.randomize(values, randomness=SeededRandomness(0))
    assert torch.equal(sent.codebooks, fresh.codebooks) and sent.codebooks.tolist() == list(range(50))
    report, ledger = permanent_report(
        mechanism, values[7], device=devices[7], field="field", ledger=purse(), unit="unit", user=7
    )
    assert int(report.codebooks[0]) == 7 and int(report.codewords[0]) == int(sent.codewords[7])
    assert ledger.total("unit")[0] == 4.0
    with pytest.raises(InputError, match="no user is named"):
        permanent_report(mechanism, values[7], device=device(), field="field", ledger=purse(), unit="unit")


def test_a_version_that_prints_a_mechanism_otherwise_draws_nothing_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    value = torch.linspace(0, 1, 12)
    before, ledger = send(VECTOR, value)
    label, ledger = send(LABEL, 2, ledger)
    named, ledger = send_list([3, 70], ledger=ledger)
    for mechanism in (MultiBit, RandomizedResponse, AdjacencyRR):
        monkeypatch.setattr(mechanism, "__repr__", lambda self: f"{type(self).__name__} of another version")
    assert equal(send(VECTOR, value, ledger)[0], before) and send(VECTOR, value, ledger)[1] is ledger
    assert equal(send(LABEL, 2, ledger)[0], label) and send(LABEL, 2, ledger)[1] is ledger
    assert send_list([3, 70], ledger=ledger) == (named, ledger)
    whole = MultiBit(epsilon=6, dimension=12, low=0, high=1, sampled=4)
    assert equal(send(whole, value)[0], before)  # 6 is 6.0


@pytest.mark.parametrize(
    ("mechanism", "value", "message"),
    [
        (LABEL, 4, "not a declared class"),
        (LABEL, 1.5, "labels are"),
        (VECTOR, torch.full((12,), 1.5), "row 0, column 0"),
        (VECTOR, torch.full((12,), math.nan), "row 0, column 0"),
        (VECTOR, torch.zeros(11), "11"),
        (FEATURES["laplace"], torch.full((1,), 9.0), "row 0, column 0"),
        (NoisyCounts(epsilon=1.0), 3, "NoisyCounts has no permanent report"),
        (LISTS, torch.tensor([3]), "AdjacencyRR has no permanent report"),
    ],
)
def test_values_that_no_device_sends_are_refused_and_cost_nothing(mechanism: Any, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        send(mechanism, value)


def test_ids_that_are_no_other_user_are_refused() -> None:
    for user, named in ((0, [0]), (0, [400]), (0, [-1]), (400, [3]), (-1, [3])):
        with pytest.raises(InputError, match="permanent_list"):
            send_list(named, user=user)
