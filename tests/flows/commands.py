"""Every command and how it is typed for a kind of data. A new command, method or attack is one more value here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from graphveil.attacks.catalogue import ATTACKS, PUBLISHED, SHADOW
from graphveil.attacks.federation.catalogue import FEDERATION_ATTACKS
from graphveil.methods.advise.rules import TRUSTS
from graphveil.methods.registry import METHODS, tagged

if TYPE_CHECKING:
    from tests.flows.ground import Ground

Words = Sequence[object]


@dataclass(frozen=True)
class Command:
    """One command as one kind of user types it.

    Attributes:
        name: the command, and what it is about: "train lpgnn".
        words: what is typed, on a ground.
        verb: the command's name in the listing of all commands.
        method: that it is about, if it is about one.
        needs: names of the commands that must have worked before.
        speaks_json: whether it takes ``--json``.
        heavy: whether it takes seconds, and is left to the second tier.
    """

    name: str
    words: Callable[[Ground], Words]
    verb: str
    method: str | None = None
    needs: tuple[str, ...] = ()
    speaks_json: bool = True
    heavy: bool = False

    @property
    def title(self) -> str:
        """The command without its method."""
        return self.name.removesuffix(f" {self.method}")

    def after(self) -> tuple[Command, ...]:
        return tuple(COMMANDS[name] for name in self.needs)


_QUICK = ("--no-controls",)
#: Methods whose shortest training takes seconds.
_SLOW: Final = ("links", "list-sums", "link-beliefs", "dpdgc", "node-sums", "class-counts", "priv-hrg")
_QUICK_ATTACKS: Final = ("linkteller", "membership", "gram")


def settings(method: str, trains: bool = True) -> list[str]:
    """Options that make a method cheap: few epochs and steps, where it has them."""
    options = METHODS[method].options
    words: list[str] = ["--epochs", "2"] if trains and "epochs" in options else []
    if "rounds" in options:
        words += ["--set", "rounds=2"]
    if method in ("priv-hrg",):
        words += ["--set", "steps=100"]
    return words


def _on_data(verb: str, method: str, *more: str) -> Command:
    """A command that trains a method on DATA."""
    name = f"{verb} {method}"

    def words(ground: Ground) -> Words:
        edges = ground.beside(method) if verb == "train" else ()
        chosen = (*edges, *more, *ground.asking(method), *ground.split, *_QUICK)
        return (verb, method, ground.data, *chosen, "--out", ground.folder(name))

    return Command(name, words, verb, method, heavy=verb == "train" and method in _SLOW)


def _of_run(
    verb: str, method: str, *extra: str, name: str = "", data: Callable[[Ground], Words] | None = None
) -> Command:
    title = f"{name or verb} {method}"

    def words(ground: Ground) -> Words:
        return (*verb.split(), ground.copy(title, f"train {method}"), *(data(ground) if data else ()), *extra)

    return Command(title, words, verb, method, (f"train {method}",))


def _again(method: str) -> Command:
    def words(ground: Ground) -> Words:
        config = ground.folder(f"train {method}") / "config.toml"
        return ("train", "--config", config, "--out", ground.folder(f"again {method}"))

    return Command(f"again {method}", words, "train", method, (f"train {method}",))


def _attack(attack: str, method: str) -> Command:
    title = f"attack {attack} {method}"
    extra = ["--attack", attack, "--nodes", "40"]
    extra += ["--shadows", "4"] if attack == "lira" else []

    def words(ground: Ground) -> Words:
        shadow = ["--shadow", ground.newcomers] if attack == SHADOW else []
        return ("attack", ground.copy(title, f"train {method}"), *extra, *shadow, *ground.true)

    return Command(title, words, "attack", method, (f"train {method}",), heavy=attack not in _QUICK_ATTACKS)


def _about(method: str) -> list[Command]:
    def plan(ground: Ground) -> Words:
        return ("plan", method, ground.data, *settings(method), *ground.asking(method))

    return [
        Command(f"plan {method}", plan, "plan", method),
        _on_data("train", method, *settings(method)),
        _again(method),
        _of_run("predict", method, name="predict same"),
        _of_run("predict", method, name="predict new", data=lambda ground: (ground.newcomers, *ground.people(method))),
        _of_run("report", method),
        _of_run("compare-runs", method),
        _on_data("tune", method, "--trials", "2"),
        _on_data("compare", method, "--repeats", "1", *settings(method), *epsilons(method)),
        *(_attack(attack, method) for attack in ATTACKS if attack != PUBLISHED),
    ]


def epsilons(method: str) -> list[str]:
    """One budget to compare a method at."""
    options = METHODS[method].options
    budget = next((name for name in ("epsilon", "epsilon_a", "epsilon_x") if name in options), None)
    return [] if budget is None else [f"--{budget.replace('_', '-')}", "3"]


def _release(method: str) -> list[Command]:
    folder = f"release {method}"
    options = METHODS[method].options
    prices = [
        word for key in ("epsilon_x", "epsilon_a") if key in options for word in (f"--{key.replace('_', '-')}", "2")
    ]

    def release(ground: Ground) -> Words:
        chosen = (*prices, *settings(method, trains=False), "--without-lift")
        return ("release", method, ground.data, *chosen, "--out", ground.folder(folder))

    reader = "class-counts" if method == "class-counts" else "gcn"

    def train(ground: Ground) -> Words:
        copied = ground.copy(f"train on {folder}", folder)
        return ("train", reader, copied, *settings(reader), *_QUICK, "--out", ground.folder(f"learned {method}"))

    def attack(ground: Ground) -> Words:
        copied = ground.copy(f"attack {folder}", folder)
        return ("attack", copied, "--attack", PUBLISHED, "--nodes", "40", "--truth", ground.data)

    def describe(ground: Ground) -> Words:
        return ("data", "describe", ground.folder(folder))

    def report(ground: Ground) -> Words:
        return ("report", ground.copy(f"report {folder}", folder))

    return [
        Command(folder, release, "release", method, heavy=method in _SLOW),
        Command(f"train on {folder}", train, "train", method, (folder,), heavy=method in _SLOW),
        Command(f"describe {folder}", describe, "data describe", method, (folder,)),
        Command(f"attack {folder}", attack, "attack", method, (folder,)),
        Command(f"report {folder}", report, "report", method, (folder,)),
    ]


def _plain() -> list[Command]:
    return [
        Command("describe", lambda ground: ("data", "describe", ground.data), "data describe"),
        Command("croissant", lambda ground: ("data", "croissant", ground.data), "data croissant", speaks_json=False),
        Command(
            "store",
            lambda ground: ("data", "store", ground.data, "--out", ground.folder("store")),
            "data store",
            speaks_json=False,
        ),
        Command(
            "scores",
            lambda ground: ("mechanisms", "scores", ground.data, "--out", ground.folder("scores.txt")),
            "mechanisms scores",
        ),
        Command("train unnamed", lambda ground: ("train", ground.data), "train", speaks_json=False),
        Command("advise", lambda ground: ("advise", ground.data), "advise"),
        # Where they rehearse, it takes a while.
        *(
            Command(f"advise {trust}", partial(_advise, trust), "advise", heavy=trust in ("local", "links", "curator"))
            for trust in TRUSTS
        ),
    ]


def _advise(trust: str, ground: Ground) -> Words:
    return ("advise", ground.data, "--trust", trust)


def _federation() -> list[Command]:
    def split(ground: Ground) -> Words:
        return ("federation", "split", ground.data, "--out", ground.folder("federation split"))

    def init(ground: Ground) -> Words:
        where = ("--from", ground.folder("federation split"), "--out", ground.folder("federation init"))
        return ("federation", "init", *where, "--epsilon", "20", "--set", "epochs=2")

    def plan(ground: Ground) -> Words:
        return ("federation", "plan", ground.folder("federation init") / "server", "--nodes", "60")

    def attack(name: str) -> Callable[[Ground], Words]:
        def words(ground: Ground) -> Words:
            copied, truth = ground.copy(f"attack {name}", "federation init"), ground.folder("federation split")
            return ("attack", copied, "--attack", name, "--truth", truth, "--nodes", "40")

        return words

    parts = ("federation split", "federation init")
    return [
        Command("federation split", split, "federation split"),
        Command("federation init", init, "federation init", needs=parts[:1]),
        Command("federation plan", plan, "federation plan", needs=parts),
        *(
            Command(f"attack {name}", attack(name), "attack", needs=parts, heavy=name not in _QUICK_ATTACKS)
            for name in FEDERATION_ATTACKS
        ),
    ]


def _collection() -> list[Command]:
    def init(ground: Ground) -> Words:
        chosen = ("--epsilon-x", "4", "--epsilon-y", "3", "--least", min(3, ground.kind.people))
        return ("collect", "init", ground.data, "-o", ground.folder("collect init"), *chosen)

    def simulate(ground: Ground) -> Words:
        task = ground.folder("collect init")
        return ("collect", "simulate", task, ground.data, "-o", ground.folder("collect simulate"))

    return [
        Command("collect init", init, "collect init"),
        Command("collect simulate", simulate, "collect simulate", needs=("collect init",)),
    ]


COMMANDS: Final = {
    command.name: command
    for command in (
        *_plain(),
        *(command for method in METHODS for command in _about(method)),
        *(command for method in tagged("release") for command in _release(method)),
        *_federation(),
        *_collection(),
    )
}

#: Commands that take no data of a user's, or run as processes that talk to one another: their own tests walk them.
ELSEWHERE: Final = frozenset(
    {
        *("demo", "reproduce", "audit", "explain", "config schema", "data init", "data import", "studio"),
        *("mechanisms list", "mechanisms compare", "mechanisms categories"),
        *(f"federation {name}" for name in ("key", "review", "sign", "serve", "join", "predict", "status", "verify")),
        *(
            f"collect {name}"
            for name in ("sign", "enrol", "open", "serve", "status", "close", "export", "scrub", "phones")
        ),
        *(f"device {name}" for name in ("enrol", "show", "answer", "spent")),
    }
)
