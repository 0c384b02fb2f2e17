"""What becomes of each command on each kind: it works, or it is refused with a reason that is declared here."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from graphveil.methods.registry import KINDS as FAMILIES
from graphveil.methods.registry import METHODS
from graphveil.methods.runs.search import payable
from tests.flows.commands import Command
from tests.flows.kinds import Kind

LOCAL, LINKS, CURATOR, RELEASE, OPEN = ({method.name for method in family} for family in FAMILIES.values())


@dataclass(frozen=True)
class Refusal:
    """Cells that are refused.

    Attributes:
        reason: a phrase that stands in the one line of each.
        commands: which commands; kinds: on which kinds.
        answers: whether something useful is shown before it.
    """

    reason: str
    commands: Callable[[Command], bool]
    kinds: Callable[[Kind], bool]
    answers: bool = False


def named(*beginnings: str) -> Callable[[Command], bool]:
    """Commands whose names begin so."""
    return lambda command: command.name.startswith(beginnings)


def trains(command: Command) -> bool:
    """Commands that train a method on DATA."""
    return command.verb in ("train", "tune", "compare") and not command.needs


def plans(command: Command) -> bool:
    """Commands that train a method on DATA or plan it."""
    return command.verb == "plan" or trains(command)


def methods(*names: str, do: Callable[[Command], bool] = plans) -> Callable[[Command], bool]:
    """Commands that train or plan a method out of some."""
    return lambda command: command.method in names and do(command)


def kinds(*names: str) -> Callable[[Kind], bool]:
    """Kinds of these names."""
    return lambda kind: kind.name in names


def every(_: object) -> bool:
    return True


def raw(kind: Kind) -> bool:
    """Kinds whose DATA are people's own values."""
    return kind.source in ("folder", "stored")


def released(kind: Kind) -> bool:
    return kind.source in ("released", "counted")


def collected(kind: Kind) -> bool:
    return kind.source.startswith("collected")


def not_trained(command: Command) -> bool:
    """Commands that take DATA and are not ``train METHOD``."""
    return not command.needs and command.name != f"train {command.method}"


def hides_features(kind: Kind) -> bool:
    """Kinds whose owner declares features private; of a named set it is declared of all parts."""
    return (raw(kind) and "features" in kind.private) or kind.source.startswith("social")


def learns(command: Command) -> bool:
    """Commands that train on DATA, or rehearse on it."""
    return trains(command) or command.name == "advise curator"


def lists(kind: Kind) -> bool:
    return raw(kind) and "edges" in kind.private


def unlabelled(kind: Kind) -> bool:
    return kind.labels in ("none", "absent")


def several(kind: Kind) -> bool:
    return kind.labels == "several"


def without_noise(attack: str, budget: str) -> Callable[[Command], bool]:
    """An attack on repeated reports, of methods whose reports have no noise by default."""

    def fits(command: Command) -> bool:
        if command.method is None or command.title != attack:
            return False
        if command.method in RELEASE or (command.method == "answer-pool" and budget == "epsilon_x"):
            return True
        option = METHODS[command.method].options.get(budget)
        return option is None or math.isinf(option.default)

    return fits


def directed(kind: Kind) -> bool:
    return kind.directed


def not_searched(command: Command) -> bool:
    """Tuning of a method that has nothing to tune, freely or at a price."""
    return command.verb == "tune" and not (METHODS[str(command.method)].free or payable(str(command.method), {}))


