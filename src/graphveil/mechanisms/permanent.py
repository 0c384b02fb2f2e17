"""Reports that a device can send again and again at the price of one: equal values always give equal reports.

Noise comes from `PermanentRandomness`, separately for every field (an attribute of the person, as the task names it),
every law and every part of a report that has its own noise. So two fields with equal values share no noise, and a
change of one part redraws that part alone:

    key of a part = task, field, law (name and parameters of the mechanism), part, value

    multi-bit        which coordinates are sampled never changes; each sampled one has a bit for each value it takes
    neighbour list   every other user has a bit for "linked" and one for "not linked"
    privunit         the whole vector is one part, which belongs to the user's own public codebook
    anything else    the whole value is one part (a label; a feature vector of another mechanism)

Only new values are paid for: a part costs its share of epsilon for each value that it ever had. The ledger stores names
of these values that reveal nothing without the device's secret. A law is identified by its first name in the catalogue
and the parameters that differ from their defaults, never by its `repr`: so later versions draw the same noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.mechanisms.base.category import CategoryMechanism
from graphveil.mechanisms.base.guarantees import REPORTS_ONCE
from graphveil.mechanisms.base.mechanism import FeatureMechanism
from graphveil.mechanisms.base.reports import MultiBitReports
from graphveil.mechanisms.catalogue import catalogue
from graphveil.mechanisms.edges.adjacency import AdjacencyRR
from graphveil.mechanisms.features.multibit import MultiBit
from graphveil.mechanisms.features.privunit import PrivUnit
from graphveil.mechanisms.features.sampled import SampledVectors
from graphveil.mechanisms.labels.subset_selection import SubsetSelection
from graphveil.mechanisms.samplers.subsets import draw_subsets
from graphveil.privacy import Guarantee, Ledger, PermanentRandomness, Spend, assume
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


#: What a device can report again and again, beside neighbour lists.
Reporter: TypeAlias = FeatureMechanism[Any] | CategoryMechanism[Any]
Context = tuple[str | int | bytes, ...]

#: A bit of a list has two values, so that no relationship ever costs more than twice.
_VALUES_OF_A_BIT = 2


class _HasGuarantee(Protocol):
    """Any mechanism: it states what one report costs."""

    @property
    def guarantee(self) -> Guarantee: ...


def permanent_report(
    mechanism: Reporter,
    value: npt.ArrayLike,
    *,
    device: PermanentRandomness,
    field: str | int,
    ledger: Ledger,
    unit: str,
    user: int | None = None,
) -> tuple[Any, Ledger]:
    """Return what one device sends of its present value, and the ledger after paying for what is new in it.

    Args:
        mechanism: of features or labels.
        value: a vector [d], or a class.
        device: its secret noise.
        field: the attribute that is reported, by its name or number in the task.
        ledger: what the device has paid so far.
        unit: the unit of the budget that pays.
        user: the user's number, where everybody has a public codebook of their own (privunit).

    Raises:
        BudgetError: the value is new and the budget is spent; nothing is sent, and the last report stands.
        InputError: a value outside its range, an empty field, a mechanism of neighbour lists (see `permanent_list`), or
            one with codebooks and no user.
    """
    law = (*_field_context(field), *_law_context(mechanism), *_codebook_context(mechanism, user))
    # Computed before it is paid for and returned afterwards: a report that the budget refuses is never returned.
    report, contexts = _encode(mechanism, value, device, law, user)
    parts = [device.tag(*context) for context in contexts]
    return report, _pay(ledger, unit, mechanism, field, device.tag(*law), parts)


def permanent_list(
    mechanism: AdjacencyRR,
    user: int,
    named: Tensor,
    *,
    device: PermanentRandomness,
    field: str | int,
    ledger: Ledger,
    unit: str,
) -> tuple[Tensor, Ledger]:
    """Return the ids that one user's device names, int32 and ascending, and the ledger after paying for what is new. A
    list that changes costs epsilon once more in all, however often it changes: every bit has two values at most. New
    users do not redraw the bits of earlier ones.

    Args:
        user: whose list it is.
        named: integers [m], whom the true list names, in any order.
        field: which of the user's lists it is (friends, colleagues), by its name or number in the task.

    Raises:
        BudgetError: the list changed and the budget is spent; nothing is sent, and the last report stands.
        InputError: an id that is no other user.
    """
    ids = np.asarray(named)
    allowed = f"ids 0 to {mechanism.nodes - 1} but the user's own"
    if not 0 <= user < mechanism.nodes or ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise InputError(
            "a list that is not a row of ids, or belongs to no user", where="permanent_list", allowed=allowed
        )
    wrong = np.flatnonzero((ids < 0) | (ids >= mechanism.nodes) | (ids == user))
    if wrong.size:
        raise InputError("an id is not another user", where=f"permanent_list, place {int(wrong[0])}", allowed=allowed)
    true = np.zeros(mechanism.nodes, np.bool_)
    true[ids.astype(np.int64)] = True
    true[: _first_other(mechanism, user)] = False
    law = (*_field_context(field), "list", _parameter_text(mechanism.epsilon), mechanism.mode, user)
    threshold = np.uint64(mechanism.threshold)
    # One stream for each value of a bit, and not for each user: a new friend redraws no bit.
    flips = [device.stream(*law, bit).uint64(mechanism.nodes) < threshold for bit in range(_VALUES_OF_A_BIT)]
    reported = true ^ np.where(true, flips[1], flips[0])
    # Bits that this user does not report are not sent, whatever was drawn for them.
    reported[: _first_other(mechanism, user)] = False
    reported[user] = False
    # The list is one part: the first costs epsilon, a second all that a bit can ever cost, later ones nothing.
    parts = [device.tag(*law, np.flatnonzero(true).tobytes())]
    paid = _pay(ledger, unit, mechanism, field, device.tag(*law), parts, most=_VALUES_OF_A_BIT)
    return torch.from_numpy(np.flatnonzero(reported).astype(np.int32)), paid


def permanent_reports(
    mechanism: Reporter, values: Tensor, devices: Sequence[PermanentRandomness], *, field: str | int
) -> Any:
    """Return what many devices send, one row of `values` each: a simulation, in which nobody keeps a ledger.
    User i has codebook i, as in `randomize`.

    Args:
        values: vectors [n, d] or classes [n].
        devices: the secret noise of each user.
        field: the attribute that is reported, by its name or number in the task.
    """
    law, rows = (*_field_context(field), *_law_context(mechanism)), zip(values, devices, strict=True)
    each = [
        _encode(mechanism, value, device, (*law, *_codebook_context(mechanism, user)), user)[0]
        for user, (value, device) in enumerate(rows)
    ]
    tensors = [report.to_tensors() for report in each]
    return type(each[0]).from_tensors({name: torch.cat([own[name] for own in tensors]) for name in tensors[0]})


def permanent_guarantee(mechanism: _HasGuarantee, values: int = 1) -> Guarantee:
    """Return what a device's reports protect together after its value was `values` different ones. Of a neighbour list:
    after it changed, `values` is 2. Raises InputError for fewer than one value.

    Args:
        mechanism: of features, labels or lists.
        values: how many different values the device has had.
    """
    if values < 1:
        raise InputError(f"{values} values", where="permanent_guarantee", allowed="at least 1")
    once = mechanism.guarantee
    permanent = (assume("permanent-reports"), assume("changes-open"))
    assumes = tuple(fact for fact in once.assumes if fact != REPORTS_ONCE)
    # Different values have independent noise, so their reports compose by adding up; equal ones are one report.
    return replace(once, epsilon=values * once.epsilon, delta=values * once.delta, assumes=(*assumes, *permanent))


def _field_context(field: str | int) -> Context:
    if isinstance(field, bool) or not isinstance(field, str | int) or (isinstance(field, str) and not field.strip()):
        raise InputError(f"field is {field!r}", where="permanent report", allowed="a name or a number of the task")
    return "field", field


def _law_context(mechanism: Any) -> Context:
    """The name and parameters that identify a law in all versions; parameters at their default are left out."""
    if isinstance(mechanism, SampledVectors):
        name: str | None = mechanism.kind.name
    else:
        name = next((info.first_name for info in catalogue() if info.builds(mechanism)), None)
    if name is None:
        raise InputError(f"{type(mechanism).__name__} has no permanent report", allowed="features, labels")
    parameters: list[str] = []
    # Without defaults, so that a new parameter with a default changes no old noise.
    for field in fields(mechanism):
        value = getattr(mechanism, field.name)
        if field.init and field.name != "kind" and value != field.default:
            parameters += [field.name, _parameter_text(value)]
    # Stated as numbers, since a later version may choose them by another rule.
    chosen = getattr(mechanism, "coordinates", mechanism.sent if isinstance(mechanism, SubsetSelection) else None)
    return "law", name, *parameters, *(() if chosen is None else ("coordinates", chosen))


def _parameter_text(value: float | str) -> str:
    """A parameter as text, equal for equal numbers whatever their type."""
    # hex is exact: a rounded text could give two laws one stream, and their reports would share noise.
    return float(value).hex() if isinstance(value, int | float) else str(value)


def _codebook_context(mechanism: object, user: int | None) -> Context:
    if not isinstance(mechanism, PrivUnit):
        return ()
    if user is None:
        raise InputError("no user is named", where="permanent report", allowed="user: whose public codebook it is")
    return "codebook", user


def _encode(
    mechanism: Reporter, value: npt.ArrayLike, device: PermanentRandomness, law: Context, user: int | None
) -> tuple[Any, list[Context]]:
    """One device's report, and the context of each of its parts, present value included."""
    if isinstance(mechanism, CategoryMechanism):
        row = torch.as_tensor(value)[None]
        # One type for every input: a class as 32-bit and as 64-bit integer must get the same noise.
        context = *law, row.numpy().astype(np.int64).tobytes()
    elif hasattr(mechanism, "dimension"):
        row = torch.as_tensor(value, dtype=torch.float64)[None]
        if isinstance(mechanism, MultiBit):
            rows = mechanism.domain.open(row)
            # Without the value: if the sampled coordinates changed with it, the change would show.
            columns = draw_subsets(1, mechanism.dimension, mechanism.coordinates, device.stream(*law, "sampled"))
            fractions = mechanism.domain.fractions(rows.at(0, 1, columns)) + 0.0
            coordinates = zip(columns[0], fractions[0], strict=True)
            contexts: list[Context] = [(*law, int(column), fraction.tobytes()) for column, fraction in coordinates]
            # Each coordinate has a stream of its own, so a change of one redraws that bit alone.
            bits = [mechanism.law.draw(fractions[:, k], device.stream(*own)) for k, own in enumerate(contexts)]
            reported = torch.from_numpy(np.concatenate(bits)[None])
            return MultiBitReports(torch.from_numpy(columns.astype(np.int32)), reported), contexts
        context = *law, (row.numpy() + 0.0).tobytes()  # -0.0 is 0.0
    else:
        raise InputError(f"{type(mechanism).__name__} has no permanent report", allowed="features, labels")
    noise = device.stream(*context)
    if isinstance(mechanism, PrivUnit):
        return mechanism.randomize(row, randomness=noise, first=user or 0), [context]
    return mechanism.randomize(row, randomness=noise), [context]


