"""What one change is that a guarantee hides: a feature vector, a label, an edge, a node, several of them together.

A unit says what it covers and whether that is a whole person. Under which change it is hidden (replaced, or added and
removed) is the `relation` of the guarantee, because the same unit is protected under either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal

from graphveil.errors import InputError
from graphveil.privacy.statement.codes import Entry, table_of
from graphveil.runtime.checks import require_whole

Kind = Literal[
    "features",
    "label",
    "features and label",
    "list entry",
    "relationship",
    "directed link",
    "private edge",
    "relationship of one person",
    "undirected edge",
    "directed edge",
    "edge entry",
    "node",
    "node and own list",
    "node without edges",
    "node declared public",
    "embedding row",
    "hidden row",
    "guess",
    "person at a holder",
    "person and list at a holder",
    "together",
    "other",
]
Whose = Literal["user", "node", "holder", "pair", "list", "nobody"]
#: What of a person a unit may cover; "edge" is one connection, "edges" all of them, "entry" half of one.
Aspect = Literal["features", "label", "edge", "edges", "entry"]

_OF_THAT_USER: Final = ("relationship", "directed link")


@dataclass(frozen=True)
class _Form:
    """Everything about one kind of unit.

    Attributes:
        covers: what of a person the unit covers.
        person: whether the unit covers everything that one person contributed.
        less: what of a person the unit leaves out, where `covers` does not say so.
        heading: a word or two for the head of a column; empty: the whole text.
    """

    entry: Entry
    covers: frozenset[Aspect]
    person: bool = False
    less: str = ""
    heading: str = ""


@dataclass(frozen=True, kw_only=True)
class ProtectedUnit:
    """What one change is that a guarantee hides.

    Args:
        kind: what it is.
        whose: to whom it belongs: a "user" with a device, a "node" of a curator's graph, a data "holder", a "pair" of
            users or nodes, one user's "list".
        count: how many of them at once.
        exists: whether it is hidden that it exists, where the relation says that something is replaced.
        parts: the units of which a kind "together" is made.
        words: the text of a kind "other", of which nothing else is known.

    Raises:
        InputError: no such unit exists.
    """

    kind: Kind
    whose: Whose = "nobody"
    count: int = 1
    exists: bool = False
    parts: tuple[ProtectedUnit, ...] = ()
    words: str = ""

    def __post_init__(self) -> None:
        # Anything hides 0 units at once.
        require_whole(1, None, "unit", count=self.count)
        if self.kind == "together":
            valid = len(self.parts) > 1 and all(isinstance(part, ProtectedUnit) for part in self.parts)
        elif self.kind == "other":
            valid = isinstance(self.words, str) and bool(self.words.strip())
        else:
            # Only units of the table exist: a kind with another owner would print a sentence that no test backs.
            valid = (self.kind, self.whose) in _FORMS and not self.parts and not self.words
        if not valid:
            raise InputError(
                f"unit of kind {self.kind!r} is unknown", where="unit", allowed="a unit of privacy/statement/unit.py"
            )

    def __str__(self) -> str:
        return self.text

    @property
    def code(self) -> str:
        """The stable name: "one-relationship"; units together are joined by "+", a count stands before "*"."""
        if self.kind == "together":
            code = "+".join(part.code for part in self.parts)
            # Brackets, or 2*a+b would read as two of a and one b: `explain_code` takes codes apart again.
            code = f"({code})" if self.count > 1 else code
        else:
            code = "other" if self.kind == "other" else self._form.entry.code
        return (f"{self.count}*" if self.count > 1 else "") + ("whether-" if self.exists else "") + code

    @property
    def text(self) -> str:
        """The unit in words, as guarantees, tables and files state it."""
        # All at the same person: "k at once of" would promise any k relationships, of any people.
        if self.kind == "relationship of one person" and self.count > 1 and not self.exists:
            return f"any set of up to {self.count} relationships of one person"
        if self.kind == "together":
            text = _joined(self.parts)
        else:
            text = self.words if self.kind == "other" else self._form.entry.sentence
        text = f"whether {text} exists" if self.exists else text
        return f"{self.count} at once of: {text}" if self.count > 1 else text

    @property
    def heading(self) -> str:
        """The unit in a word or two, for the heading of a column; the whole text where nothing shorter says it."""
        return (self._form.heading if self.kind not in ("together", "other") and self.count == 1 else "") or self.text

    @property
    def covers(self) -> frozenset[Aspect]:
        """What of a person is covered."""
        if self.kind == "together":
            return frozenset().union(*(part.covers for part in self.parts))
        # Nothing is concluded from a text alone: an unknown unit covers nothing.
        return frozenset() if self.kind == "other" else self._form.covers

    @property
    def covers_connections(self) -> bool:
        """Whether it covers connections of a person: all, one, or half of one."""
        return bool(self.covers & {"edge", "edges", "entry"})

    @property
    def is_node(self) -> bool:
        """Whether it is a node with what belongs to it: its features and label at least."""
        return self.whose == "node" and {"features", "label"} <= self.covers

    @property
    def is_connection(self) -> bool:
        """Whether it is an edge, or several of one person: nothing else of a person, and not all edges of one."""
        return self.kind not in ("together", "other") and self.covers == {"edge"}

    @property
    def is_person(self) -> bool:
        """Whether it covers everything that one person contributed: features, label and connections, as far as read."""
        if self.kind == "together":
            # One part that covers everything is enough: what stands beside it can only add to what is protected.
            return any(part.is_person for part in self.parts)
        return self.kind != "other" and self._form.person

    @property
    def less(self) -> str:
        """What of a person the unit leaves out, in a plain sentence without a full stop; empty for a person."""
        if self.is_person:
            return ""
        if self.kind == "other":
            return "nothing says that it covers everything one person contributed"
        own = "" if self.kind == "together" else self._form.less
        return own or f"this epsilon does not cover that person's {_listed(_missing(self.covers))}"

    @property
    def _form(self) -> _Form:
        return _FORMS[self.kind, self.whose]

    def times(self, count: int) -> ProtectedUnit:
        """Return `count` of these at once."""
        return replace(self, count=self.count * count)

    def existence(self) -> ProtectedUnit:
        """Return whether it exists, for a guarantee under which something is replaced."""
        return replace(self, exists=True)

    def of(self, whose: Whose) -> ProtectedUnit:
        """Return the same unit of somebody else: a node of a curator's graph instead of a user with a device."""
        return replace(self, whose=whose)


