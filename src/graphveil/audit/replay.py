"""Record and replay: run a pipeline on a graph, record every mechanism's answer, run it again on a neighbouring graph.

Whatever a private pipeline does after a mechanism is a function of the mechanism's answers. With the answers frozen,
number, order, settings and shapes of the calls, every tensor that is not noised, and all that comes out have to be
equal on both graphs; only what goes into a mechanism may differ, by no more than the mechanism hides. What differs
elsewhere leaked. The inputs of both runs are kept, so the change that one unit makes is measured, not believed.

Source of the idea: "Re:cord-play", https://arxiv.org/abs/2602.17454.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Final, Generic, TypeAlias, TypeVar

import numpy as np
import torch

from graphveil.audit.verdict import Audit, judge
from graphveil.errors import GraphveilError
from graphveil.privacy import Randomness, SeededRandomness, gaussian_epsilon
from graphveil.runtime.words import count_of

#: The graph of a pipeline, and what a run on it leaves.
G = TypeVar("G")
R = TypeVar("R")
#: The private part of a question to a mechanism.
P = TypeVar("P")
#: The arguments of a call by their names.
Arguments: TypeAlias = Mapping[str, Any]
# Room for the rounding of measured changes.
_UP: Final = 1 + 1e-9


@dataclass(frozen=True)
class Evidence:
    """What one call says about the cost of the difference between two graphs.

    Attributes:
        change: how far its input moved; 1 is what the mechanism declares that it hides.
        declared: the epsilon that the call itself declares for that.
        pure: log Pr[answer | first] - log Pr[answer | second], where it can be computed.
        mu: the shift in standard deviations of normal noise, a lower bound.
    """

    change: float
    declared: float = 0.0
    pure: float = 0.0
    mu: float = 0.0


@dataclass(frozen=True)
class Question(Generic[P]):
    """The arguments of a call: settings and public tensors, which may not differ between neighbours, and the rest."""

    constants: tuple[object, ...]
    public: tuple[object, ...]
    private: P


@dataclass(frozen=True)
class Tap:
    """A method of a class, or a function of a module, through which a mechanism reads private data.

    Attributes:
        read: (mechanism, arguments by name) -> question, which keeps copies of them.
        weigh: (mechanism, answer, private parts of the two questions that got it) -> evidence; answer: the first run's.
    """

    owner: type | ModuleType
    attribute: str
    read: Callable[[Any, Arguments], Question[Any]]
    weigh: Callable[[Any, Any, Any, Any], Evidence]

    @property
    def name(self) -> str:
        """What is called."""
        return f"{self.owner.__name__}.{self.attribute}"


@dataclass(frozen=True)
class Call:
    """A question, who was asked, and the answer."""

    tap: Tap
    mechanism: object
    question: Question[Any]
    answer: object


@dataclass(frozen=True, kw_only=True)
class Pipeline(Generic[G, R]):
    """What is replayed.

    Attributes:
        run: the pipeline; what it returns is for `outcome`. first, second: graphs that differ in one protected unit.
        epsilon, delta: what it claims for that unit. outcome: everything that comes out, by name.
        taps: the mechanisms it may use.
    """

    target: str
    run: Callable[[G, Randomness], R]
    first: G
    second: G
    epsilon: float
    delta: float
    outcome: Callable[[R], Mapping[str, object]]
    taps: Sequence[Tap]


class _Differs(Exception):
    """The second run asks another question than the first."""


@dataclass
class _Tape:
    """The calls of one run.

    Attributes:
        frozen: the calls of the run that is replayed; None in the first run.
        inside: whether a watched mechanism is at work, whose own calls are not watched.
    """

    seed: int
    frozen: Sequence[Call] | None = None
    calls: list[Call] = field(default_factory=list)
    inside: bool = False


#: The probability that a true claim is called broken.
_FALSE_ALARM: Final = 1e-6


def audit_replay(pipeline: Pipeline[G, R], *, seed: int = 0) -> Audit:
    """Run a pipeline on both graphs and compare. Not for several threads at once: the mechanisms' methods are replaced
    while it runs, and put back afterwards.

    Args:
        pipeline: two neighbouring graphs, what is run on them and what is claimed.
    """
    first = _Tape(seed)
    with _taps_set(pipeline.taps, first):
        before = pipeline.outcome(pipeline.run(pipeline.first, SeededRandomness(seed)))
    # The same seed, so that weights and batches agree and what differs is what the data moved.
    second = _Tape(seed, first.calls)
    findings: list[str] = []
    try:
        with _taps_set(pipeline.taps, second):
            after = pipeline.outcome(pipeline.run(pipeline.second, SeededRandomness(seed)))
    except _Differs as difference:
        findings.append(str(difference))
    # An error that only one of two neighbours raises is an answer that tells them apart: it is a finding, no failure.
    except (GraphveilError, ArithmeticError, LookupError, RuntimeError, ValueError) as error:
        findings.append(f"the run fails on the neighbour alone: {error}")
    else:
        if len(second.calls) < len(first.calls):
            findings.append(f"{count_of(len(first.calls), 'call')} became {len(second.calls)} on the neighbour")
        # Both ways: an outcome that only one of the two graphs has tells them apart as well as its value would.
        names = dict.fromkeys((*before, *after))
        findings += [
            f"{name} differs on the neighbour" for name in names if not same(before.get(name), after.get(name))
        ]
    return _audit_of(pipeline, first.calls, second.calls, findings)


def same(first: object, second: object) -> bool:
    """Return whether two values are equal, element by element, NaN being equal to itself.

    Args:
        first, second: numbers, texts, arrays, tensors, and collections of them.
    """
    if type(first) is not type(second):
        return False
    if isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor):
        if first.layout != torch.strided:
            return bool(first.layout == second.layout) and same(first.to_dense(), second.to_dense())
        return same(first.detach().cpu().numpy(), second.detach().cpu().numpy())
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        alike = first.shape == second.shape and first.dtype == second.dtype
        # Bytes and not numbers: 0.0 and -0.0 compare equal and are told apart by whoever reads the file.
        return bool(alike and first.tobytes() == second.tobytes())
    if dataclasses.is_dataclass(first):
        names = [part.name for part in dataclasses.fields(first)]
        return all(same(getattr(first, name), getattr(second, name)) for name in names)
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(same(first[name], second[name]) for name in first)
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(same(a, b) for a, b in zip(first, second, strict=True))
    if isinstance(first, float) and isinstance(second, float) and math.isnan(first):
        return math.isnan(second)
    return bool(first == second)


def _audit_of(pipeline: Pipeline[G, R], first: Sequence[Call], second: Sequence[Call], findings: list[str]) -> Audit:
    changes = [
        (
            call.tap.name,
            call.tap.weigh(call.mechanism, call.answer, call.question.private, neighbour_call.question.private),
        )
        for call, neighbour_call in zip(first, second, strict=False)
    ]
    findings += [
        f"{name} hides a change of 1 and saw one of {part.change:.4g}" for name, part in changes if part.change > _UP
    ]
    declared = math.fsum(part.declared for _, part in changes)
    if declared > pipeline.epsilon * _UP:
        findings.append(f"the calls that saw the difference declare {declared:.4g} together")
    mu = math.sqrt(math.fsum(part.mu**2 for _, part in changes))
    # The answers are one draw, so the sum of their log ratios is the loss that this draw really shows.
    pure = abs(math.fsum(part.pure for _, part in changes))
    # Normal noise has no epsilon without a delta: a claim of pure privacy on it is broken, however much of it there is.
    normal = 0.0 if mu == 0.0 else gaussian_epsilon(1.0 / mu, pipeline.delta) if pipeline.delta > 0.0 else math.inf
    seen = max((part.change for _, part in changes), default=0.0)
    # Without a call there was nothing to compare, and silence would read as "holds".
    if not first:
        findings.append("no mechanism was called")
    calls = count_of(len(first), "mechanism call")
    notes = (
        f"{calls} replayed; the largest measured change is {seen:.4f} of what is declared",
        *((f"mu is at least {mu:.4f}",) if mu else ()),
    )
    return judge(
        f"{pipeline.target} (replay)",
        pipeline.epsilon,
        pipeline.delta,
        max(pure, normal),
        _FALSE_ALARM if mu else 0.0,
        notes=notes,
        findings=tuple(dict.fromkeys(findings)),
    )


@contextlib.contextmanager
def _taps_set(taps: Sequence[Tap], tape: _Tape) -> Iterator[None]:
    """Have every tap write to the tape while the block runs."""
    # Statically, so that a static or class method is put back as what it was and not as the function it wraps.
    originals = [(tap.owner, tap.attribute, inspect.getattr_static(tap.owner, tap.attribute)) for tap in taps]
    try:
        for tap, (_, _, real) in zip(taps, originals, strict=True):
            setattr(tap.owner, tap.attribute, _watch_calls(tap, real, tape))
        yield
    finally:
        for owner, attribute, real in originals:
            setattr(owner, attribute, real)


def _watch_calls(tap: Tap, real: Callable[..., object], tape: _Tape) -> Callable[..., object]:
    signature = inspect.signature(real)

    def method(me: object, *arguments: object, **named: object) -> object:
        if tape.inside:  # a part of a mechanism that is watched as a whole
            return real(me, *arguments, **named)
        # By name: callers may pass arguments in either way, and a tap must find them in both.
        bound = signature.bind(me, *arguments, **named)
        question = tap.read(me, bound.arguments)
        if tape.frozen is not None:
            answer = _frozen_answer(tap, question, tape)
        else:
            # Noise of its own, so that what else is drawn stays the same when this call is not made.
            bound.arguments["randomness"] = SeededRandomness((tape.seed << 32) + len(tape.calls) + 1)
            tape.inside = True
            try:
                answer = real(*bound.args, **bound.kwargs)
            finally:
                tape.inside = False
            if answer is None:  # it works in place: the answer is the tensor it worked on
                answer = next(value for value in bound.arguments.values() if isinstance(value, torch.Tensor))
            answer = answer.clone() if isinstance(answer, torch.Tensor) else answer
        tape.calls.append(Call(tap, me, question, answer))
        if "totals" in bound.arguments:  # what a call in place would have written
            bound.arguments["totals"].copy_(answer)
            return None
        return answer.clone() if isinstance(answer, torch.Tensor) else answer

    return method


def _frozen_answer(tap: Tap, question: Question[P], tape: _Tape) -> object:
    frozen, place = tape.frozen or (), len(tape.calls)
    name = tap.name
    if place >= len(frozen):
        raise _Differs(f"{name} is called once more than {count_of(len(frozen), 'time')} on the neighbour")
    call = frozen[place]
    if call.tap.name != name:
        raise _Differs(f"call {place + 1} is {call.tap.name}, and {name} on the neighbour")
    # A scale that depends on the data tells them although its noise is right: no answer is handed out for it.
    if not same(call.question.constants, question.constants):
        raise _Differs(f"call {place + 1}, {name}: its settings, scale or shape differ on the neighbour")
    if not same(call.question.public, question.public):
        raise _Differs(f"call {place + 1}, {name}: a tensor that is not noised differs on the neighbour")
    return call.answer