def _first_other(mechanism: AdjacencyRR, user: int) -> int:
    return user + 1 if mechanism.mode == "lower" else 0


def _pay(
    ledger: Ledger,
    unit: str,
    mechanism: _HasGuarantee,
    field: str | int,
    task: str,
    parts: Sequence[str],
    *,
    most: int | None = None,
) -> Ledger:
    """The ledger after paying for the parts whose value it does not contain yet.

    Args:
        task: the secret name of the field and its law.
        field: the public name of the field.
        parts: the secret names of its parts with their values, each of which costs the same share.
        most: the number of values after which nothing more is paid; None: no limit.
    """
    spends = [spend.parameters for spend in ledger.spends if spend.unit == unit and spend.parameters.get("of") == task]
    # A value that was paid for is free from then on: it always gives the same report.
    seen = {name for parameters in spends for name in str(parameters["values"]).split()}
    unpaid = [name for name in parts if name not in seen]
    if not unpaid or (most is not None and len(seen) >= most):
        return ledger
    cost, share = mechanism.guarantee, len(unpaid) / len(parts)
    facts = {"field": field, "of": task, "values": " ".join(unpaid)}
    kind = repr(mechanism).partition("(")[0]
    return ledger.spend(Spend("permanent report", unit, kind, facts, share * cost.epsilon, share * cost.delta))