def together(units: Iterable[ProtectedUnit]) -> ProtectedUnit:
    """Return one or several units as one, in their order; composite ones are taken apart first. Raises InputError for
    no unit.
    """
    # Taken apart, so that the same units give one text and one code however they were put together.
    parts = [part for unit in units for part in (unit.parts if _is_plain_sum(unit) else (unit,))]
    return parts[0] if len(parts) == 1 else ProtectedUnit(kind="together", parts=tuple(parts))


def other_unit(words: str) -> ProtectedUnit:
    """Return a unit that is known by its text alone: nothing is concluded from it."""
    return ProtectedUnit(kind="other", words=words)


def _is_plain_sum(unit: ProtectedUnit) -> bool:
    # Two of (A and B), or whether (A and B) exists, is another change than A and B: such a sum stays whole.
    return unit.kind == "together" and unit.count == 1 and not unit.exists


def _joined(parts: tuple[ProtectedUnit, ...]) -> str:
    """The parts in words: a connection beside what a user reports is one "of that user"."""
    *first, last = parts
    if last.exists and last.kind in _OF_THAT_USER and first and all(part.whose == "user" for part in first):
        link = replace(last, exists=False).text
        return f"{' and '.join(part.text for part in first)}, and whether {link} of that user exists"
    return " and ".join(part.text for part in parts)


