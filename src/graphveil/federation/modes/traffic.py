"""How many bytes a run sends, from public sizes alone: printed before anything leaves, tested against transcripts."""

from __future__ import annotations

from dataclasses import dataclass

from graphveil.federation.core.setting import Setting
from graphveil.federation.crypto.products import LeftMatrix, Product
from graphveil.federation.modes.holder import lefts_of, products_of
from graphveil.federation.modes.linear import linear_lefts, linear_products

WORD, FLOAT, LONG, KEY = 8, 4, 8, 32


@dataclass(frozen=True)
class Traffic:
    """Bytes of all parties together: once, and in every round (without frames, greetings and acknowledgements)."""

    once: int
    round: int

    def total(self, rounds: int) -> int:
        """Return the bytes of a whole run."""
        return self.once + rounds * self.round


def traffic_of(setting: Setting, nodes: int, rows: int) -> Traffic:
    """Count the bytes of a run after alignment.

    Args:
        nodes: n, rows that all holders share.
        rows: how many of them train.
    """
    holders, width = len(setting.names), setting.model.width
    if setting.protocol.mode == "guesses":  # a label and a guess of every node, for each holder but one
        guessed = nodes - rows if setting.person else nodes
        return Traffic(LONG * (holders + (holders - 1) * nodes), LONG * (holders - 1) * guessed)
    labels = setting.training.republish * 2 * rows * width * FLOAT + nodes * width * FLOAT
    once = LONG * (rows + holders)
    if setting.protocol.mode == "shared-linear":
        products = [*linear_products(setting, nodes), *linear_products(setting, nodes, transposed=True)]
        # Words and not floats: shares are uniform, and nothing shorter than the ring can hold them.
        opened = 2 * holders * nodes * width * WORD  # noisy shares, and shares of the gradient
        pairs = KEY * holders * (holders - 1)
        set_up = _set_up(linear_lefts(setting, nodes)) + _spread(setting, nodes) + pairs
        seals, cut = pairs, _cut(holders, setting.columns * width)
        return Traffic(once + set_up, seals + _shares(products) + opened + cut + labels)
    published = 2 * holders * nodes * width * FLOAT
    if setting.protocol.mode == "individual":
        return Traffic(once, published + labels)
    products = [*products_of(setting, nodes), *products_of(setting, nodes, transposed=True)]
    opened = holders * (holders - 1) * nodes * width * WORD
    return Traffic(once + _set_up(list(lefts_of(setting, nodes))), _shares(products) + opened + published + labels)


def _shares(products: list[Product]) -> int:
    """F of every product, and its correction."""
    return sum((product.inner + product.outer) * product.width * WORD for product in products)


def _set_up(lefts: list[LeftMatrix]) -> int:
    """E of every private matrix to every other holder, and keys."""
    masked = sum(left.rows * left.columns * len(left.partners) * WORD for left in lefts)
    return masked + KEY * sum(1 + 2 * len(left.partners) for left in lefts)


def _spread(setting: Setting, nodes: int) -> int:
    """S_i masked to every other holder in each hop, F and Z of every ordered pair, truncation, and keys."""
    holders, shares = len(setting.names), nodes * setting.columns * WORD
    pairs = holders * (holders - 1)
    hop = pairs * (nodes * nodes * WORD + 2 * shares) + _cut(holders, nodes * setting.columns)
    return setting.model.hops * hop + KEY * holders * (holders + 3)


def _cut(holders: int, numbers: int) -> int:
    """Masked sums to the first holder, the dealer's part to it, and from it a bit a number to each other."""
    return holders * numbers * WORD + (holders - 1) * -(-numbers // 8)
