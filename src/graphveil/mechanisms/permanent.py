"""Reports that a device can make again and again at the price of one: equal values give equal reports, for ever.

Noise comes from `PermanentRandomness`, apart for every field (an attribute of the person, as the task names it), every
law and every part of a report that has noise of its own, so that two fields with equal values share nothing, and that a
change of one part redraws that part alone:

    key of a part = task, field, law (name and parameters of the mechanism), part, value

    multi-bit        which coordinates are sampled never changes; each sampled one has a bit for each value it takes
    neighbour list   every other user has a bit for "linked" and one for "not linked"
    privunit         the whole vector is one part, which belongs to the user's own public codebook
    anything else    the whole value is one part (a label; a feature vector of another mechanism)

What is paid is what is new: a part costs its share of epsilon for each value that it ever had. The ledger keeps names
of these values that say nothing without the device's secret. A law is told by the first name that the
catalogue had for it and the parameters that are not at their default, never by how the program prints it: a later
version draws nothing anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.mechanisms.base.category import CategoryMechanism
from graphveil.mechanisms.base.guarantees import ONCE
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


class _Guaranteed(Protocol):
    """Any mechanism: it says what one report costs."""

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
        unit: the budget that pays.
        user: the user's number, where everybody has a public codebook of their own (privunit).

    Raises:
        BudgetError: the value is new and the budget is spent; nothing is sent, and the last report stands.
        InputError: a value outside its range, an empty field, a mechanism of neighbour lists (see `permanent_list`), or
            one with codebooks and no user.
    """
    law = (*_field(field), *_law(mechanism), *_codebook(mechanism, user))
    # Made before it is paid for, and handed out after: a report that the budget refuses never leaves this function.
    report, contexts = _encode(mechanism, value, device, law, user)
    parts = [device.tag(*context) for context in contexts]
    return report, _paid(ledger, unit, mechanism, field, device.tag(*law), parts)


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
    list that changed costs epsilon once more in all, whatever changed how often: every bit then has both its values.
    New users do not redraw the bits of those who were there.

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
    law = (*_field(field), "list", _plain(mechanism.epsilon), mechanism.mode, user)
    threshold = np.uint64(mechanism.threshold)
    # A stream for each value of a bit, not user: a new friend redraws nothing, and ids keep their place.
    flips = [device.stream(*law, bit).uint64(mechanism.nodes) < threshold for bit in range(_VALUES_OF_A_BIT)]
    reported = true ^ np.where(true, flips[1], flips[0])
    # Bits of users for whom this one does not answer are not sent, whatever their draw was.
    reported[: _first_other(mechanism, user)] = False
    reported[user] = False
    # The list is one part: the first costs epsilon, a second all that a bit can ever cost, later ones nothing.
    parts = [device.tag(*law, np.flatnonzero(true).tobytes())]
    paid = _paid(ledger, unit, mechanism, field, device.tag(*law), parts, most=_VALUES_OF_A_BIT)
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
    law, rows = (*_field(field), *_law(mechanism)), zip(values, devices, strict=True)
    each = [
        _encode(mechanism, value, device, (*law, *_codebook(mechanism, user)), user)[0]
        for user, (value, device) in enumerate(rows)
    ]
    tensors = [report.to_tensors() for report in each]
    return type(each[0]).from_tensors({name: torch.cat([own[name] for own in tensors]) for name in tensors[0]})


def permanent_guarantee(mechanism: _Guaranteed, values: int = 1) -> Guarantee:
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
    assumes = tuple(fact for fact in once.assumes if fact != ONCE)
    # Different values have independent noise, so their reports compose by adding up; equal ones are one report.
    return replace(once, epsilon=values * once.epsilon, delta=values * once.delta, assumes=(*assumes, *permanent))


def _field(field: str | int) -> Context:
    if isinstance(field, bool) or not isinstance(field, str | int) or (isinstance(field, str) and not field.strip()):
        raise InputError(f"field is {field!r}", where="permanent report", allowed="a name or a number of the task")
    return "field", field


def _law(mechanism: Any) -> Context:
    """The name and parameters by which a law is known for good; a parameter at its default is left out."""
    if isinstance(mechanism, SampledVectors):
        name: str | None = mechanism.kind.name
    else:
        name = next((info.first_name for info in catalogue() if info.builds(mechanism)), None)
    if name is None:
        raise InputError(f"{type(mechanism).__name__} has no permanent report", allowed="features, labels")
    parameters: list[str] = []
    # Parameters at their default are left out, so that a new one with a default changes no old noise.
    for field in fields(mechanism):
        value = getattr(mechanism, field.name)
        if field.init and field.name != "kind" and value != field.default:
            parameters += [field.name, _plain(value)]
    # Chosen by rules that a later version may change.
    chosen = getattr(mechanism, "coordinates", mechanism.sent if isinstance(mechanism, SubsetSelection) else None)
    return "law", name, *parameters, *(() if chosen is None else ("coordinates", chosen))


def _plain(value: float | str) -> str:
    """A parameter as text, equal for equal numbers whatever their type."""
    # hex is exact: a rounded text could give two laws one stream, and their reports would share noise.
    return float(value).hex() if isinstance(value, int | float) else str(value)


def _codebook(mechanism: object, user: int | None) -> Context:
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
        # One type for every input: 32-bit and 64-bit integers of one class must meet the same noise.
        context = *law, row.numpy().astype(np.int64).tobytes()
    elif hasattr(mechanism, "dimension"):
        row = torch.as_tensor(value, dtype=torch.float64)[None]
        if isinstance(mechanism, MultiBit):
            rows = mechanism.domain.open(row)
            # Without the value: which coordinates are told must not change when the value does, or it would show.
            columns = draw_subsets(1, mechanism.dimension, mechanism.coordinates, device.stream(*law, "sampled"))
            fractions = mechanism.domain.fractions(rows.at(0, 1, columns)) + 0.0
            places = zip(columns[0], fractions[0], strict=True)
            contexts: list[Context] = [(*law, int(column), fraction.tobytes()) for column, fraction in places]
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


def _paid(
    ledger: Ledger,
    unit: str,
    mechanism: _Guaranteed,
    field: str | int,
    task: str,
    parts: Sequence[str],
    *,
    most: int | None = None,
) -> Ledger:
    """The ledger after paying for the parts whose value it has never seen; `most` of them if that is all there can be.

    Args:
        task: the secret name of what is reported, by which law.
        field: its public one.
        parts: the names of its parts with their values, each of which costs the same share.
    """
    mine = [spend.parameters for spend in ledger.spends if spend.unit == unit and spend.parameters.get("of") == task]
    # What was paid for once is free for ever: the same value is answered by the same report.
    seen = {name for parameters in mine for name in str(parameters["values"]).split()}
    new = [name for name in parts if name not in seen]
    if not new or (most is not None and len(seen) >= most):
        return ledger
    cost, share = mechanism.guarantee, len(new) / len(parts)
    facts = {"field": field, "of": task, "values": " ".join(new)}
    kind = repr(mechanism).partition("(")[0]
    return ledger.spend(Spend("permanent report", unit, kind, facts, share * cost.epsilon, share * cost.delta))