def _missing(covers: frozenset[Aspect]) -> list[str]:
    # What is missing is named, since a reader who sees only what is covered takes the rest for granted.
    missing = [name for name in ("features", "label") if name not in covers]
    if "edges" not in covers:
        missing.append("other connections" if covers & {"edge", "entry"} else "connections")
    return missing


def _listed(items: list[str]) -> str:
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def _unit_form(
    code: str,
    sentence: str,
    covers: tuple[Aspect, ...],
    *,
    means: str,
    limits: str,
    backed_by: str,
    person: bool = False,
    less: str = "",
    heading: str = "",
) -> _Form:
    entry = Entry(code=code, group="unit", sentence=sentence, means=means, limits=limits, backed_by=backed_by)
    return _Form(entry, frozenset(covers), person, less, heading)


_FORMS: Final[Mapping[tuple[Kind, Whose], _Form]] = MappingProxyType(
    {
        ("features", "user"): _unit_form(
            "one-user-features",
            "one user's whole feature vector",
            ("features",),
            means="All features of one user together may take any other values in the declared range.",
            limits="The user's label and connections are not part of it.",
            backed_by="tests/mechanisms/conformance.py",
            heading="features",
        ),
        ("features", "node"): _unit_form(
            "one-node-features",
            "one node's whole feature vector",
            ("features",),
            means="All features of one node of a published graph together may take any other values.",
            limits="The node's label and edges are not part of it.",
            backed_by="tests/methods/release/test_privacy.py",
            heading="features",
        ),
        ("label", "user"): _unit_form(
            "one-user-label",
            "one user's label",
            ("label",),
            means="The label of one user may be any other class of the public list.",
            limits="That the user sent a label is not hidden; features and connections are not part of it.",
            backed_by="tests/mechanisms/labels/test_categories.py",
            heading="label",
        ),
        ("label", "node"): _unit_form(
            "one-node-label",
            "one node's label",
            ("label",),
            means="The label of one node of a published graph may be any other class.",
            limits="The node's features and edges are not part of it.",
            backed_by="tests/methods/release/test_privacy.py",
            heading="label",
        ),
        ("features and label", "user"): _unit_form(
            "one-user-features-and-label",
            "one user's features and label",
            ("features", "label"),
            means="The features and the label of one user together may take any other values.",
            limits="The user's connections are not part of it.",
            backed_by="tests/methods/local/test_lpgnn.py",
            heading="node",
        ),
        ("list entry", "list"): _unit_form(
            "one-list-entry",
            "one bit of one neighbour list",
            ("entry",),
            means="What one list says about one other person may be reversed.",
            limits="An undirected relationship may appear in two lists, and then costs twice as much.",
            backed_by="tests/mechanisms/edges/test_adjacency.py",
            less="the rest of that list, and other lists that name the same person, are not covered",
        ),
        ("relationship", "pair"): _unit_form(
            "one-relationship",
            "one relationship",
            ("edge",),
            means="Whether two people are related, whichever of them reports it.",
            limits="Not all relationships of a person: k of them together cost up to k times as much.",
            backed_by="tests/mechanisms/edges/test_adjacency.py",
            heading="relationship",
        ),
        ("relationship of one person", "node"): _unit_form(
            "one-relationship-of-a-person",
            "one relationship of one person",
            ("edge",),
            means="With k before it: any k relationships of one person may be added or removed, in any mixture. A "
            "contact who is exchanged for another counts twice, so k says that any k / 2 contacts may be others.",
            limits="Not the person's features or label, and not more than k of the person's relationships at once.",
            backed_by="tests/aggregation/test_one_person.py",
            heading="relationship of a person",
        ),
        ("directed link", "pair"): _unit_form(
            "one-directed-link",
            "one directed link",
            ("edge",),
            means="Whether one person's list names another.",
            limits="Not the link back, and not the person's whole list.",
            backed_by="tests/mechanisms/edges/test_adjacency.py",
            heading="link",
        ),
        ("private edge", "pair"): _unit_form(
            "one-private-edge",
            "one private undirected edge",
            ("edge",),
            means="Whether one edge exists between two nodes that are declared to have private edges.",
            limits="Edges that are declared public are published, and so is who may have private ones.",
            backed_by="tests/mechanisms/edges/test_pair_domain.py",
            heading="edge",
        ),
        ("undirected edge", "pair"): _unit_form(
            "one-undirected-edge",
            "one undirected edge",
            ("edge",),
            means="Whether two people are linked: both entries of the adjacency matrix.",
            limits="Not a person's features or label, and not all edges of a person at once.",
            backed_by="tests/aggregation/test_perturbed.py",
            heading="edge",
        ),
        ("directed edge", "pair"): _unit_form(
            "one-directed-edge",
            "one directed edge",
            ("edge",),
            means="Whether one node points to another.",
            limits="Not the edge back, not features or label, and not all edges of a person at once.",
            backed_by="tests/aggregation/test_perturbed.py",
            heading="directed edge",
        ),
        ("edge entry", "pair"): _unit_form(
            "one-edge-entry",
            "one directed edge (one of the two entries of an undirected edge)",
            ("edge",),
            means="One of the two entries that an undirected edge has in the adjacency matrix.",
            limits="Not the edge: its two entries together cost more, which is printed beside it.",
            backed_by="tests/aggregation/test_perturbed.py",
            heading="directed edge",
        ),
        ("node", "node"): _unit_form(
            "one-node",
            "one node with its features, label and all its edges",
            ("features", "label", "edges"),
            means="Everything about one person: features, label and every edge, in whichever list it appears.",
            limits="The person's own prediction is for that person alone: it shows their data.",
            backed_by="tests/methods/curator/test_training.py",
            person=True,
            heading="node",
        ),
        ("node and own list", "node"): _unit_form(
            "one-node-own-list",
            "one node's features, label and own list of neighbours (not that others list it)",
            ("features", "label", "edge"),
            means="A person's features, label and own list, against everybody else.",
            limits="That others list the person stays in their lists, which are other units.",
            backed_by="tests/methods/curator/test_training.py",
            less="that others list that person is not covered",
            heading="node",
        ),
        ("node without edges", "node"): _unit_form(
            "one-node-without-edges",
            "one node's features and label",
            ("features", "label"),
            means="Everything about one person that is read: the method reads no edges.",
            limits="The person's own prediction is for that person alone: it shows their data.",
            backed_by="tests/methods/curator/test_training.py",
            person=True,
            heading="node",
        ),
        ("node declared public", "node"): _unit_form(
            "one-node-declared-public",
            "one node's features, label and edges",
            ("features", "label", "edges"),
            means="Everything about one node, in a release that declared all of it public: epsilon is infinite.",
            limits="Nothing of it is protected.",
            backed_by="tests/methods/release/test_privacy.py",
            person=True,
            heading="node",
        ),
        ("embedding row", "holder"): _unit_form(
            "one-embedding-row",
            "one published embedding row of one holder",
            (),
            means="The row that one data holder publishes for one node, over all rounds.",
            limits="Neighbours' rows move with a person's features, and other holders publish rows of the same person.",
            backed_by="tests/federation/test_training.py",
            less="somebody who trains also moves weights, and with them everybody's rows; neighbours' rows, and other "
            "holders' rows of the same person, are units of their own",
            heading="row",
        ),
        ("hidden row", "holder"): _unit_form(
            "one-hidden-row",
            "one row of the opened last hidden layer, of all holders together",
            (),
            means="The row of the last hidden layer that is computed for one node from all holders' data: opened to "
            "the label holder without noise, so that epsilon is infinite.",
            limits="Nothing of it is protected: in each step for who trains, now and then for who validates, and at "
            "the end for everybody.",
            backed_by="tests/federation/modes/test_all_shares.py",
            less="nothing of it has noise, and everybody's data move it",
            heading="row",
        ),
        ("guess", "holder"): _unit_form(
            "one-guess",
            "one published guess of a node's class by one holder",
            (),
            means="The class that one data holder's network guesses for one node, published once.",
            limits="Neighbours' guesses move with a person's features, and other holders guess for the same person.",
            backed_by="tests/federation/modes/test_guesses.py",
            less="somebody who trains also moves a holder's network, and with it everybody's guesses; neighbours' "
            "guesses, and other holders' guesses of the same person, are units of their own",
        ),
        ("person at a holder", "holder"): _unit_form(
            "one-person-at-one-holder",
            "one person's features and label at one holder",
            ("features", "label"),
            means="All that one data holder has of a person and reads, whether the person trains or is guessed about.",
            limits="Other holders' guesses of the same person cost as much again, and the label holder's own data are "
            "used as they are.",
            backed_by="tests/federation/modes/test_private_network.py",
            less="each further holder that guesses costs that person as much again, and what the label holder itself "
            "has of them is used as it is",
            heading="person at a holder",
        ),
        ("person and list at a holder", "holder"): _unit_form(
            "one-person-and-list-at-one-holder",
            "one person's features, label and own list of neighbours at one holder",
            ("features", "label", "edge"),
            means="All that one data holder has of a person and reads, their own list of neighbours included.",
            limits="That others list the person stays in their lists; other holders' guesses cost as much again.",
            backed_by="tests/federation/modes/test_private_votes.py",
            less="that others list that person is not covered; each further holder that guesses costs as much again",
            heading="person at a holder",
        ),
    }
)

