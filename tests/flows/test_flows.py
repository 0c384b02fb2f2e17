"""Every command on every kind of data: it works, or it is refused with a declared reason; nothing else passes.

`kinds.py` says what folders look like, `commands.py` what is typed, `expected.py` what becomes of it. The first tier
walks each kind and each command once; the second all pairs that `cells` lists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import pytest
from typer.main import get_command

from graphveil.attacks.catalogue import ATTACKS
from graphveil.attacks.federation.catalogue import FEDERATION_ATTACKS
from graphveil.cli.app import build
from graphveil.methods.advise.rules import TRUSTS
from graphveil.methods.registry import KINDS as FAMILIES
from graphveil.methods.registry import METHODS
from tests.flows.commands import COMMANDS, ELSEWHERE, Command
from tests.flows.expected import REFUSED, applies, owed, refusal
from tests.flows.ground import Ground
from tests.flows.kinds import KINDS, Kind

#: Where each method is walked to its end: a kind for each family.
HOMES = dict(
    zip(
        FAMILIES,
        ("private features labels", "private edges", "private labels edges", "numbers", "private nothing"),
        strict=True,
    )
)
FAMILY_OF = {method.name: family for family, methods in FAMILIES.items() for method in methods}
Cell = tuple[Kind, Command]


def cells() -> Iterator[Cell]:
    """All pairs that are walked: on the kinds of HOMES every command about their methods, elsewhere by turns.

    A kind takes one method of those that fit to its end; plans and trainings of every third method, and its comparison
    where that is refused; one attack in four, and one trust in four. Neighbours in KINDS take the others.
    """
    methods, attacks = list(METHODS), {**ATTACKS, **FEDERATION_ATTACKS}
    for number, kind in enumerate(KINDS):
        fitting = [name for name in methods if refusal(kind, COMMANDS[f"train {name}"]) is None]
        own = fitting[number % len(fitting)] if fitting else None
        turns = {f"advise {trust}": number + turn for turn, trust in enumerate(TRUSTS)}
        turns |= {f"attack {attack}": number + turn for turn, attack in enumerate(attacks)}
        for command in COMMANDS.values():
            method = command.method
            if method is None or method == own:
                walked = turns.get(command.title, 0) % 4 == 0
            else:
                walked = command.name in (f"plan {method}", f"train {method}")
                walked |= command.verb == "compare" and refusal(kind, command) is not None
                walked = walked and (methods.index(method) + number) % 3 == 0
            at_home = method is not None and HOMES[FAMILY_OF[method]] == kind.name
            if (walked or at_home) and applies(kind, command) and not owed(kind, command):
                yield kind, command


def first_tier(every: Sequence[Cell]) -> set[Cell]:
    """Each kind and each command once, out of the cells that work and are cheap; what runs already is preferred."""
    good = [cell for cell in every if not cell[1].heavy and refusal(*cell) is None]
    chosen: list[Cell] = []
    uses: Counter[str] = Counter()

    def take(options: list[Cell]) -> None:
        if options:
            cell = min(options, key=lambda cell: (_cost(cell, chosen), uses[cell[0].name]))
            chosen.append(cell)
            uses.update((cell[0].name, cell[1].name))

    for kind in KINDS:
        trainings = [cell for cell in good if cell[0] is kind and cell[1].name == f"train {cell[1].method}"]
        least = min((uses[command.name] for _, command in trainings), default=0)
        take(
            [cell for cell in trainings if uses[cell[1].name] == least]
            or [cell for cell in good if cell[0] is kind][:1]
        )
    for title in dict.fromkeys(command.title for _, command in good):
        if not any(command.title == title for _, command in chosen):
            take([cell for cell in good if cell[1].title == title])
    return set(chosen)


def _cost(cell: Cell, chosen: Sequence[Cell]) -> int:
    """How many commands a cell needs that do not run yet."""
    kind, command = cell
    return sum((kind, needed) not in chosen for needed in command.after())


EVERY = list(cells())
FIRST = first_tier(EVERY)


def marked(kind: Kind, command: Command) -> object:
    return pytest.param(
        kind, command, marks=() if (kind, command) in FIRST else pytest.mark.slow, id=f"{kind.name}-{command.name}"
    )


@pytest.fixture(scope="module")
def grounds(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Kind], Ground]:
    """The ground of each kind, which its cells share."""
    return cache(lambda kind: Ground(kind, tmp_path_factory.mktemp("ground")))


@pytest.fixture
def ground(grounds: Callable[[Kind], Ground], kind: Kind, monkeypatch: pytest.MonkeyPatch) -> Ground:
    here = grounds(kind)
    monkeypatch.chdir(here.root)
    monkeypatch.setenv("GRAPHVEIL_DATA", str(here.root / "data"))
    monkeypatch.setenv("COLUMNS", "80")
    # Neither charts nor the durability of files is what is walked here, and they take most of the time.
    monkeypatch.setattr("graphveil.reports.base.charts.inline_svg", lambda *_, **__: "<svg></svg>")
    monkeypatch.setattr("os.fsync", lambda _: None)
    return here


@pytest.mark.parametrize(("kind", "command"), [marked(*cell) for cell in EVERY])
def test_a_command_works_on_a_kind_of_data_or_is_refused_as_declared(
    ground: Ground, kind: Kind, command: Command
) -> None:
    # By turns: each kind and each command answers both in JSON and on a screen.
    as_json = command.speaks_json and (KINDS.index(kind) + list(COMMANDS).index(command.name)) % 2 == 0
    outcome = ground.outcome(command, as_json=as_json)
    fault = (
        outcome.fault(as_json)
        if (why := refusal(kind, command)) is None
        else outcome.no_refusal(why.reason, why.answers)
    )
    assert fault is None, f"{fault}\n{outcome}"


def test_every_command_of_the_program_is_walked_or_has_tests_of_its_own() -> None:
    walked = {command.verb for command in COMMANDS.values()}
    assert walked | ELSEWHERE == set(_listed(get_command(build())))
    assert not walked & ELSEWHERE


def _listed(group: Any, before: str = "") -> Iterator[str]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _listed(command, f"{before}{name} ")
        else:
            yield before + name


def test_every_refusal_that_is_declared_is_met() -> None:
    for declared in REFUSED:
        assert any(declared.commands(command) and declared.kinds(kind) for kind, command in EVERY), declared.reason