#: What reads the edges of other people at a price, for which no room was made; and what predicts its own people alone.
AT_A_PRICE: Final = {"gap", "progap", "lpgnet", "eclipse", "node-sums"}
LABELS: Final = {"label-propagation", "label-pool", "answer-pool"}
OWN_PEOPLE: Final = (LABELS | LINKS | CURATOR | RELEASE) - {"solitude", "blink", "dprr", "dp-mlp"} - AT_A_PRICE
TWO_PEOPLE: Final = ("two people", "two people, lists")
#: In the training.
ONE_CLASS: Final = ("one class trains", "one class trains, lists")
EDGE_ATTACKS: Final = ("attack linkteller", "attack link-stealing")
#: The first that fits a cell counts.
REFUSED: Final = (
    Refusal("is an exported collection: reports, whose true values nobody holds", not_trained, collected),
    Refusal("has several labels", named("train unnamed", "advise"), several),
    Refusal("has several labels", named("collect init", "federation split", "tune lap-graph"), several),
    Refusal("no method is named", named("train unnamed"), every, answers=True),
    Refusal("declares its features private", named("scores"), hides_features),
    Refusal("trains on no reports of devices", methods("answer-pool", *CURATOR, *RELEASE, *OPEN), collected),
    Refusal("does not read", methods("label-pool", "label-propagation"), collected),
    Refusal("needs links", methods(*LINKS), kinds("collected")),
    Refusal("needs features", methods("lpgnn", "upgnet"), kinds("collected lists")),
    Refusal("needs degree", methods("blink", "dprr"), kinds("collected lists")),
    Refusal("has several labels", methods(*LOCAL, *LINKS, *CURATOR, "class-counts"), several),
    Refusal("edges have a direction", methods(*RELEASE - {"feature-rr"}), directed),
    Refusal("is for undirected graphs", methods("gcon", "caribou"), directed),
    Refusal("mode both for a graph whose links are directed", methods("blink", "dprr"), directed),
    Refusal("the graph is a release", methods(*LINKS, *CURATOR, *RELEASE - {"class-counts", "heterorr"}), released),
    Refusal("trained without features", named("predict new"), kinds("collected lists")),
    Refusal("gets none of the 1 feature columns", named("federation split"), kinds("one feature")),
    Refusal("predicts only", methods(*OWN_PEOPLE, do=named("predict new")), every),
    Refusal("reads its edges, which costs", methods(*AT_A_PRICE, do=named("predict new")), every),
    Refusal("each is for that node only", methods("node-sums", do=named("predict same")), every),
    Refusal(
        "for its own node alone",
        methods("node-sums", "dp-mlp", do=named("attack attribute", "attack reconstruction")),
        every,
    ),
    Refusal("would publish again in every trial", not_searched, every),
    Refusal("collects no features with noise", without_noise("attack averaging", "epsilon_x"), every),
    Refusal("collects no labels with noise", without_noise("attack averaging-labels", "epsilon_y"), every),
    Refusal("as in training", named("predict new"), lambda kind: kind.source == "released"),
    Refusal("a collection is no graph", named("predict same"), collected),
    Refusal("leave none to train on", learns, unlabelled),
    Refusal("leave none to train on", named("federation split"), unlabelled),
    Refusal("no test node is left", learns, kinds(*TWO_PEOPLE)),
    Refusal("0 private edges among", named(*EDGE_ATTACKS), kinds("no edges", "no edges, lists")),
    Refusal("are edges", named(*EDGE_ATTACKS), kinds("everybody knows everybody")),
    Refusal(
        "training node",
        named("attack label-inference", "attack label-inference-holder"),
        kinds("one class in use", *ONE_CLASS, *TWO_PEOPLE),
    ),
    Refusal("too few edges", named("attack link-stealing-known progap"), kinds("members' edges")),
    Refusal("10 or more", named("attack feature-recovery"), kinds(*TWO_PEOPLE, "eight people")),
    Refusal("the same features as all others", named("attack feature-recovery"), kinds("equal features")),
    Refusal("are alike", named("attack gram"), kinds(*TWO_PEOPLE, "equal features")),
    Refusal(
        "or there are too few",
        named("attack gram", "attack gram-server"),
        kinds("few labels", "few labels, lists", *ONE_CLASS),
    ),
    Refusal("dependent modulo 2", named("attack low-bits"), kinds(*TWO_PEOPLE, "counted")),
    Refusal("declares its edges private", methods(*LOCAL), lists),
    Refusal("is a release; keep it as it is", named("store"), released),
)
#: Faults that are known and not mended: point of the list of faults -> cells.
OWED: Final[tuple[Refusal, ...]] = ()


def owed(kind: Kind, command: Command) -> bool:
    return any(rule.commands(command) and rule.kinds(kind) for rule in OWED)


def refusal(kind: Kind, command: Command) -> Refusal | None:
    """How a command is refused on a kind; None: it works."""
    return next((rule for rule in REFUSED if rule.commands(command) and rule.kinds(kind)), None)


def applies(kind: Kind, command: Command) -> bool:
    """Whether there is such a cell: what the command needs can be had."""
    return all(refusal(kind, step) is None and not owed(kind, step) and applies(kind, step) for step in command.after())
