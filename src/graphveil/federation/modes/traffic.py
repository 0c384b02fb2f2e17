"""What a run sends, from public sizes alone: printed before anything leaves, tested against transcripts.

Bytes of bodies, without frames, greetings and acknowledgements, and without alignment.  Trips are messages that wait
for each other, one way each.  Nobody publishes before each party has told all that it has saved; in mode
"shared-linear" holders also wait for each other's seals, which take as long, and in "all-shares" for what they send
each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from graphveil.federation.core.setting import Setting
from graphveil.federation.crypto.hidden_matrix import Shape
from graphveil.federation.crypto.products import LeftMatrix, Product
from graphveil.federation.crypto.sharing import PARTIES
from graphveil.federation.modes import all_shares
from graphveil.federation.modes.all_shares_parties import KEYS_OF_HOLDER
from graphveil.federation.modes.holder import lefts_of, products_of

#: Bytes of a ring element, a float, a key and a seal.
WORD, FLOAT, KEY, SEAL = 8, 4, 32, 32
#: Trips of mode "all-shares" before the first round.
_SET_UP = 4
#: When messages are sent: before the first round, in every round, where validation nodes are scored, after the last.
ONCE, ROUND, VALIDATION, LAST = "once", "round", "validation", "last"


@dataclass(frozen=True)
class Flow:
    """The messages of one kind from one party to another in one phase.

    Attributes:
        when: the phase, such as ROUND.
        bytes: of all of them together, each time.
    """

    when: str
    kind: str
    sender: str
    receiver: str
    bytes: int


@dataclass(frozen=True)
class Traffic:
    """All messages of a run; `times`: phase -> how often it comes."""

    flows: tuple[Flow, ...]
    times: dict[str, int]

    def sum(self, *phases: str) -> int:
        """Return the bytes of all parties in some phases, one time each."""
        return sum(flow.bytes for flow in self.flows if flow.when in phases)

    @property
    def once(self) -> int:
        return self.sum(ONCE, LAST)

    @property
    def round(self) -> int:
        return self.sum(ROUND)

    @property
    def total(self) -> int:
        """The bytes of a whole run."""
        return sum(self.by_kind().values())

    def by_kind(self) -> dict[str, int]:
        """Return the bytes of a whole run by kind of message, most first."""
        kinds: Counter[str] = Counter()
        for flow in self.flows:
            kinds[flow.kind] += flow.bytes * self.times[flow.when]
        return dict(kinds.most_common())

    def by_link(self) -> dict[tuple[str, str], int]:
        """Return the bytes of a whole run by sender and receiver."""
        links: Counter[tuple[str, str]] = Counter()
        for flow in self.flows:
            links[flow.sender, flow.receiver] += flow.bytes * self.times[flow.when]
        return dict(links)


@dataclass(frozen=True)
class Sizes:
    """The flows of a run of a mode, and of a prediction for people who joined after it; how many trips each takes.

    Attributes:
        flows: of a setting, and of how many nodes there are, train and validate.
        flows_later: of a setting, and of how many nodes there are and people joined.
    """

    flows: Callable[[Setting, int, int, int], Iterator[Flow]]
    flows_later: Callable[[Setting, int, int], Iterator[Flow]]
    trips: Callable[[Setting], int]
    trips_later: Callable[[Setting], int]


def _row_flows_later(setting: Setting, nodes: int, people: int) -> Iterator[Flow]:
    """Modes "individual" and "paper": a row of each new person, and their hidden layer."""
    yield from _count_flows(setting)
    yield from _masked_feature_flows(setting, nodes)
    yield from _first_layer_flows(setting, nodes, LAST)
    for name in setting.names:
        yield Flow(LAST, "embeddings", name, setting.server, people * setting.model.width * FLOAT)
    yield from _new_row_flows(setting, people, setting.server)
    yield _hidden_flow(setting, people)


def _guess_flows_later(setting: Setting, nodes: int, people: int) -> Iterator[Flow]:
    """A guess of each new person from each other holder."""
    yield from _count_flows(setting)
    yield from _new_row_flows(setting, people)
    for name in setting.names:
        if name != setting.label_holder:
            yield Flow(LAST, "guesses", name, setting.label_holder, people * WORD)


def _sum_flows_later(setting: Setting, nodes: int, people: int) -> Iterator[Flow]:
    """Mode "shared-linear"."""
    yield from _session_flows(setting, nodes)
    yield from _input_product_flows(setting, nodes)
    yield from _opening_flows(setting, people)
    yield from _new_row_flows(setting, people, setting.server)
    yield _hidden_flow(setting, people)


def _share_flows_later(setting: Setting, nodes: int, people: int) -> Iterator[Flow]:
    """Mode "all-shares"."""
    yield from _count_flows(setting)
    yield from _share_set_up_flows(setting, nodes)
    for (kind, sender, receiver), size in all_shares.sizes_of_opening(setting, nodes, people).sent.items():
        yield Flow(LAST, kind, sender, receiver, size)
    yield from _new_row_flows(setting, people, setting.server)


def _count_flows(setting: Setting) -> Iterator[Flow]:
    """How many rows all share, from each holder."""
    for name in setting.names:
        yield Flow(ONCE, "aligned", name, setting.server, WORD)


def _new_row_flows(setting: Setting, people: int, *servers: str) -> Iterator[Flow]:
    """Who is new, to all other holders, and to the server where it is named."""
    for name in (*setting.names, *servers):
        if name != setting.label_holder:
            yield Flow(ONCE, "new-rows", setting.label_holder, name, people * WORD)


def _hidden_flow(setting: Setting, people: int) -> Flow:
    """The hidden layer of new people."""
    return Flow(LAST, "hidden", setting.server, setting.label_holder, people * setting.model.width * FLOAT)


def _guess_flows(setting: Setting, nodes: int, rows: int, validation: int) -> Iterator[Flow]:
    """A label and a guess of every node, for each holder but one."""
    for name in setting.names:
        yield Flow(ONCE, "aligned", name, setting.server, WORD)
        if name != setting.label_holder:
            yield Flow(ONCE, "training-labels", setting.label_holder, name, WORD * nodes)
            guesses = nodes - rows if setting.per_person else nodes
            yield Flow(ROUND, "guesses", name, setting.label_holder, WORD * guesses)


def _step_flows(setting: Setting, rows: int) -> Iterator[Flow]:
    """The hidden layer of those who train and its gradient, in each step."""
    size = setting.training.republish * rows * setting.model.width * FLOAT
    yield Flow(ROUND, "hidden", setting.server, setting.label_holder, size)
    yield Flow(ROUND, "hidden-gradient", setting.label_holder, setting.server, size)


def _validation_flows(setting: Setting, nodes: int, rows: int, validation: int) -> Iterator[Flow]:
    """The hidden layer of those who validate, and whether the round is kept; in the end that of everybody."""
    size = setting.model.width * FLOAT
    yield Flow(VALIDATION, "hidden", setting.server, setting.label_holder, (validation or rows) * size)
    yield Flow(VALIDATION, "kept-round", setting.label_holder, setting.server, WORD)
    yield Flow(LAST, "hidden", setting.server, setting.label_holder, nodes * size)


def _split_flows(setting: Setting, rows: int, validation: int) -> Iterator[Flow]:
    for other in (*setting.names, setting.server):
        if other != setting.label_holder:
            yield Flow(ONCE, "labelled-rows", setting.label_holder, other, rows * WORD)
            yield Flow(ONCE, "validation-rows", setting.label_holder, other, validation * WORD)


def _row_flows(setting: Setting, nodes: int, rows: int, validation: int) -> Iterator[Flow]:
    """Modes "individual" and "paper"."""
    server, width = setting.server, setting.model.width
    yield from _split_flows(setting, rows, validation)
    yield from _step_flows(setting, rows)
    yield from _validation_flows(setting, nodes, rows, validation)
    for name in setting.names:
        yield Flow(ONCE, "aligned", name, server, WORD)
        yield Flow(ROUND, "embeddings", name, server, rows * width * FLOAT)
        yield Flow(VALIDATION, "embeddings", name, server, validation * width * FLOAT)
        yield Flow(LAST, "embeddings", name, server, (nodes - rows - validation) * width * FLOAT)
        yield Flow(VALIDATION, "best-round", server, name, WORD)
        yield Flow(ROUND, "embedding-gradient", server, name, rows * width * FLOAT)
    yield from _masked_feature_flows(setting, nodes)
    yield from _first_layer_flows(setting, nodes, ROUND)
    yield from _product_flows(server, products_of(setting, nodes, transposed=True), ROUND)


def _masked_feature_flows(setting: Setting, nodes: int) -> Iterator[Flow]:
    for left in lefts_of(setting, nodes):
        yield from _masked_matrix_flows(setting.server, left)


def _first_layer_flows(setting: Setting, nodes: int, when: str) -> Iterator[Flow]:
    """In mode "paper": X W on shares, opened to all holders."""
    for left in lefts_of(setting, nodes):
        for other in left.partners:
            yield Flow(when, "opened-share", left.owner, other, nodes * setting.model.width * WORD)
    yield from _product_flows(setting.server, products_of(setting, nodes), when)


def _product_flows(server: str, products: Iterable[Product], when: str) -> Iterator[Flow]:
    for product in products:
        yield Flow(when, "masked-right", product.other, product.left.owner, product.inner * product.width * WORD)
        yield Flow(when, "correction", server, product.other, product.outer * product.width * WORD)


def _sum_flows(setting: Setting, nodes: int, rows: int, validation: int) -> Iterator[Flow]:
    """Mode "shared-linear"."""
    server, width, d, m = setting.server, setting.model.width, setting.columns, rows + validation
    second, holders = setting.names[1], setting.names
    yield from _session_flows(setting, nodes)
    yield from _split_flows(setting, rows, validation)
    hops = setting.model.hops - 1
    for name, other in _pairs(holders):
        yield Flow(ONCE, "masked-right", name, other, (nodes * hops * d + d * width) * WORD)
        yield Flow(ONCE, "masked-left", name, other, m * (d + rows) * WORD)
    for numbers in (*[nodes * d] * hops, m * d, m * rows):
        yield from _truncation_flows(setting, ONCE, numbers)
    for name, other in _pairs(holders):
        yield Flow(ROUND, "seal", name, other, SEAL)
    yield from _step_flows(setting, rows)
    yield Flow(ROUND, "gradient-share", server, second, rows * width * WORD)
    yield from _validation_flows(setting, nodes, rows, validation)
    for name in holders:
        yield Flow(ROUND, "noisy-share", name, server, rows * width * WORD)
        yield Flow(VALIDATION, "noisy-share", name, server, validation * width * WORD)
    yield from _truncation_flows(setting, LAST, d * width)
    yield from _input_product_flows(setting, nodes)
    yield from _opening_flows(setting, nodes - m)


def _session_flows(setting: Setting, nodes: int) -> Iterator[Flow]:
    """What opens a session of "shared-linear": keys, hidden matrices, masked features."""
    members = {member.name: member.columns for member in setting.members}
    for member in setting.members:
        yield Flow(ONCE, "aligned", member.name, setting.server, WORD)
        yield Flow(ONCE, "mask-keys", setting.server, member.name, KEY)
        trees, words = Shape.of(nodes, member.entries).corrections
        for other in (*(name for name in setting.names if name != member.name), setting.server):
            yield Flow(ONCE, "matrix-key", member.name, other, KEY)
            yield Flow(ONCE, "hidden-matrix", member.name, other, trees * words * WORD)
    for name, other in _pairs(setting.names):
        yield Flow(ONCE, "holder-key", name, other, KEY)
        yield Flow(ONCE, "masked-right", name, other, nodes * members[name] * WORD)


def _input_product_flows(setting: Setting, nodes: int) -> Iterator[Flow]:
    """The products of S^K X W on shares."""
    width, members = setting.model.width, {member.name: member.columns for member in setting.members}
    for name, other in _pairs(setting.names):
        yield Flow(LAST, "masked-right", name, other, (members[other] + setting.model.hops * nodes) * width * WORD)
    for _ in range(setting.model.hops):
        yield from _truncation_flows(setting, LAST, nodes * width)


def _opening_flows(setting: Setting, rows: int) -> Iterator[Flow]:
    """Some rows of S^K X W, opened to the server in one publication."""
    for name in setting.names:
        yield Flow(LAST, "noisy-share", name, setting.server, rows * setting.model.width * WORD)
    for name, other in _pairs(setting.names):
        yield Flow(LAST, "seal", name, other, SEAL)


def _share_flows(setting: Setting, nodes: int, rows: int, validation: int) -> Iterator[Flow]:
    server = setting.server
    yield from _split_flows(setting, rows, validation)
    for name in setting.names:
        yield Flow(ONCE, "aligned", name, server, WORD)
        yield Flow(VALIDATION, "best-round", server, name, WORD)
    yield Flow(ROUND, "kept-round", setting.label_holder, server, WORD)
    yield from _share_set_up_flows(setting, nodes)
    sizes = all_shares.round_sizes(setting, nodes, rows, validation)
    for when, sent in ((ROUND, sizes.round), (VALIDATION, sizes.validation), (LAST, sizes.last)):
        for (kind, sender, receiver), size in sent.items():
            yield Flow(when, kind, sender, receiver, size)


def _share_set_up_flows(setting: Setting, nodes: int) -> Iterator[Flow]:
    for name in setting.names:
        yield Flow(ONCE, "mask-keys", setting.server, name, KEYS_OF_HOLDER * KEY)
    for name, other in _pairs(setting.names):
        yield Flow(ONCE, "holder-key", name, other, KEY)
    for left in all_shares.lefts_of(setting, nodes).all:
        yield from _masked_matrix_flows(setting.server, left)


def _masked_matrix_flows(server: str, left: LeftMatrix) -> Iterator[Flow]:
    """A masked matrix to each partner of its owner, and the keys of all masks."""
    for other in left.partners:
        yield Flow(ONCE, "mask-keys", server, left.owner, KEY)
        yield Flow(ONCE, "mask-keys", server, other, KEY)
        yield Flow(ONCE, "masked-left", left.owner, other, left.rows * left.columns * WORD)
    yield Flow(ONCE, "mask-keys", server, left.owner, KEY)


def _truncation_flows(setting: Setting, when: str, numbers: int) -> Iterator[Flow]:
    """The dealer's part to the first holder, masked sums to it, and from it a bit a number to each other."""
    first, *other_holders = setting.names
    yield Flow(when, "correction", setting.server, first, numbers * WORD)
    for name in other_holders:
        yield Flow(when, "masked-sum", name, first, numbers * WORD)
        yield Flow(when, "safe-bits", first, name, -(-numbers // 8))


def _pairs(names: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(name, other) for name in names for other in names if name != other]


def matrix_bytes_by_protocol(setting: Setting, nodes: int) -> dict[str, int]:
    """Return the bytes that each protocol for products with all holders' matrices would send for the matrices alone.

    The first is used: it sends least but for graphs of more than about n / 32 connections a node, and costs no trips.

    Args:
        setting: the agreed run, of mode "shared-linear".
    """
    holders, d, hops = len(setting.names), setting.columns, setting.model.hops
    shapes = [Shape.of(nodes, member.entries).corrections for member in setting.members]
    keys = holders * sum(trees * words for trees, words in shapes) * WORD
    dense = holders * (holders - 1) * nodes * nodes * WORD
    # Each entry's row goes three times between server and holder for each product, own columns in the first.
    rows = sum(member.entries for member in setting.members) * nodes * (holders - 1)
    split = 3 * rows * (d // holders + (hops - 1) * d + hops * setting.model.width) * WORD
    return {"keys of point functions": keys, "a masked matrix": dense, "split permutations": split}


def _row_trips(setting: Setting) -> int:
    once, publication = (6, 6) if setting.mode.opens_layer else (4, 3)
    return once + publication * setting.publications + _label_holder_trips(setting)


def _share_trips(setting: Setting) -> int:
    sizes = all_shares.round_sizes(setting, 1, 1, 0)
    return _SET_UP + sizes.trips * setting.publications + 2 * setting.validations + sizes.last_trips


def _label_holder_trips(setting: Setting) -> int:
    """Trips to the label holder and back: in each step, and where validation nodes are scored."""
    return 2 * (setting.training.epochs + setting.validations)


def _hop_trips(setting: Setting, of_two: int, of_third: int) -> int:
    # From three holders on, one waits for another's masked sum in each hop.
    return setting.model.hops * (of_two + of_third * (len(setting.names) > PARTIES[0]))


ROWS = Sizes(_row_flows, _row_flows_later, _row_trips, lambda setting: 7 if setting.mode.opens_layer else 4)
SUMS = Sizes(
    _sum_flows,
    _sum_flows_later,
    lambda setting: 15 + _hop_trips(setting, 4, 2) + 3 * setting.publications + _label_holder_trips(setting),
    lambda setting: 9 + _hop_trips(setting, 2, 1),
)
GUESSES = Sizes(_guess_flows, _guess_flows_later, lambda setting: 3, lambda setting: 3)
SHARES = Sizes(
    _share_flows,
    _share_flows_later,
    _share_trips,
    lambda setting: _SET_UP + len(all_shares.sizes_of_opening(setting, 1, 1).trips),
)