USER_FEATURES: Final = ProtectedUnit(kind="features", whose="user")
USER_LABEL: Final = ProtectedUnit(kind="label", whose="user")
USER_FEATURES_AND_LABEL: Final = ProtectedUnit(kind="features and label", whose="user")
LIST_ENTRY: Final = ProtectedUnit(kind="list entry", whose="list")
RELATIONSHIP: Final = ProtectedUnit(kind="relationship", whose="pair")
RELATIONSHIP_OF_ONE: Final = ProtectedUnit(kind="relationship of one person", whose="node")
DIRECTED_LINK: Final = ProtectedUnit(kind="directed link", whose="pair")
PRIVATE_EDGE: Final = ProtectedUnit(kind="private edge", whose="pair")
UNDIRECTED_EDGE: Final = ProtectedUnit(kind="undirected edge", whose="pair")
DIRECTED_EDGE: Final = ProtectedUnit(kind="directed edge", whose="pair")
EDGE_ENTRY: Final = ProtectedUnit(kind="edge entry", whose="pair")
NODE: Final = ProtectedUnit(kind="node", whose="node")
NODE_AND_OWN_LIST: Final = ProtectedUnit(kind="node and own list", whose="node")
NODE_WITHOUT_EDGES: Final = ProtectedUnit(kind="node without edges", whose="node")
NODE_DECLARED_PUBLIC: Final = ProtectedUnit(kind="node declared public", whose="node")
EMBEDDING_ROW: Final = ProtectedUnit(kind="embedding row", whose="holder")
HIDDEN_ROW: Final = ProtectedUnit(kind="hidden row", whose="holder")
GUESS: Final = ProtectedUnit(kind="guess", whose="holder")
PERSON_AT_HOLDER: Final = ProtectedUnit(kind="person at a holder", whose="holder")
PERSON_AND_LIST_AT_HOLDER: Final = ProtectedUnit(kind="person and list at a holder", whose="holder")

#: Every unit that is not composite.
SIMPLE_UNITS: Final[tuple[ProtectedUnit, ...]] = tuple(ProtectedUnit(kind=kind, whose=whose) for kind, whose in _FORMS)
#: The entry of each of these units, by its code.
UNIT_CODES: Final = table_of(form.entry for form in _FORMS.values())
